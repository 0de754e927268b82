"""ELF files: 32-bit RISC-V programs, statically linked, as compilers and assemblers write them.

Everything that a file claims is compared with what it holds before it is used, so that no file, however
damaged, takes more time or memory than its size allows.
"""

import io
import struct
from typing import Any

from elftools.elf.elffile import ELFFile

from tapegrad.errors import FormatError, Refused
from tapegrad.programs.model import LARGEST_RAM, Program
from tapegrad.programs.rv32 import RV32

MAGIC = b"\x7fELF"
STACK = 2048
"""Bytes that a program has for its stack, unless it says how much memory it wants."""
RAM_SYMBOL = "__ram"
"""A symbol of this name has the size of the memory as its value. A program keeps it, as a sign that this was
asked for."""
HEAP_SYMBOL = "__heap"
"""The end of a program that we have linked, its variables included."""
MOST_SEGMENTS, MOST_SECTIONS, MOST_SYMBOLS, LONGEST_NAME = 256, 4096, 20_000, 200
_FLOAT_ABI, _EMBEDDED = 6, 8
_BUILD = "Compile for rv32im and link statically, for instance with `-march=rv32im -mabi=ilp32 -static`."


def read_elf(data: bytes, name: str = "") -> Program:
    """The program of an ELF file, in a memory as large as its symbol `__ram` says, or else the smallest power
    of two that holds it with 2 KiB of stack."""
    _check_header(data)
    try:
        elf = ELFFile(io.BytesIO(data))
        segments = [elf.get_segment(i).header for i in range(min(elf.num_segments(), MOST_SEGMENTS))]
        entry, sections_at, sections = (elf.header[key] for key in ("e_entry", "e_shoff", "e_shnum"))
    except Exception as error:  # the library raises errors of many kinds on damaged files
        raise FormatError(f"the ELF file is damaged: {error or type(error).__name__}") from error
    image = _image(data, segments)
    symbols, file_name = _symbols(data, sections_at, sections)
    content = image.rstrip(b"\0")
    size = max(len(content), min(len(image), symbols.get(HEAP_SYMBOL, len(image))))
    machine = RV32(room_for(size, symbols.get(RAM_SYMBOL)))
    if entry % 4 or entry >= len(image):
        raise FormatError(f"the ELF file starts at {entry:#x}, where it has no instruction")
    kept = {name: value for name, value in symbols.items() if value < machine.ram or name == RAM_SYMBOL}
    title = name or file_name or "program"
    return Program(title, machine, content, entry, kept, any_memory=RAM_SYMBOL not in symbols)


def room_for(size: int, asked: int | None) -> int:
    """How large the memory of a program of this size is."""
    if asked is not None:
        if not max(size, 16) <= asked <= LARGEST_RAM or asked % 16:
            raise Refused(
                f"the program of {size:,} bytes asks for a memory of {asked:,} bytes",
                advice=f"Set `{RAM_SYMBOL}` to a multiple of 16, from {size:,} to {LARGEST_RAM:,}.",
            )
        return asked
    if size + STACK > LARGEST_RAM:
        raise Refused(f"the program takes {size:,} bytes; the largest memory has {LARGEST_RAM:,}")
    return 1 << (size + STACK - 1).bit_length()


def line_numbers(data: bytes, file: str) -> dict[int, int]:
    """Where in an ELF file that was just compiled the code of each line of a source file begins; 0 stands for
    code of other files. (The library follows what such a table says wherever it leads: this is not for files
    of unknown origin.)"""
    found: dict[int, int] = {}
    elf = ELFFile(io.BytesIO(data))
    for unit in elf.get_dwarf_info().iter_CUs() if elf.has_dwarf_info() else ():
        program = unit.dwarfinfo.line_program_for_CU(unit)
        if program is None:
            continue
        files = program.header["file_entry"]
        counted_from = 0 if program.header["version"] >= 5 else 1
        first: int | None = None
        for state in (entry.state for entry in program.get_entries() if entry.state is not None):
            first = state.address if first is None else first
            # Functions that the linker has left out are said to begin at 0, where our start-up code is.
            if state.end_sequence:
                found |= {state.address: 0} if first else {}
                first = None
            elif first == 0:
                continue
            elif files[state.file - counted_from].name.decode() != file:
                found[state.address] = 0
            elif state.line:  # 0 is what belongs to no line of its own
                found[state.address] = state.line
    return _without_repetitions(found)


