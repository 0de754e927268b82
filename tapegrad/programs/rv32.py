"""RV32IM as a machine with random access: one instruction as a function over typed values.

Chapters 2 and 13 of the RISC-V manual, volume I. Words, halves and bytes may lie anywhere, so that a load or
store reaches two words, a pair that is read and changed at once. `ecall` has the numbers of Linux:

    93, 94  exit      a0 is the exit code
    63      read      a0 = 0, a1 = where to, a2 = how many bytes; gives the number read, 0 at the end of input
    64      write     a0 = 1 or 2, a1 = where from, a2 = how many bytes; gives that number

Other files give -9 and other numbers -38, as Linux has it. Reading and writing move one byte a step: the
`ecall` stays where it is until the last, and `copied` counts. What stops a program leaves pc at the
instruction that did it.

Units that are not used see zeros, so that nothing changes in them: an instruction that adds leaves the wires
of multiplier and divider as they are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tapegrad.circuits import UInt, any_of, concat, total
from tapegrad.circuits.types import IntType
from tapegrad.circuits.values import BitValue, IntValue
from tapegrad.programs.interpreters import run_rv32
from tapegrad.programs.model import (
    Effect,
    Instruction,
    Machine,
    Next,
    ProgramState,
    Read,
    Write,
    chosen,
    either,
    only,
)

WORD, PAIR = UInt(32), UInt(64)
EXIT, BREAKPOINT, ILLEGAL, MISALIGNED, JUMP_OUTSIDE, OUTSIDE = range(1, 7)


@dataclass(frozen=True)
class RV32(Machine):
    """RV32IM with one memory for instructions and data, from address 0 on."""

    kind: ClassVar[str] = "rv32im"
    traps: ClassVar[tuple[str, ...]] = (
        "exit",
        "breakpoint",
        "illegal instruction",
        "misaligned jump",
        "jump outside memory",
        "address outside memory",
    )
    alignment: ClassVar[int] = 4

    @property
    def word(self) -> int:
        return 32

    @property
    def first(self) -> tuple[int, ...]:
        """The stack grows down from the end of memory."""
        return tuple(self.ram if number == 2 else 0 for number in range(32))

    def run(self, state: ProgramState) -> Iterator[ProgramState]:
        return run_rv32(self, state)

    @property
    def own_registers(self) -> dict[str, IntType]:
        """Also the bytes that a system call has moved so far."""
        pc, trap = super().own_registers.items()
        return dict((pc, trap, ("copied", UInt(self.ram.bit_length()))))

    def instruction(self, registers: Mapping[str, IntValue]) -> Instruction:
        pc, copied = registers["pc"], registers["copied"]
        index = (self.ram // 4 - 1).bit_length() or 1
        code, arriving = yield Read("ram", pc[2 : 2 + index]), Next()
        i = Decoded(code)
        # The registers that a system call looks at take the ports of those that an instruction names.
        base, other, target, number = yield (
            Read("x", either(i.ecall, UInt(5)(11), code[15:20])),
            Read("x", either(i.ecall, UInt(5)(12), code[20:25])),
            Read("x", rd := either(i.ecall, UInt(5)(10), code[7:12])),
            Read("x", UInt(5)(17)),
        )
        call = SystemCall(i.ecall, number, target, other, copied, arriving)

        immediate = chosen(
            (i.op_imm | i.load | i.jalr, i.imm_i), (i.store, i.imm_s), (call.moving, copied.to(WORD))
        )
        second = immediate | only(i.op | i.branch, other)
        sums = Sums(base, second, i.subtracts)
        address = sums.total
        pair_at = address[2 : 2 + index]
        accesses = i.load | i.store | call.moving
        (pair,) = yield (Read("ram", only(accesses, pair_at), 2),)

        at = only(accesses, address[:2])
        loaded = _to_low_end(pair, at)
        byte, half = i.f3[0] | i.f3[4], i.f3[1] | i.f3[5]  # a system call has f3 = 0
        whole = ~byte & ~half
        astray = pc > self.ram - 4
        valid = ~astray & i.legal
        outside = (valid & accesses) & (
            (byte & (address > self.ram - 1))
            | (half & (address > self.ram - 2))
            | (whole & (address > self.ram - 4))
        )
        following = concat(0, 0, pc[2:] + 1)
        jumped = pc + chosen((i.branch, i.imm_b), (i.jal, i.imm_j), (i.auipc, i.imm_u))
        takes = (i.branch & _holds(i.f3, sums)) | i.jal
        misaligned = valid & ((takes & jumped[1]) | (i.jalr & address[1]))
        stops = [
            (astray, JUMP_OUTSIDE),
            (~astray & ~i.legal, ILLEGAL),
            (outside, OUTSIDE),
            (misaligned, MISALIGNED),
            (~astray & i.ebreak, BREAKPOINT),
            (~astray & call.exits, EXIT),
        ]
        runs = ~any_of(flag for flag, _ in stops)

        result = chosen(
            (i.arithmetic & i.f3[0], address),
            (i.arithmetic & i.f3[2], sums.less.to(WORD)),
            (i.arithmetic & i.f3[3], sums.below.to(WORD)),
            (i.arithmetic & i.f3[4], base ^ second),
            (i.arithmetic & i.f3[6], base | second),
            (i.arithmetic & i.f3[7], base & second),
            (i.shifts, _shifted(only(i.shifts, base), second[:5], left=i.f3[1], sign=code[30])),
            (i.multiplies, _product(only(i.multiplies, base), only(i.multiplies, other), i.f3)),
            (i.divides, _quotient(only(i.divides, base), only(i.divides, other), i.f3)),
            (i.load, _extended(loaded, byte, half, ~i.f3[4] & ~i.f3[5])),
            (i.lui, i.imm_u),
            (i.auipc, jumped),
            (i.jal | i.jalr, following),
            (i.ecall, call.result),
        )
        writes_back = runs & any_of(rd.bits()) & (i.result | (i.ecall & call.finishes))

        stored = either(call.reads, arriving[:8].to(WORD), other)
        size = concat(*[1] * 8, *[~byte] * 8, *[whole] * 16)
        storing = runs & (i.store | (call.reads & call.moving))
        change = _from_low_end(only(storing, (loaded ^ stored) & size), at)
        emits = runs & call.writes & call.moving

        jumps = takes | i.jalr
        stays = ~runs | (i.ecall & ~call.finishes)
        return Effect(
            {
                "pc": chosen(
                    (stays, pc),
                    (~stays & takes, jumped),
                    (~stays & i.jalr, concat(0, *address.bits()[1:])),
                    (~stays & ~jumps, following),
                ),
                "trap": chosen(*((flag, UInt(3)(number)) for flag, number in stops)),
                "copied": chosen((~runs, copied), (runs & call.moving & ~call.finishes, copied + 1)),
            },
            (
                Write("ram", only(accesses, pair_at), pair, change, 2),
                Write("x", rd, target, only(writes_back, target ^ result)),
            ),
            takes=runs & call.reads & call.moving,
            puts=(emits, loaded[:8]),
        )


class Decoded:
    """What the fields of an instruction say: flags for its kind, and its immediates."""

    def __init__(self, code: IntValue) -> None:
        bits = code.bits()
        sign = bits[31]
        self.f3 = [code[12:15] == number for number in range(8)]
        f3, top = self.f3, code[25:32]
        plain, changed, of_m = top == 0, top == 0x20, top == 1
        full = bits[0] & bits[1]
        opcode = code[2:7]

        def kind(number: int) -> BitValue:
            return full & (opcode == number)

        self.load, self.fence, self.op_imm, self.auipc = kind(0), kind(3), kind(4), kind(5)
        self.store, self.op, self.lui = kind(8), kind(12), kind(13)
        self.branch, self.jalr, self.jal = kind(24), kind(25), kind(27)
        self.ecall, self.ebreak = code == 0x73, code == 0x100073
        self.legal = (
            (self.load & ~f3[3] & ~f3[6] & ~f3[7])
            | (self.fence & (f3[0] | f3[1]))
            | (self.op_imm & (~f3[1] | plain) & (~f3[5] | plain | changed))
            | (self.store & (f3[0] | f3[1] | f3[2]))
            | (self.op & (plain | of_m | (changed & (f3[0] | f3[5]))))
            | (self.branch & ~f3[2] & ~f3[3])
            | (self.jalr & f3[0])
            | (self.auipc | self.lui | self.jal | self.ecall | self.ebreak)
        )
        extended = self.op & of_m
        self.arithmetic = self.op_imm | (self.op & ~of_m)
        self.shifts = self.arithmetic & (f3[1] | f3[5])
        self.multiplies, self.divides = extended & ~bits[14], extended & bits[14]
        self.result = self.op_imm | self.op | self.load | self.lui | self.auipc | self.jal | self.jalr
        less = f3[2] | f3[3]
        self.subtracts = (self.op & changed & f3[0]) | (self.arithmetic & less) | self.branch

        self.imm_i = concat(*bits[20:32], *[sign] * 20)
        self.imm_s = concat(*bits[7:12], *bits[25:32], *[sign] * 20)
        self.imm_b = concat(0, *bits[8:12], *bits[25:31], bits[7], *[sign] * 20)
        self.imm_u = concat(*[0] * 12, *bits[12:32])
        self.imm_j = concat(0, *bits[21:31], bits[20], *bits[12:20], *[sign] * 12)


class SystemCall:
    """What an `ecall` does in this step. `moving` says that a byte is read or written, `finishes` that the
    call is over and `result` goes to a0."""

    def __init__(
        self,
        ecall: BitValue,
        number: IntValue,
        file: IntValue,
        count: IntValue,
        copied: IntValue,
        arriving: IntValue,
    ) -> None:
        self.exits = ecall & ((number == 93) | (number == 94))
        read, write = ecall & (number == 63), ecall & (number == 64)
        self.reads, self.writes = read & (file == 0), write & ((file == 1) | (file == 2))
        some = any_of(count.bits())
        self.moving = some & (self.writes | (self.reads & arriving[8]))
        last = count == copied + 1
        self.finishes = ~self.moving | last
        valid = self.reads | self.writes
        refused = (read | write) & ~valid
        self.result = chosen(
            (self.moving, count),
            (valid & ~self.moving, copied.to(WORD)),
            (refused, WORD(2**32 - 9)),
            (ecall & ~read & ~write, WORD(2**32 - 38)),
        )


class Sums:
    """The one adder, for sums, differences, comparisons and addresses: a + b, or a + not b + 1."""

    def __init__(self, a: IntValue, b: IntValue, subtracts: BitValue) -> None:
        wide = UInt(33)
        operand = concat(*(bit ^ subtracts for bit in b.bits()))
        carried = total([a.to(wide), operand.to(wide), subtracts.to(wide)])
        self.total = carried[:32]
        self.below = ~carried[32]
        self.less = self.below ^ a[31] ^ b[31]
        self.equal = ~any_of(self.total.bits())


def _holds(f3: list[BitValue], sums: Sums) -> BitValue:
    """Whether a branch is taken."""
    return (
        (f3[0] & sums.equal)
        | (f3[1] & ~sums.equal)
        | (f3[4] & sums.less)
        | (f3[5] & ~sums.less)
        | (f3[6] & sums.below)
        | (f3[7] & ~sums.below)
    )


def _to_low_end(pair: IntValue, at: IntValue) -> IntValue:
    """The word that begins at byte `at` of a pair of words."""
    halves = either(at[1], pair[16:64], pair[:48])
    return either(at[0], halves[8:40], halves[:32])


def _from_low_end(word: IntValue, at: IntValue) -> IntValue:
    """The pair of words in which this one begins at byte `at`."""
    wide = word.to(UInt(40))
    bytes_on = only(~at[0], wide) | only(at[0], wide << 8)
    far = bytes_on.to(PAIR)
    return only(~at[1], far) | only(at[1], far << 16)


def _extended(word: IntValue, byte: BitValue, half: BitValue, signed: BitValue) -> IntValue:
    """A byte or a half, filled up with its sign if it has one."""
    bits, narrow = word.bits(), byte | half
    sign = signed & ((byte & bits[7]) | (half & bits[15]))
    middle = [(bit & ~byte) | (byte & sign) for bit in bits[8:16]]
    return concat(*bits[:8], *middle, *((bit & ~narrow) | (narrow & sign) for bit in bits[16:]))


def _shifted(word: IntValue, amount: IntValue, *, left: BitValue, sign: BitValue) -> IntValue:
    """To the right; to the left by turning the word round before and after."""

    def turned(value: IntValue) -> IntValue:
        return either(left, concat(*value.bits()[::-1]), value)

    bits = turned(word).bits()
    fill = sign & ~left & word[31]
    for power, shifts in enumerate(amount.bits()):
        moved = [*bits[1 << power :], *[fill] * (1 << power)]
        bits = either(shifts, concat(*moved), concat(*bits)).bits()
    return turned(concat(*bits))


def _product(a: IntValue, b: IntValue, f3: list[BitValue]) -> IntValue:
    """The low word; or the high word, less b where a is negative, and less a where b is: a signed number is
    the unsigned one less 2^32 where its sign is 1."""
    product = a.to(PAIR) * b.to(PAIR)
    a_negative, b_negative = a[31] & (f3[1] | f3[2]), b[31] & f3[1]
    high = product[32:] - only(a_negative, b) - only(b_negative, a)
    return either(f3[0], product[:32], high)


def _quotient(a: IntValue, b: IntValue, f3: list[BitValue]) -> IntValue:
    """Quotient or remainder, of the absolute values where signs count. The manual's special cases need no
    circuit of their own: by 0 the quotient of absolute values is all ones, which is -1 and keeps its sign,
    and the remainder a; and -2^31 by -1 is 2^31, which is -2^31."""
    signed = f3[4] | f3[6]
    a_negative, b_negative = signed & a[31], signed & b[31]
    dividend, divisor = _negated(a_negative, a), _negated(b_negative, b)
    quotient = _negated((a_negative ^ b_negative) & any_of(b.bits()), dividend // divisor)
    remainder = _negated(a_negative, dividend % divisor)
    return either(f3[4] | f3[5], quotient, remainder)


def _negated(flag: BitValue, word: IntValue) -> IntValue:
    return concat(*(bit ^ flag for bit in word.bits())) + flag
