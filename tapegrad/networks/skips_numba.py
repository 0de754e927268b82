"""Networks with skip connections in compiled loops: the same sums, in bytes where bytes can hold them.

Weights are small whole numbers, and so are the values of a network that computes with bits. If no value
exceeds `limit = (127 - largest bias) // (largest sum of a unit's weights, signs left out)`, no sum leaves the
range of a byte. So sums are taken in bytes while this holds of what was computed before, and the largest
value is kept; if it is too large, everything is done again in floating point. Thirty-two sums fit into one
instruction.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
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
        slots.of_place[units.places],
        units.weights.astype(np.int64),
        units.biases.astype(np.int64),
        slots.of_place[units.inputs :],
        units.bounds,
        (127 - bias) // largest,
    )


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
def _run(starts, reads, weights, biases, to, values, begin, end):  # pragma: no cover - compiled
    """Units from `begin` up to `end`, in place; the largest value that there was."""
    slots, patterns = values.shape
    blocks = (patterns + BLOCK - 1) // BLOCK
    largest = np.zeros((blocks, BLOCK), values.dtype)
    for block in prange(blocks):
        first = block * BLOCK
        size = min(BLOCK, patterns - first)
        here = np.zeros((slots, BLOCK), values.dtype)
        total = np.zeros(BLOCK, values.dtype)
        seen = largest[block]
        for slot in range(slots):
            for p in range(size):
                here[slot, p] = values[slot, first + p]
        for unit in range(begin, end):
            bias = values.dtype.type(biases[unit])
            for p in range(BLOCK):
                total[p] = bias
            for read in range(starts[unit], starts[unit + 1]):
                x, weight = here[reads[read]], weights[read]
                for _ in range(weight):
                    for p in range(BLOCK):
                        total[p] += x[p]
                for _ in range(-weight):
                    for p in range(BLOCK):
                        total[p] -= x[p]
            out = here[to[unit]]
            for p in range(BLOCK):
                z = total[p] if total[p] > 0 else values.dtype.type(0)
                out[p] = z
                seen[p] = max(seen[p], z)
        for slot in range(slots):
            for p in range(size):
                values[slot, first + p] = here[slot, p]
    return largest.max()
