"""An encoding ties the contents of a cell to numbers and builds the filter that works on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.targets.rcnn.cells import Cells
from tapegrad.targets.rcnn.channels import SYMBOLS, ChannelFilter, cell_vectors, channel_filter
from tapegrad.targets.rcnn.clauses import Clause
from tapegrad.targets.rcnn.digits import cell_values
from tapegrad.targets.rcnn.ternary import TernaryFilter, ternary_filter

Filter = TernaryFilter | ChannelFilter
Grid = NDArray[Any]
"""Channels, rows, columns."""

ENCODINGS = ("ternary", "channels")
CLOSE = 1e-3
"""How far a number may be from the one it stands for: far above rounding, far below a slip."""


@dataclass(frozen=True)
class Encoding:
    """`ternary` is the paper's scalar network, `channels` the one with a channel for each fact."""

    name: str
    cells: Cells

    def __post_init__(self) -> None:
        if self.name not in ENCODINGS:
            raise InputError(
                f"there is no encoding {self.name!r}", advice=f"Choose {' or '.join(ENCODINGS)}."
            )

    def table(self) -> NDArray[Any]:
        """The numbers (one row) of each content of a cell."""
        return cell_values(self.cells)[:, None] if self.name == "ternary" else cell_vectors(self.cells)

    def encode(self, numbers: NDArray[np.int64]) -> Grid:
        """The grid whose cells have these contents."""
        return np.ascontiguousarray(np.moveaxis(self.table()[numbers], -1, 0))

    def decode(self, grid: Grid) -> NDArray[np.int64]:
        """The content that each cell is nearest to."""
        if self.name == "channels":
            return np.rint(np.tensordot(self.line(), grid, 1) + 2).astype(np.int64)
        possible = np.flatnonzero(self.cells.possible)
        values = cell_values(self.cells)[possible]
        order = np.argsort(values)
        middles = (values[order][1:] + values[order][:-1]) / 2
        return possible[order][np.searchsorted(middles, grid[0])]

    def line(self) -> NDArray[np.float64]:
        """Weights with which the numbers of a cell add up to one that tells all contents apart. In channels
        it is the content's own number less 2 (`Cells.number`; memorising is 1)."""
        if self.name == "ternary":
            return np.ones(1)
        cells = self.cells
        symbols = cells.modes * np.arange(1, cells.symbols)
        fixed = [cells.symbols * cells.modes, 1, -1, 0]
        assert len(fixed) == SYMBOLS
        return np.array([*fixed, *symbols, *range(1, cells.states + 1)], dtype=np.float64)

    def deviation(self, grid: Grid) -> float:
        """Largest distance of a number from the one it stands for."""
        numbers = np.clip(self.decode(grid), 0, self.cells.count - 1)
        return float(np.abs(np.asarray(grid) - self.encode(numbers)).max(initial=0.0))

    def filter(self, clauses: Sequence[Clause]) -> tuple[Filter, dict[str, list[str]]]:
        """The filter of these clauses, with the names of its units."""
        build = ternary_filter if self.name == "ternary" else channel_filter
        return build(self.cells, clauses)

    def filter_from(self, arrays: Mapping[str, NDArray[Any]]) -> Filter:
        """The filter again, from its arrays."""
        return (TernaryFilter if self.name == "ternary" else ChannelFilter).from_arrays(arrays)
