"""Floats with operators, as IEEE 754 defines them: + - * /, comparisons, negation, abs, conversions.

Every result is the exact one rounded to the nearest float, of two to the one with an even mantissa, with
subnormal numbers, signed zeros, infinities and NaN. An operation that gives NaN gives the same one always;
only negation, abs and choosing pass on the bits of a NaN as they are. NaN is equal to nothing and neither
less nor greater.

Concrete values are computed as fractions and rounded (`Float.raw`). Traced ones are computed as below, on the
bits; so that one route checks the other.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from tapegrad.circuits.arrays import where
from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.operations import Scalar, combine, evaluate, partner, same_type
from tapegrad.circuits.reductions import any_of, concat
from tapegrad.circuits.scalars import Bit, Float, Int, IntType, UInt
from tapegrad.circuits.values import BitValue, IntValue

GUARD = 3
"""Bits below those that are kept: with all that is lost gathered in the last of them, they tell below half,
half and above half apart, even after a shift to the left by one."""


class FloatValue(Scalar):
    """A float."""

    __slots__ = ()

    @property
    def pattern(self) -> IntValue:
        """The bits as an unsigned integer."""
        return IntValue(UInt(self.type.width), self.raw, self.build)

    def bits(self) -> list[BitValue]:
        """All bits, least significant first: mantissa, exponent, sign."""
        return self.pattern.bits()

    @classmethod
    def converted(cls, of: Float, value: Scalar) -> "FloatValue":
        """A value of another type in this one, rounded."""
        if isinstance(value, FloatValue):
            of_it = value.type
            return evaluate(of, lambda g, a: _resized(of, _opened(of_it, g, a)), lambda a: a, value)
        return _from_steps(of, value)

    def times_power(self, of: IntType, power: int) -> IntValue:
        own = self.type

        def numbers(x: float) -> int:
            return math.floor(Fraction(x) * Fraction(2) ** power) if math.isfinite(x) else 0

        return evaluate(of, lambda g, a: _floor(of, power, own, _opened(own, g, a)), numbers, self)

    def __float__(self) -> float:
        return self.number

    def __add__(self, other: Any) -> Any:
        return self._with(_add, _sum, other)

    def __sub__(self, other: Any) -> Any:
        own = partner(self, other)
        return NotImplemented if own is None else self + -own.to(self.type)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        return self._with(_multiply, _product, other)

    def __truediv__(self, other: Any) -> Any:
        return self._with(_divide, _quotient, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(_divide, _quotient, other, swapped=True)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> "FloatValue":
        return self._of(self.pattern ^ 1 << self.type.width - 1)

    def __abs__(self) -> "FloatValue":
        return self._of(self.pattern & (1 << self.type.width - 1) - 1)

    def __eq__(self, other: Any) -> Any:
        return self._compared(_equal, lambda a, b: a == b, other)

    def __lt__(self, other: Any) -> Any:
        return self._compared(_less, lambda a, b: a < b, other)

    def __gt__(self, other: Any) -> Any:
        return self._compared(lambda a, b: _less(b, a), lambda a, b: a > b, other)

    def __le__(self, other: Any) -> Any:
        return self._compared(lambda a, b: _less(a, b) | _equal(a, b), lambda a, b: a <= b, other)

    def __ge__(self, other: Any) -> Any:
        return self._compared(lambda a, b: _less(b, a) | _equal(a, b), lambda a, b: a >= b, other)

    def _of(self, pattern: IntValue) -> "FloatValue":
        return FloatValue(self.type, pattern.raw, pattern.build)

    def _with(self, gates: Any, numbers: Callable[..., Any], other: Any, *, swapped: bool = False) -> Any:
        own = self.type

        def operation(_: bool) -> Any:
            return lambda g, a, b: gates(own, _opened(own, g, a), _opened(own, g, b)), numbers

        return combine(operation, self, other, swapped=swapped)

    def _compared(self, gates: Any, numbers: Callable[..., bool], other: Any) -> Any:
        if (found := partner(self, other)) is None:
            return NotImplemented
        a, b = same_type([self, found])
        own = self.type
        return evaluate(Bit, lambda g, x, y: gates(_opened(own, g, x), _opened(own, g, y)).raw, numbers, a, b)


# On Python's floats, exactly.


def _sum(a: float, b: float) -> Any:
    """Where nothing is rounded Python's own sum: infinities, NaN, and the sign of a zero."""
    exact = Fraction(a) + Fraction(b) if math.isfinite(a) and math.isfinite(b) else 0
    return exact or a + b


