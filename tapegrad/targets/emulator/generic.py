"""Forward pass, backpropagation and SGD on a graph, for numbers of any kind: exact, decimal or float.

The same as `fast.py`, in Python, and with copies: vertices that would be repeated with the same weights are
carried once, and the edge from them to the output counts as many times.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tapegrad.targets.emulator.graph import Graph

Activation = Callable[[Any], tuple[Any, Any]]
"""Gives the value and the derivative."""


def forward(
    graph: Graph,
    weights: Sequence[Any],
    inputs: Sequence[Any],
    activation: Activation,
    copies: Mapping[int, int] | None = None,
) -> tuple[list[Any], list[Any]]:
    """The value and the derivative of the activation at every vertex."""
    copies = copies or {}
    values: list[Any] = list(inputs)
    slopes: list[Any] = [0] * len(inputs)
    sources, ends = graph.sources.tolist(), graph.offsets.tolist()
    for begin, end in pairwise(ends):
        total: Any = 0
        for e in range(begin, end):
            value = values[sources[e]]
            if value != 0:
                term = weights[e] * value
                total = total + (term * copies[e] if e in copies else term)
        value, slope = activation(total)
        values.append(value)
        slopes.append(slope)
    return values, slopes


def sgd_step(
    graph: Graph,
    weights: Sequence[Any],
    inputs: Sequence[Any],
    label: Any,
    rate: Any,
    activation: Activation,
    copies: Mapping[int, int] | None = None,
) -> tuple[list[Any], list[Any]]:
    """One step of SGD on (output - label)^2; the new weights, and the values that it saw.

    An edge with copies stands for several edges of one weight each, so its own derivative, and what it
    passes back to its own copy of the source, are those of a single one.
    """
    values, slopes = forward(graph, weights, inputs, activation, copies)
    errors: list[Any] = [0] * len(values)
    errors[-1] = 2 * (values[-1] - label)
    after = list(weights)
    sources, ends = graph.sources.tolist(), graph.offsets.tolist()
    for v in range(len(values) - 1, graph.inputs - 1, -1):
        if errors[v] == 0 or slopes[v] == 0:
            continue
        d = errors[v] * slopes[v]
        for e in range(ends[v - graph.inputs], ends[v - graph.inputs + 1]):
            source = sources[e]
            if source >= graph.inputs and slopes[source] != 0:
                errors[source] = errors[source] + weights[e] * d
            if values[source] != 0:
                after[e] = weights[e] - rate * (d * values[source])
    return after, values
