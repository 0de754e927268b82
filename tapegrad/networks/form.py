"""Layers as data: what a network is, apart from how it is evaluated.

An affine map is kept by its nonzero entries (`Affine`) or written out (`Matrix`); a `Dense` layer is a map
and an activation. All are pytrees; what is no array is static.
"""

import json
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray

from tapegrad._trees import static, tree

MOST_TERMS = 8
"""Terms of a formula that are written out."""

Key = tuple[str | int, ...]
"""A coordinate: its group, then which state, symbol or bit it stands for."""

if TYPE_CHECKING:
    from jax import Array

    Numbers = Array | np.ndarray
    Entries = np.ndarray
else:
    Numbers = Entries = Any
"""Weights are kept as NumPy arrays, or on the device; under a JAX transformation they are traced. Entries of
maps are read as NumPy arrays; only a JAX transformation puts tracers in their place."""


@tree
class Matrix:
    """`x -> A x + b`, written out."""

    weight: Float[Numbers, "*layers rows columns"]
    bias: Float[Numbers, "*layers rows"]

    @property
    def width(self) -> int:
        """How many inputs it reads."""
        return self.weight.shape[-1]

    def __len__(self) -> int:
        return self.bias.shape[-1]

    def dense(self) -> "Matrix":
        """Itself."""
        return self

    def fits(self) -> bool:
        """Whether it is a map at all: a row of weights for each bias."""
        weight, bias = np.asarray(self.weight), np.asarray(self.bias)
        return (
            weight.ndim == 2
            and bias.shape == weight.shape[:1]
            and weight.dtype.kind == bias.dtype.kind == "f"
        )

    def entries(self) -> "Affine":
        """The same by its entries."""
        return Affine.of(np.asarray(self.weight), np.asarray(self.bias))


@tree
class Affine:
    """`x -> A x + b` by row, column and value of every entry of A that is not 0, row by row: compiled maps
    have few entries among many places. Entries at the same place add up."""

    rows: Int[Entries, " entries"]
    columns: Int[Entries, " entries"]
    values: Float[Entries, " entries"]
    bias: Float[Entries, " rows"]
    width: int = static()

    @classmethod
    def of(cls, weight: NDArray[np.floating], bias: NDArray[np.floating]) -> Self:
        """From an ordinary matrix."""
        rows, columns = np.nonzero(weight)
        return cls(rows, columns, weight[rows, columns], np.asarray(bias), weight.shape[1])

    @classmethod
    def from_triples(
        cls,
        triples: Iterable[tuple[int, int, float]],
        shape: tuple[int, int],
        bias: NDArray[np.floating] | None = None,
    ) -> Self:
        """From rows, columns and values in any order, in double precision."""
        ordered = sorted(triples, key=lambda triple: triple[0])
        rows, columns, values = zip(*ordered, strict=True) if ordered else ((), (), ())
        return cls(
            np.array(rows, np.int64),
            np.array(columns, np.int64),
            np.array(values, np.float64),
            np.zeros(shape[0]) if bias is None else bias,
            shape[1],
        )

    def __len__(self) -> int:
        return len(self.bias)

    def entries(self) -> "Affine":
        """Itself."""
        return self

    def fits(self) -> bool:
        """Whether it is a map at all: as many rows as columns and values, in order, each within its bounds.
        Arrays that come from a file are asked this before anything is computed with them."""
        rows, columns, values, bias = (
            np.asarray(part) for part in (self.rows, self.columns, self.values, self.bias)
        )
        return (
            all(part.ndim == 1 for part in (rows, columns, values, bias))
            and all(part.dtype.kind == "i" for part in (rows, columns))
            and all(part.dtype.kind == "f" for part in (values, bias))
            and len(rows) == len(columns) == len(values)
            and bool(((rows >= 0) & (rows < len(bias))).all() and (rows[1:] >= rows[:-1]).all())
            and bool(((columns >= 0) & (columns < self.width)).all())
        )

    def dense(self) -> Matrix:
        """The same written out."""
        weight = np.zeros((len(self.bias), self.width), self.values.dtype)
        np.add.at(weight, (self.rows, self.columns), self.values)
        return Matrix(weight, self.bias)

    def row(self, number: int) -> Iterator[tuple[int, float]]:
        """The entries of a row: column and value."""
        first, last = np.searchsorted(self.rows, (number, number + 1))
        return zip(self.columns[first:last].tolist(), self.values[first:last].tolist(), strict=True)

    def by_row(self) -> list[tuple[list[int], list[float], float]]:
        """For each row columns and values of its entries, and its bias."""
        starts = np.searchsorted(self.rows, np.arange(len(self) + 1)).tolist()
        columns, values, bias = self.columns.tolist(), self.values.tolist(), self.bias.tolist()
        ends = zip(pairwise(starts), bias, strict=True)
        return [(columns[first:end], values[first:end], own) for (first, end), own in ends]

    def restricted(self, rows: Int[np.ndarray, " some"]) -> "Affine":
        """These rows (in rising order) alone."""
        kept = np.isin(self.rows, rows)
        places = np.searchsorted(rows, self.rows[kept])
        return Affine(places, self.columns[kept], self.values[kept], self.bias[rows], self.width)

    def between(self, rows: Int[np.ndarray, " some"], columns: Int[np.ndarray, " few"]) -> Matrix:
        """The map between these rows and columns (in rising order) alone, written out."""
        own = self.restricted(rows)
        kept = np.isin(own.columns, columns)
        weight = np.zeros((len(rows), len(columns)), own.values.dtype)
        np.add.at(weight, (own.rows[kept], np.searchsorted(columns, own.columns[kept])), own.values[kept])
        return Matrix(weight, own.bias)

    def reads(self) -> NDArray[np.bool_]:
        """For each row whether it has an entry."""
        return np.bincount(self.rows, minlength=len(self.bias)) > 0

    def largest(self) -> Float[np.ndarray, " rows"]:
        """For each row the sum of the magnitudes of its entries and of its bias: what bounds its value where
        inputs are in [-1, 1]."""
        return np.bincount(self.rows, np.abs(self.values), len(self.bias)) + np.abs(self.bias)


