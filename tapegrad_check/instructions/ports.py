"""Machines with random access as the checker sees them: registers, memories, and ports between them.

A step reads words, by a function that it is given, and says in the end what registers become and which bits
of which words change. What a port does is a matter of the net: on wires it is a bundle of word lines (here);
in a transformer it is a pair of heads (`heads`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tapegrad_check.core.nodes import FALSE, Nodes
from tapegrad_check.formulas.words import Word, add, lines, number, only, padded
from tapegrad_check.sources import Program
from tapegrad_check.sources.instructions import BYTE, COUNTED

Read = Callable[[str, Word, int], list[int]]
"""From a memory, an address and how many words in a row (one or two) to the bits that are read there, from
the memories as they were before the step. Beyond its end a memory reads 0."""


class Write(NamedTuple):
    """Bits of words change, where `change` has ones; `old` is what a port of the same address has read."""

    memory: str
    address: Word
    old: Word
    change: Word
    span: int = 1


class Effect(NamedTuple):
    """What a step does: registers that are not named stay."""

    registers: Mapping[str, Word]
    writes: Sequence[Write]


@dataclass(frozen=True)
class Layout:
    """Registers with their widths, and memories with the width and the number of their words."""

    ram: int
    output: int
    registers: Mapping[str, int]
    memories: Mapping[str, tuple[int, int]]
    kind: str = ""
    pairs: frozenset[str] = frozenset()
    """Memories of which two words in a row are read."""
    read_only: frozenset[str] = frozenset({"input"})
    addresses: Mapping[str, int] = field(default_factory=dict)
    """Bits of the longest address of each memory."""

    @classmethod
    def of(cls, program: Program, taken: int, kept: int) -> "Layout":
        """The machine of a program, with room for so many bytes of input and of output."""
        own = program.instruction
        if own is None:
            return cls.sized(program.kind, program.width, program.ram, taken, kept)
        pc, trap, *further = own.registers.items()
        counts = {"copied": program.ram.bit_length(), "taken": taken.bit_length(), "written": COUNTED}
        ends = {"input": (BYTE + 1, taken), "output": (BYTE, kept)}
        first = {name: own.memories[name] for name in ("ram", "x") if name in own.memories}
        addresses = {"input": counts["taken"], "output": (kept - 1).bit_length() or 1}
        for port in own.ports:
            if port.memory:
                addresses[port.memory] = max(addresses.get(port.memory, 1), port.address)
        memories = first | ends | {name: of for name, of in own.memories.items() if name not in first}
        written = {own.ports[number].memory for number in own.writes}
        return cls(
            program.ram,
            kept,
            dict([pc, trap, *counts.items(), *further]),
            memories,
            program.kind,
            frozenset(port.memory for port in own.ports if port.span == 2),
            frozenset(memories) - written - {"output"},
            {name: addresses.get(name, 1) for name in memories},
        )

    @classmethod
    def sized(cls, kind: str, word: int, ram: int, taken: int, kept: int) -> "Layout":
        """A machine with words of so many bits, so many bytes of memory, and room for so many of input and of
        output. A byte of input has a ninth bit, which says that there is one; output is a ring."""
        registers = {
            "pc": word,
            "trap": TRAPS[kind].bit_length(),
            "copied": ram.bit_length(),
            "taken": taken.bit_length(),
            "written": COUNTED,
        }
        general = {"x": (32, 32)} if kind == "rv32im" else {}
        ends = {"input": (9, taken), "output": (8, kept)}
        memories = {"ram": (word, ram * 8 // word), **general, **ends}
        addresses = {name: (words - 1).bit_length() or 1 for name, (_, words) in memories.items()}
        pairs = frozenset({"ram"} if general else ())
        read_only = frozenset({"input"})
        addresses["input"] = registers["taken"]
        return cls(ram, kept, registers, memories, kind, pairs, read_only, addresses)

    def names(self) -> list[str]:
        """Of all bits: registers, then memories word by word, the lowest bit first."""
        of_registers = [f"{name}[{bit}]" for name, width in self.registers.items() for bit in range(width)]
        return of_registers + [
            f"{name}[{word}][{bit}]"
            for name, (width, words) in self.memories.items()
            for word in range(words)
            for bit in range(width)
        ]

    @property
    def bits(self) -> int:
        """How many there are."""
        return sum(self.registers.values()) + sum(width * words for width, words in self.memories.values())


TRAPS = {"rv32im": 6, "subleq": 3}
"""How many things can stop a program. Trap 0 is none, and trap 1 its end."""


def ring(layout: Layout, written: Word) -> list[int]:
    """Where the next byte of output goes: in the place of the oldest."""
    return list(written[: (layout.output - 1).bit_length()]) if layout.output > 1 else [FALSE]


# Memories on wires. A port has a line for each word, of which the one at the address is 1. Of two words in a
# row one is even and one odd: those at (address + 1) / 2 and at address / 2 among their like.


class Cells:
    """Memories as literals, while a step is taken."""

    def __init__(self, n: Nodes, memories: dict[str, list[list[int]]]) -> None:
        self.n, self.memories = n, memories

    def read(self, memory: str, address: Word, span: int) -> list[int]:
        """The words that a port reads."""
        held = self.memories[memory]
        if span == 1:
            return self._joined(held, lines(self.n, address, len(held)))
        even, odd = (self._joined(held[side::2], own) for side, own in enumerate(self._pair(memory, address)))
        return [*self._switched(address[0], odd, even), *self._switched(address[0], even, odd)]

    def write(self, port: Write) -> None:
        """Flips the bits that a port changes."""
        held, change = self.memories[port.memory], port.change
        if port.span == 1:
            self._flip(held, range(len(held)), lines(self.n, port.address, len(held)), change)
            return
        low, high = change[: len(held[0])], change[len(held[0]) :]
        for side, own in enumerate(self._pair(port.memory, port.address)):
            swapped, straight = ((high, low), (low, high))[side]
            flips = self._switched(port.address[0], swapped, straight)
            self._flip(held, range(side, len(held), 2), own, flips)

    def _pair(self, memory: str, address: Word) -> tuple[list[int], list[int]]:
        count = len(self.memories[memory])
        even_at, odd_at = halves(self.n, address)
        return lines(self.n, even_at, (count + 1) // 2), lines(self.n, odd_at, count // 2)

    def _joined(self, held: list[list[int]], own: list[int]) -> list[int]:
        n = self.n
        masked = [only(n, line, word) for line, word in zip(own, held, strict=True)]
        return [n.any_of(column) for column in zip(*masked, strict=True)]

    def _flip(self, held: list[list[int]], which: range, own: list[int], change: Word) -> None:
        n = self.n
        for place, line in zip(which, own, strict=True):
            flips = only(n, line, change)
            held[place] = [n.xor(bit, flip) for bit, flip in zip(held[place], flips, strict=True)]

    def _switched(self, flag: int, a: Word, b: Word) -> list[int]:
        n = self.n
        return [n.or_(n.and_(flag, x), n.and_(flag ^ 1, y)) for x, y in zip(a, b, strict=True)]


def halves(n: Nodes, address: Word) -> tuple[list[int], list[int]]:
    """Of the words at an address and after it, the number of the even one among the even ones, and of the odd
    one among the odd ones."""
    after = add(n, padded(address, len(address) + 1), number(1, len(address) + 1))
    return [*after[1:], FALSE], [*address[1:], FALSE]
