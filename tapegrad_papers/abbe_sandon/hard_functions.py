"""Sections 6.2 and 6.3 of Abbe, Sandon: functions that descent does not learn and compiled networks do."""

from dataclasses import dataclass
from itertools import combinations, permutations
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import compile
from tapegrad.circuits import Array, Bit, Circuit, UInt, all_of, any_of, count_ones, trace, where
from tapegrad.errors import InputError
from tapegrad.learners import FunctionLearner
from tapegrad.targets.relu import ReluNet
from tapegrad_papers.abbe_sandon.cross_predictability import Function, FunctionClass, Values
from tapegrad_papers.abbe_sandon.rivals import Errors, Learned, fit, until_done

# Section 6.3: sums in unknown symbols, learned by descent and by a compiled learner.
#
# An input lists n numbers of n digits in base n, then a place among the digits of their sum (of which there
# are n + 1, and the first is not asked for), then a digit. The function says whether the sum has that digit
# there. There is one function for each way to give the n symbols their values.

Meaning = tuple[int, ...]
"""The value of each symbol."""


def draw_inputs(n: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Uniform: n * n symbols, most significant first, number by number; the place, from 0 for the units; the
    symbol at that place."""
    return rng.integers(0, n, (count, n * n + 2))


def matches(inputs: NDArray[np.int64], n: int, meaning: Meaning) -> NDArray[np.bool_]:
    """Whether the sum has the digit, by arithmetic on integers."""
    values = np.asarray(meaning)[inputs]
    powers = n ** np.arange(n - 1, -1, -1)
    total = (values[:, : n * n].reshape(-1, n, n) @ powers).sum(axis=1)
    return total // n ** inputs[:, -2] % n == values[:, -1]


def centred(answers: NDArray[np.bool_], n: int) -> Values:
    """Outputs of mean 0 and mean square 1: one answer in n is yes, for the last symbol is independent of the
    sum and its value uniform."""
    return np.where(answers, sqrt(n - 1), -1 / sqrt(n - 1))


def meanings(n: int) -> list[Meaning]:
    """All ways to give the symbols their values."""
    return list(permutations(range(n)))


def hidden_digit_sums(n: int) -> FunctionClass:
    """The class, with a uniformly random meaning of the symbols."""

    def function(rng: np.random.Generator) -> Function:
        meaning = tuple(rng.permutation(n).tolist())
        return lambda x: centred(matches(x, n, meaning), n)

    return FunctionClass(f"sums in base {n}", lambda rng, count: draw_inputs(n, count, rng), function)


def all_inputs(n: int) -> NDArray[np.int64]:
    """Every input, for small n: n^(n*n + 2) of them."""
    return np.indices((n,) * (n * n + 2), dtype=np.int8).reshape(n * n + 2, -1).T.astype(np.int64)


def consistent(inputs: NDArray[np.int64], answers: NDArray[np.bool_], n: int) -> list[Meaning]:
    """The meanings that explain all answers."""
    return [m for m in meanings(n) if (matches(inputs, n, m) == answers).all()]


@dataclass(frozen=True)
class Arithmetic:
    """The same sums for both networks; errors are balanced over the two answers."""

    base: int
    perceptron: Errors
    perceptron_samples: int
    emulator: Learned


def digit_sums(n: int) -> FunctionLearner:
    """Crosses out every meaning of the symbols that a sample contradicts, until one is left. Symbols come in
    as many bits as they need; the memory has a bit for each of the n! meanings."""
    width = max(1, (n - 1).bit_length())
    every = meanings(n)

    def answers(x: Any) -> list[Any]:
        symbols = [[x[width * i + b] for b in range(width)] for i in range(n * n + 2)]
        return [_matches(n, meaning, symbols) for meaning in every]

    def update(memory: Any, x: Any, y: Any, r: Any) -> list[Any]:
        return [out | (said ^ y) for out, said in zip(memory, answers(x), strict=True)]

    def predict(memory: Any, x: Any) -> Any:
        return any_of(~out & said for out, said in zip(memory, answers(x), strict=True))

    return FunctionLearner(
        name=f"sums in base {n} with hidden digits",
        x=Array(Bit, width * (n * n + 2)),
        memory=[Bit] * len(every),
        update=update,
        predict=predict,
        done=lambda memory: count_ones(~out for out in memory) == 1,
    )


def _matches(n: int, meaning: Meaning, symbols: list[list[Any]]) -> Any:
    """School addition from the units up, carries and all, and the digit asked for at the end."""
    digits = [_is(symbol, n) for symbol in symbols]
    place, asked = digits[-2], _value(digits[-1], meaning)
    carry: Any = UInt(8)(0)
    found: Any = UInt(8)(0)
    for column in range(n):
        total = carry
        for number in range(n):
            total = total + _value(digits[n * number + n - 1 - column], meaning)
        quotient, rest = _divided(total, n)
        found = where(place[column], rest, found)
        carry = quotient
    return found == asked


def _is(symbol: list[Any], n: int) -> list[Any]:
    """For each of n symbols whether this is the one."""
    return [
        ~any_of(bit if not value >> b & 1 else ~bit for b, bit in enumerate(symbol)) for value in range(n)
    ]


def _value(one_hot: list[Any], meaning: Meaning) -> Any:
    total: Any = UInt(8)(0)
    for symbol, value in zip(one_hot, meaning, strict=True):
        total = where(symbol, UInt(8)(value), total)
    return total


def _divided(total: Any, n: int) -> tuple[Any, Any]:
    """Quotient and rest by n, by subtracting as often as a column of n digits and a carry may need."""
    quotient: Any = UInt(8)(0)
    for _ in range(n):
        enough = total >= n
        quotient = where(enough, quotient + 1, quotient)
        total = where(enough, total - n, total)
    return quotient, total


def arithmetic(n: int = 3, count: int = 3000, epochs: int = 30, seed: int = 0) -> Arithmetic:
    """The perceptron sees `count` sums with each symbol one-hot; the compiled learner as many as it needs."""
    rng = np.random.default_rng(seed)
    meaning = tuple(rng.permutation(n).tolist())
    train, test = (draw_inputs(n, count, rng) for _ in range(2))
    y, truth = matches(train, n, meaning), matches(test, n, meaning)
    one_hot = np.eye(n, dtype=np.int64)
    inputs = [one_hot[part].reshape(len(part), -1) for part in (train, test)]
    errors = fit((inputs[0], y), (inputs[1], truth), epochs=epochs, seed=seed)
    return Arithmetic(n, errors, count, _by_emulator(n, meaning, train, test, seed))


def _by_emulator(n: int, meaning: Meaning, train: np.ndarray, test: np.ndarray, seed: int) -> Learned:
    learner = digit_sums(n)
    width = learner.inputs // (n * n + 2)

    def bits(rows: np.ndarray) -> np.ndarray:
        return (rows[:, :, None] >> np.arange(width) & 1).reshape(len(rows), -1)

    net, carry = until_done(learner, bits(train), matches(train, n, meaning).astype(int), seed)
    said = net.outputs(carry, bits(test), np.zeros(len(test), int)) > 0
    return Learned(carry.steps, float(np.mean(said == matches(test, n, meaning))))


# Section 6.2: random graphs without short cycles (Definition 8), in one piece or two halves,
# told apart by descent and by a compiled circuit.


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
    net = compile(circuit, "relu", form="paper").net
    assert isinstance(net, ReluNet)
    return net.outputs(rows, "fast")[:, 0] > 0


def _by_edges(train: np.ndarray, y: np.ndarray, test: np.ndarray, truth: np.ndarray) -> float:
    """The best threshold on the number of edges, on the training graphs, tried on the test graphs."""
    best = max(np.unique(train), key=lambda least: np.mean((train >= least) == y))
    return float(np.mean((test >= best) == truth))
