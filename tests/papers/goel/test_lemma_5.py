"""Lemma 5: prescribed values and Jacobians, checked by automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad._precision import in_double
from tapegrad.errors import InputError, Refused
from tapegrad_papers.goel.lemma_5 import interpolate


@in_double
def values_and_jacobians(net, X):
    found = jax.jit(lambda X: (jax.vmap(net)(X), jax.vmap(net.jacobian)(X)))(jnp.asarray(X))
    return tuple(np.asarray(part) for part in found)


@settings(deadline=None, max_examples=15)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(1, 2),
    st.tuples(st.integers(-2, 3), st.integers(-6, 6), st.integers(-6, 6)),
    st.integers(0, 3),
)
@pytest.mark.slow
def test_values_and_jacobians_are_met_at_every_point(seed, count, inputs, outputs, scales, away):
    """Points, values and Jacobians of many sizes, the points also far from 0."""
    rng = np.random.default_rng(seed)
    spread, high, steep = (10.0**scale for scale in scales)
    X = spread * (np.unique(rng.integers(-2, 3, (count, inputs)), axis=0) + (10**away - 1)) / 3
    Y = high * rng.normal(size=(len(X), outputs)) * rng.integers(0, 2, (len(X), outputs))
    G = steep * rng.normal(size=(len(X), outputs, inputs)) * rng.integers(0, 2, (len(X), outputs, inputs))
    net = interpolate(X, Y, G)
    found, jacobians = values_and_jacobians(net, X)
    off = max(np.abs(found - Y).max(), np.abs(jacobians - G).max())
    assert off <= net.rounding <= 1e-6 * max(np.abs(Y).max(), np.abs(G).max())


def test_other_points_of_the_domain_do_not_disturb():
    """A function and its derivative on a grid of points: x y^2 on five by four of them."""
    X = np.array([(a, b) for a in range(5) for b in np.arange(4) / 2])
    x, y = X.T
    net = interpolate(X, (x * y**2)[:, None], np.stack([y**2, 2 * x * y], axis=1)[:, None])
    found, jacobians = values_and_jacobians(net, X)
    assert np.abs(found[:, 0] - x * y**2).max() < 1e-9
    assert np.abs(jacobians[:, 0] - np.stack([y**2, 2 * x * y], axis=1)).max() < 1e-9


def test_precision_that_does_not_suffice_is_refused():
    def two(at, gap):
        return interpolate([[at], [at + gap]], [[1.0], [0.0]], np.ones((2, 1, 1)))

    assert abs(float(two(1e5, 1.0)([1e5])[0]) - 1) < 1e-6
    for at, gap in ((1e12, 1.0), (1e9, 1.0), (1.0, 1e-9), (0.0, 5e-324), (0.0, 1e-310), (1e300, 1e299)):
        with pytest.raises(Refused, match="take more than double precision"):
            two(at, gap)


def test_sizes_and_weight_sets_are_those_of_lemmas_5_and_6():
    rng = np.random.default_rng(1)
    X = np.unique(rng.integers(-1, 2, (8, 3)) / 3, axis=0)
    Y = rng.integers(-1, 2, (len(X), 1)) / 3
    G = rng.integers(0, 2, (len(X), 1, 3)).astype(float)
    net = interpolate(X, Y, G)
    assert len(net.maps[0].bias) <= 10 * 3 * len(X)
    assert len(net.maps[2].bias) <= 6 * 3 * 1 * len(X)
    values = {name: len(found) for name, found in net.weight_values().items()}
    domain, range_ = len(np.unique(X)), len(np.unique(Y))
    assert values["W1"] <= 4 * domain + 2
    assert values["W1'"] <= 12 * domain
    assert values["W1+"] <= 4
    assert values["W2'"] <= 4 * 2 * range_
    assert values["W2+"] == 1
    distinct = np.unique(np.concatenate(list(net.weight_values().values())))
    assert len(distinct) + 1 <= 24 * domain + 5


def test_bad_specifications_are_refused():
    with pytest.raises(InputError, match="twice"):
        interpolate([[0.0], [0.0]], [[1.0], [2.0]], np.zeros((2, 1, 1)))
    with pytest.raises(InputError, match="fit together"):
        interpolate([[0.0]], [[1.0]], np.zeros((1, 2, 1)))
    with pytest.raises(InputError, match=r"shape \(1,\) for 2 inputs"):
        interpolate([[0, 1]], [[1]], [[[0, 1]]])([0.0])
    with pytest.raises(InputError, match="finite"):
        interpolate([[np.nan]], [[1.0]], np.zeros((1, 1, 1)))
    with pytest.raises(Refused, match="weights"):
        interpolate(np.arange(10**5)[:, None] * np.ones(9), np.zeros((10**5, 9)), np.zeros((10**5, 9, 9)))
