"""Lemma 5 of Goel et al.: a ReLU network with prescribed values and prescribed Jacobians on a finite set.

Part (i): for every coordinate and every value it takes, a bump that is 1 there and 0 at all other values,
once flat and once with slope 1. Part (ii): all d bumps of a point add up to d there and to d - 1 at most
elsewhere; a threshold just below d turns this into the value. Part (iii): one such unit for each partial
derivative, the bump of that coordinate being the one that lets the gradient through.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad._precision import in_double
from tapegrad.errors import InputError, Refused
from tapegrad.networks.backends.jax import chain
from tapegrad.networks.form import Activation, Affine, Dense

LARGEST = 1 << 26
"""Most weights that are built."""

LEMMA_6 = ("W1", "W1'", "W1+", "W2'", "W2+")
ACTIVATIONS: tuple[Activation, ...] = ("relu", "linear", "relu", "linear", "linear")
"""Five linear maps; a ReLU follows the first and the third."""


PRECISION = 1e-6
"""How far a value or derivative may be off by rounding, as part of the largest one asked for."""


class FiveLayers(NamedTuple):
    """The network, as its five affine maps, and the half-width of its bumps."""

    maps: tuple[Affine, ...]
    delta: float
    rounding: float
    """Bound on the error of values and derivatives at the points, in double precision."""

    @in_double
    def __call__(self, x: ArrayLike) -> jax.Array:
        """The output for one point, given in double precision; differentiable."""
        point = jnp.asarray(x, float)
        if point.shape != (self.maps[0].width,):
            raise InputError(f"a point of shape {point.shape} for {self.maps[0].width} inputs")
        layers = tuple(Dense(own, activation) for own, activation in zip(self.maps, ACTIVATIONS, strict=True))
        return chain(layers, point)

    @in_double
    def jacobian(self, x: ArrayLike) -> jax.Array:
        """The Jacobian (outputs by inputs) at one point, by automatic differentiation."""
        return jax.jacrev(self)(jnp.asarray(x, float))

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
    rounding, largest = _rounding(X, Y, G, delta), max(np.abs(Y).max(initial=0), np.abs(G).max(initial=0))
    if not rounding <= PRECISION * largest:
        raise Refused(
            f"points up to {np.abs(X).max():.3g} with bumps of {delta:.3g} take more than double precision",
            advice="Move the points towards 0, or scale the coordinates so that gaps are about 1.",
        )
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
    return FiveLayers(maps, delta, rounding)


def _half_width(X: NDArray[np.float64]) -> float:
    """A tenth of the least gap between two values of a coordinate, and of 1."""
    gaps = [np.diff(np.unique(column)) for column in X.T]
    return float(min([1.0, *(gap.min() for gap in gaps if len(gap))]) / 10)


def _rounding(X: NDArray[np.float64], Y: NDArray[np.float64], G: NDArray[np.float64], delta: float) -> float:
    """Bound on the error of the network at its points; infinite if a threshold could be missed.

    A bump adds up four terms, of slopes that are `4 / delta + 4` together and numbers up to `2 size`; kinks,
    slopes, differences, products and sums are rounded. The sum of d bumps must reach its threshold, delta
    away. A value is `rise * 2 delta + (slope - rise) * delta`, and an error of the sum enters with the slope.
    """
    inputs, eps = X.shape[1], np.finfo(np.float64).eps
    size, value, slope = (np.abs(a).max(initial=0) for a in (X, Y, G))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        steep = 1 / np.float64(delta)
        bump = 8 * eps * (4 * steep + 4) * 2 * (size + 2 * delta)
        summed = inputs * (bump + 2 * inputs * eps)
        if not summed < delta:
            return np.inf
        rise = value * steep + slope
        off_value = inputs * (slope * summed + 4 * inputs * eps * (2 * rise + slope))
        off_slope = 4 * eps * (rise + slope * (steep + 2))
    return float(max(off_value, off_slope))


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
