"""`extend(primary, algorithm, x, y).train()`: any training algorithm, run by gradient descent."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from tapegrad._precision import in_double
from tapegrad.errors import InputError, Refused
from tapegrad.machines.model import TuringMachine
from tapegrad.targets.descent.loss import Arrays, ExtendedNetwork, Weights
from tapegrad.targets.descent.net import Descent
from tapegrad.targets.extended.build import Algorithm, Function, lower, lower_function
from tapegrad.targets.extended.formats import FixedPoint, NumberFormat, require_in_format
from tapegrad.targets.extended.primary import Connected, PrimaryNetwork
from tapegrad.targets.tape.build import build_graph, choose
from tapegrad.targets.tape.net import TapeNet

Progress = Callable[[int], None]

DEFAULT_FORMAT = FixedPoint(8, 4)
"""Numbers from -8 to 7.9375 in steps of 1/16."""


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

    def to_json(self) -> dict[str, Any]:
        """The run as plain JSON, without the weights of the extended network."""
        return {
            "steps": self.steps,
            "theta": self.theta.tolist(),
            "output": self.output.tolist(),
            "loss": self.loss,
            "max_deviation": self.deviation,
            "engine": self.engine,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Extended:
    """An extended network with its data, ready to be trained."""

    net: TapeNet
    primary: PrimaryNetwork
    algorithm: Algorithm
    x: NDArray[np.float64]
    y: NDArray[np.float64]

    def start(self) -> Descent:
        """The weights before training: the machine's first configuration, and no labels."""
        return self.net.start(self.algorithm.start)

    def train(
        self,
        *,
        engine: str = "fast",
        steps: int = 10**9,
        progress: Progress | None = None,
    ) -> TrainingRun:
        """Trains until the loss is at most B_stop."""
        began = time.perf_counter()
        carry, chunk = self.start(), 1 << (20 if engine == "fast" else 10)
        while not self.net.done(carry):
            if carry.steps >= steps:
                raise Refused(
                    f"the algorithm has not halted after {steps:,} gradient steps",
                    advice="Raise the number of steps, or check that it halts on these data.",
                )
            carry = self.net.advance(carry, min(chunk, steps - carry.steps), engine)
            if progress is not None:
                progress(carry.steps)
        return self.outcome(carry, engine, time.perf_counter() - began)

    def outcome(self, carry: Descent, engine: str, seconds: float) -> TrainingRun:
        """What weights that training ended with have come to; refused where theta does not fit its format."""
        self._check_result(carry)
        return TrainingRun(
            carry.steps,
            self.theta(carry),
            self.forward(carry),
            self.net.loss(carry),
            self.net.deviation(carry),
            engine,
            seconds,
            carry,
        )

    @in_double
    def forward(self, carry: Descent) -> NDArray[np.float64]:
        """The forward pass of the extended network on the inputs."""
        return np.asarray(_forward(self.net.error.network, self.x, carry.weights))

    @in_double
    def theta(self, carry: Descent) -> NDArray[np.float64]:
        """The weights of the primary network, as the result tape holds them now."""
        return np.asarray(_theta(self.net.error.network, carry.weights))

    @in_double
    def primary_output(self, theta: ArrayLike) -> NDArray[np.float64]:
        """The primary network alone."""
        return np.asarray(_primary_alone(self.primary, np.asarray(theta, float), self.x))

    def _check_result(self, carry: Descent) -> None:
        final = self.net.decode(carry)
        assert final is not None
        for bit, symbol in enumerate(self.algorithm.result_symbols(final)):
            if symbol not in ("0", "1"):
                raise Refused(
                    f"theta does not fit its format: the machine left {symbol!r} where a bit should be",
                    where=f"bit {bit} of the result tape",
                )


@in_double
def extend(
    primary: PrimaryNetwork,
    algorithm: TuringMachine | Function,
    x: ArrayLike,
    y: ArrayLike,
    *,
    data_format: NumberFormat = DEFAULT_FORMAT,
    weight_format: NumberFormat | None = None,
    cells: int | None = None,
) -> Extended:
    """The extended network of section 5 around a primary network.

    `algorithm` computes theta from x and y. A Python function gets two nested arrays of whole numbers (the
    data in units of the format's last place) and returns a list of `Int(width)`; it is traced. A machine
    finds the bits of x and y, row by row, on its first tape from cell 1 on, least significant bit of each
    number first, and leaves those of theta on its second tape in the same way; the first is read-only.
    `cells` is the length of the tapes; by default a power of two with room to spare around the data.
    """
    x, y = _matrix(x, "inputs"), _matrix(y, "labels")
    weight_format = weight_format or data_format
    check_data(primary, x, y, data_format)
    if isinstance(algorithm, TuringMachine):
        bits = data_format.width * (x.size + y.size)
        lowered = lower(algorithm, bits, primary.weights * weight_format.width)
    else:
        lowered = lower_function(algorithm, x.shape, y.shape, data_format, weight_format, primary.weights)
    cells = cells or 4 << (lowered.reach + 16).bit_length()
    largest = primary.largest_output(x, weight_format.largest)
    final_loss = float(np.sum((largest + np.abs(y)) ** 2) / 2)
    constants = choose(lowered.machine.tapes, final_loss)
    net = TapeNet.of(
        build_graph(lowered.machine, constants),
        constants,
        lowered.machine.states,
        lowered.machine.alphabet,
        cells,
        primary=Connected.of(primary, lowered, data_format, weight_format, cells),
        x=x,
        y=y,
        read_only=lowered.read_only,
    )
    return Extended(net, primary, lowered, x, y)


@eqx.filter_jit
def _forward(network: ExtendedNetwork, x: Float[Arrays, "samples inputs"], weights: Weights) -> Array:
    return network(x, weights)


@eqx.filter_jit
def _theta(network: ExtendedNetwork, weights: Weights) -> Array:
    assert isinstance(network.primary, Connected)
    return network.primary.theta(weights)


@eqx.filter_jit
def _primary_alone(
    primary: PrimaryNetwork, theta: Float[Arrays, " weights"], x: Float[Arrays, "samples inputs"]
) -> Array:
    return primary(theta, x)


def _matrix(values: ArrayLike, what: str) -> NDArray[np.float64]:
    try:
        matrix = np.asarray(values, float)
    except (TypeError, ValueError) as error:
        raise InputError(f"the {what} are not an array of numbers") from error
    if matrix.ndim != 2 or matrix.size == 0:
        raise InputError(f"the {what} need one row for each sample, not shape {matrix.shape}")
    return matrix


def check_data(
    primary: PrimaryNetwork, x: NDArray[np.float64], y: NDArray[np.float64], form: NumberFormat
) -> None:
    """Refuses data that the network could not be trained on."""
    if len(x) != len(y):
        raise InputError(f"there are {len(x)} inputs but {len(y)} labels")
    require_in_format(form, x, "the inputs")
    require_in_format(form, y, "the labels")
    if not np.any(y):
        raise Refused(
            "all labels are zero, which assumption (5) of the theorem excludes: the network could not tell "
            "labels that it has read from labels that it has not",
            advice="Add a constant to the labels.",
        )
    if y.size < 2:
        raise Refused(
            "a single label number leaves no direction orthogonal to it, which f_perp needs",
            advice="Give at least two samples.",
        )
    shape = jax.eval_shape(primary, jax.ShapeDtypeStruct((primary.weights,), x.dtype), x).shape
    if shape != y.shape:
        raise InputError(f"the primary network puts out shape {shape}, the labels have shape {y.shape}")
