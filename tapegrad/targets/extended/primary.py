"""Primary networks: f_theta as a function of all its weights in one row; and the two hidden layers between
data, machine and primary network, which fill the read-only tapes and find theta."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self

import numpy as np
from jaxtyping import Float, Int

from tapegrad.circuits.model import Circuit
from tapegrad.errors import InputError
from tapegrad.networks.builder import Value
from tapegrad.networks.network import Network
from tapegrad.networks.tiles import depths
from tapegrad.targets.descent.loss import Trained
from tapegrad.targets.extended.build import Algorithm, tape_signs
from tapegrad.targets.extended.formats import NumberFormat


class PrimaryNetwork(Protocol):
    """Any function of theta and a batch of inputs, that says how many weights it takes and how large its
    outputs can become (the stopping bound must lie above its loss)."""

    @property
    def weights(self) -> int:
        """Length of theta."""
        ...

    def __call__(self, theta: Value, x: Value) -> Value:
        """One row of outputs for each row of inputs."""
        ...

    def largest_output(self, largest_input: float, largest_weight: float) -> float:
        """A bound of |f_theta(x)| for all inputs and weights up to these sizes."""
        ...


@dataclass(frozen=True)
class MLP:
    """Fully connected layers; theta holds, layer by layer, the matrix row by row (one row for each unit, its
    bias last). Activations: `relu` between layers, or after every layer `step` (1 for t >= 0, else 0) or
    `sign` (1 for t > 0, else -1)."""

    sizes: tuple[int, ...]
    activation: str = "relu"

    def __init__(self, sizes: Sequence[int], activation: str = "relu") -> None:
        if len(sizes) < 2 or min(sizes) < 1:
            raise InputError("a network has at least two sizes, each of at least 1", where=f"sizes {sizes}")
        if activation not in ("relu", "step", "sign"):
            raise InputError(f"there is no activation {activation!r}", advice="Choose relu, step or sign.")
        vars(self).update(sizes=tuple(sizes), activation=activation)

    @property
    def weights(self) -> int:
        """All entries of all matrices."""
        return sum(rows * (columns + 1) for columns, rows in pairwise(self.sizes))

    def __call__(self, theta: Value, x: Value) -> Value:
        used, build = 0, x.builder
        for layer, (columns, rows) in enumerate(pairwise(self.sizes), 1):
            places = used + np.arange(rows * (columns + 1)).reshape(rows, columns + 1)
            used += places.size
            matrix = build.node("transpose", build.take(theta, places[:, :-1]), order=(1, 0))
            x = x @ matrix + build.take(theta, places[:, -1])
            if self.activation == "step":
                x = 1 - (x < 0)
            elif self.activation == "sign":
                x = 2 * (x > 0) - 1
            elif layer < len(self.sizes) - 1:
                x = x.relu()
        return x

    def largest_output(self, largest_input: float, largest_weight: float) -> float:
        """Each layer multiplies by at most (fan-in + 1) times the largest weight."""
        if self.activation != "relu":
            return 1.0
        size = max(1.0, largest_input)
        for columns in self.sizes[:-1]:
            size = max(1.0, size * columns * largest_weight + largest_weight)
        return size


def linear(inputs: int, outputs: int = 1) -> MLP:
    """One layer, no activation: W x + b."""
    return MLP((inputs, outputs))


def perceptron(inputs: int, outputs: int = 1) -> MLP:
    """One layer of threshold units: 1 where w . x + b >= 0, else 0."""
    return MLP((inputs, outputs), "step")


@dataclass(frozen=True, eq=False)
class Answers:
    """What a learner answers: its circuit as a network, level by level, each gate a polynomial of its two
    operands. theta is what the learner remembers; numbers above 0 are 1, others 0; the answers are 1 and
    -1."""

    memory: int
    inputs: int
    gates: Int[np.ndarray, "gates 3"]
    """Table and operands: bit 2 a + b of the table is the value for operands a and b."""
    answer: int
    """The wire: theta, the inputs, the gates, in this order."""

    @classmethod
    def of(cls, circuit: Circuit, memory: int) -> Self:
        """From a circuit whose first inputs are what is remembered, and whose output is the answer."""
        gates = np.column_stack([circuit.kinds, circuit.left, circuit.right]).astype(np.int64)
        return cls(memory, len(circuit.inputs) - memory, gates, int(circuit.output_wires[0]))

    @property
    def weights(self) -> int:
        """One for every bit that is remembered."""
        return self.memory

    def __call__(self, theta: Value, x: Value) -> Value:
        build, given, gates = x.builder, self.memory + self.inputs, len(self.gates)
        wires = np.arange(given)
        values = build.value(np.zeros((x.sizes[0], given + gates)))
        values = build.put(values, x > 0, wires[self.memory :])
        values = build.put(values, theta > 0, wires[: self.memory])
        level = depths(given, np.arange(0, 2 * gates + 1, 2), self.gates[:, 1:].ravel())[given:]
        for depth in range(1, int(level.max(initial=0)) + 1):
            own = np.flatnonzero(level == depth)
            tables, *operands = self.gates[own].T
            a, b = (build.take(values, wires) for wires in operands)
            e = (tables >> np.arange(4)[:, None] & 1).astype(float)
            value = (1 - a) * (e[0] * (1 - b) + e[1] * b) + a * (e[2] * (1 - b) + e[3] * b)
            values = build.put(values, value, given + own)
        return 2 * build.take(values, [self.answer]) - 1

    def largest_output(self, largest_input: float, largest_weight: float) -> float:
        """Answers are signs."""
        return 1.0


@dataclass(frozen=True, eq=False)
class Connection(ABC):
    """The primary network with its weights read off the machine, and the data it is run on: x and z become
    bits by the network of appendix B; what shows the result becomes bits by a Heaviside step, and numbers by
    the network back. None of it is ever differentiated."""

    network: PrimaryNetwork
    data_format: NumberFormat
    weight_format: NumberFormat

    def bits(self, x: Value, z: Value) -> Value:
        """x, then z, row by row, in bits: a column of them."""
        counts = [math.prod(own.sizes) for own in (x, z)]
        columns = (own.reshape(2, count, 1) for own, count in zip((x, z), counts, strict=True))
        bits = self.data_format.quantise(x.builder.join(*columns, axis=-2))
        return bits.reshape(2, sum(counts) * self.data_format.width, 1)

    @abstractmethod
    def signs(self, weights: Trained) -> Value:
        """The bits of theta in a row: -1 is 0, +1 is 1."""

    def theta(self, weights: Trained) -> Value:
        """The weights of the primary network."""
        bits = (1 - (self.signs(weights) < 0)).reshape(1, self.network.weights, self.weight_format.width)
        return self.weight_format.dequantise(bits).reshape(2, self.network.weights)

    def output(self, x: Value, theta: Value) -> Value:
        """f_theta(x)."""
        return self.network(theta, x)


@dataclass(frozen=True, eq=False)
class OfVertices(Connection):
    """Where whole configurations are vertices: the data are a column of signs, which choose the first edge;
    the vertex shows the result."""

    results: Float[np.ndarray, "vertices bits"]

    def read_only_tapes(self, x: Value, z: Value) -> Value:
        """One row for each bit."""
        return 2 * self.bits(x, z) - 1

    def signs(self, weights: Trained) -> Value:
        """What lies on the result tape of the configuration that s stands at."""
        return weights.s @ self.results


@dataclass(frozen=True, eq=False)
class Connected(Connection):
    """Where tapes are weights: the data lie on the read-only tapes, the result on a tape. Cells are counted
    from the first of a tape."""

    blank_tapes: Float[np.ndarray, "given cells"]
    """The read-only tapes where every data bit is 0."""
    data_bits: Int[np.ndarray, " places"]
    """The bit that lies at each place of the data."""
    data_cells: Int[np.ndarray, " places"]
    data_changes: Float[np.ndarray, "given places"]
    """By how much the cell changes, on its tape, if the bit is 1."""
    result_cells: Int[np.ndarray, " bits"]
    result_signs: Float[np.ndarray, "written bits"]
    """What shows, on the tape of the bit, that it is 1."""

    @classmethod
    def of(
        cls,
        network: PrimaryNetwork,
        algorithm: Algorithm,
        data_format: NumberFormat,
        weight_format: NumberFormat,
        cells: int,
    ) -> Self:
        """Places of an algorithm, on tapes of this many cells with cell 0 in the middle."""
        first, given = -(cells // 2), algorithm.read_only
        blank = np.stack([tape_signs(algorithm.start, tape, first, cells) for tape in range(given)])
        bits, on, at, signs = algorithm.data.T
        changes = np.where(np.arange(given)[:, None] == on, 2.0 * signs, 0.0)
        on, ends, signs = algorithm.result.T
        written = np.arange(given, algorithm.machine.tapes)
        shown = np.where(written[:, None] == on, signs.astype(float), 0.0)
        return cls(network, data_format, weight_format, blank, bits, at - first, changes, ends - first, shown)

    @classmethod
    def read(
        cls, network: PrimaryNetwork, data_format: NumberFormat, weight_format: NumberFormat, whole: Network
    ) -> Self:
        """As an extended network has it."""
        blank, changes, shown = (whole.constant(n) for n in ("blank_tapes", "data_changes", "result_signs"))
        bits, at, ends = (whole.index(name) for name in ("data_bits", "data_cells", "result_cells"))
        return cls(network, data_format, weight_format, blank, bits, at, changes, ends, shown)

    def read_only_tapes(self, x: Value, z: Value) -> Value:
        """Each bit at its places."""
        build = x.builder
        bits = build.take(self.bits(x, z).transpose(), self.data_bits, "data_bits")
        changes = bits * build.constant(self.data_changes, "data_changes", "of the tapes, where a bit is 1")
        blank = build.constant(self.blank_tapes, "blank_tapes", "the tapes where all bits are 0")
        about = "the data on their tapes"
        return build.put(blank, changes, self.data_cells, "data_cells", about).transpose()

    def signs(self, weights: Trained) -> Value:
        """The cells of the result tape."""
        T = weights.T
        assert T is not None
        build = T.builder
        signs = build.constant(self.result_signs, "result_signs", "of a bit that is 1, on its tape")
        return (build.take(T.transpose(), self.result_cells, "result_cells") * signs).transpose().total()
