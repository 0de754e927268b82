"""The gradient of a network that memorises, where only what changes from layer to layer is computed.

While a network memorises, a cell has one of six contents, so there are 6^5 patches, and the filter is a
table: what each becomes, and the derivative of that by the five cells. Both are computed from the filter's
arrays. Forwards, a cell is computed only if its patch has changed. Backwards, the gradient at a cell is the
sum over the cells whose patches it is in, of their derivatives times their gradients; where none of these
differs from the layer after, neither does the sum, and it is kept. A message that passes through m rows of d
cells changes each once, so a step of SGD costs m d, and not m d for each of m layers.

The filter is piecewise linear: its derivative at a content is that at every number nearby, as long as no
kink is between. How near the kinks are is part of the table, and is checked for every patch that is met.
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.errors import InputError, Refused
from tapegrad.networks.form import Dense
from tapegrad.targets.rcnn.encoding import CLOSE, MEMORY, OUTSIDE, UNKNOWN, Cells
from tapegrad.targets.rcnn.network import Rcnn

CONTENTS = 6
"""Outside, memorising, empty, written with + or -, and the frame, in this order."""
EMPTY, WORK = 2, 5
PATCHES = CONTENTS**5
MOST_CHANGES = 64
"""Changes of a cell on average, in all layers together, that room is made for."""
SETTLED, STRAY, NEAR_KINK, TOO_MANY = 0, 1, 2, 3
"""How the layers went: well; a number stood for no content of this phase; a kink was too near; the cells
changed too often."""
FAULTS = {
    STRAY: "a cell leaves the memorising phase",
    NEAR_KINK: "a threshold is too near to be sure of the derivative",
    TOO_MANY: "the grid is still changing after the message has passed",
}
SLACK = {"channels": 0.4, "ternary": 1e-9}
"""How near to 0 the sum of a ReLU may not be. In ternary, rounding is far smaller. In channels, numbers are
whole but for the trace of a written cell, which is a third, and its weight is 1."""


class LocalMaps(NamedTuple):
    """What the filter makes of every patch, and of what comes before and after it.

    A patch is numbered by its cells above, left, here, right and below, in base `CONTENTS`."""

    becomes: NDArray[np.int64]
    """The content of the cell in the next layer; -1 for none of the six."""
    slopes: Float[np.ndarray, "patches channels 5 channels"]
    """The derivative of the cell's numbers by those of the five cells."""
    reads: NDArray[np.bool_]
    """For each patch and each of its cells whether a slope is not 0."""
    near_kink: NDArray[np.bool_]
    answers: NDArray[np.float64]
    """The head's output for each content."""
    answer_slopes: NDArray[np.float64]
    start_slopes: NDArray[np.float64]
    """The derivative of a cell's first numbers by the memory times the input, for each content."""


def contents_while_memorising(cells: Cells) -> NDArray[np.int64]:
    """The numbers of the six contents, in the order of this module."""
    written = [cells.number(False, symbol, UNKNOWN) for symbol in range(min(cells.symbols, 3))]
    return np.array([OUTSIDE, MEMORY, *written, cells.number(True, 0, UNKNOWN)])


