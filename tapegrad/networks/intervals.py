"""Intervals of exact rationals under floating-point rounding: what a unit can compute, at most.

The model of rounding is the standard one. A result that the precision can represent is exact; any
other result x comes out within `u |x| + tiny`, where u is the unit roundoff and `tiny` the smallest normal
number (so flushing to zero is covered). A fused multiply-add skips a rounding, which the model allows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

ZERO = Fraction(0)


@dataclass(frozen=True)
class Interval:
    """All rationals from `low` to `high`."""

    low: Fraction
    high: Fraction

    @property
    def magnitude(self) -> Fraction:
        """Largest absolute value."""
        return max(abs(self.low), abs(self.high))

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.low + other.low, self.high + other.high)

    def times(self, factor: Fraction) -> "Interval":
        """Every value times the same number."""
        ends = self.low * factor, self.high * factor
        return Interval(min(ends), max(ends))

    def widened(self, slack: Fraction) -> "Interval":
        """With this much more on both sides."""
        return Interval(self.low - slack, self.high + slack)

    def relu(self) -> "Interval":
        """The positive part."""
        return Interval(max(self.low, ZERO), max(self.high, ZERO))

    def shifted(self, by: Fraction | int) -> "Interval":
        """Every value plus the same number."""
        return Interval(self.low + by, self.high + by)


def point(value: Fraction | float) -> Interval:
    """A value that is known exactly."""
    return Interval(Fraction(value), Fraction(value))


class Rounding:
    """The arithmetic of one precision on intervals."""

    def __init__(self, dtype: str) -> None:
        info = np.finfo(dtype)
        self.digits = info.nmant + 1
        self.unit = Fraction(1, 2**self.digits)
        self.tiny = Fraction(float(info.tiny))

    def slack(self, exact: Interval) -> Fraction:
        """How far rounding can move a result that lies in this interval."""
        if exact.low == exact.high and self._represents(exact.low):
            return ZERO
        return self.unit * exact.magnitude + self.tiny

    def product(self, weight: Fraction, x: Interval) -> Interval:
        """`weight * x`; powers of two and zero do not round."""
        return x.times(weight).widened(self.product_slack(weight, x))

    def product_slack(self, weight: Fraction, x: Interval) -> Fraction:
        """How far rounding can move `weight * x`."""
        return ZERO if _scales_exactly(weight) else self.slack(x.times(weight))

    def sum(self, a: Interval, b: Interval) -> Interval:
        """`a + b`; adding zero does not round."""
        exact = a + b
        return exact if point(0) in (a, b) else exact.widened(self.slack(exact))

    def affine(
        self, weights: Sequence[float | Fraction], bias: float | Fraction, inputs: Sequence[Interval]
    ) -> Interval:
        """`weights . inputs + bias`, a unit's value before its activation, summed in this order."""
        terms = [self.product(Fraction(w), x) for w, x in zip(weights, inputs, strict=True)]
        return reduce(self.sum, [*terms, point(Fraction(bias))])

    def _represents(self, value: Fraction) -> bool:
        odd = abs(value.numerator)
        odd >>= (odd & -odd).bit_length() - 1 if odd else 0
        power_of_two = value.denominator & (value.denominator - 1) == 0
        return power_of_two and odd.bit_length() <= self.digits and (not odd or abs(value) >= self.tiny)


def _scales_exactly(weight: Fraction) -> bool:
    numerator, denominator = abs(weight.numerator), weight.denominator
    return numerator & (numerator - 1) == 0 and denominator & (denominator - 1) == 0


def at_least(value: Fraction) -> float:
    """The double at or just above a rational."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def at_most(value: Fraction) -> float:
    """The double at or just below a rational."""
    return 0.0 - at_least(-value)
