"""The reference engine: the network as stated, in JAX, one circuit layer at a time for a batch of patterns.

Values are kept as (units, patterns). Layers of all widths share few compiled programs: a layer is padded
to the next power of two with units whose weights are zero, which is the padding of Lemma B.1.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

SMALLEST_ROOM = 64


def room(width: int) -> int:
    """Rows that hold a layer of this width, padding included."""
    return max(SMALLEST_ROOM, 1 << (width - 1).bit_length())


def resized(values: Array, rows: int) -> Array:
    """With this many rows: padding added or left out."""
    return values[:rows] if len(values) >= rows else jnp.pad(values, ((0, rows - len(values)), (0, 0)))


class Weights(NamedTuple):
    """The flat arrays of `tapegrad.targets.relu.units`, on the device."""

    inputs: Array
    weights: Array
    biases: Array


def affine(net: Weights, values: Array, first: Array | int, count: Array | int, rows: int) -> Array:
    """`W x + b` for the `count` units that start at `first`, in `rows` rows; rows beyond are zero."""
    if len(net.biases) == 0:  # a circuit without outputs
        return jnp.zeros((rows, values.shape[1]), values.dtype)
    own = jnp.arange(rows)
    unit = first + own
    real = own < count
    inputs = net.inputs.at[unit].get(mode="clip")
    weights = jnp.where(real[:, None], net.weights.at[unit].get(mode="clip"), 0)
    biases = jnp.where(real, net.biases.at[unit].get(mode="clip"), 0)
    x = values.at[inputs[:, 0]].get(mode="clip")
    y = values.at[inputs[:, 1]].get(mode="clip")
    return weights[:, :1] * x + weights[:, 1:] * y + biases[:, None]


@partial(jax.jit, static_argnames="rows")
def relu_layers(net: Weights, values: Array, bounds: Array, rows: tuple[int, ...]) -> Array:
    """Consecutive ReLU layers; layer i has the units from `bounds[i]` to `bounds[i + 1]`."""
    for i, height in enumerate(rows):
        values = jax.nn.relu(affine(net, values, bounds[i], bounds[i + 1] - bounds[i], height))
    return values


@partial(jax.jit, static_argnames="rows")
def linear_layer(net: Weights, values: Array, bounds: Array, rows: int) -> Array:
    """The last layer, which has no ReLU."""
    return affine(net, values, bounds[0], bounds[1] - bounds[0], rows)