def _with_slopes(
    layers: tuple[Dense, ...], x: Float[np.ndarray, "cases inputs"]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The layers on every row, the derivative there, and the least distance of a ReLU's sum from 0."""
    open_units, least = [], np.full(len(x), np.inf)
    maps = [layer.map.dense() for layer in layers]
    weights = [np.asarray(own.weight, np.float64) for own in maps]
    for layer, own, weight in zip(layers, maps, weights, strict=True):
        x = x @ weight.T + np.asarray(own.bias, np.float64)
        relu = layer.activation == "relu"
        if relu:
            least = np.minimum(least, np.abs(x).min(axis=1, initial=np.inf))
        open_units.append(x > 0 if relu else np.ones(x.shape, bool))
        x = np.where(open_units[-1], x, 0)
    slopes = np.broadcast_to(np.eye(x.shape[1]), (len(x), x.shape[1], x.shape[1]))
    for weight, is_open in zip(reversed(weights), reversed(open_units), strict=True):
        slopes = (slopes * is_open[:, None, :]) @ weight
    return x, slopes, least


def local_maps(part: Rcnn) -> LocalMaps:
    """The tables of a `memorising_part`; those of equal filters are kept, and equal they mostly are: what a
    machine does once it computes has no share in them."""
    parts = [np.asarray(a) for own in part.filter.maps for a in (own.dense().weight, own.bias)]
    text = [part.encoding.name.encode(), *(str(a.shape).encode() + a.tobytes() for a in parts)]
    key = hashlib.sha256(b"|".join(text)).digest()
    if key not in _known:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[key] = _local_maps(part)
    return _known[key]


MOST_KNOWN = 16
_known: dict[bytes, LocalMaps] = {}


def _local_maps(part: Rcnn) -> LocalMaps:
    table = part.encoding.table()[contents_while_memorising(part.encoding.cells)].astype(np.float64)
    channels = table.shape[1]
    cells = np.stack(np.unravel_index(np.arange(PATCHES), (CONTENTS,) * 5), axis=1)
    patches = table[cells].transpose(0, 2, 1).reshape(PATCHES, -1)
    after, slopes, least = _with_slopes(part.filter.layers, patches)
    away = np.abs(after[:, None] - table).max(axis=2)
    nearest = away.argmin(axis=1)
    by_cell = slopes.reshape(PATCHES, channels, channels, 5).transpose(0, 1, 3, 2).copy()
    own_direct, units, _, head = part.layout
    answers, answer_slopes, _ = _with_slopes(head, table)
    values = np.array([[0.0], [0.0], [0.0], [1 / 3], [-1 / 3], [0.0]])
    direct = np.asarray(own_direct.dense().weight, np.float64)[None]
    by_units = _with_slopes(units, values)[1] if units else np.zeros((1, channels, 1))
    return LocalMaps(
        np.where(away.min(axis=1) <= CLOSE, nearest, -1),
        by_cell,
        np.asarray(by_cell.any(axis=(1, 3))),
        least < SLACK[part.encoding.name],
        answers[:, 0],
        answer_slopes[:, 0],
        np.broadcast_to(direct + by_units, (CONTENTS, channels, 1))[:, :, 0].copy(),
    )


class Slope(NamedTuple):
    """The output, its derivative by every place of the memory, and the layers until nothing changed."""

    output: float
    by_memory: NDArray[np.float64]
    layers: int


def slope_of(part: Rcnn, maps: LocalMaps, memory: NDArray[Any], z: NDArray[Any]) -> Slope:
    """Forwards and backwards through all layers of a `memorising_part`."""
    signs = np.rint(3 * memory * z).astype(np.int64)
    if np.abs(memory * z - signs / 3).max(initial=0) > CLOSE or np.abs(signs).max(initial=0) > 1:
        raise Refused("the memory holds other values than thirds of signs", advice="Take engine='reference'.")
    main = np.array([EMPTY, EMPTY + 1, EMPTY + 2])[signs]
    top, bottom, left, right = part.frame
    rows, columns = main.shape
    inside = slice(top + 1, top + 1 + rows), slice(left + 1, left + 1 + columns)
    grid = np.zeros((rows + top + bottom + 2, columns + left + right + 2), np.int64)
    grid[1:-1, 1:-1] = WORK
    grid[inside] = main
    is_main = np.zeros(grid.shape, bool)
    is_main[inside] = True
    is_main = is_main.ravel()
    end, layers, output, slopes = _there_and_back(maps, grid, is_main, part.layers)
    if end != SETTLED:
        raise InputError(f"{FAULTS[end]}, so layers cannot be left out", advice="Take engine='reference'.")
    first = (slopes[is_main] * maps.start_slopes[main.ravel()]).sum(axis=1)
    return Slope(float(output), first.reshape(main.shape) * z, int(layers))


@njit(nogil=True)
def _patch(flat: Any, cell: Any, width: int) -> Any:
    """The number of the patch around a cell."""
    number = (flat[cell - width] * CONTENTS + flat[cell - 1]) * CONTENTS + flat[cell]
    return (number * CONTENTS + flat[cell + 1]) * CONTENTS + flat[cell + width]


@njit(nogil=True)
def _there_and_back(maps: Any, grid: Any, is_main: Any, limit: int) -> Any:
    """How it ended, the layers until nothing changed, the output, and its derivative by the first grid."""
    height, width = grid.shape
    flat = grid.reshape(-1)
    inside = np.zeros(flat.size, np.bool_)
    for r in range(1, height - 1):
        inside[r * width + 1 : (r + 1) * width - 1] = True
    every = np.flatnonzero(inside)
    near = np.array([-width, -1, 0, 1, width])
    end, log, old, starts = _forwards(maps, flat, width, inside, every, near, limit)
    layers = len(starts) - 1
    output, slopes = 0.0, np.zeros((flat.size, maps.slopes.shape[1]))
    if end != SETTLED:
        return end, layers, output, slopes
    for cell in every:
        if is_main[cell]:
            output += maps.answers[flat[cell]]
            slopes[cell] = maps.answer_slopes[flat[cell]]
    _backwards(maps, flat, width, inside, every, near, limit, log, old, starts, slopes)
    return end, layers, output, slopes


@njit(nogil=True)
def _forwards(
    maps: Any, flat: Any, width: int, inside: Any, every: Any, near: Any, limit: int
) -> Any:  # fmt: skip
    """The layers, in place; which cells each has changed (`log` from one of `starts` to the next), and what
    they were."""
    log, old = np.empty(MOST_CHANGES * flat.size, np.int64), np.empty(MOST_CHANGES * flat.size, np.int64)
    starts = [0]
    stamp = np.full(flat.size, -1)
    new = np.empty(flat.size, np.int64)
    changed = every
    for layer in range(limit):
        first = count = starts[-1]
        for i in changed:
            for shift in near:
                cell = i + shift
                if not inside[cell] or stamp[cell] == layer:
                    continue
                stamp[cell] = layer
                number = _patch(flat, cell, width)
                content = maps.becomes[number]
                if content < 0:
                    return STRAY, log, old, starts
                if maps.near_kink[number]:
                    return NEAR_KINK, log, old, starts
                if content != flat[cell]:
                    if count == len(log):
                        return TOO_MANY, log, old, starts
                    log[count], old[count], new[count - first] = cell, flat[cell], content
                    count += 1
        if count == first:
            break
        for i in range(first, count):
            flat[log[i]] = new[i - first]
        changed = log[first:count]
        starts.append(count)
    return SETTLED, log, old, starts


@njit(nogil=True)
def _backwards(
    maps: Any, flat: Any, width: int, inside: Any, every: Any, near: Any, limit: int, log: Any, old: Any,
    starts: Any, slopes: Any,
) -> Any:  # fmt: skip
    """The derivative by the grid before every layer, from the last to the first, in place of that by the last
    grid. `pending` are the cells that one of their neighbours, or its patch, has changed for."""
    channels = slopes.shape[1]
    stamp = np.full(flat.size, limit - 1)
    pending, following = np.empty(flat.size, np.int64), np.empty(flat.size, np.int64)
    pending[: len(every)] = every
    waiting = len(every)
    fresh = np.empty((flat.size, channels))
    layer = limit - 1
    while layer >= 0:
        if layer < len(starts) - 1:  # this layer has changed cells: their patches were others before it
            for i in range(starts[layer], starts[layer + 1]):
                flat[log[i]] = old[i]
            for i in range(starts[layer], starts[layer + 1]):
                for one in near:
                    for two in near:
                        cell = log[i] + one + two
                        if 0 <= cell < flat.size and inside[cell] and stamp[cell] != layer:
                            stamp[cell] = layer
                            pending[waiting] = cell
                            waiting += 1
        elif waiting == 0:  # nor will anything change up to the layers that do
            layer = len(starts) - 2
            continue
        for i in range(waiting):
            cell = pending[i]
            fresh[i] = 0.0
            for place in range(5):
                other = cell - near[place]  # in whose patch this cell has that place
                if not inside[other]:
                    continue
                number = _patch(flat, other, width)
                if not maps.reads[number, place]:
                    continue
                for o in range(channels):
                    slope = slopes[other, o]
                    if slope != 0:
                        for k in range(channels):
                            fresh[i, k] += maps.slopes[number, o, place, k] * slope
        count = 0
        for i in range(waiting):
            cell = pending[i]
            same = True
            for k in range(channels):
                same &= fresh[i, k] == slopes[cell, k]
                slopes[cell, k] = fresh[i, k]
            if same:
                continue
            for shift in near:
                other = cell + shift
                if inside[other] and stamp[other] != layer - 1:
                    stamp[other] = layer - 1
                    following[count] = other
                    count += 1
        pending, following, waiting = following, pending, count
        layer -= 1
