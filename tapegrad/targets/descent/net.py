"""What the nets that run by gradient descent share: a step is one step of training, nothing else; and
how a run is written down and drawn."""

import os
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tapegrad._optimise import OnSimplex, Trained, train
from tapegrad._precision import in_double
from tapegrad.errors import InputError, Refused
from tapegrad.targets.descent.loss import NoPrimary, SquaredError, Weights, in_room
from tapegrad.targets.net import Net, bytes_of
from tapegrad.targets.target import Counts


class Descent(NamedTuple):
    """The weights, and the gradient steps that led to them."""

    weights: Weights
    steps: int


MOST_EDGE_STEPS = 2 * 10**7
"""Edges times steps that are left to the reference engine, at half a microsecond each: ten seconds."""
CHUNK = 1024
"""Steps between two looks at the heads."""


class DescentNet(Net, eqx.Module):
    """A net whose step is a step of gradient descent on the loss of an extended network. The first step
    reads the labels; then every step is a step of the machine; so there is one step more."""

    # Equinox makes a pytree of every method that is looked up, and looks at all arrays of the net for it,
    # which takes longer than most methods do. Here methods are only called.
    __getattribute__ = object.__getattribute__

    error: eqx.AbstractVar[SquaredError]
    """The loss that is trained."""

    @property
    @abstractmethod
    def vertex_count(self) -> int:
        """Vertices of the simplex on which s is."""

    @property
    @abstractmethod
    def cell_count(self) -> int:
        """Cells of each tape that is a weight."""

    @property
    def tape_cells(self) -> int:
        """Cells of all tapes that are weights."""
        return 0

    @property
    def counts(self) -> Counts:
        """Trained are s, a cell of T and of H for every cell of every tape, and z. Fixed are the arrays of
        the loss and the labels y; where an edge begins and ends is no weight."""
        machine, labels = self.error.network.machine, int(np.size(self.error.y))
        fixed = [np.asarray(own) for own in jax.tree.leaves(machine) if np.asarray(own).dtype.kind == "f"]
        trained = self.vertex_count + 2 * self.tape_cells + labels
        constants = sum(own.size for own in fixed)
        return Counts(trained, constants + labels, bytes_of(self.arrays().values()) + 8 * trained)

    @property
    def rates(self) -> Weights:
        """In the place of each weight how it moves: s by the conditional gradient, T and H at the rate
        1 / gamma = 1, z at the rate 1, so that it becomes the labels."""
        return Weights._make((OnSimplex(vertices=np.asarray(self.vertex_count)), 1.0, 1.0, 1.0))

    @property
    def stop(self) -> float:
        """B_stop of (4)."""
        return float(np.asarray(self.error.network.thresholds.low))

    def step(self, carry: Descent) -> Descent:
        """One gradient step of everything."""
        return self._checked(carry, self.train(carry, 1))

    def advance(self, carry: Descent, steps: int, engine: str = "reference") -> Descent:
        """Trains on until the loss is at most B_stop, for at most `steps` steps."""
        self.check_engine(engine)
        if self.done(carry):
            return carry
        if engine == "fast":
            return self.advance_fast(carry, steps)
        left = steps
        while left > 0:
            before = carry
            carry = self.train(before, min(left, CHUNK))
            taken = carry.steps - before.steps
            if self.lost(carry) is not None:
                self._replay(before, taken)
            left -= taken
            if taken < CHUNK:
                break
        return carry

    @abstractmethod
    def advance_fast(self, carry: Descent, steps: int) -> Descent:
        """The same steps by the fast engine."""

    @in_double
    def train(self, carry: Descent, budget: int) -> Descent:
        """The training loop, which sees loss, parameters, rates and stopping bound only."""
        error, weights = self._in_room(carry.weights)
        result: Trained = train(error, weights, self.rates, self.stop, budget)
        return Descent(_cut(result.parameters, carry.weights), carry.steps + int(result.steps))

    def done(self, carry: Descent) -> bool:
        """Criterion (4), asked after every step."""
        return carry.steps > 0 and self.loss(carry) <= self.stop

    @in_double
    def loss(self, carry: Descent) -> float:
        """1/2 |F(x) - y|^2 at these weights."""
        return float(_value(*self._in_room(carry.weights)))

    @in_double
    def gradient(self, carry: Descent) -> Weights:
        """The reference gradient: automatic differentiation of the whole loss at these weights."""
        return _cut(_gradient(*self._in_room(carry.weights)), carry.weights)

    def _in_room(self, weights: Weights) -> tuple[SquaredError, Weights]:
        """Loss and weights as they are compiled: padded, so that a machine of like size needs no compilation
        of its own. Only a primary network, which may look at all of a tape, keeps them as they are."""
        if not isinstance(self.error.network.primary, NoPrimary):
            return self.error, weights
        s, T, H, z = weights
        return self._error_in_room, Weights(in_room(s), in_room(T), in_room(H), np.asarray(z))

    @cached_property
    def _error_in_room(self) -> SquaredError:
        """On the device, where it is used at every step."""
        machine = self.error.network.machine
        padded = eqx.tree_at(lambda e: e.network.machine, self.error, machine.in_room(self.cell_count))
        return jax.device_put(padded)

    def lost(self, carry: Descent) -> int | None:
        """The number of a tape whose head is no longer on it, if there is one."""
        return None

    def last_place(self, carry: Descent, tape: int) -> str:
        """In words: where the head of this tape stood."""
        return ""

    def more_room(self) -> str:
        """What to do about it."""
        return ""

    def _checked(self, before: Descent, after: Descent) -> Descent:
        tape = self.lost(after)
        if tape is not None:
            raise self.left_the_tape(before, tape)
        return after

    def _replay(self, carry: Descent, steps: int) -> None:
        """Somewhere within these steps a head left its tape: finds where, and says so."""
        for _ in range(steps):
            carry = self.step(carry)

    def left_the_tape(self, before: Descent, tape: int) -> Refused:
        """The error for a machine that needs a longer tape than it was given."""
        return Refused(
            f"the head of tape {tape + 1} leaves the tape at gradient step {before.steps + 1:,}",
            where=self.last_place(before, tape),
            advice=self.more_room(),
        )


