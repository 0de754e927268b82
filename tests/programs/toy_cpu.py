"""A toy instruction set that nothing in the package knows: an accumulator, a stack of eight words, and twelve
instructions of two bytes, an operation and its operand."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tapegrad.circuits import UInt, any_of
from tapegrad.circuits.types import IntType
from tapegrad.circuits.values import IntValue
from tapegrad.programs.model import (
    Effect,
    Instruction,
    Machine,
    Memory,
    Next,
    Program,
    Read,
    Write,
    chosen,
    only,
)

HALT, LOAD, STORE, ADD, SUB, CONST, JUMP, JZ, IN, OUT, CALL, RET = range(12)


@dataclass(frozen=True)
class Toy(Machine):
    """Words of 8 bits; the operand of most instructions is an address."""

    kind: ClassVar[str] = "toy"
    traps: ClassVar[tuple[str, ...]] = ("end", "no such instruction")
    extra: ClassVar[Mapping[str, IntType | Memory]] = {
        "a": UInt(8),
        "sp": UInt(3),
        "stack": Memory(8, 8),
    }

    @property
    def word(self) -> int:
        return 8

    def instruction(self, registers: Mapping[str, IntValue]) -> Instruction:
        pc, a, sp = (registers[name] for name in ("pc", "a", "sp"))
        op, operand, byte = yield Read("ram", pc), Read("ram", pc + 1), Next()
        held, top, slot = yield Read("ram", operand), Read("stack", sp - 1), Read("stack", sp)
        does = [op == number for number in range(12)]
        wrong = op > RET
        takes = does[IN] & byte[8]
        jumps = does[JUMP] | (does[JZ] & ~any_of(a.bits()))
        goes = jumps | does[CALL]
        stays = does[HALT] | wrong
        onward = ~(goes | does[RET] | stays)
        return Effect(
            {
                "pc": chosen((goes, operand), (does[RET], top), (stays, pc), (onward, pc + 2)),
                "trap": chosen((does[HALT], UInt(2)(1)), (wrong, UInt(2)(2))),
                "a": chosen(
                    (does[LOAD], held),
                    (does[ADD], a + held),
                    (does[SUB], a - held),
                    (does[CONST], operand),
                    (takes, byte[:8]),
                    (~any_of([does[LOAD], does[ADD], does[SUB], does[CONST], takes]), a),
                ),
                "sp": chosen((does[CALL], sp + 1), (does[RET], sp - 1), (~(does[CALL] | does[RET]), sp)),
            },
            [
                Write("ram", operand, held, only(does[STORE], held ^ a)),
                Write("stack", sp, slot, only(does[CALL], slot ^ (pc + 2))),
            ],
            takes=takes,
            puts=(does[OUT], a),
        )


def letter() -> Program:
    """Puts out an A."""
    return Program("letter", Toy(8), bytes([CONST, 65, OUT, 0, HALT, 0]))


def double() -> Program:
    """Puts out each byte of its input twice, by a subroutine, up to a byte 0 or the end of the input."""
    code = [(CONST, 0), (IN, 0), (JZ, 10), (CALL, 12), (JUMP, 0), (HALT, 0), (OUT, 0), (OUT, 0), (RET, 0)]
    return Program("double", Toy(32), bytes(byte for pair in code for byte in pair))
