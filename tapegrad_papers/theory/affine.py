"""Affine maps as the bounds see them: a few norms of their own matrices, each an upper bound."""

import math
from functools import cached_property

import numpy as np
from jaxtyping import Float

from tapegrad.networks import form


class Affine(form.Affine):
    """`x -> W x + b` in double precision. Only entries that are not 0 count: padding costs nothing."""

    @classmethod
    def measured(cls, own: form.Affine | form.Matrix) -> "Affine":
        """The map of a net."""
        own = own.entries()
        return cls(own.rows, own.columns, own.values.astype(float), own.bias.astype(float), own.width)

    @cached_property
    def norm(self) -> float:
        """At least the operator norm of W: `|W|^2 <= (largest row sum) (largest column sum)` (Schur)."""
        if not len(self.values):
            return 0.0
        sizes = np.abs(self.values)
        return math.sqrt(np.bincount(self.rows, sizes).max() * np.bincount(self.columns, sizes).max())

    @cached_property
    def row_norms(self) -> Float[np.ndarray, " rows"]:
        """The 2-norm of every row of W."""
        return np.sqrt(np.bincount(self.rows, self.values**2, len(self.bias)))

    @property
    def largest_row(self) -> float:
        """How much one entry of the result can change when x changes by 1."""
        return float(self.row_norms.max(initial=0))

    @cached_property
    def on_bits(self) -> float:
        """At least the norm of `W x + b` for every x of bits."""
        up = np.bincount(self.rows, np.maximum(self.values, 0), len(self.bias)) + self.bias
        down = np.bincount(self.rows, np.minimum(self.values, 0), len(self.bias)) + self.bias
        return float(np.linalg.norm(np.maximum(np.abs(up), np.abs(down))))

    @cached_property
    def relu_on_bits(self) -> float:
        """At least the norm of `relu(W x + b)` for every x of bits."""
        up = np.bincount(self.rows, np.maximum(self.values, 0), len(self.bias)) + self.bias
        return float(np.linalg.norm(np.maximum(up, 0)))

    @property
    def size(self) -> float:
        """The sum of the absolute values of all entries: the 1-norm that Theorems 3.1 and 4.1 bound."""
        return float(np.abs(self.values).sum() + np.abs(self.bias).sum())


def with_one(norm: float) -> float:
    """The norm of (h, 1). Noise of 2-norm s in (W, b) moves `W h + b` by at most `s * with_one(|h|)`."""
    return math.hypot(norm, 1)
