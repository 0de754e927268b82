"""Networks in JAX: the definition of what a network computes, and differentiable.

Products are never reduced to TF32: sums of whole numbers stay whole. So that a loop over steps is compiled
once, what grows from step to step (keys and values) may be given as `Rows`: an array with room, and how many
of its rows are there.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tapegrad.networks.backends.numpy import corners
from tapegrad.networks.builder import Value, network_of
from tapegrad.networks.checking import check
from tapegrad.networks.network import Backend, Network, Node
from tapegrad.networks.saving import arrays_of, to_json
from tapegrad.networks.tiles import Blocks, blocks_of, power_of_two, tiles_of

EXACT = lax.Precision.HIGHEST
LARGEST_DENSE = 1 << 22
"""Entries of a matrix that is written out: more are summed by their places."""


class Graph:
    """A network but for its arrays: what a compiled program is made for. Networks of one graph, whose arrays
    have the same shapes, share one. Numbers, which are called by their digits, are part of it."""

    def __init__(self, network: Network) -> None:
        numbers = {node.arrays["value"] for node in network.nodes if _is_number(node)}
        self.names = tuple(sorted(network.arrays.keys() - numbers))
        self.bare = replace(network, arrays={name: network.arrays[name] for name in numbers})
        bodies = (node.body for node in network.nodes if node.body is not None)
        arrays = [(name, own.tolist()) for body in bodies for name, own in sorted(arrays_of(body).items())]
        self.key = json.dumps([to_json(self.bare), self.names, arrays])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @staticmethod
    def of(network: Network) -> "Graph":
        """That of a network, which keeps it."""
        kept = vars(network)
        if "graph" not in kept:
            kept["graph"] = Graph(network)
        return kept["graph"]

    def network(self, arrays: Iterable[Any]) -> Network:
        """The network with these arrays, or whatever JAX puts in their place."""
        every = {**self.bare.arrays, **dict(zip(self.names, arrays, strict=True))}
        made = replace(self.bare, arrays=every)
        vars(made)["graph"] = self
        return made


def _is_number(node: Node) -> bool:
    return node.operation == "constant" and node.name.strip("-").replace(".", "").isdecimal()


def _flattened(network: Network) -> tuple[tuple[Any, ...], Graph]:
    graph = Graph.of(network)
    return tuple(network.arrays[name] for name in graph.names), graph


jax.tree_util.register_pytree_node(Network, _flattened, Graph.network)


def in_room(network: Network) -> Network:
    """The network with its nodes of `units` in blocks whose sizes are powers of two: those of like networks
    have one shape. What it is given must have as much room (`power_of_two`), filled up with zeros."""
    shapes, arrays, gone = check(network), dict(network.arrays), set[str]()
    for node in network.nodes:
        if node.operation == "units":
            starts, columns, given = (
                network.array(node, "starts"),
                network.array(node, "columns"),
                shapes[node.reads[0]].width,
            )
            assert isinstance(given, int)
            arrays |= dict(zip(_ready(node), blocks_of(starts, columns, given), strict=True))
            gone |= set(node.arrays.values())
    inputs = {
        name: port._replace(shape=tuple(power_of_two(n) if isinstance(n, int) else n for n in port.shape))
        for name, port in network.inputs.items()
    }
    kept = {name: own for name, own in arrays.items() if name not in gone}
    return replace(network, inputs=inputs, arrays=kept)


def _ready(node: Node) -> list[str]:
    return [f"{node.name}.block.{part}" for part in Blocks._fields]


def _widened(x: Array, width: int) -> Array:
    """With zeros behind its columns."""
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, width - x.shape[-1])])


def function_of(function: Callable[..., Value]) -> Callable[..., Array]:
    """A function of values as one of arrays, which JAX may trace."""

    def applied(*arrays: Any) -> Array:
        network = network_of(function, *map(np.shape, arrays))
        given = {f"x{i}": jnp.asarray(own) for i, own in enumerate(arrays)}
        return Jax(network).run({name: given[name] for name in network.inputs})[0]["y"]

    return applied


class Rows(NamedTuple):
    """The first `size` rows of an array."""

    array: Array
    size: Array


class Scores(NamedTuple):
    """Of an array the first `size` columns."""

    array: Array
    size: Array


class Jax(Backend[Any]):
    """Values are JAX arrays, or arrays with room. The network's own arrays are constants of what is compiled,
    unless they are given."""

    def part(self, node: Node, part: str) -> Any:
        name = node.arrays[part]
        return self._given.get(name, self.network.arrays[name])

    def affine(self, node: Node, x: Any) -> Any:
        if isinstance(x, Rows):
            return Rows(self.affine(node, x.array), x.size)
        rows, columns, values, bias = (
            self.part(node, part) for part in ("rows", "columns", "values", "bias")
        )
        values, bias = jnp.asarray(values), jnp.asarray(bias)
        if len(bias) * x.shape[-1] <= LARGEST_DENSE:
            weight = jnp.zeros((x.shape[-1], len(bias)), values.dtype).at[columns, rows].add(values)
            return jnp.matmul(x, weight, precision=EXACT) + bias
        terms = jnp.moveaxis(x[..., columns] * values, -1, 0)
        sums = jax.ops.segment_sum(terms, rows, len(bias), indices_are_sorted=True)
        return jnp.moveaxis(sums, 0, -1) + bias

    def layers(self, node: Node, x: Array) -> Array:
        values, biases, floors = (
            jnp.pad(jnp.asarray(own), (0, 1))
            for own in (self.part(node, "values"), self.part(node, "biases"), self.network.floors(node))
        )
        tiles = tiles_of(self.network, node)
        columns = x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1]).T
        room = node.whole("slots") + 1 - x.shape[-1]
        slots = jnp.pad(columns, ((0, room), (0, 0)))

        def tile(slots: Array, own: tuple[Array, ...]) -> tuple[Array, None]:
            entries, reads, rows, to = own
            sums = (slots[reads] * values[entries][..., None]).sum(axis=1) + biases[rows][:, None]
            return slots.at[to].set(jnp.maximum(sums, floors[rows][:, None])), None

        slots, _ = lax.scan(tile, slots, tuple(map(jnp.asarray, tiles)))
        out = slots[self.part(node, "out")]
        return out.T.reshape(*x.shape[:-1], len(out))

    def relu(self, node: Node, x: Any) -> Any:
        return Rows(self.relu(node, x.array), x.size) if isinstance(x, Rows) else jax.nn.relu(x)

    def clip(self, node: Node, x: Array) -> Array:
        return jnp.clip(x, node.number("low"), node.number("high"))

    def sqrt(self, node: Node, x: Array) -> Array:
        return jnp.sqrt(x)

    def detach(self, node: Node, x: Array) -> Array:
        return lax.stop_gradient(x)

    def constant(self, node: Node) -> Array:
        return jnp.asarray(self.part(node, "value"))

    def add(self, node: Node, x: Array, y: Array) -> Array:
        return x + y

    def multiply(self, node: Node, x: Array, y: Array) -> Array:
        return x * y

    def divide(self, node: Node, x: Array, y: Array) -> Array:
        return x / y

    def greater(self, node: Node, x: Array, y: Array) -> Array:
        return (x > y).astype(x.dtype)

    def total(self, node: Node, x: Array) -> Array:
        return x.sum(axis=tuple(range(-node.whole("axes"), 0)))

    def take(self, node: Node, x: Any) -> Any:
        if isinstance(x, Rows):
            return Rows(self.take(node, x.array), x.size)
        return x[..., self.part(node, "index")]

    def put(self, node: Node, x: Array, y: Array) -> Array:
        shape = jnp.broadcast_shapes(x.shape[:-1], y.shape[:-1])
        x = jnp.broadcast_to(x, (*shape, x.shape[-1]))
        return x.at[..., self.part(node, "to")].add(y)

    def join(self, node: Node, x: Any, y: Any) -> Any:
        axis = node.whole("axis")
        if isinstance(x, Rows):  # new rows behind those that are there
            array = lax.dynamic_update_slice_in_dim(x.array, y, x.size, -2)
            return Rows(array, x.size + y.shape[-2])
        if isinstance(y, Rows):
            return Rows(jnp.concatenate([x, y.array], axis), x.shape[-2] + y.size)
        own = -max(2, -axis)  # axes in front are batches
        batch = jnp.broadcast_shapes(x.shape[:own], y.shape[:own])
        return jnp.concatenate([jnp.broadcast_to(part, (*batch, *part.shape[own:])) for part in (x, y)], axis)

    def product(self, node: Node, x: Any, y: Any) -> Any:
        turned = bool(node.settings["turned"])
        other, left = getattr(y, "array", y), getattr(x, "array", x)
        made = jnp.matmul(left, jnp.swapaxes(other, -1, -2) if turned else other, precision=EXACT)
        return Scores(made, y.size) if turned and isinstance(y, Rows) else made

    def later(self, node: Node, x: Any) -> Any:
        array = getattr(x, "array", x)
        rows, places = array.shape[-2:]
        end = x.size if isinstance(x, Scores) else places
        seen = jnp.arange(places) <= (end - rows + jnp.arange(rows))[:, None]
        made = jnp.where(seen, array, -jnp.inf)
        return Scores(made, x.size) if isinstance(x, Scores) else made

    def hardmax(self, node: Node, x: Any) -> Array:
        x = _seen(x)
        best = (x == x.max(-1, keepdims=True)).astype(x.dtype)
        return best / best.sum(-1, keepdims=True)

    def softmax(self, node: Node, x: Any) -> Array:
        return jax.nn.softmax(node.number("temperature") * _seen(x), axis=-1)

    def embed(self, node: Node, n: Array) -> Array:
        return jnp.asarray(self.part(node, "table"))[n]

    def places(self, node: Node, n: Array, past: Any) -> Array:
        return (past.size if isinstance(past, Rows) else past.shape[-2]) + jnp.arange(n.shape[-1])

    def digits(self, node: Node, n: Array) -> Array:
        places = jnp.arange(node.whole("count"))
        return (jnp.maximum(n, 0)[..., None] >> places & 1).astype(jnp.float32)

    def quotient(self, node: Node, n: Array) -> Array:
        return n // node.whole("by")

    def remainder(self, node: Node, n: Array) -> Array:
        return n % node.whole("by")

    def onehot(self, node: Node, n: Array) -> Array:
        return (n[..., None] == jnp.arange(node.whole("count"))).astype(jnp.float32)

    def ladder(self, node: Node, n: Array) -> Array:
        return (jnp.arange(node.whole("count")) < n[..., None]).astype(jnp.float32)

    def patches(self, node: Node, x: Array) -> Array:
        rows, columns, channels = x.shape
        padded = jnp.pad(x, ((1, 1), (1, 1), (0, 0)), constant_values=node.number("padding"))
        shifts = [padded[r : r + rows, c : c + columns] for r, c in corners(node)]
        return jnp.stack(shifts, -1).reshape(rows, columns, channels * len(shifts))

    def transpose(self, node: Node, x: Array) -> Array:
        return jnp.transpose(x, node.list("order"))

    def reshape(self, node: Node, x: Array) -> Array:
        return x.reshape(*x.shape[: x.ndim - node.whole("axes")], *node.list("sizes"))

    def units(self, node: Node, x: Array, w: Array) -> Array:
        """Written so that what is differentiated is linear but for the activations: both scatters add (to
        zeros), and each block finds its own weights in its row; so nothing as long as all entries is kept for
        each block. A unit gets its terms one by one, in the order of its entries."""
        assert node.body is not None
        (name,) = node.body.state
        body, own = Jax(node.body, self._given), self.network.arrays
        ready = _ready(node)
        if ready[0] in own:  # by `in_room`, and so are x and w
            blocks, width = Blocks(*(own[part] for part in ready)), x.shape[-1]
        else:
            starts, columns = np.asarray(self.part(node, "starts")), np.asarray(self.part(node, "columns"))
            blocks, width = blocks_of(starts, columns, x.shape[-1]), x.shape[-1] + len(starts) - 1
            x, w = _widened(x, width + 1), _widened(w, len(columns) + 1)

        def block(carry: tuple[Array, Array], row: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
            known, totals = carry
            values, reads, ends, finished = row
            totals = totals.at[..., ends].add(values * known[..., reads])
            values = body.run({name: totals[..., finished]})[1][name]
            return (known.at[..., finished].add(values), totals), None

        rows = (jnp.moveaxis(w[..., blocks.entries], -2, 0), *map(jnp.asarray, blocks[1:]))
        return lax.scan(block, (x, jnp.zeros_like(x)), rows)[0][0][..., :width]

    def repeat(self, node: Node, x: Array) -> Array:
        """Only what goes from step to step is kept for the gradient; what lies inside a step is computed
        again."""
        assert node.body is not None
        (name,) = node.body.state
        body = Jax(node.body, self._given)
        step = jax.checkpoint(lambda x: body.run({name: x})[1][name])
        return lax.scan(lambda x, _: (step(x), None), x, length=node.whole("count"))[0]


def _seen(x: Any) -> Array:
    """Scores, -infinity where there is no row."""
    if not isinstance(x, Scores):
        return x
    return jnp.where(jnp.arange(x.array.shape[-1]) < x.size, x.array, -jnp.inf)
