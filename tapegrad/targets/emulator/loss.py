"""The loss (output - label)^2 of an emulating network, as a network of its weights, a sample and a label; its
update rule is plain SGD on one sample, every weight trained.

And once more by hand, a forward pass and backpropagation in Python for numbers that no backend has, exact
ones and decimals; `fast.py` is this one compiled for floats. Of the exact network there is no graph: its
activation is x^p, and its weights are sums of powers of numbers of 80 digits, of which no array holds one.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.networks.builder import Builder, Value
from tapegrad.networks.network import Network, Training, Update
from tapegrad.targets.emulator.graph import Graph
from tapegrad.targets.emulator.numbers import Exact, Number

Activation = Callable[[Value], Value]


def hard_tanh(x: Value) -> Value:
    """max(-2, min(2, x)), the activation of the practical network."""
    return x.builder.node("clip", x, low=-2.0, high=2.0)


def cube_with(dead: float) -> Activation:
    """f* of section 4.2, the activation of the noise-tolerant network: see `cube_by_hand`. u and v are the
    places between the dead zone and twice that, and between 1 and 3/2; beyond their ends they stay."""

    def cube(x: Value) -> Value:
        size = x.relu() + (-x).relu()
        u, v = ((size - dead) / dead, 2 * (size - 1))
        u, v = (x.builder.node("clip", own, low=0.0, high=1.0) for own in (u, v))
        cubed = x * x * x * u * u * (3 - 2 * u)
        upper = ((x > 0) - (x < 0)) * (1 + v * (3 - v * v) / 2)
        large = size > 1
        return large * upper + (1 - large) * cubed

    return cube


def loss_of(
    graph: Graph, activation: Activation, dtype: Any, rate: float, watched: Mapping[str, int]
) -> Network:
    """The loss; the value of every vertex and, by name, of those that are watched."""
    build = Builder("loss of an emulating network", dtype, shared=True)
    body = Builder("activation", dtype, shared=True)
    total = body.state("total", np.zeros((), dtype))
    body.hand_on("total", activation(total))
    weights = build.input("weights", graph.edges, about="a weight for each edge")
    row = build.input("row", graph.inputs, about="the constant 1, then x, random bit and guess as -1, 1")
    label = build.input("label", about="-1 or 1")
    values = build.node(
        "units",
        row,
        weights,
        arrays={"starts": graph.offsets, "columns": graph.sources},
        body=body.network(),
        name="values",
        about="every vertex",
    )
    ends = {
        name: build.take(values, [vertex], name).total()
        for name, vertex in {**watched, "output": graph.vertices - 1}.items()
    }
    difference = ends["output"] - label
    for name, value in (ends | {"values": values, "loss": difference * difference}).items():
        build.output(name, value)
    return build.network(Training("loss", {"weights": Update("gradient", rate)}))


# By hand

ActivationByHand = Callable[[Any], tuple[Any, Any]]
"""Gives the value and the derivative, for whatever kind of number."""


def power_by_hand(
    x: Exact | Fraction | int, p: Fraction
) -> tuple[Exact | Fraction | int, Exact | Fraction | int]:
    """The activation of the exact network: x^p up to 1, flat beyond 3/2. In between the paper leaves it open;
    nothing may come to lie there."""
    if x == 0:
        return 0, 0
    if not isinstance(x, Exact):
        if abs(x) > Fraction(3, 2):
            return (2, 0) if x > 0 else (-2, 0)
        if abs(x) != 1:
            raise ArithmeticError(f"a total input of {x}, where only powers of 2, p and m0 are expected")
        return x, p
    if x.exceeds(Fraction(3, 2)):
        return 2 * x.sign, 0
    if x.exceeds(Fraction(1)):
        raise ArithmeticError(f"a total input of {x}, where the activation is not given by the paper")
    size = abs(x)
    return size.power(p) * x.sign, size.power(p - 1) * p


def cube_by_hand(x: Decimal, dead: Decimal) -> tuple[Decimal, Decimal]:
    """f* of section 4.2: 0, then x^3, then 2. Where the paper leaves it open, smooth, nondecreasing pieces:
    between the dead zone and twice that, x^3 times 3 u^2 - 2 u^3; between 1 and 3/2, a cubic."""
    size = abs(x)
    sign = 1 if x > 0 else -1
    if size <= dead:
        return Decimal(0), Decimal(0)
    if size >= Decimal("1.5"):
        return Decimal(2 * sign), Decimal(0)
    if size > 1:
        u = 2 * (size - 1)
        return sign * (1 + u * (3 - u * u) / 2), 3 - 3 * u * u
    if size >= 2 * dead:
        return x**3, 3 * x**2
    u = (size - dead) / dead
    blend, slope = u * u * (3 - 2 * u), 6 * u * (1 - u) / dead
    return x**3 * blend, 3 * x**2 * blend + sign * x**3 * slope


def forward_by_hand(
    graph: Graph,
    weights: Sequence[Any],
    inputs: Sequence[Number],
    activation: ActivationByHand,
    copies: Mapping[int, int] | None = None,
    flat: NDArray[np.int8] | None = None,
) -> tuple[list[Any], list[Any]]:
    """The value and the derivative of the activation at every vertex. Vertices that would be repeated with
    the same weights are carried once, and the edge from them to the output counts as many times: `copies`.
    Values that are known to be flat are given by `flat`, which is 0 where they are to be computed."""
    copies = copies or {}
    given = graph.inputs
    known = np.zeros(graph.vertices - given, np.int8) if flat is None else flat
    values: list[Any] = [*inputs, *known.tolist()]
    slopes: list[Any] = [0] * len(values)
    sources, ends = graph.sources.tolist(), graph.offsets.tolist()
    for k in np.flatnonzero(known == 0).tolist():
        total: Any = 0
        for e in range(ends[k], ends[k + 1]):
            value = values[sources[e]]
            if value != 0:
                term = weights[e] * value
                total = total + (term * copies[e] if e in copies else term)
        values[given + k], slopes[given + k] = activation(total)
    return values, slopes


def sgd_step_by_hand(
    graph: Graph,
    weights: Sequence[Any],
    inputs: Sequence[Number],
    label: Number,
    rate: Number,
    activation: ActivationByHand,
    copies: Mapping[int, int] | None = None,
    flat: NDArray[np.int8] | None = None,
) -> tuple[list[Any], list[Any]]:
    """One step of SGD; the new weights, and the values that it saw.

    An edge with copies stands for several edges of one weight each, so its own derivative, and what it
    passes back to its own copy of the source, are those of a single one.
    """
    values, slopes = forward_by_hand(graph, weights, inputs, activation, copies, flat)
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
