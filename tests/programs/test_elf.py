"""ELF files, whole and damaged, written byte by byte."""

import contextlib
import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.errors import FormatError, Refused, TapegradError
from tapegrad.programs import read_elf
from tapegrad.programs.compiled import run
from tapegrad.programs.instructions import INSTRUCTIONS

CODE = b"".join(
    word.to_bytes(4, "little")
    for word in (
        INSTRUCTIONS["addi"].encoded(rd=10, imm=7),
        INSTRUCTIONS["addi"].encoded(rd=17, imm=93),
        INSTRUCTIONS["ecall"].encoded(),
    )
)


def elf(
    segments=((0, CODE, 12),),
    *,
    symbols=(),
    entry=0,
    kind=2,
    machine=243,
    wide=1,
    order=1,
    flags=0,
    extra_types=(),
) -> bytes:
    """A file with these segments: address, bytes, size in memory."""
    count = len(segments) + len(extra_types)
    at = 52 + 32 * count
    headers, body = b"", b""
    for type_ in extra_types:
        headers += struct.pack("<8I", type_, 0, 0, 0, 0, 0, 4, 1)
    for address, data, size in segments:
        headers += struct.pack("<8I", 1, at + len(body), address, address, len(data), size, 7, 4)
        body += data
    names, table = b"\0", struct.pack("<IIIBBH", 0, 0, 0, 0, 0, 0)
    for name, value, info in symbols:
        table += struct.pack("<IIIBBH", len(names), value, 0, info, 0, 1)
        names += name.encode() + b"\0"
    tables_at = at + len(body)
    sections_at = tables_at + len(table) + len(names)
    sections = struct.pack("<10I", *[0] * 10)
    sections += struct.pack("<10I", 0, 2, 0, 0, tables_at, len(table), 2, 0, 4, 16)
    sections += struct.pack("<10I", 0, 3, 0, 0, tables_at + len(table), len(names), 0, 0, 1, 0)
    header = b"\x7fELF" + bytes([wide, order, 1]) + bytes(9)
    header += struct.pack(
        "<HHIIIIIHHHHHH", kind, machine, 1, entry, 52, sections_at, flags, 52, 32, count, 40, 3, 0
    )
    return header + headers + body + table + names + sections


def test_a_whole_file():
    program = read_elf(elf(symbols=[("main", 4, 2), ("p.c", 0, 4), ("__ram", 64, 0), ("$x", 0, 0)]))
    assert program.name == "p.c"
    assert dict(program.symbols) == {"main": 4, "__ram": 64}
    assert program.machine.ram == 64
    last = run(program, program.start()).final
    assert (last.trap, last.registers[10], last.pc) == ("exit", 7, 8)


def test_segments():
    program = read_elf(elf([(32, b"data", 100), (0, CODE, len(CODE)), (16, b"", 0)]))
    assert program.image == CODE.ljust(32, b"\0") + b"data"
    assert program.machine.ram == 4096
    assert read_elf(elf([(0, CODE, 5000)])).machine.ram == 8192


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (elf()[:40], "ends within its header"),
        (elf(wide=2), "64-bit"),
        (elf(machine=40), "for ARM"),
        (elf(machine=62), "x86-64"),
        (elf(kind=1), "not linked"),
        (elf(kind=3), "dynamically linked"),
        (elf(extra_types=(3,)), "dynamically linked"),
        (elf(extra_types=(2,)), "dynamically linked"),
        (elf(flags=4), "floating-point"),
        (elf(flags=8), "instruction set E"),
        (elf([]), "nothing to load"),
        (elf([(0, CODE, 2)]), "ends before"),
        (elf([(0, CODE, len(CODE)), (8, CODE, len(CODE))]), "overlap at 0x8"),
        (elf([(0x8000_0000, CODE, len(CODE))], entry=0x8000_0000), "Link the program at address 0"),
        (elf([(0, CODE, 0xFFFF_FFFF)]), "4,294,967,295 bytes"),
        (elf(entry=2), "starts at 0x2"),
        (elf(entry=4000), "starts at 0xfa0"),
        (elf(symbols=[("__ram", 8, 0)]), "asks for a memory of 8"),
        (elf(symbols=[("__ram", 0xFFFF_FFF0, 0)]), "asks for a memory"),
    ],
)
def test_foreign_and_damaged_files(data, message):
    with pytest.raises((FormatError, Refused), match=message):
        read_elf(data)


def test_big_endian():
    data = bytearray(elf(order=2))
    data[16:20] = struct.pack(">HH", 2, 243)
    with pytest.raises(FormatError, match="big-endian"):
        read_elf(bytes(data))


def test_every_truncation():
    data = elf(symbols=[("main", 4, 2)])
    for length in range(len(data)):
        with pytest.raises(TapegradError):
            read_elf(data[:length])


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_bytes_that_are_wrong(data):
    whole = bytearray(elf([(0, CODE, 64), (64, b"abc", 90)], symbols=[("main", 4, 2), ("__ram", 256, 0)]))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    began = time.monotonic()
    with contextlib.suppress(TapegradError):
        program = read_elf(bytes(whole))
        run(program, program.start(), 1000)
    assert time.monotonic() - began < 2
