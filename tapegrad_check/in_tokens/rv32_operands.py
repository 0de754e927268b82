"""RV32 in tokens, from the instruction to the sum of its operands: what the tokens of these rows say. See
`rv32_records` for the rows."""

from tapegrad_check.in_tokens.pages import (
    DIGIT,
    MARK,
    MARK_BIT,
    PLUS,
    PLUS_BIT,
    VALUE,
    Bits,
    Rule,
    at,
    bit_of_digit,
    carried,
    recalled,
)
from tapegrad_check.in_tokens.rv32_tokens import (
    BEGINS,
    BREAKS,
    CALLS,
    CHANGED,
    CLOSES,
    DOUBLE,
    FIRST_NEGATIVE,
    FORMS,
    HIGH,
    LAST_ROUND,
    LOOKS,
    LOW,
    MENDS,
    MORE_BIT,
    NOT_HIGH,
    NOT_LOW,
    NOT_REG,
    NOTHING,
    NUMBER,
    OF_M,
    ONLY,
    OTHER,
    PC,
    PHASE,
    PLAIN,
    REG,
    REGISTER,
    ROUND_BIT,
    SECOND_NEGATIVE,
    SECOND_ZERO,
    SIX,
    STEPS,
    TAIL,
    TAKE,
    WITH,
    ZERO,
    Op,
    decoded,
    op_of,
)  # fmt: skip

LAST_SET = "last value"
A1, A2, A0 = 11, 12, 10
IN_OP = at("op", *SIX)
IN_PHASE = at("phase", *NUMBER)
LAST_SIGNS = at("signs", *NUMBER, last=True)


def nonzero(name: str, place: int, flag: int, bit: int) -> Rule:
    """A flag where a digit before this one is not 0, or has the flag."""
    return Rule((at(f"{name} {place - 1}", *VALUE, bit),), lambda seen: flag if seen else 0)


# The instruction


def instruction_flags(place: int) -> list[Rule]:
    """A plus where a bit from 7 on is not that of `ecall` and `ebreak`; a mark where digit 5 is 1."""
    if place == 2:
        return [Rule((at("ins 1", 3),), lambda bit: PLUS * bit)]
    if place in (3, 4, 5):
        return [nonzero("ins", place, PLUS, PLUS_BIT)]
    if place == 6:
        seen = at("ins 5", *VALUE, PLUS_BIT)
        return [Rule((seen,), lambda seen: MARK if seen == 1 else PLUS if seen else 0)]
    return []


def tail() -> Rule:
    def says(sixth: int, seventh: int) -> int:
        f7 = sixth >> 1 & 7 | seventh << 3
        if f7 == 0 and sixth % 2 == 0 and not sixth & PLUS:
            return TAIL + (BREAKS if sixth & MARK else CALLS)
        return TAIL + {0: PLAIN, 32: CHANGED, 1: OF_M}.get(f7, OTHER)

    return Rule((at("ins 6", *VALUE, PLUS_BIT, MARK_BIT), at("ins 7")), says)


def op() -> Rule:
    def says(low: int, high: int, f3: int, tail: int) -> int | None:
        opcode = low | high << 4
        if tail > BREAKS or (opcode == 0x73 and tail in (CALLS, BREAKS) and f3):
            return None
        return decoded(opcode, f3, PLAIN if opcode != 0x73 and tail in (CALLS, BREAKS) else tail)

    return Rule((at("ins 0"), at("ins 1", *NUMBER), at("ins 3", *NUMBER), at("tail", *NUMBER)), says)


def phase() -> Rule:
    """Where a multiplication or division is, by the number of its round: 0 where the last step is over."""

    def says(op: int, rounds: int, low: int, high: int) -> int | None:
        own, number = op_of(op), rounds * (low + 16 * high)
        if own is None or number > LAST_ROUND:
            return None
        known = {0: LOOKS, 1: BEGINS, LAST_ROUND - 1: MENDS, LAST_ROUND: CLOSES}
        return PHASE + (known.get(number, STEPS) if own.rounds else ONLY)

    last = at("outcome", ROUND_BIT, last=True), at("s4 0", last=True), at("s4 1", 0, 1, last=True)
    return Rule((IN_OP, *last), says)


# Registers


