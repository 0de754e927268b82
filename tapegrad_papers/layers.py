"""Layers in JAX, differentiable, for the papers' own nets, which no target builds.

Values are columns: an array of shape (width, ...) holds a vector for each place of its other axes. Products
are never reduced to TF32: sums of integers stay integers.
"""

from collections.abc import Callable
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from tapegrad._trees import tell_jax
from tapegrad.networks.form import Activation, Affine, Dense, Matrix

tell_jax()

EXACT = lax.Precision.HIGHEST

Rectifier = Callable[[Array], Array]


def affine(own: Affine | Matrix, x: Float[Array, "columns ..."]) -> Float[Array, "rows ..."]:
    """`A x + b`."""
    if isinstance(own, Matrix):
        sums = jnp.tensordot(own.weight, x, 1, precision=EXACT)
    else:
        values = jnp.asarray(own.values)
        terms = _over(values, x) * x[own.columns]
        sums = jax.ops.segment_sum(terms, own.rows, len(own.bias), indices_are_sorted=True)
    return sums + _over(jnp.asarray(own.bias), sums)


def activate(activation: Activation, z: Array, relu: Rectifier = jax.nn.relu) -> Array:
    """The activation of what a map gave."""
    if activation == "linear":
        return z
    z = relu(z)
    if activation == "relu":
        return z
    low, high, gain = activation.low, activation.high, activation.gain
    return relu(gain * relu(z - low) - gain * relu(z - high))


def dense(layer: Dense, x: Float[Array, "columns ..."], relu: Rectifier = jax.nn.relu) -> Array:
    """One layer."""
    return activate(layer.activation, affine(layer.map, x), relu)


def chain(layers: tuple[Dense, ...], x: Float[Array, "columns ..."]) -> Array:
    """Layers one after the other."""
    return reduce(lambda values, layer: dense(layer, values), layers, x)


def _over(vector: Array, values: Array | np.ndarray) -> Array:
    """A number for each row, to be added to or multiplied with the row's values."""
    return vector.reshape(-1, *[1] * (values.ndim - 1))
