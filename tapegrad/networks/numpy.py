"""Layers in plain NumPy."""

from functools import reduce

import numpy as np
from jaxtyping import Float

from tapegrad.networks.backends.numpy import quietly
from tapegrad.networks.form import Activation, Affine, Dense, Matrix


@quietly
def affine(own: Affine | Matrix, x: Float[np.ndarray, "columns ..."]) -> Float[np.ndarray, "rows ..."]:
    """`A x + b`, for a vector or for columns."""
    bias = np.asarray(own.bias).reshape(-1, *[1] * (x.ndim - 1))
    if isinstance(own, Matrix):
        return np.asarray(own.weight) @ x + bias
    terms = own.values.reshape(-1, *[1] * (x.ndim - 1)) * x[own.columns]
    sums = np.zeros((len(own), *x.shape[1:]), terms.dtype)
    np.add.at(sums, own.rows, terms)
    return sums + bias


def activate(activation: Activation, z: np.ndarray) -> np.ndarray:
    """The activation of what a map gave."""
    if activation == "linear":
        return z
    z = np.maximum(z, 0)
    if activation == "relu":
        return z
    cut = np.maximum(z - activation.low, 0) - np.maximum(z - activation.high, 0)
    return np.maximum(activation.gain * cut, 0)


def chain(layers: tuple[Dense, ...], x: Float[np.ndarray, "columns ..."]) -> np.ndarray:
    """Layers one after the other."""
    return reduce(lambda values, layer: activate(layer.activation, affine(layer.map, values)), layers, x)
