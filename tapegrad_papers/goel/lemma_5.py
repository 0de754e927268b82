"""Lemmas 5 and 6 and Corollary 3: ReLU networks with prescribed values and Jacobians, and few weights."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad._precision import in_double
from tapegrad.targets.rcnn.exactness import initialisation_set
from tapegrad.targets.rcnn.lemma5 import LEMMA_6, FiveLayers, interpolate
from tapegrad_papers.goel import PAPER
from tapegrad_papers.ledger import Outcome, holds, holds_corrected

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
