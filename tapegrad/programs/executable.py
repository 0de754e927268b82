"""Programs as ELF files: executables for other tools that run RISC-V, `qemu-riscv32` above all.

A file has one segment, from address 0 to the end of memory, that may be read, written and executed. With
several, as linkers make them, code and data share a page, and a loader gives this page to the last one alone:
the code on it could not be executed. Beyond the segment qemu has no memory but the stack, which it puts
elsewhere. So where nobody has said how much memory there is, a program with a heap gets as much as one is
tried with, and another what it has without its stack.
"""

import struct

from tapegrad.errors import Refused
from tapegrad.programs.elf import HEAP_SYMBOL, MAGIC, STACK
from tapegrad.programs.fitting import MUCH
from tapegrad.programs.model import Program
from tapegrad.programs.rv32 import RV32

_EXECUTABLE, _RISCV = 2, 243
_LOADED, _ANY_USE = 1, 7
_PROGRAM, _SYMBOLS, _STRINGS = 1, 2, 3
_WRITTEN_AND_EXECUTED = 7
_ABSOLUTE, _GLOBAL, _FILE = 0xFFF1, 16, 4
_PAGE = 4096


def write_elf(program: Program) -> bytes:
    """The executable of a program of RV32IM. Read again, it is the same program."""
    if not isinstance(program.machine, RV32):
        raise Refused(
            f"{program.name!r} is a program of {program.machine.kind}, and an ELF file is for RISC-V",
            advice="Export a C file or RISC-V assembler.",
        )
    memory = program.machine.ram
    if program.any_memory:
        memory = max(MUCH, memory) if HEAP_SYMBOL in program.symbols else memory - STACK
    image = program.image.ljust(4, b"\0")
    table, names = _symbol_table(program)
    sections = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    body, places = b"", []
    for part in (table, names, sections):
        body += bytes(-len(body) % 4)
        places.append((_PAGE + len(image) + -len(image) % 4 + len(body), len(part)))
        body += part
    body += bytes(-len(body) % 4)
    headers_at = _PAGE + len(image) + -len(image) % 4 + len(body)
    headers = [
        (0,) * 10,
        (1, _PROGRAM, _WRITTEN_AND_EXECUTED, 0, _PAGE, len(image), 0, 0, 4, 0),
        # `info` is the number of symbols that are local: none, and the file
        (7, _SYMBOLS, 0, 0, *places[0], 3, 2, 4, 16),
        (15, _STRINGS, 0, 0, *places[1], 0, 0, 1, 0),
        (23, _STRINGS, 0, 0, *places[2], 0, 0, 1, 0),
    ]
    header = MAGIC + bytes([1, 1, 1]) + bytes(9)
    header += struct.pack("<HHIIIII", _EXECUTABLE, _RISCV, 1, program.entry, 52, headers_at, 0)
    header += struct.pack("<HHHHHH", 52, 32, 1, 40, len(headers), len(headers) - 1)
    header += struct.pack("<8I", _LOADED, _PAGE, 0, 0, len(image), memory, _ANY_USE, _PAGE)
    padded = header.ljust(_PAGE, b"\0") + image + bytes(-len(image) % 4) + body
    return padded + b"".join(struct.pack("<10I", *section) for section in headers)


def _symbol_table(program: Program) -> tuple[bytes, bytes]:
    """The symbols, with the name of the program as that of a file, and their names."""
    names, entries = bytearray(b"\0"), [struct.pack("<IIIBBH", 0, 0, 0, 0, 0, 0)]
    kinds = [(program.name, 0, _FILE, _ABSOLUTE)]
    for name, value in program.symbols.items():
        kinds.append((name, value, _GLOBAL, 1 if value < len(program.image) else _ABSOLUTE))
    for name, value, info, section in kinds:
        entries.append(struct.pack("<IIIBBH", len(names), value, 0, info, 0, section))
        names += name.encode("utf-8", "replace") + b"\0"
    return b"".join(entries), bytes(names)
