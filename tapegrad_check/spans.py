"""Bounds in exact rationals on what floating-point units can compute; for the checkers alone."""

from fractions import Fraction

Span = tuple[Fraction, Fraction]
"""A lower and an upper bound."""
Unit = tuple[Fraction, Fraction, Fraction]
"""Two weights and a bias."""

DIGITS = {"float32": (24, -126), "float64": (53, -1022)}
"""Binary digits of a number, and the exponent of the smallest normal one."""


class Rounded:
    """Spans under rounding: exact if the result is a single number that the precision has, else within
    `u |x| + tiny`; products with 0 and powers of two and sums with 0 do not round."""

    def __init__(self, dtype: str) -> None:
        self.digits, exponent = DIGITS[dtype]
        self.u, self.tiny = Fraction(1, 1 << self.digits), Fraction(1, 1 << -exponent)

    def slack(self, x: Span) -> Fraction:
        """How far rounding can move a result in this span."""
        n, d = abs(x[0].numerator), x[0].denominator
        short = n == 0 or ((n // (n & -n)).bit_length() <= self.digits and abs(x[0]) >= self.tiny)
        exact = x[0] == x[1] and d & (d - 1) == 0 and short
        return Fraction(0) if exact else self.u * max(abs(x[0]), abs(x[1])) + self.tiny

    def product_slack(self, w: Fraction, x: Span) -> Fraction:
        """How far rounding can move `w x`."""
        n, d = abs(w.numerator), w.denominator
        return Fraction(0) if n & (n - 1) == 0 == d & (d - 1) else self.slack(scaled(w, x))

    def unit(self, unit: Unit, x: Span, y: Span) -> Span:
        """`w x + v y + bias` in this order."""
        first = wider(scaled(unit[0], x), self.product_slack(unit[0], x))
        second = wider(scaled(unit[1], y), self.product_slack(unit[1], y))
        return self._sum(self._sum(first, second), (unit[2], unit[2]))

    def _sum(self, x: Span, y: Span) -> Span:
        total = x[0] + y[0], x[1] + y[1]
        return total if (0, 0) in (x, y) else wider(total, self.slack(total))


def scaled(w: Fraction, x: Span) -> Span:
    """Every number times `w`."""
    return min(w * x[0], w * x[1]), max(w * x[0], w * x[1])


def wider(x: Span, by: Fraction) -> Span:
    """With more on both sides."""
    return x[0] - by, x[1] + by


def relu(x: Span) -> Span:
    """The positive part."""
    return max(x[0], Fraction(0)), max(x[1], Fraction(0))


def off_from(x: Span, ideal: int) -> Fraction:
    """How far a number can be from the ideal one."""
    return max(abs(x[0] - ideal), abs(x[1] - ideal))


def near(bit: int, error: Fraction) -> Span:
    """A value at most this far from its bit; after a ReLU none is negative."""
    return relu((bit - error, bit + error))
