"""Sparse maps of a net, as its graph holds them: rows of columns and values, with a bias.

Each column stands in a row once. Of two entries for it a net adds the values up, and who makes a dictionary
of them keeps one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import step_of
from tapegrad_check.folder import require

Row = tuple[list[int], list[float], float]
"""Columns, values and bias."""


@dataclass(frozen=True)
class Map:
    """A sparse map."""

    starts: list[int]
    columns: list[int]
    values: list[float]
    bias: list[float]
    width: int

    def __len__(self) -> int:
        return len(self.bias)

    def row(self, row: int) -> Row:
        """One row."""
        own = slice(self.starts[row], self.starts[row + 1])
        return self.columns[own], self.values[own], self.bias[row]

    def rows(self, first: int, last: int) -> "Map":
        """These rows alone."""
        begin, end = self.starts[first], self.starts[last]
        starts = [start - begin for start in self.starts[first : last + 1]]
        return Map(starts, self.columns[begin:end], self.values[begin:end], self.bias[first:last], self.width)

    def totals(self, most: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each row the sum of the magnitudes of its terms, where columns are at most so large."""
        terms = np.abs(self.values) * most[self.columns]
        return np.bincount(self._rows, terms, len(self)).astype(np.float64)

    def steps(self) -> NDArray[np.float64]:
        """For each row a power of two that its values and its bias are multiples of."""
        found = step_of(np.array(self.bias)[:, None], axis=1)
        np.minimum.at(found, self._rows, step_of(np.array(self.values)[:, None], axis=1))
        return found

    @property
    def _rows(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self)), np.diff(self.starts))


def row_of(own: Map, row: int) -> tuple[dict[int, float], float]:
    """One row: values by column, and the bias."""
    columns, values, bias = own.row(row)
    return dict(zip(columns, values, strict=True)), bias


def map_of(arrays: Mapping[str, NDArray[Any]], width: int, name: str) -> Map:
    """The map of a node of the graph."""
    rows, columns, values, bias = (arrays[part] for part in ("rows", "columns", "values", "bias"))
    require(values.dtype == np.float32, f"{name} are not of single precision")
    return map_by_entries(name, rows, columns, values, bias, width)


def map_by_entries(
    name: str,
    rows: NDArray[Any],
    columns: NDArray[Any],
    values: NDArray[Any],
    bias: NDArray[Any],
    width: int,
) -> Map:
    """The map with these entries, row by row."""
    inside = ((rows >= 0) & (rows < len(bias)) & (columns >= 0) & (columns < width)).all()
    require(inside and (np.diff(rows) >= 0).all(), f"an entry of {name} lies outside its map")
    places = rows * np.int64(width) + columns
    require(len(np.unique(places)) == len(rows), f"{name} has two entries at one place")
    require((values != 0).all(), f"an entry of {name} is 0")
    starts = np.searchsorted(rows, np.arange(len(bias) + 1)).tolist()
    return Map(starts, columns.tolist(), values.tolist(), bias.tolist(), width)
