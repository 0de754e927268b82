"""Machines with one head on one two-dimensional tape, infinite in all four directions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tapegrad.errors import SourceError
from tapegrad.machines.model import unknown_symbol

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


@dataclass(frozen=True)
class GridConfiguration:
    """All that a grid machine knows between two steps; `cells` holds the non-blank ones only."""

    state: str
    cells: Mapping[Cell, str]
    head: Cell


@dataclass(frozen=True)
class GridMachine:
    """A deterministic machine on a grid. It halts, without taking a step, where `rules` has no entry."""

    rules: Mapping[tuple[str, str], GridRule]
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
            if rule.move not in MOVES:
                raise SourceError(
                    f"{rule.move!r} is no move",
                    where=f"rule for state {state!r} reading {read!r}",
                    advice=f"Moves are {', '.join(MOVES)}.",
                )
            states.update(dict.fromkeys([state, rule.state]))
            alphabet.update(dict.fromkeys([read, rule.write]))
        object.__setattr__(self, "rules", MappingProxyType(rules))
        object.__setattr__(self, "states", tuple(states))
        object.__setattr__(self, "alphabet", tuple(alphabet))

    def __reduce__(self) -> tuple[Any, ...]:
        """For `copy` and for users who pickle: the fields, as a read-only view of rules cannot be copied."""
        fields = self.start_state, self.blank, self.name, self.alphabet, self.states
        return GridMachine, (dict(self.rules), *fields)

    def start(
        self, rows: Sequence[Sequence[str]] | GridConfiguration = (), head: Cell = (0, 0)
    ) -> GridConfiguration:
        """The first configuration: `rows` laid out from cell (0, 0) downwards and to the right. A
        configuration may be given in place of the rows, to start from anywhere."""
        if isinstance(rows, GridConfiguration):
            return rows
        cells, known = {}, frozenset(self.alphabet)
        for r, row in enumerate(rows):
            for c, symbol in enumerate(row):
                if symbol not in known:
                    where = f"row {r + 1}, column {c + 1}"
                    raise unknown_symbol(self.name, symbol, where, self.alphabet)
                if symbol != self.blank:
                    cells[r, c] = symbol
        return GridConfiguration(self.start_state, cells, head)

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
