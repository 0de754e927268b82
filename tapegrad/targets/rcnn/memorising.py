"""The part of a network that can be active while it memorises: the same few units, however many states.

Used by the engine `fast` for training. A unit of the last ReLU layer adds up one number for each cell of
its patch. If the largest such sum over the contents that occur while memorising is below 0, the unit is
0 and so is its gradient, and leaving it out changes nothing. A channel, or a digit, that no unit is left
to write is 0 as well. So all learners have parts of one shape, and are trained by one compiled program.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad.targets.rcnn.cells import MEMORY, OUTSIDE, UNKNOWN, Cells
from tapegrad.targets.rcnn.channels import SYMBOLS, ChannelFilter
from tapegrad.targets.rcnn.encoding import Encoding
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.ternary import RELU_AFTER, TernaryFilter

MARGIN = 0.1
"""How far below its threshold a unit must stay to be left out; rounding is far smaller."""
CROSS = (1, 3, 4, 5, 7)
"""The cells of a patch that are read: the centre and its four neighbours."""


class MemorisingFilter(eqx.Module):
    """Maps of the numbers of the cross to the new numbers of its centre, written out as matrices."""

    matrices: tuple[NDArray[Any], ...]
    biases: tuple[NDArray[Any], ...]
    relu: tuple[bool, ...] = eqx.field(static=True)
    channels: int = eqx.field(static=True)
    padding: float = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)

    def __call__(self, grid: jax.Array) -> jax.Array:
        """One layer on the whole grid."""
        rows, columns = grid.shape[1:]
        padded = jnp.pad(grid, ((0, 0), (1, 1), (1, 1)), constant_values=self.padding)
        cells = [padded[:, k // 3 : k // 3 + rows, k % 3 : k % 3 + columns] for k in CROSS]
        x = jnp.concatenate(cells).reshape(-1, rows * columns)
        for matrix, bias, relu in zip(self.matrices, self.biases, self.relu, strict=True):
            x = jnp.matmul(matrix, x, precision="highest") + bias[:, None]
            x = jax.nn.relu(x) if relu else x
        return x.reshape(grid.shape)


def contents_while_memorising(cells: Cells) -> NDArray[np.int64]:
    """Outside, memorising, empty, written with + or -, and the frame."""
    written = [cells.number(False, symbol, UNKNOWN) for symbol in range(min(cells.symbols, 3))]
    return np.array([OUTSIDE, MEMORY, *written, cells.number(True, 0, UNKNOWN)])


def memorising_part(network: Rcnn) -> Rcnn:
    """The network without the units, channels and digits that stay 0 while it memorises; it has the encoding
    of a machine with one state, and no names. The message needs a layer for each row; then the grid is at
    rest, and one more layer sorts out which parts of a gradient pass for ever."""
    encoding = network.encoding
    table = encoding.table()[contents_while_memorising(encoding.cells)].astype(np.float64)
    if isinstance(network.filter, ChannelFilter):
        built = _of_channels(network.filter, table)
    else:
        built = _of_ternary(network.filter, table[:, 0])
    part = Encoding(encoding.name, Cells(3, 1))
    layers = min(network.layers, network.rows + 2)
    return replace(network, filter=built, encoding=part, layers=layers, states=(), symbols=())


def _of_channels(filter: ChannelFilter, table: NDArray[np.float64]) -> MemorisingFilter:
    kernel = np.asarray(filter.kernel).reshape(len(filter.bias), -1, 9)[:, :, CROSS]
    largest = np.einsum("uck,nc->ukn", kernel, table).max(axis=2).sum(axis=1)
    units = np.flatnonzero(largest + filter.bias > -MARGIN)
    first = np.arange(len(filter.mix)) < SYMBOLS + 2  # those that the memory layer sets
    channels = np.flatnonzero(first | filter.mix[:, units].any(axis=1))
    by_cell = np.swapaxes(kernel[np.ix_(units, channels)], 1, 2).reshape(len(units), -1)
    mix = filter.mix[np.ix_(channels, units)]
    biases = np.asarray(filter.bias)[units], np.zeros(len(channels), mix.dtype)
    return MemorisingFilter(
        (by_cell, mix), biases, (True, False), len(channels), filter.padding, filter.dtype
    )


def _of_ternary(filter: TernaryFilter, values: NDArray[np.float64]) -> MemorisingFilter:
    first, second, third, fourth, _ = filter.maps
    active = np.maximum(values[None, :] + first.bias[:, None], 0)  # every unit reads one cell with weight 1
    answers = np.repeat(second.bias[:, None], len(values), axis=1)
    np.add.at(answers, second.rows, second.values[:, None] * active[second.columns])
    cell = np.zeros(len(second.bias), dtype=np.int64)
    cell[second.rows] = first.columns[second.columns]
    seen = np.zeros((9, len(third.bias), len(values)))
    np.add.at(seen, (cell[third.columns], third.rows), third.values[:, None] * answers[third.columns])
    units = np.flatnonzero(seen.max(axis=2).sum(axis=0) + third.bias > -MARGIN)
    asked = np.unique(third.columns[np.isin(third.rows, units)])
    relus = np.unique(second.columns[np.isin(second.rows, asked)])
    digits = np.unique(fourth.rows[np.isin(fourth.columns, units)])
    kept: Sequence[NDArray[np.int64]] = (np.array(CROSS), relus, asked, units, digits, np.arange(1))
    matrices = [
        m.between(rows, columns) for m, rows, columns in zip(filter.maps, kept[1:], kept[:-1], strict=True)
    ]
    biases = [m.bias[rows] for m, rows in zip(filter.maps, kept[1:], strict=True)]
    return MemorisingFilter(tuple(matrices), tuple(biases), RELU_AFTER, 1, filter.padding, filter.dtype)
