"""The numbers of the paper's own construction: r * 2^a * p^b * m0^c with rational r, a, b, c, exactly.

All weights, activations and derivatives of the network of Lemma 3 are such monomials, or sums of monomials
that differ by a rational factor. The paper's s is one too: it is defined by c = 1/m0 (see `constants.py`).
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

Exponents = tuple[Fraction, Fraction, Fraction]
"""Of 2, of p and of m0."""

NEAR, DIGITS = 1e-6, 300
"""Logarithms that differ by less than NEAR in double precision are compared with so many digits. They do
occur: the m0 of the paper is the smallest for which the largest total input is below 1."""


@dataclass(frozen=True)
class Field:
    """The three generators. Numbers of different fields do not mix."""

    p: Fraction
    m0: int

    @property
    def generators(self) -> tuple[Fraction, Fraction, Fraction]:
        """2, p, m0."""
        return Fraction(2), self.p, Fraction(self.m0)

    def number(self, a: Any = 0, b: Any = 0, c: Any = 0, r: Any = 1) -> "Exact":
        """r * 2^a * p^b * m0^c."""
        return Exact(self, Fraction(r), (Fraction(a), Fraction(b), Fraction(c)))


@dataclass(frozen=True)
class Exact:
    """A monomial. Exponents are kept as they come, for powers need them; sums are taken where the exponents
    differ by whole numbers, so that the terms differ by a rational factor."""

    field: Field
    r: Fraction
    exponents: Exponents

    def __mul__(self, other: Any) -> "Exact":
        if isinstance(other, int | Fraction):
            return Exact(self.field, self.r * other, self.exponents)
        a, b, c = (x + y for x, y in zip(self.exponents, other.exponents, strict=True))
        return Exact(self.field, self.r * other.r, (a, b, c))

    __rmul__ = __mul__

    def __add__(self, other: Any) -> "Exact":
        other = other if isinstance(other, Exact) else self.field.number(r=other)
        if self.r == 0 or other.r == 0:
            return other if self.r == 0 else self
        ratio = self._ratio_to(other)
        if ratio is None:
            raise ArithmeticError(f"{self} and {other} have no sum of the form r 2^a p^b m0^c")
        whole = Exact(self.field, self.r + other.r / ratio, self.exponents)
        one = whole._ratio_to(self.field.number())
        return whole if one is None else self.field.number(r=whole.r * one)

    __radd__ = __add__

    def _ratio_to(self, other: "Exact") -> Fraction | None:
        """2^a p^b m0^c of this number, divided by that of the other, if it is rational."""
        ratio = Fraction(1)
        for x, y, generator in zip(self.exponents, other.exponents, self.field.generators, strict=True):
            if (x - y).denominator != 1:
                return None
            ratio *= generator ** int(x - y)
        return ratio

    def __neg__(self) -> "Exact":
        return self * -1

    def __sub__(self, other: Any) -> "Exact":
        return self + -other

    def __rsub__(self, other: Any) -> "Exact":
        return -self + other

    def __abs__(self) -> "Exact":
        return self * self.sign

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int | Fraction):
            other = self.field.number(r=other)
        if not isinstance(other, Exact) or (self.r == 0) != (other.r == 0):
            return False
        ratio = self._ratio_to(other)
        return self.r == 0 or (ratio is not None and self.r * ratio == other.r)

    __hash__ = None  # type: ignore[assignment]

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.r > 0) - (self.r < 0)

    def power(self, exponent: Fraction) -> "Exact":
        """The number to a rational power; it must be positive, and a product of powers of 2, p and m0."""
        rest, whole = self.r, [Fraction(0)] * 3
        for i in (2, 1, 0):
            rest, whole[i] = _extracted(rest, self.field.generators[i])
        if rest != 1:
            raise ArithmeticError(f"{self} has no power of the form r 2^a p^b m0^c")
        a, b, c = ((w + e) * exponent for w, e in zip(whole, self.exponents, strict=True))
        return self.field.number(a, b, c)

    def log2(self) -> float:
        """The logarithm of the absolute value, nearly."""
        logs = zip(self.exponents, self.field.generators, strict=True)
        return _log2(abs(self.r)) + sum(float(e) * _log2(g) for e, g in logs)

    def exceeds(self, bound: Fraction) -> bool:
        """Whether the absolute value is larger than a rational bound."""
        if self.r == 0:
            return False
        if not any(self.exponents):
            return abs(self.r) > bound
        gap = self.log2() - _log2(bound)
        return gap > 0 if abs(gap) > NEAR else self._long_log() > _long_log(bound)

    def _long_log(self) -> Decimal:
        with localcontext(prec=DIGITS):
            logs = zip(self.exponents, self.field.generators, strict=True)
            terms = (Decimal(e.numerator) / e.denominator * _long_log(g) for e, g in logs if e)
            return sum(terms, _long_log(abs(self.r)))

    def __float__(self) -> float:
        return self.sign * 2.0 ** self.log2() if self.r else 0.0

    def __str__(self) -> str:
        names = zip(("2", f"({self.field.p})", "m0"), self.exponents, strict=True)
        return " ".join([str(self.r), *(f"{name}^({e})" for name, e in names if e)])


def _extracted(r: Fraction, generator: Fraction) -> tuple[Fraction, Fraction]:
    """r without all powers of the generator that divide it, and their exponent."""
    if generator == 1:
        return r, Fraction(0)
    power = 0
    for step, factor in ((1, generator), (-1, 1 / generator)):
        while r.numerator % factor.numerator == 0 and r.denominator % factor.denominator == 0:
            r, power = r / factor, power + step
    return r, Fraction(power)


@lru_cache(maxsize=64)
def _long_log(x: Fraction) -> Decimal:
    with localcontext(prec=DIGITS):
        return Decimal(x.numerator).ln() - Decimal(x.denominator).ln()


def _log2(x: Fraction) -> float:
    return math.log2(x.numerator) - math.log2(x.denominator)


Number = int | float | Fraction | Decimal | Exact
"""What a weight of some network may be."""
