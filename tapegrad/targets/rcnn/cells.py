"""What one cell of the grid can hold, numbered; both encodings stand on this list (Goel et al., B.1)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

OUTSIDE, MEMORY = 0, 1
"""The padding around the grid, and a cell that memorises (phase -1 in the paper)."""

UNKNOWN, COMPUTE, HEAD = 0, 1, 2
"""The modes of every other cell: phase not yet known, computing, and computing with the head in state
`mode - HEAD`."""


@dataclass(frozen=True)
class Cells:
    """The contents a cell can have, for a machine with these symbols (blank first) and states (start first).

    A cell is work space (the frame) or data (the main grid), holds a symbol, and is in a mode. Numbers
    are `2 + ((work * symbols + symbol) * modes + mode)`, after the two special contents above.
    """

    symbols: int
    states: int

    @property
    def modes(self) -> int:
        return HEAD + self.states

    @property
    def count(self) -> int:
        return 2 + 2 * self.symbols * self.modes

    def number(self, work: bool, symbol: int, mode: int) -> int:
        return 2 + (int(work) * self.symbols + symbol) * self.modes + mode

    @cached_property
    def facts(self) -> NDArray[np.int64]:
        """One row for each number: work, symbol, mode; -1 everywhere for the two special contents."""
        numbers = np.arange(self.count - 2)
        rest, mode = np.divmod(numbers, self.modes)
        work, symbol = np.divmod(rest, self.symbols)
        return np.concatenate([np.full((2, 3), -1), np.stack([work, symbol, mode], axis=1)])

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """Which contents occur: before the machine runs, the frame is blank and data are the first three
        symbols."""
        work, symbol, mode = self.facts.T
        return ~((symbol > np.where(work == 1, 0, 2)) & (mode == UNKNOWN))

    @cached_property
    def stray(self) -> NDArray[np.bool_]:
        """Contents to which the paper's head (B.2) gives neither a sign nor 0: further symbols, and a blank
        with the head of the machine on it. A machine that leaves one in the main grid has no answer."""
        _, symbol, mode = self.facts.T
        return (symbol > 2) | ((symbol == 0) & (mode >= HEAD))


@dataclass(frozen=True)
class Predicate:
    """A question about one cell. `kind` is a name of `_KINDS`; `symbol` and `state` complete it."""

    kind: str
    symbol: int = -1
    state: int = -1

    def holds(self, cells: Cells) -> NDArray[np.bool_]:
        """The answer for every content, by number."""
        return _KINDS[self.kind](cells.facts, np.arange(cells.count), self)

    def contents(self, cells: Cells) -> NDArray[np.int64]:
        """The contents for which it holds; a head's two are known without going through all."""
        if self.kind == "head":
            return np.array([cells.number(work, self.symbol, HEAD + self.state) for work in (False, True)])
        return np.flatnonzero(self.holds(cells))

    def __str__(self) -> str:
        parts = [f"symbol {self.symbol}"] if self.symbol >= 0 else []
        parts += [f"state {self.state}"] if self.state >= 0 else []
        return " ".join([self.kind, *parts])


def _data(facts: NDArray[np.int64]) -> NDArray[np.bool_]:
    return (facts[:, 0] == 0) & (facts[:, 2] == UNKNOWN) & (facts[:, 1] > 0)


def _empty(facts: NDArray[np.int64]) -> NDArray[np.bool_]:
    return (facts[:, 0] == 0) & (facts[:, 2] == UNKNOWN) & (facts[:, 1] == 0)


_KINDS = {
    "work": lambda f, n, p: f[:, 0] == 1,
    "memory": lambda f, n, p: n == MEMORY,
    "compute": lambda f, n, p: f[:, 2] >= COMPUTE,
    "symbol": lambda f, n, p: (f[:, 1] == p.symbol) & (f[:, 2] < HEAD),
    "head": lambda f, n, p: (f[:, 1] == p.symbol) & (f[:, 2] == HEAD + p.state),
    "empty": lambda f, n, p: _empty(f),
    "data": lambda f, n, p: _data(f),
    "open": lambda f, n, p: _empty(f) | _data(f),
    "edge or data": lambda f, n, p: ((f[:, 0] == 1) & (f[:, 2] == UNKNOWN)) | _data(f),
}
"""`empty`: a main cell not yet written. `data`: a memorised one. `symbol`: holds it, without the head."""