def _product(a: float, b: float) -> Any:
    exact = Fraction(a) * Fraction(b) if math.isfinite(a) and math.isfinite(b) else 0
    return exact or a * b


def _quotient(a: float, b: float) -> Any:
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    exact = Fraction(a) / Fraction(b) if math.isfinite(a) and math.isfinite(b) else 0
    return exact or a / b


# On bits.


class _Opened(NamedTuple):
    """A float in its parts. The significand has the leading 1, which subnormal numbers lack; their exponent
    is written as 0 and means 1."""

    sign: BitValue
    exponent: IntValue
    significand: IntValue
    size: IntValue
    """All bits but the sign: in the order of the absolute values."""
    infinite: BitValue
    nan: BitValue

    @property
    def zero(self) -> BitValue:
        return self.size == 0


def _opened(of: Float, build: CircuitBuilder, wires: Sequence[Wire]) -> _Opened:
    bits = IntValue(UInt(of.width), wires, build)
    size, mantissa = bits[: of.width - 1], bits[: of.mantissa]
    field = bits[of.mantissa : of.width - 1]
    normal, top = field != 0, field == (1 << of.exponent) - 1
    lowest = field.with_bit(0, field[0] | ~normal)
    empty = mantissa == 0
    return _Opened(bits[of.width - 1], lowest, concat(mantissa, normal), size, top & empty, top & ~empty)


def _add(of: Float, a: _Opened, b: _Opened) -> Sequence[Wire]:
    """The smaller is shifted to the place of the larger, and added or subtracted."""
    swap = a.size < b.size
    sign = where(swap, b.sign, a.sign)
    exponent, other = where(swap, b.exponent, a.exponent), where(swap, a.exponent, b.exponent)
    large = where(swap, b.significand, a.significand)
    small = where(swap, a.significand, b.significand)
    wide = UInt(of.mantissa + 1 + GUARD + 1)
    differ = a.sign ^ b.sign
    small = _jammed(small.to(wide) << GUARD, exponent - other)
    total = (large.to(wide) << GUARD) + where(differ, ~small, small) + differ
    sign = where(total == 0, a.sign & b.sign, sign)
    size = _rounded(of, total, exponent.to(Int(of.exponent + 2)) + 1, below=False)
    nan = a.nan | b.nan | (a.infinite & b.infinite & differ)
    return _closed(of, sign, size, a.infinite | b.infinite, nan)


def _multiply(of: Float, a: _Opened, b: _Opened) -> Sequence[Wire]:
    product = a.significand.to(UInt(2 * of.mantissa + 2)) * b.significand
    signed = Int(of.exponent + 2)
    exponent = a.exponent.to(signed) + b.exponent.to(signed) - (of.bias - 1)
    size = _rounded(of, product, exponent)
    nan = a.nan | b.nan | (a.infinite & b.zero) | (a.zero & b.infinite)
    return _closed(of, a.sign ^ b.sign, size, a.infinite | b.infinite, nan)


def _divide(of: Float, a: _Opened, b: _Opened) -> Sequence[Wire]:
    """Both are brought to a leading 1, so that the quotient, of 1/2 to 2, has all the bits that count."""
    signed = Int(of.exponent + 3)
    (above, up), (below, down) = (_normal(x.significand, x.exponent.to(signed)) for x in (a, b))
    wide = UInt(2 * of.mantissa + GUARD)
    quotient, rest = divmod(above.to(wide) << of.mantissa + GUARD - 1, below.to(wide))
    found = concat(rest != 0, quotient[: of.mantissa + GUARD])
    size = _rounded(of, found, up - down + of.bias)
    nan = a.nan | b.nan | (a.infinite & b.infinite) | (a.zero & b.zero)
    size = where(b.infinite, 0, size)
    return _closed(of, a.sign ^ b.sign, size, a.infinite | (b.zero & ~a.zero), nan)


def _equal(a: _Opened, b: _Opened) -> BitValue:
    same = (a.size == b.size) & (a.sign == b.sign)
    return (same | (a.zero & b.zero)) & ~a.nan & ~b.nan


def _less(a: _Opened, b: _Opened) -> BitValue:
    smaller, larger = a.size < b.size, b.size < a.size
    apart = ~(a.zero & b.zero)
    ordered = where(a.sign, where(b.sign, larger, apart), ~b.sign & smaller)
    return ordered & ~a.nan & ~b.nan


def _resized(of: Float, a: _Opened) -> Sequence[Wire]:
    """A float of another format."""
    here, there = len(a.exponent), of.exponent
    shift = of.bias - ((1 << here - 1) - 1)
    exponent = a.exponent.to(Int(max(here, there) + 2)) + shift
    size = _rounded(of, _extended(of, a.significand), exponent)
    return _closed(of, a.sign, size, a.infinite, a.nan)


