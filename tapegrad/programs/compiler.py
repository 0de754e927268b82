"""C files, by whatever compiler for RISC-V is there: `ziglang` from PyPI, or gcc or clang on the PATH.

A library of our own is linked to them, `c/runtime.c`, of which a program gets what it uses. Of some parts the
linker cannot tell: how floating-point numbers are printed and read, for one, takes more than most programs.
They are left out at first. What comes out shows which are needed, by its names and by the formats among its
constants, and then the program is compiled once more.

Memory has no pages that could be closed, so that guards are instructions, the same on every target. A load
or store through a null pointer is an illegal instruction (`-fsanitize=null`). A function that is entered with
the stack below the end of data and heap is a breakpoint: room for two instructions is left at its beginning,
and `_with_stack_guards` fills it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from tapegrad._files import files_are_read
from tapegrad.errors import FormatError, InputError
from tapegrad.programs import confined
from tapegrad.programs.elf import constants, line_numbers, read_elf
from tapegrad.programs.model import Program, SourceText

HERE = Path(__file__).parent / "c"
SECONDS = 120
"""For which a compiler may run."""
FLAGS = (
    *("-Os", "-w", "-g", "-fhosted", "-U__STDC_HOSTED__", "-D__STDC_HOSTED__=0", "-fno-builtin"),
    *("-fsigned-char", "-fno-pic", "-fno-stack-protector"),
    *("-fno-asynchronous-unwind-tables", "-ffunction-sections", "-fdata-sections", "-fno-ident"),
    *("-nostartfiles", "-static", "-Wl,--gc-sections", "-UNDEBUG"),
    *("-Wno-error=implicit-function-declaration", "-Wno-error=implicit-int", "-Wno-error=int-conversion"),
    *("-Wno-error=incompatible-pointer-types", "-Wno-error=incompatible-function-pointer-types"),
)
"""For small programs; `-g` for the lines of the source, and for the names of functions, which zig would leave
out. It would also leave out assertions. Old programs declare less than compilers now ask for. `main` without
a return gives 0, as on any system; but compilers' own headers are to look for no others, as without one.
`char` has a sign, as on most machines and not as in the ABI of RISC-V: programs put EOF into one."""
ROOM = "-fpatchable-function-entry=2"
NULL_GUARDS = ("-fsanitize=null", "-fsanitize-trap=null")
TWO_NOPS, STACK_GUARD = bytes.fromhex("13000000 13000000"), bytes.fromhex("63743100 73001000")
"""`bgeu sp, gp, .+8; ebreak`."""
TRAP = bytes.fromhex("731000c0")
"""`unimp`, which compilers put where a program must not come."""
NEEDED_BY = {"atexit": "-DTAPEGRAD_ATEXIT", "feof": "-DTAPEGRAD_FEOF"}
"""Parts of the library that programs with these functions need."""
FLOATS = "-DTAPEGRAD_FLOATS"
FLOAT_FORMAT = re.compile(rb"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?[lL]?[fFeEgGaA]")
GCC = ("riscv32-unknown-elf-gcc", "riscv64-unknown-elf-gcc", "riscv-none-elf-gcc", "riscv64-linux-gnu-gcc")
_ARCHITECTURE = ["-march=rv32im", "-mabi=ilp32", "-nostdlib"]
ADVICE = "Install one with `pip install 'tapegrad[c]'`, or put clang or gcc for RISC-V on the PATH."
LONGEST_MESSAGE = 1500
ARGUMENTS, TAKES_ARGUMENTS = "-DTAPEGRAD_ARGUMENTS", re.compile(rb"\bmain\s*\(\s*(?!void\s*\))[^\s)]")
COMPILERS_OWN = {"float.h", "iso646.h", "limits.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h"}
"""Headers that are there without any library."""


def compiler() -> tuple[list[str], list[str]] | None:
    """The command of a compiler, and what comes last on its line; None where there is none."""
    zig = find_spec("ziglang")
    if zig is not None and zig.origin is not None:
        target = ["-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m", "-fno-sanitize=undefined"]
        of_each_line = ["-fno-sanitize-merge=null", "-fno-sanitize-debug-trap-reasons"]
        guards = [*NULL_GUARDS, *of_each_line, "-Xclang", ROOM]
        return [str(Path(zig.origin).with_name("zig")), "cc", *target, *guards], []
    for name in GCC:
        if found := shutil.which(name):
            guards = ["-fsanitize=null", "-fsanitize-undefined-trap-on-error", ROOM]
            return [found, *_ARCHITECTURE, *guards], ["-lgcc"]
    if (clang := shutil.which("clang")) and shutil.which("ld.lld"):
        target = ["--target=riscv32-unknown-elf", "-fuse-ld=lld", *_ARCHITECTURE]
        return [clang, *target, *NULL_GUARDS, ROOM], []
    return None


def read_c(data: bytes, name: str = "program.c", folder: Path | None = None) -> Program:
    """The program that a C file compiles to. Files that it includes by name are looked for in `folder`."""
    found = compiler()
    if found is None:
        raise InputError("there is no compiler for C programs", advice=ADVICE)
    if not files_are_read():
        _refuse_names_of_files(data)
        found = _confined(found[0]), found[1]
    with tempfile.TemporaryDirectory(prefix="tapegrad-") as own:
        source = Path(own, "program.c")
        source.write_bytes(data)
        near = [f"-fmacro-prefix-map={own}{os.sep}="]  # for __FILE__
        near += [] if folder is None else ["-iquote", str(folder.absolute())]
        near += [ARGUMENTS] if TAKES_ARGUMENTS.search(data) else []
        elf = _compiled(found, source, near)
        more = [part for name, part in NEEDED_BY.items() if name in read_elf(elf).symbols]
        more += [FLOATS] if FLOAT_FORMAT.search(constants(elf)) else []
        elf = _compiled(found, source, [*near, *more]) if more else elf
        text = tuple(data.decode("utf-8", "replace").splitlines())
        built = replace(read_elf(elf), name=name, source=SourceText(text, line_numbers(elf, source.name)))
        return _with_stack_guards(built)


def _with_stack_guards(program: Program) -> Program:
    """A comparison at the beginning of each function that has room for it."""
    image = bytearray(program.image)
    for at in program.symbols.values():
        if image[at : at + 8] == TWO_NOPS:
            image[at : at + 8] = STACK_GUARD
    return replace(program, image=bytes(image))


def _confined(command: list[str]) -> list[str]:
    """The command where it can read the compiler, our library and its own folder, and no other file."""
    program = Path(command[0]).resolve()
    if program.stem == "zig":
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        kept = Path(os.environ.get("ZIG_GLOBAL_CACHE_DIR") or Path(home, "zig"))
        kept.mkdir(parents=True, exist_ok=True)
        places = [program.parent, kept]
    else:
        parts = ("lib", "libexec", program.stem.removesuffix("-gcc"))
        places = [program.parent, *(program.parents[1] / part for part in parts)]
        places += map(Path, ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null"))
    return [sys.executable, "-I", confined.__file__, ".", str(HERE), *map(str, places), "--", *command]


def _refuse_names_of_files(data: bytes) -> None:
    """Refuses whatever a compiler might open a file for, but for the headers there are: where no kernel keeps
    it from that, it would print what the file holds as a mistake. Words that are made of parts, or by macros,
    are refused as such, and so is a line that goes on in another way than by a backslash at its end."""
    text = re.sub(rb"\\\r?\n", b"", data)
    known = "|".join(re.escape(name) for name in _headers().split(", ")).encode()
    rest = re.sub(rb"^[ \t]*#[ \t]*include[ \t]*[<\"](?:" + known + rb")[>\"]", b"", text, flags=re.MULTILINE)
    word = re.search(rb"include|import|embed|pragma|asm|inc\W*bin|##|%:|\?\?|\\[ \t\v\f]*[\r\n]", rest, re.I)
    if word is not None:
        raise FormatError(
            f"no files are opened for this C program, and it has {word[0].decode()!r}",
            advice=f"Include no other headers than {_headers()}, or save it as a file, for `tapegrad run`.",
        )


def _compiled(found: tuple[list[str], list[str]], source: Path, options: list[str]) -> bytes:
    """The ELF file of a C file and the library."""
    command, last = found
    folder, built = source.parent, source.with_suffix(".elf")
    files = ["-I", str(HERE), "-T", str(HERE / "link.ld"), str(source), str(HERE / "runtime.c")]
    try:
        done = subprocess.run(
            [*command, *FLAGS, *options, *files, "-o", str(built), *last],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            cwd=folder,
            env={**os.environ, "ZIG_LOCAL_CACHE_DIR": str(folder)},
        )
    except subprocess.TimeoutExpired as error:
        raise FormatError(f"the C compiler took more than {SECONDS} seconds") from error
    except OSError as error:
        raise InputError(f"the C compiler cannot be run: {error.strerror}", advice=ADVICE) from error
    if done.returncode or not built.is_file():
        raise _not_compiled(done.stderr.decode(errors="replace"), str(folder))
    return built.read_bytes()


def _not_compiled(message: str, folder: str) -> FormatError:
    """The compiler's own words, from the first error on."""
    for own in (folder, str(HERE)):
        message = message.replace(own + os.sep, "")
    text = re.sub(r"\bo/[0-9a-f]{32}/", "", message).strip()
    errors = re.search(r"^.*\berror: .*", text, re.MULTILINE)
    shown = text[errors.start() :] if errors else text
    shown = re.sub(r"\n\d+ errors? generated\.?\Z", "", shown)
    advice = ""
    if re.search(r"undefined (?:symbol|reference)", shown):
        advice = f"The headers of the library: {_headers()}. A program of several files includes them."
    elif re.search(r"\.h'? file not found|\.h: No such file", shown):
        advice = f"There are {_headers()}, and files in the folder of the program."
    if len(shown) > LONGEST_MESSAGE:
        shown = shown[:LONGEST_MESSAGE] + "..."
    place = re.match(r"program\.c:(\d+):(\d+): (?:fatal )?error: (.*)", shown)
    if place is None:
        return FormatError(f"the C program does not compile: {shown}", advice=advice)
    # The line itself, with a mark below, and further mistakes.
    more = re.sub(
        r"^program\.c:(\d+):(\d+): ", r"line \1, column \2: ", shown[place.end() :], flags=re.MULTILINE
    )
    where = f"line {place[1]}, column {place[2]}"
    advice = f"{advice}{more}".rstrip()
    return FormatError(f"the C program does not compile: {place[3]}", where=where, advice=advice)


def _headers() -> str:
    """What can be included: ours, and those that come with every compiler."""
    return ", ".join(sorted({path.name for path in HERE.glob("*.h")} | COMPILERS_OWN))
