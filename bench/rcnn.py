"""Target `rcnn`: size of the filter, speed of the engines, and parity learned beside a perceptron.

python -m bench.rcnn [--long]
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from tapegrad.learners import many_heads, perceptron
from tapegrad.learners import parity as traced_parity
from tapegrad.learners.on_grid import parity, single_coordinate, start
from tapegrad.lowering.grid_learner import grid_learner
from tapegrad.machines.compiled import run
from tapegrad.machines.model import MOVES, GridMachine, GridRule
from tapegrad.sklearn import RCNNClassifier
from tapegrad.targets.rcnn import RcnnNet
from tapegrad.targets.rcnn.fast import Roller
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.predicting import outcomes_on, predict, predict_many
from tapegrad.targets.rcnn.training import memorise, memorise_many
from tapegrad_papers.goel.drawn import embedded, regrouped, success, width_of

Row = dict[str, Any]


def rows(long: bool = False) -> list[Row]:
    """Everything that can be measured in a minute; `long` adds parity of 16 and more bits."""
    return [
        *sizes(),
        *engines(),
        *many_points(),
        *many_filters(),
        *traced(),
        *parities([(8, 20), (16, 26), (24, 36), (64, 76), (169, 185)] if long else [(8, 20)]),
    ]


def sizes() -> list[Row]:
    """Width and weight set beside the paper's claims, for s states."""
    found = []
    for s in (2, 3, 5, 10, 20, 50, 100, 200):
        network = Rcnn.of(_random_learner(np.random.default_rng(s), s), 1, 1, 4, encoding="ternary")
        width = max(len(part) for part in regrouped(network.filter))
        chance = success(s)
        if s <= 20:
            embedded(network)
        found += [
            _row(f"filter width, s = {s}", width, "units", width_of(s), "100 s"),
            _row(f"weight set, s = {s}", chance.values, "values", 24 * 16 * s + 5, "24 * 16 s + 5"),
            _row(f"weights of the architecture, s = {s}", chance.parameters, "numbers"),
        ]
    return found


def engines() -> list[Row]:
    """Layers per second of a machine that fills a square, on both engines in the same run."""
    rules = {
        ("r", "0"): GridRule("1", "right", "d"), ("d", "0"): GridRule("1", "down", "l"),
        ("l", "0"): GridRule("1", "left", "u"), ("u", "0"): GridRule("1", "up", "r"),
        ("r", "1"): GridRule("0", "up", "r"), ("d", "1"): GridRule("0", "right", "d"),
        ("l", "1"): GridRule("0", "down", "l"), ("u", "1"): GridRule("0", "left", "u"),
    }  # fmt: skip
    machine = GridMachine(rules, "r", name="mill")
    found = []
    for encoding in ("ternary", "channels"):
        net = RcnnNet.of(machine, encoding, 200)
        slow = _rate(net, machine, 40, "reference")
        fast = _rate(net, machine, 400_000, "fast")
        found.append(_row(f"layers on 401 x 401 cells, {encoding}, fast", fast, "per s", slow, "reference"))
    return found


def _rate(net: RcnnNet, machine: GridMachine, layers: int, engine: str) -> float:
    net.advance(net.start(machine.start()), 3, engine)
    carry = net.start(machine.start())
    began = time.perf_counter()
    net.advance(carry, layers, engine)
    return layers / (time.perf_counter() - began)


def many_points(points: int = 4096) -> list[Row]:
    """Test points per second: `fast` on one thread and on all cores, beside every cell in every layer on the
    device that JAX has; and how the time grows with ten times the points, all of them different."""
    learner = single_coordinate()
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], (12, 20))
    T = np.unique(rng.choice([-1, 1], (11 * points, 20)), axis=0)[: 10 * points]
    T = T[rng.permutation(len(T))]
    network = Rcnn.of(learner.machine, 12, 20, 10_000)
    *_, last = memorise(network, X.astype(float), X[:, 3].astype(float), engine="fast")
    roller = Roller(network.filter, network.encoding)
    layers = int(predict(network, last.memory, T[:points], roller=roller).layers.max())
    network = network.with_layers(layers)
    few, Z = T[:64], np.column_stack([T[:points], np.ones(points)])

    def on(points: NDArray[Any], engine: str) -> None:
        labels = predict(network, last.memory, points, engine=engine, roller=roller).labels
        assert (labels == points[:, 3]).all()

    on(few, "reference")
    slow = len(few) / _seconds(lambda: on(few, "reference"))
    one = points / _seconds(lambda: outcomes_on(network, roller, last.memory, Z))
    every, tenfold = _seconds(lambda: on(T[:points], "fast")), _seconds(lambda: on(T, "fast"))
    name = f"test points, {layers} layers"
    device = f"reference on {jax.devices()[0].platform}, {len(few)} at once"
    return [
        _row(f"{name}, fast, one thread", one, "points/s", slow, device),
        _row(f"{name}, fast, {os.cpu_count()} cores", points / every, "points/s", one, "one thread"),
        _row(f"time for {len(T):,} points, fast", tenfold, "s", every, f"{points:,} points"),
    ]


