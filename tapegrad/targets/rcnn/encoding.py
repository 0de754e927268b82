"""Both encodings of the contents of a cell: the paper's ternary numbers, and a channel for each fact.

Balanced ternary (Goel et al., B.1): digit 0 work cell, 1 symbol, 2 phase, 3 head, 4... state (0 the start
state, words over -1 and +1 the others). Digits being balanced, "the first digits are these" is an interval of
the line. The paper has three symbols, with the digits 0, 1 and -1. Further ones have a 0 there, like a blank,
and words of their own between head and state: small numbers, that change no question about the memorising
phase.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.targets.rcnn.cells import COMPUTE, HEAD, MEMORY, OUTSIDE, Cells, Effect

PADDING = 1 / 6
"""Outside the grid: half-way between the digits 0 and 1 of the symbol, so it is no cell's value."""
SIGNS = (0, 1, -1)
"""The symbol digit of the first three symbols."""
FIXED = ("work", "symbol", "phase", "head")


def word_digits(words: int) -> int:
    """Digits for this many words over -1 and +1."""
    return max(1, (words - 1).bit_length()) if words > 0 else 0


def word(number: int, digits: int) -> tuple[int, ...]:
    """The word of this number; below 0 there is none, and every digit is 0."""
    return tuple(0 if number < 0 else 1 if number >> i & 1 else -1 for i in range(digits))


def digit_names(cells: Cells) -> list[str]:
    """What each digit of a cell stands for."""
    symbols = [f"further symbol digit {i}" for i in range(word_digits(cells.symbols - 3))]
    return [*FIXED, *symbols, *(f"state digit {i}" for i in range(word_digits(cells.states - 1)))]


def effect_digits(effect: Effect, cells: Cells) -> tuple[int, ...]:
    """What an effect adds to each digit of the centre cell."""
    sign = SIGNS[effect.symbol] if effect.symbol < 3 else 0
    phase = int(effect.compute) - int(effect.memory)
    symbol = word(effect.symbol - 3, word_digits(cells.symbols - 3))
    state = word((effect.head or 0) - 1, word_digits(cells.states - 1))
    return (int(effect.work), sign, phase, int(effect.head is not None), *symbol, *state)


@lru_cache(maxsize=8)
def cell_values(cells: Cells) -> NDArray[np.float64]:
    """The number that stands for each content of a cell; read-only."""
    place = 3.0 ** -np.arange(len(digit_names(cells)))
    symbols = [Effect(symbol=a) for a in range(cells.symbols)]
    modes = [Effect(), Effect(compute=True), *(Effect(compute=True, head=q) for q in range(cells.states))]
    by_symbol, by_mode = ([effect_digits(e, cells) for e in effects] @ place for effects in (symbols, modes))
    work, symbol, mode = cells.facts.T
    values = work + by_symbol[symbol] + by_mode[mode]
    values[OUTSIDE], values[MEMORY] = PADDING, -1 / 9
    values.setflags(write=False)
    return values


WORK, COMPUTING, MEMORISING, TRACE, SYMBOLS = 0, 1, 2, 3, 4
"""Channels; the symbols but the blank follow from SYMBOLS on, then the states. TRACE is the value of the
memory layer where a cell memorises: 0 in the forward pass, the carrier of the gradient."""


def channel_names(cells: Cells) -> list[str]:
    symbols = [f"symbol {a}" for a in range(1, cells.symbols)]
    return ["work", "computing", "memorising", "trace", *symbols, *(f"head {q}" for q in range(cells.states))]


def cell_vectors(cells: Cells) -> NDArray[np.float32]:
    """The channels of each content of a cell; the padding is all zeros."""
    work, symbol, mode = cells.facts.T
    vectors = np.zeros((cells.count, SYMBOLS + cells.symbols - 1 + cells.states), dtype=np.float32)
    vectors[:, WORK], vectors[:, COMPUTING] = work == 1, mode >= COMPUTE
    vectors[MEMORY, MEMORISING] = 1
    for a in range(1, cells.symbols):
        vectors[:, SYMBOLS + a - 1] = symbol == a
    for q in range(cells.states):
        vectors[:, SYMBOLS + cells.symbols - 1 + q] = mode == HEAD + q
    return vectors


Grid = Float[np.ndarray, "channels rows columns"]

ENCODINGS = ("ternary", "channels")
CLOSE = 1e-3
"""How far a number may be from the one it stands for: far above rounding, far below a slip."""


@dataclass(frozen=True)
class Encoding:
    """`ternary` is the paper's scalar network, `channels` the one with a channel for each fact."""

    name: str
    cells: Cells

    def __post_init__(self) -> None:
        if self.name not in ENCODINGS:
            raise InputError(
                f"there is no encoding {self.name!r}", advice=f"Choose {' or '.join(ENCODINGS)}."
            )

    def table(self) -> NDArray[Any]:
        """The numbers (one row) of each content of a cell."""
        return cell_values(self.cells)[:, None] if self.name == "ternary" else cell_vectors(self.cells)

    def encode(self, numbers: NDArray[np.int64]) -> Grid:
        """The grid whose cells have these contents."""
        return np.ascontiguousarray(np.moveaxis(self.table()[numbers], -1, 0))

    def decode(self, grid: Grid) -> NDArray[np.int64]:
        """The content that each cell is nearest to."""
        if self.name == "channels":
            return np.rint(np.tensordot(self.line(), grid, 1) + 2).astype(np.int64)
        possible = np.flatnonzero(self.cells.possible)
        values = cell_values(self.cells)[possible]
        order = np.argsort(values)
        middles = (values[order][1:] + values[order][:-1]) / 2
        return possible[order][np.searchsorted(middles, grid[0])]

    def line(self) -> NDArray[np.float64]:
        """Weights with which the numbers of a cell add up to one that tells all contents apart. In channels
        it is the content's own number less 2 (`Cells.number`; memorising is 1)."""
        if self.name == "ternary":
            return np.ones(1)
        cells = self.cells
        symbols = cells.modes * np.arange(1, cells.symbols)
        fixed = [cells.symbols * cells.modes, 1, -1, 0]
        assert len(fixed) == SYMBOLS
        return np.array([*fixed, *symbols, *range(1, cells.states + 1)], dtype=np.float64)

    def deviation(self, grid: Grid) -> float:
        """Largest distance of a number from the one it stands for."""
        numbers = np.clip(self.decode(grid), 0, self.cells.count - 1)
        return float(np.abs(np.asarray(grid) - self.encode(numbers)).max(initial=0.0))
