"""What several claims share: gradient descent on the machine's loss alone beside a plain run of the machine,
small algorithms and data for the extended network whose results are known, and its layers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, product
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array

from tapegrad._optimise import NetworkLoss, OnSimplex, descend
from tapegrad._precision import in_double
from tapegrad.errors import Refused
from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.networks.builder import Builder
from tapegrad.networks.network import Network
from tapegrad.source import Source
from tapegrad.targets.descent.layers import layers, network_layers
from tapegrad.targets.descent.loss import TracingLoss, Weights
from tapegrad.targets.descent.net import Descent, DescentNet
from tapegrad.targets.extended import FixedPoint, Training, extend, linear
from tapegrad.targets.tape.build import Constants, build_graph, choose
from tapegrad.targets.tape.net import TapeNet
from tapegrad.targets.tape.target import passes

MOST_STEPS = 40
TAPE_CELLS = 2 * MOST_STEPS + 2
"""No head can leave the tape."""


def tape_machine(machine: TuringMachine) -> TuringMachine:
    """The machine as section 4.4 wants it: binary, stay-free, without two-cycles."""
    ready: Source = machine
    for rewriting in passes(machine, cells=TAPE_CELLS):
        ready = rewriting.after
    assert isinstance(ready, TuringMachine)
    return ready


def random_tape_machines(count: int, tapes: int) -> Iterator[tuple[TuringMachine, Configuration]]:
    """Random machines with full tables, one entry in eight leading to a halting state, so that all have the
    same size; made ready for the tape, with a random word on every tape."""
    names = ("q0", "q1", "q2")
    for seed in range(count):
        random = np.random.default_rng(seed)
        rules = {}
        for state, read in product(names, product("01", repeat=tapes)):
            after = "halt" if random.random() < 1 / 8 else names[random.integers(3)]
            write = tuple("01"[bit] for bit in random.integers(2, size=tapes))
            moves = tuple(int(move) for move in random.choice([-1, 1], tapes))
            rules[state, read] = Rule(write, moves, after)
        machine = TuringMachine(rules, "q0", blank="0", states=(*names, "halt"), accept=frozenset({"halt"}))
        ready = tape_machine(replace(machine, name=f"random machine {seed}"))
        words = random.integers(2, size=(tapes, 6))
        yield ready, ready.start(*("".join(map(str, word)) for word in words))


@dataclass(frozen=True)
class Trace:
    """What descent did: how many steps agreed with the machine, whether all did, and the loss at each."""

    steps: int
    agreed: int
    halted: bool
    losses: list[float]

    @property
    def exact(self) -> bool:
        """Every iterate was the machine's configuration."""
        return self.agreed == self.steps


def trace_tape(
    machine: TuringMachine, start: Configuration, constants: Constants | None = None, loss: Any = None
) -> Trace:
    """(22) on the loss (21), step for step beside the machine's own run, for at most `MOST_STEPS` steps.
    `loss` may be a changed version of the net's own."""
    constants = constants or choose(machine.tapes, final_loss=0.5)
    graph = build_graph(machine, constants)
    net = TapeNet.of(graph, constants, machine.states, machine.alphabet, TAPE_CELLS)
    loss = net.error.network.machine if loss is None else loss(net.error.network.machine)
    expected = list(islice(machine.run(start), MOST_STEPS + 1))
    weights = net.start(start).weights
    losses, agreed = [value(loss, weights)], 0
    for configuration in expected[1:]:
        weights = step(loss, weights)
        losses.append(value(loss, weights))
        agreed += net.decode(Descent(weights, 1)) == configuration
    return Trace(len(expected) - 1, agreed, machine.step(expected[-1]) is None, losses)


@in_double
def step(loss: TracingLoss, weights: Weights, line_search: bool = False) -> Weights:
    """One step of (14) or (22): conditional gradient for s, plain descent at rate 1 for T and H."""
    alone, own = _alone(loss, weights)
    rates = dict.fromkeys(own, 1.0) | {"s": OnSimplex(line_search)}
    return weights._replace(**_arrays(_step(alone, own, rates)))


@in_double
def value(loss: TracingLoss, weights: Weights) -> float:
    """The machine's loss."""
    return float(_loss(*_alone(loss, weights)))


@in_double
def gradient(loss: TracingLoss, weights: Weights) -> Weights:
    """Its gradient, by automatic differentiation."""
    found = _arrays(_gradient(*_alone(loss, weights)))
    return Weights(*map(np.zeros_like, weights))._replace(**found)


