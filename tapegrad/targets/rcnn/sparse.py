"""Affine maps kept as their nonzero weights: the filter's maps have O(s) of them among O(s^2) places."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray


class Affine(eqx.Module):
    """`x -> A x + b` on the columns of x; row, column and value of every nonzero weight, row by row."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    bias: NDArray[np.float64]
    width: int = eqx.field(static=True)

    def __call__(self, x: jax.Array) -> jax.Array:
        terms = jnp.asarray(self.values)[:, None] * x[self.columns]
        count = len(self.bias)
        sums = jax.ops.segment_sum(terms, self.rows, count, indices_are_sorted=True)
        return sums + jnp.asarray(self.bias)[:, None]

    @classmethod
    def from_triples(
        cls,
        triples: Sequence[tuple[int, int, float]],
        shape: tuple[int, int],
        bias: NDArray[np.float64] | None = None,
    ) -> "Affine":
        ordered = sorted(triples, key=lambda triple: triple[0])
        rows = np.array([r for r, _, _ in ordered], dtype=np.int64)
        columns = np.array([c for _, c, _ in ordered], dtype=np.int64)
        values = np.array([v for _, _, v in ordered], dtype=np.float64)
        return cls(rows, columns, values, np.zeros(shape[0]) if bias is None else bias, shape[1])

    def dense(self) -> NDArray[np.float64]:
        """The matrix, with the bias as last column."""
        matrix = np.zeros((len(self.bias), self.width + 1))
        np.add.at(matrix, (self.rows, self.columns), self.values)
        matrix[:, -1] = self.bias
        return matrix

    def between(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """The matrix between these rows and columns (in order) alone."""
        kept = np.isin(self.rows, rows) & np.isin(self.columns, columns)
        matrix = np.zeros((len(rows), len(columns)))
        at = np.searchsorted(rows, self.rows[kept]), np.searchsorted(columns, self.columns[kept])
        np.add.at(matrix, at, self.values[kept])
        return matrix

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        parts = {"rows": self.rows, "columns": self.columns, "values": self.values, "bias": self.bias}
        width = np.array([self.width])
        return {f"{name}.{part}": np.asarray(array) for part, array in parts.items()} | {
            f"{name}.width": width
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], name: str) -> "Affine":
        parts = [np.asarray(arrays[f"{name}.{part}"]) for part in ("rows", "columns", "values", "bias")]
        return cls(*parts, width=int(arrays[f"{name}.width"][0]))
