"""RV32 in tokens, system calls and memory, and what an instruction leaves: what the tokens of these rows
say. See `rv32_records` for the rows."""

from collections.abc import Mapping, Sequence

from tapegrad_check.in_tokens.pages import (
    DIGIT,
    DIGIT_BIT,
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
    from_memory,
    over,
    recalled,
)
from tapegrad_check.in_tokens.rv32_operands import IN_OP, IN_PHASE, immediate_bit, word_bit
from tapegrad_check.in_tokens.rv32_stages import SIGN, in_round
from tapegrad_check.in_tokens.rv32_tokens import (
    ACCESS,
    BEFORE,
    BRANCH,
    CALL,
    CALLED,
    COPIED,
    COUNT,
    ENDED,
    ENDS,
    EXITS,
    FILE,
    FINAL,
    GO,
    GOES,
    IDLE,
    JUMP,
    JUMP_EVEN,
    LEFT,
    MINUS_9,
    MINUS_38,
    MORE,
    MOVES,
    NO_CALL,
    NOTHING,
    NUMBER,
    ON,
    ONES,
    PUT,
    PUTS,
    READS,
    ROUND,
    ROUNDS_ON,
    SAME,
    STAY,
    STORED,
    TAKES,
    UNKNOWN,
    WRITES,
    op_of,
)  # fmt: skip

STORE, IMAGE, BYTE = "last write", "byte of the prompt", "byte of the input"
# System calls


def call() -> Rule:
    def says(does: int, low: int, high: int, last: int) -> int:
        known = {63: READS, 64: WRITES, 93: EXITS, 94: EXITS}
        which = UNKNOWN if last else known.get(low + 16 * high, UNKNOWN)
        return CALLED + (which if does == CALL else NO_CALL)

    seen = at("s16 0"), at("s16 1"), at("s16 7", *VALUE, PLUS_BIT)
    return Rule((at("stage16", *NUMBER), *seen), says)


def file() -> Rule:
    def says(call: int, low: int, last: int) -> int:
        good = {READS: (0,), WRITES: (1, 2)}.get(call, ())
        return FILE + (last == 0 and low in good)

    return Rule((at("call", *NUMBER), at("s8 0"), at("s8 7", *VALUE, PLUS_BIT)), says)


def moves() -> Rule:
    """Whether a byte is read or written in this record."""

    def says(call: int, good: int, count: int, there: int) -> int:
        if good and count and call == WRITES:
            return MOVES + PUTS
        return MOVES + (TAKES if good and count and call == READS and there else IDLE)

    count = at("b0 7", *VALUE, MARK_BIT)
    return Rule((at("call", *NUMBER), at("file", 0), count, recalled(BYTE, MARK_BIT)), says)


def ends() -> Rule:
    """Whether this is the last record of the instruction."""

    def says(moves: int, copied: int, count: int, phase: int) -> int:
        if in_round(phase):
            return ENDS + ROUNDS_ON
        return ENDS + (ENDED if moves == IDLE or copied == count else 0)

    return Rule((at("moves", 0, 1), at("s4 7", *VALUE, MARK_BIT), at("b0 7"), IN_PHASE), says)


def final() -> list[Rule]:
    """What the last stage does; a call adds to it, as what it shifts is 0."""

    def shifting(op: int, by: int, sign: int) -> int | None:
        own = op_of(op)
        if own is None or own.stores:
            return own and FINAL + STORED
        if own.shifts == SAME or not by:
            return FINAL
        return FINAL + by + (0 if own.shifts == LEFT else 8 if own.shifts == ONES and sign else 4)

    def calling(op: int, call: int, good: int, moves: int, ends: int) -> int | None:
        own = op_of(op)
        if own is None or (own.name == "ecall") != (call != NO_CALL) or call > EXITS:
            return None
        if call == NO_CALL:
            return 0
        if call in (UNKNOWN, EXITS):
            return MINUS_38 if call == UNKNOWN else BEFORE
        if not good:
            return MINUS_9
        return COPIED if moves == IDLE else COUNT if ends else BEFORE

    seen = IN_OP, at("call", *NUMBER), at("file", 0), at("moves", 0, 1), at("ends", 0)
    return [Rule((IN_OP, at("b 0", 0, 1), SIGN), shifting), Rule(seen, calling)]


