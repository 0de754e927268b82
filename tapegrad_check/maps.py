"""Sparse maps of a net, as its folder holds them: rows of columns and values, with a bias."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

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
        own = slice(entry, entry + size)
        inside = ((rows[own] >= 0) & (rows[own] < count) & (columns[own] >= 0) & (columns[own] < width)).all()
        require(inside and (np.diff(rows[own]) >= 0).all(), f"an entry of {name} lies outside its map")
        require((values[own] != 0).all(), f"an entry of {name} is 0")
        starts = np.searchsorted(rows[own], np.arange(count + 1)).tolist()
        parts = columns[own].tolist(), values[own].tolist(), bias[row : row + count].tolist()
        yield Map(starts, *parts, width)
        row, entry = row + count, entry + size
