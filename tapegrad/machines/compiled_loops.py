"""The two inner loops of the compiled interpreter.

A head moves by at most one cell a step. So where it is n cells from the nearest edge of the array, n steps
need no check of the edges; the loops go from check to check, and stop with NEEDS_ROOM closer to an edge than
`guard`. A table's entry for a state and what is read is at state * (number of readings) + reading; `base` is
the first part, kept multiplied out, and -1 as the `following` base marks a missing rule.
"""

import numba
import numpy as np

RUNNING, HALTED, NEEDS_ROOM = 0, 1, 2


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
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
