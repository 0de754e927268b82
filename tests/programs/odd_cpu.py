"""Instruction sets that use what is rarely used: registers that are exchanged, memories of several widths,
two words read or written at once, addresses beyond every end; and one that does next to nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tapegrad.circuits import UInt, any_of, concat
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
    either,
    only,
)


@dataclass(frozen=True)
class Odd(Machine):
    """Every instruction does a little of everything."""

    kind: ClassVar[str] = "odd"
    traps: ClassVar[tuple[str, ...]] = ("end", "read", "number to read")
    extra: ClassVar[Mapping[str, IntType | Memory]] = {
        "a": UInt(5),
        "pairs": Memory(4, 3),
        "b": UInt(5),
        "sum": UInt(12),
        "flag": UInt(1),
    }

    @property
    def word(self) -> int:
        return 8

    @property
    def counter(self) -> IntType:
        return UInt(3)

    @property
    def first(self) -> tuple[int, ...]:
        return 7, 255, 0

    def instruction(self, registers: Mapping[str, IntValue]) -> Instruction:
        pc, a, b, total, flag = (registers[name] for name in ("pc", "a", "b", "sum", "flag"))
        (both,) = yield (Read("ram", pc, 2),)
        word = both[:8]
        byte, pair, held = yield Next(), Read("pairs", a), Read("x", word[:2])
        (same,) = yield (Read("ram", held[:3]),)
        stops = word[7] & word[6]
        turned = concat(*held.bits()[4:], *held.bits()[:4])
        return Effect(
            {
                "pc": either(stops, pc, either(word[5], held[:3], pc + 1)),
                "trap": concat(stops & word[4], stops & ~word[4]),
                "a": b,
                "b": a,
                "sum": total + same.to(UInt(12)) + pair.to(UInt(12)),
                "flag": concat(a[0] ^ any_of(byte.bits())),
            },
            [
                Write("pairs", a, pair, only(flag[0], word[4:8])),
                Write("ram", pc, both, only(word[2], concat(held.bits()[0], *[0] * 7, *turned.bits())), 2),
                Write("x", word[:2], held, held ^ turned),
            ],
            takes=byte[8] & word[3],
            puts=(word[4], concat(*byte.bits()[1:9])),
        )


@dataclass(frozen=True)
class Tiny(Machine):
    """A word of 0 ends the program; any other is put out, loses its highest bit, and pc goes on by it."""

    kind: ClassVar[str] = "tiny"
    traps: ClassVar[tuple[str, ...]] = ("end",)

    @property
    def word(self) -> int:
        return 8

    @property
    def counter(self) -> IntType:
        return UInt(2)

    def instruction(self, registers: Mapping[str, IntValue]) -> Instruction:
        pc = registers["pc"]
        (word,) = yield (Read("ram", pc),)
        runs = any_of(word.bits())
        return Effect(
            {"pc": pc + only(runs, word[:2]), "trap": concat(~runs)},
            [Write("ram", pc, word, chosen((word[7], UInt(8)(128))))],
            puts=(runs, word),
        )


def tiny() -> Program:
    """Puts out three bytes; the second is another one then."""
    return Program("tiny", Tiny(4), bytes([1, 129, 1, 0]))
