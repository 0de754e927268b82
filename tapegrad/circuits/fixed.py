"""Fixed-point numbers with operators: integers, traced or concrete, that count steps of 2^-fraction.

    + - *        modulo 2^whole, in the type common to both sides; a product is rounded down
    /            rounded down; divided by 0, all bits are 1
    // %         the quotient rounded down to a whole number, and what is left; divided by 0, all whole bits
                 are 1, and all is left
    << >>        by an unsigned amount, as of integers; bits that leave at the right are lost
    abs          unsigned, of the same width
    comparisons  of the numbers themselves, whatever the types

Rounded down means to the next smaller multiple of 2^-fraction, of negative numbers too.
"""

from collections.abc import Callable
from typing import Any

from tapegrad.circuits.operations import Scalar, partner, same_type
from tapegrad.circuits.scalars import FixedType, Int, IntType, UFixed, UInt, common_type
from tapegrad.circuits.values import IntValue


class FixedValue(Scalar):
    """A fixed-point number."""

    __slots__ = ()

    @property
    def steps(self) -> IntValue:
        """The integer that counts the steps."""
        return IntValue(self.type.integer, self.raw, self.build)

    def of_steps(self, steps: IntValue) -> "FixedValue":
        """So many steps, as a number of the same type."""
        return FixedValue(self.type, steps.raw, steps.build)

    @classmethod
    def converted(cls, of: FixedType, value: Scalar) -> "FixedValue":
        """A value of another type in this one."""
        steps = value.times_power(of.integer, of.fraction)
        return cls(of, steps.raw, steps.build)

    def times_power(self, of: IntType, power: int) -> IntValue:
        shift = power - self.type.fraction
        if shift >= 0:
            return self.steps.times_power(of, shift)
        return (self.steps >> -shift).to(of)

    def __float__(self) -> float:
        return self.number

    def __add__(self, other: Any) -> Any:
        return self._with(lambda of, a, b: a + b, other)

    def __sub__(self, other: Any) -> Any:
        return self._with(lambda of, a, b: a - b, other)

    def __rsub__(self, other: Any) -> Any:
        return self._with(lambda of, a, b: b - a, other)

    def __mul__(self, other: Any) -> Any:
        return self._with(_product, other)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._with(_quotient, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(lambda of, a, b: _quotient(of, b, a), other)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(_whole_quotient, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with(lambda of, a, b: _whole_quotient(of, b, a), other)

    def __mod__(self, other: Any) -> Any:
        return self._with(lambda of, a, b: a % b, other)

    def __rmod__(self, other: Any) -> Any:
        return self._with(lambda of, a, b: b % a, other)

    def __divmod__(self, other: Any) -> Any:
        whole = self // other
        return whole if whole is NotImplemented else (whole, self % other)

    def __lshift__(self, amount: Any) -> Any:
        return self.of_steps(self.steps << amount)

    def __rshift__(self, amount: Any) -> Any:
        return self.of_steps(self.steps >> amount)

    def __neg__(self) -> "FixedValue":
        return self.of_steps(-self.steps)

    def __abs__(self) -> "FixedValue":
        size = abs(self.steps)
        return FixedValue(UFixed(self.type.whole, self.type.fraction), size.raw, size.build)

    def __eq__(self, other: Any) -> Any:
        pair = self._on_one_grid(other)
        return NotImplemented if pair is None else pair[0] == pair[1]

    def __lt__(self, other: Any) -> Any:
        pair = self._on_one_grid(other)
        return NotImplemented if pair is None else pair[0] < pair[1]

    def __gt__(self, other: Any) -> Any:
        pair = self._on_one_grid(other)
        return NotImplemented if pair is None else pair[0] > pair[1]

    def bits(self) -> list[Any]:
        """All bits, least significant first."""
        return self.steps.bits()

    def _with(self, operation: Callable[[FixedType, IntValue, IntValue], IntValue], other: Any) -> Any:
        """An operation on the steps of both, in the type common to them."""
        if (own := partner(self, other)) is None:
            return NotImplemented
        a, b = same_type([self, own])
        return a.of_steps(operation(a.type, a.steps, b.steps))

    def _on_one_grid(self, other: Any) -> tuple[IntValue, IntValue] | None:
        """Both as integers that count the finer steps of the two, wide enough for either."""
        own = partner(self, other)
        if own is None:
            return None
        if not isinstance(own, FixedValue):
            common_type(self.type, own.type)  # refuses what does not mix
            own = own.to(self.type)
        finest = max(self.type.fraction, own.type.fraction)
        a, b = (x.times_power(_integer(x.type, x.type.whole + finest), finest) for x in (self, own))
        return a, b


def _integer(like: FixedType, width: int) -> IntType:
    return (Int if like.signed else UInt)(max(width, 1))


def _product(of: FixedType, a: IntValue, b: IntValue) -> IntValue:
    wide = _integer(of, of.width + of.fraction)
    return (a.to(wide) * b.to(wide) >> of.fraction).to(of.integer)


def _quotient(of: FixedType, a: IntValue, b: IntValue) -> IntValue:
    wide = _integer(of, of.width + of.fraction)
    return ((a.to(wide) << of.fraction) // b.to(wide)).to(of.integer)


def _whole_quotient(of: FixedType, a: IntValue, b: IntValue) -> IntValue:
    """Both count the same steps, so that their quotient is the numbers' own."""
    wide = _integer(of, of.width + of.fraction)
    return ((a.to(wide) // b.to(wide)) << of.fraction).to(of.integer)


FixedType.value = FixedValue
