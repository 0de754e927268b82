"""What the microcode of RV32IM does to single bits, and how it tells instructions apart bit by bit.

An operand `a` is in a word of A, an operand `b` in word 0 of B. See `tapegrad.lowering.rv32_machine`.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence

from tapegrad.lowering.microcode import A, B, Bitwise, State

Written = tuple[Hashable, Mapping[int, int]]

IMMEDIATES: dict[str, Sequence[int]] = {
    "I": range(20, 32),
    "S": (*range(7, 12), *range(25, 32)),
    "B": (-1, *range(8, 12), *range(25, 31), 7, 31),
    "U": (*[-1] * 12, *range(12, 32)),
    "J": (-1, *range(21, 31), 20, *range(12, 20), 31),
}
"""Where the bits of an immediate stand in the instruction, the lowest first; -1 where it has a 0."""

_KINDS = {
    0x03: (0, 1, 2, 4, 5),
    0x0F: (0, 1),
    0x13: range(8),
    0x17: range(8),
    0x23: (0, 1, 2),
    0x33: range(8),
    0x37: range(8),
    0x63: (0, 1, 4, 5, 6, 7),
    0x67: (0,),
    0x6F: range(8),
}
"""Opcodes, and the numbers that their field funct3 may have."""


def opcode(carried: Hashable, m: int, a: int, b: int) -> Written:
    """The low seven bits of an instruction, and how many were looked at."""
    assert isinstance(carried, tuple)
    position, bits = carried
    return (carried if position == 7 else (position + 1, bits | b << position)), {}


def decoded(carried: Hashable, m: int, a: int, b: int) -> Written:
    """What tells an instruction apart: as many of its bits as that takes, and how many were looked at. None
    in their place if there is no such instruction."""
    assert isinstance(carried, tuple)
    position, bits = carried
    if bits is None or position == 32:
        return carried, {}
    bits |= b << position
    position += 1
    opcode = bits & 0x7F
    if position <= 7:
        known = [*_KINDS, 0x73]
        legal = any((kind ^ opcode) & (1 << position) - 1 == 0 for kind in known)
    elif opcode == 0x73:
        legal = any((code ^ bits) & (1 << position) - 1 == 0 for code in (0x73, 0x100073))
    else:
        f3 = bits >> 12 & 7
        bits &= (
            0x7F
            | (0x7000 if opcode not in (0x17, 0x37, 0x6F) else 0)
            | (~0 << 25 if _has_f7(opcode, f3) else 0)
        )
        legal = position < 15 or f3 in _KINDS[opcode]
        if position > 25 and _has_f7(opcode, f3):
            legal = any((f7 << 25 ^ bits) >> 25 & (1 << position - 25) - 1 == 0 for f7 in _f7(opcode, f3))
    return (position, bits) if legal else (32, None), {}


def _has_f7(opcode: int, f3: int) -> bool:
    return opcode == 0x33 or (opcode == 0x13 and f3 in (1, 5))


def _f7(opcode: int, f3: int) -> Sequence[int]:
    changed = (0x20,) if f3 == 5 or (f3 == 0 and opcode == 0x33) else ()
    return (0, *changed, *((1,) if opcode == 0x33 else ()))


def one_of(numbers: tuple[int, ...]) -> Bitwise:
    """Whether word 0 of B is one of these, all below 256, and which."""

    def looked(carried: Hashable, m: int, a: int, b: int) -> Written:
        if carried is None:
            return None, {}
        assert isinstance(carried, tuple)
        position, value = carried
        value |= b << position
        position = min(position + 1, 8)
        fits = any((value ^ number) & (1 << position) - 1 == 0 for number in numbers) and value < 256
        return (position, value) if fits else None, {}

    return looked


def number_found(carried: Hashable) -> int:
    return carried[1] if isinstance(carried, tuple) and carried[0] == 8 else -1


def either(yes: State, no: State) -> Callable[[Hashable], State]:
    return lambda carried: yes if carried == 1 else no


# What is done to single bits: a of word 1 of A (or another of its words), b of word 0 of B


def add(carried: Hashable, m: int, a: int, b: int) -> Written:
    assert isinstance(carried, int)
    total = a + b + carried
    return total >> 1, {B: total & 1}


def subtract(carried: Hashable, m: int, a: int, b: int) -> Written:
    assert isinstance(carried, int)
    difference = b - a - carried
    return int(difference < 0), {B: difference & 1}


def compare(carried: Hashable, m: int, a: int, b: int) -> Written:
    """The borrow of b - a, and the two highest bits."""
    assert isinstance(carried, tuple)
    return (int(b - a - carried[0] < 0), a, b), {}


def less(carried: Hashable, signed: bool) -> bool:
    assert isinstance(carried, tuple)
    borrow, a, b = carried
    return bool(borrow ^ a ^ b if signed else borrow)


def differ(carried: Hashable, m: int, a: int, b: int) -> Written:
    return int(carried == 1 or a != b), {}


def some(carried: Hashable, m: int, a: int, b: int) -> Written:
    return int(carried == 1 or a == 1), {}


def xor_bits(carried: Hashable, m: int, a: int, b: int) -> Written:
    return carried, {B: a ^ b}


def or_bits(carried: Hashable, m: int, a: int, b: int) -> Written:
    return carried, {B: a | b}


def and_bits(carried: Hashable, m: int, a: int, b: int) -> Written:
    return carried, {B: a & b}


def double(carried: Hashable, m: int, a: int, b: int) -> Written:
    assert isinstance(carried, int)
    return b, {B: carried}


def double_a(carried: Hashable, m: int, a: int, b: int) -> Written:
    assert isinstance(carried, int)
    return a, {A: carried}


def shifts_down(tape: int) -> Bitwise:
    """From the highest bit downwards, each to the place below it."""

    def shifted(carried: Hashable, m: int, a: int, b: int) -> Written:
        assert isinstance(carried, int)
        return (a if tape == A else b), {tape: carried}

    return shifted


def halve_signed(carried: Hashable, m: int, a: int, b: int) -> Written:
    return (b, {}) if carried == "first" else (b, {B: int(carried == 1)})


def count_down(carried: Hashable, m: int, a: int, b: int) -> Written:
    return int(carried == 1 and a == 0), {A: a ^ int(carried == 1)}


def five_bits_down(carried: Hashable, m: int, a: int, b: int) -> Written:
    assert isinstance(carried, tuple)
    position, borrow = carried
    if position == 5:
        return carried, {}
    return (position + 1, int(borrow and not a)), {A: a ^ borrow}


def lowest(carried: Hashable, m: int, a: int, b: int) -> Written:
    return (a if carried == "first" else carried), {}


def set_lowest(carried: Hashable, m: int, a: int, b: int) -> Written:
    return None, {A: 1} if carried == "first" else {}


def bit_one(carried: Hashable, m: int, a: int, b: int) -> Written:
    """Begins with -2, and ends with bit 1."""
    assert isinstance(carried, int)
    return (carried + 1 if carried == -2 else a if carried == -1 else carried), {}


def copy_even(carried: Hashable, m: int, a: int, b: int) -> Written:
    return None, {A: 0 if carried == "first" else b}


def negate(tape: int) -> Bitwise:
    """All bits turned, and 1 added."""

    def negated(carried: Hashable, m: int, a: int, b: int) -> Written:
        assert isinstance(carried, int)
        total = 1 - (a if tape == A else b) + carried
        return total >> 1, {tape: total & 1}

    return negated
