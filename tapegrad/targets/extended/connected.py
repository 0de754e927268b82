"""The two hidden layers between data, machine and primary network: read-only tapes and theta."""

from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from tapegrad.targets.descent.network import Weights
from tapegrad.targets.descent.numbers import Numbers
from tapegrad.targets.extended.formats import NumberFormat
from tapegrad.targets.extended.lowered import Algorithm, tape_signs
from tapegrad.targets.extended.primaries import PrimaryNetwork


class Connected(eqx.Module):
    """The primary network with its weights read off the result tape, and the data tapes it fills. x and z
    become bits by the network of appendix B and lie on the read-only tapes; the cells of the result tape
    become bits by a Heaviside step, and numbers by the network back. None of it is ever differentiated."""

    network: PrimaryNetwork
    data_format: NumberFormat
    weight_format: NumberFormat
    blank_tapes: Numbers
    """The read-only tapes where every data bit is 0."""
    data_row: Numbers
    data_column: Numbers
    data_bit: Numbers
    data_change: Numbers
    """By how much the cell at this row and column changes if the bit is 1."""
    result_row: Numbers
    result_column: Numbers
    result_sign: Numbers

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

    def read_only_tapes(self, x: Numbers, z: Numbers) -> Array:
        """x, then z, row by row, in bits, each at its place."""
        numbers = jnp.concatenate([jnp.ravel(x), jnp.ravel(z)])
        bits = jnp.ravel(self.data_format.quantise(numbers))
        changes = self.data_change * bits[self.data_bit]
        return jnp.asarray(self.blank_tapes).at[self.data_row, self.data_column].add(changes)

    def theta(self, weights: Weights) -> Array:
        """The weights of the primary network, from the cells of the result tape."""
        signs = self.result_sign * jnp.asarray(weights.T)[self.result_row, self.result_column]
        bits = jnp.where(signs >= 0, 1.0, 0.0).reshape(-1, self.weight_format.width)
        return self.weight_format.dequantise(bits)

    def output(self, x: Numbers, weights: Weights) -> Array:
        """f_theta(x)."""
        return self.network(self.theta(weights), x)
