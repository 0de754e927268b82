"""The words of RV32 records: instructions, registers, and what is decided on the way; numbers of tokens.

Numbers below 32 are kinds of records and outcomes, then come registers, digits (see `digits`), instructions,
decisions, and bytes that are written.
"""

from tapegrad.attention.digits import DIGIT, digit_word
from tapegrad.attention.prompts import byte_word

DATA, INPUT, START, STEP, SET = 2, 3, 4, 5, 8
"""Kinds of records, in their first slots."""
ROUND = 22
GO, MORE, EXIT, BREAKPOINT, ILLEGAL, MISALIGNED, ASTRAY, BEYOND = 13, 14, 7, 9, 10, 11, 12, 15
"""Outcomes: `more` and `round` leave pc where it is; `round` is no step of its own, but one of those that a
multiplication or division takes. The last six stop the program."""
TRAPS = {
    EXIT: "exit",
    BREAKPOINT: "breakpoint",
    ILLEGAL: "illegal instruction",
    MISALIGNED: "misaligned jump",
    ASTRAY: "jump outside memory",
    BEYOND: "address outside memory",
}
QUIET = 18
REGISTER, REGISTER_BITS = 32, tuple(range(6))
"""Followed by the number of the register; the sixth bit says that it is one."""

OP, OP_BITS = 128, tuple(range(6))
LOADS = {"lb": 1, "lh": 2, "lw": 4, "lbu": 1, "lhu": 2}
STORES = {"sb": 1, "sh": 2, "sw": 4}
"""Bytes that they move."""
BRANCHES = ("beq", "bne", "blt", "bge", "bltu", "bgeu")
MULTIPLYING = ("mul", "mulh", "mulhsu", "mulhu")
DIVIDING = ("div", "divu", "rem", "remu")
OPS = (
    *LOADS, *STORES, *BRANCHES, "jal", "jalr", "xor", "xori", "or", "ori", "and", "andi", "sll", "slli",
    "srl", "srli", "sra", "srai", "add", "addi", "sub", "slt", "slti", "sltu", "sltiu", "fence", "lui",
    "auipc",
    "ecall", "ebreak", "illegal", *MULTIPLYING, *DIVIDING,
)  # fmt: skip
"""In the order of their numbers."""
SUBTRACTING = {"sub", "slt", "sltu", "slti", "sltiu", *BRANCHES}
SETTING = {"slt": 1, "slti": 1, "sltu": 2, "sltiu": 2}
"""With the bit of a comparison that they put into a register."""

TAIL, PLAIN, CHANGED, OF_M, OTHER, CALLS, BREAKS = 192, 0, 1, 2, 3, 4, 5
"""What the high bits of an instruction say; the last two that all bits but the low ones are those of `ecall`
or `ebreak`."""
COMPARED, EQUAL, LESS, BELOW = 200, 1, 2, 4
STAGE, SAME, LEFT, RIGHT, ONES, CALL, SUM, FLAG, XOR, OR, AND = 208, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
"""What a stage of shifting does: nothing, a shift (to the right with zeros or ones), or something else: it
has registers that a system call looks at, the sum, the result of a comparison, or of a bitwise operation."""
KEEP, CLEAR, DIVIDE, SECOND, MULTIPLY = 10, 11, 13, 14, 15
"""And in a round of multiplication or division: what it was in the last record, 0, a step of division, the
second operand, or a step of multiplication."""
PHASE, NO_PHASE, LOOKS, BEGINS, STEPS, MENDS, CLOSES = 544, 0, 1, 2, 3, 4, 5
"""Phases of a multiplication or division: it sees the signs, begins, takes 32 rounds, and mends the signs."""
ROUNDS = 35
"""The number of the last round, which closes."""
SIGNS, FIRST_NEGATIVE, SECOND_NEGATIVE, SECOND_ZERO = 552, 1, 2, 4
TAKE, OF_R1, OF_PC, ZERO, NOT_R1, HIGH, NOT_HIGH, LOW, NOT_LOW, DOUBLE = 512, 0, 1, 2, 3, 4, 5, 6, 7, 8
"""What the first operand is: a register, pc, 0, the complement of the register; or, in rounds, the high or
low word of the last record or their complements, or the high word times 2 with the first bit of the low
one."""
WITH = 528
FORMS = ("R", "-R", "I", "-I", "S", "U", "J", "C", "H", "+H", "0", "+0")
"""What the second operand is: a register, an immediate number by its form, what a call has copied, the high
word of the last record, or 0. With a sign the sum is a difference: the complement, and a carry to begin
with."""
SHIFTING = {"sll": LEFT, "slli": LEFT, "srl": RIGHT, "srli": RIGHT, "sra": ONES, "srai": ONES}
LOGIC = {"xor": XOR, "xori": XOR, "or": OR, "ori": OR, "and": AND, "andi": AND}
CALLED, NONE, UNKNOWN, READ, WRITE, EXITS = 24, 0, 1, 2, 3, 4
FILE = 30
MOVES, IDLE, TAKES, PUTS = 240, 0, 1, 2
ENDS, ENDED, ROUNDED, ACCESS = 244, 1, 2, 254
GOES, ON, BRANCH, JUMP, JUMP_EVEN, STAY = 248, 0, 1, 2, 3, 4
"""Where pc goes: to the next instruction, by an offset, to the sum, to the sum without its lowest bit, or
nowhere."""
FINAL = 224
COUNT, STORED, COPIED, BAD_FILE, NO_CALL, OLD = 4, 8, 12, 13, 14, 15
"""The last stage shifts by 1 to 3 bits (to the left, right, or right with ones, from 0, 4 and 8 on), or takes
something else: the bytes of a call, the word to store, what was copied, -9, -38, or what a0 was."""
PUT = 256


