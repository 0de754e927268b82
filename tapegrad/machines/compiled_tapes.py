"""Machines and configurations as the arrays that the compiled loops work on, and back again.

A tape is a plane with a single row, so machines on one tape and on a grid share `Plane`."""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from tapegrad.errors import InputError, Refused
from tapegrad.machines.compiled_loops import plane_steps, tapes_steps
from tapegrad.machines.grid import MOVES, Cell, GridConfiguration, GridMachine
from tapegrad.machines.model import Configuration, TuringMachine

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


class Plane:
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
        self._tabulate(machine)

    def _tabulate(self, machine: TuringMachine | GridMachine) -> None:
        coding = self.coding
        self.following = np.full(coding.entries, -1, np.int64)
        self.write = np.zeros(coding.entries, coding.cell_type)
        self.moves = np.zeros((coding.entries, 2), np.int64)
        for state, read, write, move, target in _plane_rules(machine):
            entry = coding.base[state] + coding.symbol[read]
            self.following[entry] = coding.base[target]
            self.write[entry] = coding.symbol[write]
            self.moves[entry] = move
        self._set_offsets()

    def _set_offsets(self) -> None:
        """Moves as distances in the flattened array, for its present width; negative ones wrap around."""
        self.offset = (self.moves @ np.array([self.cells.shape[1], 1])).astype(np.uint64)

    def advance(self, limit: int) -> tuple[int, int]:
        """Take up to `limit` steps; how many it took and why it stopped."""
        width = self.cells.shape[1]
        steps, position, base, outcome = plane_steps(
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


class Tapes:
    """Several tapes, as rows of one array. Column `origin` holds cell 0 of each."""

    guard = TAPE_GUARD

    def __init__(self, machine: TuringMachine, start: Configuration, max_cells: int) -> None:
        symbols = len(machine.alphabet)
        self.coding = coding = _Coding(machine, symbols**machine.tapes, max_cells)
        places = [*start.heads, *(cell for tape in start.tapes for cell in tape)]
        self.origin = 4 * self.guard - min(places)
        self.cells = coding.room(machine.tapes, max(places) - min(places) + 1 + 8 * self.guard)
        for row, tape in zip(self.cells, start.tapes, strict=True):
            for cell, symbol in tape.items():
                row[cell + self.origin] = coding.code(symbol)
        self.heads = np.array([head + self.origin for head in start.heads], np.int64)
        self.base = coding.base[start.state]
        self.following = np.full(coding.entries, -1, np.int64)
        self.write = np.zeros((coding.entries, machine.tapes), coding.cell_type)
        self.moves = np.zeros((coding.entries, machine.tapes), np.int8)
        for (state, read), rule in machine.rules.items():
            entry = 0
            for symbol in read:
                entry = entry * symbols + coding.symbol[symbol]
            entry += coding.base[state]
            self.following[entry] = coding.base[rule.state]
            self.write[entry] = [coding.symbol[symbol] for symbol in rule.write]
            self.moves[entry] = rule.moves

    def advance(self, limit: int) -> tuple[int, int]:
        """Take up to `limit` steps; how many it took and why it stopped."""
        steps, base, outcome = tapes_steps(
            self.cells,
            self.heads,
            self.base,
            self.following,
            self.write,
            self.moves,
            len(self.coding.symbol),
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
