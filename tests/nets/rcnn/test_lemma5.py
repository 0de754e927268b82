"""Lemma 5: prescribed values and Jacobians, checked by automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.errors import InputError, Refused
from tapegrad.nets.rcnn.lemma5 import interpolate
from tapegrad.precision import in_double


@in_double
def values_and_jacobians(net, X):
    def apply(x):
        for i, linear in enumerate(net.maps):
            x = linear(x[:, None])[:, 0]
            x = jax.nn.relu(x) if i in (0, 2) else x
        return x

    found = jax.jit(lambda X: (jax.vmap(apply)(X), jax.vmap(jax.jacrev(apply))(X)))(jnp.asarray(X))
    return tuple(np.asarray(part) for part in found)


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 3), st.integers(1, 2))
def test_values_and_jacobians_are_met_at_every_point(seed, count, inputs, outputs):
    rng = np.random.default_rng(seed)
    X = np.unique(rng.integers(-2, 3, (count, inputs)) / 3, axis=0)
    Y = rng.integers(-2, 3, (len(X), outputs)) / 3
    G = rng.integers(-1, 3, (len(X), outputs, inputs)).astype(float)
    net = interpolate(X, Y, G)
    found, jacobians = values_and_jacobians(net, X)
    assert np.abs(found - Y).max() < 1e-9
    assert np.abs(jacobians - G).max() < 1e-8


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
    with pytest.raises(InputError, match="finite"):
        interpolate([[np.nan]], [[1.0]], np.zeros((1, 1, 1)))
    with pytest.raises(Refused, match="weights"):
        interpolate(np.arange(10**5)[:, None] * np.ones(9), np.zeros((10**5, 9)), np.zeros((10**5, 9, 9)))
