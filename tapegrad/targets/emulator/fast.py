"""The fast engine: forward pass, backpropagation and SGD on the sparse graph, compiled.

It uses the arrays of the network and nothing else. A whole step costs a few operations per edge forward, and
backward only what the edges of vertices with a non-zero derivative cost. Where few values change from one
step to the next, long runs go on by following the differences: `differences.py`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.targets.emulator.carried import Carried, carried
from tapegrad.targets.emulator.differences import advance
from tapegrad.targets.emulator.graph import Graph


@njit(inline="always")
def hard_tanh(x: float) -> tuple[float, float]:
    """max(-2, min(2, x)): flat beyond 2."""
    if x >= 2.0:
        return 2.0, 0.0
    if x <= -2.0:
        return -2.0, 0.0
    return x, 1.0


MUCH = 100_000_000
"""Steps times edges: after so much work on whole steps, about a second, in whatever parts it was asked for,
setting up `differences` pays, and the time that it takes to compile them, once for all."""
PROBED = 8
"""Steps after which it is seen how much changes."""
FEW = 1 / 8
"""The largest part of all vertices that may be computed in a step for differences to be followed."""
NEVER = -(1 << 62)
"""In place of the number of whole steps where differences do not pay."""


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
def backward(weights, offsets, sources, given, values, slopes, errors, slope_of_loss, rate):
    """From the loss to the weights, in place; a vertex whose error is 0 changes nothing below it."""
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
                backward(
                    weights, offsets, sources, rows.shape[1], values, slopes, errors, slope_of_loss, rate
                )


@njit()
def _gradient(weights, offsets, sources, inputs, label, values, slopes, errors):
    """Edges whose weight the loss depends on, from the last to the first, and the derivatives by them."""
    given = len(inputs)
    _forward(weights, offsets, sources, inputs, values, slopes)
    errors[-1] = 2 * (values[-1] - label)
    reached = 0
    for v in range(len(values) - 1, given - 1, -1):
        d = errors[v] * slopes[v]
        if d != 0:
            reached += offsets[v - given + 1] - offsets[v - given]
            for e in range(offsets[v - given], offsets[v - given + 1]):
                errors[sources[e]] += weights[e] * d
    edges, found = np.zeros(reached, np.int64), np.zeros(reached, weights.dtype)
    at = 0
    for v in range(len(values) - 1, given - 1, -1):
        d = errors[v] * slopes[v]
        if d != 0:
            for e in range(offsets[v - given], offsets[v - given + 1]):
                edges[at], found[at] = e, d * values[sources[e]]
                at += 1
    return edges[found != 0], found[found != 0]


def gradient(
    graph: Graph, weights: NDArray[np.floating], row: NDArray[Any], label: float
) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """The derivatives of (output - label)^2 that are not 0, for one row of inputs: the edges, and by their
    weights."""
    kind = weights.dtype
    room = np.zeros((3, graph.vertices), kind)
    return _gradient(weights, graph.offsets, graph.sources, row.astype(kind), kind.type(label), *room)


class Trained(NamedTuple):
    """What came of some steps."""

    weights: NDArray[np.floating]
    outputs: NDArray[np.floating]
    """The value of the output at every step."""
    seen: NDArray[np.floating]
    """The value of the vertex `watched` at every step."""
    whole: int
    """Steps that have been taken as a whole, from the first one on; they end where differences pay."""
    state: Carried | None
    """From which the next step can go on, where differences are followed."""


def train(
    graph: Graph,
    weights: NDArray[np.floating],
    rows: NDArray[Any],
    labels: NDArray[Any],
    rate: float,
    watched: int,
    whole: int = 0,
    state: Carried | None = None,
) -> Trained:
    """One step of SGD on (output - label)^2 for each row; without labels, the forward passes alone. A state
    from an earlier call serves if its weights are these; `whole` steps have been taken before without one."""
    kind, bits = weights.dtype, np.dtype(f"u{weights.itemsize}")
    rows, labels = np.ascontiguousarray(rows, kind), np.ascontiguousarray(labels, kind)
    outputs, seen = np.zeros(len(rows), kind), np.zeros(len(rows), kind)
    if state is not None and not np.array_equal(state.weights.view(bits), weights.view(bits)):
        state = None
    if state is None and (whole + len(rows)) * graph.edges >= MUCH:
        state = carried(graph, weights)
    begin = 0
    while state is not None and begin < len(rows):  # at first a few steps, to see whether they pay
        part = slice(begin, len(rows) if state.computed[1] >= PROBED else begin + PROBED)
        outputs[part], seen[part] = advance(state, rows[part], labels[part], rate, watched)
        weights, begin = state.weights, min(part.stop, len(rows))
        computed, steps = state.computed.tolist()
        if computed > graph.vertices * (1 + FEW * steps):  # in the first step, all of them are
            state, whole = None, NEVER
    weights, rest = weights.copy(), slice(begin, None)
    if begin < len(rows):
        _train(
            weights,
            graph.offsets,
            graph.sources,
            rows[rest],
            labels[rest],
            kind.type(rate),
            watched,
            outputs[rest],
            seen[rest],
        )
        whole += len(rows) - begin
    return Trained(weights, outputs, seen, whole, state)
