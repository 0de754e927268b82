"""Networks with skip connections in compiled loops: the same sums, in bytes where bytes can hold them.

Weights are small whole numbers, and so are the values of a network that computes with bits. If no value
exceeds `limit = (127 - largest bias) // (largest sum of a unit's weights, signs left out)`, no sum leaves the
range of a byte. So sums are taken in bytes while this holds of what was computed before, and the largest
value is kept; if it is too large, everything is done again in floating point. Thirty-two sums fit into one
instruction.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numba import prange

from tapegrad._jit import njit
from tapegrad.networks.skips import Slots, Units

BLOCK = 256
"""Patterns that go through the network together: their values stay in the processor's cache."""


class Program(NamedTuple):
    """The units with slots in place of places."""

    starts: Int[np.ndarray, " ends"]
    reads: Int[np.ndarray, " reads"]
    weights: Int[np.ndarray, " reads"]
    biases: Int[np.ndarray, " units"]
    to: Int[np.ndarray, " units"]
    bounds: Int[np.ndarray, " ends"]
    slots: int
    """How many there are, and one that nobody reads, so that there is a first one."""
    limit: int
    """What a value may be at most for sums to fit into bytes."""


def program_of(units: Units, slots: Slots) -> Program:
    """What the loops read."""
    starts = units.starts
    sums = np.concatenate([[0], np.cumsum(np.abs(units.weights.astype(np.int64)))])
    largest = max(1, int(np.diff(sums[starts]).max(initial=1)))
    bias = int(np.abs(units.biases.astype(np.int64)).max(initial=0))
    return Program(
        starts,
        slots.of_place[units.places].astype(np.uintp),
        units.weights.astype(np.int64),
        units.biases.astype(np.int64),
        slots.of_place[units.inputs :].astype(np.uintp),
        units.bounds,
        slots.total + 1,
        (127 - bias) // largest,
    )


def run_bits(
    program: Program, bits: Bool[np.ndarray, "patterns inputs"], wanted: Int[np.ndarray, " places"]
) -> Int[np.ndarray, "places patterns"] | None:
    """What the wanted slots hold after all layers, in bytes; None where bytes cannot hold every sum. A block
    of patterns goes from bits to results without ever leaving the cache."""
    found = np.empty((len(wanted), len(bits)), np.int8)
    if program.limit < 1:
        return None
    given = np.ascontiguousarray(bits).view(np.int8)
    most = _run_bits(*program[:5], program.slots, given, wanted.astype(np.uintp), found)
    return found if most <= program.limit else None


def run_units(
    program: Program, values: Float[np.ndarray, "slots patterns"], first: int, last: int
) -> Float[np.ndarray, "slots patterns"]:
    """All slots after the layers from `first` up to `last`, not included, in numbers of the same type."""
    begin, end = int(program.bounds[first]), int(program.bounds[last])
    most = int(values.max(initial=0))
    if values.min(initial=0) >= 0 and most <= program.limit and (values == np.trunc(values)).all():
        found = values.astype(np.int8)
        most = _run(*program[:5], found, begin, end)
        if most <= program.limit:
            return found.astype(values.dtype)
    found = values.copy()
    _run(*program[:5], found, begin, end)
    return found


@njit(parallel=True)
def _run_bits(starts, reads, weights, biases, to, slots, bits, wanted, found):  # pragma: no cover - compiled
    """All units, from bits to the wanted slots; the largest value that there was."""
    patterns, inputs = bits.shape
    blocks = (patterns + BLOCK - 1) // BLOCK
    largest = np.zeros(blocks + 1, np.int8)
    for block in prange(blocks):
        first = block * BLOCK
        size = min(BLOCK, patterns - first)
        here = np.zeros((slots, BLOCK), np.int8)
        for place in range(inputs):
            for p in range(size):
                here[place, p] = bits[first + p, place]
        largest[block] = _units(starts, reads, weights, biases, to, here, 0, len(biases))
        for row in range(len(wanted)):
            for p in range(size):
                found[row, first + p] = here[wanted[row], p]
    return largest.max()


@njit(parallel=True)
def _run(starts, reads, weights, biases, to, values, begin, end):  # pragma: no cover - compiled
    """Units from `begin` up to `end`, in place; the largest value that there was."""
    slots, patterns = values.shape
    blocks = (patterns + BLOCK - 1) // BLOCK
    largest = np.zeros(blocks + 1, values.dtype)
    for block in prange(blocks):
        first = block * BLOCK
        size = min(BLOCK, patterns - first)
        here = np.zeros((slots, BLOCK), values.dtype)
        here[:, :size] = values[:, first : first + size]
        largest[block] = _units(starts, reads, weights, biases, to, here, begin, end)
        values[:, first : first + size] = here[:, :size]
    return largest.max()


@njit(nogil=True)
def _units(starts, reads, weights, biases, to, here, begin, end):  # pragma: no cover - compiled
    """Units from `begin` up to `end` for one block; the largest value that there was."""
    nothing = here.dtype.type(0)
    total, seen = np.zeros(BLOCK, here.dtype), np.zeros(BLOCK, here.dtype)
    for unit in range(begin, end):
        bias = here.dtype.type(biases[unit])
        for p in range(BLOCK):
            total[p] = bias
        for read in range(starts[unit], starts[unit + 1]):
            slot, weight = reads[read], weights[read]
            for _ in range(weight):
                for p in range(BLOCK):
                    total[p] += here[slot, p]
            for _ in range(-weight):
                for p in range(BLOCK):
                    total[p] -= here[slot, p]
        own = to[unit]
        for p in range(BLOCK):
            value = max(total[p], nothing)
            here[own, p] = value
            seen[p] = max(seen[p], value)
    return seen.max()
