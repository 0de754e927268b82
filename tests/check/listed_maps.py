"""Maps of a kind as a few arrays, one map after the other: a form in which tests alter rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.networks.form import Affine
from tapegrad_check.maps import Map, map_by_entries

Arrays = dict[str, NDArray[Any]]

SIDES = ("query", "key", "value")


def entries(name: str, maps: Sequence[Affine]) -> Arrays:
    """Maps of a kind as arrays."""
    sizes = [(len(own), own.width, len(own.values)) for own in maps]
    return {
        f"{name}.sizes": np.array(sizes, np.int64).reshape(-1, 3),
        f"{name}.rows": joined([own.rows for own in maps], np.int32),
        f"{name}.columns": joined([own.columns for own in maps], np.int32),
        f"{name}.values": joined([own.values for own in maps], np.float32),
        f"{name}.bias": joined([own.bias for own in maps], np.float32),
    }


def maps_of(arrays: Mapping[str, NDArray[Any]], name: str) -> list[Map]:
    """All maps of a kind."""
    row = entry = 0
    found = []
    for count, width, size in arrays[f"{name}.sizes"].tolist():
        rows, columns, values = (
            arrays[f"{name}.{part}"][entry : entry + size] for part in ("rows", "columns", "values")
        )
        bias = arrays[f"{name}.bias"][row : row + count]
        found.append(map_by_entries(name, rows, columns, values, bias, width))
        row, entry = row + count, entry + size
    return found


def joined(arrays: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    """One after the other."""
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype)
