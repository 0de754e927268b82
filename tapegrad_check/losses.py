"""The loss of an extended network (Welper, figure 1), written down once more, as terms.

A tracing loss l_TM runs a machine; f_perp is a unit vector orthogonal to the labels; one switch lets the
labels in at the first step, the other lets the primary network out at the last. The loss is half the squared
distance of sqrt(2 l_TM) f_perp, or of the primary network's output, from the labels.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import require
from tapegrad_check.graph import Graph, Node, Port, Training, Update
from tapegrad_check.terms import Term, Terms

NAME = "squared error of the extended network"
ABOUT = {
    "s": "the point on the simplex: a vertex for each control state and the symbols that it reads",
    "T": "the tapes that are written: a row for each cell, -1 blank, +1 the other symbol",
    "H": "the heads: a row for each cell, 1 under the head of each tape",
    "z": "the copy of the labels: 0 before the first step, the labels after it",
    "x": "the inputs, a row for each sample",
    "y": "the labels",
}
LARGEST = float(np.finfo(np.float64).max)

GRADIENT = Update("gradient", 1.0, False)
LONE = {"z": (1, 2), "y": (1, 2)}
"""Shapes of labels and their copy, where there is no primary network."""


@dataclass(frozen=True)
class Switches:
    """A lower bound of |y|^2, and the losses below which a machine has halted and above which it runs."""

    epsilon: float
    low: float
    high: float


def corner(x: Term, size: float) -> Term:
    """Lemma A.1: 1 at the vertex, 0 beyond its corner."""
    return (1 - (1 - x) / size).relu()


def cutoff(t: Term, start: Any, end: Any) -> Term:
    """1 up to the start, 0 from the end on."""
    return (1 - ((t - start) / (end - start)).relu()).relu()


def squared(x: Term, axes: int) -> Term:
    return (x * x).total(axes)


def extended(
    traced: Term, primary: Term, z: Term, labels: Term, shape: tuple[int, ...], bounds: Switches
) -> Term:
    """F of figure 1."""
    third, fence = bounds.epsilon / 3, (bounds.high - bounds.low) / 2
    machine = (2 * traced).sqrt() * _orthogonal(labels, shape, third)
    halted = cutoff(squared(machine, 2), 2 * bounds.low + fence, 2 * bounds.high - fence)
    joined = halted * primary + (1 - halted) * machine
    reading = cutoff(squared(z, 2), third, 2 * bounds.epsilon / 3)
    return (1 - reading) * joined + reading * z


def _orthogonal(labels: Term, shape: tuple[int, ...], least: float) -> Term:
    """f_perp: of the labels in a row v, or w where they lean too far to v, without its part along them."""
    count = math.prod(shape)
    v, w = (axis[None] for axis in np.eye(2, count))
    row = labels.reshape(len(shape), 1, count)
    length, along = row.along(row).clip(least, LARGEST), row.along(v)
    axis = v + (2 * (along * along) > length) * (w - v)
    rest = axis - row.along(axis) / length * row
    return (rest / rest.along(rest).clip(1 / 4, LARGEST).sqrt()).reshape(2, *shape)


def require_loss(
    graph: Graph,
    terms: Terms,
    output: Term,
    shapes: Mapping[str, tuple[int, ...]],
    training: Training,
    others: Mapping[str, Term] | None = None,
) -> None:
    """Refuses a graph that is not the squared error of this output, for weights and data of these shapes."""
    loss = squared(output - terms.input("y"), 2) / 2
    ports = {name: Port(shape, "float64", (), ABOUT[name]) for name, shape in shapes.items()}
    terms.require(graph, NAME, ports, {**(others or {}), "output": output, "loss": loss}, training)


def node_of(graph: Graph, name: str, operation: str) -> Node:
    """The node of this name."""
    found = [node for node in graph.nodes if node.name == name]
    require(found and found[0].operation == operation, f"the network has no {operation} of the name {name!r}")
    return found[0]


def value_of(graph: Graph, name: str) -> NDArray[np.float64]:
    """A constant of the network."""
    found = node_of(graph, name, "constant").arrays["value"]
    require(found.dtype == np.float64, f"the constant {name!r} is not in double precision")
    return found


def index_of(graph: Graph, name: str) -> NDArray[np.int64]:
    """The columns that a node takes: no other than there are, which is known by now."""
    found = node_of(graph, name, "take").arrays["index"]
    require(found.dtype == np.int64 and found.ndim == 1, f"{name!r} takes no list of columns")
    return found


def number_of(graph: Graph, name: str) -> float:
    """A constant that is one number."""
    found = value_of(graph, name)
    require(found.shape == (), f"the constant {name!r} is not one number")
    return float(found)


def sizes_of(graph: Graph, name: str, axes: int) -> tuple[int, ...]:
    """The sizes of an input, which are known."""
    require(name in graph.inputs, f"the network has no input {name!r}")
    found = graph.inputs[name].sizes
    require(
        len(found) == axes and all(isinstance(size, int) for size in found), f"the input {name!r} is another"
    )
    return tuple(map(int, found))


def stop_of(graph: Graph) -> float:
    """The loss at which training ends."""
    require(graph.training is not None, "the network has no rule of training")
    stop = graph.training.stop if graph.training is not None else None
    require(stop is not None, "training has no end")
    return float(stop or 0)
