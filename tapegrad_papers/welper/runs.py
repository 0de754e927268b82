"""What several claims share: gradient descent on the machine's loss alone beside a plain run of the machine,
small algorithms and data for the extended network whose results are known, and the depth of a function."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from tapegrad._optimise import OnSimplex, descend
from tapegrad._precision import in_double
from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.source import Source
from tapegrad.targets.descent.loss import TracingLoss, Weights
from tapegrad.targets.descent.net import Descent
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
    rates = Weights._make((OnSimplex(line_search), 1.0, 1.0, 1.0))
    return Weights(*map(np.asarray, _step(loss, weights, rates)))


@in_double
def value(loss: TracingLoss, weights: Weights) -> float:
    """The machine's loss."""
    return float(_loss(loss, weights))


@in_double
def gradient(loss: TracingLoss, weights: Weights) -> Weights:
    """Its gradient, by automatic differentiation."""
    return Weights(*map(np.asarray, _gradient(loss, weights)))


@eqx.filter_jit
def _loss(loss: TracingLoss, weights: Weights) -> Array:
    return loss(weights.s, weights.T, weights.H)


@eqx.filter_jit
def _gradient(loss: TracingLoss, weights: Weights) -> Weights:
    return jax.grad(lambda w: _loss(loss, w))(weights)


@eqx.filter_jit
def _step(loss: TracingLoss, weights: Weights, rates: Weights) -> Weights:
    return descend(lambda w: _loss(loss, w), weights, rates, _gradient(loss, weights))


X = np.array([[1.0, -2.0], [0.5, 1.5]])
Y = np.array([[-1.0], [0.5]])
FORMAT = FixedPoint(4, 1)
EXTENDED_CELLS = 64


def copying(bits: int) -> TuringMachine:
    """Two tapes, two symbols: copies the first `bits` data bits, cells 1, 2, ..., to the result tape."""
    rules = {}
    for data, result in product("01", repeat=2):
        rules["start", (data, result)] = Rule((data, result), (1, 1), "copy 0")
        for bit in range(bits):
            rules[f"copy {bit}", (data, result)] = Rule((data, data), (1, 1), f"copy {bit + 1}")
    return TuringMachine(rules, "start", blank="0", alphabet=("0", "1"), name="copy bits")


def first_numbers(y: np.ndarray = Y) -> Training:
    """A linear network w . x + b whose weights the machine sets to the first three numbers of the data:
    theta = (x[0, 0], x[0, 1], x[1, 0]), after 1 + 12 steps."""
    shapes = X.shape, Y.shape
    copy = extend(linear(2), copying(3 * FORMAT.width), *shapes, data_format=FORMAT, cells=EXTENDED_CELLS)
    return copy.on(X, y)


def data_sets() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Inputs and labels of one shape: the smallest labels that the format has, the largest, and others."""
    least, most = 1 / 2, 4.0
    yield X, Y
    yield X, np.array([[least], [0.0]])
    yield -X, np.array([[0.0], [-least]])
    yield X, np.array([[-most], [-most]])
    yield 2 * Y + np.array([[0.0, least]]), X[:, :1]


def iterates(extended: Training) -> list[Descent]:
    """The weights before training and after every gradient step, to the stop."""
    found = [extended.start()]
    while not extended.net.done(found[-1]):
        found.append(extended.net.step(found[-1]))
    return found


ALWAYS = {"max", "min", "sqrt", "rsqrt", "integer_pow", "square", "abs", "sign", "gt", "ge", "lt", "le"}
"""One layer, whatever they act on."""
OF_SEVERAL = {"mul", "dot_general", "select_n", "div"}
"""One layer where more than one operand depends on the input; with one they are linear."""


def nonlinear_depth(function: Callable[..., Any], *arguments: Any) -> int:
    """How deep a function really is: the longest chain of non-linear operations, from the arguments to any
    output, in what JAX traces of it. Affine maps between them are free, as in a layer `phi(W x + b)`. This
    counts the network as it runs, and knows nothing of how the paper groups its operations."""
    traced = jax.make_jaxpr(function)(*arguments)
    inputs = traced.jaxpr.invars[-len(jax.tree.leaves(arguments)) :]
    depths = dict.fromkeys(inputs, 0)
    outputs = _depths(traced.jaxpr, depths)
    return max(depth for depth in outputs if depth is not None)


def _depths(program: Jaxpr, depths: dict[Any, int]) -> list[int | None]:
    """Fills in the depth of every variable that depends on the inputs; None for those that do not."""
    for equation in program.eqns:
        given = [None if isinstance(v, Literal) else depths.get(v) for v in equation.invars]
        inner = _inner(equation.params)
        if inner is not None:
            known = {v: d for v, d in zip(inner.invars, given, strict=True) if d is not None}
            found = _depths(inner, known)
        else:
            found = [_after(equation.primitive.name, given)] * len(equation.outvars)
        depths.update({v: d for v, d in zip(equation.outvars, found, strict=True) if d is not None})
    return [None if isinstance(v, Literal) else depths.get(v) for v in program.outvars]


def _inner(parameters: dict[str, Any]) -> Jaxpr | None:
    for name in ("jaxpr", "call_jaxpr"):
        inner = parameters.get(name)
        if isinstance(inner, ClosedJaxpr):
            return inner.jaxpr
        if isinstance(inner, Jaxpr):
            return inner
    return None


def _after(operation: str, given: list[int | None]) -> int | None:
    dependent = [depth for depth in given if depth is not None]
    if not dependent:
        return None
    if operation == "div" and given[1] is not None:
        return max(dependent) + 1
    more = operation in ALWAYS or (operation in OF_SEVERAL and len(dependent) > 1)
    return max(dependent) + more
