"""Enumeration in canonical order, compiled: entries are filled when a run first asks for them.

So states are numbered by first use, no entry is unreachable, and machines that behave alike on the instances
are met once. A branch ends when it fails (it repeats a configuration, runs out of time, leaves the grid,
answers in the frame), has more errors than allowed, or has answered every instance.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.search.family import clear_entry, option_count, set_entry

# Runs of partly known machines, compiled: the inner loop of every search.


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


@njit(nogil=True)
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


@njit(nogil=True)
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


COMPLETE, PRUNED, DISCARDED, SKIPPED = 0, 1, 2, 3
"""What becomes of candidates: answered everything, too many errors, failed; and prefixes left for later."""

ENTRY, OPTION, OPTIONS, INSTANCE, ERRORS, SINGLE, PAIRS, POSITION, STEPS = range(9)
"""What the stack holds for each choice made: the entry, the option taken and how many there are; and what to
go back to: the instance, the errors so far, the states in use, and where the run was."""

GO_ON = np.zeros(1, np.int8)
"""For `stop` where nobody stops."""
NONE = 1 << 30
"""The errors of a place in which no table is kept."""


@njit(nogil=True)
def walk(
    code: Any, problems: Problems, allowed: int, prefix: Any, depth: int,
    table: Any, used: Any, stack: Any, grid: Any, saved: Any, counts: Any, kept: Any, kept_errors: Any,
    stop: Any,
) -> int:  # fmt: skip
    """Every candidate whose first choices are `prefix`, counted in `counts`; the best tables go to `kept`.
    With `depth > 0`, branches are cut there, and what is kept instead are their choices, with their number
    as errors. Gives how many were found; it is given up as soon as `stop[0]` is not 0. The other arrays
    are room to work in: nothing is allocated here, so the same code runs on a GPU."""
    states, writes = code[0], code[4] == 1
    count, cells = len(problems.grids), len(grid)
    for entry in range(len(table)):
        table[entry, 0] = table[entry, 1] = table[entry, 2] = -1
    used[0], used[1] = 1, 0
    found = level = instance = errors = state = steps = 0
    position = problems.start[0]
    while stop[0] == 0:
        ended = -1
        if instance == count:
            ended = COMPLETE
        else:
            now = problems.grids[instance]
            if writes:  # what was written is not on the stack, so such a run begins again
                for cell in range(cells):
                    grid[cell] = now[cell]
                now = grid
                position, state, steps = problems.start[instance], 0, 0
            end, entry, position, steps = run_on(
                table, states, now, problems.width, position, state, steps, problems.limit[instance], saved
            )
            if end == UNDEFINED:
                if depth > 0 and level == depth:
                    ended = SKIPPED
                else:
                    top = stack[level]
                    top[ENTRY], top[INSTANCE], top[ERRORS] = entry, instance, errors
                    top[SINGLE], top[PAIRS] = used[0], used[1]
                    top[POSITION], top[STEPS] = position, steps
                    top[OPTIONS] = option_count(entry, code, used)
                    top[OPTION] = prefix[level] if level < len(prefix) else 0
                    set_entry(table, entry, top[OPTION], code, used)
                    state = entry // 3
                    level += 1
            elif end == FAILED:
                ended = DISCARDED
            else:
                errors += int(end != problems.wanted[instance])
                instance += 1
                if instance < count:
                    position, state, steps = problems.start[instance], 0, 0
                if errors > allowed:
                    ended = PRUNED
        if ended < 0:
            continue
        counts[ended] += 1
        if depth > 0:
            if found < len(kept):
                for i in range(level):
                    kept[found, i, 0] = stack[i, OPTION]
                kept_errors[found] = level
            found += 1
        elif ended == COMPLETE:
            found += keep(table, errors, kept, kept_errors)
        while level > len(prefix):
            level -= 1
            top = stack[level]
            clear_entry(table, top[ENTRY], code)
            used[0], used[1] = top[SINGLE], top[PAIRS]
            if top[OPTION] + 1 < top[OPTIONS]:
                top[OPTION] += 1
                set_entry(table, top[ENTRY], top[OPTION], code, used)
                instance, errors = top[INSTANCE], top[ERRORS]
                position, state, steps = top[POSITION], top[ENTRY] // 3, top[STEPS]
                level += 1
                break
        else:
            break
    return found


@njit(nogil=True)
def keep(table: Any, errors: int, kept: Any, kept_errors: Any) -> int:
    """Puts a table into the place of the worst one kept, if it is better; gives 1 then, else 0."""
    worst = 0
    for place in range(len(kept_errors)):
        if kept_errors[place] > kept_errors[worst]:
            worst = place
    if errors >= kept_errors[worst]:
        return 0
    kept_errors[worst] = errors
    for entry in range(len(table)):
        for part in range(3):
            kept[worst, entry, part] = table[entry, part]
    return 1


@njit(nogil=True)
def explore(
    code: Any, problems: Problems, allowed: int, prefix: Any, depth: int, room: int, stop: Any
) -> Any:
    """`walk` with arrays of its own: the counts, what was kept, its errors, and how many there were."""
    entries, cells = 3 * code[0], problems.grids.shape[1]
    counts = np.zeros(4, np.int64)
    kept, kept_errors = np.full((room, entries, 3), -1, np.int64), np.full(room, NONE)
    found = walk(
        code, problems, allowed, prefix, depth,
        np.empty((entries, 3), np.int64), np.empty(2, np.int64), np.empty((entries, 9), np.int64),
        np.empty(cells, np.int8), np.empty(cells, np.int8), counts, kept, kept_errors, stop,
    )  # fmt: skip
    return counts, kept, kept_errors, found


@njit(nogil=True)
def _random_candidate(code: Any, problems: Problems, allowed: int, table: Any, grid: Any, saved: Any) -> Any:
    """One candidate in `table`: an entry that a run asks for gets each of its choices with equal chance.
    Gives what became of it, its errors, and one over the chance of drawing it."""
    table[:] = -1
    used = np.array([1, 0])
    instance = errors = 0
    weight = 1.0
    while instance < len(problems.grids):
        grid[:] = problems.grids[instance]
        end, entry, _, _ = run_on(
            table, code[0], grid, problems.width, problems.start[instance], 0, 0, problems.limit[instance],
            saved,
        )  # fmt: skip
        if end == UNDEFINED:
            options = option_count(entry, code, used)
            weight *= options
            set_entry(table, entry, np.random.randint(options), code, used)
            continue
        if end == FAILED:
            return DISCARDED, errors, weight
        errors += int(end != problems.wanted[instance])
        instance += 1
        if errors > allowed:
            return PRUNED, errors, weight
    return COMPLETE, errors, weight


@njit(nogil=True)
def sample(code: Any, problems: Problems, allowed: int, seed: int, count: int, room: int, stop: Any) -> Any:
    """`count` random candidates: the counts, the best tables and their errors; and the weights, whose mean
    estimates how many candidates the whole tree has (Knuth's method)."""
    entries, cells = 3 * code[0], problems.grids.shape[1]
    grid, saved = np.empty(cells, np.int8), np.empty(cells, np.int8)
    table = np.empty((entries, 3), np.int64)
    counts, weights = np.zeros(4, np.int64), np.empty(count)
    kept, kept_errors = np.full((room, entries, 3), -1, np.int64), np.full(room, NONE)
    np.random.seed(seed)
    for i in range(count):
        if stop[0] != 0:
            break
        ended, errors, weights[i] = _random_candidate(code, problems, allowed, table, grid, saved)
        counts[ended] += 1
        if ended == COMPLETE:
            keep(table, errors, kept, kept_errors)
    return counts, kept, kept_errors, weights