def first_register() -> Rule:
    def says(op: int, low: int, high: int) -> int | None:
        own = op_of(op)
        return own and REGISTER + (A1 if own.name == "ecall" else low + 2 * high)

    return Rule((IN_OP, at("ins 3", 3), at("ins 4")), says)


def second_register() -> Rule:
    def says(op: int, low: int, high: int) -> int | None:
        own = op_of(op)
        return own and REGISTER + (A2 if own.name == "ecall" else low + 16 * high)

    return Rule((IN_OP, at("ins 5"), at("ins 6", 0)), says)


def target_register() -> Rule:
    """Where the result goes, once there is one; x0 stays 0."""

    def says(op: int, low: int, high: int, phase: int) -> int | None:
        own = op_of(op)
        if own is None:
            return None
        register = A0 if own.name == "ecall" else low + 2 * high
        idle = own.stores or own.branches or own.name in ("fence", "ebreak", "illegal")
        return NOTHING if idle or not register or phase not in (ONLY, CLOSES) else REGISTER + register

    return Rule((IN_OP, at("ins 1", 3), at("ins 2"), IN_PHASE), says)


# Operands


def _negative_dividend(own: Op, signs: int) -> bool:
    return own.name in ("div", "rem") and bool(signs & FIRST_NEGATIVE)


def _negative_result(own: Op, signs: int) -> bool:
    """A remainder has the sign of the dividend; a quotient by 0 is all ones already."""
    if own.name == "rem":
        return bool(signs & FIRST_NEGATIVE)
    opposite = bool(signs & FIRST_NEGATIVE) != bool(signs & SECOND_NEGATIVE)
    return own.name == "div" and opposite and not signs & SECOND_ZERO


def _negative_factor(own: Op, signs: int) -> bool:
    return own.name == "mulh" and bool(signs & SECOND_NEGATIVE)


def take() -> Rule:
    """What the first operand is."""

    def says(op: int, phase: int, signs: int, low: int) -> int | None:
        own = op_of(op)
        return None if own is None or phase > CLOSES else TAKE + _take(own, phase, signs, low)

    return Rule((IN_OP, IN_PHASE, LAST_SIGNS, at("s8 0", 0, last=True)), says)


def _take(own: Op, phase: int, signs: int, low: int) -> int:
    if phase in (ONLY, LOOKS):
        return {"jal": PC, "auipc": PC, "lui": ZERO}.get(own.name, REG)
    if own.multiplies and phase == STEPS:
        return REG if low else ZERO
    if own.multiplies and phase == CLOSES:
        return LOW if own.name == "mul" else NOT_REG if _negative_factor(own, signs) else ZERO
    if own.multiplies:
        return HIGH
    if phase == BEGINS:
        return NOT_REG if _negative_dividend(own, signs) else REG
    if phase != CLOSES:
        return DOUBLE
    negative = _negative_result(own, signs)
    if own.name.startswith("div"):
        return NOT_LOW if negative else LOW
    return NOT_HIGH if negative else HIGH


def second_form() -> Rule:
    """What the second operand is."""

    def says(op: int, phase: int, signs: int) -> int | None:
        own = op_of(op)
        return None if own is None or phase > CLOSES else WITH + FORMS.index(_form(own, phase, signs))

    return Rule((IN_OP, IN_PHASE, LAST_SIGNS), says)


def _form(own: Op, phase: int, signs: int) -> str:
    if phase in (ONLY, LOOKS):
        return own.form
    if own.multiplies and phase == MENDS:
        return "-R" if own.name in ("mulh", "mulhsu") and signs & FIRST_NEGATIVE else "0"
    if own.multiplies and phase == CLOSES:
        return "0" if own.name == "mul" else "+H" if _negative_factor(own, signs) else "H"
    if own.multiplies:
        return "H"
    if phase == STEPS:  # what is added is the divisor's absolute value, negated
        return "R" if own.name in ("div", "rem") and signs & SECOND_NEGATIVE else "-R"
    negative = _negative_dividend if phase == BEGINS else _negative_result
    return "+0" if negative(own, signs) else "0"


def first_operand(place: int) -> list[Rule]:
    return [_first_bit(place, bit) for bit in VALUE]


