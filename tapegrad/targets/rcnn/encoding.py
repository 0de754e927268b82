"""Both encodings of the contents of a cell: the paper's ternary numbers, and a channel for each fact.

Balanced ternary (Goel et al., B.1): digit 0 work cell, 1 symbol, 2 phase, 3 head, 4... state (0 the start
state, words over -1 and +1 the others). Digits being balanced, "the first digits are these" is an interval of
the line. The paper has three symbols, with the digits 0, 1 and -1. Further ones have a 0 there, like a blank,
and words of their own between head and state: small numbers, that change no question about the memorising
phase.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.machines.many_heads import ManyHeadMachine
from tapegrad.machines.model import MOVES, Cell, GridMachine

# What one cell of the grid can hold, and the filter as clauses over single cells (Goel et al., B.1 and B.2).
#
# Every condition of the paper's `f_msg` and `f_TM` is an AND of questions about one cell each, so the
# filter needs O(s) of them and never a table over whole 3x3 patches. Differences from the text:
# the main grid is framed by work cells, so "first row" and "corner" ask for the frame; a cell takes the
# head whatever its own phase, so the machine need not rest on its first step; a work cell stays one.


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


def clauses_of(machine: GridMachine | ManyHeadMachine) -> list[Clause]:
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


def _roll_out(machine: GridMachine | ManyHeadMachine) -> Iterator[Clause]:
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
            sent = {move: state_of[then] for move, then in rule.heads}
            effect = Effect(symbol=symbol_of[rule.write], head=sent.pop("stay", None))
            yield Clause(f"{name}: write {rule.write!r}", here, effect, rule=True)
            for move, new in sent.items():
                down, right = MOVES[move]
                arrival = (Literal((-down, -right), head),)
                yield Clause(f"{name}: head comes {move}", arrival, Effect(head=new))


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
FORMS = {"practical": "channels", "paper": "ternary"}
"""How a filter of each form encodes a cell."""
CLOSE = 1e-3
"""How far a number may be from the one it stands for: far above rounding, far below a slip."""


def encoding_of(form: str) -> str:
    """How a filter of this form encodes a cell."""
    if form not in FORMS:
        raise InputError(f"a filter has no form {form!r}", advice=f"Choose one of {', '.join(FORMS)}.")
    return FORMS[form]


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
        """The content that each cell is nearest to; some content where a cell has no finite numbers, which is
        a deviation without end."""
        grid = np.nan_to_num(grid)
        if self.name == "channels":
            numbers = np.rint(np.tensordot(self.line(), grid, 1) + 2)
            return np.clip(numbers, 0, self.cells.count - 1).astype(np.int64)
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
        return float(np.abs(np.asarray(grid) - self.encode(self.decode(grid))).max(initial=0.0))
