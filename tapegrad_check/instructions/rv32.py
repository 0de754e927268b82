"""RV32IM, instruction by instruction, as chapters 2 and 13 of the RISC-V manual (volume I) have it.

`PAGE` has a row for every instruction: its name, the fields that are fixed, and what it does. What it does is
said in formulas over the bits of what it sees: pc, its own fields, and the registers and words that it names.
`effect` says what holds for all of them: which traps there are, that pc stays where one occurs, and that x0
is never written. So this file is the definition of the machine that nets are compared with.

The manual leaves some things to the system; here they are as `docs/programs.md` says. Words and halves may
lie anywhere. `ecall` is 93 or 94, exit; 63, read; 64, write. A byte is moved each time that the `ecall` is
executed: it stays where it is until the last, and `copied` counts. Every other instruction sets that to 0.

Two identities of arithmetic are used. A word with a sign is the word without, less 2^32 where its sign is 1;
so the high word of a product is that of the words without signs, less one word where the other is negative.
And a quotient is that of the absolute values, with the sign that it should have; long division by 0 gives all
ones and leaves the dividend, and -2^31 by -1 gives 2^31, which is -2^31, as the manual wants it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.formulas.words import (
    Word,
    above,
    add,
    chosen,
    differing,
    divide,
    either,
    equal,
    less,
    multiply,
    number,
    only,
    padded,
    subtract,
    total,
)
from tapegrad_check.instructions.ports import Layout

EXIT, BREAKPOINT, ILLEGAL, MISALIGNED, JUMP_OUTSIDE, OUTSIDE = range(1, 7)
"""The numbers of traps."""
A0, A1, A2, A7 = (number(register, 5) for register in (10, 11, 12, 17))


class Hart:
    """What an instruction sees. `x` gives the first, second or third register that it asks for, by the bits
    of its number; `memory` the four bytes at an address."""

    def __init__(
        self,
        n: Nodes,
        layout: Layout,
        code: Word,
        registers: Mapping[str, Word],
        x: Callable[[int, Word], list[int]],
        memory: Callable[[int, Word], list[int]],
        arriving: Word,
    ) -> None:
        self.n, self.layout, self.code, self.x, self.memory = n, layout, code, x, memory
        self.pc, self.copied = registers["pc"], registers["copied"]
        self.following = add(n, self.pc, number(4, 32))
        self.rd = code[7:12]
        self.arriving = arriving
        """The next byte of input, and a ninth bit that says that there is one."""

    @property
    def rs1(self) -> list[int]:
        return self.x(0, self.code[15:20])

    @property
    def rs2(self) -> list[int]:
        return self.x(1, self.code[20:25])

    def immediate(self, form: str) -> list[int]:
        """The immediate of each form of instruction; all but U have a sign."""
        code, sign = self.code, self.code[31]
        if form == "U":
            return [*[FALSE] * 12, *code[12:32]]
        low = {
            "I": code[20:32],
            "S": [*code[7:12], *code[25:32]],
            "B": [FALSE, *code[8:12], *code[25:31], code[7]],
            "J": [FALSE, *code[21:31], code[20], *code[12:20]],
        }[form]
        return padded(low, 32, sign)


class Outcome(NamedTuple):
    """What an instruction does, if nothing stops it."""

    rd: Word | None = None
    """What the register gets that the instruction names."""
    jumps: int = FALSE
    target: Word | None = None
    """Where it goes if it jumps; otherwise to the next instruction."""
    address: Word | None = None
    """Where it reads or writes memory, if `accesses`, and how many bytes."""
    size: int = 0
    accesses: int = TRUE
    stores: int = FALSE
    value: Word | None = None
    """What is stored there, if `stores`."""
    stop: int = 0
    """The trap in which it ends, if `stops`."""
    stops: int = TRUE
    waits: int = FALSE
    """Whether it is executed again, with one more byte copied; then `rd` is not set yet."""
    takes: int = FALSE
    """Whether it takes the next byte of input, if it accesses memory."""
    emits: Word | None = None
    """A byte of output, if it `puts` and accesses memory."""
    puts: int = FALSE


Rule = Callable[[Hart], Outcome]
Operation = Callable[[Nodes, Word, Word], list[int]]


def difference(n: Nodes, a: Word, b: Word) -> list[int]:
    """a - b modulo 2^32, as a + not b + 1."""
    return total(n, [a, [bit ^ 1 for bit in b], number(1, 32)])


def less_signed(n: Nodes, a: Word, b: Word) -> int:
    """Less, where the highest bit is a sign: with it turned round, as numbers without one."""
    return less(n, [*a[:31], a[31] ^ 1], [*b[:31], b[31] ^ 1])


def same(n: Nodes, a: Word, b: Word) -> int:
    """Two words are the same where their difference is 0."""
    return n.any_of(difference(n, a, b)) ^ 1


def shift(n: Nodes, a: Word, amount: Word, *, left: bool = False, fill: int = FALSE) -> list[int]:
    """By the five low bits of the amount; `fill` comes in."""
    bits = list(a)
    for power, flag in enumerate(amount[:5]):
        by = 1 << power
        moved = [*[fill] * by, *bits[:-by]] if left else [*bits[by:], *[fill] * by]
        bits = either(n, flag, moved, bits)
    return bits


def high_word(n: Nodes, a: Word, b: Word, a_signed: bool, b_signed: bool) -> list[int]:
    """The upper half of a product."""
    return with_signs(n, multiply(n, padded(a, 64), padded(b, 64))[32:], a, b, a_signed, b_signed)


def with_signs(n: Nodes, high: Word, a: Word, b: Word, a_signed: bool, b_signed: bool) -> list[int]:
    """The upper half of a product, from that of the words without signs."""
    high = subtract(n, high, only(n, a[31], b)) if a_signed else high
    return subtract(n, high, only(n, b[31], a)) if b_signed else list(high)


def division(n: Nodes, a: Word, b: Word, signed: bool) -> tuple[list[int], list[int]]:
    """Quotient and remainder; the remainder has the sign of the dividend."""
    if not signed:
        return divide(n, a, b)
    return divided_with_signs(n, a, b, *divide(n, turned(n, a[31], a), turned(n, b[31], b)))


def divided_with_signs(
    n: Nodes, a: Word, b: Word, quotient: Word, remainder: Word
) -> tuple[list[int], list[int]]:
    """Quotient and remainder, from those of the absolute values."""
    opposite = n.and_(n.xor(a[31], b[31]), n.any_of(b))
    return turned(n, opposite, quotient), turned(n, a[31], remainder)


def turned(n: Nodes, flag: int, word: Word) -> list[int]:
    """The negative of a word where the flag is 1: not x + 1."""
    return add(n, [n.xor(bit, flag) for bit in word], padded([flag], len(word)))


def bitwise(gate: Callable[[Nodes], Callable[[int, int], int]]) -> Operation:
    return lambda n, a, b: [gate(n)(x, y) for x, y in zip(a, b, strict=True)]


OPERATIONS: dict[tuple[str, int, int], Operation] = {
    ("add", 0, 0): add,
    ("sub", 0, 32): difference,
    ("sll", 1, 0): lambda n, a, b: shift(n, a, b, left=True),
    ("slt", 2, 0): lambda n, a, b: padded([less_signed(n, a, b)], 32),
    ("sltu", 3, 0): lambda n, a, b: padded([less(n, a, b)], 32),
    ("xor", 4, 0): bitwise(lambda n: n.xor),
    ("srl", 5, 0): lambda n, a, b: shift(n, a, b),
    ("sra", 5, 32): lambda n, a, b: shift(n, a, b, fill=a[31]),
    ("or", 6, 0): bitwise(lambda n: n.or_),
    ("and", 7, 0): bitwise(lambda n: n.and_),
    ("mul", 0, 1): lambda n, a, b: multiply(n, padded(a, 64), padded(b, 64))[:32],
    ("mulh", 1, 1): lambda n, a, b: high_word(n, a, b, True, True),
    ("mulhsu", 2, 1): lambda n, a, b: high_word(n, a, b, True, False),
    ("mulhu", 3, 1): lambda n, a, b: high_word(n, a, b, False, False),
    ("div", 4, 1): lambda n, a, b: division(n, a, b, True)[0],
    ("divu", 5, 1): lambda n, a, b: division(n, a, b, False)[0],
    ("rem", 6, 1): lambda n, a, b: division(n, a, b, True)[1],
    ("remu", 7, 1): lambda n, a, b: division(n, a, b, False)[1],
}
"""By name, funct3 and funct7."""

CONDITIONS: dict[tuple[str, int], Callable[[Nodes, Word, Word], int]] = {
    ("beq", 0): same,
    ("bne", 1): lambda n, a, b: same(n, a, b) ^ 1,
    ("blt", 4): less_signed,
    ("bge", 5): lambda n, a, b: less_signed(n, a, b) ^ 1,
    ("bltu", 6): less,
    ("bgeu", 7): lambda n, a, b: less(n, a, b) ^ 1,
}


def with_registers(operation: Operation) -> Rule:
    return lambda h: Outcome(rd=operation(h.n, h.rs1, h.rs2))


def with_immediate(operation: Operation) -> Rule:
    return lambda h: Outcome(rd=operation(h.n, h.rs1, h.immediate("I")))


def branch(condition: Callable[[Nodes, Word, Word], int]) -> Rule:
    return lambda h: Outcome(jumps=condition(h.n, h.rs1, h.rs2), target=add(h.n, h.pc, h.immediate("B")))


def load(size: int, signed: bool) -> Rule:
    """So many bytes, filled up with their sign or with zeros."""

    def rule(h: Hart) -> Outcome:
        address = add(h.n, h.rs1, h.immediate("I"))
        found = h.memory(TRUE, address)[: 8 * size]
        return Outcome(rd=padded(found, 32, found[-1] if signed else FALSE), address=address, size=size)

    return rule


def store(size: int) -> Rule:
    return lambda h: Outcome(address=add(h.n, h.rs1, h.immediate("S")), size=size, stores=TRUE, value=h.rs2)


def jump_and_link(h: Hart) -> Outcome:
    return Outcome(rd=h.following, jumps=TRUE, target=add(h.n, h.pc, h.immediate("J")))


def jump_and_link_register(h: Hart) -> Outcome:
    """The lowest bit of the target is cleared."""
    target = add(h.n, h.rs1, h.immediate("I"))
    return Outcome(rd=h.following, jumps=TRUE, target=[FALSE, *target[1:]])


def system_call(h: Hart) -> Outcome:
    """exit; read and write, a byte at a time; -9 for other files and -38 for other numbers."""
    n, copied, h.rd = h.n, padded(h.copied, 32), A0
    a0, a1, a2, a7 = h.x(2, A0), h.x(0, A1), h.x(1, A2), h.x(3, A7)
    exits = n.or_(equal(n, a7, 93), equal(n, a7, 94))
    is_read, is_write = equal(n, a7, 63), equal(n, a7, 64)
    reads = n.and_(is_read, equal(n, a0, 0))
    writes = n.and_(is_write, n.or_(equal(n, a0, 1), equal(n, a0, 2)))
    # A byte is moved if one is wanted, and there is one.
    moves = n.and_(n.any_of(a2), n.or_(writes, n.and_(reads, h.arriving[8])))
    address = add(n, a1, only(n, moves, copied))
    last = equal(n, a2, padded(add(n, h.copied, number(1, len(h.copied))), 32))
    counted = either(n, moves, a2, copied)
    refused = either(n, n.or_(is_read, is_write), number(-9, 32), number(-38, 32))
    return Outcome(
        rd=either(n, n.or_(reads, writes), counted, refused),
        address=address,
        size=1,
        accesses=moves,
        stores=n.and_(reads, moves),
        value=padded(h.arriving[:8], 32),
        stop=EXIT,
        stops=exits,
        waits=n.and_(moves, last ^ 1),
        takes=reads,
        emits=h.memory(moves, address)[:8],
        puts=writes,
    )


LOAD, FENCE, OP_IMM, AUIPC, STORE, OP, LUI, BRANCH, JALR, JAL = (
    0x03, 0x0F, 0x13, 0x17, 0x23, 0x33, 0x37, 0x63, 0x67, 0x6F,
)  # fmt: skip
ECALL, EBREAK = 0x73, 0x100073
Fixed = dict[int, int]
"""Bits of the code of an instruction, by their places."""


def fields(opcode: int, f3: int | None = None, f7: int | None = None) -> Fixed:
    """The bits that are fixed."""
    found = {}
    for value, first, width in ((opcode, 0, 7), (f3, 12, 3), (f7, 25, 7)):
        found |= {first + bit: value >> bit & 1 for bit in range(width)} if value is not None else {}
    return found


PAGE: list[tuple[str, Fixed, Rule]] = [
    ("lui", fields(LUI), lambda h: Outcome(rd=h.immediate("U"))),
    ("auipc", fields(AUIPC), lambda h: Outcome(rd=add(h.n, h.pc, h.immediate("U")))),
    ("jal", fields(JAL), jump_and_link),
    ("jalr", fields(JALR, 0), jump_and_link_register),
    *((name, fields(BRANCH, f3), branch(holds)) for (name, f3), holds in CONDITIONS.items()),
    ("lb", fields(LOAD, 0), load(1, signed=True)),
    ("lh", fields(LOAD, 1), load(2, signed=True)),
    ("lw", fields(LOAD, 2), load(4, signed=False)),
    ("lbu", fields(LOAD, 4), load(1, signed=False)),
    ("lhu", fields(LOAD, 5), load(2, signed=False)),
    ("sb", fields(STORE, 0), store(1)),
    ("sh", fields(STORE, 1), store(2)),
    ("sw", fields(STORE, 2), store(4)),
    *(
        # Shifts by a constant have funct7; there is no `subi`, and no immediate form of the rest.
        (f"{name}i", fields(OP_IMM, f3, f7 if f3 in (1, 5) else None), with_immediate(operation))
        for (name, f3, f7), operation in OPERATIONS.items()
        if f7 != 1 and name != "sub"
    ),
    *((name, fields(OP, f3, f7), with_registers(own)) for (name, f3, f7), own in OPERATIONS.items()),
    ("fence", fields(FENCE, 0), lambda h: Outcome()),
    ("fence.i", fields(FENCE, 1), lambda h: Outcome()),
    ("ecall", {bit: ECALL >> bit & 1 for bit in range(32)}, system_call),
    ("ebreak", {bit: EBREAK >> bit & 1 for bit in range(32)}, lambda h: Outcome(stop=BREAKPOINT)),
]


def illegal(h: Hart) -> Outcome:
    """Every other word is no instruction."""
    return Outcome(stop=ILLEGAL)


def effect(h: Hart, does: Outcome, registers: Mapping[str, Word], oldest: Word) -> dict[str, Word]:
    """What registers become; and of `x`, the word that `rd` names, of `ram`, the two words in a row in which
    the address lies, and of `output`, where `oldest` is, the bits that change. Nothing but the trap changes
    where pc is no place of an instruction, or an address is outside, or a jump goes astray."""
    n, ram = h.n, h.layout.ram
    astray = above(n, h.pc, ram - 4)
    here, stops = astray ^ 1, [(astray, JUMP_OUTSIDE)]  # of which no two occur at once
    if does.address is not None:
        beyond = above(n, does.address, ram - does.size)
        stops.append((n.and_(n.and_(here, does.accesses), beyond), OUTSIDE))
    if does.target is not None:
        stops.append((n.and_(here, n.and_(does.jumps, does.target[1])), MISALIGNED))
    if does.stop:
        stops.append((n.and_(here, does.stops), does.stop))
    runs = n.any_of([flag for flag, _ in stops]) ^ 1
    stays = n.or_(runs ^ 1, does.waits)
    jumps, emits = n.and_(stays ^ 1, does.jumps), n.and_(n.and_(runs, does.puts), does.accesses)
    new: dict[str, Word] = {
        "pc": chosen(
            n,
            (stays, h.pc),
            (jumps, h.following if does.target is None else does.target),
            (n.and_(stays ^ 1, does.jumps ^ 1), h.following),
        ),
        "trap": chosen(n, *((flag, number(which, 3)) for flag, which in stops)),
        "copied": chosen(
            n,
            (runs ^ 1, h.copied),
            (n.and_(runs, does.waits), add(n, h.copied, number(1, len(h.copied)))),
        ),
        "taken": _counted(n, registers["taken"], n.and_(n.and_(runs, does.takes), does.accesses)),
        "written": _counted(n, registers["written"], emits),
        "x": number(0, 32),
        "ram": number(0, 64),
        "output": number(0, 8),
    }
    if does.rd is not None:
        sets = n.and_(n.and_(runs, n.any_of(h.rd)), does.waits ^ 1)
        new["x"] = only(n, sets, differing(n, h.x(2, h.rd), does.rd))
    if does.value is not None and does.address is not None:
        size, there = 8 * does.size, h.memory(does.accesses, does.address)
        changed = padded(differing(n, there[:size], does.value[:size]), 32)
        new["ram"] = placed(
            n, only(n, n.and_(runs, does.stores), changed), only(n, does.accesses, does.address[:2])
        )
    if does.emits is not None:
        new["output"] = only(n, emits, differing(n, oldest, does.emits))
    return new


def at_byte(n: Nodes, pair: Word, at: Word) -> list[int]:
    """The word that begins at a byte of two words in a row, the first at the low end."""
    half_on = either(n, at[1], pair[16:], pair[:48])
    return either(n, at[0], half_on[8:40], half_on[:32])


def placed(n: Nodes, word: Word, at: Word) -> list[int]:
    """Two words in a row, zero but for the word that begins at this byte."""
    byte_on = either(n, at[0], [*[FALSE] * 8, *word], padded(word, 40))
    return either(n, at[1], padded([*[FALSE] * 16, *byte_on], 64), padded(byte_on, 64))


def _counted(n: Nodes, word: Word, more: int) -> list[int]:
    return add(n, word, padded([more], len(word)))
