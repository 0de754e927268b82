"""Networks as graphs of vertices, and the Boolean functions that flat vertices compute.

The constant is at 1, inputs are at -1 or 1, and every vertex that computes is at -2 or 2, because its total
input stays where the activation is flat. Then it is a Boolean function of the vertices it reads, which is
worked out here from its weights alone and put together with theirs.
"""

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.fields import array, whole
from tapegrad_check.folder import Arrays, require

FEW_EDGES = 5
"""Of a vertex that computes: with so many, all cases are gone through. One with more is an AND or an OR."""
MOST_EDGES, MOST_WEIGHT = 1 << 16, 64.0
"""Of such a vertex, and of an edge to it, a whole number (times their number for the constant of many): sums
stay below 192 times 2^16, and are exact in every precision."""


def given_vertices(config: dict[str, Any], arrays: Arrays, others: int) -> int:
    """The constant, the inputs, and so many others. Each input is read by a vertex, so there are not more of
    them than vertices."""
    return 1 + whole(config["inputs"], "the number of inputs", 0, len(arrays["offsets"])) + others


class Graph(NamedTuple):
    """Vertices in order, each with the edges that lead to it; the first `given` of them have none."""

    weights: NDArray[Any]
    offsets: NDArray[Any]
    sources: NDArray[Any]
    given: int

    @classmethod
    def of(cls, arrays: Arrays, given: int, weights: NDArray[Any]) -> "Graph":
        """The graph, once all edges are known to be there and to come from earlier vertices."""
        offsets = array(arrays, "offsets", np.int64, (None,))
        sources = array(arrays, "sources", np.int32, weights.shape)
        require(len(offsets) > 1 and offsets[0] == 0 and offsets[-1] == len(sources), "edges are missing")
        require((np.diff(offsets) >= 0).all(), "edges are out of order")
        graph = cls(weights, offsets, sources, given)
        earlier = (sources >= 0) & (sources < graph.ends())
        require(earlier.all(), "an edge does not come from an earlier vertex")
        return graph

    @property
    def last(self) -> int:
        """The output."""
        return self.given + len(self.offsets) - 2

    def size(self, vertices: Any) -> Any:
        """How large the values of vertices are, of one or of many: those that compute are at -2 or 2, those
        that are given at -1 or 1."""
        return 1.0 + (vertices >= self.given)

    def ends(self) -> NDArray[Any]:
        """The vertex that each edge leads to."""
        return np.repeat(np.arange(self.given, self.last + 1), np.diff(self.offsets))

    def nodes(self) -> Nodes:
        """Room for what the vertices compute, in proportion to the graph."""
        return Nodes((1 << 17) + 64 * (len(self.sources) + self.given))

    def edges(self, vertices: NDArray[Any], count: int) -> NDArray[Any]:
        """The edges of vertices that all have `count` of them, one row for each vertex."""
        inside = (vertices >= self.given) & (vertices <= self.last)
        require(inside.all(), "the network lacks vertices")
        begin, end = self.offsets[vertices - self.given], self.offsets[vertices - self.given + 1]
        require((end - begin == count).all(), "a vertex has another number of edges than its part needs")
        return begin[:, None] + np.arange(count)

    def flat_margin(self, vertices: NDArray[Any], flat_from: float) -> float:
        """How far from the part of the activation that is not flat these vertices stay, with the constant at
        1, inputs at -1 or 1 and all other vertices at -2 or 2."""
        counts = np.diff(self.offsets)[vertices - self.given]
        require((counts <= MOST_EDGES).all(), "a vertex that computes has too many edges")
        smallest = math.inf
        for count in np.unique(counts).tolist():
            edges = self.edges(vertices[counts == count], count)
            sources, weights = self.sources[edges], self.weights[edges].astype(np.float64)
            most = np.where((sources == 0) & (count > FEW_EDGES), count * MOST_WEIGHT, MOST_WEIGHT)
            whole = (weights == np.round(weights)) & (np.abs(weights) <= most)
            require(whole.all(), "a vertex that computes has weights that are no small whole numbers")
            terms = weights * self.size(sources)
            totals = _totals_of_few if count <= FEW_EDGES else _totals_of_many
            smallest = min(smallest, *(float(np.abs(total).min()) for total in totals(terms, sources == 0)))
        return smallest - flat_from


