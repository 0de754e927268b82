"""Definition 5 of Goel et al.: memory layer, frame, filter applied L times, head, sum."""

from dataclasses import replace
from operator import index
from typing import Any, Self

import equinox as eqx
import jax
import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.learners.on_grid import BLANK, MINUS, PLUS, Frame
from tapegrad.machines.many_heads import ManyHeadMachine
from tapegrad.machines.model import GridMachine
from tapegrad.networks.form import Affine, Dense, Recurrence
from tapegrad.networks.jax import first_grid, read_out, recur
from tapegrad.targets.rcnn.build import Filter, build_filter
from tapegrad.targets.rcnn.encoding import CLOSE, SYMBOLS, TRACE, UNKNOWN, WORK, Cells, Encoding, clauses_of

ANSWER_SLOPE = 18
"""Slope of the head at a memorising cell; with the rate 1/54 a sample is written as a third of itself."""

HEAD_KINKS = ((-1 / 6, 18.0), (0.0, -36.0), (1 / 9, 36.0), (1 / 6, -18.0))
"""The head in ternary: -1 up to -1/6, 1 from 1/6 on, and 0 at -1/9 and 1/9."""


ENGINES = ("reference", "fast")
"""How a network is trained and run: every cell in every layer, or what has changed."""


def check_engine(engine: str) -> None:
    """Refuses a name that is no engine's."""
    if engine not in ENGINES:
        raise InputError(f"there is no engine {engine!r}", advice=f"Engines are {' and '.join(ENGINES)}.")


def as_learner(machine: GridMachine | ManyHeadMachine) -> GridMachine | ManyHeadMachine:
    """The machine with its symbols in the order 0, +, -, then any others."""
    if machine.blank != BLANK:
        raise InputError(
            f"a learner's blank is {BLANK!r}, and the machine has {machine.blank!r}",
            advice=f"Write learners with the symbols {BLANK} {PLUS} {MINUS}.",
        )
    others = [symbol for symbol in machine.alphabet if symbol not in (BLANK, PLUS, MINUS)]
    return replace(machine, alphabet=(PLUS, MINUS, *others))


Layout = tuple[Affine, tuple[Dense, ...], NDArray[Any], tuple[Dense, ...]]
"""How a cell begins (directly, and by units), a work cell, and the head. The head is 0 at a blank cell that
computes or memorises, with slope 18 in the latter case; the sign of the symbol otherwise."""