class Rows:
    """An affine map in the making: for each row its entries, its bias and the reason for it."""

    def __init__(self, count: int = 0) -> None:
        self.entries: list[dict[int, float]] = [{} for _ in range(count)]
        self.bias = [0.0] * count
        self.reasons = [""] * count

    def add(self, entries: Iterable[tuple[int, float]], bias: float = 0.0, reason: str = "") -> int:
        """One more row; its number is given back."""
        self.entries.append(_summed(entries))
        self.bias.append(bias)
        self.reasons.append(reason)
        return len(self.bias) - 1

    def set(
        self, row: int, entries: Iterable[tuple[int, float]], bias: float = 0.0, reason: str = ""
    ) -> None:
        """What a row is, whatever it was; weights of one column add up."""
        self.entries[row], self.bias[row], self.reasons[row] = _summed(entries), bias, reason

    def affine(self, width: int, dtype: type[np.floating] = np.float64) -> Affine:
        """The map on vectors of this width."""
        counts = [len(own) for own in self.entries]
        columns = [column for own in self.entries for column in own]
        values = [value for own in self.entries for value in own.values()]
        rows = np.repeat(np.arange(len(counts)), counts)
        return Affine(
            rows, np.array(columns, np.int64), np.array(values, dtype), np.array(self.bias, dtype), width
        )


def _summed(entries: Iterable[tuple[int, float]]) -> dict[int, float]:
    own: dict[int, float] = {}
    for column, weight in entries:
        own[column] = own.get(column, 0.0) + weight
    return own


@dataclass(frozen=True)
class Correction:
    """`gain (relu(z - low) - relu(z - high))` after a ReLU, with `gain = 1 / (high - low)`: everything within
    `min(low, 1 - high)` of a bit becomes that bit (Wei, Chen, Ma, Proposition 3.4)."""

    low: float
    high: float

    @property
    def gain(self) -> float:
        """The slope between the two kinks."""
        return 1 / (self.high - self.low)

    @property
    def radius(self) -> float:
        """How far from a bit a value may be."""
        return min(self.low, 1 - self.high)

    def layers(self, width: int, dtype: type[np.floating] = np.float32) -> "tuple[Dense, Dense]":
        """The same as two ReLU layers for vectors of this width: two copies of every coordinate, each minus a
        threshold, and the difference of the two times the gain."""
        return _corrected(self, width, dtype)