def _totals_of_few(terms: NDArray[Any], constant: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The total inputs of vertices, for all signs of what they read."""
    for signs in product((-1.0, 1.0), repeat=terms.shape[1]):
        yield (terms * np.where(constant, 1.0, np.array(signs))).sum(axis=1)


def _totals_of_many(terms: NDArray[Any], constant: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The same where all terms count alike, for all numbers of those that are positive."""
    alike = (terms[:, :-1] == terms[:, :1]).all() and constant[:, -1].all() and not constant[:, :-1].any()
    require(alike, "a vertex with many edges is no AND or OR of them")
    count = terms.shape[1] - 1
    for positive in range(count + 1):
        yield (2 * positive - count) * terms[:, 0] + terms[:, -1]


class Computation:
    """The literals of vertices that compute. `known` has those that are given: inputs, and vertices that show
    a bit of memory."""

    def __init__(self, graph: Graph, nodes: Nodes, known: dict[int, int]) -> None:
        self.graph, self.nodes = graph, nodes
        self.literals = {0: TRUE, **known}
        self._tables: dict[tuple[Any, ...], int] = {}

    def run(self, vertices: Iterable[int]) -> None:
        """Works out these vertices, in order."""
        offsets, sources, weights = self.graph.offsets.tolist(), self.graph.sources, self.graph.weights
        for vertex in vertices:
            begin, end = offsets[vertex - self.graph.given : vertex - self.graph.given + 2]
            read, by = sources[begin:end].tolist(), weights[begin:end].tolist()
            self.literals[vertex] = self._threshold(read, by)

    def __getitem__(self, vertex: int) -> int:
        """The literal of a vertex at -2 or 2. An input, or the constant, may be the same literal at half the
        size; what reads it would then not do what it should."""
        literal = self._literal(vertex)
        require(self.graph.size(vertex) == 2, "a vertex at -2 or 2 is needed where one at -1 or 1 is read")
        return literal

    def _literal(self, vertex: int) -> int:
        require(vertex in self.literals, "something is read from a vertex that does not compute it")
        return self.literals[int(vertex)]

    def _threshold(self, sources: list[int], weights: list[float]) -> int:
        """The function "the total input is positive": of at most two bits, a third that is the AND of both
        not being free; or an AND or OR of many."""
        terms = []
        for source, weight in zip(sources, weights, strict=True):
            literal, term = self._literal(source), weight * self.graph.size(source)
            terms.append((literal >> 1, -term if literal & 1 else term))
        # Node 0 is FALSE, at -1 or -2 like any other bit; the constant vertex is TRUE, at 1.
        free = sorted({node for node, _ in terms if node != FALSE})
        also: tuple[int, ...] = ()
        if len(free) > 2:
            operands = self.nodes.operands[free[2]]
            dependent = len(free) == 3 and operands is not None and not self.nodes.is_xor[free[2]]
            if not dependent or operands is None or [literal >> 1 for literal in operands] != free[:2]:
                return self._of_many(sources, weights)
            also = operands[0] & 1, operands[1] & 1
        key = (tuple((free.index(node) if node else -1, weight) for node, weight in terms), also)
        if key not in self._tables:
            self._tables[key] = _table(*key)
        operand = [2 * node for node in (*free[:2], 0, 0)[:2]]
        return self.nodes.gate(self._tables[key], operand[0], operand[1])

    def _of_many(self, sources: list[int], weights: list[float]) -> int:
        """Operands at -2 and 2 that count alike, and last the constant. Their number that is 1 decides; where
        the total input changes its sign says whether one is enough, or all are needed."""
        weight, constant, count = weights[0], weights[-1], len(weights) - 1
        alike = set(weights[:-1]) == {weight} and sources[-1] == 0
        require(alike and self.graph.size(min(sources[:-1])) == 2, "a vertex computes no gate")
        positive = [2 * (2 * ones - count) * weight + constant > 0 for ones in (0, 1, count - 1, count)]
        one_is_enough, all_are_needed = positive[0] != positive[1], positive[2] != positive[3]
        require(one_is_enough or all_are_needed, "a vertex computes no gate")
        literals = [self[source] for source in sources[:-1]]
        return (self.nodes.any_of(literals) if one_is_enough else self.nodes.all_of(literals)) ^ positive[0]


def _table(terms: tuple[tuple[int, float], ...], also: tuple[int, ...]) -> int:
    """The truth table, for all values of the first two nodes."""
    table = 0
    for a, b in product((0, 1), repeat=2):
        both = bool(also) and (a ^ also[0]) & (b ^ also[1])
        value = {-1: -1, 0: 2 * a - 1, 1: 2 * b - 1, 2: 2 * both - 1}
        if sum(weight * value[node] for node, weight in terms) > 0:
            table |= 1 << 2 * a + b
    return table
