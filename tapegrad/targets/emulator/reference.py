"""The reference engine: automatic differentiation of the loss of the whole network, every weight trained."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tapegrad.targets.emulator.graph import Graph

Activation = Callable[[Array], Array]


class Levels(NamedTuple):
    """The graph level by level, padded to rectangles: row l lists the edges that end in level l. Padding
    points at a weight and at a vertex behind the last, which are 0 and stay so. Sizes are rounded up, so
    that networks of similar size share one compiled step."""

    edges: Array
    sources: Array
    slots: Array
    """The place in its level of the vertex that the edge leads to."""
    vertices: Array
    output: Array


class Parameters(NamedTuple):
    """All that is trained: the weight of every edge (and zeros behind them, for padding)."""

    weights: Array


def room(count: int) -> int:
    """The next power of two beyond `count`, and at least 64."""
    return max(64, 1 << count.bit_length())


def padded(values: NDArray[np.floating], count: int) -> Array:
    """These values, and zeros up to the room for `count`."""
    return jnp.asarray(np.append(values, np.zeros(room(count) - len(values), values.dtype)))


def levels_of(graph: Graph) -> Levels:
    """The levels of a graph, ready for `values`."""
    level = graph.levels()
    order = np.argsort(level[graph.inputs :], kind="stable") + graph.inputs
    rows = [order[level[order] == depth] for depth in range(1, int(level.max(initial=0)) + 1)]
    spans = [graph.offsets[np.stack([row, row + 1], axis=1) - graph.inputs].tolist() for row in rows]
    widest = room(max(map(len, rows)))
    longest = room(max(sum(end - begin for begin, end in row) for row in spans))
    edges = np.full((room(len(rows)), longest), graph.edges, np.int32)
    slots = np.full(edges.shape, widest, np.int32)
    vertices = np.full((len(edges), widest), graph.vertices, np.int32)
    for depth, (row, span) in enumerate(zip(rows, spans, strict=True)):
        vertices[depth, : len(row)] = row
        numbers = [np.arange(int(begin), int(end)) for begin, end in span]
        edges[depth, : sum(map(len, numbers))] = np.concatenate(numbers)
        places = np.repeat(np.arange(len(row)), list(map(len, numbers)))
        slots[depth, : len(places)] = places
    sources = np.append(graph.sources, graph.vertices).astype(np.int32)[edges]
    return Levels(*map(jnp.asarray, (edges, sources, slots, vertices, graph.vertices - 1)))


def hard_tanh(x: Array) -> Array:
    """max(-2, min(2, x))."""
    return jnp.clip(x, -2.0, 2.0)


def values(
    parameters: Parameters, levels: Levels, inputs: Array, activation: Activation = hard_tanh
) -> Array:
    """The value of every vertex; `inputs` has those of the input vertices, and zeros for all others."""
    widest = levels.vertices.shape[1]

    def level(so_far: Array, row: tuple[Array, ...]) -> tuple[Array, None]:
        edges, sources, slots, vertices = row
        terms = parameters.weights[edges] * so_far[sources]
        totals = jax.ops.segment_sum(terms, slots, widest + 1)[:widest]
        return so_far.at[vertices].set(activation(totals)), None

    return jax.lax.scan(level, inputs, levels[:4])[0]


def loss(
    parameters: Parameters, levels: Levels, inputs: Array, label: Array, activation: Activation = hard_tanh
) -> tuple[Array, Array]:
    """(output - label)^2, and the value of every vertex."""
    every = values(parameters, levels, inputs, activation)
    return (every[levels.output] - label) ** 2, every


@partial(jax.jit, static_argnames="activation")
def sgd_step(
    parameters: Parameters,
    levels: Levels,
    inputs: Array,
    label: Array,
    rate: Array,
    activation: Activation = hard_tanh,
) -> tuple[Parameters, Array]:
    """One step of plain SGD, batch size one; also the values that it saw."""
    gradient, every = jax.grad(loss, has_aux=True)(parameters, levels, inputs, label, activation)
    return jax.tree.map(lambda w, g: w - rate * g, parameters, gradient), every
