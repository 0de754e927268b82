"""What an entry of a table can be, numbered: the branches of the tree of machines, compiled.

A family in compiled code is `Family.code`: states, single, pairs, mirrored, writes. `used` counts
the single states and the pairs that are in use, so that new ones are taken in order.
"""

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def option_count(entry: int, code: Any, used: Any) -> int:
    """How many choices an entry has."""
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
    for part in range(3):
        table[entry, part] = -1
    if code[3] == 1:
        other = 3 * _mirrored(entry // 3, code[1]) + _opposite(entry % 3)
        for part in range(3):
            table[other, part] = -1


@njit(cache=True, nogil=True)
def _mirrored(state: int, single: int) -> int:
    return state if state < single else single + ((state - single) ^ 1)


@njit(cache=True, nogil=True)
def _opposite(symbol: int) -> int:
    return 3 - symbol if symbol > 0 else 0
