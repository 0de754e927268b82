"""Networks as sparse graphs: every vertex lists the edges that lead to it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vertex = int
Edge = tuple[Vertex, Any]
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

    def levels(self) -> NDArray[np.int32]:
        """For every vertex the length of the longest path that leads to it."""
        levels = [0] * self.vertices
        ends, sources = self.offsets.tolist(), self.sources.tolist()
        for v in range(self.inputs, self.vertices):
            begin, end = ends[v - self.inputs], ends[v - self.inputs + 1]
            levels[v] = 1 + max((levels[s] for s in sources[begin:end]), default=0)
        return np.array(levels, np.int32)


class GraphBuilder:
    """Grows a graph vertex by vertex, with the weights of its edges in order."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.sources: list[int] = []
        self.weights: list[Any] = []
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
