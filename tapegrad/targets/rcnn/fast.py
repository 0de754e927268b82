"""The engine `fast`: a cell is computed only if its patch has changed, and every patch only once.

Exact because the filter is a function of the patch: a cell whose patch is as it was a layer ago has the
value it had then. Everything is read off the compiled arrays; the machine is not known here.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, Refused
from tapegrad.targets.rcnn.cells import HEAD
from tapegrad.targets.rcnn.channels import ChannelFilter
from tapegrad.targets.rcnn.encoding import CLOSE, Encoding, Filter
from tapegrad.targets.rcnn.rolling import (
    CONTENT_BITS,
    LOST,
    RESTS,
    STRAY,
    Code,
    SparseLayers,
    no_patches,
    roll,
    roll_points,
)

FIRST_ROOM = 1 << 10
"""Patches that the memory has room for at first, twice over; it grows by itself."""


def sparse_layers(filter: Filter) -> SparseLayers:
    """The compiled arrays in the form the loop reads; inputs are numbered cell by cell, then by channel."""
    if isinstance(filter, ChannelFilter):
        kernel, mix = np.asarray(filter.kernel), np.asarray(filter.mix)
        units, channels, r, c = np.nonzero(kernel)
        by_cell = (units, (3 * r + c) * filter.channels + channels, kernel[units, channels, r, c])
        rows, columns = np.nonzero(mix)
        maps = [by_cell, (rows, columns, mix[rows, columns])]
        biases, relu = [np.asarray(filter.bias), np.zeros(len(mix))], [True, False]
        widths = [9 * filter.channels, len(kernel)]
    else:
        maps = [(m.rows, m.columns, m.values) for m in filter.maps]
        biases, relu = [m.bias for m in filter.maps], [True, False, True, False, False]
        widths = [m.width for m in filter.maps]
    inputs = np.concatenate([[0], np.cumsum(widths)])
    columns = np.concatenate([start + m[1] for start, m in zip(inputs, maps, strict=False)])
    order = np.argsort(columns, kind="stable")
    return SparseLayers(
        np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=inputs[-1]))]),
        np.concatenate([m[0] for m in maps])[order],
        np.concatenate([m[2] for m in maps]).astype(np.float64)[order],
        np.concatenate(biases).astype(np.float64),
        inputs,
        np.concatenate([[0], np.cumsum([len(bias) for bias in biases])]),
        np.array(relu),
        np.asarray(filter.rule_units),
    )


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
    """Where a run of layers ended: the contents, the layers taken, the head's last cell, whether the head has
    left the grid, and whether the last layer changed nothing."""

    numbers: NDArray[np.int64]
    layers: int
    head: tuple[int, int]
    lost: bool
    settled: bool


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
        self.layers = sparse_layers(filter)
        weights = np.diff(self.layers.column_start[: self.layers.inputs[1] + 1]).reshape(9, -1)
        if weights[[0, 2, 6, 8]].any():
            raise BrokenNet("the filter reads a diagonal neighbour")
        if encoding.cells.count > 1 << CONTENT_BITS:
            raise Refused(f"{encoding.cells.count:,} contents of a cell are too many for the engine 'fast'")
        self.code = code_of(encoding)
        self.patches = no_patches(FIRST_ROOM)

    def copy(self) -> "Roller":
        """With a memory of its own, for another thread."""
        other = object.__new__(Roller)
        other.layers, other.code = self.layers, self.code
        other.patches = type(self.patches)(*(part.copy() for part in self.patches))
        return other

    def run(self, numbers: NDArray[np.int64], layers: int) -> Rolled:
        """At most this many layers; fewer if the grid stops changing or the head is gone."""
        padded = np.pad(numbers, 1)
        head = np.full(2, -1)
        every = np.flatnonzero(np.pad(np.ones_like(numbers), 1).ravel())
        self.patches, end, taken = roll(self.layers, self.code, self.patches, padded, every, head, layers)
        _require_contents(end == STRAY)
        at = (int(head[0]) - 1, int(head[1]) - 1)
        return Rolled(padded[1:-1, 1:-1].copy(), taken, at, end == LOST, end == RESTS)

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
            self.layers, self.code, self.patches, padded, layers, rows, answers
        )
        _require_contents((ends == STRAY).any())
        return Ends(taken, ends == LOST, sums, running)


def _require_contents(stray: bool) -> None:
    if stray:
        raise BrokenNet("the filter gave a number that stands for no cell")