def _from_steps(of: Float, value: Any) -> FloatValue:
    """An integer or a fixed-point number as a float: a sign, and a significand with a known exponent."""
    fraction = getattr(value.type, "fraction", 0)
    signed = value.type.signed

    def gates(build: CircuitBuilder, wires: Sequence[Wire]) -> Sequence[Wire]:
        steps = IntValue((Int if signed else UInt)(len(wires)), wires, build)
        size = abs(steps)
        top = len(size) - 1 - fraction + of.bias
        width = max(of.exponent, abs(top).bit_length()) + 2
        exponent = Int(width)(top)
        sign = steps[len(steps) - 1] if signed else Bit(0)
        return _closed(of, sign, _rounded(of, _extended(of, size), exponent, below=top < 1), Bit(0), Bit(0))

    return evaluate(of, gates, Fraction, value)


def _floor(target: IntType, power: int, own: Float, a: _Opened) -> Sequence[Wire]:
    """The significand, shifted to the left until the bits from `below` on are the whole ones. Of negative
    numbers what is lost counts as one more."""
    below = own.mantissa + 2
    wide = UInt(target.width + below)
    offset = power + 2 - own.bias
    by = a.exponent.to(Int(max(own.exponent, abs(offset).bit_length()) + 2)) + offset
    amount = where(by < 0, 0, by).to(UInt(len(by)))
    placed = a.significand.to(wide) << amount
    whole, lost = placed[below:], any_of(placed[:below])
    rounded = where(a.sign, ~whole + ~lost, whole)
    return where(a.infinite | a.nan, 0, rounded).raw


def _closed(of: Float, sign: Any, size: IntValue, infinite: BitValue, nan: BitValue) -> Sequence[Wire]:
    """The bits of a float from its sign and all others, where it is not infinite or NaN."""
    build = size.build
    assert build is not None
    found = where(nan, of.nan, concat(where(infinite, of.infinity, size), sign))
    return found.wires(build)


def _extended(of: Float, significand: IntValue) -> IntValue:
    """With zeros behind, for as many bits as rounding looks at."""
    missing = max(0, of.mantissa + 2 - len(significand))
    return significand.to(UInt(len(significand) + missing)) << missing


def _rounded(of: Float, significand: IntValue, exponent: IntValue, *, below: bool = True) -> IntValue:
    """The bits but the sign of a significand whose top bit, if it is 1, has this exponent.

    Where the exponent is below 1, the least that there is, the significand goes to the right; where there are
    leading zeros, to the left for as long as the exponent allows. Then the top bits are kept, and the rest
    decides whether they are one step more: a carry out of the mantissa raises the exponent, as it should."""
    if below:
        low = exponent < 1
        away = where(low, 1 - exponent, 0)
        significand = _jammed(significand, away.to(UInt(len(away))))
        exponent = where(low, 1, exponent)
    significand, exponent = _normal(significand, exponent, least=1)
    cut = len(significand) - of.mantissa - 1
    kept, half, rest = significand[cut:], significand[cut - 1], significand[: cut - 1] if cut > 1 else None
    up = half & (kept[0] | (any_of(rest) if rest is not None else Bit(0)))
    field = where(kept[of.mantissa], exponent, 0)
    packed = concat(kept[: of.mantissa], field[: of.exponent]) + up
    large = exponent >= (1 << of.exponent) - 1
    return where(large & kept[of.mantissa], of.infinity, packed)


def _normal(significand: IntValue, exponent: IntValue, least: int | None = None) -> tuple[IntValue, IntValue]:
    """Shifted to the left until the top bit is 1, or the exponent is the least."""
    width = len(significand)
    exponent = exponent.to(Int(max(len(exponent), width.bit_length() + 2)))
    for power in reversed(range((width - 1).bit_length())):
        by = 1 << power
        shifts = significand[width - by :] == 0
        if least is not None:
            shifts = shifts & (exponent >= least + by)
        significand = where(shifts, significand << by, significand)
        exponent = where(shifts, exponent - by, exponent)
    return significand, exponent


def _jammed(value: IntValue, amount: IntValue) -> IntValue:
    """Shifted to the right, with everything that is lost gathered in the lowest bit."""
    for place, bit in enumerate(amount.bits()):
        by = min(1 << place, len(value))
        shifted = value >> by
        value = where(bit, shifted.with_bit(0, shifted[0] | any_of(value[:by])), value)
    return value


Float.value = FloatValue
