"""Primary networks: f_theta as a function of all its weights in one row; and the two hidden layers between
data, machine and primary network, which fill the read-only tapes and find theta."""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from tapegrad.circuits.model import Circuit
from tapegrad.errors import InputError
from tapegrad.targets.descent.loss import Arrays, Weights
from tapegrad.targets.extended.build import Algorithm, tape_signs
from tapegrad.targets.extended.formats import NumberFormat


class PrimaryNetwork(Protocol):
    """Any function of theta and a batch of inputs, that says how many weights it takes and how large its
    outputs can become (the stopping bound must lie above its loss)."""

    @property
    def weights(self) -> int:
        """Length of theta."""
        ...

    def __call__(
        self, theta: Float[Arrays, " weights"], x: Float[Arrays, "samples inputs"]
    ) -> Float[Array, "samples outputs"]:
        """One row of outputs for each row of inputs."""
        ...

    def largest_output(self, largest_input: float, largest_weight: float) -> float:
        """A bound of |f_theta(x)| for all inputs and weights up to these sizes."""
        ...


class MLP(eqx.Module):
    """Fully connected layers; theta holds, layer by layer, the matrix row by row (one row for each unit, its
    bias last). Activations: `relu` between layers, or after every layer `step` (1 for t >= 0, else 0) or
    `sign` (1 for t > 0, else -1)."""

    sizes: tuple[int, ...] = eqx.field(static=True)
    activation: str = eqx.field(static=True, default="relu")

    def __init__(self, sizes: Sequence[int], activation: str = "relu") -> None:
        if len(sizes) < 2 or min(sizes) < 1:
            raise InputError("a network has at least two sizes, each of at least 1", where=f"sizes {sizes}")
        if activation not in ("relu", "step", "sign"):
            raise InputError(f"there is no activation {activation!r}", advice="Choose relu, step or sign.")
        self.sizes, self.activation = tuple(sizes), activation

    @property
    def weights(self) -> int:
        """All entries of all matrices."""
        return sum(rows * (columns + 1) for columns, rows in pairwise(self.sizes))

    def __call__(
        self, theta: Float[Arrays, " weights"], x: Float[Arrays, "samples inputs"]
    ) -> Float[Array, "samples outputs"]:
        used = 0
        for layer, (columns, rows) in enumerate(pairwise(self.sizes), 1):
            matrix = theta[used : used + rows * (columns + 1)].reshape(rows, columns + 1)
            used += matrix.size
            x = x @ matrix[:, :-1].T + matrix[:, -1]
            if self.activation == "step":
                x = jnp.where(x >= 0, 1.0, 0.0)
            elif self.activation == "sign":
                x = jnp.where(x > 0, 1.0, -1.0)
            elif layer < len(self.sizes) - 1:
                x = jax.nn.relu(x)
        return jnp.asarray(x)

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


class Answers(eqx.Module):
    """What a learner answers: its circuit as a network, gate by gate, each a polynomial of its two operands.
    theta is what the learner remembers; numbers above 0 are 1, others 0; the answers are 1 and -1."""

    memory: int = eqx.field(static=True)
    inputs: int = eqx.field(static=True)
    tables: Int[Arrays, " gates"]
    """Bit 2 a + b of a gate's table is its value for operands a and b."""
    left: Int[Arrays, " gates"]
    right: Int[Arrays, " gates"]
    answer: Int[Arrays, ""]
    """The wire: theta, the inputs, the gates, in this order."""

    @classmethod
    def of(cls, circuit: Circuit, memory: int) -> Self:
        """From a circuit whose first inputs are what is remembered, and whose output is the answer."""
        tables, left, right = (np.array(a, np.int64) for a in (circuit.kinds, circuit.left, circuit.right))
        return cls(
            memory, len(circuit.inputs) - memory, tables, left, right, np.array(circuit.output_wires[0])
        )

    @property
    def weights(self) -> int:
        """One for every bit that is remembered."""
        return self.memory

    def __call__(
        self, theta: Float[Arrays, " weights"], x: Float[Arrays, "samples inputs"]
    ) -> Float[Array, "samples outputs"]:
        samples, gates = x.shape[0], self.tables.shape[0]
        given = jnp.concatenate([jnp.broadcast_to(jnp.asarray(theta)[:, None], (self.memory, samples)), x.T])
        values = jnp.concatenate([jnp.where(given > 0, 1.0, 0.0), jnp.zeros((gates, samples))])
        tables, left, right = (jnp.asarray(array) for array in (self.tables, self.left, self.right))
        first = self.memory + self.inputs

        def gate(number: Array, values: Array) -> Array:
            a, b = values[left[number]], values[right[number]]
            entry = (tables[number] >> jnp.arange(4) & 1).astype(float)
            value = (1 - a) * (entry[0] * (1 - b) + entry[1] * b) + a * (entry[2] * (1 - b) + entry[3] * b)
            return values.at[first + number].set(value)

        values = jax.lax.fori_loop(0, gates, gate, values)
        return 2 * values[jnp.asarray(self.answer)][:, None] - 1

    def largest_output(self, largest_input: float, largest_weight: float) -> float:
        """Answers are signs."""
        return 1.0


