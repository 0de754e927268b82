"""Programs: RISC-V (from C, assembler or ELF files) and SUBLEQ, on machines with random access."""

from tapegrad.programs.assembler import read_assembler
from tapegrad.programs.compiler import read_c
from tapegrad.programs.elf import read_elf
from tapegrad.programs.model import Effect, Machine, Memory, Program, ProgramState, Read, Write
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq, read_subleq

__all__ = [
    "RV32",
    "Effect",
    "Machine",
    "Memory",
    "Program",
    "ProgramState",
    "Read",
    "Subleq",
    "Write",
    "read_assembler",
    "read_c",
    "read_elf",
    "read_subleq",
]
