"""What a graph computes that is known to be a loss, in NumPy: such a graph has no other operations."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.graph import Graph, Node
from tapegrad_check.products import times

Array = NDArray[np.floating]


def outputs_of(graph: Graph, given: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs for these inputs."""
    values = dict(given)
    for node in graph.nodes:
        values[node.name] = _OPERATIONS[node.operation](node, *(values[name] for name in node.reads))
    return {name: values[value] for name, value in graph.outputs.items()}


def _total(node: Node, x: Array) -> Array:
    return np.asarray(x.sum(axis=tuple(range(-node.setting("axes"), 0))))


def _put(node: Node, x: Array, y: Array) -> Array:
    found, added = x.copy(), np.broadcast_to(y, (*x.shape[:-1], y.shape[-1]))
    np.add.at(found.T, node.arrays["to"], added.T)
    return found


def _reshape(node: Node, x: Array) -> Array:
    sizes = node.settings["sizes"]
    assert isinstance(sizes, tuple)
    return x.reshape(*x.shape[: x.ndim - node.setting("axes")], *sizes)


_OPERATIONS: Mapping[str, Callable[..., Array]] = {
    "constant": lambda node: node.arrays["value"],
    "detach": lambda node, x: x,
    "add": lambda node, x, y: x + y,
    "multiply": lambda node, x, y: x * y,
    "divide": lambda node, x, y: x / y,
    "greater": lambda node, x, y: (x > y).astype(x.dtype),
    "relu": lambda node, x: np.maximum(x, 0),
    "clip": lambda node, x: np.clip(x, node.settings["low"], node.settings["high"]),
    "sqrt": lambda node, x: np.sqrt(x),
    "total": _total,
    "take": lambda node, x: x[..., node.arrays["index"]],
    "put": _put,
    "join": lambda node, x, y: np.concatenate([x, y], axis=node.setting("axis")),
    "product": lambda node, x, y: times(x, y.T if node.setting("turned") else y),
    "transpose": lambda node, x: np.transpose(x, node.settings["order"]),
    "reshape": _reshape,
}
"""Of values without batches in front."""
