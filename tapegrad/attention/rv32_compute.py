"""RV32 digit by digit: from the operands to the result, memory and pc. See `rv32_cells` for the rows."""

from collections.abc import Iterator, Sequence
from functools import partial

from tapegrad.attention.cells import Look, Part
from tapegrad.attention.digits import (
    BASE,
    DIGIT,
    FLAG_F,
    FLAG_G,
    IS_DIGIT,
    NIBBLE,
    VALUE,
    F,
    G,
    above,
    carrying,
    flagged,
    look,
    marked,
    plain,
)  # fmt: skip
from tapegrad.attention.rv32_decode import (
    BYTE,
    FOUR,
    IMAGE,
    LAST_SET,
    STORE,
    THREE,
    WORD,
    digit_bit,
    op_name,
    written_bit,
)  # fmt: skip
from tapegrad.attention.rv32_words import (
    ACCESS,
    AND,
    ASTRAY,
    BAD_FILE,
    BEGINS,
    BELOW,
    BEYOND,
    BRANCH,
    BRANCHES,
    BREAKPOINT,
    CALL,
    CALLED,
    CLEAR,
    CLOSES,
    COMPARED,
    COPIED,
    COUNT,
    DIVIDE,
    ENDED,
    ENDS,
    EQUAL,
    EXIT,
    EXITS,
    FILE,
    FINAL,
    FIRST_NEGATIVE,
    FLAG,
    GO,
    GOES,
    IDLE,
    ILLEGAL,
    JUMP,
    JUMP_EVEN,
    KEEP,
    LEFT,
    LESS,
    LOADS,
    LOGIC,
    LOOKS,
    MENDS,
    MISALIGNED,
    MORE,
    MOVES,
    MULTIPLY,
    MULTIPLYING,
    NO_CALL,
    NO_PHASE,
    NONE,
    OLD,
    ON,
    ONES,
    OR,
    PUT,
    PUTS,
    QUIET,
    READ,
    RIGHT,
    ROUND,
    ROUNDED,
    SAME,
    SECOND,
    SECOND_NEGATIVE,
    SECOND_ZERO,
    SETTING,
    SHIFTING,
    SIGNS,
    STAGE,
    STAY,
    STEPS,
    STORED,
    STORES,
    SUM,
    TAKES,
    UNKNOWN,
    WRITE,
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


def _in_round(phase: int) -> bool:
    """Whether a multiplication or division goes on after this record."""
    return phase not in (NO_PHASE, CLOSES)


def stage16_rule(op: int, shifts: int, sign: int, phase: int) -> int | None:
    name = op_name(op)
    if name is None or phase > CLOSES:
        return None
    if _in_round(phase):
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
    if not _in_round(phase):
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
    return STAGE + (MULTIPLY if _in_round(phase) else _staging(name, shifts, sign))


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


def nonzero_before_rule(name: str, place: int) -> Part:
    """The flag that says whether a digit before this one, but for the low ones, is not 0."""
    return Part((look(f"{name} {place - 1}", *VALUE, FLAG_F),), flagged)


def call_rule(does: int, low: int, high: int, last: int) -> int:
    """What a7 asks for; its digits from the third on must be 0."""
    if does != CALL:
        return CALLED + NONE
    number = UNKNOWN if last else {63: READ, 64: WRITE, 93: EXITS, 94: EXITS}.get(low | high << 4, UNKNOWN)
    return CALLED + number


def file_rule(call: int, low: int, last: int) -> int:
    """Whether a0 is a file that can be read, or written."""
    return FILE + (not last and low in {READ: (0,), WRITE: (1, 2)}.get(call, ()))


def copied_rule(place: int) -> Iterator[Part]:
    """What a system call will have copied: one byte more; and whether that differs from what is asked for."""
    control = look("stage4", *FOUR)
    carry = (look(f"s4 {place - 1}", FLAG_F),) if place else ()

    def copied(does: int, digit: int, carry: int = 1) -> int:
        return carrying(digit + carry) - DIGIT if does == CALL else 0

    yield Part((control, look(f"b {place}"), *carry), copied)
    if place:
        seen = look(f"s4 {place - 1}", *VALUE, FLAG_G), look(f"b0 {place - 1}")
        yield Part((control, *seen), _differs)


def _differs(does: int, seen: int, asked: int) -> int:
    return marked(does == CALL and seen != asked)


def moves_rule(call: int, good: int, count: int, there: int) -> int:
    """Whether a byte is read or written now."""
    if not good or not count or (call == READ and not there):
        return MOVES + IDLE
    return MOVES + {READ: TAKES, WRITE: PUTS}.get(call, IDLE)


def ends_rule(moves: int, seen: int, count: int, phase: int) -> int:
    """Whether the instruction is over: a call is with its last byte."""
    if _in_round(phase):
        return ENDS + ROUNDED
    return ENDS + ENDED * (moves == IDLE or seen == count)


def final_rule(op: int, shifts: int, sign: int) -> int | None:
    name = op_name(op)
    if name is None:
        return None
    if name in STORES:
        return FINAL + STORED
    way = SHIFTING.get(name)
    if way is None or not shifts:
        return FINAL
    return FINAL + shifts + {LEFT: 0, RIGHT: 4, ONES: 8 if sign else 4}[way]


def final_call_rule(call: int, good: int, moves: int, ends: int) -> int:
    if call in (NONE, EXITS):
        return OLD if call == EXITS else 0
    if call == UNKNOWN or not good:
        return NO_CALL if call == UNKNOWN else BAD_FILE
    return COPIED if moves == IDLE else COUNT if ends else OLD


def last_stage_rule(place: int, bit: int) -> Part:
    """A bit after the stage that shifts by 1 to 3 bits; 0 where something else becomes the result."""
    at, sources = NIBBLE * place + bit, {}
    for distance in (1, 2, 3):
        for way, other in ((LEFT, at - distance), (RIGHT, at + distance)):
            if 0 <= other < NIBBLE * WORD:
                sources[way, distance] = other
    read = sorted({at, *sources.values()})

    def last(does: int, *bits: int) -> int:
        found = dict(zip(read, bits, strict=True))
        if does in (COUNT, STORED) or does >= COPIED:
            return digit_bit(bit, 0)
        if does == 0:
            return digit_bit(bit, found[at])
        source = sources.get((LEFT if does < 4 else RIGHT, does % 4))
        return digit_bit(bit, int(does > 8) if source is None else found[source])

    looks = [look(f"s4 {own // NIBBLE}", own % NIBBLE) for own in read]
    return Part((look("final", *FOUR), *looks), last)


def other_result_rule(place: int, bit: int) -> Part:
    """A bit of a word to store, or of what a system call gives."""
    at = NIBBLE * place + bit

    def other(does: int, word: int, before: int, copied: int) -> int:
        values = {
            COUNT: word, STORED: word, COPIED: copied, OLD: before,
            BAD_FILE: -9 >> at & 1, NO_CALL: -38 >> at & 1,
        }  # fmt: skip
        return values.get(does, 0) << bit

    own = look(f"b0 {place}", bit), look(f"s8 {place}", bit), look(f"b {place}", bit)
    return Part((look("final", *FOUR), *own), other)


def loaded_rule(place: int, bit: int) -> Part:
    """A bit of what is loaded; of the byte that a call reads."""
    looks = [Look("recalled", STORE, (bit, IS_DIGIT)), Look("recalled", IMAGE, (bit,))]
    if place >= 2:
        return Part(tuple(looks), partial(written_bit, bit))

    def loaded(moves: int, store: int, image: int, byte: int) -> int:
        return digit_bit(bit, byte) if moves == TAKES else written_bit(bit, store, image)

    return Part((look("moves", 0, 1), *looks, Look("recalled", BYTE, (bit,))), loaded)


def _size(op: int) -> int:
    """Bytes that an instruction loads or stores; a call moves one."""
    return (LOADS | STORES | {"ecall": 1}).get(op_name(op) or "", 0)


def beyond_rule(limits: dict[int, int], op: int, digit: int, before: int) -> int:
    """Whether the digits of an address, up to this one, are above those of the last one that is inside."""
    size = _size(op)
    return flagged(size and above(limits[size])(digit + F * before))


def access_rule(limits: dict[int, int], op: int, digit: int, before: int, moves: int) -> int:
    used = _size(op) and (op_name(op) != "ecall" or moves != IDLE)
    return ACCESS + bool(used and beyond_rule(limits, op, digit, before))


def result_rule(place: int, bit: int, op: int, value: int, loaded: int, sign: int = 0) -> int | None:
    """A bit of what goes to the register or to memory; jumps have their own."""
    name = op_name(op)
    if name is None:
        return None
    if name in LOADS:
        return digit_bit(bit, loaded if place < 2 * LOADS[name] else sign)
    return digit_bit(bit, 0 if name in ("jal", "jalr") else value)


def link_rule(place: int, op: int, pc: int, carry: int = 0) -> int:
    """A digit of pc + 4."""
    if op_name(op) not in ("jal", "jalr"):
        return 0
    return carrying(pc + (carry if place else 4)) - DIGIT


def extended_rule(place: int, op: int, sign: int, before: int = 0) -> int:
    """Flags of a result: F is the sign of what was loaded, up to here; G says that it goes to memory."""
    name = op_name(op) or ""
    if name in STORES:
        return marked(place < 2 * STORES[name])
    if name not in ("lb", "lh"):
        return 0
    return flagged(sign if place == 2 * LOADS[name] - 1 else place >= 2 * LOADS[name] and before)


def goes_rule(op: int, compared: int, ends: int) -> int | None:
    name = op_name(op)
    if name is None:
        return None
    if name in BRANCHES:
        holds = compared & {"eq": EQUAL, "ne": EQUAL, "lt": LESS, "ge": LESS}.get(name[1:], BELOW)
        return GOES + (BRANCH if bool(holds) == (name[1:] in ("eq", "lt", "ltu")) else ON)
    if name in ("jal", "jalr"):
        return GOES + (JUMP if name == "jal" else JUMP_EVEN)
    return GOES + (ON if ends else STAY)


def next_rule(place: int, masks: Sequence[int], goes: int, pc: int, *rest: int) -> int | None:
    """A digit of pc after this instruction, unless it jumps. Masks say which bits of the instruction are
    those of the offset."""
    carry, bits = (rest[0], rest[1:]) if place else (0, rest)
    if goes == STAY:
        return plain(pc)
    if goes in (JUMP, JUMP_EVEN):
        return DIGIT
    if goes > STAY:
        return None
    if goes == ON:
        return carrying(pc + (carry if place else 4))
    there = sum(own << place for place, own in enumerate(bits))
    offset = sum(bool(there & mask) << bit for bit, mask in enumerate(masks))
    return carrying(pc + offset + carry)


def jumped_rule(place: int, goes: int, total: int) -> int:
    """A digit of the sum, if that is where the instruction jumps."""
    if goes not in (JUMP, JUMP_EVEN):
        return 0
    return total & ~1 if place == 0 and goes == JUMP_EVEN else total


def put_rule(moves: int, low: int, high: int) -> int:
    return PUT + BASE * high + low if moves == PUTS else QUIET


def outcome_rule(limit: int, pc: int, op: int, outside: int, odd: int, exits: int, ends: int) -> int | None:
    """What stops the program comes first."""
    name = op_name(op)
    if above(limit)(pc):
        return ASTRAY
    if name is None:
        return None
    if name in ("illegal", "ebreak"):
        return ILLEGAL if name == "illegal" else BREAKPOINT
    if exits or outside:
        return EXIT if exits else BEYOND
    if odd:
        return MISALIGNED
    return ROUND if ends == ROUNDED else GO if ends == ENDED else MORE
