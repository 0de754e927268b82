"""Turing machines with any number of two-way infinite tapes, and machines on a grid, as immutable values."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tapegrad.errors import InputError, Refused, SourceError

LEFT, STAY, RIGHT = -1, 0, 1

Symbols = tuple[str, ...]
"""One symbol for each tape."""

Word = str | Sequence[str]
"""The content of one tape from cell 0 rightwards: a string of one-character symbols, or a list of symbols."""


@dataclass(frozen=True)
class Rule:
    """What to do: write these symbols, move each head by -1, 0 or +1, enter this state."""

    write: Symbols
    moves: tuple[int, ...]
    state: str


@dataclass(frozen=True)
class Configuration:
    """All that a machine knows between two steps. `tapes` hold the non-blank cells only, so equal tapes
    compare equal however they came about."""

    state: str
    tapes: tuple[Mapping[int, str], ...]
    heads: tuple[int, ...]


@dataclass(frozen=True)
class TuringMachine:
    """A deterministic machine. It halts, without taking a step, where `rules` has no entry for the
    state and the symbols under the heads; accepting and rejecting states never have entries."""

    rules: Mapping[tuple[str, Symbols], Rule]
    start_state: str
    blank: str = "_"
    accept: frozenset[str] = frozenset()
    reject: frozenset[str] = frozenset()
    name: str = "machine"
    alphabet: Symbols = ()
    """Every symbol, blank first, then in order of first appearance; symbols that only occur in inputs
    may be given here, the rest is filled in."""
    states: tuple[str, ...] = ()
    """Every state, the start state first; filled in likewise."""
    tapes: int = field(default=0)
    """Number of tapes; filled in from the rules."""

    def __post_init__(self) -> None:
        rules = dict(self.rules)
        if not rules and not self.tapes:
            object.__setattr__(self, "tapes", 1)
        tapes = self.tapes or len(next(iter(rules))[1])
        states = dict.fromkeys([self.start_state, *self.states])
        alphabet = dict.fromkeys([self.blank, *self.alphabet])
        for (state, read), rule in rules.items():
            _check_rule(state, read, rule, tapes, self.accept | self.reject)
            states.setdefault(state)
            states.setdefault(rule.state)
            for symbol in (*read, *rule.write):
                alphabet.setdefault(symbol)
        for state in sorted(self.accept | self.reject):
            states.setdefault(state)
        if both := self.accept & self.reject:
            raise SourceError(f"state {min(both)!r} both accepts and rejects")
        object.__setattr__(self, "rules", MappingProxyType(rules))
        object.__setattr__(self, "states", tuple(states))
        object.__setattr__(self, "alphabet", tuple(alphabet))
        object.__setattr__(self, "tapes", tapes)

    def __reduce__(self) -> tuple[Any, ...]:
        """For `copy` and for users who pickle: the fields, as a read-only view of rules cannot be copied."""
        named = self.start_state, self.blank, self.accept, self.reject, self.name
        return TuringMachine, (dict(self.rules), *named, self.alphabet, self.states, self.tapes)

    def start(self, *words: Word | Configuration) -> Configuration:
        """The first configuration: word i on tape i from cell 0 on, every head at 0. A configuration may be
        given in place of the words, to start from anywhere."""
        if len(words) == 1 and isinstance(words[0], Configuration):
            return words[0]
        if len(words) > self.tapes:
            raise InputError(
                f"{len(words)} input words for a machine with {self.tapes} tape(s)",
                advice="Give at most one word for each tape.",
            )
        padded = (*words, *([""] * (self.tapes - len(words))))
        tapes = tuple(self._tape(word) for word in padded if not isinstance(word, Configuration))
        return Configuration(self.start_state, tapes, (0,) * self.tapes)

    def _tape(self, word: Word) -> dict[int, str]:
        known = frozenset(self.alphabet)
        for cell, symbol in enumerate(word):
            if symbol not in known:
                raise unknown_symbol(self.name, symbol, f"input position {cell + 1}", self.alphabet)
        return {cell: symbol for cell, symbol in enumerate(word) if symbol != self.blank}

    def read(self, configuration: Configuration) -> Symbols:
        """The symbols under the heads."""
        pairs = zip(configuration.tapes, configuration.heads, strict=True)
        return tuple(tape.get(head, self.blank) for tape, head in pairs)

    def step(self, configuration: Configuration) -> Configuration | None:
        """The next configuration, or None if the machine has halted."""
        rule = self.rules.get((configuration.state, self.read(configuration)))
        if rule is None:
            return None
        tapes = tuple(
            _written(tape, head, symbol, self.blank)
            for tape, head, symbol in zip(configuration.tapes, configuration.heads, rule.write, strict=True)
        )
        heads = tuple(h + m for h, m in zip(configuration.heads, rule.moves, strict=True))
        return Configuration(rule.state, tapes, heads)

    def run(self, configuration: Configuration) -> Iterator[Configuration]:
        """Every configuration from the given one to the halt, in order. This is the oracle that every
        network is checked against: it is meant to be read, not to be fast."""
        current: Configuration | None = configuration
        while current is not None:
            yield current
            current = self.step(current)


def unknown_symbol(machine: str, symbol: str, where: str, alphabet: Symbols) -> InputError:
    """What to say of an input that holds a symbol which the machine of this name does not have."""
    listed, others = " ".join(map(repr, alphabet[:50])), len(alphabet) - 50
    more = f" and {others:,} more" if others > 0 else ""
    return InputError(
        f"the machine {machine!r} has no symbol {symbol!r}",
        where=where,
        advice=f"Its symbols are {listed}{more}.",
    )


def _written(tape: Mapping[int, str], cell: int, symbol: str, blank: str) -> Mapping[int, str]:
    if tape.get(cell, blank) == symbol:
        return tape
    changed = dict(tape)
    if symbol == blank:
        del changed[cell]
    else:
        changed[cell] = symbol
    return changed


def _check_rule(state: str, read: Symbols, rule: Rule, tapes: int, final: frozenset[str]) -> None:
    if state in final:
        problem = f"state {state!r} accepts or rejects, so it halts, yet it has a rule"
        advice = "Remove the rule, or make the state an ordinary one."
    elif not len(read) == len(rule.write) == len(rule.moves) == tapes:
        problem = f"a machine with {tapes} tape(s) needs {tapes} symbol(s) read, written and {tapes} move(s)"
        advice = ""
    elif not _MOVES.issuperset(rule.moves):
        problem, advice = f"moves are -1, 0 or +1, not {rule.moves}", ""
    else:
        return
    raise SourceError(problem, where=f"rule for state {state!r} reading {' '.join(read)!r}", advice=advice)


_MOVES = frozenset({LEFT, STAY, RIGHT})


# Fresh names for new states and symbols, and a bound on the number of new rules.


MOST_RULES = 2_000_000
"""A table with more entries than this fills gigabytes as Python objects; no target could carry it."""


class Names:
    """Gives every key a name of its own: the wished one, or with a number where that is taken. The names
    depend on nothing but the order of the requests, so the same machine comes out every time."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._names: dict[Hashable, str] = {}
        self._count: dict[str, int] = {}

    def __call__(self, key: Hashable, wish: str) -> str:
        """The name of `key`; `wish` counts only when the key is new."""
        if key not in self._names:
            name = wish
            while name in self._taken:
                self._count[wish] = self._count.get(wish, 1) + 1
                name = f"{wish}.{self._count[wish]}"
            self._taken.add(name)
            self._names[key] = name
        return self._names[key]


