"""The engine of the noise-tolerant network, compiled: SGD in double precision, and for decimals the part of a
forward pass that needs none.

Nearly all vertices compute, and their total input is far from where f* bends: there the value is 2 or -2 and
the derivative 0, whatever the digits beyond the sixteenth. So for decimals a pass in double precision, with a
bound on its error at every vertex, says which vertices are flat for sure; only the others, the components and
their controls, are computed to all digits. What comes out is the same, digit by digit.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.targets.emulator.fast import backward
from tapegrad.targets.emulator.graph import Graph

ROUNDING = 1e-14
"""Of a sum in double precision, relative to the sum of sizes: its terms are few, or mostly zero."""
STEEPEST = 4.0
"""More than the slope of f* anywhere; it is 3 at 1."""


@njit(inline="always")
def _cube(x, dead):
    """f* and its derivative, as `loss.cube_by_hand` has them."""
    size = abs(x)
    sign = 1.0 if x > 0 else -1.0
    if size <= dead:
        return 0.0, 0.0
    if size >= 1.5:
        return 2.0 * sign, 0.0
    if size > 1.0:
        u = 2 * (size - 1)
        return sign * (1 + u * (3 - u * u) / 2), 3 - 3 * u * u
    cubed = x * x * x
    if size >= 2 * dead:
        return cubed, 3 * x * x
    u = (size - dead) / dead
    blend, slope = u * u * (3 - 2 * u), 6 * u * (1 - u) / dead
    return cubed * blend, 3 * x * x * blend + sign * cubed * slope


@njit()
def _forward(weights, offsets, sources, inputs, dead, values, slopes):
    given = len(inputs)
    values[:given] = inputs
    for v in range(given, len(values)):
        total = 0.0
        for e in range(offsets[v - given], offsets[v - given + 1]):
            total += weights[e] * values[sources[e]]
        values[v], slopes[v] = _cube(total, dead)


@njit()
def _flat(weights, off, offsets, sources, inputs, flat):
    given = len(inputs)
    values, errors = np.zeros(given + len(flat)), np.zeros(given + len(flat))
    values[:given] = inputs
    for k in range(len(flat)):
        total = size = error = 0.0
        for e in range(offsets[k], offsets[k + 1]):
            s = sources[e]
            total += weights[e] * values[s]
            size += abs(weights[e] * values[s])
            error += abs(weights[e]) * errors[s] + off * (abs(values[s]) + errors[s])
        error += ROUNDING * size
        if abs(total) - error >= 1.5:
            flat[k] = 2 if total > 0 else -2
            values[given + k] = flat[k]
        else:
            values[given + k] = _cube(total, 0.0)[0]
            errors[given + k] = STEEPEST * error + 1e-30  # more than the dead zone's cube takes away


def values(
    graph: Graph, weights: NDArray[np.float64], row: NDArray[np.int8], dead: float
) -> NDArray[np.float64]:
    """The value of every vertex, in double precision."""
    every, slopes = np.zeros(graph.vertices), np.zeros(graph.vertices)
    _forward(weights, graph.offsets, graph.sources, row.astype(np.float64), dead, every, slopes)
    return every


def sgd_step(
    graph: Graph, weights: NDArray[np.float64], row: NDArray[np.int8], label: float, rate: float, dead: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One step of SGD in double precision; the new weights, and the values that it saw."""
    every, slopes = np.zeros(graph.vertices), np.zeros(graph.vertices)
    inputs, after = row.astype(np.float64), weights.copy()
    _forward(weights, graph.offsets, graph.sources, inputs, dead, every, slopes)
    given = after, graph.offsets, graph.sources, graph.inputs, every, slopes
    backward(*given, np.zeros(len(every)), 2 * (every[-1] - label), rate)
    return after, every


def flat_for_sure(
    graph: Graph, weights: NDArray[np.float64], row: NDArray[np.int8], off: float = 0.0
) -> NDArray[np.int8]:
    """For every vertex after the inputs 2 or -2 where no rounding could make it anything else, and else 0.
    Weights are rounded ones, of weights that are up to `off` away."""
    flat = np.zeros(graph.vertices - graph.inputs, np.int8)
    _flat(weights, off, graph.offsets, graph.sources, row.astype(np.float64), flat)
    return flat


class Decimals(list[Decimal]):
    """Weights in decimals. `near` has doubles for them: each is rounded from what the weight was when a
    gradient last changed it, and noise has moved it by at most `off` since."""

    near: NDArray[np.float64]
    off: float

    @classmethod
    def of(cls, weights: Sequence[Decimal]) -> Self:
        """Every weight converted, which takes as long as all else in a step: not where it was done before."""
        if isinstance(weights, cls):
            return weights
        found = cls(weights)
        found.near, found.off = np.array(weights, np.float64), 0.0
        return found

    def after(self, weights: Sequence[Decimal]) -> Self:
        """A step later, in which a few have changed and all others are the same objects."""
        found = type(self)(weights)
        found.near, found.off = self.near.copy(), self.off
        for e, (old, new) in enumerate(zip(self, weights, strict=True)):
            if old is not new:
                found.near[e] = float(new)
        return found

    def disturbed(self, most: Decimal, random: np.random.Generator) -> Self:
        """With noise on every weight, evenly distributed, its size at most `most`: a whole number of units,
        which are so small that there are 10^15 of them."""
        unit = Decimal(1).scaleb(most.adjusted() - 15)
        count = int(most / unit)
        noise = random.integers(-count, count, len(self), endpoint=True).tolist()
        found = type(self)([weight + unit * n for weight, n in zip(self, noise, strict=True)])
        found.near, found.off = self.near, self.off + 1.001 * float(most)
        return found
