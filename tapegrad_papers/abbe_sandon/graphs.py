"""Section 6.2 of Abbe, Sandon: random graphs without short cycles (Definition 8), in one piece or two halves,
told apart by descent and by a compiled circuit."""

from dataclasses import dataclass
from itertools import combinations
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import compile
from tapegrad.circuits import Array, Bit, Circuit, all_of, any_of, trace
from tapegrad.errors import InputError
from tapegrad.targets.relu import ReluNet
from tapegrad_papers.abbe_sandon.rivals import Errors, fit

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


@dataclass(frozen=True)
class Connectivity:
    """Accuracies against the kind of graph that was drawn. `edges` is what the number of edges alone tells:
    small graphs of the two kinds differ in it, and a few graphs in one piece fall apart."""

    vertices: int
    shortest: float
    """The r of AER(n, m, r): cycles of fewer vertices are broken up."""
    circuit: int
    """Gates of the compiled circuit."""
    perceptron: Errors
    compiled: float
    agrees: bool
    """Whether the compiled network says what depth-first search says, on every test graph."""
    edges: float


def connectivity_circuit(n: int) -> Circuit:
    """Whether all vertices can be reached from the first: n - 1 rounds of taking in all neighbours."""

    def connected(edges: Any) -> Any:
        pairs = {pair: edges[i] for i, pair in enumerate(combinations(range(n), 2))}
        reached = [Bit(i == 0) for i in range(n)]
        for _ in range(n - 1):
            reached = [
                any_of([reached[v], *(reached[u] & pairs[min(u, v), max(u, v)] for u in range(n) if u != v)])
                for v in range(n)
            ]
        return all_of(reached)

    return trace(connected, Array(Bit, n * (n - 1) // 2), name=f"connectivity of {n} vertices").circuit


def connectivity(
    n: int = 24, m: float = 7, r: float = 3, count: int = 1000, epochs: int = 40, seed: int = 0
) -> Connectivity:
    """Trains the perceptron on `count` graphs and tests both networks on as many."""
    rng = np.random.default_rng(seed)
    (x, y), (test, truth) = (labelled_graphs(count, n, m, r, rng) for _ in range(2))
    circuit = connectivity_circuit(n)
    said = compiled_answers(circuit, test)
    upper = np.triu_indices(n, 1)
    searched = []
    for row in test:
        graph = np.zeros((n, n), bool)
        graph[upper] = row
        searched.append(is_connected(graph | graph.T))
    return Connectivity(
        vertices=n,
        shortest=r,
        circuit=circuit.size,
        perceptron=fit((x, y), (test, truth), epochs=epochs, seed=seed),
        compiled=float(np.mean(said == truth)),
        agrees=bool((said == np.array(searched)).all()),
        edges=_by_edges(x.sum(axis=1), y, test.sum(axis=1), truth),
    )


def compiled_answers(circuit: Circuit, rows: np.ndarray) -> np.ndarray:
    """What the ReLU network of a circuit with one output says to each row."""
    net = compile(circuit, "relu").net
    assert isinstance(net, ReluNet)
    return net.outputs(rows, "fast")[:, 0] > 0


def _by_edges(train: np.ndarray, y: np.ndarray, test: np.ndarray, truth: np.ndarray) -> float:
    """The best threshold on the number of edges, on the training graphs, tried on the test graphs."""
    best = max(np.unique(train), key=lambda least: np.mean((train >= least) == y))
    return float(np.mean((test >= best) == truth))
