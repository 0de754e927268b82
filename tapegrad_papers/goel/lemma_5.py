"""Lemmas 5 and 6 and Corollary 3: ReLU networks with prescribed values and Jacobians, and few weights."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad._precision import in_double
from tapegrad.errors import InputError, Refused
from tapegrad.networks.form import Activation, Affine, Dense
from tapegrad_papers.goel import PAPER
from tapegrad_papers.goel.drawn import initialisation_set
from tapegrad_papers.layers import chain
from tapegrad_papers.ledger import Outcome, holds, holds_corrected

# Lemma 5 of Goel et al.: a ReLU network with prescribed values and prescribed Jacobians on a finite set.
#
# Part (i): for every coordinate and every value it takes, a bump that is 1 there and 0 at all other values,
# once flat and once with slope 1. Part (ii): all d bumps of a point add up to d there and to d - 1 at most
# elsewhere; a threshold just below d turns this into the value. Part (iii): one such unit for each partial
# derivative, the bump of that coordinate being the one that lets the gradient through.


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


DOMAIN = np.array([-1.0, 0.0, 1.0]) / 3


def _specification(seed: int, count: int, inputs: int, outputs: int) -> tuple[NDArray[np.float64], ...]:
    """Points, values and Jacobians in {0, 1}, over the values of DOMAIN."""
    rng = np.random.default_rng(seed)
    X = np.unique(rng.choice(DOMAIN, (count, inputs)), axis=0)
    return (
        X,
        rng.choice(DOMAIN, (len(X), outputs)),
        rng.integers(0, 2, (len(X), outputs, inputs)).astype(float),
    )


@in_double
def _errors(net: FiveLayers, X, Y, G) -> tuple[float, float]:
    """Largest errors of the values and of the Jacobians by automatic differentiation."""
    points = jnp.asarray(X)
    values = jax.vmap(net)(points) - Y
    slopes = jax.vmap(net.jacobian)(points) - G
    return float(jnp.abs(values).max()), float(jnp.abs(slopes).max())


@PAPER.claim("Lemma 5", "A 3-layer ReLU network with given values and given Jacobians on a finite set")
def lemma_5(long: bool) -> Outcome:
    value = slope = 0.0
    widths = True
    shapes = [(8, 3, 2)] if not long else [(5, 2, 1), (8, 3, 2), (20, 3, 2), (30, 4, 3)]
    for seed, (count, inputs, outputs) in enumerate(shapes):
        X, Y, G = _specification(seed, count, inputs, outputs)
        net = interpolate(X, Y, G)
        off = _errors(net, X, Y, G)
        value, slope = max(value, off[0]), max(slope, off[1])
        widths &= len(net.maps[0].bias) <= 10 * inputs * len(X)
        widths &= len(net.maps[2].bias) <= 6 * inputs * outputs * len(X)
    X = np.array([[0.0, 0.0], [0.0, 1.0]])
    printed_delta = min(abs(a[i] - b[i]) for a in X for b in X if (a != b).any() for i in range(2)) / 10
    checks = {
        "values at every point": value < 1e-9,
        "Jacobians at every point, by automatic differentiation": slope < 1e-8,
        "d1 <= 10 d_in |X| and d2 <= 6 d_in d_out |X|": widths,
        "the printed Delta is 0 for the points (0, 0) and (0, 1)": printed_delta == 0,
        "ours is positive there": interpolate(X, [[1.0], [2.0]], np.ones((2, 1, 2))).delta > 0,
    }
    return holds_corrected(
        checks,
        stated="f_net = f and df_net/dx = g on X, with d1 = 10 d_in |X|, d2 = 6 d_in d_out |X|",
        measured=f"values to {value:.1e}, Jacobians to {slope:.1e}",
        correction="Delta is a tenth of the least gap between two *different* values of a coordinate; as "
        "printed it is 0 whenever two points share a coordinate. Four kinks make a bump and two a "
        "threshold, so the widths are upper bounds.",
        values_off=value,
        slopes_off=slope,
    )


def _weight_sets(seeds: int) -> dict[str, set[float]]:
    """All weights of each map, over several f and g on one domain."""
    X, _, _ = _specification(0, 9, 2, 1)
    found: dict[str, set[float]] = {name: set() for name in LEMMA_6}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        Y, G = rng.choice(DOMAIN, (len(X), 1)), rng.integers(0, 2, (len(X), 1, 2)).astype(float)
        for name, values in interpolate(X, Y, G).weight_values().items():
            found[name] |= set(np.round(values, 9).tolist())
    return found


@PAPER.claim("Lemma 6", "The weights of each layer come from a set that depends on the domains only")
def lemma_6(long: bool) -> Outcome:
    found = _weight_sets(60 if long else 20)
    again = _weight_sets(30 if long else 10)
    sizes = {name: len(values) for name, values in found.items()}
    x, g = len(DOMAIN), 2
    bounds = dict(zip(LEMMA_6, (4 * x + 2, 12 * x, 4, 4 * g * x, 1), strict=True))
    checks = {f"|U({name})| <= {bounds[name]}": sizes[name] <= bounds[name] for name in LEMMA_6}
    checks["with twice as many f and g, the sets are the same"] = found == again
    return holds(
        checks,
        stated=", ".join(f"|U({name})| <= {bound}" for name, bound in bounds.items()),
        measured=", ".join(f"{name}: {size}" for name, size in sizes.items()),
        sizes=list(sizes.values()),
    )


@PAPER.claim("Corollary 3", "One set of at most 24 |X_i| + 5 weights for all layers")
def corollary_3(long: bool) -> Outcome:
    union = set().union(*_weight_sets(60 if long else 20).values()) | {0.0}
    bound = 24 * len(DOMAIN) + 5
    sizes = {s: len(initialisation_set(s)) for s in (4, 16, 64)}
    values = {s: 3 ** (int(math.log2(s)) + 4) for s in sizes}
    checks = {
        "the union over the layers is within the bound": len(union) <= bound,
        "U_s of the filter is within 24 * 16 s + 5": all(n <= 24 * 16 * s + 5 for s, n in sizes.items()),
        "although V_s, with log2(s) + 4 ternary digits, has more than 16 s values": all(
            count > 16 * s for s, count in values.items()
        ),
    }
    return holds(
        checks,
        stated=f"|U| <= 24 |X_i| + 5 = {bound}; for the filter 24 * 16 s + 5",
        measured=f"{len(union)}; U_s for s = {list(sizes)}: {list(sizes.values())}",
        note="16 s = 2^(log s + 4) counts binary digits; V_s has 3^(log s + 4) values. The filter made of "
        "questions on single cells needs no table over V_s, and stays within the printed number.",
        size=len(union),
    )
