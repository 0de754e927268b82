"""Networks as sparse graphs, every vertex with the edges that lead to it; and the computation component in
them: one vertex for each gate, provably flat (Lemma 1)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.model import Circuit, Gate
from tapegrad.errors import BrokenNet
from tapegrad.networks.network import Network
from tapegrad.networks.tiles import depths
from tapegrad.targets.emulator.numbers import Number

Vertex = int
Edge = tuple[Vertex, Number]
"""Where the edge comes from, and its weight."""


@dataclass(frozen=True, eq=False)
class Graph:
    """The first `inputs` vertices are given (number 0 is the constant 1); every other vertex applies the
    activation to the weighted sum over its edges, all of which come from earlier vertices. The last vertex
    is the output. Edge e of vertex v has `offsets[v - inputs] <= e < offsets[v - inputs + 1]`."""

    inputs: int
    offsets: NDArray[np.int64]
    sources: NDArray[np.int32]

    @property
    def vertices(self) -> int:
        """Number of vertices, inputs included."""
        return self.inputs + len(self.offsets) - 1

    @property
    def edges(self) -> int:
        """Number of edges: one weight each."""
        return len(self.sources)

    @property
    def ends(self) -> NDArray[np.int64]:
        """For every edge the vertex that it leads to."""
        return np.repeat(np.arange(self.inputs, self.vertices), np.diff(self.offsets))

    @classmethod
    def of(cls, network: Network) -> Self:
        """That of the units of a network that was saved, which are whole."""
        units = [node for node in network.nodes if node.operation == "units"]
        sizes = network.inputs["row"].shape if "row" in network.inputs else ()
        if len(units) != 1 or len(sizes) != 1 or not isinstance(sizes[0], int):
            raise BrokenNet("the network is none of vertices that read a row")
        offsets, sources = (network.array(units[0], part) for part in ("starts", "columns"))
        if len(offsets) < 2:
            raise BrokenNet("the network has no vertices")
        return cls(sizes[0], offsets, sources)

    def levels(self) -> NDArray[np.int32]:
        """For every vertex the length of the longest path that leads to it."""
        return depths(self.inputs, self.offsets, self.sources)


class GraphBuilder:
    """Grows a graph vertex by vertex, with the weights of its edges in order."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.sources: list[int] = []
        self.weights: list[Number] = []
        self._offsets = [0]

    @property
    def edges(self) -> int:
        """Number of edges so far: the index of the next one."""
        return len(self.sources)

    @property
    def vertices(self) -> int:
        """Number of vertices so far: the number of the next one."""
        return self.inputs + len(self._offsets) - 1

    def vertex(self, edges: Iterable[Edge]) -> Vertex:
        """A new vertex with these edges leading to it."""
        for source, weight in edges:
            self.sources.append(source)
            self.weights.append(weight)
        self._offsets.append(len(self.sources))
        return self.vertices - 1

    def graph(self) -> Graph:
        """The graph grown so far."""
        return Graph(
            self.inputs, np.array(self._offsets, np.int64), np.array(self.sources, np.int32).reshape(-1)
        )


CONSTANT: Vertex = 0

THRESHOLDS = {
    Gate.FALSE: (0, 0, -2),
    Gate.TRUE: (0, 0, 2),
    Gate.ID: (1, 0, 0),
    Gate.NOT: (-1, 0, 0),
    Gate.AND: (1, 1, -2),
    Gate.OR: (1, 1, 2),
    Gate.NAND: (-1, -1, 2),
    Gate.NOR: (-1, -1, -2),
}
"""Weights of the two operands and of the constant. Operands are -2 and 2, so the total input is at least 2
in size: Lemma 1's own weights for NOT, AND and OR, and the same with signs changed for the rest."""


class Computation:
    """Adds flat vertices to a graph. All weights are those of Lemma 1 times `scale`, so that total inputs
    are at least 2 `scale` in size, beyond the point from which the activation is flat."""

    def __init__(self, build: GraphBuilder, scale: float) -> None:
        self.build, self.scale = build, scale

    def copy(self, vertex: Vertex) -> Vertex:
        """A flat copy, -2 or 2, of an input vertex that is -1 or 1."""
        return self.build.vertex([(vertex, 2 * self.scale)])

    def gate(self, kind: Gate, a: Vertex = 0, b: Vertex = 0) -> Vertex:
        """A vertex for this gate; two for XOR and XNOR, which no single threshold computes."""
        s = self.scale
        if kind in (Gate.XOR, Gate.XNOR):
            # a + b - 3 (a and b) - 4 is -2, 2, 2, -6 for 00, 01, 10, 11. Noise of 1/12 on four edges could
            # take 7/12 off that, and Lemma 5 allows for 1/2; so all is doubled.
            both = self.gate(Gate.AND, a, b)
            s = 2 * s if kind is Gate.XOR else -2 * s
            return self.build.vertex([(a, s), (b, s), (both, -3 * s), (CONSTANT, -4 * s)])
        weights = zip((a, b, CONSTANT), THRESHOLDS[kind], strict=True)
        return self.build.vertex([(source, weight * s) for source, weight in weights if weight])

    def all_of(self, terms: list[tuple[Vertex, int]]) -> Vertex:
        """1 if every term is: a term (v, 1) is v, a term (v, -1) is its negation."""
        s = self.scale
        constant = -2 * (len(terms) - 1) * s  # all true: 2k - 2(k - 1) = 2; one false: -2
        return self.build.vertex([*((v, sign * s) for v, sign in terms), (CONSTANT, constant)])

    def circuit(self, circuit: Circuit, inputs: list[Vertex]) -> list[Vertex]:
        """Vertices for all gates of a circuit; the vertex of every wire, the given inputs first."""
        wires = list(inputs)
        gates = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
        for kind, left, right in gates:
            wires.append(self.gate(Gate(kind), wires[left], wires[right]))
        return wires

    def flips(self, circuit: Circuit, wires: list[Vertex], cells: int) -> list[Vertex]:
        """For every bit of memory the vertex that says whether it is to change."""
        flips = []
        for cell, (wire, new) in enumerate(
            zip(flip_wires(circuit, cells).tolist(), circuit.output_wires[2:].tolist(), strict=True)
        ):
            if wire == NEVER:
                flips.append(self.gate(Gate.FALSE))
            elif wire == COMPARED:
                flips.append(self.gate(Gate.XOR, wires[cell], wires[new]))
            else:
                flips.append(wires[wire])
        return flips


