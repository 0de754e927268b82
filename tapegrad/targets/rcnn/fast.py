"""The engine `fast`: a cell is computed only if its patch has changed, and every patch only once.

Exact because the filter is a function of the patch: a cell whose patch is as it was a layer ago has the
value it had then. Everything is read off the compiled arrays; the machine is not known here. The loops are
compiled, and no lock is held meanwhile.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.errors import BrokenNet, Refused
from tapegrad.targets.rcnn.active import evaluate, ready
from tapegrad.targets.rcnn.build import Filter
from tapegrad.targets.rcnn.encoding import CLOSE, HEAD, Encoding

RESTS, CUT_OFF, LOST, STRAY, _NEEDS_ROOM = 0, 1, 2, 3, 4
"""How a run of layers ended: the last one changed nothing; there were no more; the head left the grid; the
filter gave a number that stands for no cell."""
CONTENT_BITS = 21
FIRST_ROOM = 1 << 10
"""Patches that the memory has room for at first, twice over; it grows by itself."""


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


class Patches(NamedTuple):
    """The patches met so far (a hash table), what each becomes, and whether a rule applies in it. A patch is
    two words: its five cells with `CONTENT_BITS` bits each."""

    met: NDArray[np.int64]
    becomes: NDArray[np.int32]
    """-1 where the table is free."""
    runs: NDArray[np.bool_]
    filled: NDArray[np.int64]


@njit(nogil=True)
def no_patches(room: int) -> Any:
    """An empty memory; the room is a power of 2."""
    becomes = np.full(room, -1, np.int32)
    return Patches(np.zeros((room, 2), np.int64), becomes, np.zeros(room, np.bool_), np.zeros(1, np.int64))


@njit(nogil=True)
def roll(filter: Any, code: Any, patches: Any, grid: Any, changed: Any, head: Any, limit: int) -> Any:
    """Up to `limit` layers on a grid padded by one cell, of which the cells `changed` differ from the layer
    before. Ends early where nothing changes or the head is gone. Gives the patches, how it ended, the layers
    taken, and the cells that the last of them changed; grid and `head`, its last cell, change in place."""
    done = 0
    while True:
        end, taken, changed = _layers(filter, code, patches, grid, changed, head, limit - done)
        done += taken
        if end != _NEEDS_ROOM:
            return patches, end, done, changed
        patches = _larger(patches)


@njit(nogil=True)
def _layers(filter: Any, code: Any, patches: Any, grid: Any, changed: Any, head: Any, limit: int) -> Any:
    """The inner loop, which lets go (with the cells that changed) when half of the memory is full: a memory
    that never moves is several times as fast."""
    rows, width = grid.shape
    flat = grid.reshape(-1)
    met, becomes, is_head = patches.met, patches.becomes, code.is_head
    plus = np.array([0, -width, width, -1, 1])
    stamp = np.full(flat.size, limit)  # the layer that a cell was last looked at in; the padding never is
    for r in range(1, rows - 1):
        stamp[r * width + 1 : (r + 1) * width - 1] = -1
    cells, spare, new = np.empty_like(stamp), np.empty_like(stamp), np.empty_like(stamp)
    for i in changed:
        if is_head[flat[i]]:
            head[0], head[1] = i // width, i % width
    for layer in range(limit):
        count = 0
        for i in changed:
            for shift in plus:
                cell = i + shift
                if stamp[cell] >= layer:
                    continue
                stamp[cell] = layer
                place = _search(met, becomes, _words(flat, cell, width))
                if becomes[place] < 0:
                    if 2 * patches.filled[0] >= len(becomes):
                        return _NEEDS_ROOM, layer, changed
                    if not _learn(filter, code, patches, flat, cell, width, place):
                        return STRAY, layer, changed
                if becomes[place] != flat[cell]:
                    cells[count], new[count] = cell, becomes[place]
                    count += 1
        came = went = False
        for i in range(count):
            went |= is_head[flat[cells[i]]]
            flat[cells[i]] = new[i]
            if is_head[new[i]]:
                came = True
                head[0], head[1] = cells[i] // width, cells[i] % width
        changed = cells[:count]
        if count == 0 or (went and not came):
            return RESTS if count == 0 else LOST, layer + 1, changed
        cells, spare = spare, cells
    return CUT_OFF, limit, changed


@njit(nogil=True)
def roll_points(filter: Any, code: Any, patches: Any, grids: Any, limit: int, main: Any, answers: Any) -> Any:
    """The layers on many padded grids, one after the other. Gives the patches, and for each grid how it
    ended, the layers taken, the sum of the contents' `answers` over the main grid (rows from main[0] to
    main[1], columns from main[2] to main[3]), and whether a rule still applies."""
    points, rows, width = grids.shape
    inside = np.empty((rows - 2) * (width - 2), np.int64)
    for r in range(rows - 2):
        for c in range(width - 2):
            inside[r * (width - 2) + c] = (r + 1) * width + c + 1
    ends, taken = np.empty(points, np.int64), np.empty(points, np.int64)
    sums, running = np.zeros(points), np.zeros(points, np.bool_)
    head = np.empty(2, np.int64)
    for point in range(points):
        grid = grids[point]
        patches, ends[point], taken[point], _ = roll(filter, code, patches, grid, inside, head, limit)
        for r in range(main[0], main[1]):
            for c in range(main[2], main[3]):
                sums[point] += answers[grid[r, c]]
        patches, running[point] = _runs(filter, code, patches, grid, inside)
    return patches, ends, taken, sums, running


@njit(nogil=True)
def _runs(filter: Any, code: Any, patches: Any, grid: Any, inside: Any) -> Any:
    """The patches, with those of these cells, and whether a rule applies at one of them. A patch of which the
    filter makes nothing is not remembered."""
    width, flat = grid.shape[1], grid.reshape(-1)
    found = False
    for cell in inside:
        if 2 * patches.filled[0] >= len(patches.becomes):
            patches = _larger(patches)
        place = _search(patches.met, patches.becomes, _words(flat, cell, width))
        if patches.becomes[place] >= 0 or _learn(filter, code, patches, flat, cell, width, place):
            found |= patches.runs[place]
        else:
            found |= _evaluate(filter, code, flat, cell, width)[1]
    return patches, found


@njit(nogil=True)
def _words(flat: Any, cell: Any, width: int) -> Any:
    """The patch around a cell as two words."""
    up, down = flat[cell - width], flat[cell + width]
    first = (up << 2 * CONTENT_BITS) | (flat[cell - 1] << CONTENT_BITS) | flat[cell]
    return first, (flat[cell + 1] << CONTENT_BITS) | down


@njit(nogil=True)
def _search(met: Any, becomes: Any, words: Any) -> Any:
    """Where the memory has a patch, or the free place where it belongs."""
    first, second = words
    mixed = np.uint64(first) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(second)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mask = np.uint64(len(becomes) - 1)
    place = (mixed >> np.uint64(32)) & mask
    while becomes[place] >= 0 and (met[place, 0] != first or met[place, 1] != second):
        place = (place + np.uint64(1)) & mask
    return place


@njit(nogil=True)
def _learn(filter: Any, code: Any, patches: Any, flat: Any, cell: Any, width: int, place: Any) -> Any:
    """Puts a new patch into the memory at this place; false if the filter makes nothing of it."""
    becomes, runs = _evaluate(filter, code, flat, cell, width)
    if becomes < 0:
        return False
    patches.met[place, 0], patches.met[place, 1] = _words(flat, cell, width)
    patches.becomes[place], patches.runs[place] = becomes, runs
    patches.filled[0] += 1
    return True


@njit(nogil=True)
def _larger(patches: Any) -> Any:
    """The same patches with twice the room."""
    larger = no_patches(2 * len(patches.becomes))
    for i in range(len(patches.becomes)):
        if patches.becomes[i] >= 0:
            place = _search(larger.met, larger.becomes, (patches.met[i, 0], patches.met[i, 1]))
            larger.met[place] = patches.met[i]
            larger.becomes[place], larger.runs[place] = patches.becomes[i], patches.runs[i]
    larger.filled[0] = patches.filled[0]
    return larger


@njit(nogil=True)
def _evaluate(filter: Any, code: Any, flat: Any, cell: Any, width: int) -> Any:
    """What the filter makes of the patch around a cell, as the content it stands for (-1 if none is near),
    and whether a unit of a rule is active. What is 0 is skipped."""
    contents = np.empty(9, np.int64)
    for k in range(9):
        contents[k] = flat[cell + (k // 3 - 1) * width + k % 3 - 1]
    now, runs = evaluate(filter, contents, code.table)
    at = np.dot(code.line, now)
    above = min(np.searchsorted(code.ordered, at), len(code.ordered) - 1)
    below = max(above - 1, 0)
    nearest = below if at - code.ordered[below] < code.ordered[above] - at else above
    content = code.contents[nearest]
    return content if np.abs(code.table[content] - now).max() <= code.near else -1, runs


@lru_cache(maxsize=8)
def code_of(encoding: Encoding) -> Code:
    """How the loop reads contents off numbers: one further than `CLOSE`, or than a third of the least gap,
    from every content stands for none."""
    table, line = encoding.table().astype(np.float64), encoding.line()
    possible = np.flatnonzero(encoding.cells.possible)
    places = table[possible] @ line
    order = np.argsort(places)
    near = min(CLOSE, float(np.diff(places[order]).min()) / 3)
    is_head = encoding.cells.facts[:, 2] >= HEAD
    return Code(table, line, places[order], possible[order], near, is_head)


class Rolled(NamedTuple):
    """Where a run of layers ended: the contents with a cell of padding around them, which of all these the
    last layer changed, the layers taken, the head's last cell, whether the head has left the grid, and
    whether the last layer changed nothing."""

    padded: NDArray[np.int64]
    changed: NDArray[np.int64]
    layers: int
    head: tuple[int, int]
    lost: bool
    settled: bool

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The contents of the cells."""
        return self.padded[1:-1, 1:-1]


