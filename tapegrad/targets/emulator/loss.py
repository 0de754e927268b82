"""The loss (output - label)^2 and its update rule, plain SGD on one sample, every weight trained.

Stated twice. In JAX, as automatic differentiation of the whole network: the reference engine. And by hand, a
forward pass and backpropagation in Python for numbers that JAX does not have, exact ones and decimals;
`fast.py` is this one compiled for floats.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import NDArray

from tapegrad._precision import in_double
from tapegrad.targets.emulator.graph import Graph
from tapegrad.targets.emulator.numbers import Exact, Number

Activation = Callable[[Array], Array]


class Blocks(NamedTuple):
    """The edges sorted by the level they lead to and cut into blocks, none of which spans two levels, so that
    one after the other can be computed. A block has room for at least half, and at most all, of the edges of
    an average level; so there are at most three times as many blocks as levels, and, sizes being rounded up,
    at most six times as many places as edges (but for small networks). Padding points at a weight and at a
    vertex behind the last, which are 0 and stay so. All sizes are powers of two, so that networks of similar
    size share one compiled step."""

    edges: Int[Array, "blocks length"]
    sources: Int[Array, "blocks length"]
    ends: Int[Array, "blocks length"]
    finished: Int[Array, "blocks length"]
    """Vertices whose last edge is in the block."""
    output: Int[Array, ""]


def room(count: int) -> int:
    """The next power of two beyond `count`, and at least 64."""
    return max(64, 1 << count.bit_length())


def padded(values: NDArray[np.floating], count: int) -> Float[Array, " room"]:
    """These values, and zeros up to the room for `count`."""
    return jnp.asarray(np.append(values, np.zeros(room(count) - len(values), values.dtype)))


@in_double
def blocks_of(graph: Graph) -> Blocks:
    """The blocks of a graph, ready for `values`."""
    level, ends = graph.levels(), graph.ends
    order = np.argsort(level[ends], kind="stable")
    sizes = np.bincount(level[ends])
    length = room(graph.edges // max(1, int(np.count_nonzero(sizes))) // 2)
    firsts = np.cumsum(sizes) - sizes  # of each level, among the sorted edges
    within = np.arange(graph.edges) - firsts[level[ends[order]]]
    counts = -(-sizes // length)
    block = (np.cumsum(counts) - counts)[level[ends[order]]] + within // length
    shape = (room(int(counts.sum())), length)
    edges = np.full(shape, graph.edges, np.int32)
    edges[block, within % length] = order
    targets = np.append(ends, graph.vertices).astype(np.int32)[edges]
    is_last = np.append(np.isin(np.arange(graph.edges), graph.offsets[1:] - 1), False)[edges]
    return Blocks(
        edges=jnp.asarray(edges),
        sources=jnp.asarray(np.append(graph.sources, graph.vertices).astype(np.int32)[edges]),
        ends=jnp.asarray(targets),
        finished=jnp.asarray(np.where(is_last, targets, np.int32(graph.vertices))),
        output=jnp.asarray(graph.vertices - 1),
    )


def hard_tanh(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """max(-2, min(2, x)), the activation of the practical network."""
    return jnp.clip(x, -2.0, 2.0)


def cube(x: Float[Array, "*n"], dead: float) -> Float[Array, "*n"]:
    """f* of section 4.2, the activation of the noise-tolerant network: see `cube_by_hand`."""
    size = jnp.abs(x)
    u = jnp.clip((size - dead) / dead, 0.0, 1.0)
    cubed = jnp.where(size >= 2 * dead, x**3, x**3 * u * u * (3 - 2 * u))
    v = jnp.clip(2 * (size - 1), 0.0, 1.0)
    upper = jnp.sign(x) * jnp.where(size >= 1.5, 2.0, 1 + v * (3 - v * v) / 2)
    return jnp.where(size <= dead, 0.0, jnp.where(size <= 1, cubed, upper))


def values(
    weights: Float[Array, " edges"],
    blocks: Blocks,
    inputs: Float[Array, " vertices"],
    activation: Activation = hard_tanh,
) -> Float[Array, " vertices"]:
    """The value of every vertex; `inputs` has those of the input vertices, and zeros for all others.

    Written so that what is differentiated is linear but for the activations: both scatters add (to zeros),
    and each block finds its own weights in its row; so nothing as long as all edges is kept for each block.
    A vertex gets its terms one by one, in the order of its edges.
    """

    def block(carry: tuple[Array, Array], row: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
        known, totals = carry
        own, sources, ends, finished = row
        totals = totals.at[ends].add(own * known[sources])
        return (known.at[finished].add(activation(totals[finished])), totals), None

    rows = (weights[blocks.edges], *blocks[1:4])
    return jax.lax.scan(block, (inputs, jnp.zeros_like(inputs)), rows)[0][0]


def loss(
    weights: Float[Array, " edges"],
    blocks: Blocks,
    inputs: Float[Array, " vertices"],
    label: Float[Array, ""],
    activation: Activation = hard_tanh,
) -> tuple[Float[Array, ""], Float[Array, " vertices"]]:
    """(output - label)^2, and the value of every vertex."""
    every = values(weights, blocks, inputs, activation)
    return (every[blocks.output] - label) ** 2, every


@partial(jax.jit, static_argnames="activation")
def sgd_step_of(
    weights: Float[Array, " edges"],
    blocks: Blocks,
    inputs: Float[Array, " vertices"],
    label: Float[Array, ""],
    rate: Float[Array, ""],
    activation: Activation = hard_tanh,
) -> tuple[Float[Array, " edges"], Float[Array, " vertices"]]:
    """One step in JAX, of arrays with room; the new weights, and the values that it saw."""
    gradient, every = jax.grad(loss, has_aux=True)(weights, blocks, inputs, label, activation)
    return weights - rate * gradient, every


@in_double
def sgd_step(
    graph: Graph,
    blocks: Blocks,
    weights: NDArray[np.floating],
    row: NDArray[np.int8],
    label: float,
    rate: float,
    activation: Activation = hard_tanh,
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """One step of plain SGD in the precision of the weights; the new weights, and the values that it saw.

    The sums of the practical network are exact, in whatever order they are taken (`constants.py`). In the
    noise-tolerant one the order does not matter for the gradient, since every vertex has at most one
    successor with a derivative other than 0.
    """
    kind = weights.dtype
    after, every = sgd_step_of(
        padded(weights, graph.edges),
        blocks,
        padded(row.astype(kind), graph.vertices),
        jnp.asarray(label, kind),
        jnp.asarray(rate, kind),
        activation,
    )
    return np.asarray(after)[: graph.edges], np.asarray(every)[: graph.vertices]


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
