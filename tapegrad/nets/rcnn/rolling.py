"""The loops of the engine `fast`, compiled: layers over grids of cell contents. No lock is held meanwhile."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

RESTS, CUT_OFF, LOST, STRAY = 0, 1, 2, 3
"""How a run of layers ended: the last one changed nothing; there were no more; the head left the grid; the
filter gave a number that stands for no cell."""


class SparseLayers(NamedTuple):
    """The filter's maps one below the other, each as the weights of its columns. A map reads the places from
    `inputs[i]` on and writes those from `outputs[i]` on."""

    column_start: NDArray[np.int64]
    rows: NDArray[np.int64]
    values: NDArray[np.float64]
    bias: NDArray[np.float64]
    inputs: NDArray[np.int64]
    outputs: NDArray[np.int64]
    relu: NDArray[np.bool_]
    rule_units: NDArray[np.int64]
    """Of the last map that a ReLU follows: one of them is above 1/2 where a rule applies."""


class Code(NamedTuple):
    """What the numbers of a cell stand for. `line` projects them onto one number, which is different for
    different contents: `ordered` are these numbers, `contents` whose they are."""

    table: NDArray[np.float64]
    line: NDArray[np.float64]
    ordered: NDArray[np.float64]
    contents: NDArray[np.int64]
    near: float
    """How far a computed number may be from the one it stands for."""
    is_head: NDArray[np.bool_]
    used: NDArray[np.int64]
    """The cells of a patch that the filter reads at all: the centre and its four neighbours."""


class Patches(NamedTuple):
    """The patches met so far (a hash table), what each becomes, and whether a rule applies in it."""

    met: NDArray[np.int32]
    becomes: NDArray[np.int32]
    """-1 where the table is free."""
    runs: NDArray[np.bool_]
    filled: NDArray[np.int64]


@njit(cache=True, nogil=True)
def no_patches(room: int, reach: int) -> Any:
    """An empty memory for patches of this many cells; the room is a power of 2."""
    becomes = np.full(room, -1, np.int32)
    return Patches(
        np.zeros((room, reach), np.int32), becomes, np.zeros(room, np.bool_), np.zeros(1, np.int64)
    )


@njit(cache=True, nogil=True)
def roll(layers: Any, code: Any, patches: Any, grid: Any, changed: Any, head: Any, limit: int) -> Any:
    """Up to `limit` layers on a grid padded by one cell, of which the cells `changed` differ from the layer
    before. Ends early where nothing changes or the head is gone. Gives the patches, how it ended, and the
    layers taken; grid and `head`, its last cell, change in place."""
    rows, width = grid.shape
    flat = grid.reshape(-1)
    shifts = (code.used // 3 - 1) * width + code.used % 3 - 1
    stamp = np.full(flat.size, -1)
    cells, spare, new = np.empty_like(stamp), np.empty_like(stamp), np.empty_like(stamp)
    for i in changed:
        if code.is_head[flat[i]]:
            head[0], head[1] = i // width, i % width
    for layer in range(limit):
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
                patches, place = _place_of(layers, code, patches, flat, cell, width, shifts)
                if place < 0:
                    return patches, STRAY, layer
                if patches.becomes[place] != flat[cell]:
                    cells[count], new[count] = cell, patches.becomes[place]
                    count += 1
        came = went = False
        for i in range(count):
            went |= code.is_head[flat[cells[i]]]
            flat[cells[i]] = new[i]
            if code.is_head[new[i]]:
                came = True
                head[0], head[1] = cells[i] // width, cells[i] % width
        if count == 0:
            return patches, RESTS, layer + 1
        if went and not came:
            return patches, LOST, layer + 1
        changed = cells[:count]
        cells, spare = spare, cells
    return patches, CUT_OFF, limit


@njit(cache=True, nogil=True)
def roll_points(layers: Any, code: Any, patches: Any, grids: Any, limit: int, main: Any, answers: Any) -> Any:
    """The layers on many padded grids, one after the other. Gives the patches, and for each grid how it
    ended, the layers taken, the sum of the contents' `answers` over the main grid (rows from main[0] to
    main[1], columns from main[2] to main[3]), and whether a rule still applies."""
    points, rows, width = grids.shape
    shifts = (code.used // 3 - 1) * width + code.used % 3 - 1
    inside = np.empty((rows - 2) * (width - 2), np.int64)
    for r in range(rows - 2):
        for c in range(width - 2):
            inside[r * (width - 2) + c] = (r + 1) * width + c + 1
    ends, taken = np.empty(points, np.int64), np.empty(points, np.int64)
    sums, running = np.zeros(points), np.zeros(points, np.bool_)
    head = np.empty(2, np.int64)
    for point in range(points):
        grid = grids[point]
        patches, ends[point], taken[point] = roll(layers, code, patches, grid, inside, head, limit)
        for r in range(main[0], main[1]):
            for c in range(main[2], main[3]):
                sums[point] += answers[grid[r, c]]
        flat = grid.reshape(-1)
        for cell in inside:
            patches, place = _place_of(layers, code, patches, flat, cell, width, shifts)
            if place < 0:
                ends[point] = STRAY
                break
            running[point] |= patches.runs[place]
    return patches, ends, taken, sums, running


@njit(cache=True, nogil=True)
def _place_of(layers: Any, code: Any, patches: Any, flat: Any, cell: Any, width: int, shifts: Any) -> Any:
    """Where the memory has the patch around a cell; it is put there if it is new. -1 for a patch of which the
    filter makes nothing."""
    place = _search(patches, flat, cell, shifts)
    if patches.becomes[place] >= 0:
        return patches, place
    becomes, runs = _evaluate(layers, code, flat, cell, width)
    if becomes < 0:
        return patches, -1
    if 2 * patches.filled[0] >= len(patches.becomes):
        patches = _larger(patches)
        place = _search(patches, flat, cell, shifts)
    for i in range(len(shifts)):
        patches.met[place, i] = flat[cell + shifts[i]]
    patches.becomes[place], patches.runs[place] = becomes, runs
    patches.filled[0] += 1
    return patches, place


@njit(cache=True, nogil=True)
def _search(patches: Any, flat: Any, cell: Any, shifts: Any) -> Any:
    """The place of the patch around a cell, or the free one where it belongs."""
    mixed = np.uint64(0)
    for shift in shifts:
        mixed = (mixed ^ np.uint64(flat[cell + shift])) * np.uint64(0x9E3779B97F4A7C15)
    mask = len(patches.becomes) - 1
    place = np.int64(mixed >> np.uint64(20)) & mask
    while patches.becomes[place] >= 0:
        same = True
        for i in range(len(shifts)):
            same &= patches.met[place, i] == flat[cell + shifts[i]]
        if same:
            break
        place = (place + 1) & mask
    return place


@njit(cache=True, nogil=True)
def _larger(patches: Any) -> Any:
    """The same patches with twice the room."""
    reach = patches.met.shape[1]
    larger = no_patches(2 * len(patches.becomes), reach)
    along = np.arange(reach)
    for i in range(len(patches.becomes)):
        if patches.becomes[i] >= 0:
            place = _search(larger, patches.met[i], 0, along)
            larger.met[place] = patches.met[i]
            larger.becomes[place], larger.runs[place] = patches.becomes[i], patches.runs[i]
    larger.filled[0] = patches.filled[0]
    return larger


@njit(cache=True, nogil=True)
def _evaluate(layers: Any, code: Any, flat: Any, cell: Any, width: int) -> Any:
    """What the filter makes of the patch around a cell, as the content it stands for (-1 if none is near),
    and whether a unit of a rule is active. What is 0 is skipped."""
    channels = code.table.shape[1]
    now = np.empty(9 * channels)
    for k in range(9):
        content = flat[cell + (k // 3 - 1) * width + k % 3 - 1]
        now[k * channels : (k + 1) * channels] = code.table[content]
    runs = False
    for i in range(len(layers.relu)):
        first = layers.outputs[i]
        after = layers.bias[first : layers.outputs[i + 1]].copy()
        for place in range(len(now)):
            if now[place] != 0:
                column = layers.inputs[i] + place
                for e in range(layers.column_start[column], layers.column_start[column + 1]):
                    after[layers.rows[e]] += layers.values[e] * now[place]
        if layers.relu[i]:
            after = np.maximum(after, 0.0)
            runs = False  # the last ReLU decides
            for unit in layers.rule_units:
                runs |= unit < len(after) and after[unit] > 0.5
        now = after
    at = np.dot(code.line, now)
    above = min(np.searchsorted(code.ordered, at), len(code.ordered) - 1)
    below = max(above - 1, 0)
    nearest = below if at - code.ordered[below] < code.ordered[above] - at else above
    content = code.contents[nearest]
    return content if np.abs(code.table[content] - now).max() <= code.near else -1, runs
