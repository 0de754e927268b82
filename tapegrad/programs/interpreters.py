"""The plain interpreters, written to be read: all networks and other interpreters are compared with them.

They work on Python's integers and share nothing with the steps over typed values that circuits are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tapegrad.programs.model import COUNTED, ProgramState

if TYPE_CHECKING:
    from tapegrad.programs.rv32 import RV32
    from tapegrad.programs.subleq import Subleq

MASK = 0xFFFF_FFFF


class Stop(Exception):
    """The instruction at pc has stopped the program."""


class Devices:
    """Input and output of a program that runs."""

    def __init__(self, state: ProgramState) -> None:
        self.input, self.taken = state.input, state.taken
        self.output, self.written = bytearray(state.output), state.written

    def next_byte(self) -> int | None:
        """The next byte of input; None at its end."""
        if self.taken == len(self.input):
            return None
        self.taken += 1
        return self.input[self.taken - 1]

    def put(self, byte: int) -> None:
        self.output.append(byte)
        self.written = (self.written + 1) % (1 << COUNTED)


def signed(word: int) -> int:
    """The number that a word stands for in two's complement."""
    return word - (1 << 32) if word >> 31 else word


def extended(value: int, bits: int) -> int:
    """A number of so many bits, with its sign, as a word."""
    return (value - (1 << bits) if value >> bits - 1 else value) & MASK


# RV32IM


