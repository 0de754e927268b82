"""Single values of a saved net, each read with its type and its range: text, numbers, arrays."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import Arrays, require


def text(value: Any, what: str) -> str:
    """A string."""
    require(isinstance(value, str), f"{what} is not text")
    return value


def texts(value: Any, what: str) -> tuple[str, ...]:
    """A list of different strings."""
    require(isinstance(value, list) and all(isinstance(one, str) for one in value), f"{what} are not texts")
    require(len(set(value)) == len(value), f"two of {what} are the same")
    return tuple(value)


def whole(value: Any, what: str, least: int = 0, most: int = 1 << 62) -> int:
    """A whole number in this range; true and false are none."""
    require(type(value) is int and least <= value <= most, f"{what} is not a whole number in its range")
    return value


def number(value: Any, what: str) -> float:
    """A finite number, as JSON has it."""
    fits = type(value) is float or (type(value) is int and abs(value) < 1 << 1000)
    require(fits and math.isfinite(value), f"{what} is not a finite number")
    return float(value)


def array(arrays: Arrays, name: str, dtype: Any, shape: Sequence[int | None]) -> NDArray[Any]:
    """An array of this type and shape; None stands for any length."""
    require(name in arrays, f"the array {name!r} is missing")
    found = arrays[name]
    require(found.dtype == np.dtype(dtype), f"the array {name!r} is not of type {np.dtype(dtype)}")
    fits = found.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, found.shape, strict=True))
    require(fits, f"the array {name!r} has another shape than it should")
    return found