def _cut(padded: Weights, like: Weights) -> Weights:
    """Padding left out again."""
    shapes = [tuple(slice(length) for length in array.shape) for array in like]
    return Weights(*(np.asarray(array)[shape] for array, shape in zip(padded, shapes, strict=True)))


@eqx.filter_jit
def _value(error: SquaredError, weights: Weights) -> Array:
    return error(weights)


@eqx.filter_jit
def _gradient(error: SquaredError, weights: Weights) -> Weights:
    return jax.grad(error)(weights)


# A training run written down step by step, the loss, the tapes and the largest deviation; and drawn (extra
# `plot`).


@dataclass(frozen=True)
class History:
    """One row for each gradient step, the start first."""

    losses: NDArray[np.float64]
    tapes: NDArray[np.float64]
    """The weights T: step, cell, tape; without tapes and cells for `simplex`."""
    heads: NDArray[np.float64]
    """The weights H, likewise."""
    deviation: float
    """The largest over the run."""
    stop: float
    """B_stop: the run ends when the loss is at most this."""


def record(net: DescentNet, start: Descent, steps: int = 1000) -> History:
    """Trains by the reference engine, one step at a time, and keeps everything."""
    if steps < 1:
        raise InputError(f"a history needs at least one step, not {steps}")
    carries = [start]
    while len(carries) <= steps and not net.done(carries[-1]):
        carries.append(net.step(carries[-1]))
    return History(
        losses=np.array([net.loss(carry) for carry in carries]),
        tapes=np.array([np.asarray(carry.weights.T) for carry in carries]),
        heads=np.array([np.asarray(carry.weights.H) for carry in carries]),
        deviation=max(net.deviation(carry) for carry in carries),
        stop=net.stop,
    )


def plot_history(history: History, path: str | os.PathLike[str]) -> None:
    """Writes one figure: the loss over the steps with the stopping bound, and below it, for each writable
    tape, a row for every step with dark cells where the weight is +1 and the head in colour."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Refused("plots need matplotlib", advice="Install tapegrad[plot].") from error
    tapes = history.tapes.shape[2]
    figure = Figure(figsize=(8, 3 + 3 * tapes), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1 + tapes, 1, squeeze=False)[:, 0]
    panels[0].plot(history.losses, drawstyle="steps-post", label="loss")
    panels[0].axhline(history.stop, linestyle="--", color="tab:red", label="B_stop")
    panels[0].set(xlabel="gradient step", ylabel="1/2 |F(x) - y|²")
    panels[0].legend()
    own_heads = history.heads[:, :, history.heads.shape[2] - tapes :] if tapes else history.heads
    for tape in range(tapes):
        panel, cells = panels[1 + tape], history.tapes[:, :, tape].T
        used = np.flatnonzero((cells > 0).any(axis=1) | (own_heads[:, :, tape].T > 0.5).any(axis=1))
        first, last = used.min(), used.max() + 1
        panel.imshow(
            -cells[first:last], aspect="auto", cmap="gray", interpolation="nearest", vmin=-1.5, vmax=1
        )
        panel.plot(own_heads[:, first:last, tape].argmax(axis=1), color="tab:orange", linewidth=0.8)
        panel.set(xlabel="gradient step", ylabel=f"tape {tape + 1}: cells in use")
    figure.savefig(path)
