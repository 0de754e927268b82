"""The fast engine: the same arrays and the same arithmetic, compiled to a loop over units.

A block of patterns goes through all layers while it stays in the processor's cache.
"""

import numpy as np
from numba import prange

from tapegrad.jit import njit

BLOCK = 64
"""Patterns that go through the network together."""


@njit(parallel=True)
def run_layers(values, inputs, weights, biases, bounds, linear):  # pragma: no cover - compiled
    """The values (units, patterns) after the layers that `bounds` delimits; a ReLU follows each,
    except the last one where `linear` is set."""
    patterns = values.shape[1]
    layers = len(bounds) - 1
    width = bounds[layers] - bounds[layers - 1]
    rows = values.shape[0]
    for layer in range(layers):
        rows = max(rows, bounds[layer + 1] - bounds[layer])
    result = np.empty((width, patterns), values.dtype)
    for block in prange((patterns + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        size = min(BLOCK, patterns - first)
        here = np.zeros((rows, BLOCK), values.dtype)
        there = np.zeros((rows, BLOCK), values.dtype)
        for row in range(values.shape[0]):
            for p in range(size):
                here[row, p] = values[row, first + p]
        for layer in range(layers):
            start = bounds[layer]
            # The least value that passes: a ReLU cuts at 0, the linear layer nowhere.
            floor = values.dtype.type(-np.inf if linear and layer == layers - 1 else 0)
            for unit in range(bounds[layer + 1] - start):
                u = start + unit
                x, y = here[inputs[u, 0]], here[inputs[u, 1]]
                w, v, bias = weights[u, 0], weights[u, 1], biases[u]
                out = there[unit]
                for p in range(BLOCK):
                    z = w * x[p] + v * y[p] + bias
                    out[p] = z if z > floor else floor
            here, there = there, here
        for row in range(width):
            for p in range(size):
                result[row, first + p] = here[row, p]
    return result
