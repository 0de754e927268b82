"""The part of a filter that can be active while the network memorises: few units, however many states.

Used by the engine `fast` for training. A unit of the last ReLU layer adds up one number for each cell of
its patch. If the largest such sum over the contents that occur while memorising is below 0, the unit is
0 and so is its gradient, and leaving it out changes nothing.
"""

import numpy as np
from numpy.typing import NDArray

from tapegrad.nets.rcnn.cells import MEMORY, OUTSIDE, UNKNOWN, Cells
from tapegrad.nets.rcnn.channels import ChannelFilter
from tapegrad.nets.rcnn.encoding import Encoding, Filter
from tapegrad.nets.rcnn.sparse import Affine
from tapegrad.nets.rcnn.ternary import TernaryFilter

MARGIN = 0.1
"""How far below its threshold a unit must stay to be left out; rounding is far smaller."""


def contents_while_memorising(cells: Cells) -> NDArray[np.int64]:
    """Outside, memorising, empty, written with + or -, and the frame."""
    written = [cells.number(False, symbol, UNKNOWN) for symbol in range(min(cells.symbols, 3))]
    return np.array([OUTSIDE, MEMORY, *written, cells.number(True, 0, UNKNOWN)])


def memorising_part(filter: Filter, encoding: Encoding) -> Filter:
    """The filter without the units that cannot be active; `rule_units` is left empty."""
    table = encoding.table()[contents_while_memorising(encoding.cells)].astype(np.float64)
    if isinstance(filter, ChannelFilter):
        return _of_channels(filter, table)
    return _of_ternary(filter, table[:, 0])


def _of_channels(filter: ChannelFilter, table: NDArray[np.float64]) -> ChannelFilter:
    kernel = np.asarray(filter.kernel, dtype=np.float64)
    largest = np.einsum("ucrs,nc->ursn", kernel, table).max(axis=3).sum(axis=(1, 2))
    kept = largest + filter.bias > -MARGIN
    none = np.zeros(0, dtype=np.int64)
    return ChannelFilter(filter.kernel[kept], filter.bias[kept], filter.mix[:, kept], none)


def _of_ternary(filter: TernaryFilter, values: NDArray[np.float64]) -> TernaryFilter:
    first, second, third, fourth, fifth = filter.maps
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
    maps = (
        _part(first, relus, np.arange(9)),
        _part(second, asked, relus),
        _part(third, units, asked),
        _part(fourth, np.arange(len(fourth.bias)), units),
        fifth,
    )
    return TernaryFilter(maps, np.zeros(0, dtype=np.int64))


def _part(affine: Affine, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Affine:
    """The map between these rows and columns alone."""
    kept = np.isin(affine.rows, rows) & np.isin(affine.columns, columns)
    return Affine(
        np.searchsorted(rows, affine.rows[kept]),
        np.searchsorted(columns, affine.columns[kept]),
        affine.values[kept],
        affine.bias[rows],
        len(columns),
    )
