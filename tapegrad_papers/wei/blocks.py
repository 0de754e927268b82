"""The layers of a net as Theorem D.6 sees them: blocks f_i that compute, and corrections between them.

Condition D.3 asks that f_i be nice (Definition D.2). The second line of D.2 compares `f(h, t)` with
`f(h', t)` for *perturbed* parameters t, and there hard-max attention is not Lipschitz: keys that tie
have equal values only for the unperturbed ones, so the winner, and with it the value, can jump. Lemma D.8
only uses the sum of both lines, and that does hold. For `|t - theta| <= s` and `|h' - h| <= d`,

    |f(h', t) - f(h, theta)|  <=  noise(s) |t - theta| + gain(s) d        as long as d <= reach(s)

and this is what a block states, for all outputs together (2-norm), and for any one of them (`entry_...`).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from jaxtyping import Float

from tapegrad.networks import form

# Affine maps as the bounds see them: a few norms of their own matrices, each an upper bound.


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


class Block(Protocol):
    """One function f_i of appendix D with its parameters."""

    @property
    def purpose(self) -> str:
        """What it computes, for people."""
        ...

    @property
    def input_norm(self) -> float:
        """No hidden vector that it reads has a larger norm."""
        ...

    @property
    def inner_norm(self) -> float:
        """No hidden vector that it reads, or makes on the way, has a larger norm."""
        ...

    def noise(self, s: float) -> float:
        """Error for each unit of noise in the parameters."""
        ...

    def gain(self, s: float) -> float:
        """Error for each unit of error in the hidden vectors that come in."""
        ...

    def entry_noise(self, s: float) -> float:
        """As `noise`, for one entry of the output."""
        ...

    def entry_gain(self, s: float) -> float:
        """As `gain`, for one entry of the output."""
        ...

    def reach(self, s: float) -> float:
        """sigma_h: the largest error of incoming vectors for which all this holds."""
        ...


@dataclass(frozen=True)
class TwoLayers:
    """`relu(W2 relu(W1 h + b1) + b2)`: the gates of one circuit layer (Lemma B.1).

    The inner error is `s1 |(h, 1)| + (|W1| + s) d`, the outer `s2 |(a, 1)| + (|W2| + s) inner` with the
    unperturbed inner values a. Noise of both layers together is at most s, hence the root of squares.
    """

    purpose: str
    inner: Affine
    outer: Affine
    input_norm: float

    @property
    def inner_norm(self) -> float:
        return max(self.input_norm, self.inner.relu_on_bits)

    def _noise(self, slope: float) -> float:
        return math.hypot(with_one(self.inner.relu_on_bits), slope * with_one(self.input_norm))

    def noise(self, s: float) -> float:
        return self._noise(self.outer.norm + s)

    def gain(self, s: float) -> float:
        return (self.outer.norm + s) * (self.inner.norm + s)

    def entry_noise(self, s: float) -> float:
        return self._noise(self.outer.largest_row + s)

    def entry_gain(self, s: float) -> float:
        """An outer unit reads few inner units: `sum_k |W2_jk| |row k of W1|`, and noise on top."""
        reads = np.abs(self.outer.values) * self.inner.row_norms[self.outer.columns]
        exact = np.bincount(self.outer.rows, reads).max() if len(reads) else 0.0
        return float(exact) + s * (self.outer.largest_row + self.inner.norm + s)

    def reach(self, s: float) -> float:
        return math.inf


@dataclass(frozen=True)
class ReadOut:
    """`W h + b`, the last layer f_d, whose outputs are -1 and +1."""

    purpose: str
    affine: Affine
    input_norm: float

    @property
    def inner_norm(self) -> float:
        return self.input_norm

    def noise(self, s: float) -> float:
        return with_one(self.input_norm)

    def gain(self, s: float) -> float:
        return self.affine.norm + s

    def entry_noise(self, s: float) -> float:
        return with_one(self.input_norm)

    def entry_gain(self, s: float) -> float:
        return self.affine.largest_row + s

    def reach(self, s: float) -> float:
        return math.inf


@dataclass(frozen=True)
class Correction:
    """zeta(z) = `relu(V2 relu(V1 z + c1) + c2)`, `gain (relu(z - low) - relu(z - high))` for each
    coordinate (Proposition 3.4): whatever is within the radius of a bit becomes that bit."""

    cuts: Affine
    difference: Affine
    low: float
    high: float
    softness: float = 0.0
    """How far from bits coordinates may be without any noise: softmax attention needs part of the radius."""

    @property
    def radius(self) -> float:
        """sigma_zeta. A vector this close to bits in 2-norm is this close in every coordinate."""
        return min(self.low, 1 - self.high) - self.softness

    def kappa(self, s: float) -> float:
        """kappa_xi of Condition D.3, for all z. With G = max(|z|, 1): the cuts err by `s1 sqrt(2) G`, and
        the difference by `|V2| s1 sqrt(2) G + s2 |(a, 1)|`. Since c1 <= 0, `|a| <= (|V1| + sqrt(2) s) G`."""
        assert (self.cuts.bias <= 0).all()
        return math.hypot(math.sqrt(2) * self.difference.norm, self.cuts.norm + math.sqrt(2) * s, 1)


@dataclass(frozen=True)
class Chain:
    """A net as appendix D writes it: blocks with the same kind of correction between any two."""

    blocks: tuple[Block, ...]
    correction: Correction | None
    first_parameters: bool
    """Whether what the first block reads is itself a parameter (h_0 of the transformer)."""
    rounds: int
    """How often all blocks but the last are run in turn, with the same parameters."""
    final_norm: float
    """The norm of the outputs, -1 and +1."""

    @property
    def lambda_(self) -> float:
        """Condition D.4: no layer value is larger, and none of these is below 1."""
        return max(1.0, self.final_norm, *(block.inner_norm for block in self.blocks))
