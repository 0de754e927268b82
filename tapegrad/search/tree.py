"""Enumeration in canonical order, compiled: entries are filled when a run first asks for them.

So states are numbered by first use, no entry is unreachable, and machines that behave alike on the instances
are met once. A branch ends when it fails (it repeats a configuration, leaves the grid, answers in the
frame), has more errors than allowed, or has answered every instance.
"""

from typing import Any

import numpy as np
from numba import njit

from tapegrad.search.running import (
    FAILED,
    MINUS,
    PLUS,
    UNDEFINED,
    clear_entry,
    option_count,
    run_one,
    set_entry,
)

COMPLETE, PRUNED, DISCARDED, SKIPPED = 0, 1, 2, 3
"""What becomes of candidates: answered everything, too many errors, failed; and prefixes left for later."""


@njit(cache=True, nogil=True)
def explore(
    code: Any, grids: Any, start: Any, answer: Any, allowed: int, prefix: Any, depth: int, room: int
) -> Any:
    """Every candidate whose first choices are `prefix`. With `depth > 0`, branches are cut there and their
    choices collected instead, for all of them. Gives the counts, what was kept (tables with errors, or
    choices with their number), and how many there were."""
    states = code[0]
    entries = 3 * states
    width = grids.shape[2]
    cells = grids.shape[1] * width
    table = np.full((entries, 3), -1, np.int64)
    seen = np.zeros(cells * states, np.int64)
    grid = np.empty(cells, grids.dtype)
    chosen, options = np.zeros(entries, np.int64), np.zeros(entries, np.int64)
    entry_at, instance_at = np.zeros(entries, np.int64), np.zeros(entries, np.int64)
    errors_at = np.zeros(entries, np.int64)
    used_at = np.zeros((entries, 2), np.int64)
    used = np.array([1, 0])
    counts = np.zeros(4, np.int64)
    kept = np.full((room, entries, 3), -1, np.int64)
    kept_errors = np.full(room, 1 << 40)
    found = 0
    level = instance = errors = stamp = 0
    while True:
        ended = -1
        if instance == len(grids):
            ended = COMPLETE
        else:
            grid[:] = grids[instance].copy().reshape(cells)
            end, entry, stamp = run_one(table, states, grid, width, start[instance], seen, stamp)
            if end == UNDEFINED:
                if depth > 0 and level == depth:
                    ended = SKIPPED
                else:
                    entry_at[level], instance_at[level], errors_at[level] = entry, instance, errors
                    used_at[level] = used
                    options[level] = option_count(entry, code, used)
                    chosen[level] = prefix[level] if level < len(prefix) else 0
                    set_entry(table, entry, chosen[level], code, used)
                    level += 1
            elif end == FAILED:
                ended = DISCARDED
            else:
                errors += end != (PLUS if answer[instance] > 0 else MINUS)
                instance += 1
                if errors > allowed:
                    ended = PRUNED
        if ended < 0:
            continue
        counts[ended] += 1
        if depth > 0:
            if found < room:
                kept[found, :level, 0] = chosen[:level]
                kept_errors[found] = level
            found += 1
        elif ended == COMPLETE:
            worst = np.argmax(kept_errors)
            if errors < kept_errors[worst]:
                kept[worst], kept_errors[worst] = table, errors
                found += 1
        while level > len(prefix):
            level -= 1
            clear_entry(table, entry_at[level], code)
            used[:] = used_at[level]
            if chosen[level] + 1 < options[level]:
                chosen[level] += 1
                set_entry(table, entry_at[level], chosen[level], code, used)
                instance, errors = instance_at[level], errors_at[level]
                level += 1
                break
        else:
            return counts, kept, kept_errors, found


@njit(cache=True, nogil=True)
def sample(
    code: Any, grids: Any, start: Any, answer: Any, allowed: int, seed: int, count: int, room: int
) -> Any:
    """`count` random candidates: an entry that a run asks for gets each of its choices with equal chance."""
    states = code[0]
    width = grids.shape[2]
    cells = grids.shape[1] * width
    seen = np.zeros(cells * states, np.int64)
    counts = np.zeros(4, np.int64)
    kept = np.full((room, 3 * states, 3), -1, np.int64)
    kept_errors = np.full(room, 1 << 40)
    np.random.seed(seed)
    stamp = 0
    for _ in range(count):
        table = np.full((3 * states, 3), -1, np.int64)
        used = np.array([1, 0])
        instance = errors = 0
        ended = COMPLETE
        while instance < len(grids):
            grid = grids[instance].copy().reshape(cells)
            end, entry, stamp = run_one(table, states, grid, width, start[instance], seen, stamp)
            if end == UNDEFINED:
                set_entry(table, entry, np.random.randint(option_count(entry, code, used)), code, used)
                continue
            if end == FAILED:
                ended = DISCARDED
                break
            errors += end != (PLUS if answer[instance] > 0 else MINUS)
            instance += 1
            if errors > allowed:
                ended = PRUNED
                break
        counts[ended] += 1
        if ended == COMPLETE:
            worst = np.argmax(kept_errors)
            if errors < kept_errors[worst]:
                kept[worst], kept_errors[worst] = table, errors
    return counts, kept, kept_errors, count
