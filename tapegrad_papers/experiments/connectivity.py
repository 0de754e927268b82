"""Section 6.2 of Abbe, Sandon: a graph in one piece or two halves, by descent and by a compiled circuit."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tapegrad.circuits import Array, Bit, Circuit, all_of, any_of, trace
from tapegrad.compile import compile
from tapegrad.targets.relu import ReluNet
from tapegrad_papers.experiments.perceptron import Errors, fit
from tapegrad_papers.theory.random_graphs import is_connected, labelled_graphs


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