def last_stage(place: int) -> list[Rule]:
    return [rule for bit in VALUE for rule in (_last_shift(place, bit), _no_sum(place, bit))]


def _last_shift(place: int, bit: int) -> Rule:
    """A bit shifted by 1 to 3."""
    own = 4 * place + bit
    read = [other for other in range(own - 3, own + 4) if 0 <= other < 32]

    def says(does: int, *bits: int) -> int:
        if does in (COUNT, STORED) or does >= COPIED:
            return bit_of_digit(bit, 0)
        other = own - does if does < 4 else own + does % 4
        return bit_of_digit(bit, bits[read.index(other)] if other in read else int(does > 8))

    return Rule((at("final", *VALUE), *(word_bit("s4", other) for other in read)), says)


def _no_sum(place: int, bit: int) -> Rule:
    own = 4 * place + bit

    def says(does: int, word: int, before: int, copied: int) -> int:
        found = {
            COUNT: word, STORED: word, COPIED: copied, BEFORE: before,
            MINUS_9: -9 >> own & 1, MINUS_38: -38 >> own & 1,
        }  # fmt: skip
        return found.get(does, 0) << bit

    seen = at(f"b0 {place}", bit), at(f"s8 {place}", bit), at(f"b {place}", bit)
    return Rule((at("final", *VALUE), *seen), says)


# Memory


def loaded(place: int, limits: Mapping[int, int]) -> list[Rule]:
    """A digit of memory at the sum, or of the byte that a call reads, which has a mark; a plus where the
    address, up to the digit before, is above the last that is inside. `limits` has the digits of that, by the
    bytes that are moved."""
    reading = at("moves", 0, 1)

    def rule(bit: int) -> Rule:
        def says(moves: int, last: int, first: int, byte: int) -> int:
            return bit_of_digit(bit, byte if moves == TAKES else last % 2 if last > 1 else first)

        memory = recalled(STORE, bit, DIGIT_BIT), recalled(IMAGE, bit)
        return Rule((reading, *memory, recalled(BYTE, bit)), says)

    if place >= 2:
        rules = from_memory(STORE, IMAGE)
    else:
        rules = [rule(bit) for bit in VALUE]
        rules.append(Rule((reading,), lambda moves: MARK if moves == TAKES else 0))
    if place:
        seen = at(f"sum {place - 1}"), at(f"load {place - 1}", PLUS_BIT)
        rules.append(Rule((IN_OP, *seen), lambda op, d, p: PLUS if _beyond(limits, op, d + PLUS * p) else 0))
    return rules


def _beyond(limits: Mapping[int, int], op: int, seen: int) -> bool:
    own = op_of(op)
    return own is not None and bool(own.moves) and over(seen, limits[own.moves])


def access(limits: Mapping[int, int]) -> Rule:
    """Whether memory is used outside."""

    def says(op: int, digit: int, plus: int, moves: int) -> int:
        own = op_of(op)
        used = own is not None and (own.name != "ecall" or moves != IDLE)
        return ACCESS + (used and _beyond(limits, op, digit + PLUS * plus))

    return Rule((IN_OP, at("sum 7"), at("load 7", PLUS_BIT), at("moves", 0, 1)), says)


# What the instruction leaves


