"""The interpreter for long runs: rules as flat arrays of integers, tapes as arrays that grow, a loop in
machine code. It ends where `TuringMachine.run` and `GridMachine.run` end, some hundred times sooner.
"""

import math
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegrad._jit import njit
from tapegrad.errors import InputError, Refused
from tapegrad.machines.model import MOVES, Cell, Configuration, GridConfiguration, GridMachine, TuringMachine

# The two inner loops of the compiled interpreter.
#
# A head moves by at most one cell a step. So where it is n cells from the nearest edge of the array, n steps
# need no check of the edges; the loops go from check to check, and stop with NEEDS_ROOM closer to an edge
# than `guard`. A table's entry for a state and what is read is at state * (number of readings) + reading;
# `base` is the first part, kept multiplied out, and -1 as the `following` base marks a missing rule.


RUNNING, HALTED, NEEDS_ROOM = 0, 1, 2


@njit(nogil=True)
def plane_steps(cells, head, base, following, write, offset, width, limit, guard):  # pragma: no cover
    """Up to `limit` steps of one head on a plane stored row by row; a single row is a tape. Indices are
    unsigned, and offsets to the left or upwards wrap around, so that numba need not look for negative
    indices: that alone makes the loop half as fast again."""
    height = cells.size // width
    position, entry_base = np.uint64(head), np.uint64(base)
    steps = 0
    while steps < limit:
        row, column = divmod(np.int64(position), width)
        slack = min(column, width - 1 - column)
        if height > 1:
            slack = min(slack, row, height - 1 - row)
        if slack < guard:
            return steps, np.int64(position), np.int64(entry_base), NEEDS_ROOM
        slack = min(slack, limit - steps)
        for taken in range(slack):
            entry = entry_base + np.uint64(cells[position])
            next_base = following[entry]
            if next_base < 0:
                return steps + taken, np.int64(position), np.int64(entry_base), HALTED
            cells[position] = write[entry]
            position += offset[entry]
            entry_base = np.uint64(next_base)
        steps += slack
    return steps, np.int64(position), np.int64(entry_base), RUNNING


@njit(nogil=True)
def tapes_steps(cells, heads, base, following, write, moves, symbols, limit, guard):  # pragma: no cover
    """Up to `limit` steps of a machine with a row of `cells` for each tape; `heads` changes in place."""
    tapes, width = cells.shape
    steps = 0
    while steps < limit:
        slack = limit - steps
        for tape in range(tapes):
            room = min(heads[tape], width - 1 - heads[tape])
            if room < guard:
                return steps, base, NEEDS_ROOM
            slack = min(slack, room)
        for taken in range(slack):
            reading = 0
            for tape in range(tapes):
                reading = reading * symbols + np.int64(cells[tape, heads[tape]])
            entry = base + reading
            next_base = following[entry]
            if next_base < 0:
                return steps + taken, base, HALTED
            for tape in range(tapes):
                cells[tape, heads[tape]] = write[entry, tape]
                heads[tape] += moves[entry, tape]
            base = next_base
        steps += slack
    return steps, base, RUNNING


# Machines and configurations as the arrays that the compiled loops work on, and back again.
#
# A tape is a plane with a single row, so machines on one tape and on a grid share `Plane`.


TAPE_GUARD, GRID_GUARD = 4096, 64
"""Cells kept free beyond the head, so that the loops seldom have to look at the edges."""
MAX_ENTRIES = 1 << 26
"""Entries of a flat table: states times readings."""


