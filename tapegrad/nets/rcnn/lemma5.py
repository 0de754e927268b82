"""Lemma 5 of Goel et al.: a ReLU network with prescribed values and prescribed Jacobians on a finite set.

Part (i): for every coordinate and every value it takes, a bump that is 1 there and 0 at all other values,
once flat and once with slope 1. Part (ii): all d bumps of a point add up to d there and to d - 1 at most
elsewhere; a threshold just below d turns this into the value. Part (iii): one such unit for each partial
derivative, the bump of that coordinate being the one that lets the gradient through.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.nets.rcnn.sparse import Affine

LARGEST = 1 << 26
"""Most weights that are built."""

LEMMA_6 = ("W1", "W1'", "W1+", "W2'", "W2+")
"""Five linear maps; a ReLU follows the first and the third."""


class FiveLayers(NamedTuple):
    """The network, as its five affine maps, and the half-width of its bumps."""

    maps: tuple[Affine, ...]
    delta: float

    def weight_values(self) -> dict[str, NDArray[np.float64]]:
        """The distinct nonzero weights and biases of each map: the sets U(W) of Lemma 6."""
        return {
            name: np.setdiff1d(np.unique(np.concatenate([m.values, m.bias])), [0.0])
            for name, m in zip(LEMMA_6, self.maps, strict=True)
        }


def interpolate(points: ArrayLike, values: ArrayLike, jacobians: ArrayLike) -> FiveLayers:
    """The network with `f(points[n]) = values[n]` and Jacobian `jacobians[n]` (outputs by inputs) there."""
    X, Y, G = (np.asarray(a, dtype=np.float64) for a in (points, values, jacobians))
    if X.ndim != 2 or Y.ndim != 2 or G.shape != (len(X), Y.shape[1], X.shape[1]) or len(X) != len(Y):
        raise InputError(f"points {X.shape}, values {Y.shape} and Jacobians {G.shape} do not fit together")
    if not all(np.isfinite(a).all() for a in (X, Y, G)):
        raise InputError("points, values and Jacobians must be finite")
    if len(np.unique(X, axis=0)) < len(X):
        raise InputError("a point is given twice")
    count, inputs = X.shape
    if 2 * count * inputs * Y.shape[1] * (inputs + 2) > LARGEST:
        raise Refused(
            f"the network would have over {LARGEST:,} weights",
            advice="Lemma 5 is for small domains; filters are built by clauses over single cells.",
        )
    delta = _half_width(X)
    bumps, first, second = _bumps(X, delta)
    third: list[tuple[int, int, float]] = []
    fourth: list[tuple[int, int, float]] = []
    fifth: list[tuple[int, int, float]] = []
    thresholds: list[float] = []
    indicators = 0
    for n, i, j in np.ndindex(count, Y.shape[1], inputs):
        value, slope = (Y[n, i] if j == 0 else 0.0), G[n, i, j]
        if value == 0 and slope == 0:
            continue
        rise = (value - slope * delta) / delta
        for threshold, weight in ((inputs - 2 * delta, rise), (inputs - delta, slope - rise)):
            unit = len(thresholds)
            third += [(unit, bumps[k, X[n, k], k == j], 1.0) for k in range(inputs)]
            thresholds.append(-threshold)
            fourth.append((indicators, unit, weight))
        fifth.append((i, indicators, 1.0))
        indicators += 1
    maps = (
        first,
        second,
        Affine.from_triples(third, (len(thresholds), len(bumps)), np.array(thresholds)),
        Affine.from_triples(fourth, (indicators, len(thresholds))),
        Affine.from_triples(fifth, (Y.shape[1], indicators)),
    )
    return FiveLayers(maps, delta)


def _half_width(X: NDArray[np.float64]) -> float:
    """A tenth of the least gap between two values of a coordinate, and of 1."""
    gaps = [np.diff(np.unique(column)) for column in X.T]
    return float(min([1.0, *(gap.min() for gap in gaps if len(gap))]) / 10)


def _bumps(X: NDArray[np.float64], delta: float) -> tuple[dict[tuple[int, float, bool], int], Affine, Affine]:
    """0 outside `2 delta`, 1 at the value, slope 0 or 1 within `delta`: four kinks each."""
    bumps: dict[tuple[int, float, bool], int] = {}
    first: list[tuple[int, int, float]] = []
    second: list[tuple[int, int, float]] = []
    bias: list[float] = []
    for k in range(X.shape[1]):
        for value in np.unique(X[:, k]):
            for passes in (False, True):
                bump = bumps[k, value, passes] = len(bumps)
                slope = 1.0 if passes else 0.0
                rise, fall = (1 - slope * delta) / delta, -(1 + slope * delta) / delta
                kinks = value + delta * np.array([-2, -1, 1, 2])
                for kink, weight in zip(kinks, (rise, slope - rise, fall - slope, -fall), strict=True):
                    first.append((len(bias), k, 1.0))
                    second.append((bump, len(bias), weight))
                    bias.append(-kink)
    units = len(bias)
    return (
        bumps,
        Affine.from_triples(first, (units, X.shape[1]), np.array(bias)),
        Affine.from_triples(second, (len(bumps), units)),
    )
