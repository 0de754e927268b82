"""The loss of an emulating network, written down once more, as terms: (output - label)^2, where all vertices
but the inputs are units, the last of which is the output; and plain SGD on every weight."""

from collections.abc import Callable, Mapping

import numpy as np

from tapegrad_check.folder import Arrays, require
from tapegrad_check.graph import Graph, Port, Training, Update
from tapegrad_check.losses import index_of, node_of, sizes_of
from tapegrad_check.terms import Term, Terms

ABOUT = {
    "weights": "a weight for each edge",
    "row": "the constant 1, then x, random bit and guess as -1, 1",
    "label": "-1 or 1",
}


def hard_tanh(x: Term) -> Term:
    """max(-2, min(2, x))."""
    return x.clip(-2.0, 2.0)


def cube_with(dead: float) -> Callable[[Term], Term]:
    """f* of section 4.2, with this dead zone: x^3, from 1 on a cubic that ends at 2 and 3/2; in between, from
    the dead zone to twice that, x^3 times 3 u^2 - 2 u^3."""

    def cube(x: Term) -> Term:
        size = x.relu() + (-x).relu()
        u, v = ((size - dead) / dead).clip(0.0, 1.0), (2 * (size - 1)).clip(0.0, 1.0)
        upper = ((x > 0) - (x < 0)) * (1 + v * (3 - v * v) / 2)
        inner = x * x * x * u * u * (3 - 2 * u)
        large = size > 1
        return large * upper + (1 - large) * inner

    return cube


def edges_of(graph: Graph, others: int) -> tuple[Arrays, int]:
    """Which vertex reads which, as `offsets` and `sources`, and the number of the inputs: the constant, so
    many others, and those of the learner, of which there are not more than vertices."""
    node = node_of(graph, "values", "units")
    (given,) = sizes_of(graph, "row", 1)
    offsets = node.arrays["starts"]
    require(1 + others <= given <= 1 + others + len(offsets), "the number of inputs is out of its range")
    return {"offsets": offsets, "sources": node.arrays["columns"]}, given


def require_emulation(
    graph: Graph,
    dtype: str,
    activation: Callable[[Term], Term],
    rate: float,
    watched: Mapping[str, int],
) -> None:
    """Refuses a graph that is not this loss, in this precision, with this rate."""
    terms, node = Terms(dtype), node_of(graph, "values", "units")
    body = terms.activation("activation", "total", activation(terms.input("total")))
    weights, row, label = (terms.input(name) for name in ABOUT)
    values = terms.node(
        "units", row, weights, arrays=node.arrays, name="values", about="every vertex", body=body
    )
    (given,), (edges,) = sizes_of(graph, "row", 1), node.arrays["columns"].shape
    last = given + len(node.arrays["starts"]) - 2
    ends = {name: values.take([at], name).total() for name, at in {**watched, "output": last}.items()}
    difference = ends["output"] - label
    shapes: Mapping[str, tuple[int, ...]] = {"weights": (edges,), "row": (given,), "label": ()}
    ports = {name: Port(shape, dtype, (), ABOUT[name]) for name, shape in shapes.items()}
    rule = Training("loss", {"weights": Update("gradient", rate, False)}, None)
    outputs = {**ends, "values": values, "loss": difference * difference}
    terms.require(graph, "loss of an emulating network", ports, outputs, rule)


def watched_at(graph: Graph, name: str) -> int:
    """The vertex that a network watches by this name."""
    index = index_of(graph, name)
    require(index.shape == (1,), f"the network watches no vertex, or several, as {name!r}")
    return int(np.asarray(index)[0])
