"""RV32 in tokens, comparisons, shifts and rounds: what the tokens of these rows say. See
`rv32_records` for the rows."""

from collections.abc import Mapping

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
from tapegrad_check.in_tokens.rv32_operands import IN_OP, IN_PHASE, LAST_SET, LAST_SIGNS, nonzero, word_bit
from tapegrad_check.in_tokens.rv32_tokens import (
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
    LOOKS,
    MENDS,
    MULTIPLY,
    ONES,
    ONLY,
    OR,
    RIGHT,
    SAME,
    SECOND,
    SECOND_NEGATIVE,
    SECOND_ZERO,
    SIGNS,
    STAGE,
    STEPS,
    SUM,
    XOR,
    op_of,
)  # fmt: skip

SIGN = at("a 7", 3)


def in_round(phase: int) -> bool:
    """Whether another round follows."""
    return phase not in (ONLY, CLOSES)


# Comparisons, shifts and rounds


def compared() -> Rule:
    """What the difference says: b is there as its complement, and no carry is a borrow. Where the signs of
    the words differ, it is the other way round for numbers with signs."""

    def says(seen: int, a: int, b: int) -> int:
        borrows, zero = not seen & PLUS, seen % 16 == 0 and not seen & MARK
        return COMPARED + EQUAL * zero + LESS * (borrows != (a == b)) + BELOW * borrows

    return Rule((at("sum 7", *VALUE, PLUS_BIT, MARK_BIT), SIGN, at("b 7", 3)), says)


def signs() -> list[Rule]:
    """Seen in the first round, and handed on."""

    def seen(phase: int, first: int, second: int) -> int:
        if phase != LOOKS:
            return SIGNS
        of_second = SECOND_ZERO if second == 0 else SECOND_NEGATIVE * (second >> 3 & 1)
        return SIGNS + FIRST_NEGATIVE * first + of_second

    return [
        Rule((IN_PHASE, SIGN, at("b0 7", *VALUE, MARK_BIT)), seen),
        Rule((IN_PHASE, LAST_SIGNS), lambda phase, signs: 0 if phase in (ONLY, LOOKS) else signs),
    ]


def stage(name: str) -> Rule:
    """What a stage does: `stage16`, `stage8` and `stage4` shift by so many bits if their bit is 1."""
    shifts = {"stage16": at("b 1", 0), "stage8": at("b 0", 3), "stage4": at("b 0", 2)}[name]
    rounds: Mapping[int, tuple[int, int]] = {
        "stage16": {LOOKS: (CLEAR, CLEAR), BEGINS: (CLEAR, CLEAR), MENDS: (SUM, KEEP)},
        "stage8": {LOOKS: (CLEAR, CLEAR), BEGINS: (SECOND, SUM), MENDS: (KEEP, KEEP)},
        "stage4": dict.fromkeys((LOOKS, BEGINS, STEPS, MENDS), (MULTIPLY, MULTIPLY)),
    }[name]

    def says(op: int, moves: int, sign: int, phase: int) -> int | None:
        own = op_of(op)
        if own is None or phase > CLOSES or (phase != ONLY and not own.rounds):
            return None
        if in_round(phase):
            return STAGE + rounds.get(phase, (MULTIPLY, DIVIDE))[own.divides]
        if own.name == "ecall":
            return STAGE + CALL
        if own.shifts != SAME:
            return STAGE + (SAME if not moves else RIGHT if own.shifts == ONES and not sign else own.shifts)
        hands_on = FLAG if own.sets else own.logic or SUM
        return STAGE + (hands_on if name == "stage16" else SAME)

    return Rule((IN_OP, shifts, SIGN, IN_PHASE), says)


def _moved(of: str, place: int, digits: int, bit: int) -> dict[int, Bits]:
    """The bit that each shift by whole digits brings here, where there is one."""
    found = {SAME: place, LEFT: place - digits, RIGHT: place + digits}
    return {way: at(f"{of} {other}", bit) for way, other in found.items() if 0 <= other < 8}


def _shifted(does: int, bits: Mapping[int, int]) -> int:
    return bits.get(RIGHT, 1) if does == ONES else bits.get(does, 0)


def digit_stage(name: str, of: str, place: int, digits: int) -> list[Rule]:
    """A digit after a stage that shifts whole digits; 0 where it does something else."""

    def rule(bit: int) -> Rule:
        near = _moved(of, place, digits, bit)

        def says(does: int, *bits: int) -> int:
            moved = dict(zip(near, bits, strict=True))
            return bit_of_digit(bit, _shifted(does, moved) if does <= ONES else 0)

        return Rule((at(name, *VALUE), *near.values()), says)

    return [rule(bit) for bit in VALUE]


