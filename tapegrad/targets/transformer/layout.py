"""The coordinates of a hidden vector, in the groups of appendix C: st, sym1, sym2, pos1, pos2, pos3, scr."""

import json
from dataclasses import dataclass
from functools import cached_property

from tapegrad.machines.model import TuringMachine

Key = tuple[str | int, ...]
"""A coordinate: its group, then which state, symbol or bit it stands for."""


@dataclass(frozen=True)
class Layout:
    """Which coordinate means what. Positions are cells of the tape shifted by `offset`, so that a head that
    starts at cell 0 can go `steps` cells either way: the paper's one-way tape becomes two-way for one more
    bit. Bits are numbered from the lowest."""

    states: tuple[str, ...]
    symbols: tuple[str, ...]
    steps: int

    @classmethod
    def of(cls, machine: TuringMachine, steps: int) -> "Layout":
        """The layout for runs of at most `steps` steps."""
        return cls(machine.states, machine.alphabet, steps)

    @property
    def offset(self) -> int:
        """The position of cell 0."""
        return self.steps

    @property
    def position_bits(self) -> int:
        """w_pos: positions run from 0 to 2 T."""
        return (2 * self.steps).bit_length()

    @property
    def time_bits(self) -> int:
        """Time runs from 0 to T."""
        return self.steps.bit_length()

    @property
    def width(self) -> int:
        """w, the dimension of hidden vectors."""
        return len(self._index)

    def at(self, *key: str | int) -> int:
        """The number of a coordinate: `at("st", state)`, `at("pos2", bit)`, `at("start")`, ..."""
        return self._index[key]

    def group(self, *names: str) -> list[int]:
        """All coordinates of these groups; binary numbers come lowest bit first."""
        return [number for key, number in self._index.items() if key[0] in names]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of every coordinate, in order: no two alike, whatever states and symbols are called."""
        return tuple(
            f"{group}[{','.join(map(_quoted, rest))}]" if rest else str(group) for group, *rest in self._index
        )

    def meaning(self, coordinate: int) -> str:
        """A coordinate in words."""
        group, *rest = list(self._index)[coordinate]
        return MEANING[str(group)].format(" and ".join(map(str, rest)))

    @cached_property
    def _index(self) -> dict[Key, int]:
        positions, times = range(self.position_bits), range(self.time_bits)
        keys: list[Key] = [("st", state) for state in self.states]
        keys += [(group, symbol) for group in ("sym1", "sym2") for symbol in self.symbols]
        keys += [(group, bit) for group in ("pos1", "pos2", "pos3") for bit in positions]
        keys += [("start",), ("borrow",), ("carry",), ("stays1",), ("becomes1",)]
        keys += [(group, symbol) for group in ("scr1", "scr2") for symbol in self.symbols]
        keys += [("scr3", bit) for bit in times]
        keys += [("found",), ("given",), ("bit",)]
        keys += [("pair", state, symbol) for state in self.states for symbol in self.symbols]
        return {key: number for number, key in enumerate(keys)}


def _quoted(part: str | int) -> str:
    text = str(part)
    return json.dumps(text) if set(text) & set(',[]":') else text


MEANING = {
    "st": "the machine is in state {}",
    "sym1": "the symbol under the head is {}",
    "sym2": "this step writes {} (Lemma C.1)",
    "pos1": "bit {} of the number of this step",
    "pos2": "bit {} of the head's position before this step",
    "pos3": "bit {} of the head's position after this step (Lemma C.2)",
    "start": "this is step 0, which reads the first symbol and writes nothing",
    "borrow": "the head moves left, and the borrow has come up to this bit (Lemma C.2)",
    "carry": "the head moves right, and the carry has come up to this bit (Lemma C.2)",
    "stays1": "the bit just added was 1 and stays 1 (Lemma C.2)",
    "becomes1": "the bit just added was 0 and becomes 1 (Lemma C.2)",
    "scr1": "the last write at the head's new cell was {} (Claim C.6)",
    "scr2": "the input at the head's new cell is {} (Lemma C.7)",
    "scr3": "bit {} of the number of the last step that wrote at the head's new cell (Claim C.5)",
    "found": "some earlier step wrote at the head's new cell (Claim C.4)",
    "given": "the head's new cell is part of the input (Lemma C.7)",
    "bit": "scratch: the bit being searched for (Claim C.5), later: the cell is blank (Lemma C.8)",
    "pair": "state and symbol are {} (Lemma C.1)",
}
"""What each group of coordinates means, with the place of the paper that it comes from."""
