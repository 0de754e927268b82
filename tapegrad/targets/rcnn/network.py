"""Definition 5 of Goel et al.: memory layer, frame, filter applied L times, head, sum."""

from dataclasses import dataclass, replace
from functools import cached_property
from operator import index
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.learners.on_grid import BLANK, MINUS, PLUS, Frame
from tapegrad.machines.many_heads import ManyHeadMachine
from tapegrad.machines.model import GridMachine
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.builder import Builder, Value
from tapegrad.networks.form import Affine, Dense
from tapegrad.networks.network import Network, Training, Update
from tapegrad.targets.rcnn.build import Filter, build_filter
from tapegrad.targets.rcnn.encoding import CLOSE, SYMBOLS, TRACE, UNKNOWN, WORK, Cells, Encoding, clauses_of

ANSWER_SLOPE, RATE = 18, 1 / 54
"""Slope of the head at a memorising cell, and the rate of SGD: a sample is written as a third of itself."""

HEAD_KINKS = ((-1 / 6, 18.0), (0.0, -36.0), (1 / 9, 36.0), (1 / 6, -18.0))
"""The head in ternary: -1 up to -1/6, 1 from 1/6 on, and 0 at -1/9 and 1/9."""


FIRST, LAST = "first grid", "layers"
"""Nodes of the network of a learner: the grid (rows, columns, channels) before the first layer and after the
last."""
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


@dataclass(frozen=True, eq=False)
class Rcnn:
    """The network of a learning machine for `rows - 1` samples of `columns - 1` features. Its parameters are
    the filter, which does not change, and the memory `W`, which is given at every call."""

    filter: Filter
    encoding: Encoding
    rows: int
    columns: int
    frame: Frame
    layers: int
    states: tuple[str, ...]
    symbols: tuple[str, ...]

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
    def layout(self) -> Layout:
        """How cells begin and what they say, in this encoding."""
        make = _channels if self.encoding.name == "channels" else _ternary
        return make(self.filter.channels, self.filter.dtype)

    @cached_property
    def network(self) -> Network:
        """Memory, input and label to the output and its squared loss, by whose gradient SGD moves the memory,
        a sample at a step."""
        graph = Builder("rcnn that learns", self.filter.dtype)
        memory = graph.input("memory", self.rows, self.columns, about="W, which is trained")
        z = graph.input("z", self.columns, about="features and a last 1")
        label = graph.input("label", about="-1 or +1")
        first = self._framed(graph, memory * z)
        body = Builder("layer", self.filter.dtype)
        before = body.state("grid", np.zeros((*self.shape, self.filter.channels), self.filter.dtype))
        body.hand_on("grid", self.filter.applied(body, before)[0])
        last = graph.node("repeat", first, body=body.network(), count=self.layers, name=LAST)
        output = self._read(graph, last)
        graph.output("output", output)
        off = graph.value(output) - label
        graph.output("loss", off * off * 0.5)
        return graph.network(Training("loss", {"memory": Update("gradient", RATE)}))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid with its frame."""
        top, bottom, left, right = self.frame
        return top + self.rows + bottom, left + self.columns + right

    def _framed(self, graph: Builder, products: Value) -> Value:
        """The grid before the first layer: row i is made of `W_i * z`, in a frame of work cells."""
        direct, units, around, _ = self.layout
        top, bottom, left, right = self.frame
        cell = graph.take(products, np.arange(self.columns)[:, None])
        cells = graph.affine(cell, direct, "direct")
        if units:
            cells = cells + graph.dense(cell, units, "units")

        def work(*shape: int) -> Value:
            return graph.constant(np.broadcast_to(around, (*shape, len(around))))

        grid = graph.join(work(self.rows, left), cells, work(self.rows, right), axis=-2)
        above = graph.join(work(top, self.shape[1]), grid, axis=-3)
        return graph.node("join", above, work(bottom, self.shape[1]), name=FIRST, axis=-3)

    def _read(self, graph: Builder, grid: Value) -> Value:
        """What the heads of the main grid add up to."""
        top, bottom, left, right = self.frame
        frame = (top, bottom), (left, right), (0, 0)
        main = np.pad(np.ones((self.rows, self.columns, 1), self.filter.dtype), frame)
        return (graph.dense(grid, self.layout[3], "head") * main).total(3)

    def framed(self, memory: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
        """The grid (channels, rows, columns) before the first layer."""
        given = {"memory": memory, "z": z, "label": np.zeros((), self.filter.dtype)}
        values = NumPy(self.network).values(given)
        first = next(value for node, value in values if node.name == FIRST)
        return np.ascontiguousarray(np.moveaxis(first, -1, 0))

    def main(self, grid: Any) -> Any:
        """The main grid without its frame, of the last two axes of an array."""
        top, _, left, _ = self.frame
        return grid[..., top : top + self.rows, left : left + self.columns]

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
    `1 - relu(1 - relu(12 v - 2))` is 1 at 1/3, 0 at 0 and -1/3, flat at all three; and exact at 1/3, which is
    rounded, whether or not product and sum are rounded as one."""
    nothing = np.zeros(channels, dtype)
    trace, answer = np.zeros((channels, 1), dtype), np.zeros((1, channels), dtype)
    trace[TRACE] = 1
    answer[0, [SYMBOLS, SYMBOLS + 1, TRACE]] = 1, -1, ANSWER_SLOPE
    cuts = Affine.of(np.array([[12], [-12]], dtype), np.array([-2, -2], dtype))
    rest = Affine.of(-np.eye(2, dtype=dtype), np.ones(2, dtype))
    signs = np.zeros((channels, 2), dtype)
    signs[SYMBOLS, 0] = signs[SYMBOLS + 1, 1] = -1
    symbols = Affine.of(signs, -signs.sum(axis=1))
    units = Dense(cuts, "relu"), Dense(rest, "relu"), Dense(symbols, "linear")
    work = np.equal(np.arange(channels), WORK).astype(dtype)
    return Affine.of(trace, nothing), units, work, (Dense(Affine.of(answer, nothing[:1]), "linear"),)
