"""Target `rcnn`: size of the filter, speed of the engines, and parity learned beside a perceptron.

python -m bench.rcnn [--long]
"""

import sys
import time
from typing import Any

import jax
import numpy as np

from tapegrad.grid_learners import parity, single_coordinate, start
from tapegrad.machines.compiled import run
from tapegrad.machines.grid import GridMachine, GridRule
from tapegrad.nets.rcnn import RcnnNet
from tapegrad.nets.rcnn.classifier import RCNNClassifier
from tapegrad.nets.rcnn.fast import Roller
from tapegrad.nets.rcnn.network import Rcnn
from tapegrad.nets.rcnn.predicting import predict
from tapegrad.nets.rcnn.training import memorise
from tapegrad.nets.rcnn.weights import count_weights
from tapegrad.sampler import random_grid_machine

Row = dict[str, Any]


def rows(long: bool = False) -> list[Row]:
    """Everything that can be measured in a minute; `long` adds parity of 16 and more bits."""
    return [
        *sizes(),
        *engines(),
        *many_points(),
        *parities([(8, 20), (16, 26), (24, 36)] if long else [(8, 20)]),
    ]


def sizes() -> list[Row]:
    """Width and weight set beside the paper's claims, for s states."""
    found = []
    for s in (2, 3, 5, 10, 20, 50, 100, 200):
        counted = count_weights(random_grid_machine(s, states=s, symbols=3))
        found += [
            _row(f"filter width, s = {s}", counted.width, "units", counted.claimed_width, "100 s"),
            _row(f"weight set, s = {s}", counted.values, "values", counted.claimed_values, "24 * 16 s + 5"),
            _row(f"places of the five matrices, s = {s}", counted.dense_parameters, "numbers"),
            _row(f"of them not zero, s = {s}", counted.nonzero_weights, "numbers"),
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


def many_points(points: int = 512) -> list[Row]:
    """All test points at once, every cell in every layer, on the device that JAX has; `fast` on the CPU."""
    learner = single_coordinate()
    rng = np.random.default_rng(0)
    X, T = rng.choice([-1, 1], (12, 8)), rng.choice([-1, 1], (points, 8))
    network = Rcnn.of(learner.machine, 12, 8, 10_000)
    *_, last = memorise(network, X.astype(float), X[:, 3].astype(float), engine="fast")
    roller = Roller(network.filter, network.encoding)
    layers = int(predict(network, last.memory, T, roller=roller).layers.max())
    network = network.with_layers(layers)
    rates = {}
    for engine in ("reference", "fast"):
        predict(network, last.memory, T, engine=engine, roller=roller)
        began = time.perf_counter()
        labels = predict(network, last.memory, T, engine=engine, roller=roller).labels
        rates[engine] = points / (time.perf_counter() - began)
        assert (labels == T[:, 3]).all()
    name = f"{points} test points at once, {layers} layers, reference on {jax.devices()[0].platform}"
    return [_row(name, rates["reference"], "points/s", rates["fast"], "fast")]


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
        network = RCNNClassifier(learner.machine, frame=tuple(learner.frame))
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
        ]
    return found


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