@lru_cache(maxsize=64)
def _corrected(own: Correction, width: int, dtype: type[np.floating]) -> "tuple[Dense, Dense]":
    one, zero = np.arange(width), np.zeros(width, dtype)
    gain = np.full(width, own.gain, dtype)
    thresholds = np.repeat(np.array([-own.low, -own.high], dtype), width)
    cuts = Affine(np.arange(2 * width), np.tile(one, 2), np.ones(2 * width, dtype), thresholds, width)
    sides = np.stack([one, one + width], axis=1).reshape(-1)
    signed = np.stack([gain, -gain], axis=1).reshape(-1)
    difference = Affine(np.repeat(one, 2), sides, signed, zero, 2 * width)
    return Dense(cuts, "relu"), Dense(difference, "relu")


Activation = Literal["linear", "relu"] | Correction


@tree
class Dense:
    """A map, and the activation of what it gives."""

    map: Affine | Matrix
    activation: Activation = static()

    def expanded(self) -> "tuple[Dense, ...]":
        """The same with ReLU layers in place of a correction."""
        if not isinstance(self.activation, Correction):
            return (self,)
        return Dense(self.map, "relu"), *self.activation.layers(len(self.map))


class Coordinates(ABC):
    """The named coordinates of a vector, in groups: a key is a group, then what in it is meant."""

    meanings: ClassVar[Mapping[str, str]]
    """What the coordinates of each group mean, with {} for the rest of the key."""

    @abstractmethod
    def keys(self) -> list[Key]:
        """The key of every coordinate, in order."""

    @cached_property
    def _index(self) -> dict[Key, int]:
        return {key: number for number, key in enumerate(self.keys())}

    @cached_property
    def _groups(self) -> Mapping[str | int, list[int]]:
        found: defaultdict[str | int, list[int]] = defaultdict(list)
        for key, number in self._index.items():
            found[key[0]].append(number)
        return found

    @property
    def width(self) -> int:
        """How many coordinates there are."""
        return len(self._index)

    def at(self, *key: str | int) -> int:
        """The number of a coordinate: `at("st", state)`, `at("pos2", bit)`, `at("start")`, ..."""
        return self._index[key]

    def group(self, *names: str) -> list[int]:
        """All coordinates of these groups, in order."""
        return sorted(number for name in names for number in self._groups[name])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of every coordinate, in order: no two alike, whatever the parts of keys are called."""
        return tuple(
            f"{group}[{','.join(map(_quoted, rest))}]" if rest else str(group) for group, *rest in self._index
        )

    def meaning(self, coordinate: int) -> str:
        """A coordinate in words."""
        group, *rest = list(self._index)[coordinate]
        return self.meanings[str(group)].format(" and ".join(map(str, rest)))


def _quoted(part: str | int) -> str:
    text = str(part)
    return json.dumps(text) if set(text) & set(',[]":') else text


def formula(terms: Iterable[tuple[str, float]], bias: float) -> str:
    """`x[3] + 2 x[5] - 1` for the names and weights of a row's inputs; long sums are cut short."""
    terms = list(terms)
    parts = [_term(weight, name) for name, weight in terms]
    if bias or not terms:
        parts.append(f"{'-' if bias < 0 else '+'} {abs(bias):.9g}")
    if len(parts) > MOST_TERMS:
        parts = [*parts[: MOST_TERMS - 1], f"+ ... ({len(parts)} terms)"]
    text = " ".join(parts)
    return text.removeprefix("+ ") if text.startswith("+") else text.replace("- ", "-", 1)


def _term(weight: float, name: str) -> str:
    size = "" if abs(weight) == 1 else f"{abs(weight):g} "
    return f"{'-' if weight < 0 else '+'} {size}{name}"
