"""RV32 digit by digit: from the instruction to its operands. See `rv32_cells` for the rows.

An instruction comes as its number among `OPS`; one that there is not, cannot happen, and gives None.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from tapegrad.attention.cells import Look, Part
from tapegrad.attention.digits import (
    BASE,
    DIGIT,
    FLAG_F,
    IS_DIGIT,
    NIBBLE,
    VALUE,
    F,
    G,
    above,
    flagged,
    look,
    marked,
    plain,
)  # fmt: skip
from tapegrad.attention.rv32_words import (
    BEGINS,
    BRANCHES,
    BREAKS,
    CALLS,
    CHANGED,
    CLOSES,
    DIVIDING,
    DOUBLE,
    FIRST_NEGATIVE,
    FORMS,
    GO,
    HIGH,
    LOADS,
    LOOKS,
    LOW,
    MENDS,
    MORE,
    MULTIPLYING,
    NO_PHASE,
    NOT_HIGH,
    NOT_LOW,
    NOT_R1,
    OF_M,
    OF_PC,
    OF_R1,
    OP,
    OPS,
    OTHER,
    PHASE,
    PLAIN,
    QUIET,
    REGISTER,
    ROUND,
    ROUNDS,
    SECOND_NEGATIVE,
    SECOND_ZERO,
    STEP,
    STEPS,
    STORES,
    SUBTRACTING,
    TAIL,
    TAKE,
    WITH,
    ZERO,
)  # fmt: skip

WORD = 8
"""Digits of a word."""
STORE, IMAGE, BYTE, LAST_SET = "last write", "byte of the prompt", "byte of the input", "last value"
"""Names of the heads that recall."""
THREE, FOUR = (0, 1, 2), (0, 1, 2, 3)
"""Bits of decisions with up to 8 and 16 values."""


def op_name(op: int) -> str | None:
    return OPS[op] if op < len(OPS) else None


def begins_rule(outcome: int) -> int:
    return STEP if outcome in (GO, MORE, ROUND) else 0


def is_above_rule(limit: int, seen: int) -> int:
    return flagged(above(limit)(seen))


def within_rule(more: int, high: int) -> int:
    """The lowest digit of an address in the word at pc, which is a multiple of 4."""
    return plain(4 * high + more)


def memory_rule() -> tuple[Part, ...]:
    """A digit of memory: of the last write, else of the prompt."""
    return tuple(
        Part(
            (Look("recalled", STORE, (bit, IS_DIGIT)), Look("recalled", IMAGE, (bit,))),
            partial(written_bit, bit),
        )
        for bit in VALUE
    )


def digit_bit(bit: int, value: int) -> int:
    """A bit of a digit; with the lowest comes that it is one."""
    return DIGIT * (bit == 0) + (value << bit)


def written_bit(bit: int, store: int, image: int) -> int:
    return digit_bit(bit, store & 1 if store & 2 else image)


def tail_flags_rule(place: int) -> Iterator[Part]:
    """Flags of an instruction's digits. F: a bit from 7 up to here is not that of `ecall` or `ebreak`. G, in
    digit 6: digit 5 is 1, as in `ebreak`."""
    if place == 2:
        yield Part((look("ins 1", 3),), flagged)
    elif 2 < place < 6:
        yield Part((look(f"ins {place - 1}", *VALUE, FLAG_F),), flagged)
    elif place == 6:
        yield Part((look("ins 5", *VALUE, FLAG_F),), lambda seen: flagged(seen > 1) + marked(seen == 1))


def tail_rule(sixth: int, seventh: int) -> int:
    digit, high = sixth % BASE, sixth % BASE >> 1 | seventh << 3
    if high or digit:
        return TAIL + {0: PLAIN, 0x20: CHANGED, 1: OF_M}.get(high, OTHER)
    return TAIL + (PLAIN if sixth & F else BREAKS if sixth & G else CALLS)


_BY_OPCODE: dict[int, Sequence[str | None]] = {
    0x03: ("lb", "lh", "lw", None, "lbu", "lhu", None, None),
    0x0F: ("fence", "fence", *[None] * 6),
    0x13: ("addi", "slli", "slti", "sltiu", "xori", "srli", "ori", "andi"),
    0x17: ["auipc"] * 8,
    0x23: ("sb", "sh", "sw", *[None] * 5),
    0x33: ("add", "sll", "slt", "sltu", "xor", "srl", "or", "and"),
    0x37: ["lui"] * 8,
    0x63: ("beq", "bne", None, None, "blt", "bge", "bltu", "bgeu"),
    0x67: ("jalr", *[None] * 7),
    0x6F: ["jal"] * 8,
}
_CHANGED = {"add": "sub", "srl": "sra", "srli": "srai"}


def op_rule(low: int, high: int, f3: int, tail: int) -> int | None:
    """The instruction, from its opcode, function, and what its high bits say."""
    opcode = high << 4 | low
    name = _BY_OPCODE.get(opcode, [None] * 8)[f3]
    if tail > BREAKS:
        return None
    plain_tail = tail in (PLAIN, CALLS, BREAKS)
    if opcode == 0x33 or name in ("slli", "srli"):
        if tail == CHANGED:
            name = _CHANGED.get(name or "")
        elif opcode == 0x33 and tail == OF_M:
            name = (*MULTIPLYING, *DIVIDING)[f3]
        elif not plain_tail:
            name = None
    if opcode == 0x73:
        name = {CALLS: "ecall", BREAKS: "ebreak"}.get(tail)
    return OP + OPS.index(name or "illegal")


def register_rule(of_call: int, op: int, low: int, high: int) -> int | None:
    """The first operand: bits 15 to 19, or a1 in a system call."""
    if op_name(op) is None:
        return None
    return REGISTER + (of_call if op_name(op) == "ecall" else low | high << 1)


def register_2_rule(op: int, low: int, high: int) -> int | None:
    """The second operand: bits 20 to 24, or a2 in a system call."""
    if op_name(op) is None:
        return None
    return REGISTER + (12 if op_name(op) == "ecall" else low | high << 4)


def target_rule(op: int, low: int, high: int, phase: int) -> int | None:
    """The register that is written: bits 7 to 11, or a0; x0 is never written, and nothing before the last
    round."""
    name, register = op_name(op), low | high << 1
    if name is None:
        return None
    if phase not in (NO_PHASE, CLOSES):
        return QUIET
    if name == "ecall":
        return REGISTER + 10
    silent = name in (*STORES, *BRANCHES, "fence", "ebreak", "illegal")
    return QUIET if silent or register == 0 else REGISTER + register


def phase_rule(op: int, rounds: int, low: int, high: int) -> int | None:
    """Where a multiplication or division is, by the number of its round."""
    name, number = op_name(op), (low | high << 4) if rounds else 0
    if name is None or number > ROUNDS:
        return None
    if name not in (*MULTIPLYING, *DIVIDING):
        return PHASE + NO_PHASE
    known = {0: LOOKS, 1: BEGINS, ROUNDS - 1: MENDS, ROUNDS: CLOSES}
    return PHASE + known.get(number, STEPS)


def take_rule(op: int, phase: int, signs: int, low: int) -> int | None:
    """What the first operand is. In rounds it depends on the signs, and on the lowest bit of the low word."""
    name = op_name(op)
    if name is None or phase > CLOSES:
        return None
    if phase in (NO_PHASE, LOOKS):
        return TAKE + {"jal": OF_PC, "auipc": OF_PC, "lui": ZERO}.get(name, OF_R1)
    if name in MULTIPLYING:
        if phase == STEPS:
            return TAKE + (OF_R1 if low else ZERO)
        if phase == CLOSES:
            return TAKE + (LOW if name == "mul" else NOT_R1 if _mends(name, signs) else ZERO)
        return TAKE + HIGH
    if phase == BEGINS:
        return TAKE + (NOT_R1 if _begins_negative(name, signs) else OF_R1)
    if phase == CLOSES:
        word, complement = (LOW, NOT_LOW) if name in ("div", "divu") else (HIGH, NOT_HIGH)
        return TAKE + (complement if _ends_negative(name, signs) else word)
    return TAKE + DOUBLE


def with_rule(op: int, phase: int, signs: int) -> int | None:
    """What the second operand is."""
    name = op_name(op)
    if name is None or phase > CLOSES:
        return None
    return WITH + FORMS.index(
        _form(name) if phase in (NO_PHASE, LOOKS) else _form_of_round(name, phase, signs)
    )


def _form_of_round(name: str, phase: int, signs: int) -> str:
    if name in MULTIPLYING:
        if phase == MENDS:
            return "-R" if name in ("mulh", "mulhsu") and signs & FIRST_NEGATIVE else "0"
        if phase == CLOSES:
            return "0" if name == "mul" else "+H" if _mends(name, signs) else "H"
        return "H"
    if phase == STEPS:
        return "R" if name in ("div", "rem") and signs & SECOND_NEGATIVE else "-R"
    negative = _begins_negative if phase == BEGINS else _ends_negative
    return "+0" if negative(name, signs) else "0"


def _mends(name: str, signs: int) -> bool:
    """Whether the last round subtracts the first operand, as the second is negative."""
    return name == "mulh" and bool(signs & SECOND_NEGATIVE)


def _begins_negative(name: str, signs: int) -> bool:
    return name in ("div", "rem") and bool(signs & FIRST_NEGATIVE)


def _ends_negative(name: str, signs: int) -> bool:
    """Whether the result is negative; a quotient by 0 has all ones already."""
    if name == "div":
        return not signs & SECOND_ZERO and bool(signs & FIRST_NEGATIVE) != bool(signs & SECOND_NEGATIVE)
    return name == "rem" and bool(signs & FIRST_NEGATIVE)


def first_rule(place: int, bit: int) -> Part:
    """A bit of the first operand."""
    at = NIBBLE * place + bit - 1
    earlier = (
        look(f"s16 {at // NIBBLE}", at % NIBBLE, where="last") if at >= 0 else look("s8 7", 3, where="last")
    )

    def first(take: int, pc: int, register: int, high: int, low: int, earlier: int) -> int | None:
        values = {
            OF_R1: register, OF_PC: pc, ZERO: 0, NOT_R1: 1 - register, HIGH: high, NOT_HIGH: 1 - high,
            LOW: low, NOT_LOW: 1 - low, DOUBLE: earlier,
        }  # fmt: skip
        return digit_bit(bit, values[take]) if take in values else None

    return Part(
        (
            look("take", *FOUR), look(f"pc {place}", bit), Look("recalled", LAST_SET, (bit,)),
            look(f"s16 {place}", bit, where="last"), look(f"s8 {place}", bit, where="last"), earlier,
        ),
        first,
    )  # fmt: skip


def instruction_bit(form: str, bit: int) -> int | None:
    """Which bit of an instruction is this bit of its immediate number; None where that is 0. Forms are those
    of the manual."""
    if form == "U":
        return bit if bit >= 12 else None
    if form == "J":
        if bit == 0:
            return None
        return 20 + bit if bit < 11 else 20 if bit == 11 else bit if bit < 20 else 31
    if form == "B" and bit in (0, 11):
        return None if bit == 0 else 7
    low = {"I": 20, "S": 7, "B": 7}[form]
    return low + bit if bit < 5 else 20 + bit if bit < 11 else 31


def _form(name: str) -> str:
    """The form of the second operand of an instruction."""
    if name in STORES:
        return "S"
    if name in ("lui", "auipc"):
        return "U"
    if name in ("jal", "ecall"):
        return "J" if name == "jal" else "C"
    form = "I" if name in LOADS or name == "jalr" or name.endswith("i") or name == "sltiu" else "R"
    return f"-{form}" if name in SUBTRACTING else form


def second_rule(place: int, bit: int) -> Part:
    """A bit of the second operand."""
    at = NIBBLE * place + bit
    sources = {form: instruction_bit(form, at) for form in "ISUJ"}
    read = sorted({own for own in sources.values() if own is not None})

    def second(form: int, register: int, high: int, copied: int, more: int, *bits: int) -> int | None:
        if form >= len(FORMS):
            return None
        name = FORMS[form]
        found = {None: 0, **dict(zip(read, bits, strict=True))}
        values = {"R": register, "C": copied if more else 0, "H": high, "0": 0}
        values |= {own: found[source] for own, source in sources.items()}
        return digit_bit(bit, values[name[-1]] ^ (name[0] == "-"))

    return Part(
        (
            look("with", *FOUR), look(f"b0 {place}", bit), look(f"s16 {place}", bit, where="last"),
            look(f"s4 {place}", bit, where="last"), look("outcome", MORE_BIT, where="last"),
            *map(of_instruction, read),
        ),
        second,
    )  # fmt: skip


def carries_rule(form: int) -> int:
    """Whether the sum begins with a carry."""
    return flagged(form < len(FORMS) and FORMS[form][0] in "+-")


MORE_BIT, ROUND_BIT = 1, 4
"""The bit of `more` that `go` does not have, and the bit that only `round` has; others are the last of
all."""


def of_instruction(bit: int) -> Look:
    return look(f"ins {bit // NIBBLE}", bit % NIBBLE)