def refuse_if_huge(rules: int, what: str, advice: str) -> None:
    """Stops before a table is built that nothing could use."""
    if rules > MOST_RULES:
        raise Refused(f"{what} would need {rules:,} rules; the limit is {MOST_RULES:,}", advice=advice)


MOST_ON_GRID = 1 << 13
"""States of a machine on the grid that was made of one with several tapes. A filter has some 40 weights for
each pair of states, so that none is built of more than a fourth of this; the ternary encoding has fewer."""


def refuse_many_states(name: str, states: int, rules: int, tapes: int) -> None:
    """Refuses a machine on several tapes that is too large for one head."""
    sweeping = tapes * rules  # for each rule a sweep that does it, tape by tape
    if sweeping > MOST_ON_GRID:
        raise Refused(
            f"the machine {name!r} has {states:,} states and {rules:,} rules on {tapes} tapes: with one head "
            f"it would have at least {sweeping:,} states, and the limit is {MOST_ON_GRID:,}",
            advice="Use the target `tape`, whose machines have several heads.",
        )


# Machines on one two-dimensional tape, infinite in all four directions.


Cell = tuple[int, int]
"""Row and column; rows count downwards, columns to the right."""

MOVES: Mapping[str, Cell] = MappingProxyType(
    {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1), "stay": (0, 0)}
)


