"""Ready programs, small enough to be run by any target, and seeded random ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tapegrad._draws import Draws
from tapegrad.programs.assembler import read_assembler
from tapegrad.programs.instructions import INSTRUCTIONS, Instruction
from tapegrad.programs.model import Program
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq, read_subleq

FIBONACCI = """\
# The tenth Fibonacci number is the exit code.
        .equ __ram, 128
_start: li t0, 0
        li t1, 1
        li t2, 10
next:   add t3, t0, t1
        mv t0, t1
        mv t1, t3
        addi t2, t2, -1
        bnez t2, next
        mv a0, t0
        li a7, 93               # exit
        ecall
"""

SORT = """\
# Reads up to 16 bytes and writes them in order.
        .equ __ram, 256
        .equ room, 16
_start: li a0, 0
        la a1, bytes
        li a2, room
        li a7, 63               # read
        ecall
        mv a2, a0
        add t0, a1, a0          # the end
        mv t1, a1
each:   bge t1, t0, done        # insertion sort
        lbu t2, (t1)
        mv t3, t1
shift:  beq t3, a1, place
        lbu t4, -1(t3)
        bleu t4, t2, place
        sb t4, (t3)
        addi t3, t3, -1
        j shift
place:  sb t2, (t3)
        addi t1, t1, 1
        j each
done:   li a0, 1
        li a7, 64               # write
        ecall
        li a0, 0
        li a7, 93
        ecall
        .bss
bytes:  .space room
"""

HELLO = """\
subleq 8 32
# Writes the bytes of `text`. The first words of `loop` and `test` are addresses in it, and go on by one.
loop:   text -1 ?               # writes a byte
        minus loop ?
        minus test ?
test:   text z ?                # z = -byte
        z y end                 # y = byte; at 0 it ends
        y y ?
        z z loop
end:    z z -1
minus:  -1
z:      0
y:      0
text:   72 105 10 0
"""

ECHO = """\
subleq 8 16
# Reads a byte and writes it, until the input ends, which reads as -1.
loop:   -1 byte ?
        zero byte -1            # byte -= 0: ends if it is 0 or negative
        byte -1 ?
        zero zero loop
byte:   0
zero:   0
"""


@dataclass(frozen=True)
class Entry:
    """A ready program and an input that shows it at work."""

    summary: str
    build: Callable[[], Program]
    example: bytes = b""


READY: Mapping[str, Entry] = {
    "rv32-fibonacci": Entry(
        "RISC-V: the tenth Fibonacci number as exit code",
        lambda: read_assembler(FIBONACCI.encode(), "rv32-fibonacci"),
    ),
    "rv32-sort": Entry(
        "RISC-V: up to 16 bytes of input in order",
        lambda: read_assembler(SORT.encode(), "rv32-sort"),
        b"tapegrad",
    ),
    "subleq-hello": Entry("SUBLEQ: writes Hi", lambda: read_subleq(HELLO.encode(), "subleq-hello")),
    "subleq-echo": Entry(
        "SUBLEQ: writes what it reads", lambda: read_subleq(ECHO.encode(), "subleq-echo"), b"Hi"
    ),
}


def random_subleq(seed: int, *, words: int = 16, width: int = 8) -> Program:
    """A memory of random addresses, some of them -1."""
    draws = Draws(seed)
    numbers = [draws.one_below(words + 2) - 1 for _ in range(words)]
    image = b"".join((number % (1 << width)).to_bytes(width // 8, "little") for number in numbers)
    return Program(f"random subleq {seed}", Subleq(words * width // 8, width=width), image)


def random_rv32(seed: int, *, instructions: int = 40, ram: int = 1024) -> Program:
    """Random instructions of every kind, then `exit`. Loads and stores go to the upper half of memory, jumps
    forward, so that the program ends; a register may send them anywhere, and then it stops in a trap."""
    draws = Draws(seed)
    words = [_addi(rd, 0, draws.one_below(4096)) for rd in (8, 9)]
    words += [INSTRUCTIONS["lui"].encoded(rd=18, imm=draws.one_below(1 << 20))]
    words += [_addi(rd=3, rs1=0, imm=min(ram * 3 // 4, 1920))]
    names = [name for name in INSTRUCTIONS if name not in ("ecall", "ebreak", "jalr")]
    while len(words) < instructions:
        words.append(
            _random(draws, INSTRUCTIONS[names[draws.one_below(len(names))]], instructions - len(words))
        )
    words += [_addi(17, 0, 93), INSTRUCTIONS["ecall"].encoded()]
    return Program(f"random rv32 {seed}", RV32(ram), b"".join(word.to_bytes(4, "little") for word in words))


def _addi(rd: int, rs1: int, imm: int) -> int:
    return INSTRUCTIONS["addi"].encoded(rd=rd, rs1=rs1, imm=imm)


def _random(draws: Draws, of: Instruction, left: int) -> int:
    register = lambda: (0, 5, 6, 7, 8, 9, 10, 18)[draws.one_below(8)]  # noqa: E731
    rd, rs1, rs2 = register(), register(), register()
    if of.form == "N":
        return of.encoded()
    if of.form in "LS":
        return of.encoded(rd=rd, rs1=3, rs2=rs2, imm=draws.one_below(240) - 120)
    if of.form in "BJ":
        return of.encoded(rd=rd, rs1=rs1, rs2=rs2, imm=4 * (1 + draws.one_below(max(1, min(left, 4)))))
    limit = {"H": 32, "U": 1 << 20}.get(of.form, 4096)
    return of.encoded(rd=rd, rs1=rs1, rs2=rs2, imm=draws.one_below(limit))
