"""Machines on a grid whose heads send out further heads. Many work at once, and none knows of the others but
by the symbols that it finds.

A network that applies one filter to every cell moves a hundred heads in the time of one: what `f_TM` (Goel et
al., B.2) asks of a cell, it asks of every cell. A rule with several heads adds a clause for each, of the same
form. So this is the same kind of network, with weights from the same set, and takes fewer layers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tapegrad.errors import Refused, SourceError
from tapegrad.machines.builder import ControlFlow
from tapegrad.machines.model import MOVES, Cell, OnGrid
from tapegrad.machines.program import GONE, Fork, Vanish


@dataclass(frozen=True)
class HeadsRule:
    """What a head does: write this symbol; then a head goes on for each of these moves (a key of `MOVES`) and
    states. With none of them it is gone."""

    write: str
    heads: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class HeadsConfiguration:
    """All that such a machine knows between two steps: the cells that are not blank, and the state of the
    head on each cell that has one."""

    cells: Mapping[Cell, str]
    heads: Mapping[Cell, str]


@dataclass(frozen=True)
class ManyHeadMachine(OnGrid):
    """A deterministic machine on a grid. A head halts where `rules` has no entry, and the machine where all
    its heads do. Two heads that come to one cell are a mistake of the machine, which `step` reports."""

    rules: Mapping[tuple[str, str], HeadsRule]

    def __post_init__(self) -> None:
        super().__post_init__()
        for (state, read), rule in self.rules.items():
            if len(dict(rule.heads)) < len(rule.heads):
                raise SourceError(
                    "two heads make the same move", where=f"rule for state {state!r} reading {read!r}"
                )

    def start(self, rows: Sequence[Sequence[str]] = (), head: Cell = (0, 0)) -> HeadsConfiguration:
        """The first configuration, with one head: `rows` laid out from cell (0, 0) downwards and to the
        right."""
        return HeadsConfiguration(self.laid_out(rows), {head: self.start_state})

    def step(self, configuration: HeadsConfiguration) -> HeadsConfiguration | None:
        """The next configuration, or None if every head has halted."""
        cells, heads, moved = dict(configuration.cells), {}, False
        for (row, column), state in configuration.heads.items():
            rule = self.rules.get((state, cells.get((row, column), self.blank)))
            moved |= rule is not None
            if rule is not None and rule.write != self.blank:
                cells[row, column] = rule.write
            elif rule is not None:
                cells.pop((row, column), None)
            for move, then in (("stay", state),) if rule is None else rule.heads:
                to = row + MOVES[move][0], column + MOVES[move][1]
                if to in heads:
                    raise Refused(f"two heads meet, in states {heads[to]!r} and {then!r}", where=f"cell {to}")
                heads[to] = then
        return HeadsConfiguration(cells, heads) if moved else None

    def run(self, configuration: HeadsConfiguration) -> Iterator[HeadsConfiguration]:
        """Every configuration from the given one to the halt, in order."""
        current: HeadsConfiguration | None = configuration
        while current is not None:
            yield current
            current = self.step(current)


class ManyHeadBuilder(ControlFlow):
    """A machine with many heads, written as a program with the words of `GridBuilder` and two more.

    b = ManyHeadBuilder("erase", symbols="01", blank=".")   # a head for each row
    with b.until("."):
        b.fork("right", "along")
        b.write(".")
        b.move("down")
    b.halt()
    b.state("along")
    with b.until("."):
        b.write(".")
        b.move("right")
    b.vanish()
    machine = b.machine()
    """

    directions = tuple(MOVES)

    def __init__(self, name: str, *, symbols: Iterable[str] = (), blank: str = "0") -> None:
        super().__init__(name, blank, symbols, tapes=1)

    def fork(self, direction: str, state: str) -> None:
        """Sends out another head, one cell in this direction, that goes on at the state of this name. It sets
        out with the next move of this head."""
        self._require_direction(direction)
        self._wanted.setdefault(state)
        self._program.add(Fork(direction, self._place(state)))

    def vanish(self) -> None:
        """The head is gone."""
        self._program.add(Vanish())

    def machine(self) -> ManyHeadMachine:
        """The machine that runs what has been written so far."""
        table = self._table()
        rules = {
            (state, read): HeadsRule(
                step.write[0],
                (*(((step.moves[0], step.state),) if step.state != GONE else ()), *step.forks),
            )
            for (state, (read,)), step in table.rules.items()
        }
        return ManyHeadMachine(rules, table.start_state, table.alphabet[0], self.name, table.alphabet)
