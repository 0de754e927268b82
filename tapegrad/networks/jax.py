"""Layers in JAX: the definition of what a network computes, and differentiable.

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
from tapegrad.networks.form import (
    Activation,
    Affine,
    Convolution,
    Dense,
    Matrix,
    Recurrence,
)

tell_jax()

EXACT = lax.Precision.HIGHEST
FEW = 8
"""Coordinates that the attentions of a decoder add to are padded to a multiple of this."""
SMALLEST_ROOM = 64
FINE = 1024
"""Up to this width padding costs less than what is not arithmetic."""
AT_ONCE = 1 << 25
"""Numbers of the widest layer of a convolution by entries that are computed together, of 8 bytes each."""

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


def patches(convolution: Convolution, grid: Float[Array, "channels rows columns"]) -> Array:
    """The neighbourhood of every cell as a column, channel by channel."""
    rows, columns = grid.shape[1:]
    padded = jnp.pad(grid, ((0, 0), (1, 1), (1, 1)), constant_values=convolution.padding)
    shifts = [padded[:, r : r + rows, c : c + columns] for r, c in convolution.corners()]
    return jnp.stack(shifts, 1).reshape(-1, rows * columns)


def convolve(
    convolution: Convolution, grid: Float[Array, "channels rows columns"], depth: int | None = None
) -> Float[Array, "units rows columns"]:
    """The layers, or the first `depth` of them, on the patch of every cell."""
    layers = convolution.layers[:depth]
    found = _in_blocks(lambda x: chain(layers, x), patches(convolution, grid), len(layers[0].map.bias))
    return found.reshape(-1, *grid.shape[1:])


def _in_blocks(function: Rectifier, x: Float[Array, "columns places"], widest: int) -> Array:
    """A function of columns, of as many at once as memory allows."""
    size, count = max(1, AT_ONCE // widest), x.shape[1]
    if count <= size:
        return function(x)
    blocks = jnp.pad(x, ((0, 0), (0, -count % size)), mode="edge").reshape(len(x), -1, size)
    found = lax.map(function, jnp.moveaxis(blocks, 1, 0))
    return jnp.moveaxis(found, 0, 1).reshape(found.shape[1], -1)[:, :count]


def first_grid(
    own: Recurrence, memory: Float[Array, "rows columns"], z: Float[Array, " columns"]
) -> Float[Array, "channels height width"]:
    """The grid before the first layer: row i is made of `W_i * z`, in its frame."""
    products = memory * z
    top, bottom, left, right = own.frame
    edges = (top, bottom), (left, right)
    cells = affine(own.direct, products[None])
    if own.units:
        cells = cells + chain(own.units, products[None])
    inside = np.pad(np.ones(products.shape, bool), edges)
    return jnp.where(inside, jnp.pad(cells, ((0, 0), *edges)), _over(jnp.asarray(own.around), cells))


def read_out(own: Recurrence, grid: Float[Array, "channels height width"]) -> Float[Array, ""]:
    """What the heads of the main grid add up to."""
    return chain(own.head, own.main(grid)).sum()


def recur(
    own: Recurrence, memory: Float[Array, "rows columns"], z: Float[Array, " columns"]
) -> Float[Array, ""]:
    """The output. Only the grid between two layers is kept for the gradient; what lies inside a layer is
    computed again."""
    layer = jax.checkpoint(lambda grid: convolve(own.convolution, grid))
    first = first_grid(own, memory, z)
    grid, _ = lax.scan(lambda grid, _: (layer(grid), None), first, length=own.layers)
    return read_out(own, grid)


def round_up(number: int, multiple: int) -> int:
    """The next multiple."""
    return -(-number // multiple) * multiple


def room(width: int, fine: bool = False) -> int:
    """Rows that hold a layer of this width, padding included: the next power of two; or, where that would be
    much, the next eighth of one."""
    whole = max(SMALLEST_ROOM, 1 << (width - 1).bit_length())
    return round_up(width, whole >> 4) if fine and width > FINE else whole


def _over(vector: Array, values: Array | np.ndarray) -> Array:
    """A number for each row, to be added to or multiplied with the row's values."""
    return vector.reshape(-1, *[1] * (values.ndim - 1))