class Ends(NamedTuple):
    """Where the layers led on each of many grids."""

    layers: NDArray[np.int64]
    lost: NDArray[np.bool_]
    sums: NDArray[np.float64]
    """What the main grid adds up to."""
    running: NDArray[np.bool_]
    """Whether a rule still applies."""


class Roller:
    """A filter made ready for the loop, with the patches it has met and what they become."""

    def __init__(self, filter: Filter, encoding: Encoding) -> None:
        self.code = code_of(encoding)
        self.filter = ready(filter, self.code.table)
        layers = self.filter.columns
        weights = np.diff(layers.column_start[: layers.inputs[1] + 1]).reshape(-1, 9)
        if weights[:, [0, 2, 6, 8]].any():
            raise BrokenNet("the filter reads a diagonal neighbour")
        if not all(np.isfinite(own).all() for own in (layers.values, layers.bias)):
            raise BrokenNet("the filter has a weight that is not finite")  # what is 0 is skipped, this too
        if encoding.cells.count > 1 << CONTENT_BITS:
            raise Refused(f"{encoding.cells.count:,} contents of a cell are too many for the engine 'fast'")
        self.patches = no_patches(FIRST_ROOM)

    def copy(self) -> "Roller":
        """With a memory of its own, for another thread."""
        other = object.__new__(Roller)
        other.filter, other.code = self.filter, self.code
        other.patches = type(self.patches)(*(part.copy() for part in self.patches))
        return other

    def run(self, numbers: NDArray[np.int64], layers: int) -> Rolled:
        """At most this many layers; fewer if the grid stops changing or the head is gone."""
        return self.go_on(np.pad(numbers, 1), inside(numbers), layers)

    def go_on(self, padded: NDArray[np.int64], changed: NDArray[np.int64], layers: int) -> Rolled:
        """The same from a padded grid, of which these cells differ from the layer before."""
        grid, head = padded.copy(), np.full(2, -1)
        self.patches, end, taken, after = roll(
            self.filter, self.code, self.patches, grid, changed, head, layers
        )
        _require_contents(end == STRAY)
        at = (int(head[0]) - 1, int(head[1]) - 1)
        return Rolled(grid, after.copy(), taken, at, end == LOST, end == RESTS)

    def running(self, padded: NDArray[np.int64], cells: NDArray[np.int64]) -> bool:
        """Whether a rule applies at one of these cells."""
        self.patches, found = _runs(self.filter, self.code, self.patches, padded, cells)
        return bool(found)

    def run_points(
        self,
        numbers: NDArray[np.int64],
        layers: int,
        main: tuple[int, int, int, int],
        answers: NDArray[np.float64],
    ) -> Ends:
        """The same for many grids; of the main grid (from row, to row, from column, to column) only what it
        adds up to is told."""
        padded = np.pad(numbers, ((0, 0), (1, 1), (1, 1)))
        rows = np.array(main) + 1
        self.patches, ends, taken, sums, running = roll_points(
            self.filter, self.code, self.patches, padded, layers, rows, answers
        )
        _require_contents((ends == STRAY).any())
        return Ends(taken, ends == LOST, sums, running)


def inside(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """All cells of a grid, as places of the padded one."""
    return np.flatnonzero(np.pad(np.ones_like(numbers, bool), 1))


def around(padded: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """These cells and their neighbours, as far as they are inside."""
    rows, width = padded.shape
    near = np.unique(cells[:, None] + np.array([0, -width, width, -1, 1]))
    r, c = np.divmod(near, width)
    return near[(r > 0) & (r < rows - 1) & (c > 0) & (c < width - 1)]


def _require_contents(stray: bool) -> None:
    if stray:
        raise BrokenNet("the filter gave a number that stands for no cell")