def _first_bit(place: int, bit: int) -> Rule:
    below = word_bit("s16", 4 * place + bit - 1, last=True) if place or bit else at("s8 7", 3, last=True)

    def says(take: int, pc: int, register: int, high: int, low: int, below: int) -> int | None:
        found = {
            REG: register, NOT_REG: 1 - register, PC: pc, ZERO: 0, HIGH: high, NOT_HIGH: 1 - high,
            LOW: low, NOT_LOW: 1 - low, DOUBLE: below,
        }.get(take)  # fmt: skip
        return None if found is None else bit_of_digit(bit, found)

    kept = at(f"s16 {place}", bit, last=True), at(f"s8 {place}", bit, last=True)
    seen = at("take", *VALUE), at(f"pc {place}", bit), recalled(LAST_SET, bit), *kept, below
    return Rule(seen, says)


def named_second(place: int) -> list[Rule]:
    """The second register, with a mark where a digit before is not 0."""
    rules = [
        Rule((recalled(LAST_SET, bit),), lambda value, bit=bit: bit_of_digit(bit, value)) for bit in VALUE
    ]
    return [*rules, *([nonzero("b0", place, MARK, MARK_BIT)] if place else [])]


def immediate_bit(form: str, bit: int) -> int | None:
    """The bit of the instruction that is this bit of its immediate; None where that is 0."""
    if form == "U":
        return bit if bit >= 12 else None
    if bit >= {"I": 11, "S": 11, "B": 12, "J": 20}[form]:
        return 31
    if form in "BJ" and bit == 0:
        return None
    if form == "J":
        return bit if bit >= 12 else 20 if bit == 11 else 20 + bit
    if form == "B" and bit == 11:
        return 7
    return 20 + bit if form == "I" or bit >= 5 else 7 + bit


def second_operand(place: int) -> list[Rule]:
    begins = [] if place else [Rule((at("with", *VALUE),), _begins_with_a_carry)]
    return [*(_second_bit(place, bit) for bit in VALUE), *begins]


def _begins_with_a_carry(form: int) -> int:
    return PLUS if form < len(FORMS) and FORMS[form][0] in "+-" else 0


def _second_bit(place: int, bit: int) -> Rule:
    sources = {form: immediate_bit(form, 4 * place + bit) for form in "ISUJ"}
    read = sorted({source for source in sources.values() if source is not None})

    def says(form: int, register: int, high: int, copied: int, more: int, *bits: int) -> int | None:
        if form >= len(FORMS):
            return None
        sign, name = FORMS[form][0], FORMS[form][-1]
        if name in sources:
            source = sources[name]
            value = 0 if source is None else bits[read.index(source)]
        else:
            value = {"R": register, "C": copied * more, "H": high, "0": 0}[name]
        return bit_of_digit(bit, 1 - value if sign == "-" else value)

    last = at(f"s16 {place}", bit, last=True), at(f"s4 {place}", bit, last=True)
    seen = at("with", *VALUE), at(f"b0 {place}", bit), *last, at("outcome", MORE_BIT, last=True)
    return Rule((*seen, *(word_bit("ins", source) for source in read)), says)


def word_bit(name: str, bit: int, *, last: bool = False) -> Bits:
    """One bit of a row of digits."""
    return at(f"{name} {bit // 4}", bit % 4, last=last)


def summed(place: int) -> list[Rule]:
    """With a plus for the carry, and a mark where a digit before is not 0."""
    carry = at(f"sum {place - 1}", PLUS_BIT) if place else at("b 0", PLUS_BIT)
    digit = Rule((at(f"a {place}"), at(f"b {place}"), carry), lambda a, b, carry: carried(a + b + carry))
    return [digit, *([nonzero("sum", place, MARK, MARK_BIT)] if place else [])]


def plus(of: str, name: str, place: int, more: int) -> Rule:
    """A digit of a row plus a number."""
    if place == 0:
        return Rule((at(f"{of} 0"),), lambda digit: carried(digit + more))
    carry = at(f"{name} {place - 1}", PLUS_BIT)
    return Rule((at(f"{of} {place}"), carry), lambda digit, carry: carried(digit + carry))


def within_word(more: int) -> Rule:
    """The lowest digit of a byte's address in the word at pc, which is a multiple of 4."""
    return Rule((at("pc 0", 2, 3),), lambda high: DIGIT + 4 * high + more)
