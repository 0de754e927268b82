"""Runs of partly known machines, compiled: the inner loop of every search."""

from typing import Any

import numpy as np
from numba import njit

UNDEFINED, FAILED, PLUS, MINUS = 0, 1, 2, 3
"""How a run ends: at an entry that is not known yet; lost, going round in circles or answering in the frame;
with an answer."""


@njit(cache=True, nogil=True)
def run_one(table: Any, states: int, grid: Any, width: int, start: int, seen: Any, stamp: int) -> Any:
    """Runs on one instance; gives the end, the entry asked for, and the new stamp. `seen` marks the
    configurations since the last change of the grid: one that comes again comes for ever."""
    position, state = start, 0
    stamp += 1
    while True:
        symbol = grid[position]
        if symbol == 3:
            return FAILED, 0, stamp
        mark = position * states + state
        if seen[mark] == stamp:
            return FAILED, 0, stamp
        seen[mark] = stamp
        entry = 3 * state + symbol
        move = table[entry, 1]
        if move < 0:
            return UNDEFINED, entry, stamp
        if table[entry, 0] != symbol:
            grid[position] = table[entry, 0]
            stamp += 1
        if move == 0:
            position -= width
        elif move == 1:
            position += width
        elif move == 2:
            position -= 1
        elif move == 3:
            position += 1
        following = table[entry, 2]
        if following >= states:
            inside = grid[position] == 1 or grid[position] == 2
            return (PLUS + following - states if inside else FAILED), 0, stamp
        state = following


@njit(cache=True, nogil=True)
def option_count(entry: int, code: Any, used: Any) -> int:
    """How many choices an entry has, with `used` single states and pairs in use."""
    ordinary, answers = _kinds(entry, code, used)
    return ordinary + answers


@njit(cache=True, nogil=True)
def _kinds(entry: int, code: Any, used: Any) -> Any:
    state, symbol = entry // 3, entry % 3
    neutral = code[3] == 1 and state < code[1] and symbol == 0
    following = min(used[0] + 1, code[1])
    if not neutral:
        following += 2 * used[1] + (1 if used[1] < code[2] else 0)
    writes = 2 if code[4] == 1 and symbol > 0 else 1
    return writes * 4 * following, 0 if neutral else 10


@njit(cache=True, nogil=True)
def set_entry(table: Any, entry: int, option: int, code: Any, used: Any) -> None:
    """Fills an entry (and its mirror image) with one of its choices; answers come last. Updates `used`."""
    states, single = code[0], code[1]
    state, symbol = entry // 3, entry % 3
    ordinary, _ = _kinds(entry, code, used)
    write = symbol
    if option >= ordinary:
        move, following = (option - ordinary) // 2, states + (option - ordinary) % 2
    else:
        writes = 2 if code[4] == 1 and symbol > 0 else 1
        count = ordinary // (4 * writes)
        rest = option % (4 * count)
        if option >= 4 * count:
            write = 3 - symbol
        move, choice = rest // count, rest % count
        fixed = min(used[0] + 1, single)
        if choice < fixed:
            following = choice
            used[0] = max(used[0], choice + 1)
        else:
            following = single + choice - fixed
            used[1] = max(used[1], (choice - fixed) // 2 + 1)
    table[entry, 0], table[entry, 1], table[entry, 2] = write, move, following
    if code[3] == 1:
        other = 3 * _mirrored(state, single) + _opposite(symbol)
        turned = following
        if following >= states:
            turned = 2 * states + 1 - following
        elif following >= single:
            turned = _mirrored(following, single)
        table[other, 0], table[other, 1], table[other, 2] = _opposite(write), move, turned


@njit(cache=True, nogil=True)
def clear_entry(table: Any, entry: int, code: Any) -> None:
    """Forgets an entry and its mirror image."""
    table[entry] = -1
    if code[3] == 1:
        table[3 * _mirrored(entry // 3, code[1]) + _opposite(entry % 3)] = -1


@njit(cache=True, nogil=True)
def _mirrored(state: int, single: int) -> int:
    return state if state < single else single + ((state - single) ^ 1)


@njit(cache=True, nogil=True)
def _opposite(symbol: int) -> int:
    return 3 - symbol if symbol > 0 else 0


@njit(cache=True, nogil=True)
def evaluate(tables: Any, states: int, grids: Any, start: Any, answer: Any) -> Any:
    """Right answers of each complete table; an entry that is asked for but missing counts as wrong."""
    width = grids.shape[2]
    cells = grids.shape[1] * width
    seen = np.zeros(cells * states, np.int64)
    stamp = 0
    right = np.zeros(len(tables), np.int64)
    for t in range(len(tables)):
        for i in range(len(grids)):
            grid = grids[i].copy().reshape(cells)
            end, _, stamp = run_one(tables[t], states, grid, width, start[i], seen, stamp)
            right[t] += end == (PLUS if answer[i] > 0 else MINUS)
    return right
