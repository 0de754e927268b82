"""Gradient descent on the machine's loss alone, beside a plain run of the machine."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array

from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.optimise import OnSimplex, descend
from tapegrad.precision import in_double
from tapegrad.source import Source
from tapegrad.targets.descent.loss import TracingLoss, Weights
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.tape.build import build_graph
from tapegrad.targets.tape.constants import Constants, choose
from tapegrad.targets.tape.net import TapeNet
from tapegrad.targets.tape.target import passes

MOST_STEPS = 40
CELLS = 2 * MOST_STEPS + 2
"""No head can leave the tape."""


def tape_machine(machine: TuringMachine) -> TuringMachine:
    """The machine as section 4.4 wants it: binary, stay-free, without two-cycles."""
    ready: Source = machine
    for rewriting in passes(machine, cells=CELLS):
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
    net = TapeNet.of(graph, constants, machine.states, machine.alphabet, CELLS)
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
    return Weights(*(np.asarray(array) for array in _step(loss, weights, rates)))


@in_double
def value(loss: TracingLoss, weights: Weights) -> float:
    """The machine's loss."""
    return float(_value(loss, weights))


@in_double
def gradient(loss: TracingLoss, weights: Weights) -> Weights:
    """Its gradient, by automatic differentiation."""
    return Weights(*(np.asarray(array) for array in _gradient(loss, weights)))


@eqx.filter_jit
def _step(loss: TracingLoss, weights: Weights, rates: Weights) -> Weights:
    def of(w: Weights) -> Array:
        return loss(w.s, w.T, w.H)

    return descend(of, weights, rates, jax.grad(of)(weights))


@eqx.filter_jit
def _value(loss: TracingLoss, weights: Weights) -> Array:
    return loss(weights.s, weights.T, weights.H)


@eqx.filter_jit
def _gradient(loss: TracingLoss, weights: Weights) -> Weights:
    return jax.grad(lambda w: loss(w.s, w.T, w.H))(weights)
