"""Networks in NumPy, with the sums of sparse maps in compiled loops: however many layers a network has, one
call computes them.

**Bytes.** Where weights are small whole numbers, as those of gates are, so are the values of a network that
computes with bits. If no value exceeds `limit = (127 - largest bias) // (largest sum of a row's weights,
signs left out)`, no sum leaves the range of a byte. So sums are taken in bytes while this holds of what was
computed before, and the largest value is kept; if it is too large, everything is done again in floating
point. Thirty-two sums fit into one instruction.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from tapegrad._jit import njit
from tapegrad.networks.backends.numpy import Array, NumPy
from tapegrad.networks.network import Network, Node

BLOCK, BYTES = 64, 256
"""Places that go through the layers together, as floats and as bytes: their slots stay in the processor's
cache."""
WORTH_THREADS, OF_BYTES = 1 << 22, 8
"""Products, from which on it is worth while to wake other threads: they take a millisecond, and so does eight
times as many of bytes. On a machine that is busy with something else, the last thread to wake may come so
late that all of it would have been done a hundred times by then."""


class Maps(NamedTuple):
    """Rows layer by layer, and their entries row by row."""

    bounds: Array
    starts: Array
    columns: Array
    values: Array
    biases: Array
    floors: Array
    to: Array


class Numba(NumPy):
    """Values are NumPy arrays."""

    def __init__(self, network: Network, arrays: Mapping[str, Array] | None = None) -> None:
        super().__init__(network, arrays)
        self._prepared: dict[str, Any] = {}

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
        if node.name not in self._prepared:
            rows, bias = self.part(node, "rows"), self.part(node, "bias")
            self._prepared[node.name] = np.searchsorted(rows, np.arange(len(bias) + 1))
        return self._prepared[node.name]

    def layers(self, node: Node, x: Array) -> Array:
        """Bits may be given as bytes; then bytes come back if they can hold all values."""
        out, slots = self.part(node, "out").astype(np.uintp), node.whole("slots")
        rows = np.ascontiguousarray(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]))
        floats = x.dtype if x.dtype.kind == "f" else self.part(node, "values").dtype
        maps = self._floats(node)
        products = len(rows) * len(maps.columns)
        if len(rows) > BLOCK or floats != x.dtype:
            in_bytes, limit = self._bytes(node)
            if _few(rows, limit):
                found = np.empty((len(rows), len(out)), np.int8)
                run = _bytes_at_once if products >= OF_BYTES * WORTH_THREADS else _bytes_in_turn
                if run(in_bytes, out, slots, rows.astype(np.int8), found) <= limit:
                    found = found if floats != x.dtype else found.astype(floats)
                    return found.reshape(*x.shape[:-1], len(out))
        found = np.empty((len(rows), len(out)), floats)
        run = _at_once if products >= WORTH_THREADS else _in_turn
        run(maps, out, slots, rows.astype(floats, copy=False), found)
        return found.reshape(*x.shape[:-1], len(out))

    def between(self, node: Node, slots: Array, first: int, last: int) -> Array:
        slots = slots.copy()
        _some(self._floats(node), slots, first, last)
        return slots

    def _floats(self, node: Node) -> Maps:
        if node.name not in self._prepared:
            parts = {part: self.part(node, part) for part in Maps._fields if part != "floors"}
            own = Maps(**parts, floors=self.network.floors(node))
            places = own.columns.astype(np.uintp), own.to.astype(np.uintp)
            self._prepared[node.name] = own._replace(columns=places[0], to=places[1])
        return self._prepared[node.name]

    def _bytes(self, node: Node) -> tuple[Maps, int]:
        """The maps in whole numbers, and what a value may be at most; 0 where bytes do not serve."""
        name = f"{node.name} bytes"
        if name not in self._prepared:
            own = self._floats(node)
            numbers = np.concatenate([own.values, own.biases])
            fits = bool((numbers == np.rint(numbers)).all() and np.abs(numbers).max(initial=0) < 128)
            self._prepared[name] = _in_bytes(own) if fits else (own, 0)
        return self._prepared[name]


def _in_bytes(own: Maps) -> tuple[Maps, int]:
    sums = np.concatenate([[0], np.cumsum(np.abs(own.values.astype(np.int64)))])
    largest = max(1, int(np.diff(sums[own.starts]).max(initial=1)))
    limit = (127 - int(np.abs(own.biases).max(initial=0))) // largest
    floors = np.where(own.floors == 0, 0, -128)
    values, biases, floors = (part.astype(np.int8) for part in (own.values, own.biases, floors))
    return own._replace(values=values, biases=biases, floors=floors), limit


def _few(values: Array, limit: int) -> bool:
    """Whether all are whole numbers from 0 to the limit, which is above 0."""
    if limit < 1 or values.dtype == bool:
        return limit >= 1
    if values.min(initial=0) < 0 or values.max(initial=0) > limit:
        return False
    return values.dtype.kind != "f" or bool((values == np.trunc(values)).all())


@njit()
def _rows(starts, columns, values, bias, x, made):  # pragma: no cover - compiled
    """Every row of a map at every place."""
    for place in range(len(x)):
        for row in range(len(bias)):
            total = made.dtype.type(0)
            for entry in range(starts[row], starts[row + 1]):
                total += values[entry] * x[place, columns[entry]]
            made[place, row] = total + bias[row]


@njit(nogil=True)
def _in_turn(maps, out, slots, x, made):  # pragma: no cover - compiled
    """All layers at every place, block by block."""
    for first in range(0, len(x), BLOCK):
        _block(maps, out, slots, x[first : first + BLOCK], made[first : first + BLOCK])


@njit(parallel=True)
def _at_once(maps, out, slots, x, made):  # pragma: no cover - compiled
    """The same by all processors."""
    for block in prange((len(x) + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        _block(maps, out, slots, x[first : first + BLOCK], made[first : first + BLOCK])


@njit(nogil=True)
def _block(maps, out, slots, x, made):  # pragma: no cover - compiled
    """All layers at a few places."""
    size, width = x.shape
    here = np.zeros((slots, size), x.dtype)
    for place in range(size):
        for slot in range(width):
            here[slot, place] = x[place, slot]
    _layers(maps, here, 0, len(maps.bounds) - 1)
    for place in range(size):
        for column in range(len(out)):
            made[place, column] = here[out[column], place]


@njit(parallel=True)
def _some(maps, slots, first, last):  # pragma: no cover - compiled
    """Some layers, in place."""
    places = slots.shape[1]
    for block in prange((places + BLOCK - 1) // BLOCK):
        part = slice(block * BLOCK, min(places, (block + 1) * BLOCK))
        here = slots[:, part].copy()
        _layers(maps, here, first, last)
        slots[:, part] = here


@njit(nogil=True)
def _layers(maps, here, first, last):  # pragma: no cover - compiled
    """Layers on slots. A row is written at once: no other row of its layer reads that slot."""
    size = here.shape[1]
    total = np.empty(size, here.dtype)
    for row in range(maps.bounds[first], maps.bounds[last]):
        own, bias, floor = here[maps.to[row]], maps.biases[row], maps.floors[row]
        entry, after = maps.starts[row], maps.starts[row + 1]
        if after - entry == 2:  # most rows of the paper's networks
            w, v = maps.values[entry], maps.values[entry + 1]
            x, y = here[maps.columns[entry]], here[maps.columns[entry + 1]]
            for place in range(size):
                value = w * x[place] + v * y[place] + bias
                own[place] = floor if value < floor else value
            continue
        total[:] = 0
        for e in range(entry, after):
            weight, read = maps.values[e], here[maps.columns[e]]
            for place in range(size):
                total[place] += weight * read[place]
        for place in range(size):
            value = total[place] + bias
            own[place] = floor if value < floor else value


@njit(nogil=True)
def _bytes_in_turn(maps, out, slots, x, made):  # pragma: no cover - compiled
    """All layers in bytes, and the largest value that there was."""
    largest = 0
    for first in range(0, len(x), BYTES):
        part = x[first : first + BYTES]
        largest = max(largest, _block_of_bytes(maps, out, slots, part, made[first : first + BYTES]))
    return largest


@njit(parallel=True)
def _bytes_at_once(maps, out, slots, x, made):  # pragma: no cover - compiled
    """The same by all processors."""
    blocks = (len(x) + BYTES - 1) // BYTES
    largest = np.zeros(blocks + 1, np.int8)
    for block in prange(blocks):
        first = block * BYTES
        part = x[first : first + BYTES]
        largest[block] = _block_of_bytes(maps, out, slots, part, made[first : first + BYTES])
    return largest.max()


@njit(nogil=True)
def _block_of_bytes(maps, out, slots, x, made):  # pragma: no cover - compiled
    """A weight is added as often as it says: bytes are added faster than they are multiplied."""
    size, width = x.shape
    here = np.zeros((slots, BYTES), np.int8)
    for place in range(size):
        for slot in range(width):
            here[slot, place] = x[place, slot]
    total, seen = np.zeros(BYTES, np.int8), np.zeros(BYTES, np.int8)
    for row in range(len(maps.biases)):
        bias, floor, own = maps.biases[row], maps.floors[row], here[maps.to[row]]
        for p in range(BYTES):
            total[p] = bias
        for entry in range(maps.starts[row], maps.starts[row + 1]):
            read, weight = here[maps.columns[entry]], maps.values[entry]
            for _ in range(weight):
                for p in range(BYTES):
                    total[p] += read[p]
            for _ in range(-weight):
                for p in range(BYTES):
                    total[p] -= read[p]
        for p in range(BYTES):
            value = max(total[p], floor)
            own[p] = value
            seen[p] = max(seen[p], value)
        if floor < 0:
            for p in range(BYTES):
                seen[p] = max(seen[p], -total[p])
    for place in range(size):
        for column in range(len(out)):
            made[place, column] = here[out[column], place]
    return seen.max()
