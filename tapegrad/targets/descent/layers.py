"""How deep and how wide a network is, read from its graph: nothing here knows how the network was meant, so
that a layer added anywhere is counted."""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from tapegrad.networks.builder import Value, network_of
from tapegrad.networks.checking import check
from tapegrad.networks.network import Network, Node
from tapegrad.targets.descent.loss import (
    LONE_INPUTS,
    LONE_LABELS,
    ExtendedNetwork,
    SquaredError,
    Thresholds,
    TracingLoss,
    Trained,
    Weights,
)

LINEAR = frozenset(("add", "affine", "detach", "join", "put", "reshape", "take", "total", "transpose"))
"""Free, whatever they act on: affine maps between two layers."""

LINEAR_IN_ONE = frozenset(("divide", "multiply", "product"))
"""Free where one operand alone depends on the inputs, of a quotient the numerator; otherwise a layer."""

Sizes = tuple[int, ...]


def layers(function: Callable[..., Value], *shapes: Sizes) -> list[int]:
    """Units in each layer, the first layer first, of a function of values of these shapes."""
    return layers_of(network_of(function, *shapes))


def layers_of(network: Network) -> list[int]:
    """Those of a network. A layer is one non-linear operation (or several side by side) after as many others
    on the longest way from an input; affine maps are free, as in a layer `phi(W x + b)`. Any operation that
    is not known to be affine counts."""
    depths, units, shapes = dict.fromkeys(network.inputs, 0), Counter[int](), check(network)
    for node in network.nodes:
        known = [depths.get(name) for name in node.reads]
        dependent = [depth for depth in known if depth is not None]
        if not dependent:
            continue
        depths[node.name] = max(dependent)
        if not _is_affine(node, known):
            depths[node.name] += 1
            units[depths[node.name]] += math.prod(map(int, shapes[node.name].sizes))
    return [units[depth] for depth in range(1, max(units, default=0) + 1)]


def _is_affine(node: Node, known: list[int | None]) -> bool:
    one = known.count(None) == 1 and not (node.operation == "divide" and known[0] is None)
    return node.operation in LINEAR or (node.operation in LINEAR_IN_ONE and one)


def network_layers(machine: TracingLoss, shapes: Weights[Sizes]) -> list[int]:
    """Those of the extended network around a loss, without a primary network."""
    network = ExtendedNetwork(machine, None, Thresholds(1.0, 1.0, 2.0))
    return layers(
        lambda *weights: network(None, Trained(*weights)), *(shapes.s, shapes.T, shapes.H, shapes.z)
    )


def network_arrays(machine: TracingLoss, shapes: Weights[Sizes]) -> list[int]:
    """How many numbers the arrays of that network hold, and how many bytes."""
    network = ExtendedNetwork(machine, None, Thresholds(1.0, 1.0, 2.0))
    arrays = SquaredError(network, LONE_INPUTS, LONE_LABELS).graph(shapes).arrays.values()
    return [sum(array.size for array in arrays), sum(array.nbytes for array in arrays)]


def grown(count: Callable[..., list[int]], *sizes: int) -> list[int]:
    """What is counted, such as units in each layer, of a network of these sizes, with each of which it grows
    linearly: from the networks of a few small sizes."""
    small = [2] * len(sizes)
    found = first = np.array(count(*small))
    for place, size in enumerate(sizes):
        larger = count(*(3 if own == place else 2 for own in range(len(sizes))))
        found = found + (size - 2) * (np.array(larger) - first)
    return found.tolist()
