"""The reference engine: automatic differentiation of the loss of the whole network, every weight trained."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tapegrad.nets.emulator.graph import Graph


class Levels(NamedTuple):
    """The graph level by level, padded to rectangles: row l lists the edges that end in level l. Padding
    points at an extra edge of weight 0 and an extra vertex behind the last."""

    edges: Array
    sources: Array
    slots: Array
    """The place in its level of the vertex that the edge leads to."""
    vertices: Array


class Parameters(NamedTuple):
    """All that is trained: the weight of every edge."""

    weights: Array


def levels_of(graph: Graph) -> Levels:
    """The levels of a graph, ready for `values`."""
    level = graph.levels()
    order = np.argsort(level[graph.inputs :], kind="stable") + graph.inputs
    rows = [order[level[order] == depth] for depth in range(1, int(level.max(initial=0)) + 1)]
    widest = max(map(len, rows))
    spans = [
        [(graph.offsets[v - graph.inputs], graph.offsets[v - graph.inputs + 1]) for v in r] for r in rows
    ]
    longest = max(sum(int(end - begin) for begin, end in row) for row in spans)
    edges = np.full((len(rows), longest), graph.edges, np.int32)
    slots = np.full((len(rows), longest), widest, np.int32)
    vertices = np.full((len(rows), widest), graph.vertices, np.int32)
    for depth, (row, span) in enumerate(zip(rows, spans, strict=True)):
        vertices[depth, : len(row)] = row
        numbers = [np.arange(int(begin), int(end)) for begin, end in span]
        edges[depth, : sum(map(len, numbers))] = np.concatenate(numbers)
        places = np.repeat(np.arange(len(row)), list(map(len, numbers)))
        slots[depth, : len(places)] = places
    sources = np.append(graph.sources, graph.vertices).astype(np.int32)[edges]
    return Levels(*map(jnp.asarray, (edges, sources, slots, vertices)))


def activation(x: Array) -> Array:
    """The hard tanh between -2 and 2."""
    return jnp.clip(x, -2.0, 2.0)


def values(parameters: Parameters, levels: Levels, inputs: Array, vertices: int) -> Array:
    """The value of every vertex."""
    weights = jnp.append(parameters.weights, 0)
    widest = levels.vertices.shape[1]
    first = jnp.zeros(vertices + 1, weights.dtype).at[: len(inputs)].set(inputs)

    def level(so_far: Array, row: Levels) -> tuple[Array, None]:
        terms = weights[row.edges] * so_far[row.sources]
        totals = jax.ops.segment_sum(terms, row.slots, widest + 1)[:widest]
        return so_far.at[row.vertices].set(activation(totals)), None

    return jax.lax.scan(level, first, levels)[0][:vertices]


def loss(
    parameters: Parameters, levels: Levels, inputs: Array, label: Array, vertices: int
) -> tuple[Array, Array]:
    """(output - label)^2, and the value of every vertex."""
    every = values(parameters, levels, inputs, vertices)
    return (every[-1] - label) ** 2, every


@partial(jax.jit, static_argnames="vertices")
def sgd_step(
    parameters: Parameters, levels: Levels, inputs: Array, label: Array, rate: Array, vertices: int
) -> tuple[Parameters, Array]:
    """One step of plain SGD, batch size one; also the values that it saw."""
    gradient, every = jax.grad(loss, has_aux=True)(parameters, levels, inputs, label, vertices)
    return jax.tree.map(lambda w, g: w - rate * g, parameters, gradient), every
