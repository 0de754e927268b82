"""The engine `fast`: a cell is computed only if its patch has changed, and every patch only once.

Exact because the filter is a function of the patch: a cell whose patch is as it was a layer ago has the
value it had then. Everything is read off the compiled arrays; the machine is not known here.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, Refused
from tapegrad.nets.rcnn.cells import HEAD
from tapegrad.nets.rcnn.channels import ChannelFilter
from tapegrad.nets.rcnn.encoding import Encoding, Filter
from tapegrad.nets.rcnn.rolling import NEEDS_ROOM, STRAY, roll
from tapegrad.nets.rcnn.sparse import Affine

FIRST_ROOM = 1 << 14


@dataclass(frozen=True)
class SparseLayers:
    """The filter's maps one below the other: where each row's weights start, and each layer's rows."""

    row_start: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    bias: NDArray[np.float64]
    layer_start: NDArray[np.int64]
    relu: NDArray[np.bool_]


def sparse_layers(filter: Filter) -> SparseLayers:
    """The compiled arrays in the form the loop reads; inputs are numbered cell by cell, then by channel."""
    if isinstance(filter, ChannelFilter):
        by_cell = np.moveaxis(np.asarray(filter.kernel), 1, -1).reshape(len(filter.bias), -1)
        maps = [_as_affine(by_cell, np.asarray(filter.bias)), _as_affine(np.asarray(filter.mix), None)]
        relu = [True, False]
    else:
        maps, relu = list(filter.maps), [True, False, True, False, False]
    lengths = np.concatenate([np.bincount(m.rows, minlength=len(m.bias)) for m in maps])
    return SparseLayers(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([m.columns for m in maps]),
        np.concatenate([m.values for m in maps]),
        np.concatenate([m.bias for m in maps]),
        np.concatenate([[0], np.cumsum([len(m.bias) for m in maps])]),
        np.array(relu),
    )


def _as_affine(matrix: NDArray[np.float32], bias: NDArray[np.float32] | None) -> Affine:
    rows, columns = np.nonzero(matrix)
    offsets = np.zeros(len(matrix)) if bias is None else bias.astype(np.float64)
    return Affine(rows, columns, matrix[rows, columns].astype(np.float64), offsets, matrix.shape[1])


class Rolled(NamedTuple):
    """Where a run of layers ended: the contents, the layers taken, the head's last cell, whether the head has
    left the grid, and whether the last layer changed nothing."""

    numbers: NDArray[np.int64]
    layers: int
    head: tuple[int, int]
    lost: bool
    settled: bool


class Roller:
    """A filter made ready for the loop, with the patches it has met and what they become."""

    def __init__(self, filter: Filter, encoding: Encoding) -> None:
        self.layers = sparse_layers(filter)
        self.table = encoding.table().astype(np.float64)
        self.possible = encoding.cells.possible
        self.is_head = encoding.cells.facts[:, 2] >= HEAD
        first = self.layers.columns[: self.layers.row_start[self.layers.layer_start[1]]]
        self.used = np.unique(first // filter.channels)
        """The cells of a patch that the first map reads at all: the centre and its four neighbours."""
        if encoding.cells.count ** len(self.used) >= 1 << 63:
            raise Refused(f"{encoding.cells.count:,} contents of a cell are too many for the engine 'fast'")
        self.keys, self.results = _empty(FIRST_ROOM)

    def run(self, numbers: NDArray[np.int64], layers: int) -> Rolled:
        """At most this many layers; fewer if the grid stops changing or the head is gone."""
        padded = np.pad(numbers, 1)
        head = np.full(2, -1)
        every = np.flatnonzero(np.pad(np.ones_like(numbers), 1).ravel())
        changed, done, status = every, 0, NEEDS_ROOM
        while done < layers:
            status, taken, changed = roll(
                padded, changed, head, layers - done, self.used, self.table, self.possible, self.is_head,
                self.keys, self.results, self.layers.row_start, self.layers.columns, self.layers.values,
                self.layers.bias, self.layers.layer_start, self.layers.relu,
            )  # fmt: skip
            done += taken
            if status == STRAY:
                raise BrokenNet("the filter gave a number that stands for no cell")
            if status != NEEDS_ROOM:
                break
            self._grow()
        at = (int(head[0]) - 1, int(head[1]) - 1)
        inside = padded[1:-1, 1:-1]
        lost = head[0] >= 0 and not self.is_head[inside].any()
        return Rolled(inside.copy(), done, at, bool(lost), settled=len(changed) == 0)

    def _grow(self) -> None:
        full = self.keys >= 0
        keys, results = _empty(2 * len(self.keys))
        for key, result in zip(self.keys[full], self.results[full], strict=True):
            slot = hash_slot(int(key), len(keys))
            while keys[slot] >= 0:
                slot = (slot + 1) & (len(keys) - 1)
            keys[slot], results[slot] = key, result
        self.keys, self.results = keys, results


def hash_slot(key: int, room: int) -> int:
    """Where the search for a key begins; the same mixing as in the loop."""
    return ((key * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 20) & (room - 1)


def _empty(room: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.full(room, -1), np.zeros(room, dtype=np.int64)
