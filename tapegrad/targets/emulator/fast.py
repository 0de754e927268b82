"""The fast engine: forward pass, backpropagation and SGD on the sparse graph, compiled.

One step costs a few operations per edge forward, and backward only what the edges of vertices with a
non-zero derivative cost; it uses the arrays of the network and nothing else.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.targets.emulator.graph import Graph


@njit(inline="always")
def hard_tanh(x: float) -> tuple[float, float]:
    """max(-2, min(2, x)): flat beyond 2."""
    if x >= 2.0:
        return 2.0, 0.0
    if x <= -2.0:
        return -2.0, 0.0
    return x, 1.0


@njit()
def _forward(weights, offsets, sources, inputs, values, slopes):
    given = len(inputs)
    values[:given] = inputs
    for v in range(given, len(values)):
        total = weights.dtype.type(0)
        for e in range(offsets[v - given], offsets[v - given + 1]):
            total += weights[e] * values[sources[e]]
        values[v], slopes[v] = hard_tanh(total)


@njit()
def _backward(weights, offsets, sources, given, values, slopes, errors, slope_of_loss, rate):
    errors[:] = 0
    errors[-1] = slope_of_loss
    for v in range(len(values) - 1, given - 1, -1):
        d = errors[v] * slopes[v]
        if d == 0:
            continue
        for e in range(offsets[v - given], offsets[v - given + 1]):
            s = sources[e]
            errors[s] += weights[e] * d
            weights[e] -= rate * (d * values[s])


@njit()
def _train(weights, offsets, sources, rows, labels, rate, watched, outputs, seen):
    vertices = rows.shape[1] + len(offsets) - 1
    values = np.zeros(vertices, weights.dtype)
    slopes = np.zeros(vertices, weights.dtype)
    errors = np.zeros(vertices, weights.dtype)
    for t in range(len(rows)):
        _forward(weights, offsets, sources, rows[t], values, slopes)
        outputs[t], seen[t] = values[-1], values[watched]
        if len(labels) > 0:
            slope_of_loss = 2 * (values[-1] - labels[t])
            if slope_of_loss != 0:
                _backward(
                    weights, offsets, sources, rows.shape[1], values, slopes, errors, slope_of_loss, rate
                )


def train(
    graph: Graph,
    weights: NDArray[np.floating],
    rows: NDArray[Any],
    labels: NDArray[Any],
    rate: float,
    watched: int,
) -> tuple[NDArray[np.floating], NDArray[np.floating], NDArray[np.floating]]:
    """One step of SGD on (output - label)^2 for each row; without labels, the forward passes alone.
    Gives the new weights, and the values of the output and of the vertex `watched` at every step."""
    kind = weights.dtype
    weights = weights.copy()
    outputs, seen = np.zeros(len(rows), kind), np.zeros(len(rows), kind)
    _train(
        weights,
        graph.offsets,
        graph.sources,
        np.ascontiguousarray(rows, kind),
        np.ascontiguousarray(labels, kind),
        kind.type(rate),
        watched,
        outputs,
        seen,
    )
    return weights, outputs, seen
