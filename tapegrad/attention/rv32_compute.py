"""RV32 digit by digit: system calls, the result, memory and pc. See `rv32_cells` for the rows."""

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
    above,
    carrying,
    flagged,
    look,
    marked,
    plain,
)  # fmt: skip
from tapegrad.attention.rv32_decode import BYTE, FOUR, IMAGE, STORE, WORD, digit_bit, op_name, written_bit
from tapegrad.attention.rv32_stages import in_round
from tapegrad.attention.rv32_words import (
    ACCESS,
    ASTRAY,
    BAD_FILE,
    BELOW,
    BEYOND,
    BRANCH,
    BRANCHES,
    BREAKPOINT,
    CALL,
    CALLED,
    COPIED,
    COUNT,
    ENDED,
    ENDS,
    EQUAL,
    EXIT,
    EXITS,
    FILE,
    FINAL,
    GO,
    GOES,
    IDLE,
    ILLEGAL,
    JUMP,
    JUMP_EVEN,
    LEFT,
    LESS,
    LOADS,
    MISALIGNED,
    MORE,
    MOVES,
    NO_CALL,
    NONE,
    OLD,
    ON,
    ONES,
    PUT,
    PUTS,
    QUIET,
    READ,
    RIGHT,
    ROUND,
    ROUNDED,
    SHIFTING,
    STAY,
    STORED,
    STORES,
    TAKES,
    UNKNOWN,
    WRITE,
)  # fmt: skip


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
    if in_round(phase):
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