def result(place: int) -> list[Rule]:
    """A digit of what goes to the register, or to memory: then it has a mark. A plus is a carry, or the sign
    of what was loaded."""
    before = [at(f"result {place - 1}", PLUS_BIT)] if place else []

    def rule(bit: int) -> Rule:
        def says(op: int, value: int, loaded: int, sign: int = 0) -> int | None:
            own = op_of(op)
            if own is None:
                return None
            if own.loads:
                return bit_of_digit(bit, loaded if place < 2 * own.loads else sign)
            return bit_of_digit(bit, 0 if own.jumps else value)

        return Rule((IN_OP, at(f"s {place}", bit), at(f"load {place}", bit), *before), says)

    def linked(op: int, pc: int, carry: int = 4) -> int:
        own = op_of(op)
        return carried(pc + carry) - DIGIT if own is not None and own.jumps else 0

    def flags(op: int, sign: int, before: int = 0) -> int:
        own = op_of(op)
        if own is None or not (own.stores or own.name in ("lb", "lh")):
            return 0
        if own.stores:
            return MARK if place < 2 * own.stores else 0
        last = 2 * own.loads - 1
        return PLUS * (sign if place == last else before if place > last else 0)

    return [
        *(rule(bit) for bit in VALUE),
        Rule((IN_OP, at(f"pc {place}"), *before), linked),
        Rule((IN_OP, at(f"load {place}", 3), *before), flags),
    ]


def goes() -> Rule:
    def says(op: int, compared: int, ends: int) -> int | None:
        own = op_of(op)
        if own is None:
            return None
        if own.branches:
            which, holds = own.branches
            return GOES + (BRANCH if bool(compared & which) == holds else ON)
        if own.jumps:
            return GOES + (JUMP if own.name == "jal" else JUMP_EVEN)
        return GOES + (ON if ends else STAY)

    return Rule((IN_OP, at("compared", *NUMBER), at("ends", 0)), says)


def following(place: int) -> list[Rule]:
    """A digit of the next pc."""
    goes, sources = at("goes", *NUMBER), [immediate_bit("B", 4 * place + bit) for bit in VALUE]
    read = sorted({source for source in sources if source is not None})
    before = [at(f"next {place - 1}", PLUS_BIT)] if place else []

    def says(goes: int, pc: int, *rest: int) -> int | None:
        carry, bits = (rest[0], rest[1:]) if place else (0, rest)
        if goes > STAY:
            return None
        if goes == ON:
            return carried(pc + (carry if place else 4))
        if goes != BRANCH:
            return DIGIT + (pc if goes == STAY else 0)
        offset = sum(bits[read.index(own)] << bit for bit, own in enumerate(sources) if own is not None)
        return carried(pc + offset + carry)

    def jumped(goes: int, total: int) -> int:
        if goes not in (JUMP, JUMP_EVEN):
            return 0
        return total & 14 if goes == JUMP_EVEN and place == 0 else total

    offset: Sequence[Bits] = [word_bit("ins", own) for own in read]
    return [
        Rule((goes, at(f"pc {place}"), *before, *offset), says),
        Rule((goes, at(f"sum {place}")), jumped),
    ]


def put() -> Rule:
    def says(moves: int, low: int, high: int) -> int:
        return PUT + low + 16 * high if moves == PUTS else NOTHING

    return Rule((at("moves", 0, 1), at("load 0"), at("load 1")), says)


def outcome(limit: int) -> Rule:
    """What stops the program, or what follows."""

    def says(pc: int, op: int, outside: int, odd: int, exits: int, ends: int) -> int | None:
        own = op_of(op)
        if over(pc, limit):
            return 12
        if own is None:
            return None
        if own.name in ("illegal", "ebreak"):
            return 10 if own.name == "illegal" else 9
        if exits:
            return 7
        if outside:
            return 15
        if odd:
            return 11
        return ROUND if ends == ROUNDS_ON else GO if ends == ENDED else MORE

    seen = (
        at("pc 7", *VALUE, PLUS_BIT),
        IN_OP,
        at("access", 0),
        at("next 0", 1),
        at("call", 2),
        at("ends", 0, 1),
    )
    return Rule(seen, says)
