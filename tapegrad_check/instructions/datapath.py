"""RV32IM as one formula: the data path that nets are built on, with one adder, one shifter and so on for all
instructions.

Nothing rests on this file. It is the middle of a proof: a net is compared with it formula by formula, and it
is compared with the instructions, one by one, as the manual has them (`rv32`).
"""

from collections.abc import Mapping

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
    multiply,
    number,
    only,
    padded,
    subtract,
    total,
)
from tapegrad_check.instructions.ports import Effect, Layout, Read, Write, ring
from tapegrad_check.instructions.rv32 import BREAKPOINT, EXIT, ILLEGAL, JUMP_OUTSIDE, MISALIGNED, OUTSIDE


def step(n: Nodes, layout: Layout, registers: Mapping[str, Word], read: Read) -> Effect:
    """One instruction, or one byte of a system call."""
    pc, copied, written, taken = (registers[name] for name in ("pc", "copied", "written", "taken"))
    index, slot = (layout.ram // 4 - 1).bit_length() or 1, ring(layout, written)
    code = read("ram", pc[2 : 2 + index], 1)
    arriving, oldest = read("input", taken, 1), read("output", slot, 1)
    i = _Decoded(n, code)
    asked = [
        either(n, i.ecall, number(call, 5), code[at : at + 5]) for call, at in ((11, 15), (12, 20), (10, 7))
    ]
    base, other, target, call = (read("x", at, 1) for at in (*asked, number(17, 5)))
    system = _Call(n, i.ecall, call, target, other, copied, arriving)

    immediate = chosen(
        n,
        (n.or_(n.or_(i.op_imm, i.load), i.jalr), i.imm_i),
        (i.store, i.imm_s),
        (system.moving, padded(copied, 32)),
    )
    operand = only(n, n.or_(i.op, i.branch), other)
    second = [n.or_(x, y) for x, y in zip(immediate, operand, strict=True)]
    # One adder, for sums, differences, comparisons and addresses: a + b, or a + not b + 1.
    changed = [n.xor(bit, i.subtracts) for bit in second]
    sums = total(n, [padded(word, 33) for word in (base, changed, [i.subtracts])])
    address, below = sums[:32], sums[32] ^ 1
    smaller = n.xor(n.xor(below, base[31]), second[31])
    same = n.any_of(address) ^ 1

    accesses = n.or_(n.or_(i.load, i.store), system.moving)
    pair_at, at = only(n, accesses, address[2 : 2 + index]), only(n, accesses, address[:2])
    pair = read("ram", pair_at, 2)
    halfway = either(n, at[1], pair[16:64], pair[:48])
    loaded = either(n, at[0], halfway[8:40], halfway[:32])

    f3 = i.f3
    byte, half = n.or_(f3[0], f3[4]), n.or_(f3[1], f3[5])
    whole = n.and_(byte ^ 1, half ^ 1)
    astray = above(n, pc, layout.ram - 4)
    valid = n.and_(astray ^ 1, i.legal)
    beyond = n.or_(
        n.or_(
            n.and_(byte, above(n, address, layout.ram - 1)), n.and_(half, above(n, address, layout.ram - 2))
        ),
        n.and_(whole, above(n, address, layout.ram - 4)),
    )
    outside = n.and_(n.and_(valid, accesses), beyond)
    following = [FALSE, FALSE, *add(n, pc[2:], number(1, 30))]
    jumped = add(n, pc, chosen(n, (i.branch, i.imm_b), (i.jal, i.imm_j), (i.auipc, i.imm_u)))
    holds = FALSE
    for which, flag in ((0, same), (1, same ^ 1), (4, smaller), (5, smaller ^ 1), (6, below), (7, below ^ 1)):
        holds = n.or_(holds, n.and_(f3[which], flag))
    takes = n.or_(n.and_(i.branch, holds), i.jal)
    misaligned = n.and_(valid, n.or_(n.and_(takes, jumped[1]), n.and_(i.jalr, address[1])))
    stops = [
        (astray, JUMP_OUTSIDE),
        (n.and_(astray ^ 1, i.legal ^ 1), ILLEGAL),
        (outside, OUTSIDE),
        (misaligned, MISALIGNED),
        (n.and_(astray ^ 1, i.ebreak), BREAKPOINT),
        (n.and_(astray ^ 1, system.exits), EXIT),
    ]
    runs = n.any_of([flag for flag, _ in stops]) ^ 1

    plain, masked = i.arithmetic, [only(n, flag, base) for flag in (i.shifts, i.multiplies, i.divides)]
    result = chosen(
        n,
        (n.and_(plain, f3[0]), address),
        (n.and_(plain, f3[2]), padded([smaller], 32)),
        (n.and_(plain, f3[3]), padded([below], 32)),
        (n.and_(plain, f3[4]), differing(n, base, second)),
        (n.and_(plain, f3[6]), [n.or_(x, y) for x, y in zip(base, second, strict=True)]),
        (n.and_(plain, f3[7]), [n.and_(x, y) for x, y in zip(base, second, strict=True)]),
        (i.shifts, _shifted(n, masked[0], second[:5], f3[1], code[30])),
        (i.multiplies, _product(n, masked[1], only(n, i.multiplies, other), f3)),
        (i.divides, _quotient(n, masked[2], only(n, i.divides, other), f3)),
        (i.load, _extended(n, loaded, byte, half, n.and_(f3[4] ^ 1, f3[5] ^ 1))),
        (i.lui, i.imm_u),
        (i.auipc, jumped),
        (n.or_(i.jal, i.jalr), following),
        (i.ecall, system.result),
    )
    gives = n.or_(i.result, n.and_(i.ecall, system.finishes))
    back = n.and_(n.and_(runs, n.any_of(asked[2])), gives)

    stored = either(n, system.reads, padded(arriving[:8], 32), other)
    size = [*[TRUE] * 8, *[byte ^ 1] * 8, *[whole] * 16]
    takes_byte = n.and_(system.reads, system.moving)
    storing = n.and_(runs, n.or_(i.store, takes_byte))
    inside = [n.and_(bit, flag) for bit, flag in zip(differing(n, loaded, stored), size, strict=True)]
    change = _from_low_end(n, only(n, storing, inside), at)
    emits = n.and_(n.and_(runs, system.writes), system.moving)
    jumps = n.or_(takes, i.jalr)
    stays = n.or_(runs ^ 1, n.and_(i.ecall, system.finishes ^ 1))
    goes = stays ^ 1
    moves_on = n.and_(n.and_(runs, system.moving), system.finishes ^ 1)
    return Effect(
        {
            "pc": chosen(
                n,
                (stays, pc),
                (n.and_(goes, takes), jumped),
                (n.and_(goes, i.jalr), [FALSE, *address[1:]]),
                (n.and_(goes, jumps ^ 1), following),
            ),
            "trap": chosen(n, *((flag, number(trap, 3)) for flag, trap in stops)),
            "copied": chosen(n, (runs ^ 1, copied), (moves_on, add(n, copied, number(1, len(copied))))),
            "taken": add(n, taken, padded([n.and_(n.and_(runs, system.reads), system.moving)], len(taken))),
            "written": add(n, written, padded([emits], len(written))),
        },
        [
            Write("ram", pair_at, pair, change, 2),
            Write(
                "x",
                asked[2],
                target,
                only(n, back, [n.xor(x, y) for x, y in zip(target, result, strict=True)]),
            ),
            Write(
                "output",
                slot,
                oldest,
                only(n, emits, [n.xor(x, y) for x, y in zip(oldest, loaded[:8], strict=True)]),
            ),
        ],
    )


class _Decoded:
    """Flags for kinds of instructions, and immediates."""

    def __init__(self, n: Nodes, code: Word) -> None:
        sign, top = code[31], code[25:32]
        self.f3 = f3 = [equal(n, code[12:15], which) for which in range(8)]
        plain, changed, of_m = (equal(n, top, which) for which in (0, 0x20, 1))
        full = n.and_(code[0], code[1])
        kinds = {
            which: n.and_(full, equal(n, code[2:7], which)) for which in (0, 3, 4, 5, 8, 12, 13, 24, 25, 27)
        }
        self.load, self.fence, self.op_imm, self.auipc, self.store, self.op, self.lui = (
            kinds[which] for which in (0, 3, 4, 5, 8, 12, 13)
        )
        self.branch, self.jalr, self.jal = kinds[24], kinds[25], kinds[27]
        self.ecall, self.ebreak = equal(n, code, 0x73), equal(n, code, 0x100073)

        def none_of(flag: int, *which: int) -> int:
            for one in which:
                flag = n.and_(flag, f3[one] ^ 1)
            return flag

        def one_of(*flags: int) -> int:
            found = flags[0]
            for flag in flags[1:]:
                found = n.or_(found, flag)
            return found

        shifts_right = one_of(f3[5] ^ 1, plain, changed)
        odd_forms = n.and_(changed, n.or_(f3[0], f3[5]))
        self.legal = one_of(
            none_of(self.load, 3, 6, 7),
            n.and_(self.fence, n.or_(f3[0], f3[1])),
            n.and_(n.and_(self.op_imm, n.or_(f3[1] ^ 1, plain)), shifts_right),
            n.and_(self.store, one_of(f3[0], f3[1], f3[2])),
            n.and_(self.op, one_of(plain, of_m, odd_forms)),
            none_of(self.branch, 2, 3),
            n.and_(self.jalr, f3[0]),
            one_of(self.auipc, self.lui, self.jal, self.ecall, self.ebreak),
        )
        extended = n.and_(self.op, of_m)
        self.arithmetic = n.or_(self.op_imm, n.and_(self.op, of_m ^ 1))
        self.shifts = n.and_(self.arithmetic, n.or_(f3[1], f3[5]))
        self.multiplies, self.divides = n.and_(extended, code[14] ^ 1), n.and_(extended, code[14])
        self.result = one_of(self.op_imm, self.op, self.load, self.lui, self.auipc, self.jal, self.jalr)
        self.subtracts = one_of(
            n.and_(n.and_(self.op, changed), f3[0]),
            n.and_(self.arithmetic, n.or_(f3[2], f3[3])),
            self.branch,
        )
        self.imm_i = padded(code[20:32], 32, sign)
        self.imm_s = padded([*code[7:12], *code[25:32]], 32, sign)
        self.imm_b = padded([FALSE, *code[8:12], *code[25:31], code[7]], 32, sign)
        self.imm_u = [*[FALSE] * 12, *code[12:32]]
        self.imm_j = padded([FALSE, *code[21:31], code[20], *code[12:20]], 32, sign)


class _Call:
    """What a system call does in this step."""

    def __init__(
        self, n: Nodes, ecall: int, call: Word, file: Word, count: Word, copied: Word, arriving: Word
    ) -> None:
        self.exits = n.and_(ecall, n.or_(equal(n, call, 93), equal(n, call, 94)))
        read, write = n.and_(ecall, equal(n, call, 63)), n.and_(ecall, equal(n, call, 64))
        self.reads = n.and_(read, equal(n, file, 0))
        self.writes = n.and_(write, n.or_(equal(n, file, 1), equal(n, file, 2)))
        self.moving = n.and_(n.any_of(count), n.or_(self.writes, n.and_(self.reads, arriving[8])))
        last = equal(n, count, padded(add(n, copied, number(1, len(copied))), 32))
        self.finishes = n.or_(self.moving ^ 1, last)
        valid = n.or_(self.reads, self.writes)
        refused = n.and_(n.or_(read, write), valid ^ 1)
        self.result = chosen(
            n,
            (self.moving, count),
            (n.and_(valid, self.moving ^ 1), padded(copied, 32)),
            (refused, number(-9, 32)),
            (n.and_(n.and_(ecall, read ^ 1), write ^ 1), number(-38, 32)),
        )


def _from_low_end(n: Nodes, word: Word, at: Word) -> list[int]:
    """The pair of words in which this one begins at byte `at`."""

    def moved(flag: int, bits: Word, by: int) -> list[int]:
        straight, over = only(n, flag ^ 1, bits), only(n, flag, padded([*[FALSE] * by, *bits], len(bits)))
        return [n.or_(x, y) for x, y in zip(straight, over, strict=True)]

    return moved(at[1], padded(moved(at[0], padded(word, 40), 8), 64), 16)


def _extended(n: Nodes, word: Word, byte: int, half: int, signed: int) -> list[int]:
    narrow = n.or_(byte, half)
    sign = n.and_(signed, n.or_(n.and_(byte, word[7]), n.and_(half, word[15])))
    middle = [n.or_(n.and_(bit, byte ^ 1), n.and_(byte, sign)) for bit in word[8:16]]
    high = [n.or_(n.and_(bit, narrow ^ 1), n.and_(narrow, sign)) for bit in word[16:]]
    return [*word[:8], *middle, *high]


def _shifted(n: Nodes, word: Word, amount: Word, left: int, arithmetic: int) -> list[int]:
    """To the right; to the left by turning the word round before and after."""
    bits = either(n, left, word[::-1], word)
    fill = n.and_(n.and_(arithmetic, left ^ 1), word[31])
    for power, flag in enumerate(amount):
        bits = either(n, flag, [*bits[1 << power :], *[fill] * (1 << power)], bits)
    return either(n, left, bits[::-1], bits)


def _product(n: Nodes, a: Word, b: Word, f3: Word) -> list[int]:
    """A number with a sign is the one without, less 2^32 where its sign is 1."""
    product = multiply(n, padded(a, 64), padded(b, 64))
    a_negative, b_negative = n.and_(a[31], n.or_(f3[1], f3[2])), n.and_(b[31], f3[1])
    high = subtract(n, subtract(n, product[32:], only(n, a_negative, b)), only(n, b_negative, a))
    return either(n, f3[0], product[:32], high)


def _quotient(n: Nodes, a: Word, b: Word, f3: Word) -> list[int]:
    """Of absolute values where signs count."""
    signed = n.or_(f3[4], f3[6])
    a_negative, b_negative = n.and_(signed, a[31]), n.and_(signed, b[31])
    quotient, remainder = divide(n, _negated(n, a_negative, a), _negated(n, b_negative, b))
    quotient = _negated(n, n.and_(n.xor(a_negative, b_negative), n.any_of(b)), quotient)
    return either(n, n.or_(f3[4], f3[5]), quotient, _negated(n, a_negative, remainder))


def _negated(n: Nodes, flag: int, word: Word) -> list[int]:
    return add(n, [n.xor(bit, flag) for bit in word], padded([flag], len(word)))