NEVER, COMPARED = -1, -2


def flip_wires(circuit: Circuit, cells: int) -> NDArray[np.int64]:
    """For every bit of memory the wire that says whether it is to change. Bit c is input c and output c + 2
    of the circuit. Where that output is "input c XOR z", the wire is z; otherwise the bit never changes, or
    old and new must be compared."""
    own, new = np.arange(cells), circuit.output_wires[2 : 2 + cells].astype(np.int64)
    gate = np.maximum(new - len(circuit.inputs), -1)  # -1, where what is appended stands: an input
    is_xor = np.append(circuit.kinds, Gate.FALSE)[gate] == Gate.XOR
    left, right = (
        np.append(operand, NEVER)[np.where(is_xor, gate, -1)] for operand in (circuit.left, circuit.right)
    )
    other = np.where(left == own, right, left)
    known = is_xor & (left != right) & ((left == own) | (right == own))
    return np.where(new == own, NEVER, np.where(known, other, COMPARED))


def circuit_size(circuit: Circuit, cells: int) -> tuple[int, int]:
    """Number of vertices and of edges that `circuit` and `flips` add."""
    flips = flip_wires(circuit, cells)
    many = np.bincount(circuit.kinds, minlength=16)
    many[Gate.XOR] += np.count_nonzero(flips == COMPARED)
    many[Gate.FALSE] += np.count_nonzero(flips == NEVER)
    sizes = [_GATE_SIZE.get(kind, (0, 0)) for kind in range(16)]
    vertices, edges = (np.array(sizes) * many[:, None]).sum(axis=0).tolist()
    return vertices, edges


_GATE_SIZE = {int(kind): (1, sum(1 for weight in weights if weight)) for kind, weights in THRESHOLDS.items()}
_GATE_SIZE |= {int(Gate.XOR): (2, 7), int(Gate.XNOR): (2, 7)}


# Many copies of small graphs at once: a network of millions of edges is not built one by one.


class Copies:
    """Grows a graph with floats for weights by copies of patterns, which are small graphs themselves."""

    def __init__(self, inputs: int) -> None:
        self.vertices, self.edges, self.inputs = inputs, 0, inputs
        self._counts: list[NDArray[np.int64]] = []
        self._sources: list[NDArray[np.int32]] = []
        self._weights: list[NDArray[np.float64]] = []

    def add(
        self, counts: NDArray[np.int64], sources: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> None:
        """Vertices with so many edges each, which come from these sources."""
        self._counts.append(counts)
        self._sources.append(sources.astype(np.int32))
        self._weights.append(weights)
        self.vertices += len(counts)
        self.edges += len(sources)

    def copies(
        self, patterns: Sequence[GraphBuilder], which: NDArray[np.integer], inputs: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Copy i is of pattern `which[i]`, and has `inputs[i]` for its input vertices. Gives the first vertex
        of each."""
        sizes = np.array([pattern.vertices - pattern.inputs for pattern in patterns])
        edges = np.array([pattern.edges for pattern in patterns])
        firsts = self.vertices + np.cumsum(sizes[which]) - sizes[which]
        graphs = [pattern.graph() for pattern in patterns]
        counts = np.concatenate([np.diff(graph.offsets) for graph in graphs])
        sources = np.concatenate([graph.sources for graph in graphs])
        weights = np.concatenate([np.array(pattern.weights, np.float64) for pattern in patterns])
        of_vertex, _ = _expanded(sizes, which)
        of_edge, copy = _expanded(edges, which)
        source, given = sources[of_edge], inputs.shape[1]
        inner = source >= given
        found = inputs[copy, np.where(inner, 0, source)]
        self.add(counts[of_vertex], np.where(inner, firsts[copy] + source - given, found), weights[of_edge])
        return firsts

    def graph(self) -> tuple[Graph, NDArray[np.float64]]:
        """The graph grown so far, and its weights."""
        offsets = np.append(0, np.cumsum(np.concatenate(self._counts)))
        return Graph(self.inputs, offsets, np.concatenate(self._sources)), np.concatenate(self._weights)


def _expanded(
    sizes: NDArray[np.int64], which: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where pattern p has `sizes[p]` items, one pattern after the other: the items of the patterns `which`,
    and which of these each belongs to."""
    own = sizes[which]
    copy = np.repeat(np.arange(len(which)), own)
    first_item, first_place = (np.cumsum(sizes) - sizes)[which], np.cumsum(own) - own
    return np.arange(len(copy)) + (first_item - first_place)[copy], copy
