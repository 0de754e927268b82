"""Networks in NumPy, with the sums of sparse maps in compiled loops: however many layers a network has, one
call computes them."""

import math
from typing import NamedTuple

import numpy as np
from numba import prange

from tapegrad._jit import njit
from tapegrad.networks.backends.numpy import Array, NumPy
from tapegrad.networks.network import Node

BLOCK = 64
"""Places that go through the layers together: their slots stay in the processor's cache."""


class Maps(NamedTuple):
    """Rows layer by layer, and their entries row by row."""

    bounds: Array
    starts: Array
    columns: Array
    values: Array
    biases: Array


class Numba(NumPy):
    """Values are NumPy arrays."""

    def affine(self, node: Node, x: Array) -> Array:
        bias = self.part(node, "bias")
        if x.size <= len(bias) * 8:  # few places: what is called costs more than what is computed
            starts = self._starts(node)
            made = np.empty((math.prod(x.shape[:-1]), len(bias)), x.dtype)
            rows = x.reshape(len(made), x.shape[-1])
            _rows(starts, self.part(node, "columns"), self.part(node, "values"), bias, rows, made)
            return made.reshape(*x.shape[:-1], len(bias))
        return super().affine(node, x)

    def _starts(self, node: Node) -> Array:
        name = f"{node.name} starts"
        if name not in self._made:
            rows, bias = self.part(node, "rows"), self.part(node, "bias")
            self._made[name] = np.searchsorted(rows, np.arange(len(bias) + 1))
        return self._made[name]

    def layers(self, node: Node, x: Array) -> Array:
        maps = Maps(*(self.part(node, part) for part in Maps._fields))
        to, floors, out = (self.part(node, part) for part in ("to", "floors", "out"))
        made = np.empty((math.prod(x.shape[:-1]), len(out)), x.dtype)
        rows = np.ascontiguousarray(x.reshape(len(made), x.shape[-1]))
        # One block is not worth waking other threads.
        run = _block if len(rows) <= BLOCK else _blocks
        run(maps, to, floors, out, node.whole("slots"), rows, made)
        return made.reshape(*x.shape[:-1], len(out))


@njit()
def _rows(starts, columns, values, bias, x, made):  # pragma: no cover - compiled
    """Every row of a map at every place."""
    for place in range(len(x)):
        for row in range(len(bias)):
            total = made.dtype.type(0)
            for entry in range(starts[row], starts[row + 1]):
                total += values[entry] * x[place, columns[entry]]
            made[place, row] = total + bias[row]


@njit(parallel=True)
def _blocks(maps, to, floors, out, slots, x, made):  # pragma: no cover - compiled
    """All layers at every place, block by block."""
    for block in prange((len(x) + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        _block(maps, to, floors, out, slots, x[first : first + BLOCK], made[first : first + BLOCK])


@njit(nogil=True)
def _block(maps, to, floors, out, slots, x, made):  # pragma: no cover - compiled
    """All layers at a few places."""
    size, width = x.shape
    widest = 0
    for layer in range(len(maps.bounds) - 1):
        widest = max(widest, maps.bounds[layer + 1] - maps.bounds[layer])
    here, sums = np.zeros((slots, size), x.dtype), np.empty((widest, size), x.dtype)
    for place in range(size):
        for slot in range(width):
            here[slot, place] = x[place, slot]
    for layer in range(len(maps.bounds) - 1):
        begin, end = maps.bounds[layer], maps.bounds[layer + 1]
        for row in range(begin, end):
            total, bias = sums[row - begin], maps.biases[row]
            total[:] = 0
            for entry in range(maps.starts[row], maps.starts[row + 1]):
                weight, read = maps.values[entry], here[maps.columns[entry]]
                for place in range(size):
                    total[place] += weight * read[place]
            for place in range(size):
                total[place] += bias
        for row in range(begin, end):
            floor, total, written = floors[row], sums[row - begin], here[to[row]]
            for place in range(size):
                written[place] = max(total[place], floor)
    for place in range(size):
        for column in range(len(out)):
            made[place, column] = here[out[column], place]
