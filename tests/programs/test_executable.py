"""Programs as ELF files: read by another library, read again by us, and run by qemu."""

import io
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from typer.testing import CliRunner

import tapegrad
from tapegrad.cli import app
from tapegrad.errors import Refused
from tapegrad.programs import compiler, read_assembler, read_c, read_elf
from tapegrad.programs.compiled import run
from tapegrad.programs.executable import write_elf
from tapegrad.programs.library import READY
from tapegrad.programs.model import Program

QEMU = shutil.which("qemu-riscv32")
needs_qemu = pytest.mark.skipif(QEMU is None, reason="no qemu-riscv32")
needs_compiler = pytest.mark.skipif(compiler.compiler() is None, reason="no compiler for RISC-V")
EXAMPLES = Path(__file__).parents[2] / "examples" / "programs"

SHOUT = b"""
        .equ __ram, 256
        .data
place:  .byte 0
        .text
        nop
_start: li a0, 0
        la a1, place
        li a2, 1
        li a7, 63
        ecall
        beqz a0, done
        lbu t0, place
        addi t0, t0, -32
        sb t0, place, t1
        li a0, 1
        li a7, 64
        ecall
        j _start
done:   li a0, 41
        li a7, 93
        ecall
"""
HEAP = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int counts[300];
int main(int argc, char **argv)
{
    char **lines = 0, line[32];
    int count = 0;
    while (fgets(line, sizeof line, stdin)) {
        lines = realloc(lines, (count + 1) * sizeof *lines);
        lines[count++] = strdup(line);
        counts[(unsigned char)line[0]]++;
    }
    char *large = calloc(50000, 1);
    memset(large, 'x', 49999);
    while (count--) printf("%s", lines[count]);
    printf("%d %zu %.3f %d\n", counts['b'], strlen(large), 10 / 4.0, argc);
    return count + 12;
}
"""


def test_other_library_reads_it() -> None:
    program = read_assembler(SHOUT)
    elf: Any = ELFFile(io.BytesIO(write_elf(program)))
    (segment,) = elf.iter_segments()
    assert (segment["p_type"], segment["p_vaddr"], segment["p_memsz"]) == ("PT_LOAD", 0, 256)
    assert segment["p_flags"] == 7
    assert segment["p_offset"] % 4096 == 0  # a loader maps pages
    assert segment.data() == program.image == elf.get_section_by_name(".text").data()
    assert elf.header["e_entry"] == program.entry == 4
    table = elf.get_section_by_name(".symtab")
    assert table.get_symbol_by_name("done")[0]["st_value"] == program.symbols["done"]
    assert table["sh_info"] == sum(s["st_info"]["bind"] == "STB_LOCAL" for s in table.iter_symbols())


@pytest.mark.parametrize("source", [SHOUT, SHOUT.replace(b".equ __ram, 256", b""), b"li a0, 3\nebreak"])
def test_read_again_it_is_the_same(source: bytes) -> None:
    program = read_assembler(source)
    again = read_elf(write_elf(program))
    assert again == program
    assert again.symbols == program.symbols
    assert again.any_memory == program.any_memory


@needs_compiler
def test_c_program_keeps_its_size() -> None:
    """Its variables have room, although the file has a segment that is much larger."""
    program = read_c(HEAP.encode())
    again = read_elf(write_elf(program))
    assert again == program
    assert again.symbols["__heap"] == program.symbols["__heap"] > len(program.image)


def test_command(tmp_path: Path) -> None:
    (tmp_path / "shout.s").write_bytes(SHOUT)
    out = tmp_path / "shout.elf"
    for source in (tmp_path / "shout.s", "subleq-hello", "palindrome"):
        done = CliRunner().invoke(app, ["export", str(source), "--to", "elf", "-o", str(out)])
        if source == tmp_path / "shout.s":
            assert done.exit_code == 0
            assert os.access(out, os.X_OK)
            assert tapegrad.read(out) == replace(read_assembler(SHOUT), name="shout")
            out.unlink()
        else:
            assert isinstance(done.exception, Refused)
            assert not out.exists()


def by_qemu(program: Program, given: bytes, folder: Path) -> tuple[bytes, int]:
    path = folder / "program.elf"
    path.write_bytes(write_elf(program))
    path.chmod(0o755)
    assert QEMU is not None
    done = subprocess.run([QEMU, str(path)], input=given, capture_output=True, timeout=60)
    return done.stdout, done.returncode


def by_us(program: Program, given: bytes) -> tuple[bytes, int]:
    final = run(program, program.start(given)).final
    assert final.trap == "exit"
    return final.output, final.registers[10] & 255


@needs_qemu
@pytest.mark.parametrize("program", [read_assembler(SHOUT), READY["rv32-sort"].build()])
def test_qemu_runs_assembler(program: Program, tmp_path: Path) -> None:
    given = b"quartz"
    assert by_qemu(program, given, tmp_path) == by_us(program, given)
    assert by_us(read_assembler(SHOUT), given) == (b"QUARTZ", 41)


@needs_qemu
@needs_compiler
@pytest.mark.slow
def test_qemu_runs_c(tmp_path: Path) -> None:
    sudoku = b"530070000600195000098000060800060003400803001700020006060000280000419005000080079\n"
    given = {"sudoku": sudoku, "quicksort": b"5 3 8\n", "sha256": b"abc"}
    for path in sorted(EXAMPLES.glob("*.c")):
        program, text = read_c(path.read_bytes()), given.get(path.stem, b"")
        assert by_qemu(program, text, tmp_path) == by_us(program, text), path.stem
    text = b"beta\nalpha\nbravo\n"
    found = by_qemu(read_c(HEAP.encode()), text, tmp_path)
    assert found == (b"bravo\nalpha\nbeta\n2 49999 2.500 1\n", 11)