def _alone(loss: TracingLoss, weights: Weights) -> tuple[NetworkLoss, dict[str, np.ndarray]]:
    """The machine's loss as a network of its own, and what it is given."""
    network = machine_network(loss, weights.s.shape, weights.T.shape, weights.H.shape)
    return NetworkLoss(network, {}), {name: getattr(weights, name) for name in network.inputs}


@lru_cache(maxsize=8)
def machine_network(loss: TracingLoss, *shapes: tuple[int, ...]) -> Network:
    """The machine's loss alone, of s, T and H."""
    build = Builder("loss of a machine", np.float64, shared=True)
    s, *tapes = shapes
    given = (build.input(name, *own) if np.prod(own) else None for name, own in zip("TH", tapes, strict=True))
    build.output("loss", loss(build.input("s", *s), *given))
    return build.network()


def _arrays(found: dict[str, Array]) -> dict[str, np.ndarray]:
    return {name: np.asarray(own) for name, own in found.items()}


_loss = jax.jit(lambda loss, own: loss(own))
_gradient = jax.jit(lambda loss, own: jax.grad(loss)(own))


@eqx.filter_jit
def _step(loss: NetworkLoss, own: dict[str, np.ndarray], rates: dict[str, Any]) -> dict[str, Array]:
    return descend(loss, own, rates, jax.grad(loss)(own))


X = np.array([[1.0, -2.0], [0.5, 1.5]])
Y = np.array([[-1.0], [0.5]])
FORMAT = FixedPoint(4, 1)
EXTENDED_CELLS = 64


def copying(bits: int, skipped: int = 0) -> TuringMachine:
    """Two tapes, two symbols: copies `bits` data bits, cells 1, 2, ..., to the result tape, from cell 1 on;
    an even number of bits before them is left out."""
    assert skipped % 2 == 0, "the head of the result steps to and fro meanwhile"
    rules = {}
    states = [*(f"skip {bit}" for bit in range(skipped)), *(f"copy {bit}" for bit in range(bits + 1))]
    for data, result in product("01", repeat=2):
        rules["start", (data, result)] = Rule((data, result), (1, 1), states[0])
        for bit in range(skipped):
            aside = -1 if bit % 2 else 1
            rules[states[bit], (data, result)] = Rule((data, result), (1, aside), states[bit + 1])
        for bit in range(skipped, skipped + bits):
            rules[states[bit], (data, result)] = Rule((data, data), (1, 1), states[bit + 1])
    return TuringMachine(rules, "start", blank="0", alphabet=("0", "1"), name="copy bits")


LAST_NUMBERS_STEPS = 1 + 12 + 12
"""One step onto the data, one for each bit that is left out or copied."""


def last_numbers(y: np.ndarray = Y) -> Training:
    """A linear network w . x + b whose weights the machine sets to the last three numbers of the data, the
    last input and both labels."""
    machine = copying(3 * FORMAT.width, 3 * FORMAT.width)
    shapes = X.shape, Y.shape
    return extend(linear(2), machine, *shapes, data_format=FORMAT, cells=EXTENDED_CELLS).on(X, y)


def data_sets() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Inputs and labels of one shape: the smallest labels that the format has, the largest, and others."""
    least, most = 1 / 2, 4.0
    yield X, Y
    yield X, -Y
    yield X, np.array([[least], [0.0]])
    yield -X, np.array([[0.0], [-least]])
    yield X, np.array([[-most], [-most]])
    yield 2 * Y + np.array([[0.0, least]]), X[:, :1]


def iterates(extended: Training, most: int = 2 * LAST_NUMBERS_STEPS) -> list[Descent]:
    """The weights before training and after every gradient step: to the stop, if that comes in time, or to
    where a head leaves its tape."""
    found = [extended.start()]
    while not extended.net.done(found[-1]) and len(found) <= most:
        try:
            found.append(extended.net.step(found[-1]))
        except Refused:
            break
    return found


PERPENDICULAR = 5
"""Layers of f_perp, in appendix C; each of them holds two non-linear operations, one after the other."""

EXPECTED_LAYERS = PERPENDICULAR + 1 + 4 + 1
"""f_perp, its product with the root, the halt switch and the last product of the label switch."""


def paper_layers(net: DescentNet, weights: Weights) -> tuple[int, int]:
    """How many layers the extended network has beside the primary one, in the paper's units, where the ten
    operations of f_perp are five layers; and the units of the widest. Both are read from the graph."""
    machine, shapes = net.error.network.machine, Weights(*map(np.shape, weights))
    traced = network_layers(machine, shapes)
    beside = len(layers(machine, *shapes[:3])) + 1  # the machine's loss and its root, beside f_perp
    return len(traced) - 2 * PERPENDICULAR + max(PERPENDICULAR, beside), max(traced)