def many_filters(filters: int = 256, points: int = 1000) -> list[Row]:
    """Corollary 2's loop: random machines, each compiled to its filter, trained by SGD on 8 samples of 4
    features, and run on a validation set."""
    rng = np.random.default_rng(0)
    X, y, T = (rng.choice([-1, 1], shape) for shape in ((8, 4), 8, (points, 4)))
    found = []
    for encoding in ("channels", "ternary"):
        for states in (1, 2):
            machines = [_random_learner(rng, states) for _ in range(filters)]
            memorise_many([Rcnn.of(machines[0], 8, 4, 200, encoding=encoding)], X, y)
            began = time.perf_counter()
            networks = [Rcnn.of(machine, 8, 4, 200, encoding=encoding) for machine in machines]
            built = time.perf_counter()
            memories = memorise_many(networks, X, y)
            trained = time.perf_counter()
            predict_many(networks, memories, T)
            ended = time.perf_counter()
            name = f"filters of {states}-state machines, {encoding}"
            found += [
                _row(f"{name}: built", filters / (built - began), "per s"),
                _row(f"{name}: trained by {len(X) + 1} steps", filters / (trained - built), "per s"),
                _row(f"{name}: run on {points} points, 16 different", filters / (ended - trained), "per s"),
                _row(f"{name}: end to end", filters / (ended - began), "per s"),
            ]
    return found


def traced(samples: int = 16) -> list[Row]:
    """Learners traced from Python, as machines on the grid: states, layers, and processor time to build the
    filter, to train it by SGD on some samples, and to answer as many test points."""
    found = []
    for learner in (traced_parity(4), traced_parity(8), perceptron(3, samples)):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, (samples, learner.inputs))
        began = time.process_time()
        machine = grid_learner(learner)
        network = RCNNClassifier(machine, form="paper").fit(X, X[:, 1])
        trained = time.process_time()
        network.predict(X[:1])  # code is compiled here, once for all
        ready = time.process_time()
        network.predict(X)
        ended = time.process_time()
        name = f"{learner.name} traced, {len(machine.machine.states):,} states, {samples} samples"
        layers = int(network.layers_.max())
        found += [
            _row(f"{name}: built and trained", trained - began, "s"),
            _row(f"{name}: {len(X)} points, {layers:,} layers each", ended - ready, "s"),
        ]
    return found


def _random_learner(rng: np.random.Generator, states: int) -> GridMachine:
    names, symbols, moves = [f"q{i}" for i in range(states)], "0+-", list(MOVES)
    rules = {
        (q, a): GridRule(symbols[rng.integers(3)], moves[rng.integers(5)], names[rng.integers(states)])
        for q in names
        for a in symbols
        if rng.random() < 0.8
    }
    return GridMachine(rules, names[0], alphabet=("+", "-"), states=tuple(names))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def parities(sizes: list[tuple[int, int]]) -> list[Row]:
    """Parity of half of d bits from m samples: test accuracy, time, and layers beside t + m + d."""
    from sklearn.neural_network import MLPClassifier

    found = []
    learner = parity()
    for d, m in sizes:
        rng = np.random.default_rng(d)
        hidden = rng.random(d) < 0.5
        X = rng.choice([-1, 1], (m + 16, d))
        y = np.where(hidden, X, 1).prod(axis=1)
        train, test = slice(0, m), slice(m, None)
        network = RCNNClassifier(learner)
        began = time.perf_counter()
        network.fit(X[train], y[train])
        fitted = time.perf_counter()
        right = float((network.predict(X[test]) == y[test]).mean())
        ended = time.perf_counter()
        perceptron = MLPClassifier((128, 128), max_iter=1000, random_state=0).fit(X[train], y[train])
        rival = float((perceptron.predict(X[test]) == y[test]).mean())
        first = start(learner.machine, X[train], y[train], X[m])
        steps = run(learner.machine, first, 10**9).steps
        name = f"parity, d = {d}, m = {m}"
        found += [
            _row(f"{name}: right on test points", right, "of 1", rival, "perceptron 128-128"),
            _row(f"{name}: SGD, {m + 1} steps", fitted - began, "s"),
            _row(f"{name}: 16 predictions", ended - fitted, "s"),
            _row(f"{name}: layers used", int(network.layers_[0]), "layers", steps + m + d, "t + m + d"),
            *_with_many_heads(name, X[train], y[train], X[test], y[test], network),
        ]
    return found


def _with_many_heads(
    name: str, X: NDArray[Any], y: NDArray[Any], T: NDArray[Any], truth: NDArray[Any], one: RCNNClassifier
) -> list[Row]:
    """The same with a head in each row, beside the network with one."""
    network = RCNNClassifier(many_heads.parity()).fit(X, y)
    began = time.perf_counter()
    right = float((network.predict(T) == truth).mean())
    ended = time.perf_counter()
    return [
        _row(f"{name}, many heads: right on test points", right, "of 1"),
        _row(f"{name}, many heads: {len(T)} predictions", ended - began, "s"),
        _row(
            f"{name}, many heads: layers", int(network.layers_[0]), "layers", int(one.layers_[0]), "one head"
        ),
    ]


def _row(what: str, value: float, unit: str, rival: float | None = None, name: str = "") -> Row:
    row: Row = {"what": what, "value": value, "unit": unit}
    if rival is not None:
        row |= {"rival": name, "rival_value": rival, "ratio": value / rival if rival else float("inf")}
    return row


if __name__ == "__main__":
    for row in rows("--long" in sys.argv):
        beside = (
            f"   {row['rival']}: {row['rival_value']:,.4g} ({row['ratio']:.3g})" if "rival" in row else ""
        )
        print(f"{row['what']:<52} {row['value']:>14,.4g} {row['unit']:<8}{beside}")
