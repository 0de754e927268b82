"""Layers of a function, read from its trace."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tapegrad.targets.descent.layers import layers

X = np.array([1.0, -2.0, 0.5])
MATRIX = np.ones((2, 3))


@pytest.mark.parametrize(
    ("function", "units"),
    [
        (lambda x: 2 * MATRIX @ x + 1, []),
        (lambda x: jax.nn.relu(MATRIX @ x), [2]),
        (lambda x: jax.nn.relu(MATRIX @ jax.nn.relu(x - 1)), [3, 2]),
        (lambda x: jax.nn.relu(x) + jax.nn.relu(1 - x), [6]),
        (lambda x: x / 3, []),
        (lambda x: 3 / x, [3]),
        (lambda x: x * x, [3]),
        (lambda x: jnp.sum(x * x) * x, [3, 3]),
        (jnp.tanh, [3]),
        (lambda x: x.astype(int), [3]),
        (lambda x: jnp.where(x > 0, 1.0, -1.0), [3]),
        (lambda x: jnp.where(x > 0, x, -1.0), [3, 3]),
        (lambda x: jax.lax.stop_gradient(x)[::-1], []),
    ],
)
def test_operations_that_are_not_affine_are_layers(function, units):
    assert layers(function, X) == units


def test_what_is_given_is_constant():
    assert layers(lambda a, x: jax.nn.relu(a * x), X, given=(X,)) == [3]
    assert layers(lambda a, x: jax.nn.relu(a * x), X, X) == [3, 3]
    shape = jax.ShapeDtypeStruct((5,), np.float64)
    assert layers(lambda x: jnp.sqrt(x**2), shape) == [5, 5]
