"""The loop of the engine `fast`, compiled: layers over a grid of cell contents."""

from typing import Any

import numpy as np
from numba import njit

DONE, NEEDS_ROOM, STRAY = 0, 1, 2
NEAR = 1e-3
"""How far a computed number may be from the one it stands for: far above rounding, far below a slip."""


@njit(cache=True)
def roll(
    grid: Any, changed: Any, head: Any, layers: int, used: Any, table: Any, possible: Any, is_head: Any,
    keys: Any, results: Any,
    row_start: Any, columns: Any, values: Any, bias: Any, layer_start: Any, relu: Any,
) -> Any:  # fmt: skip
    """Up to `layers` layers on a grid padded by one cell, of which the cells `changed` differ from the layer
    before. Ends early at a fixed point, when the head is gone, or when the memory of patches is half
    full (NEEDS_ROOM: call again with more room and the `changed` given back)."""
    rows, width = grid.shape
    flat = grid.reshape(-1)
    reach = len(used)
    shifts = np.empty(reach, np.int64)
    for i in range(reach):
        shifts[i] = (used[i] // 3 - 1) * width + used[i] % 3 - 1
    stamp = np.full(flat.size, -1)
    filled = 0
    for i in range(len(keys)):
        filled += keys[i] >= 0
    cells, new = np.empty(flat.size, np.int64), np.empty(flat.size, np.int64)
    for i in changed:
        if is_head[flat[i]]:
            head[0], head[1] = i // width, i % width
    for layer in range(layers):
        count = 0
        for i in changed:
            for shift in shifts:
                cell = i - shift
                if cell < 0 or cell >= flat.size or stamp[cell] == layer:
                    continue
                r, c = cell // width, cell % width
                if r == 0 or c == 0 or r == rows - 1 or c == width - 1:
                    continue
                stamp[cell] = layer
                key = 0
                for s in shifts:
                    key = key * len(table) + flat[cell + s]
                slot = ((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & np.uint64(
                    len(keys) - 1
                )
                place = np.int64(slot)
                while keys[place] >= 0 and keys[place] != key:
                    place = (place + 1) & (len(keys) - 1)
                if keys[place] < 0:
                    if 2 * filled >= len(keys):
                        return NEEDS_ROOM, layer, changed
                    result = _result(
                        flat,
                        cell,
                        width,
                        table,
                        possible,
                        row_start,
                        columns,
                        values,
                        bias,
                        layer_start,
                        relu,
                    )
                    if result < 0:
                        return STRAY, layer, changed
                    keys[place], results[place] = key, result
                    filled += 1
                if results[place] != flat[cell]:
                    cells[count], new[count] = cell, results[place]
                    count += 1
        came = went = False
        for i in range(count):
            went |= is_head[flat[cells[i]]]
            flat[cells[i]] = new[i]
            if is_head[new[i]]:
                came = True
                head[0], head[1] = cells[i] // width, cells[i] % width
        changed = cells[:count].copy()
        if count == 0 or (went and not came):
            return DONE, layer + 1, changed
    return DONE, layers, changed


@njit(cache=True)
def _result(
    flat: Any, cell: int, width: int, table: Any, possible: Any,
    row_start: Any, columns: Any, values: Any, bias: Any, layer_start: Any, relu: Any,
) -> int:  # fmt: skip
    """What the filter makes of the patch around a cell, as the content it stands for; -1 if none is near."""
    channels = table.shape[1]
    now = np.empty(9 * channels)
    for k in range(9):
        content = flat[cell + (k // 3 - 1) * width + k % 3 - 1]
        now[k * channels : (k + 1) * channels] = table[content]
    for layer in range(len(relu)):
        first, last = layer_start[layer], layer_start[layer + 1]
        after = np.empty(last - first)
        for row in range(first, last):
            total = bias[row]
            for e in range(row_start[row], row_start[row + 1]):
                total += values[e] * now[columns[e]]
            after[row - first] = max(total, 0.0) if relu[layer] else total
        now = after
    best, distance = -1, NEAR
    for content in range(len(table)):
        if possible[content]:
            away = np.abs(table[content] - now).max()
            if away < distance:
                best, distance = content, away
    return best
