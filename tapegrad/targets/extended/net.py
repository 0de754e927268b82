"""`extend(primary, algorithm, x_shape, y_shape)`: one network for an algorithm and a shape of data. Training
it on any data of that shape, by gradient descent, runs the algorithm on them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.learners.model import Learner
from tapegrad.machines import compiled as plain
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.networks.backends.numpy import applied
from tapegrad.networks.builder import network_of
from tapegrad.networks.checking import check
from tapegrad.source import imported
from tapegrad.targets.descent.loss import Weights
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.extended.build import Algorithm, Function, Procedure, function_procedure, lower
from tapegrad.targets.extended.formats import FixedPoint, NumberFormat, bits_of, require_in_format
from tapegrad.targets.extended.primary import Answers, Connected, Connection, PrimaryNetwork
from tapegrad.targets.extended.streamed import NUMBERS, answer_circuit, learned, room_for
from tapegrad.targets.extended.whole import WholeNet, require_small
from tapegrad.targets.extended.whole import build as build_whole
from tapegrad.targets.tape.build import build_graph, choose
from tapegrad.targets.tape.net import TapeNet
from tapegrad.targets.tape.target import TARGET as TAPE

if TYPE_CHECKING:
    from tapegrad._compile import Compiled

Progress = Callable[[int], None]
Shape = tuple[int, int]

DEFAULT_FORMAT = FixedPoint(8, 4)
"""Numbers from -8 to 7.9375 in steps of 1/16."""

NEAR = 1e-9
"""How far weights may be from what a machine can show; double precision leaves far less."""

SAMPLED = 8
"""Steps at which gradients of the fast engine are compared with those of automatic differentiation."""
CHUNK = {"fast": 1 << 22, "reference": 1 << 10}
"""Steps between two reports of progress."""


@dataclass(frozen=True)
class TrainingRun:
    """What training did. `theta` was computed by gradient descent; `output` is the forward pass of the
    extended network after it, and equals the primary network's with these weights."""

    steps: int
    theta: NDArray[np.float64]
    output: NDArray[np.float64]
    loss: float
    deviation: float
    engine: str
    seconds: float
    weights: Descent
    compared: int = 0
    """At how many steps the fast engine was compared with automatic differentiation."""

    def to_json(self) -> dict[str, Any]:
        """The run as plain JSON, without the weights of the extended network."""
        return {
            "steps": self.steps,
            "theta": self.theta.tolist(),
            "output": self.output.tolist(),
            "loss": self.loss,
            "max_deviation": self.deviation,
            "engine": self.engine,
            "compared_with_automatic_differentiation": self.compared,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Extended:
    """F of Proposition 2.1: one network for a primary network, an algorithm, and a shape of data. What it is
    made of is known before any data are: its constants follow from the number formats and the shape."""

    net: TapeNet | WholeNet
    primary: PrimaryNetwork
    algorithm: Algorithm
    x_shape: Shape
    y_shape: Shape

    @property
    def data_format(self) -> NumberFormat:
        """What inputs and labels are numbers of."""
        primary = self.net.error.network.primary
        assert isinstance(primary, Connection)
        return primary.data_format

    def on(self, x: ArrayLike, y: ArrayLike, after: "TrainingRun | None" = None) -> "Training":
        """This network with data, ready to be trained: only the loss knows them. With `after`, the tapes are
        as that training left them: these data are the next batch (Remark 2.4)."""
        x, y = _matrix(x, "inputs"), _matrix(y, "labels")
        for found, wanted, what in ((x, self.x_shape, "inputs"), (y, self.y_shape, "labels")):
            if found.shape != wanted:
                raise InputError(f"the network is for {what} of shape {wanted}, not {found.shape}")
            require_in_format(self.data_format, found, f"the {what}")
        if not np.any(y):
            raise Refused(
                "all labels are zero, which assumption (5) of the theorem excludes: the network could not "
                "tell labels that it has read from labels that it has not",
                advice="Add a constant to the labels.",
            )
        if after is not None and isinstance(self.net, WholeNet):
            raise InputError("where whole configurations are vertices no tape is left for a next batch")
        net = replace(self.net, error=replace(self.net.error, x=x, y=y))
        return Training(self, net, x, y, after)

    def train(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        after: "TrainingRun | None" = None,
        engine: str | None = None,
        steps: int = 10**9,
        progress: Progress | None = None,
    ) -> TrainingRun:
        """Trains this network on these data until the loss is at most B_stop; with `after`, on a further
        batch, the tapes being as that training left them."""
        return self.on(x, y, after).train(engine=engine, steps=steps, progress=progress)

    def predict(self, run: TrainingRun, x: ArrayLike) -> NDArray[np.float64]:
        """F(x; s, T, H, z) with the weights that training found, for inputs that it has not seen: as many
        rows at a time as the network takes. What its data tapes show then does not matter, since the loss of
        a machine that has halted is below B_stop whatever lies under its heads."""
        x = _matrix(x, "inputs")
        if x.shape[1] != self.x_shape[1]:
            raise InputError(f"the network takes {self.x_shape[1]} inputs, not {x.shape[1]}")
        require_in_format(self.data_format, x, "the inputs")
        rows = self.x_shape[0]
        padded = np.concatenate([x, np.zeros((-len(x) % rows, x.shape[1]))])
        given = self.net.given(run.weights)
        parts = [given | {"x": padded[i : i + rows]} for i in range(0, len(padded), rows)]
        return np.concatenate([self.net.plain.run(part)[0]["output"] for part in parts])[: len(x)]


@dataclass(frozen=True)
class Training:
    """An extended network with its data."""

    extended: Extended
    net: TapeNet | WholeNet
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    after: TrainingRun | None = None
    """The training on the batch before, if there was one."""

    @property
    def algorithm(self) -> Algorithm:
        """What training carries out."""
        return self.extended.algorithm

    @cached_property
    def first(self) -> Configuration:
        """Where the machine starts: the data lie on its tapes, and after another batch what that has left."""
        state: Any = self._lowered_first
        for rewriting in reversed(self.algorithm.rewritings):
            state = rewriting.decode(state)
        return state

    @cached_property
    def _lowered_first(self) -> Configuration:
        numbers = np.concatenate([self.x.ravel(), self.y.ravel()])
        bits = np.rint(bits_of(self.extended.data_format, numbers)).astype(int).ravel().tolist()
        start = self.algorithm.on(bits)
        if self.after is None:
            return start
        left, given = self.net.decode(self.after.weights), self.algorithm.read_only
        assert left is not None
        return replace(start, tapes=start.tapes[:given] + left.tapes[given:])

    @cached_property
    def compiled(self) -> "Compiled":
        """The network with its data as that of the machine on target `tape`, for layers, the player and
        `verify`. Its input is `first`, and no other."""
        if isinstance(self.net, WholeNet):
            raise Refused(
                "on the simplex of whole configurations the start is a vertex of its own, for all data, with "
                "which no run of the machine begins",
                advice="Use target='tape'.",
            )
        machine, rewritings = self.algorithm.procedure.machine, self.algorithm.rewritings
        return imported("tapegrad._compile:Compiled")(
            self.net, TAPE, machine, rewritings, {"cells": self.net.cells}
        )

    def start(self) -> Descent:
        """The weights before training: the machine's first configuration, and no labels. After another batch
        the tapes T stay, and everything else is as it was before that one."""
        whole = isinstance(self.net, WholeNet)
        first = self.net.start(self.algorithm.start if whole else self._lowered_first)
        if self.after is None:
            return first
        return first._replace(weights=first.weights._replace(T=self.after.weights.weights.T))

    def train(
        self, *, engine: str | None = None, steps: int = 10**9, progress: Progress | None = None
    ) -> TrainingRun:
        """Trains until the loss is at most B_stop, by the fastest engine unless told otherwise. With the fast
        engine, gradients are compared with those of
        automatic differentiation now and then; weights and number of steps at the end are compared with the
        machine itself, run plainly. A difference is an error."""
        engine = engine or self.net.engines[-1]
        self.net.check_engine(engine)
        began = time.perf_counter()
        carry, compared, due = self.start(), 0, 1
        while not self.net.done(carry):
            if carry.steps >= steps:
                raise Refused(
                    f"the algorithm has not halted after {steps:,} gradient steps",
                    advice="Raise the number of steps, or check that it halts on these data.",
                )
            if engine == "fast" and carry.steps >= due and compared < SAMPLED:
                self.compare_gradients(carry)
                compared += 1
                due = 8 * carry.steps if compared < SAMPLED else steps
            ahead = min(CHUNK[engine], max(due - carry.steps, 1), steps - carry.steps)
            carry = self.net.advance(carry, ahead, engine)
            if progress is not None:
                progress(carry.steps)
        self._compare_with_machine(carry)
        return self.outcome(carry, engine, time.perf_counter() - began, compared)

    def outcome(self, carry: Descent, engine: str, seconds: float, compared: int = 0) -> TrainingRun:
        """What weights that training ended with have come to."""
        return TrainingRun(
            carry.steps,
            self.theta(carry),
            self.forward(carry),
            self.net.loss(carry),
            self.net.deviation(carry),
            engine,
            seconds,
            carry,
            compared,
        )

    def forward(self, carry: Descent) -> NDArray[np.float64]:
        """The forward pass of the extended network on the inputs."""
        return self.net.outputs(carry)["output"]

    def theta(self, carry: Descent) -> NDArray[np.float64]:
        """The weights of the primary network, as the result tape holds them now."""
        return self.net.outputs(carry)["theta"]

    def primary_output(self, theta: ArrayLike) -> NDArray[np.float64]:
        """The primary network alone."""
        return applied(self.extended.primary, np.asarray(theta, float), self.x)

    def compare_gradients(self, carry: Descent) -> None:
        """The fast engine's with those of automatic differentiation; a difference is an error.
        Double precision may differ in its last digits; a wrong slope differs by 1 at least."""
        names = zip(Weights._fields, self.net.fast_gradient(carry), self.net.gradient(carry), strict=True)
        for name, ours, reference in names:
            if not np.allclose(ours, reference, rtol=1e-12, atol=1e-9):
                raise BrokenNet(
                    f"the fast engine's gradient in {name} is not that of automatic differentiation",
                    where=f"gradient step {carry.steps:,}",
                )

    def _compare_with_machine(self, carry: Descent) -> None:
        """State, tapes and heads at the end are those of the machine, after as many steps. Where a bit of the
        result should be, it must have left one."""
        ended = plain.run(self.algorithm.machine, self._lowered_first, carry.steps)
        same = ended.halted and ended.steps == carry.steps - 1 and ended.final == self.net.decode(carry)
        if not same or self.net.deviation(carry) > NEAR:
            raise BrokenNet(
                f"training took {carry.steps:,} steps, and does not end where the machine does "
                f"after {ended.steps:,}"
            )
        state: Any = ended.final
        for rewriting in reversed(self.algorithm.rewritings):
            state = rewriting.decode(state)
        for number, (tape, cell) in enumerate(self.algorithm.procedure.result):
            symbol = state.tapes[tape].get(cell, self.algorithm.procedure.machine.blank)
            if symbol not in ("0", "1"):
                raise Refused(
                    f"theta does not fit its format: the machine left {symbol!r} where a bit should be",
                    where=f"bit {number} of the result",
                )


def extend(
    primary: PrimaryNetwork | None,
    algorithm: TuringMachine | Procedure | Function | Learner,
    x_shape: Shape,
    y_shape: Shape,
    *,
    data_format: NumberFormat | None = None,
    weight_format: NumberFormat | None = None,
    cells: int | None = None,
    target: str = "tape",
    machine: str = "straight-line",
    rounds: int = 1,
) -> Extended:
    """The extended network of section 5 around a primary network, for inputs and labels of these shapes.

    `algorithm` computes theta from x and y. A Python function gets two nested arrays of whole numbers (the
    data in units of the format's last place) and returns a list of `Int(width)`; it is traced to a circuit.
    Its `machine` is straight-line, with states for every gate, or the evaluator, whose states are the same
    for all functions and data: it finds the gates on its data tape. A machine finds the bits of x and y, row
    by row, on its first tape from cell 1 on, least significant bit of each number first, and leaves those of
    theta on its second tape in the same way; the first is read-only. A `Procedure` says itself where
    everything lies, so that the same machine can serve any amount of data. A learner is carried out by a
    machine of 22 states, the same for all of them, which goes over the samples so many `rounds`; theta is
    what it remembers, a primary network of None what it answers, and labels are -1 and 1. `cells` is the
    length of the tapes; by default a power of two with room to spare. With `target="simplex"` whole
    configurations are vertices, as in Corollary 2.2, for a machine with the symbols 0 and 1 and a few bits
    of data: the loss then never rises once the labels are read.

    Nothing depends on the data themselves. Assumption (5) asks for epsilon <= |y|^2: the smallest number of
    the format, squared. B_stop must exceed the final loss: a bound over all numbers of the formats.
    """
    if isinstance(algorithm, Learner):
        _check_learner(algorithm, x_shape, y_shape, data_format or NUMBERS, weight_format or NUMBERS)
        primary = primary or Answers.of(answer_circuit(algorithm), algorithm.cells)
        algorithm, data_format = learned(algorithm, x_shape[0], rounds), NUMBERS
        cells = cells or room_for(algorithm)
    elif primary is None:
        raise InputError("only a learner brings its own primary network", advice="Give one, as linear(2).")
    data_format = data_format or DEFAULT_FORMAT
    weight_format = weight_format or data_format
    _check_shapes(primary, x_shape, y_shape)
    if isinstance(algorithm, TuringMachine):
        bits = data_format.width * (int(np.prod(x_shape)) + int(np.prod(y_shape)))
        algorithm = Procedure.side_by_side(algorithm, bits, primary.weights * weight_format.width)
    elif not isinstance(algorithm, Procedure):
        formats = data_format, weight_format
        algorithm = function_procedure(algorithm, x_shape, y_shape, *formats, primary.weights, machine)
    if target not in ("tape", "simplex"):
        raise InputError(f"an extended network is of target 'tape' or 'simplex', not {target!r}")
    if target == "simplex":
        require_small(algorithm.machine, len(algorithm.data))
    lowered = lower(algorithm, for_tape=target == "tape")
    largest = primary.largest_output(data_format.largest, weight_format.largest) + data_format.largest
    final_loss = float(np.prod(y_shape)) * largest**2 / 2
    if target == "simplex":
        formats = data_format, weight_format
        whole = build_whole(lowered, primary, (x_shape, y_shape), *formats, final_loss)
        return Extended(whole, primary, lowered, x_shape, y_shape)
    cells = cells or 4 << (lowered.reach + 16).bit_length()
    constants = choose(lowered.machine.tapes, final_loss)
    net = TapeNet.of(
        build_graph(lowered.machine, constants),
        constants,
        lowered.machine.states,
        lowered.machine.alphabet,
        cells,
        primary=Connected.of(primary, lowered, data_format, weight_format, cells),
        x=np.zeros(x_shape),
        y=np.zeros(y_shape),
        epsilon=data_format.smallest**2,
        read_only=lowered.read_only,
    )
    return Extended(net, primary, lowered, x_shape, y_shape)


def _matrix(values: ArrayLike, what: str) -> NDArray[np.float64]:
    try:
        matrix = np.asarray(values, float)
    except (TypeError, ValueError) as error:
        raise InputError(f"the {what} are not an array of numbers") from error
    if matrix.ndim != 2 or matrix.size == 0:
        raise InputError(f"the {what} need one row for each sample, not shape {matrix.shape}")
    return matrix


def _check_learner(learner: Learner, x_shape: Shape, y_shape: Shape, *formats: NumberFormat) -> None:
    if x_shape[1:] != (learner.inputs,) or y_shape != (x_shape[0], 1):
        raise InputError(
            f"the learner {learner.name!r} takes {learner.inputs} features and one label for each sample, "
            f"not shapes {x_shape} and {y_shape}"
        )
    if any(form != NUMBERS for form in formats):
        raise InputError(f"features, labels and memory of a learner are numbers of the format {NUMBERS}")


def _check_shapes(primary: PrimaryNetwork, x_shape: Shape, y_shape: Shape) -> None:
    """Refuses data that no such network could be trained on."""
    for shape, what in ((x_shape, "inputs"), (y_shape, "labels")):
        if len(shape) != 2 or min(shape) < 1:
            raise InputError(f"the {what} need one row for each sample, not shape {shape}")
    if x_shape[0] != y_shape[0]:
        raise InputError(f"there are {x_shape[0]} inputs but {y_shape[0]} labels")
    if y_shape[0] * y_shape[1] < 2:
        raise Refused(
            "a single label number leaves no direction orthogonal to it, which f_perp needs",
            advice="Give at least two samples.",
        )
    network = network_of(primary, (primary.weights,), x_shape)
    shape = check(network)[network.outputs["y"]].sizes
    if shape != y_shape:
        raise InputError(f"the primary network puts out shape {shape}, the labels have shape {y_shape}")