@dataclass(frozen=True)
class GridRule:
    """What to do: write this symbol, make this move (a key of `MOVES`), enter this state."""

    write: str
    move: str
    state: str

    @property
    def heads(self) -> tuple[tuple[str, str], ...]:
        """Move and state of every head that goes on from here: of one."""
        return ((self.move, self.state),)


@dataclass(frozen=True)
class GridConfiguration:
    """All that a grid machine knows between two steps; `cells` holds the non-blank ones only."""

    state: str
    cells: Mapping[Cell, str]
    head: Cell


@dataclass(frozen=True)
class OnGrid:
    """What all machines on a grid have in common: rules that say what is written, and how `heads` go on."""

    rules: Mapping[tuple[str, str], Any]
    start_state: str
    blank: str = "0"
    name: str = "grid machine"
    alphabet: tuple[str, ...] = ()
    states: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rules = dict(self.rules)
        states = dict.fromkeys([self.start_state, *self.states])
        alphabet = dict.fromkeys([self.blank, *self.alphabet])
        for (state, read), rule in rules.items():
            states.setdefault(state)
            for move, then in rule.heads:
                if move not in MOVES:
                    raise SourceError(
                        f"{move!r} is no move",
                        where=f"rule for state {state!r} reading {read!r}",
                        advice=f"Moves are {', '.join(MOVES)}.",
                    )
                states.setdefault(then)
            alphabet.update(dict.fromkeys([read, rule.write]))
        object.__setattr__(self, "rules", MappingProxyType(rules))
        object.__setattr__(self, "states", tuple(states))
        object.__setattr__(self, "alphabet", tuple(alphabet))

    def __reduce__(self) -> tuple[Any, ...]:
        """For `copy` and for users who pickle: the fields, as a read-only view of rules cannot be copied."""
        fields = self.start_state, self.blank, self.name, self.alphabet, self.states
        return type(self), (dict(self.rules), *fields)

    def laid_out(self, rows: Sequence[Sequence[str]]) -> dict[Cell, str]:
        """The cells of these rows that are not blank, from cell (0, 0) downwards and to the right."""
        cells, known = {}, frozenset(self.alphabet)
        for r, row in enumerate(rows):
            for c, symbol in enumerate(row):
                if symbol not in known:
                    where = f"row {r + 1}, column {c + 1}"
                    raise unknown_symbol(self.name, symbol, where, self.alphabet)
                if symbol != self.blank:
                    cells[r, c] = symbol
        return cells


@dataclass(frozen=True)
class GridMachine(OnGrid):
    """A deterministic machine on a grid, with one head. It halts, without taking a step, where `rules` has no
    entry."""

    rules: Mapping[tuple[str, str], GridRule]

    def start(
        self, rows: Sequence[Sequence[str]] | GridConfiguration = (), head: Cell = (0, 0)
    ) -> GridConfiguration:
        """The first configuration: `rows` laid out from cell (0, 0) downwards and to the right. A
        configuration may be given in place of the rows, to start from anywhere."""
        if isinstance(rows, GridConfiguration):
            return rows
        return GridConfiguration(self.start_state, self.laid_out(rows), head)

    def step(self, configuration: GridConfiguration) -> GridConfiguration | None:
        """The next configuration, or None if the machine has halted."""
        head = configuration.head
        read = configuration.cells.get(head, self.blank)
        rule = self.rules.get((configuration.state, read))
        if rule is None:
            return None
        cells = configuration.cells
        if rule.write != read:
            cells = {**cells, head: rule.write}
            if rule.write == self.blank:
                del cells[head]
        down, right = MOVES[rule.move]
        return GridConfiguration(rule.state, cells, (head[0] + down, head[1] + right))

    def run(self, configuration: GridConfiguration) -> Iterator[GridConfiguration]:
        """Every configuration from the given one to the halt, in order: the oracle for nets on grids."""
        current: GridConfiguration | None = configuration
        while current is not None:
            yield current
            current = self.step(current)
