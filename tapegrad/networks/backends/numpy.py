"""Networks in plain NumPy."""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tapegrad.networks.builder import Value, network_of
from tapegrad.networks.network import Backend, Network, Node
from tapegrad.networks.tiles import Levels, levels_of

Array = NDArray[Any]

quietly = np.errstate(invalid="ignore", over="ignore", divide="ignore")
"""Decorates what multiplies matrices. The library that does may compute beyond the ends of short vectors, and
warn of what it finds there. A result that is NaN is a mismatch wherever it is compared."""


SMALL = 1 << 14
"""Entries of a matrix that is written out."""


class _Layer(NamedTuple):
    weight: csr_array
    bias: Array
    to: Array
    floor: Array


class NumPy(Backend[Array]):
    """Values are NumPy arrays."""

    def __init__(self, network: Network, arrays: Mapping[str, Array] | None = None) -> None:
        super().__init__(network, arrays)
        self._maps: dict[str, csr_array | Array] = {}
        self._layers: dict[str, list[_Layer]] = {}
        self._repeats: dict[str, bool] = {}
        self._levels: dict[str, Levels] = {}

    def constant_of(self, array: Array) -> Array:
        return np.asarray(array)

    @quietly
    def affine(self, node: Node, x: Array) -> Array:
        if node.name not in self._maps:
            own = self.network.map(node, x.shape[-1])
            small = len(own) * own.width <= SMALL
            entries = np.asarray(own.values), (own.rows, own.columns)
            sparse = csr_array(entries, shape=(len(own), own.width))
            self._maps[node.name] = sparse.toarray().T if small else sparse
        own = self._maps[node.name]
        if isinstance(own, np.ndarray):
            return x @ own + self.part(node, "bias")
        sums = own @ _columns(x)
        return np.ascontiguousarray(sums.T).reshape(*x.shape[:-1], len(sums)) + self.part(node, "bias")

    @quietly
    def layers(self, node: Node, x: Array) -> Array:
        slots = self.between(node, self.begin(node, _columns(x)), 0, len(self.part(node, "bounds")) - 1)
        found = slots[self.part(node, "out")]
        return np.ascontiguousarray(found.T).reshape(*x.shape[:-1], len(found))

    # Of a node `layers`, whose values may be looked at on the way:

    def begin(self, node: Node, x: Array) -> Array:
        """Its slots before the first layer: a column for each place."""
        slots = np.zeros((node.whole("slots"), x.shape[1]), x.dtype)
        slots[: len(x)] = x
        return slots

    @quietly
    def between(self, node: Node, slots: Array, first: int, last: int) -> Array:
        """The slots after the layers from `first` up to `last`, not included."""
        slots = slots.copy()
        for layer in self._layers_of(node)[first:last]:
            slots[layer.to] = np.maximum(layer.weight @ slots + layer.bias, layer.floor)
        return slots

    def _layers_of(self, node: Node) -> list[_Layer]:
        if node.name not in self._layers:
            bounds, starts, columns, values, biases, to = (
                self.part(node, part) for part in ("bounds", "starts", "columns", "values", "biases", "to")
            )
            floors = self.network.floors(node)
            made = []
            for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
                first, last = int(starts[begin]), int(starts[end])
                size = end - begin, node.whole("slots")
                own = values[first:last], columns[first:last], starts[begin : end + 1] - first
                rows = slice(begin, end)
                made.append(
                    _Layer(csr_array(own, shape=size), biases[rows, None], to[rows], floors[rows, None])
                )
            self._layers[node.name] = made
        return self._layers[node.name]

    def relu(self, node: Node, x: Array) -> Array:
        return np.maximum(x, 0)

    def clip(self, node: Node, x: Array) -> Array:
        return np.clip(x, node.number("low"), node.number("high"))

    def sqrt(self, node: Node, x: Array) -> Array:
        return np.sqrt(x)

    def detach(self, node: Node, x: Array) -> Array:
        return x

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

    def take(self, node: Node, x: Array) -> Array:
        return x[..., self.part(node, "index")]

    def put(self, node: Node, x: Array, y: Array) -> Array:
        if x.shape[:-1] == y.shape[:-1]:
            shape, made = x.shape[:-1], x.copy()
        else:
            shape = np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
            made = np.array(np.broadcast_to(x, (*shape, x.shape[-1])))
        to = self.part(node, "to")
        if node.name not in self._repeats:
            self._repeats[node.name] = len(np.unique(to)) < len(to)
        if self._repeats[node.name]:
            np.add.at(made.T, to, np.broadcast_to(y, (*shape, y.shape[-1])).T)
        else:
            made[..., to] += y
        return made

    def join(self, node: Node, x: Array, y: Array) -> Array:
        axis = node.whole("axis")
        own = -max(2, -axis)  # axes in front are batches
        if x.shape[:own] == y.shape[:own]:
            return np.concatenate([x, y], axis)
        batch = np.broadcast_shapes(x.shape[:own], y.shape[:own])
        return np.concatenate([np.broadcast_to(part, (*batch, *part.shape[own:])) for part in (x, y)], axis)

    @quietly
    def product(self, node: Node, x: Array, y: Array) -> Array:
        return x @ (np.swapaxes(y, -1, -2) if node.settings["turned"] else y)

    def later(self, node: Node, x: Array) -> Array:
        rows, places = x.shape[-2:]
        if rows == 1:  # the last place: none comes after it
            return x
        return np.where(np.triu(np.ones((rows, places), bool), 1 + places - rows), -np.inf, x).astype(x.dtype)

    def hardmax(self, node: Node, x: Array) -> Array:
        best = (x == x.max(-1, keepdims=True)).astype(x.dtype)
        return best / best.sum(-1, keepdims=True)

    @quietly
    def softmax(self, node: Node, x: Array) -> Array:
        """The greatest score is subtracted first, as libraries do: exactness needs it."""
        x = x * x.dtype.type(node.number("temperature"))
        made = np.exp(x - x.max(-1, keepdims=True))
        return made / made.sum(-1, keepdims=True)

    def embed(self, node: Node, n: Array) -> Array:
        return self.part(node, "table")[n]

    def places(self, node: Node, n: Array, past: Array) -> Array:
        return past.shape[-2] + np.arange(n.shape[-1])

    def digits(self, node: Node, n: Array) -> Array:
        places = np.arange(node.whole("count"))
        return (np.maximum(n, 0)[..., None] >> places & 1).astype(np.float32)

    def quotient(self, node: Node, n: Array) -> Array:
        return n // node.whole("by")

    def remainder(self, node: Node, n: Array) -> Array:
        return n % node.whole("by")

    def onehot(self, node: Node, n: Array) -> Array:
        return (n[..., None] == np.arange(node.whole("count"))).astype(np.float32)

    def ladder(self, node: Node, n: Array) -> Array:
        return (np.arange(node.whole("count")) < n[..., None]).astype(np.float32)

    def patches(self, node: Node, x: Array) -> Array:
        rows, columns, channels = x.shape
        padded = np.pad(x, ((1, 1), (1, 1), (0, 0)), constant_values=node.number("padding"))
        shifts = [padded[r : r + rows, c : c + columns] for r, c in corners(node)]
        return np.stack(shifts, -1).reshape(rows, columns, channels * len(shifts))

    def transpose(self, node: Node, x: Array) -> Array:
        return np.transpose(x, node.list("order"))

    def reshape(self, node: Node, x: Array) -> Array:
        return x.reshape(*x.shape[: x.ndim - node.whole("axes")], *node.list("sizes"))

    def units(self, node: Node, x: Array, w: Array) -> Array:
        assert node.body is not None
        (name,) = node.body.state
        body, columns, given = NumPy(node.body), self.part(node, "columns"), x.shape[-1]
        if node.name not in self._levels:
            self._levels[node.name] = levels_of(self.part(node, "starts"), columns, given)
        levels = self._levels[node.name]
        batch = np.broadcast_shapes(x.shape[:-1], w.shape[:-1])
        made = np.zeros((*batch, given + len(levels.columns)), x.dtype)
        made[..., :given] = x
        pairs = zip(pairwise(levels.units_to), pairwise(levels.entries_to), strict=True)
        for (first, last), (begin, end) in pairs:
            entries = levels.entries[begin:end]
            sums = np.zeros((last - first, *batch), x.dtype)
            np.add.at(sums, levels.ends[begin:end], (w[..., entries] * made[..., columns[entries]]).T)
            made[..., levels.columns[first:last]] = body.run({name: sums.T})[1][name]
        return made

    def repeat(self, node: Node, x: Array) -> Array:
        assert node.body is not None
        (name,) = node.body.state
        body = NumPy(node.body)
        for _ in range(node.whole("count")):
            x = body.run({name: x})[1][name]
        return x


def applied(function: Callable[..., Value], *arrays: Array) -> Array:
    """A function of values at these arrays."""
    network = network_of(function, *map(np.shape, arrays))
    return NumPy(network).run({f"x{i}": np.asarray(own, float) for i, own in enumerate(arrays)})[0]["y"]


def corners(node: Node) -> list[tuple[int, int]]:
    """Row and column, in a grid with one cell more on every side, where the shift of each cell begins."""
    return [divmod(cell, 3) for cell in node.list("cells")]


def _columns(x: Array) -> Array:
    """A column for each place."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1]).T
