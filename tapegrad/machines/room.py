"""How much tape a run needs, learnt from the machine itself before a network is built for it."""

from dataclasses import dataclass

import numpy as np

from tapegrad.machines.compiled import HALTED, MAX_CELLS, NEEDS_ROOM, Tapes, run
from tapegrad.machines.model import (
    Cell,
    Configuration,
    GridConfiguration,
    GridMachine,
    Names,
    TuringMachine,
)

MOST_READINGS = 1 << 24
"""Machines with more states times readings are not run ahead."""


@dataclass(frozen=True)
class Ahead:
    """What a run takes: its steps, and the cells from the first to the last that its input lies on or a head
    comes to."""

    steps: int
    halts: bool
    cells: range

    @property
    def window(self) -> int:
        """Cells of a tape that holds them all, cell 0 in the middle: n are -(n // 2) to (n - 1) // 2."""
        return max(2, -2 * self.cells.start, 2 * self.cells.stop - 1)


def look_ahead(machine: TuringMachine, start: Configuration, steps: int) -> Ahead | None:
    """Runs the machine for at most so many steps; None where its table is too large for that."""
    if len(machine.states) * (len(machine.alphabet) + 1) ** machine.tapes > MOST_READINGS:
        return None
    engine = _Marking(machine, start)
    taken, outcome = 0, NEEDS_ROOM
    while outcome != HALTED and taken < steps:
        more, outcome = engine.advance(steps - taken)
        taken += more
        if outcome == NEEDS_ROOM:
            engine.grow()
    cells = np.concatenate([engine.heads, np.flatnonzero(engine.cells.any(axis=0))]) - engine.origin
    return Ahead(taken, outcome == HALTED, range(int(cells.min()), int(cells.max()) + 1))


def look_ahead_on_grid(
    machine: GridMachine, start: GridConfiguration, steps: int
) -> tuple[Ahead, list[Cell]]:
    """The same on a grid, where rows and columns are in one range; and the cells that were touched. Untouched
    ones hold a symbol of their own, which the machine takes for the blank, and every step writes."""
    untouched = Names(machine.alphabet)("", "untouched")
    as_blank = {(q, untouched): rule for (q, read), rule in machine.rules.items() if read == machine.blank}
    marking = GridMachine({**machine.rules, **as_blank}, machine.start_state, untouched, machine.name)
    ahead = run(marking, start, steps)
    touched = [start.head, *start.cells, ahead.final.head, *ahead.final.cells]
    places = [place for cell in touched for place in cell]
    return Ahead(ahead.steps, ahead.halted, range(min(places), max(places) + 1)), touched


class _Marking(Tapes):
    """Tapes whose untouched cells hold a symbol of their own, which the machine takes for the blank: what is
    left of it at the end was never touched. It is symbol 0, and all others follow it."""

    def __init__(self, machine: TuringMachine, start: Configuration) -> None:
        super().__init__(machine, start, MAX_CELLS)
        symbols, places = len(machine.alphabet), np.arange(machine.tapes)[::-1]
        before, after = symbols**machine.tapes, (symbols + 1) ** machine.tapes
        seen = np.arange(after)[:, None] // (symbols + 1) ** places % (symbols + 1)
        taken_for = np.maximum(seen - 1, 0) @ symbols**places
        entries = (np.arange(len(machine.states))[:, None] * before + taken_for).ravel()
        following = self.following[entries]
        self.following = np.where(following < 0, -1, following // before * after)
        self.write, self.moves = self.write[entries] + 1, self.moves[entries]
        self.cells = self.cells + (self.cells > 0)
        self.base = self.base // before * after
        self.symbols = symbols + 1
