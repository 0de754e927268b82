"""What the nets that run by gradient descent share: a step is one step of training, nothing else; and
how a run is written down and drawn."""

import math
import os
from abc import abstractmethod
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.machines.model import Configuration
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.network import Network, Training, Update
from tapegrad.networks.saving import same_network
from tapegrad.targets.descent.loss import Numbers, SquaredError, Weights
from tapegrad.targets.net import Net, bytes_of
from tapegrad.targets.target import Counts
from tapegrad_check.folder import NETWORK

if TYPE_CHECKING:
    from tapegrad.targets.descent.reference import Reference


class Descent(NamedTuple):
    """The weights, and the gradient steps that led to them."""

    weights: Weights[Numbers]
    steps: int


MOST_EDGE_STEPS = 2 * 10**7
"""Edges times steps that are left to the reference engine, at half a microsecond each: ten seconds."""
CHUNK = 1024
"""Steps between two looks at the heads."""


def with_rule(network: Network | None) -> tuple[Network, Training, float]:
    """A network that was saved, its rule of training, and the loss at which that ends."""
    if network is None or network.training is None or network.training.stop is None:
        raise BrokenNet("the network does not say how it is trained", where=NETWORK)
    return network, network.training, network.training.stop


class DescentNet(Net[Configuration, Descent]):
    """A net whose step is a step of gradient descent on the loss of an extended network. The first step
    reads the labels; then every step is a step of the machine; so there is one step more."""

    error: SquaredError
    """The loss that is trained."""

    @property
    @abstractmethod
    def shapes(self) -> Weights[tuple[int, ...]]:
        """Those of the weights."""

    @property
    def vertex_count(self) -> int:
        """Vertices of the simplex on which s is."""
        return self.shapes.s[0]

    @property
    def counts(self) -> Counts:
        """Trained are s, a cell of T and of H for every cell of every tape, and z. Fixed are the arrays of
        the loss and the labels y; where an edge begins and ends is no weight."""
        labels, constants = int(np.size(self.error.y)), _constants(self.error.network.machine)
        trained = self.vertex_count + 2 * math.prod(self.shapes.H) + labels
        return Counts(trained, constants + labels, bytes_of(self.all_arrays().values()) + 8 * trained)

    @cached_property
    def training(self) -> Training:
        """How each weight moves: s by the conditional gradient, T and H at the rate 1 / gamma = 1, z at the
        rate 1, so that it becomes the labels."""
        rules = Weights(self.rule_of_s, *[Update("gradient")] * 3)
        shapes = self.shapes._asdict()
        updates = {name: own for name, own in rules._asdict().items() if math.prod(shapes[name])}
        return Training("loss", updates, self.stop)

    @property
    def rule_of_s(self) -> Update:
        """The conditional gradient."""
        return Update("vertex")

    @property
    def stop(self) -> float:
        """B_stop of (4)."""
        return float(self.error.network.thresholds.low)

    @cached_property
    def network(self) -> Network:
        """The loss, for weights as they are before training."""
        return self.error.graph(self.shapes, self.training)

    def read(self, network: Network) -> Self:
        """Itself, if it has just this network: the one that was saved."""
        if not same_network(self.network, network):
            raise BrokenNet(f"the network is none of a net of the target {self.target!r}", where=NETWORK)
        return self

    def given(self, carry: Descent) -> dict[str, NDArray[Any]]:
        weights = {name: np.asarray(own) for name, own in carry.weights._asdict().items()}
        return {
            name: own for name, own in (weights | self.error.data()).items() if name in self.network.inputs
        }

    def outputs(self, carry: Descent) -> dict[str, NDArray[Any]]:
        """What the network puts out at these weights, in NumPy."""
        return self.plain.run(self.given(carry))[0]

    @cached_property
    def plain(self) -> NumPy:
        """The network in NumPy."""
        return NumPy(self.network)

    @cached_property
    def reference(self) -> "Reference":
        """The engine that differentiates the network: JAX, which is imported only now."""
        from tapegrad.targets.descent.reference import Reference

        return Reference(self)

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

    def train(self, carry: Descent, budget: int) -> Descent:
        """The training loop, which sees network, parameters, rates and stopping bound only."""
        return self.reference.train(carry, budget)

    def done(self, carry: Descent) -> bool:
        """Criterion (4), asked after every step."""
        return carry.steps > 0 and self.loss(carry) <= self.stop

    def loss(self, carry: Descent) -> float:
        """1/2 |F(x) - y|^2 at these weights."""
        return self.reference.loss(carry)

    def gradient(self, carry: Descent) -> Weights[Numbers]:
        """The reference gradient: automatic differentiation of the whole loss at these weights."""
        return self.reference.gradient(carry)

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


def _constants(own: Any) -> int:
    """How many floating-point numbers a loss has."""
    if isinstance(own, np.ndarray | float):
        array = np.asarray(own)
        return array.size if array.dtype.kind == "f" else 0
    return sum(map(_constants, vars(own).values())) if is_dataclass(own) else 0


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
