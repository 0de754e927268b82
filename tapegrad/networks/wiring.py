"""How sparse layers are wired: what a row of a node `layers` reads, by the row that made it.

In the node, rows read *slots*, and a slot is used again once the last layer that reads it is past. Here they
read *places*: those of the inputs come first, then one for each row, layer by layer. Builders begin with
places; from a network they are found again, for those who draw, explain or rewrite it.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet
from tapegrad.networks.builder import Builder
from tapegrad.networks.form import Affine
from tapegrad.networks.network import LAYERS, Network, Node

BITS, UNITS, OUTPUTS = "bits", "units", "outputs"
"""The input, the node and the output of a network of layers alone."""


class Wiring(NamedTuple):
    """Rows are `values . places + bias`; those of layer i stand from `bounds[i]` to `bounds[i + 1]`, and the
    entries of row r from `starts[r]` to `starts[r + 1]`. All layers but the last have a ReLU; the rows of the
    last are the outputs."""

    inputs: int
    bounds: Int[np.ndarray, " ends"]
    starts: Int[np.ndarray, " ends"]
    places: Int[np.ndarray, " entries"]
    values: Float[np.ndarray, " entries"]
    biases: Float[np.ndarray, " rows"]

    @classmethod
    def of(cls, network: Network) -> "Wiring":
        """That of a network of layers alone. A slot has what the last layer before has written to it."""
        node = node_of(network)
        bounds, starts, columns, values, biases, to, relu, out = (network.array(node, p) for p in LAYERS)
        inputs, layers = len(network.inputs[BITS].columns), len(bounds) - 1
        last = slice(int(bounds[-2]) if layers else 0, None)
        if (
            not layers
            or not np.array_equal(out, to[last])
            or relu[last].any()
            or not relu[: last.start].all()
        ):
            raise BrokenNet("the last layer is not that of the outputs, or the only one without ReLU")
        holder, places = np.full(node.whole("slots"), -1), np.empty(len(columns), np.int64)
        holder[:inputs] = np.arange(inputs)
        for begin, end in pairwise(bounds.tolist()):
            entries = slice(starts[begin], starts[end])
            places[entries] = holder[columns[entries]]
            holder[to[begin:end]] = np.arange(inputs + begin, inputs + end)
        if (places < 0).any():
            raise BrokenNet("a row reads a slot that nothing has been written to")
        return cls(inputs, bounds, starts, places, values, biases)

    @property
    def layers(self) -> int:
        """How many there are, that of the outputs included."""
        return len(self.bounds) - 1

    def size(self, layer: int) -> int:
        """Rows of a layer; layer -1 are the inputs."""
        return self.inputs if layer < 0 else int(self.bounds[layer + 1] - self.bounds[layer])

    @property
    def layer_of_place(self) -> Int[np.ndarray, " places"]:
        """The layer of every place, counted from 1; inputs are at 0."""
        own = np.repeat(np.arange(1, self.layers + 1), np.diff(self.bounds))
        return np.concatenate([np.zeros(self.inputs, np.int64), own])

    @property
    def last_read(self) -> Int[np.ndarray, " places"]:
        """The last layer that reads each place, or its own if there is none."""
        layer = self.layer_of_place
        last = layer.copy()
        np.maximum.at(last, self.places, np.repeat(layer[self.inputs :], np.diff(self.starts)))
        return last

    def reads(self, row: int) -> list[tuple[int, float]]:
        """What a row reads: places and weights."""
        part = slice(int(self.starts[row]), int(self.starts[row + 1]))
        return list(zip(self.places[part].tolist(), self.values[part].tolist(), strict=True))

    def layer(self, number: int) -> Affine:
        """The map of a layer that reads the one before it alone."""
        begin, end = self.bounds[number : number + 2].tolist()
        part = slice(int(self.starts[begin]), int(self.starts[end]))
        width = self.size(number - 1)
        columns = self.places[part] - (self.inputs + int(self.bounds[number - 1]) if number else 0)
        if ((columns < 0) | (columns >= width)).any():
            raise BrokenNet(f"layer {number} reads more than the layer before it")
        rows = np.repeat(np.arange(end - begin), np.diff(self.starts[begin : end + 1]))
        return Affine(rows, columns, self.values[part], self.biases[begin:end], width)

    def slots(self) -> tuple[Int[np.ndarray, " places"], int]:
        """A slot for every place, and how many there are. Where each layer reads the one before it alone, two
        parts of the slots take turns. Else a slot is free again after the last layer that reads it, not
        before: the rows of a layer may be computed in any order."""
        layer = self.layer_of_place
        reader = np.repeat(layer[self.inputs :], np.diff(self.starts))
        if (layer[self.places] == reader - 1).all():
            sizes = np.concatenate([[self.inputs], np.diff(self.bounds)])
            within = np.arange(len(layer)) - (np.cumsum(sizes) - sizes)[layer]
            even = int(sizes[::2].max())
            return within + even * (layer % 2), even + int(sizes[1::2].max(initial=0))
        last, freed = self.last_read.tolist(), [[] for _ in range(self.layers + 2)]
        of_place = list(range(self.inputs))
        for place in range(self.inputs):
            freed[last[place]].append(place)
        free: list[int] = []
        count = self.inputs
        for number, (begin, end) in enumerate(pairwise(self.bounds.tolist()), 1):
            free += freed[number - 1]
            for place in range(self.inputs + begin, self.inputs + end):
                if not free:
                    free.append(count)
                    count += 1
                of_place.append(free.pop())
                freed[last[place]].append(of_place[-1])
        return np.array(of_place), count

    def network(self, name: str, dtype: str, inputs: Sequence[str], outputs: Sequence[str]) -> Network:
        """Bits to bits: all layers, and the outputs -1 and +1 as 0 and 1."""
        of_place, slots = self.slots()
        rows, last = len(self.biases), int(self.bounds[-2])
        parts = (
            self.bounds.astype(np.int64),
            self.starts.astype(np.int64),
            of_place[self.places].astype(np.int32),
            self.values.astype(dtype),
            self.biases.astype(dtype),
            of_place[self.inputs :].astype(np.int32),
            (np.arange(rows) < last).astype(np.uint8),
            of_place[self.inputs + last :].astype(np.int32),
        )
        graph = Builder(name, dtype)
        bits = graph.input(BITS, "patterns", len(inputs), columns=inputs, about="0 or 1")
        arrays: dict[str, NDArray[Any]] = dict(zip(LAYERS, parts, strict=True))
        signs = graph.node("layers", bits, arrays=arrays, name=UNITS, slots=slots)
        graph.output(OUTPUTS, graph.columns(signs * 0.5 + 0.5, outputs))
        return graph.network()


def node_of(network: Network) -> Node:
    """The node that such a network is made of."""
    found = [node for node in network.nodes if node.operation == "layers"]
    if len(found) != 1 or found[0].reads != (BITS,) or OUTPUTS not in network.outputs:
        raise BrokenNet("the network is not one of layers of units, from bits to outputs")
    return found[0]


def numbers_of(sizes: Int[np.ndarray, " layers"], entries: int, dtype: str) -> dict[str, int]:
    """How many numbers of each type the arrays of such a network have, with layers of these sizes."""
    rows, outputs = int(sizes.sum()), int(sizes[-1])
    return {
        "int64": len(sizes) + 1 + rows + 1,
        "int32": entries + rows + outputs,
        "uint8": rows,
        dtype: entries + rows + 2,  # and a half, twice
    }
