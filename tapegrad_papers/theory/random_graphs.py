"""Definition 8 of Abbe, Sandon: random graphs without short cycles, and the two kinds to be told apart."""

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError

Adjacency = NDArray[np.bool_]
Cycle = tuple[int, ...]


def aer(n: int, m: float, r: float, rng: np.random.Generator) -> Adjacency:
    """AER(n, m, r): each pair joined with chance m/n; then, as long as there is a cycle of fewer than r
    vertices, a random one of them loses a random edge."""
    if n < 1 or m < 0:
        raise InputError(f"AER needs vertices and a degree of at least 0, not n = {n} and m = {m}")
    graph = np.triu(rng.random((n, n)) < m / n, 1)
    graph = graph | graph.T
    cycles = short_cycles(graph, r)
    while cycles:
        cycle = cycles[rng.integers(len(cycles))]
        place = int(rng.integers(len(cycle)))
        a, b = cycle[place - 1], cycle[place]
        graph[a, b] = graph[b, a] = False
        cycles = [c for c in cycles if not _uses(c, a, b)]
    return graph


def short_cycles(graph: Adjacency, r: float) -> list[Cycle]:
    """All cycles of fewer than r vertices, each once: smallest vertex first, then its smaller neighbour."""
    neighbours = [np.flatnonzero(row).tolist() for row in graph]
    found: list[Cycle] = []
    for first in range(len(graph)):
        paths: list[Cycle] = [(first,)]
        while paths:
            path = paths.pop()
            for after in neighbours[path[-1]]:
                if after == first and len(path) > 2 and path[1] < path[-1]:
                    found.append(path)
                elif after > first and after not in path and len(path) + 1 < r:
                    paths.append((*path, after))
    return found


def _uses(cycle: Cycle, a: int, b: int) -> bool:
    return any({cycle[i - 1], cycle[i]} == {a, b} for i in range(len(cycle)))


def two_halves(n: int, m: float, r: float, rng: np.random.Generator) -> Adjacency:
    """Two graphs of AER(n/2, m, r) side by side, with the vertices relabelled at random."""
    if n % 2:
        raise InputError("two halves need an even number of vertices")
    graph = np.zeros((n, n), bool)
    half = n // 2
    graph[:half, :half], graph[half:, half:] = aer(half, m, r, rng), aer(half, m, r, rng)
    order = rng.permutation(n)
    return graph[np.ix_(order, order)]


def labelled_graphs(
    count: int, n: int, m: float, r: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Graphs of either kind, with equal chance, as rows of n(n-1)/2 bits; 1 for a graph in one piece."""
    upper = np.triu_indices(n, 1)
    labels = rng.integers(0, 2, count)
    graphs = [(aer if label else two_halves)(n, m, r, rng)[upper] for label in labels]
    return np.array(graphs, np.int64), labels


def is_connected(graph: Adjacency) -> bool:
    """Whether every vertex can be reached from the first (depth-first search)."""
    seen, stack = {0}, [0]
    while stack:
        for after in np.flatnonzero(graph[stack.pop()]).tolist():
            if after not in seen:
                seen.add(after)
                stack.append(after)
    return len(seen) == len(graph)


def papers_parameters(n: int) -> tuple[float, float]:
    """The m and r that section 6.2 proposes: 10 ln n and sqrt(ln n). No cycle is shorter than 3, so up to
    n = e^9, about 8,100 vertices, none is removed."""
    return 10 * log(n), sqrt(log(n))
