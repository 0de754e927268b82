"""The tokens of RV32 records by their numbers, and what is to be known of each instruction to tell it.

Below 32 are kinds of records and outcomes, then registers, digits, instructions, decisions, and bytes that
are written. A decision is a base plus a number; the low bits of the base are 0, so that they are the number.
"""

from typing import NamedTuple

from tapegrad_check.instructions.rv32 import (
    BREAKPOINT,
    EXIT,
    ILLEGAL,
    JUMP_OUTSIDE,
    MISALIGNED,
    OUTSIDE,
    PAGE,
    Fixed,
)

TOKENS = 560
END, DATA, INPUT, STEP = 0, 2, 3, 5
GO, MORE, ROUND = 13, 14, 22
"""After which another record follows: of the next step, or of the next round of this one."""
MORE_BIT, ROUND_BIT = 1, 4
"""In which `more` and `round` differ from `go`."""
STOPS = {7: EXIT, 9: BREAKPOINT, 10: ILLEGAL, 11: MISALIGNED, 12: JUMP_OUTSIDE, 15: OUTSIDE}
"""Outcomes that end the text, with the numbers of their traps."""
NOTHING, REGISTER, OP, PUT = 18, 32, 128, 256
REGISTER_BIT, PUT_BIT = 5, 8
NUMBER, FIVE, SIX = (0, 1, 2), (0, 1, 2, 3, 4), (0, 1, 2, 3, 4, 5)
"""Low bits of decisions, registers and instructions."""

TAIL, PLAIN, CHANGED, OF_M, OTHER, CALLS, BREAKS = 192, 0, 1, 2, 3, 4, 5
"""What funct7 is: 0, 32, 1 or something else; or that all bits from 7 on are those of `ecall`, `ebreak`."""
PHASE, ONLY, LOOKS, BEGINS, STEPS, MENDS, CLOSES = 544, 0, 1, 2, 3, 4, 5
LAST_ROUND = 35
TAKE, REG, PC, ZERO, NOT_REG, HIGH, NOT_HIGH, LOW, NOT_LOW, DOUBLE = 512, 0, 1, 2, 3, 4, 5, 6, 7, 8
WITH, FORMS = 528, ("R", "-R", "I", "-I", "S", "U", "J", "C", "H", "+H", "0", "+0")
"""The second operand: a register, an immediate, what was copied, the high word, or 0. A sign stands for a
carry to begin with, and a minus for the complement as well."""
COMPARED, EQUAL, LESS, BELOW = 200, 1, 2, 4
SIGNS, FIRST_NEGATIVE, SECOND_NEGATIVE, SECOND_ZERO = 552, 1, 2, 4
STAGE = 208
SAME, LEFT, RIGHT, ONES, CALL, SUM, FLAG, XOR, OR, AND, KEEP, CLEAR, DIVIDE, SECOND, MULTIPLY = (
    *range(12), 13, 14, 15,
)  # fmt: skip
CALLED, NO_CALL, UNKNOWN, READS, WRITES, EXITS = 24, 0, 1, 2, 3, 4
FILE, MOVES, IDLE, TAKES, PUTS = 30, 240, 0, 1, 2
ENDS, GOES_ON, ENDED, ROUNDS_ON, ACCESS = 244, 0, 1, 2, 254
FINAL, COUNT, STORED, COPIED, MINUS_9, MINUS_38, BEFORE = 224, 4, 8, 12, 13, 14, 15
"""The last stage: 0, or a shift by 1 to 3 bits, to the left, to the right from 4 on, with ones from 8 on; or
else a word that is no sum."""
GOES, ON, BRANCH, JUMP, JUMP_EVEN, STAY = 248, 0, 1, 2, 3, 4

NAMES = (
    "lb", "lh", "lw", "lbu", "lhu", "sb", "sh", "sw", "beq", "bne", "blt", "bge", "bltu", "bgeu", "jal",
    "jalr", "xor", "xori", "or", "ori", "and", "andi", "sll", "slli", "srl", "srli", "sra", "srai", "add",
    "addi", "sub", "slt", "slti", "sltu", "sltiu", "fence", "lui", "auipc", "ecall", "ebreak", "illegal",
    "mul", "mulh", "mulhsu", "mulhu", "div", "divu", "rem", "remu",
)  # fmt: skip
"""Instructions in the order of their tokens; what `fence` and `fence.i` do is the same, namely nothing."""


class Op(NamedTuple):
    """An instruction: its name, and what it is made of."""

    name: str
    form: str = "R"
    """Of its second operand."""
    shifts: int = SAME
    logic: int = 0
    sets: int = 0
    """Bits of a comparison that it puts into a register."""
    loads: int = 0
    stores: int = 0
    """Bytes."""
    branches: tuple[int, bool] | None = None
    """The bit of a comparison on which it depends, and whether that has to be 1."""
    multiplies: bool = False
    divides: bool = False

    @property
    def rounds(self) -> bool:
        return self.multiplies or self.divides

    @property
    def moves(self) -> int:
        """Bytes that it reads or writes in memory, if it does."""
        return self.loads or self.stores or int(self.name == "ecall")

    @property
    def jumps(self) -> bool:
        return self.name in ("jal", "jalr")


def _op(name: str) -> Op:
    loads = {"lb": 1, "lh": 2, "lw": 4, "lbu": 1, "lhu": 2}.get(name, 0)
    stores = {"sb": 1, "sh": 2, "sw": 4}.get(name, 0)
    plain = name.replace("i", "", 1) if name.endswith(("i", "iu")) else name
    forms = {"jal": "J", "jalr": "I", "lui": "U", "auipc": "U", "ecall": "C"}
    immediate = plain != name or loads
    branches = {
        "beq": (EQUAL, True), "bne": (EQUAL, False), "blt": (LESS, True), "bge": (LESS, False),
        "bltu": (BELOW, True), "bgeu": (BELOW, False),
    }.get(name)  # fmt: skip
    sets = {"slt": LESS, "sltu": BELOW}.get(plain, 0)
    form = forms.get(name, "S" if stores else "I" if immediate else "R")
    return Op(
        name,
        f"-{form}" if branches or sets or name == "sub" else form,
        {"sll": LEFT, "srl": RIGHT, "sra": ONES}.get(plain, SAME),
        {"xor": XOR, "or": OR, "and": AND}.get(plain, 0),
        sets,
        loads,
        stores,
        branches,
        name.startswith("mul"),
        name.startswith(("div", "rem")),
    )


OPS = [_op(name) for name in NAMES]


def op_of(number: int) -> Op | None:
    """By its number; None for those that there are not."""
    return OPS[number] if number < len(OPS) else None


def decoded(opcode: int, f3: int, tail: int) -> int:
    """The token of an instruction, from an example of such a word that is looked up in the definition."""
    rest = {PLAIN: 1 << 7, CHANGED: 1 << 30, OF_M: 1 << 25, OTHER: 1 << 26, CALLS: 0, BREAKS: 1 << 20}[tail]
    word = opcode | f3 << 12 | rest
    name = next((name for name, fixed, _ in PAGE if _fits(word, fixed)), "illegal")
    return OP + NAMES.index({"fence.i": "fence", "sltui": "sltiu"}.get(name, name))


def _fits(word: int, fixed: Fixed) -> bool:
    return all(word >> bit & 1 == value for bit, value in fixed.items())
