"""Networks of targets in few operations, which every runtime has, with nothing but numbers as inputs.

A network is played into a builder. Layers of a node `layers` become nodes, which can be compared one by one;
what is made of whole numbers alone (the bits of a step's number, the rows of an embedding) is computed and
given. Steps are played one after the other, or, those of a decoder, all at once as rows.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.builder import Builder, Value
from tapegrad.networks.checking import check
from tapegrad.networks.form import Affine
from tapegrad.networks.network import LAYERS, OPERATIONS, Backend, Network, Node, Port, broken
from tapegrad.networks.steps import Steps

Array = NDArray[Any]
MOVES = ("constant", "take", "join", "transpose", "patches")
"""Operations that compute nothing."""
MOST_STEPS = 64


def compared(network: Network) -> list[str]:
    """The values that a runtime must get right, in order: whatever is computed, a sum after its ReLU where it
    has one, and the outputs."""
    outputs, inside = set(network.outputs.values()), fused(network)
    return [
        node.name
        for node in network.nodes
        if node.name in outputs or (node.operation not in MOVES and node.name not in inside)
    ]


def fused(network: Network) -> set[str]:
    """Sums that nothing reads but a ReLU."""
    read = Counter([name for node in network.nodes for name in node.reads])
    read.update(network.outputs.values())
    return {node.reads[0] for node in network.nodes if node.operation == "relu" and read[node.reads[0]] == 1}


def sized(network: Network, inputs: Mapping[str, Array]) -> Network:
    """The network for inputs of these sizes."""
    ports = {name: Port(inputs[name].shape, port.dtype) for name, port in network.inputs.items()}
    return replace(network, inputs=ports)


class Player(Backend[Any]):
    """Plays a network into a builder. Values are those of the builder, or arrays of whole numbers."""

    def __init__(self, network: Network, graph: Builder, inputs: dict[str, Array], prefix: str = "") -> None:
        super().__init__(network)
        self.graph, self.inputs, self.prefix = graph, inputs, prefix
        self.masks: dict[str, Array] = {}
        """For some products what is added to them."""
        self._numpy = NumPy(network)

    def __getattr__(self, name: str) -> Any:
        if name not in OPERATIONS:
            raise AttributeError(name)
        return self._again

    def _again(self, node: Node, *reads: Any) -> Any:
        if all(isinstance(own, np.ndarray) for own in reads):
            return self.given(node.name, getattr(self._numpy, node.operation)(node, *reads))
        arrays = {part: self.network.array(node, part) for part in node.arrays}
        name, about, body = self.prefix + node.name, node.about, node.body
        return self.graph.node(
            node.operation, *reads, arrays=arrays, name=name, about=about, body=body, **node.settings
        )

    def given(self, name: str, own: Array) -> Any:
        """Whole numbers as they are; others become an input."""
        if own.dtype.kind in "iu":
            return own
        self.inputs[self.prefix + name] = own
        return self.graph.input(self.prefix + name, *own.shape, dtype=own.dtype)

    def constant(self, node: Node) -> Any:
        own = self.network.array(node, "value")
        return own if own.dtype.kind in "iu" else self.graph.constant(own, self.prefix + node.name)

    def product(self, node: Node, x: Any, y: Any) -> Any:
        made = self._again(node, x, y)
        if node.name not in self.masks:
            return made
        mask = self.graph.constant(self.masks[node.name], f"{made.name}.mask")
        return self.graph.node("add", made, mask, name=f"{made.name}.seen")

    def layers(self, node: Node, x: Any) -> Value:
        """Layer by layer. In between, a row has the slots that are read again, each in some column."""
        bounds, starts, columns, values, biases, to, rectified, out = (
            np.asarray(self.network.array(node, part)) for part in LAYERS
        )
        slots, width = node.whole("slots"), check(self.network)[node.reads[0]].width
        assert isinstance(width, int)
        h, held = x, np.arange(width)
        of = np.repeat(np.arange(len(to)), np.diff(starts))
        layers = [slice(*ends) for ends in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
        alive = _alive(slots, layers, starts, columns, to, out)
        for number, layer in enumerate(layers):
            name, relu = f"{self.prefix}{node.name}.{number}", bool(rectified[layer].any())
            if relu and not rectified[layer].all():
                raise broken(node, "has a layer with ReLUs and without")
            column = np.full(slots, -1)  # of what was never written to, and is 0
            column[held] = np.arange(len(held))
            entries = slice(int(starts[layer.start]), int(starts[layer.stop]))
            there = column[columns[entries]] >= 0
            own = Affine(
                (of[entries] - layer.start)[there],
                column[columns[entries]][there],
                values[entries][there],
                biases[layer],
                len(held),
            )
            made = self.graph.affine(h, own, f"{name}.sum" if relu else name, node.about)
            made = self.graph.node("relu", made, name=name) if relu else made
            kept = np.flatnonzero(alive[number][held] & ~np.isin(held, to[layer]))
            if len(kept):
                made = self.graph.node(
                    "join", self.graph.take(h, kept, f"{name}.kept"), made, axis=-1, name=f"{name}.row"
                )
            h, held = made, np.concatenate([held[kept], to[layer]])
        if not np.isin(out, held).all():
            raise broken(node, "gives a slot that nothing is written to")
        order = np.argsort(held)
        place = order[np.searchsorted(held, out, sorter=order)]
        whole = np.array_equal(place, np.arange(len(held)))
        return h if whole else self.graph.take(h, place, f"{self.prefix}{node.name}.out")


def _alive(
    slots: int, layers: list[slice], starts: Array, columns: Array, to: Array, out: Array
) -> list[Array]:
    """For every layer the slots that are read after it, before they are written again."""
    own, found = np.zeros(slots, bool), list[Array]()
    own[out] = True
    for layer in reversed(layers):
        found.append(own)
        own = own.copy()
        own[to[layer]] = False
        own[columns[starts[layer.start] : starts[layer.stop]]] = True
    return found[::-1]


def at_once(
    network: Network, given: Mapping[str, Array], far: float
) -> tuple[Network, dict[str, Array], Array]:
    """All steps of a decoder's run as rows: each is given what the step before gave, and sees the keys and
    values of the steps up to its own: `far`, which is taken off the scores of later ones, is more than scores
    can differ by. With the inputs, and what the rows must give."""
    steps, rows, outputs, halted = Steps(network), list[dict[str, Array]](), list[Array](), False
    running = steps.begin(given)
    while len(rows) < MOST_STEPS and not halted:
        rows.append(running.state)
        values, running = steps.step(running)
        outputs.append(values["output"])
        halted = bool(values["halted"][0, 0] > 0.5)
    grows = {name for name, own in network.state.items() if isinstance(own.port.shape[0], str)}
    graph, inputs = Builder(network.name, np.float32), dict[str, Array]()
    player, start = Player(network, graph, inputs), dict[str, Any]()
    for name in network.inputs:
        start[name] = player.given(name, np.asarray(given[name]))
    for name in network.state:
        start[name] = (
            graph.constant(rows[0][name], f"first_{name}")
            if name in grows
            else player.given(name, np.concatenate([row[name] for row in rows]))
        )
    before = max((len(rows[0][name]) for name in grows), default=0)
    for node in network.nodes:
        if grows.intersection(node.reads) and node.operation in ("take", "join"):
            grows.add(node.name)
        if grows.intersection(node.reads[1:]) and node.operation == "product" and node.settings["turned"]:
            seen = np.tri(len(rows), before + len(rows), before)
            player.masks[node.name] = np.where(seen, 0, -far).astype(np.float32)
    graph.output("output", player.run(start)[0]["output"])
    return graph.network(), inputs, np.concatenate(outputs)