def first_stage(place: int) -> list[Rule]:
    """A digit of `s16`; a plus where one from the third on is not 0."""
    rules = [rule for bit in VALUE for rule in (_handed_on(place, bit), _high_word(place, bit))]
    if place == 0:
        rules.append(Rule((IN_OP, at("compared", 1, 2), at("stage16", *VALUE)), _set_if))
    return [*rules, *([nonzero("s16", place, PLUS, PLUS_BIT)] if place > 2 else [])]


def _set_if(op: int, compared: int, does: int) -> int | None:
    own = op_of(op)
    return None if own is None or bool(own.sets) != (does == FLAG) else int(own.sets & 2 * compared > 0)


def _handed_on(place: int, bit: int) -> Rule:
    """Shifted by 16 bits, or a7, the sum, or both operands bit by bit."""
    near = _moved("a", place, 4, bit)

    def says(does: int, total: int, second: int, register: int, *bits: int) -> int:
        moved = dict(zip(near, bits, strict=True))
        a = moved[SAME]
        others = {CALL: register, SUM: total, XOR: a ^ second, OR: a | second, AND: a & second}
        return bit_of_digit(bit, _shifted(does, moved) if does <= ONES else others.get(does, 0))

    own = at("stage16", *VALUE), at(f"sum {place}", bit), at(f"b {place}", bit), recalled(LAST_SET, bit)
    return Rule((*own, *near.values()), says)


def _high_word(place: int, bit: int) -> Rule:
    """In rounds: half the sum; or the difference where it does not borrow, or a bit was lost in doubling."""
    above = 4 * place + bit + 1
    carry = at("sum 7", PLUS_BIT)

    def says(does: int, before: int, total: int, first: int, lost: int, carry: int, up: int) -> int:
        fits = total if carry or lost else first
        return {KEEP: before, MULTIPLY: up, DIVIDE: fits}.get(does, 0) << bit

    return Rule(
        (
            at("stage16", *VALUE), at(f"s16 {place}", bit, last=True), at(f"sum {place}", bit),
            at(f"a {place}", bit), at("s16 7", 3, last=True), carry,
            word_bit("sum", above) if above < 32 else carry,
        ),
        says,
    )  # fmt: skip


def second_stage(place: int) -> list[Rule]:
    """A digit of `s8`; a plus where one from the second on is not 0."""
    rules = [*digit_stage("stage8", "s16", place, 2), *(_low_word(place, bit) for bit in VALUE)]
    return [*rules, *([nonzero("s8", place, PLUS, PLUS_BIT)] if place > 1 else [])]


def _low_word(place: int, bit: int) -> Rule:
    """In rounds; or a0 in a system call."""
    own = 4 * place + bit
    up = word_bit("s8", own + 1, last=True) if own < 31 else at("sum 0", 0)
    down = [word_bit("s8", own - 1, last=True)] if own else [at("sum 7", PLUS_BIT), at("s16 7", 3, last=True)]

    def says(
        does: int, register: int, before: int, second: int, total: int, up: int, down: int, lost: int = 0
    ) -> int:
        found = {
            CALL: register, KEEP: before, SECOND: second, SUM: total, MULTIPLY: up, DIVIDE: down | lost,
        }  # fmt: skip
        return found.get(does, 0) << bit

    kept = at(f"s8 {place}", bit, last=True), at(f"b0 {place}", bit), at(f"sum {place}", bit)
    return Rule((at("stage8", *VALUE), recalled(LAST_SET, bit), *kept, up, *down), says)


def third_stage(place: int) -> list[Rule]:
    """A digit of `s4`: in a system call, what will have been copied, and a mark where a digit before differs
    from that of what was asked for; in a round, the number of the next."""
    does = at("stage4", *VALUE)
    carry = [at(f"s4 {place - 1}", PLUS_BIT)] if place else []

    def copied(does: int, digit: int, carry: int = 1) -> int:
        return carried(digit + carry) - DIGIT if does == CALL else 0

    def counted(does: int, phase: int, digit: int, carry: int = 1) -> int:
        return carried((0 if phase == LOOKS else digit) + carry) - DIGIT if does == MULTIPLY else 0

    rules = [
        *digit_stage("stage4", "s8", place, 1), Rule((does, at(f"b {place}"), *carry), copied)
    ]  # fmt: skip
    if place:
        seen = at(f"s4 {place - 1}", *VALUE, MARK_BIT), at(f"b0 {place - 1}")
        rules.append(Rule((does, *seen), lambda does, s, b: MARK if does == CALL and s != b else 0))
    if place < 2:
        rules.append(Rule((does, IN_PHASE, at(f"s4 {place}", last=True), *carry), counted))
    return rules
