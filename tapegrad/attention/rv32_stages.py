"""RV32 digit by digit: comparisons, shifts, and rounds of multiplication and division. See `rv32_cells`."""

from collections.abc import Iterator

from tapegrad.attention.cells import Look, Part
from tapegrad.attention.digits import BASE, DIGIT, FLAG_F, NIBBLE, F, G, carrying, look
from tapegrad.attention.rv32_decode import FOUR, LAST_SET, THREE, WORD, digit_bit, op_name
from tapegrad.attention.rv32_words import (
    AND,
    BEGINS,
    BELOW,
    CALL,
    CLEAR,
    CLOSES,
    COMPARED,
    DIVIDE,
    EQUAL,
    FIRST_NEGATIVE,
    FLAG,
    KEEP,
    LEFT,
    LESS,
    LOGIC,
    LOOKS,
    MENDS,
    MULTIPLY,
    MULTIPLYING,
    NO_PHASE,
    ONES,
    OR,
    RIGHT,
    SAME,
    SECOND,
    SECOND_NEGATIVE,
    SECOND_ZERO,
    SETTING,
    SHIFTING,
    SIGNS,
    STAGE,
    STEPS,
    SUM,
    XOR,
)  # fmt: skip


def compared_rule(seen: int, a_sign: int, b_sign: int) -> int:
    """Of a - b: the last digit with its flags, and signs; b is there as its complement."""
    equal, below = seen % BASE == 0 and not seen & G, not seen & F
    less = below ^ (a_sign != 1 - b_sign)
    return COMPARED + EQUAL * equal + LESS * less + BELOW * below


def _staging(name: str, shifts: int, sign: int) -> int:
    if name == "ecall":
        return CALL
    way = SHIFTING.get(name)
    if way is None or not shifts:
        return SAME
    return RIGHT if way == ONES and not sign else way


def in_round(phase: int) -> bool:
    """Whether a multiplication or division goes on after this record."""
    return phase not in (NO_PHASE, CLOSES)


def stage16_rule(op: int, shifts: int, sign: int, phase: int) -> int | None:
    name = op_name(op)
    if name is None or phase > CLOSES:
        return None
    if in_round(phase):
        if phase == MENDS:
            return STAGE + (SUM if name in MULTIPLYING else KEEP)
        step = MULTIPLY if name in MULTIPLYING else DIVIDE
        return STAGE + (step if phase == STEPS else CLEAR)
    if name in SHIFTING or name == "ecall":
        return STAGE + _staging(name, shifts, sign)
    return STAGE + (FLAG if name in SETTING else LOGIC.get(name, SUM))


def _neighbours(of: str, place: int, distance: int, bit: int) -> tuple[tuple[str, Look], ...]:
    """The bits that a shift brings here."""
    found = {"same": place, "left": place - distance, "right": place + distance}
    return tuple((way, look(f"{of} {at}", bit)) for way, at in found.items() if 0 <= at < WORD)


def _shifted(does: int, bits: dict[str, int]) -> int:
    if does == SAME:
        return bits["same"]
    if does == LEFT:
        return bits.get("left", 0)
    return bits.get("right", int(does == ONES))


def staged_rule(control: str, place: int, distance: int, of: str, bit: int) -> Part:
    """A bit of a digit after a stage that shifts by whole digits; 0 in a system call."""
    near = _neighbours(of, place, distance, bit)

    def staged(does: int, *bits: int) -> int:
        moved = dict(zip((way for way, _ in near), bits, strict=True))
        return digit_bit(bit, 0 if does >= CALL else _shifted(does, moved))

    return Part((look(control, *FOUR), *(own for _, own in near)), staged)


def first_stage_rule(place: int, bit: int) -> Part:
    """A bit after the first stage, which shifts the first operand, or hands on other results."""
    near = _neighbours("a", place, 4, bit)

    def staged(does: int, total: int, second: int, register: int, *bits: int) -> int:
        if does > AND:
            return digit_bit(bit, 0)
        moved = dict(zip((way for way, _ in near), bits, strict=True))
        a, b = moved["same"], second
        others = {CALL: register, SUM: total, FLAG: 0, XOR: a ^ b, OR: a | b, AND: a & b}
        return digit_bit(bit, others[does] if does in others else _shifted(does, moved))

    register = Look("recalled", LAST_SET, (bit,))
    own = look("stage16", *FOUR), look(f"sum {place}", bit), look(f"b {place}", bit), register
    return Part((*own, *(other for _, other in near)), staged)