def words() -> list[str]:
    """The words of all tokens."""
    named = {
        0: "<halt>",
        1: "<begin>",
        DATA: "data",
        INPUT: "input",
        START: "<start>",
        STEP: "step",
        SET: "set",
    }
    named |= {GO: "go", MORE: "more", ROUND: "round", QUIET: "-"}
    named |= {number: f"trap:{trap.replace(' ', '·')}" for number, trap in TRAPS.items()}
    named |= {REGISTER + number: f"x{number}" for number in range(32)}
    named |= {DIGIT + number: digit_word(number) for number in range(DIGIT)}
    named |= {OP + number: name for number, name in enumerate(OPS)}
    for first, names in (
        (TAIL, ("plain", "changed", "of-m", "other", "call", "break")),
        (COMPARED, ("ne,ge,geu", "eq,ge,geu", "ne,lt,geu", "eq,lt,geu", "ne,ge,ltu", "eq,ge,ltu", "ne,lt,ltu",
                    "eq,lt,ltu")),
        (STAGE, ("same", "left", "right", "right:ones", "registers", "sum", "flag", "bits:xor", "bits:or",
                 "bits:and", "keep", "clear", "<unused:220>", "divide", "second", "multiply")),
        (CALLED, ("call:none", "call:unknown", "call:read", "call:write", "call:exit")),
        (FILE, ("file:bad", "file:good")),
        (FINAL, ("same·bits", "left:1", "left:2", "left:3", "count", "right:1", "right:2", "right:3", "word",
                 "ones:1", "ones:2", "ones:3", "copied", "minus:9", "minus:38", "as·before")),
        (MOVES, ("idle", "takes", "puts")),
        (ENDS, ("goes·on", "done", "one·round")),
        (ACCESS, ("inside", "outside")),
        (GOES, ("pc:next", "pc:branch", "pc:jump", "pc:even", "pc:stay")),
    ):  # fmt: skip
        named |= {first + number: name for number, name in enumerate(names)}
    for first, names in (
        (PHASE, ("one·step", "looks", "begins", "steps", "mends", "closes")),
        (SIGNS, ("+,+", "-,+", "+,-", "-,-", "+,0", "-,0")),
        (TAKE, ("r1", "pc", "zero", "not:r1", "high", "not:high", "low", "not:low", "double")),
        (WITH, tuple(f"with:{form}" for form in FORMS)),
    ):
        named |= {first + number: name for number, name in enumerate(names)}
    named |= {PUT + byte: f"put:{byte_word(byte)}" for byte in range(256)}
    return [named.get(number, f"<unused:{number}>") for number in range(SIGNS + 8)]
