"""What a person reads for the tokens of a program's records: a word for every number, by what it stands for.

The pages say what each number means (`subleq_records`, `rv32_records`); the words here are of those numbers,
so a tokenizer that calls a token by another word misleads its reader, and is refused.
"""

from tapegrad_check.in_tokens import rv32_tokens as rv32
from tapegrad_check.in_tokens import subleq_records as subleq
from tapegrad_check.in_tokens.pages import DIGIT, MARK, PLUS
from tapegrad_check.instructions.rv32 import (
    BREAKPOINT,
    EXIT,
    ILLEGAL,
    JUMP_OUTSIDE,
    MISALIGNED,
    OUTSIDE,
)

COMMON = {0: "<halt>", 1: "<begin>", 2: "data", 3: "input", 4: "<start>", 5: "step", 13: "go", 18: "-"}
"""Ends, kinds of records, the outcome after which the run goes on, and that nothing is written."""
ASTRAY, BEYOND = "trap:jump·outside·memory", "trap:address·outside·memory"
TRAPS = {
    EXIT: "trap:exit",
    BREAKPOINT: "trap:breakpoint",
    ILLEGAL: "trap:illegal·instruction",
    MISALIGNED: "trap:misaligned·jump",
    JUMP_OUTSIDE: ASTRAY,
    OUTSIDE: BEYOND,
}


def subleq_words() -> list[str]:
    """The words of SUBLEQ's records."""
    named = COMMON | {
        subleq.GREATER: "greater",
        subleq.LEQ: "leq",
        subleq.ENDS: "trap:end",
        subleq.ASTRAY: ASTRAY,
        subleq.BEYOND: BEYOND,
        subleq.FROM + 2 * subleq.INSIDE: "from:memory",
        subleq.FROM + 2 * subleq.DEVICE: "from:input",
        subleq.FROM + 2 * subleq.NOWHERE: "from:outside",
        subleq.TO_MEMORY: "to:memory",
        subleq.TO + 2 * subleq.DEVICE: "to:output",
        subleq.TO + 2 * subleq.NOWHERE: "to:outside",
    }
    return _all(named | _digits() | _written(subleq.PUT), subleq.TOKENS)


def rv32_words() -> list[str]:
    """The words of RV32's records."""
    named = COMMON | {8: "set", rv32.MORE: "more", rv32.ROUND: "round"}
    named |= {number: TRAPS[trap] for number, trap in rv32.STOPS.items()}
    named |= {rv32.REGISTER + number: f"x{number}" for number in range(32)}
    named |= {rv32.OP + number: name for number, name in enumerate(rv32.NAMES)}
    named |= {rv32.WITH + number: f"with:{form}" for number, form in enumerate(rv32.FORMS)}
    for number in range(8):
        holds = zip((rv32.EQUAL, rv32.LESS, rv32.BELOW), ("ne eq", "ge lt", "geu ltu"), strict=True)
        words = [pair.split()[bool(number & bit)] for bit, pair in holds]
        named[rv32.COMPARED + number] = ",".join(words)
    for number in range(6):
        first, second = (
            f"{'-' if number & bit else '+'}" for bit in (rv32.FIRST_NEGATIVE, rv32.SECOND_NEGATIVE)
        )
        named[rv32.SIGNS + number] = f"{first},{'0' if number & rv32.SECOND_ZERO else second}"
    for base, meanings in _DECISIONS:
        named |= {base + number: word for number, word in meanings.items()}
    return _all(named | _digits() | _written(rv32.PUT), rv32.TOKENS)


_DECISIONS: tuple[tuple[int, dict[int, str]], ...] = (
    (rv32.TAIL, {rv32.PLAIN: "plain", rv32.CHANGED: "changed", rv32.OF_M: "of-m", rv32.OTHER: "other",
                 rv32.CALLS: "call", rv32.BREAKS: "break"}),
    (rv32.PHASE, {rv32.ONLY: "one·step", rv32.LOOKS: "looks", rv32.BEGINS: "begins", rv32.STEPS: "steps",
                  rv32.MENDS: "mends", rv32.CLOSES: "closes"}),
    (rv32.TAKE, {rv32.REG: "r1", rv32.PC: "pc", rv32.ZERO: "zero", rv32.NOT_REG: "not:r1", rv32.HIGH: "high",
                 rv32.NOT_HIGH: "not:high", rv32.LOW: "low", rv32.NOT_LOW: "not:low", rv32.DOUBLE: "double"}),
    (rv32.STAGE, {rv32.SAME: "same", rv32.LEFT: "left", rv32.RIGHT: "right", rv32.ONES: "right:ones",
                  rv32.CALL: "registers", rv32.SUM: "sum", rv32.FLAG: "flag", rv32.XOR: "bits:xor",
                  rv32.OR: "bits:or", rv32.AND: "bits:and", rv32.KEEP: "keep", rv32.CLEAR: "clear",
                  rv32.DIVIDE: "divide", rv32.SECOND: "second", rv32.MULTIPLY: "multiply"}),
    (rv32.CALLED, {rv32.NO_CALL: "call:none", rv32.UNKNOWN: "call:unknown", rv32.READS: "call:read",
                   rv32.WRITES: "call:write", rv32.EXITS: "call:exit"}),
    (rv32.FILE, {0: "file:bad", 1: "file:good"}),
    (rv32.MOVES, {rv32.IDLE: "idle", rv32.TAKES: "takes", rv32.PUTS: "puts"}),
    (rv32.ENDS, {rv32.GOES_ON: "goes·on", rv32.ENDED: "done", rv32.ROUNDS_ON: "one·round"}),
    (rv32.ACCESS, {0: "inside", 1: "outside"}),
    (rv32.GOES, {rv32.ON: "pc:next", rv32.BRANCH: "pc:branch", rv32.JUMP: "pc:jump",
                 rv32.JUMP_EVEN: "pc:even", rv32.STAY: "pc:stay"}),
    (rv32.FINAL, {0: "same·bits"} | {first + bits: f"{way}:{bits}" for first, way in
                                     ((0, "left"), (4, "right"), (8, "ones")) for bits in (1, 2, 3)}),
    (rv32.FINAL, {rv32.COUNT: "count", rv32.STORED: "word", rv32.COPIED: "copied", rv32.MINUS_9: "minus:9",
                  rv32.MINUS_38: "minus:38", rv32.BEFORE: "as·before"}),
)  # fmt: skip
"""By the number with which a group begins, what is decided."""


def _digits() -> dict[int, str]:
    """Hexadecimal digits, with a plus and a mark for their flags."""
    return {
        DIGIT + plus * PLUS + mark * MARK + digit: f"{digit:x}" + "+" * plus + "!" * mark
        for digit in range(16)
        for plus in (0, 1)
        for mark in (0, 1)
    }


def _written(first: int) -> dict[int, str]:
    """Bytes that are written: a character that can be seen, or two digits."""
    shown = [chr(byte) if 0x21 <= byte <= 0x7E else f"\\{byte:02x}" for byte in range(256)]
    return {first + byte: f"put:{word}" for byte, word in enumerate(shown)}


def _all(named: dict[int, str], count: int) -> list[str]:
    return [named.get(number, f"<unused:{number}>") for number in range(count)]
