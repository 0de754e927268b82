"""What one cell of the grid can hold, and the filter as clauses over single cells (Goel et al., B.1 and B.2).

Every condition of the paper's `f_msg` and `f_TM` is an AND of questions about one cell each, so the
filter needs O(s) of them and never a table over whole 3x3 patches. Differences from the text:
the main grid is framed by work cells, so "first row" and "corner" ask for the frame; a cell takes the
head whatever its own phase, so the machine need not rest on its first step; a work cell stays one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tapegrad.machines.grid import MOVES, Cell, GridMachine

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


HERE: Cell = (0, 0)
ABOVE, BELOW, BEFORE, AFTER = (-1, 0), (1, 0), (0, -1), (0, 1)


@dataclass(frozen=True)
class Literal:
    """The cell at this offset satisfies the predicate."""

    at: Cell
    predicate: Predicate


@dataclass(frozen=True)
class Effect:
    """What a clause that holds contributes to the new content of the centre cell."""

    work: bool = False
    symbol: int = 0
    compute: bool = False
    memory: bool = False
    head: int | None = None


@dataclass(frozen=True)
class Clause:
    """If at least `needs` of `when` hold and none of `unless`, the effect. With `passes` the derivative by
    the centre cell is 1 there; everywhere else it is 0."""

    reason: str
    when: tuple[Literal, ...]
    effect: Effect
    unless: tuple[Literal, ...] = ()
    passes: bool = False
    rule: bool = False
    """Whether it is the centre's part of a rule of the machine; none of them holds once it has halted."""
    any: bool = False

    @property
    def needs(self) -> int:
        return 1 if self.any else len(self.when)


def clauses_of(machine: GridMachine) -> list[Clause]:
    """The filter that runs the machine, and before that writes and spreads messages."""
    return [*_messages(len(machine.alphabet)), *_roll_out(machine)]


def _messages(symbols: int) -> Iterator[Clause]:
    memory, work = Predicate("memory"), Predicate("work")
    yield Clause("a work cell stays one", (Literal(HERE, work),), Effect(work=True))
    beside = (Literal(ABOVE, memory), Literal(BELOW, memory))
    for symbol in range(1, symbols):
        here = Literal(HERE, Predicate("symbol", symbol=symbol))
        yield Clause(f"symbol {symbol} stays", (here,), Effect(symbol=symbol), unless=beside)
    empty, edge = Literal(HERE, Predicate("empty")), Literal(ABOVE, Predicate("edge or data"))
    yield Clause("first empty row: write here", (empty, edge), Effect(memory=True), passes=True)
    yield Clause(
        "a memorising cell passes the gradient", (Literal(HERE, memory),), Effect(memory=True), passes=True
    )
    for at, side in ((ABOVE, "above"), (BELOW, "below")):
        both = (Literal(HERE, Predicate("open")), Literal(at, memory))
        yield Clause(f"memorising heard from {side}", both, Effect(memory=True))
    corner = (Literal(HERE, Predicate("data")), Literal(AFTER, work), Literal(BELOW, work))
    yield Clause("bottom right cell is written: compute", corner, Effect(compute=True, head=0))
    heard = tuple(Literal(at, Predicate("compute")) for at in (HERE, ABOVE, BELOW, BEFORE, AFTER))
    yield Clause("computing heard", heard, Effect(compute=True), any=True)


def _roll_out(machine: GridMachine) -> Iterator[Clause]:
    symbol_of = {symbol: i for i, symbol in enumerate(machine.alphabet)}
    state_of = {state: i for i, state in enumerate(machine.states)}
    for state, q in state_of.items():
        for symbol, a in symbol_of.items():
            head = Predicate("head", symbol=a, state=q)
            here = (Literal(HERE, head),)
            rule = machine.rules.get((state, symbol))
            if rule is None:
                yield Clause(f"halted in {state!r} on {symbol!r}", here, Effect(symbol=a, head=q))
                continue
            name = f"{state!r} on {symbol!r}"
            written, new = symbol_of[rule.write], state_of[rule.state]
            stays = rule.move == "stay"
            effect = Effect(symbol=written, head=new if stays else None)
            yield Clause(f"{name}: write {rule.write!r}", here, effect, rule=True)
            if not stays:
                down, right = MOVES[rule.move]
                arrival = (Literal((-down, -right), head),)
                yield Clause(f"{name}: head comes {rule.move}", arrival, Effect(head=new))