class Hart:
    """Registers and memory of an RV32IM processor, changed in place."""

    def __init__(self, state: ProgramState) -> None:
        self.pc, self.copied, self.trap = state.pc, state.copied, state.trap
        self.x, self.memory = list(state.registers), bytearray(state.memory)
        self.devices = Devices(state)

    def state(self) -> ProgramState:
        """As it is now."""
        devices = self.devices
        return ProgramState(
            pc=self.pc,
            memory=bytes(self.memory),
            registers=tuple(self.x),
            trap=self.trap,
            input=devices.input,
            taken=devices.taken,
            copied=self.copied,
            output=bytes(devices.output),
            written=devices.written,
        )

    def load(self, address: int, size: int) -> int:
        """So many bytes as a number, the lowest first."""
        if address + size > len(self.memory):
            raise Stop("address outside memory")
        return int.from_bytes(self.memory[address : address + size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        """The low bytes of a number."""
        if address + size > len(self.memory):
            raise Stop("address outside memory")
        self.memory[address : address + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def set(self, register: int, value: int) -> None:
        """Writes a register; x0 stays 0."""
        if register:
            self.x[register] = value & MASK

    def step(self) -> None:
        """One instruction, or one byte of a system call."""
        if self.pc + 4 > len(self.memory):
            raise Stop("jump outside memory")
        code = self.load(self.pc, 4)
        opcode, rd, f3 = code & 0x7F, code >> 7 & 31, code >> 12 & 7
        a, b, top = self.x[code >> 15 & 31], self.x[code >> 20 & 31], code >> 25
        imm = extended(code >> 20, 12)
        following = self.pc + 4 & MASK
        if opcode == 0x33 and top == 1:
            self.set(rd, MULTIPLICATION[f3](a, b))
        elif opcode == 0x33 and (top == 0 or (top == 0x20 and f3 in (0, 5))):
            self.set(rd, ARITHMETIC[f3, top == 0x20](a, b))
        elif opcode == 0x13 and f3 not in (1, 5):
            self.set(rd, ARITHMETIC[f3, False](a, imm))
        elif opcode == 0x13 and (top == 0 or (top == 0x20 and f3 == 5)):
            self.set(rd, ARITHMETIC[f3, top == 0x20](a, imm & 31))
        elif opcode == 0x03 and f3 in LOADS:
            size, sign = LOADS[f3]
            value = self.load(a + imm & MASK, size)
            self.set(rd, extended(value, 8 * size) if sign else value)
        elif opcode == 0x23 and f3 < 3:
            self.store(a + extended(code >> 25 << 5 | rd, 12) & MASK, 1 << f3, b)
        elif opcode == 0x63 and f3 in BRANCHES:
            if BRANCHES[f3](a, b):
                offset = code >> 31 << 12 | (code >> 7 & 1) << 11 | (code >> 25 & 63) << 5
                following = self.target(self.pc + extended(offset | (code >> 8 & 15) << 1, 13))
        elif opcode == 0x37:
            self.set(rd, code & 0xFFFF_F000)
        elif opcode == 0x17:
            self.set(rd, self.pc + (code & 0xFFFF_F000))
        elif opcode == 0x6F:
            offset = code >> 31 << 20 | (code >> 12 & 255) << 12 | (code >> 20 & 1) << 11
            jump = self.target(self.pc + extended(offset | (code >> 21 & 1023) << 1, 21))
            self.set(rd, following)
            following = jump
        elif opcode == 0x67 and f3 == 0:
            jump = self.target(a + imm & ~1)
            self.set(rd, following)
            following = jump
        elif opcode == 0x0F and f3 < 2:
            pass  # fence and fence.i: there is one processor, and it sees at once what it has written
        elif code == 0x73:
            if not self.system_call():
                return
        elif code == 0x100073:
            raise Stop("breakpoint")
        else:
            raise Stop("illegal instruction")
        self.pc = following

    def target(self, address: int) -> int:
        """Where a jump leads."""
        if address & 2:
            raise Stop("misaligned jump")
        return address & MASK

    def system_call(self) -> bool:
        """Whether it is over. Reading and writing move one byte at a time."""
        number, file, place, count = self.x[17], self.x[10], self.x[11], self.x[12]
        if number in (93, 94):
            raise Stop("exit")
        if number not in (63, 64):
            self.set(10, -38)
            return True
        if file not in ((0,) if number == 63 else (1, 2)):
            self.set(10, -9)
            return True
        if count == 0 or (number == 63 and self.devices.taken == len(self.devices.input)):
            self.set(10, self.copied)
            self.copied = 0
            return True
        place = place + self.copied & MASK
        byte = self.load(place, 1)
        if number == 64:
            self.devices.put(byte)
        else:
            self.store(place, 1, self.devices.next_byte() or 0)
        self.copied += 1
        if self.copied < count:
            return False
        self.set(10, count)
        self.copied = 0
        return True


def _quotient(a: int, b: int) -> int:
    """Rounded towards 0; by 0 it is -1."""
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


ARITHMETIC: dict[tuple[int, bool], Callable[[int, int], int]] = {
    (0, False): lambda a, b: a + b,
    (0, True): lambda a, b: a - b,
    (1, False): lambda a, b: a << (b & 31),
    (2, False): lambda a, b: int(signed(a) < signed(b)),
    (3, False): lambda a, b: int(a < b),
    (4, False): lambda a, b: a ^ b,
    (5, False): lambda a, b: a >> (b & 31),
    (5, True): lambda a, b: signed(a) >> (b & 31),
    (6, False): lambda a, b: a | b,
    (7, False): lambda a, b: a & b,
}
MULTIPLICATION: tuple[Callable[[int, int], int], ...] = (
    lambda a, b: a * b,
    lambda a, b: signed(a) * signed(b) >> 32,
    lambda a, b: signed(a) * b >> 32,
    lambda a, b: a * b >> 32,
    lambda a, b: _quotient(signed(a), signed(b)),
    lambda a, b: _quotient(a, b),
    lambda a, b: signed(a) - _quotient(signed(a), signed(b)) * signed(b),
    lambda a, b: a % b if b else a,
)
BRANCHES: dict[int, Callable[[int, int], bool]] = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    4: lambda a, b: signed(a) < signed(b),
    5: lambda a, b: signed(a) >= signed(b),
    6: lambda a, b: a < b,
    7: lambda a, b: a >= b,
}
LOADS = {0: (1, True), 1: (2, True), 2: (4, False), 4: (1, False), 5: (2, False)}
"""Bytes, and whether they have a sign."""


def run_rv32(machine: RV32, state: ProgramState) -> Iterator[ProgramState]:
    """Every state of an RV32IM program from this one to the end."""
    hart = Hart(state)
    yield state
    while not hart.trap:
        try:
            hart.step()
        except Stop as stop:
            hart.trap = str(stop)
        yield hart.state()


# SUBLEQ


def run_subleq(machine: Subleq, state: ProgramState) -> Iterator[ProgramState]:
    """Every state of a SUBLEQ program from this one to the end."""
    width, size = machine.word, machine.word // 8
    words = [int.from_bytes(state.memory[i : i + size], "little") for i in range(0, len(state.memory), size)]
    minus_one, sign = (1 << width) - 1, 1 << width - 1
    devices, pc, trap = Devices(state), state.pc, state.trap
    yield state
    while not trap:
        if pc + 2 >= len(words):
            trap = "jump outside memory"
        else:
            a, b, c = words[pc : pc + 3]
            following = pc + 3
            inside_a, inside_b = a < len(words), b < len(words)
            if a == minus_one and inside_b:
                byte = devices.next_byte()
                words[b] = minus_one if byte is None else byte
            elif inside_a and b == minus_one:
                devices.put(words[a] & 255)
            elif inside_a and inside_b:
                words[b] = words[b] - words[a] & minus_one
                if words[b] == 0 or words[b] & sign:
                    following = c
            else:
                trap = "address outside memory"
            if following & sign:
                trap = "end"
            if not trap:
                pc = following
        yield ProgramState(
            pc=pc,
            memory=b"".join(word.to_bytes(size, "little") for word in words),
            trap=trap,
            input=devices.input,
            taken=devices.taken,
            output=bytes(devices.output),
            written=devices.written,
        )