def constants(data: bytes) -> bytes:
    """What an ELF file that was just compiled holds besides its code."""
    sections = ELFFile(io.BytesIO(data)).iter_sections()
    return b"".join(section.data() for section in sections if section.name in (".rodata", ".data"))


def _without_repetitions(lines: dict[int, int]) -> dict[int, int]:
    kept, last = {}, 0
    for address, line in sorted(lines.items()):
        if line != last:
            kept[address] = last = line
    return kept


def _check_header(data: bytes) -> None:
    if len(data) < 52 or not data.startswith(MAGIC):
        raise FormatError("the ELF file ends within its header")
    wide, order = data[4] == 2, data[5]
    kind, machine = struct.unpack_from(">HH" if order == 2 else "<HH", data, 16)
    if machine != 243:
        known = {3: "x86", 8: "MIPS", 40: "ARM", 62: "x86-64", 183: "64-bit ARM"}.get(
            machine, f"machine {machine}"
        )
        raise FormatError(f"the ELF file is for {known}, not for RISC-V", advice=_BUILD)
    if wide or data[4] != 1:
        raise FormatError(
            "the ELF file is for 64-bit RISC-V, and only 32-bit programs can be run", advice=_BUILD
        )
    if order != 1:
        raise FormatError("the ELF file is big-endian, and RISC-V programs are little-endian", advice=_BUILD)
    if kind != 2:
        what = {1: "an object file that is not linked", 3: "dynamically linked or a library"}.get(
            kind, "no executable file"
        )
        raise FormatError(f"the ELF file is {what}", advice=_BUILD)
    (flags,) = struct.unpack_from("<I", data, 36)
    # Compressed instructions are not refused here: linkers set their flag on files that have none. Where
    # there is one, the program stops at it.
    for flag, what in ((_FLOAT_ABI, "floating-point registers"), (_EMBEDDED, "the base instruction set E")):
        if flags & flag:
            raise FormatError(f"the ELF file uses {what}, which RV32IM does not have", advice=_BUILD)


def _image(data: bytes, segments: list[Any]) -> bytes:
    """What memory holds at first, from address 0 to the end of the last segment."""
    if any(segment["p_type"] in ("PT_INTERP", "PT_DYNAMIC") for segment in segments):
        raise FormatError("the ELF file is dynamically linked", advice=_BUILD)
    loaded = sorted(
        (s["p_vaddr"], s["p_memsz"], s["p_offset"], s["p_filesz"])
        for s in segments
        if s["p_type"] == "PT_LOAD" and s["p_memsz"]
    )
    if not loaded:
        raise FormatError("the ELF file has nothing to load")
    previous = 0
    for at, size, offset, stored in loaded:
        if at + size > LARGEST_RAM:
            raise Refused(
                f"the ELF file wants {size:,} bytes at address {at:#x}; the largest memory has "
                f"{LARGEST_RAM:,} bytes, from address 0 on",
                advice="Link the program at address 0, for instance with `-Wl,-Ttext=0`."
                if at
                else "Give it smaller arrays.",
            )
        if stored > size or offset + stored > len(data):
            raise FormatError(f"the ELF file ends before its segment at {at:#x} does")
        if at < previous:
            raise FormatError(f"two segments of the ELF file overlap at {at:#x}")
        previous = at + size
    image = bytearray(previous)
    for at, _, offset, stored in loaded:
        image[at : at + stored] = data[offset : offset + stored]
    return bytes(image)


def _symbols(data: bytes, at: int, count: int) -> tuple[dict[str, int], str]:
    """Functions, objects and absolute symbols by name, and the name of the source file. The library reads
    names of any length, so that this is done by hand."""
    try:
        headers = [struct.unpack_from("<10I", data, at + 40 * i) for i in range(min(count, MOST_SECTIONS))]
        table = next((header for header in headers if header[1] == 2), None)
        if table is None:
            return {}, ""
        names = headers[table[6]]
        found: dict[str, int] = {}
        file_name = ""
        for i in range(min(table[5] // 16, MOST_SYMBOLS)):
            name_at, value, _, info, _, _ = struct.unpack_from("<IIIBBH", data, table[4] + 16 * i)
            begin = names[4] + name_at
            name = data[begin : min(begin + LONGEST_NAME, names[4] + names[5])].split(b"\0")[0]
            text = name.decode("utf-8", "replace")
            if info & 15 in (0, 1, 2) and text and not text.startswith(("$", ".L")):
                found[text] = value
            elif info & 15 == 4 and not file_name:
                file_name = text
    except (struct.error, IndexError) as error:
        raise FormatError("the ELF file ends within its table of symbols") from error
    return found, file_name
