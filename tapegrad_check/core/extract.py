"""What a network computes: through its graph node by node, each place a number over bits.

A value is an array of places; an axis whose length is not known, such as that of patterns, is one row, which
stands for each of them. Operations that are not here are refused.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import FORMATS, Format
from tapegrad_check.core.layers import Layers
from tapegrad_check.core.places import Numbers, Place
from tapegrad_check.folder import NotProved, require
from tapegrad_check.graph import Graph, Node

Value = NDArray[Any]
"""An array of places."""


class Extraction:
    """Values of a graph, from those of its inputs and its state."""

    def __init__(
        self,
        graph: Graph,
        numbers: Numbers,
        given: Mapping[str, Value],
        said: Mapping[str, NDArray[np.int64]] | None = None,
    ) -> None:
        self.graph, self.numbers, self.said = graph, numbers, said or {}
        self.found: dict[str, Layers] = {}
        """What was found of rows, of which something was said or not."""
        self.values: dict[str, Value] = dict(given)
        ends = {*graph.outputs.values(), *(own.next for own in graph.state.values())}
        read = ends.union(*(node.reads for node in graph.nodes))
        for node in graph.nodes:
            require(node.name in read, f"nothing reads the node {node.name!r}")
            operation = OPERATIONS.get(node.operation)
            if operation is None:
                raise NotProved(f"the checker does not follow {node.operation!r}, as in {node.name!r}")
            self.values[node.name] = operation(self, node, *(self.values[name] for name in node.reads))

    def format(self, node: Node) -> Format:
        """The format that a node computes in."""
        dtype = self.graph.shapes[node.name].dtype
        if dtype not in FORMATS:
            raise NotProved(f"the checker does not compute in {dtype}, as {node.name!r} does")
        return FORMATS[dtype]

    def constant(self, node: Node) -> Value:
        own = node.arrays["value"]
        return places(self.numbers.constant(float(number)) for number in own.reshape(-1)).reshape(own.shape)

    def layers(self, node: Node, x: Value) -> Value:
        said = self.said.get(node.name)
        found = Layers(self.numbers, node, self.format(node), x.reshape(-1).tolist(), said)
        self.found[node.name] = found
        out = places(map(found.place, node.arrays["out"].tolist()))
        return out.reshape(*x.shape[:-1], len(out))

    def multiply(self, node: Node, x: Value, y: Value) -> Value:
        format = self.format(node)

        def product(a: Place, b: Place) -> Place:
            number, other = (a, b) if not a.leaves and a.form.exact else (b, a)
            if number.leaves or not number.form.exact:
                raise NotProved(f"{node.name!r} multiplies two numbers that depend on the input")
            return self.numbers.affine([float(number.form.values[0])], [other], 0.0, format, False)

        return _each(product, x, y)

    def add(self, node: Node, x: Value, y: Value) -> Value:
        format = self.format(node)
        return _each(lambda a, b: self.numbers.affine([1.0, 1.0], [a, b], 0.0, format, False), x, y)


OPERATIONS: Mapping[str, Callable[..., Value]] = {
    name: getattr(Extraction, name) for name in ("constant", "layers", "multiply", "add")
}


def places(found: Any) -> Value:
    """Places as an array of one axis."""
    listed = list(found)
    value = np.empty(len(listed), object)
    for at, place in enumerate(listed):
        value[at] = place
    return value


def _each(function: Callable[[Place, Place], Place], x: Value, y: Value) -> Value:
    x, y = np.broadcast_arrays(x, y)
    made = places(map(function, x.reshape(-1), y.reshape(-1)))
    return made.reshape(x.shape)
