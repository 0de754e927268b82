"""Runs of partly known machines, compiled: the inner loop of every search."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

OFF = 3
"""A cell outside the frame; blank, + and - are 0, 1 and 2."""
UNDEFINED, FAILED, PLUS, MINUS = 0, 1, 2, 3
"""How a run ends: at an entry that is not known yet; lost, going round in circles, out of time or answering
in the frame; with an answer."""


class Problems(NamedTuple):
    """Instances for compiled code: a grid each, cell after cell, in rows of `width` cells; where the head
    starts; how a run should end; and the steps it may take."""

    grids: NDArray[np.int8]
    width: int
    start: NDArray[np.int64]
    wanted: NDArray[np.int64]
    limit: NDArray[np.int64]


@njit(cache=True, nogil=True)
def run_on(
    table: Any, states: int, grid: Any, width: int, position: int, state: int, steps: int, limit: int,
    saved: Any,
) -> Any:  # fmt: skip
    """Runs on from a position, a state and a number of steps. Gives the end, and the entry, position and
    steps at which an unknown entry was asked for.

    A configuration that comes again comes for ever. To notice (Brent's method), one configuration is kept,
    a later one whenever as many steps have passed as before it; `differences` counts the cells in which
    the grid now differs from the one kept in `saved`, so a step costs no more than a comparison.
    """
    kept_position, kept_state, differences = position, state, 0
    written = False
    keep_at, length = steps + 1, 1
    while steps < limit:
        symbol = grid[position]
        if symbol == OFF:
            return FAILED, 0, 0, 0
        entry = 3 * state + symbol
        write, move, following = table[entry, 0], table[entry, 1], table[entry, 2]
        if move < 0:
            return UNDEFINED, entry, position, steps
        if write != symbol:
            if not written:
                for cell in range(len(grid)):
                    saved[cell] = grid[cell]
                written = True
            differences += int(write != saved[position]) - int(symbol != saved[position])
            grid[position] = write
        steps += 1
        if move == 0:
            position -= width
        elif move == 1:
            position += width
        elif move == 2:
            position -= 1
        elif move == 3:
            position += 1
        if following >= states:
            inside = grid[position] == 1 or grid[position] == 2
            return (PLUS + following - states if inside else FAILED), 0, 0, 0
        state = following
        if position == kept_position and state == kept_state and differences == 0:
            return FAILED, 0, 0, 0
        if steps == keep_at:
            kept_position, kept_state, differences = position, state, 0
            length *= 2
            keep_at = steps + length
            if written:
                for cell in range(len(grid)):
                    saved[cell] = grid[cell]
    return FAILED, 0, 0, 0


@njit(cache=True, nogil=True)
def evaluate(tables: Any, states: int, problems: Problems) -> Any:
    """Right answers of each complete table; an entry that is asked for but missing counts as wrong."""
    cells = problems.grids.shape[1]
    grid, saved = np.empty(cells, np.int8), np.empty(cells, np.int8)
    right = np.zeros(len(tables), np.int64)
    for t in range(len(tables)):
        for i in range(len(problems.grids)):
            grid[:] = problems.grids[i]
            end, _, _, _ = run_on(
                tables[t], states, grid, problems.width, problems.start[i], 0, 0, problems.limit[i], saved
            )
            right[t] += end == problems.wanted[i]
    return right