def flag_rule(op: int, compared: int) -> int | None:
    name = op_name(op)
    return None if name is None else int(SETTING.get(name, 0) & compared > 0)


def signs_rule(phase: int, first: int, second: int) -> int:
    """The signs of both operands, where they are seen."""
    if phase != LOOKS:
        return SIGNS
    zero = second == 0
    return SIGNS + FIRST_NEGATIVE * first + (SECOND_ZERO if zero else SECOND_NEGATIVE * (second >> 3 & 1))


def signs_again_rule(phase: int, signs: int) -> int:
    return signs if phase not in (NO_PHASE, LOOKS) else 0


def stage8_rule(op: int, shifts: int, sign: int, phase: int) -> int | None:
    name = op_name(op)
    if name is None or phase > CLOSES:
        return None
    if not in_round(phase):
        return STAGE + _staging(name, shifts, sign)
    multiplies = name in MULTIPLYING
    return (
        STAGE
        + {
            LOOKS: CLEAR,
            BEGINS: SECOND if multiplies else SUM,
            STEPS: MULTIPLY if multiplies else DIVIDE,
            MENDS: KEEP,
        }[phase]
    )


def stage4_rule(op: int, shifts: int, sign: int, phase: int) -> int | None:
    name = op_name(op)
    if name is None or phase > CLOSES:
        return None
    return STAGE + (MULTIPLY if in_round(phase) else _staging(name, shifts, sign))


def high_rule(place: int, bit: int) -> Part:
    """A bit of the high word, or of the remainder, after a round."""
    at = NIBBLE * place + bit + 1
    carry = look("sum 7", FLAG_F)
    looks = {
        "does": look("stage16", *FOUR),
        "before": look(f"s16 {place}", bit, where="last"),
        "total": look(f"sum {place}", bit),
        "first": look(f"a {place}", bit),
        "lost": look("s16 7", 3, where="last"),
        "carry": carry,
        "up": carry if at == NIBBLE * WORD else look(f"sum {at // NIBBLE}", at % NIBBLE),
    }

    def high(does: int, before: int, total: int, first: int, lost: int, carry: int, up: int) -> int:
        """Half the sum; or the difference, if there is no borrow, which is where the sum carries, or where
        the doubled remainder has lost a bit."""
        if does == DIVIDE:
            return (total if carry or lost else first) << bit
        return (before if does == KEEP else up if does == MULTIPLY else 0) << bit

    different = list(dict.fromkeys(looks.values()))
    places = [different.index(own) for own in looks.values()]
    return Part(tuple(different), lambda *values: high(*(values[place] for place in places)))


def low_rule(place: int, bit: int) -> Part:
    """A bit of the low word, or of the quotient, after a round; or of a0 in a system call."""
    at = NIBBLE * place + bit
    more = look(f"s8 {(at + 1) // NIBBLE}", (at + 1) % NIBBLE, where="last") if at < 31 else look("sum 0", 0)
    less = look(f"s8 {(at - 1) // NIBBLE}", (at - 1) % NIBBLE, where="last") if at else look("sum 7", FLAG_F)
    lost = look("s16 7", 3, where="last")

    def low(
        does: int, register: int, before: int, second: int, total: int, more: int, less: int, lost: int = 0
    ) -> int:
        values = {
            CALL: register, KEEP: before, SECOND: second, SUM: total, MULTIPLY: more, DIVIDE: less | lost,
        }  # fmt: skip
        return values.get(does, 0) << bit

    own = look("stage8", *FOUR), Look("recalled", LAST_SET, (bit,)), look(f"s8 {place}", bit, where="last")
    others = look(f"b0 {place}", bit), look(f"sum {place}", bit), more, less
    return Part((*own, *others, *(() if at else (lost,))), low)


def counted_rule(place: int) -> Iterator[Part]:
    """The number of the round to come."""
    if place > 1:
        return
    control, phase = look("stage4", *FOUR), look("phase", *THREE)
    own = look(f"s4 {place}", where="last"), *((look("s4 0", FLAG_F),) if place else ())

    def counted(does: int, phase: int, digit: int, carry: int = 1) -> int:
        if does != MULTIPLY:
            return 0
        return carrying((digit if phase != LOOKS else 0) + carry) - DIGIT

    yield Part((control, phase, *own), counted)