class Rcnn(eqx.Module):
    """The network of a learning machine for `rows - 1` samples of `columns - 1` features. Its parameters are
    the filter, which does not change, and the memory `W`, which is given at every call."""

    filter: Filter
    encoding: Encoding = eqx.field(static=True)
    rows: int = eqx.field(static=True)
    columns: int = eqx.field(static=True)
    frame: Frame = eqx.field(static=True)
    layers: int = eqx.field(static=True)
    states: tuple[str, ...] = eqx.field(static=True)
    symbols: tuple[str, ...] = eqx.field(static=True)

    @classmethod
    def of(
        cls,
        machine: GridMachine | ManyHeadMachine,
        samples: int,
        features: int,
        layers: int,
        *,
        encoding: str = "channels",
        frame: Frame = Frame(),  # noqa: B008
    ) -> Self:
        """The network that learns as the machine does. It needs a layer for each step, and `samples + 2` for
        the message to reach every row."""
        machine = as_learner(machine)
        sizes = {"samples": samples, "features": features, "layers": layers}
        samples, features, layers = (_whole(name, number) for name, number in sizes.items())
        if layers < samples + 2:
            raise Refused(
                f"{layers} layers cannot tell {samples + 1} rows to memorise",
                advice=f"Take at least {samples + 2}.",
            )
        if min(frame) < 1:
            raise Refused("the frame needs a row or column of work cells on every side")
        coded = Encoding(encoding, Cells(len(machine.alphabet), len(machine.states)))
        built, _ = build_filter(coded, clauses_of(machine))
        shape = samples + 1, features + 1
        return cls(built, coded, *shape, Frame(*frame), layers, machine.states, machine.alphabet)

    def empty_memory(self) -> NDArray[Any]:
        """`W` before training."""
        return np.zeros((self.rows, self.columns), dtype=self.filter.dtype)

    def checked_memory(self, memory: NDArray[Any]) -> NDArray[Any]:
        """`W` in the network's precision, if it is a memory of this network."""
        memory = np.asarray(memory)
        if memory.shape != (self.rows, self.columns):
            raise InputError(
                f"a memory of shape {memory.shape}, and the network has {self.rows} rows of {self.columns}"
            )
        if memory.dtype.kind not in "fiu" or not np.isfinite(memory).all():
            raise InputError("the memory must consist of finite numbers", advice="Train it by `memorise`.")
        return memory.astype(self.filter.dtype)

    def with_layers(self, layers: int) -> "Rcnn":
        """The same network with the filter applied another number of times."""
        return replace(self, layers=layers)

    @property
    def form(self) -> Recurrence:
        """The network as data."""
        layout = _channels if self.encoding.name == "channels" else _ternary
        direct, units, around, head = layout(self.filter.channels, self.filter.dtype)
        return Recurrence(direct, units, around, self.filter.convolution, head, self.frame, self.layers)

    def framed(self, memory: jax.Array, z: jax.Array) -> jax.Array:
        """The grid before the first layer: row i is `W_i * z`, in a frame of work cells."""
        return first_grid(self.form, memory, z)

    def main(self, grid: Any) -> Any:
        """The main grid without its frame. Takes arrays of numpy too."""
        return self.form.main(grid)

    def answer(self, grid: jax.Array) -> jax.Array:
        """Head and sum over the main grid."""
        return read_out(self.form, grid)

    def __call__(self, memory: jax.Array, z: jax.Array) -> jax.Array:
        """The network's output on `z = [x, 1]`."""
        return recur(self.form, memory, z)

    def start_numbers(self, memory: NDArray[Any], Z: NDArray[Any]) -> NDArray[np.int64]:
        """The contents of the framed grid for each row of `Z`, for the engine `fast`; a memory value that is
        no third of a sign is left to `reference`."""
        data = self.checked_memory(memory) * Z[:, None, :]
        signs = np.rint(3 * data).astype(np.int64)
        if np.abs(data - signs / 3).max(initial=0) > CLOSE or np.abs(signs).max(initial=0) > 1:
            raise Refused(
                "the memory holds other values than thirds of signs", advice="Train it by `memorise`."
            )
        cells = self.encoding.cells
        contents = cells.number(False, 0, UNKNOWN) + cells.modes * np.array([0, 1, 2])[signs]
        top, bottom, left, right = self.frame
        work = cells.number(True, 0, UNKNOWN)
        return np.pad(contents, ((0, 0), (top, bottom), (left, right)), constant_values=work)


def _whole(name: str, number: int) -> int:
    """The number, if it is a whole one and at least 1."""
    try:
        found = index(number)
    except TypeError:
        found = 0
    if found < 1:
        raise InputError(f"{name} must be a whole number of at least 1, not {number!r}")
    return found


def _ternary(channels: int, dtype: np.dtype[Any]) -> Layout:
    """A cell is its value. The head is the paper's `U1 relu(U2 v)`; it differs from the other encoding's in
    `Cells.stray`, contents that count as no answer in either."""
    one = np.ones((1, 1), dtype)
    kinks, slopes = np.array(HEAD_KINKS, dtype).T
    cuts, steps = Affine.of(np.ones((len(kinks), 1), dtype), -kinks), Affine.of(slopes[None], -one[0])
    return Affine.of(one, 0 * one[0]), (), one[0], (Dense(cuts, "relu"), Dense(steps, "linear"))


def _channels(channels: int, dtype: np.dtype[Any]) -> Layout:
    """A cell keeps its value as a trace, and has a symbol where that is a third of a sign:
    `relu(12 v - 2) - relu(12 v - 3)` is 1 at 1/3, 0 at 0 and -1/3, flat at all three."""
    nothing = np.zeros(channels, dtype)
    trace, signs, answer = (np.zeros(shape, dtype) for shape in ((channels, 1), (channels, 4), (1, channels)))
    cuts = np.array([[12], [12], [-12], [-12]], dtype), np.array([-2, -3, -2, -3], dtype)
    trace[TRACE] = 1
    signs[SYMBOLS, :2] = signs[SYMBOLS + 1, 2:] = 1, -1
    answer[0, [SYMBOLS, SYMBOLS + 1, TRACE]] = 1, -1, ANSWER_SLOPE
    units = Dense(Affine.of(*cuts), "relu"), Dense(Affine.of(signs, nothing), "linear")
    work = np.equal(np.arange(channels), WORK).astype(dtype)
    return Affine.of(trace, nothing), units, work, (Dense(Affine.of(answer, nothing[:1]), "linear"),)
