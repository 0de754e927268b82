"""Sparse maps of a net, as its folder holds them: rows of columns and values, with a bias.

Each column stands in a row once. Of two entries for it a net adds the values up, and who makes a dictionary
of them keeps one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import step_of
from tapegrad_check.fields import array
from tapegrad_check.folder import Arrays, require

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


def maps_of(arrays: Arrays, name: str) -> list[Map]:
    """All maps of a kind."""
    sizes = array(arrays, f"{name}.sizes", np.int64, (None, 3))
    require((sizes >= 0).all(), f"a size of {name} is negative")
    total, entries = int(sizes[:, 0].sum()), int(sizes[:, 2].sum())
    rows, columns = (array(arrays, f"{name}.{part}", np.int32, (entries,)) for part in ("rows", "columns"))
    values = array(arrays, f"{name}.values", np.float32, (entries,))
    bias = array(arrays, f"{name}.bias", np.float32, (total,))
    return list(_split(name, sizes.tolist(), rows, columns, values, bias))


def _split(name: str, sizes: list[Any], rows: Any, columns: Any, values: Any, bias: Any) -> Iterator[Map]:
    row = entry = 0
    for count, width, size in sizes:
        own, bounds = slice(entry, entry + size), slice(row, row + count)
        yield map_by_entries(name, rows[own], columns[own], values[own], bias[bounds], width)
        row, entry = row + count, entry + size


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