class _Coding:
    """States and symbols as numbers. The blank is symbol 0."""

    def __init__(self, machine: TuringMachine | GridMachine, readings: int, max_cells: int) -> None:
        self.machine = machine
        self.max_cells = max_cells
        self.readings = readings
        self.entries = len(machine.states) * readings
        if self.entries > MAX_ENTRIES:
            raise Refused(
                f"the table of {machine.name!r} takes {self.entries:,} entries, more than {MAX_ENTRIES:,}",
                advice="Use the plain interpreter, or fewer symbols or tapes.",
            )
        self.symbol = {symbol: number for number, symbol in enumerate(machine.alphabet)}
        self.base = {state: number * readings for number, state in enumerate(machine.states)}
        self.cell_type = np.min_scalar_type(len(machine.alphabet) - 1)

    def code(self, symbol: str) -> int:
        if symbol not in self.symbol:
            raise InputError(f"the machine {self.machine.name!r} has no symbol {symbol!r}")
        return self.symbol[symbol]

    def state(self, base: int) -> str:
        return self.machine.states[base // self.readings]

    def room(self, *shape: int) -> np.ndarray:
        """Blank cells, if they are not too many."""
        if (count := math.prod(shape)) > self.max_cells:
            raise Refused(
                f"the machine {self.machine.name!r} needs {count:,} cells, more than {self.max_cells:,}",
                advice="Give it fewer steps, or more cells.",
            )
        return np.zeros(shape, self.cell_type)


FEW = 1000
"""Steps at the beginning of a run that the same loop takes in Python: to load machine code takes as long as a
hundred million steps."""


class Engine(ABC):
    """A run by arrays: the first few steps in Python, all others compiled."""

    taken = 0

    def advance(self, limit: int) -> tuple[int, int]:
        """Take up to `limit` steps; how many it took and why it stopped."""
        steps, outcome = 0, RUNNING
        while outcome == RUNNING and steps < limit:
            more, outcome = self._some_steps(limit - steps)
            steps += more
            self.taken += more
        return steps, outcome

    @abstractmethod
    def _some_steps(self, limit: int) -> tuple[int, int]:
        """At most so many of them, by one of the two loops."""

    def _loop(self, compiled: Any, limit: int) -> tuple[Any, int]:
        """The loop to go on with, and how many steps it may take."""
        plain = getattr(compiled, "py_func", None)  # none where numba was told to compile nothing
        if plain is None or self.taken >= FEW:
            return compiled, limit
        return plain, min(limit, FEW - self.taken)


class Plane(Engine):
    """One head on a grid, or on a single tape."""

    def __init__(
        self,
        machine: TuringMachine | GridMachine,
        start: Configuration | GridConfiguration,
        max_cells: int,
    ) -> None:
        self.coding = _Coding(machine, len(machine.alphabet), max_cells)
        self.on_grid = isinstance(machine, GridMachine)
        self.guard = GRID_GUARD if self.on_grid else TAPE_GUARD
        cells, head = _as_plane(start)
        top, left = (min(cell[i] for cell in (head, *cells)) for i in (0, 1))
        bottom, right = (max(cell[i] for cell in (head, *cells)) for i in (0, 1))
        above = 4 * self.guard if self.on_grid else 0
        beside = 4 * self.guard
        self.origin = (top - above, left - beside)
        self.cells = self.coding.room(bottom - top + 1 + 2 * above, right - left + 1 + 2 * beside)
        for (row, column), symbol in cells.items():
            self.cells[row - self.origin[0], column - self.origin[1]] = self.coding.code(symbol)
        self.row, self.column = head[0] - self.origin[0], head[1] - self.origin[1]
        self.base = self.coding.base[start.state]
        self.following, self.write, self.moves = _kept(Plane, machine, self._table)
        self._set_offsets()

    def _table(self) -> "_Table":
        """For every state and symbol the next state's entry, the symbol to write, and the move."""
        coding = self.coding
        following = np.full(coding.entries, -1, np.int64)
        write = np.zeros(coding.entries, coding.cell_type)
        moves = np.zeros((coding.entries, 2), np.int64)
        for state, read, written, move, target in _plane_rules(coding.machine):
            entry = coding.base[state] + coding.symbol[read]
            following[entry] = coding.base[target]
            write[entry] = coding.symbol[written]
            moves[entry] = move
        return following, write, moves

    def _set_offsets(self) -> None:
        """Moves as distances in the flattened array, for its present width; negative ones wrap around."""
        self.offset = (self.moves @ np.array([self.cells.shape[1], 1])).astype(np.uint64)

    def _some_steps(self, limit: int) -> tuple[int, int]:
        width = self.cells.shape[1]
        loop, limit = self._loop(plane_steps, limit)
        with np.errstate(over="ignore"):  # offsets wrap around
            steps, position, base, outcome = loop(
                self.cells.ravel(),
                self.row * width + self.column,
                self.base,
                self.following,
                self.write,
                self.offset,
                width,
                limit,
                self.guard,
            )
        self.row, self.column = divmod(int(position), width)
        self.base = int(base)
        return int(steps), outcome

    def grow(self) -> None:
        """Double the array on the sides that the head is near."""
        height, width = self.cells.shape
        near = 2 * self.guard
        above = height if self.on_grid and self.row < near else 0
        below = height if self.on_grid and self.row > height - near else 0
        left = width if self.column < near else 0
        right = width if self.column > width - near else 0
        larger = self.coding.room(above + height + below, left + width + right)
        larger[above : above + height, left : left + width] = self.cells
        self.cells = larger
        self.row, self.column = self.row + above, self.column + left
        self.origin = (self.origin[0] - above, self.origin[1] - left)
        self._set_offsets()

    def configuration(self) -> Configuration | GridConfiguration:
        """Where the machine stands, in its own terms."""
        alphabet = self.coding.machine.alphabet
        top, left = self.origin
        rows, columns = np.nonzero(self.cells)
        symbols = [alphabet[code] for code in self.cells[rows, columns].tolist()]
        state = self.coding.state(self.base)
        across = [column + left for column in columns.tolist()]
        if self.on_grid:
            places = zip((row + top for row in rows.tolist()), across, strict=True)
            cells = dict(zip(places, symbols, strict=True))
            return GridConfiguration(state, cells, (self.row + top, self.column + left))
        return Configuration(state, (dict(zip(across, symbols, strict=True)),), (self.column + left,))


def _as_plane(start: Configuration | GridConfiguration) -> tuple[Mapping[Cell, str], Cell]:
    if isinstance(start, GridConfiguration):
        return start.cells, start.head
    return {(0, cell): symbol for cell, symbol in start.tapes[0].items()}, (0, start.heads[0])


def _plane_rules(machine: TuringMachine | GridMachine) -> Iterator[tuple[str, str, str, Cell, str]]:
    """State, symbol read, symbol written, move and next state of every rule."""
    if isinstance(machine, GridMachine):
        for (state, read), rule in machine.rules.items():
            yield state, read, rule.write, MOVES[rule.move], rule.state
    else:
        for (state, (read,)), rule in machine.rules.items():
            yield state, read, rule.write[0], (0, rule.moves[0]), rule.state


_Table = tuple[np.ndarray, np.ndarray, np.ndarray]
_latest: dict[type[Engine], tuple[weakref.ref[TuringMachine | GridMachine], _Table]] = {}
"""For each loop the table of the machine that it ran last, as it is often run on and on."""


def _kept(by: type[Engine], machine: TuringMachine | GridMachine, table: Callable[[], _Table]) -> _Table:
    """The table, made once for a machine that is run on and on."""
    known = _latest.get(by)
    if known is None or known[0]() is not machine:
        known = _latest[by] = weakref.ref(machine), table()
    return known[1]


def _tabulated(machine: TuringMachine, coding: _Coding) -> _Table:
    """For every state and reading the next state's entry, the symbols to write, and the moves."""
    following = np.full(coding.entries, -1, np.int64)
    write = np.zeros((coding.entries, machine.tapes), coding.cell_type)
    moves = np.zeros((coding.entries, machine.tapes), np.int8)
    for (state, read), rule in machine.rules.items():
        entry = 0
        for symbol in read:
            entry = entry * len(machine.alphabet) + coding.symbol[symbol]
        entry += coding.base[state]
        following[entry] = coding.base[rule.state]
        write[entry] = [coding.symbol[symbol] for symbol in rule.write]
        moves[entry] = rule.moves
    return following, write, moves


class Tapes(Engine):
    """Several tapes, as rows of one array. Column `origin` holds cell 0 of each."""

    guard = TAPE_GUARD

    def __init__(self, machine: TuringMachine, start: Configuration, max_cells: int) -> None:
        self.symbols = len(machine.alphabet)
        self.coding = coding = _Coding(machine, self.symbols**machine.tapes, max_cells)
        places = [*start.heads, *(cell for tape in start.tapes for cell in tape)]
        self.origin = 4 * self.guard - min(places)
        self.cells = coding.room(machine.tapes, max(places) - min(places) + 1 + 8 * self.guard)
        for row, tape in zip(self.cells, start.tapes, strict=True):
            for cell, symbol in tape.items():
                row[cell + self.origin] = coding.code(symbol)
        self.heads = np.array([head + self.origin for head in start.heads], np.int64)
        self.base = coding.base[start.state]
        self.following, self.write, self.moves = _kept(Tapes, machine, lambda: _tabulated(machine, coding))

    def _some_steps(self, limit: int) -> tuple[int, int]:
        loop, limit = self._loop(tapes_steps, limit)
        with np.errstate(over="ignore"):  # offsets wrap around
            steps, base, outcome = loop(
                self.cells,
                self.heads,
                self.base,
                self.following,
                self.write,
                self.moves,
                self.symbols,
                limit,
                self.guard,
            )
        self.base = int(base)
        return int(steps), outcome

    def grow(self) -> None:
        """Double all tapes on the sides that a head is near."""
        tapes, width = self.cells.shape
        left = width if self.heads.min() < 2 * self.guard else 0
        right = width if self.heads.max() > width - 2 * self.guard else 0
        larger = self.coding.room(tapes, left + width + right)
        larger[:, left : left + width] = self.cells
        self.cells = larger
        self.heads = self.heads + left
        self.origin += left

    def configuration(self) -> Configuration:
        """Where the machine stands, in its own terms."""
        alphabet = self.coding.machine.alphabet
        tapes = []
        for row in self.cells:
            places = np.flatnonzero(row)
            symbols = [alphabet[code] for code in row[places].tolist()]
            across = [place - self.origin for place in places.tolist()]
            tapes.append(dict(zip(across, symbols, strict=True)))
        heads = tuple(head - self.origin for head in self.heads.tolist())
        return Configuration(self.coding.state(self.base), tuple(tapes), heads)


CHUNK = 1 << 24
"""Steps between two looks at the keyboard and two reports of progress: about a tenth of a second."""
MAX_CELLS = 1 << 25
"""Cells that the tapes may take unless more are allowed; each takes some 100 bytes in the end."""

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Run:
    """How a run ended: the last configuration, the number of steps to it, and whether the machine halted
    there or was cut off."""

    final: Any
    """A Configuration or a GridConfiguration, as the machine has."""
    steps: int
    halted: bool


def run(
    machine: TuringMachine | GridMachine,
    start: Configuration | GridConfiguration,
    max_steps: int | None = None,
    *,
    max_cells: int = MAX_CELLS,
    progress: Progress | None = None,
) -> Run:
    """Run the machine until it halts or has taken `max_steps` steps; None stands for no limit. `progress` is
    told the number of steps so far, several times a second. Refused when the tapes outgrow `max_cells`."""
    if start.state not in machine.states:
        raise InputError(f"the machine {machine.name!r} has no state {start.state!r}")
    if isinstance(machine, GridMachine) != isinstance(start, GridConfiguration):
        raise InputError("a grid machine starts from a configuration on a grid, others from one on tapes")
    if isinstance(start, Configuration) and len(start.tapes) > 1:
        engine = Tapes(machine, start, max_cells)  # type: ignore[arg-type]
    else:
        engine = Plane(machine, start, max_cells)
    steps, outcome = 0, NEEDS_ROOM
    while outcome != HALTED and (max_steps is None or steps < max_steps):
        taken, outcome = engine.advance(CHUNK if max_steps is None else min(CHUNK, max_steps - steps))
        steps += taken
        if outcome == NEEDS_ROOM:
            engine.grow()
        if progress is not None:
            progress(steps)
    final: Any = engine.configuration()
    # A run that is cut off may stand just where there is no rule: then it has halted all the same.
    return Run(final, steps, halted=outcome == HALTED or machine.step(final) is None)
