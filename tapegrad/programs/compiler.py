"""C files, by whatever compiler for RISC-V is there: `ziglang` from PyPI, or gcc or clang on the PATH."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from tapegrad.errors import FormatError, InputError
from tapegrad.programs.elf import line_numbers, read_elf
from tapegrad.programs.model import Program, SourceText

HERE = Path(__file__).parent / "c"
SECONDS = 120
"""For which a compiler may run."""
FLAGS = (
    *("-Os", "-w", "-g", "-ffreestanding", "-fno-builtin", "-fno-pic", "-fno-stack-protector"),
    *("-fno-asynchronous-unwind-tables", "-ffunction-sections", "-fdata-sections", "-fno-ident"),
    *("-nostartfiles", "-static", "-Wl,--gc-sections"),
)
"""For small programs; `-g` for the lines of the source, and for the names of functions, which zig would leave
out."""
GCC = ("riscv32-unknown-elf-gcc", "riscv64-unknown-elf-gcc", "riscv-none-elf-gcc", "riscv64-linux-gnu-gcc")
_ARCHITECTURE = ["-march=rv32im", "-mabi=ilp32", "-nostdlib"]
ADVICE = "Install one with `pip install tapegrad[c]`, or put clang or gcc for RISC-V on the PATH."
LONGEST_MESSAGE = 1500


def compiler() -> tuple[list[str], list[str]] | None:
    """The command of a compiler, and what comes last on its line; None where there is none."""
    if find_spec("ziglang") is not None:
        target = ["-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m", "-fno-sanitize=undefined"]
        return [sys.executable, "-m", "ziglang", "cc", *target], []
    for name in GCC:
        if found := shutil.which(name):
            return [found, *_ARCHITECTURE], ["-lgcc"]
    if (clang := shutil.which("clang")) and shutil.which("ld.lld"):
        return [clang, "--target=riscv32-unknown-elf", "-fuse-ld=lld", *_ARCHITECTURE], []
    return None


def read_c(data: bytes, name: str = "program.c") -> Program:
    """The program that a C file compiles to."""
    found = compiler()
    if found is None:
        raise InputError("there is no compiler for C programs", advice=ADVICE)
    command, last = found
    with tempfile.TemporaryDirectory(prefix="tapegrad-") as folder:
        source, built = Path(folder, "program.c"), Path(folder, "program.elf")
        source.write_bytes(data)
        files = ["-I", str(HERE), "-T", str(HERE / "link.ld"), str(source), str(HERE / "runtime.c")]
        try:
            done = subprocess.run(
                [*command, *FLAGS, *files, "-o", str(built), *last],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                cwd=folder,
                env={**os.environ, "ZIG_LOCAL_CACHE_DIR": folder},
            )
        except subprocess.TimeoutExpired as error:
            raise FormatError(f"the C compiler took more than {SECONDS} seconds") from error
        except OSError as error:
            raise InputError(f"the C compiler cannot be run: {error.strerror}", advice=ADVICE) from error
        if done.returncode or not built.is_file():
            raise _not_compiled(done.stderr.decode(errors="replace"), folder)
        elf = built.read_bytes()
        text = tuple(data.decode("utf-8", "replace").splitlines())
        return replace(read_elf(elf), name=name, source=SourceText(text, line_numbers(elf, source.name)))


def _not_compiled(message: str, folder: str) -> FormatError:
    """The compiler's own words, from the first error on."""
    text = message.replace(folder + os.sep, "").strip()
    errors = re.search(r"^.*\berror: .*", text, re.MULTILINE)
    shown = text[errors.start() :] if errors else text
    shown = re.sub(r"\n\d+ errors? generated\.?\Z", "", shown)
    if len(shown) > LONGEST_MESSAGE:
        shown = shown[:LONGEST_MESSAGE] + "..."
    place = re.match(r"program\.c:(\d+):(\d+):", shown)
    where = f"line {place[1]}, column {place[2]}" if place else ""
    return FormatError(f"the C program does not compile: {shown}", where=where)