class Connection(eqx.Module):
    """The primary network with its weights read off the machine, and the data it is run on: x and z become
    bits by the network of appendix B; what shows the result becomes bits by a Heaviside step, and numbers by
    the network back. None of it is ever differentiated."""

    network: PrimaryNetwork
    data_format: NumberFormat
    weight_format: NumberFormat

    def data_bits(
        self, x: Float[Arrays, "samples inputs"], z: Float[Arrays, "samples outputs"]
    ) -> Float[Array, " bits"]:
        """x, then z, row by row, in bits."""
        return jnp.ravel(self.data_format.quantise(jnp.concatenate([jnp.ravel(x), jnp.ravel(z)])))

    @abstractmethod
    def result_signs(self, weights: Weights) -> Float[Array, " bits"]:
        """The bits of theta: -1 is 0, +1 is 1."""

    def theta(self, weights: Weights) -> Float[Array, " weights"]:
        """The weights of the primary network."""
        bits = jnp.where(self.result_signs(weights) >= 0, 1.0, 0.0).reshape(-1, self.weight_format.width)
        return self.weight_format.dequantise(bits)

    def output(self, x: Float[Arrays, "samples inputs"], weights: Weights) -> Float[Array, "samples outputs"]:
        """f_theta(x)."""
        return self.network(self.theta(weights), x)


class OfVertices(Connection):
    """Where whole configurations are vertices: the data are a column of signs, which choose the first edge;
    the vertex shows the result."""

    results: Float[Arrays, "vertices bits"]

    def read_only_tapes(
        self, x: Float[Arrays, "samples inputs"], z: Float[Arrays, "samples outputs"]
    ) -> Float[Array, "bits one"]:
        """One row for each bit."""
        return 2 * self.data_bits(x, z)[:, None] - 1

    def result_signs(self, weights: Weights) -> Float[Array, " bits"]:
        """What lies on the result tape of the configuration that s stands at."""
        return jnp.asarray(weights.s) @ self.results


class Connected(Connection):
    """Where tapes are weights: the data lie on the read-only tapes, the result on a tape."""

    blank_tapes: Float[Arrays, "cells given"]
    """The read-only tapes where every data bit is 0."""
    data_row: Int[Arrays, " places"]
    data_column: Int[Arrays, " places"]
    data_bit: Int[Arrays, " places"]
    data_change: Float[Arrays, " places"]
    """By how much the cell at this row and column changes if the bit is 1."""
    result_row: Int[Arrays, " bits"]
    result_column: Int[Arrays, " bits"]
    result_sign: Float[Arrays, " bits"]

    @classmethod
    def of(
        cls,
        network: PrimaryNetwork,
        algorithm: Algorithm,
        data_format: NumberFormat,
        weight_format: NumberFormat,
        cells: int,
    ) -> Self:
        """Tables of places, for tapes of this many cells with cell 0 in the middle."""
        first = -(cells // 2)
        tapes = [tape_signs(algorithm.start, tape, first, cells) for tape in range(algorithm.read_only)]
        data = [
            (cell - first, tape, bit, 2 * sign)
            for bit, places in enumerate(algorithm.data)
            for (tape, cell), sign in places
        ]
        result = [(cell - first, tape - algorithm.read_only, sign) for (tape, cell), sign in algorithm.result]
        rows, columns, bits, changes = (np.array(column) for column in zip(*data, strict=True))
        result_rows, result_columns, signs = (np.array(column) for column in zip(*result, strict=True))
        return cls(
            network,
            data_format,
            weight_format,
            blank_tapes=np.stack(tapes, axis=1),
            data_row=rows,
            data_column=columns,
            data_bit=bits,
            data_change=changes.astype(float),
            result_row=result_rows,
            result_column=result_columns,
            result_sign=signs.astype(float),
        )

    def read_only_tapes(
        self, x: Float[Arrays, "samples inputs"], z: Float[Arrays, "samples outputs"]
    ) -> Float[Array, "cells given"]:
        """Each bit at its places."""
        changes = self.data_change * self.data_bits(x, z)[self.data_bit]
        return jnp.asarray(self.blank_tapes).at[self.data_row, self.data_column].add(changes)

    def result_signs(self, weights: Weights) -> Float[Array, " bits"]:
        """The cells of the result tape."""
        return jnp.asarray(self.result_sign) * jnp.asarray(weights.T)[self.result_row, self.result_column]
