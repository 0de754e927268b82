"""Arithmetic: what maps make of what they read, in the format of the net, and whether anything is rounded.

A net adds up products in floating point, in an order that no library promises. Let n products be multiples of
a power of two, the step, and the total the sum of their magnitudes. Whatever the order, and fused or not:

- **Exact** are the sums if the total is at most 2^digits steps, for every partial sum is then a multiple of
  the step that the format has. The step must be a normal number, since hardware may take smaller ones for 0,
  and the total below the largest number.
- **Bounded** is how far other sums may be off: by n u / (1 - n u) times the total, with u = 2^-digits, and by
  what each product and each sum loses where it is too small to be normal.
- **Refused** is what may overflow: infinities can be of both signs, and their sum is no number.

What the checker itself computes, it computes in double precision, and judges in the same way.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.products import times

Matrix = NDArray[np.float64]


class Format(NamedTuple):
    """A format of numbers."""

    digits: int
    """Binary digits of the significand."""
    least: int
    """2^least is the smallest normal number."""
    most: int
    """All numbers are below 2^most."""

    @property
    def u(self) -> float:
        """The unit roundoff."""
        return 2.0**-self.digits


FORMATS = {"float32": Format(24, -126, 128), "float64": Format(53, -1022, 1024)}
SINGLE, DOUBLE = FORMATS["float32"], FORMATS["float64"]
UP = 1 + 2.0**-30
"""Bounds are sums of terms that are not negative, and enlarged by more than such sums can lose."""
COARSEST = 2.0**60
"""The step of numbers that are all 0."""


def step_of(numbers: Any, axis: int | None = None) -> Any:
    """A power of two that all of these numbers are multiples of; all in a row, with an axis."""
    parts, powers = np.frexp(np.asarray(numbers, np.float64))
    whole = (parts * 2.0**53).astype(np.int64)
    steps = np.ldexp((whole & -whole).astype(np.float64), powers - 53)
    return np.where(whole == 0, COARSEST, steps).min(axis=axis, initial=COARSEST)


def finite(total: Any, format: Format = SINGLE) -> Any:
    """Whether no sum overflows whose terms have this total."""
    return total <= 2.0 ** (format.most - 1)


def exact(total: Any, step: Any, format: Format = SINGLE) -> Any:
    """Whether sums are exact, in whatever order, whose terms are multiples of the step and have this total.
    Takes numbers, fractions, and arrays of numbers."""
    fits = (total <= step * 2**format.digits) & (step >= 2.0**format.least) & finite(total, format)
    return fits | (total == 0)


def rounding(terms: Any, total: Any, step: Any, format: Format = SINGLE) -> Any:
    """How far sums of so many products may be off: not at all if they are exact, infinitely far if they may
    overflow. The step is a power of two that all products are multiples of, or 0 if there is none."""
    share = np.minimum(terms * format.u, 0.5)
    off = (share / (1 - share) * total + 2 * terms * 2.0**format.least) * UP
    bounded = (terms * format.u <= 0.5) & finite(total * UP, format)
    return np.where(exact(total * UP, step, format), 0.0, np.where(bounded, off, np.inf))


class Term(NamedTuple):
    """A product in a sum, row by row: near what it is, how far off its factors may make it, and whether its
    weight is a power of two, so that multiplying rounds nothing."""

    near: NDArray[np.float64]
    off: NDArray[np.float64]
    plain: bool


FEW = 3


def rounding_of_few(terms: Sequence[Term], format: Format) -> NDArray[np.float64]:
    """How far sums of at most three products may be off, in whatever order, more closely: each product is
    rounded, then the sum of some two of them, then that of all. Where two are added they may cancel, and what
    is left is rounded by little."""
    lost = 2.0**format.least
    products = [0 if term.plain else format.u * (np.abs(term.near) + term.off) for term in terms]
    off = sum((term.off for term in terms), np.zeros(1)) + sum(products)
    made = np.abs(sum(term.near for term in terms)) + off
    pairs = [np.abs(a.near + b.near) + off for a, b in combinations(terms, 2)]
    inner = format.u * np.maximum.reduce(pairs) if len(terms) == FEW else 0
    outer = format.u * (made + inner) if len(terms) > 1 else 0
    return np.asarray((sum(products) + inner + outer + 2 * (len(terms) + 1) * lost) * UP)


def product(*factors: Matrix) -> tuple[Matrix, Matrix]:
    """A product of matrices in double precision, and how far each entry may be off."""
    found, size = factors[0], np.abs(factors[0])
    terms, step = 0, step_of(factors[0])
    for factor in factors[1:]:
        terms += found.shape[1] + 2
        found, size, step = times(found, factor), times(size, np.abs(factor)), step * step_of(factor)
    if (size * UP <= step * 2.0**DOUBLE.digits).all():
        return found, np.zeros_like(found)
    return found, size * (terms * DOUBLE.u * UP)


def evaluated(
    weights: Matrix, bias: Matrix, given: Matrix, step: float = 1.0, format: Format = SINGLE
) -> tuple[Matrix, Matrix]:
    """What a map makes of each row that is given, whose numbers are multiples of the step; and how far what
    the net computes may be from that: 0 where nothing is rounded."""
    found = times(given, weights.T) + bias
    total = times(np.abs(given), np.abs(weights).T) + np.abs(bias)
    steps = np.minimum(step * step_of(weights, axis=1), step_of(bias[:, None], axis=1))
    terms = np.count_nonzero(weights, axis=1) + 1
    return found, rounding(terms, total, steps, format) + rounding(terms, total, steps, DOUBLE)
