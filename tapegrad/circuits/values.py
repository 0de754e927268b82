"""Bits and integers with operators.

    + - * & | ^ // % divmod    modulo 2^width, in the type common to both sides
    << >> **                   modulo 2^width, in the type of the left side
    3 << a, 3 ** a             in the least unsigned type that holds every result, of at most 64 bits
    == != < <= > >=            a bit; the numbers themselves are compared
    abs                        unsigned, of the same width, so that it holds abs(-128) too

Division rounds down and the remainder has the sign of the divisor, as in Python. Divided by 0, a number gives
-1 (all bits 1) and leaves itself as remainder.
"""

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any, Self

from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.operations import (
    Gates,
    Numbers,
    Operation,
    Scalar,
    choose,
    combine,
    evaluate,
    plain,
    same_type,
)
from tapegrad.circuits.scalars import (
    Bit,
    BitType,
    IntType,
    ScalarType,
    UInt,
    holding_both,
    is_number,
    least_type,
)
from tapegrad.errors import SourceError, calling_line

WIDEST_BY_ITSELF = 64
"""Bits of `3 << a`, whose width nobody has given; more is refused."""


def _divided(part: int, numbers: Numbers) -> Operation:
    def operation(signed: bool) -> tuple[Gates, Numbers]:
        way = words.divide_signed if signed else words.divide
        return lambda g, a, b: way(g, a, b)[part], numbers

    return operation


_ADD = plain(words.add, operator.add)
_SUBTRACT = plain(words.subtract, operator.sub)
_MULTIPLY = plain(words.multiply, operator.mul)
_DIVIDE = _divided(0, lambda a, b: a // b if b else -1)
_REMAINDER = _divided(1, lambda a, b: a % b if b else a)
_AND = plain(lambda g, a, b: list(map(g.and_, a, b)), operator.and_)
_OR = plain(lambda g, a, b: list(map(g.or_, a, b)), operator.or_)
_XOR = plain(lambda g, a, b: list(map(g.xor, a, b)), operator.xor)


class _Logic(Scalar):
    """Bits and integers: they have logic, bit by bit, and Python's integers for numbers."""

    __slots__ = ()

    def __int__(self) -> int:
        return self.number

    __index__ = __int__

    def __and__(self, other: Any) -> Any:
        return self._logic(_AND, other)

    def __or__(self, other: Any) -> Any:
        return self._logic(_OR, other)

    def __xor__(self, other: Any) -> Any:
        return self._logic(_XOR, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def _logic(self, operation: Operation, other: Any) -> Any:
        fits = not isinstance(other, Scalar) or isinstance(other, _Logic)
        return combine(operation, self, other) if fits else NotImplemented

    def __invert__(self) -> Any:
        return evaluate(self.type, lambda g, a: [g.not_(w) for w in a], lambda a: ~a, self)

    def times_power(self, of: IntType, power: int) -> Any:
        if power > 0:
            return self.times_power(of, 0) << power
        signed = self.type.signed
        return evaluate(of, lambda g, a: words.resized(g, a, of.width, signed=signed), lambda a: a, self)


class BitValue(_Logic):
    """A truth value. Bits have logic and comparisons; together with an integer they count as 0 or 1."""

    __slots__ = ()

    def _no_arithmetic(self, *others: Any) -> Any:
        raise SourceError(
            "bits have no arithmetic of their own",
            where=calling_line(),
            advice="Use `count_ones`, ^ or &; or give the bit a width, x.to(UInt(8)), or the number that it "
            "is added to, as in n = UInt(8)(0).",
        )

    def _left_to_numbers(self, other: Any) -> Any:
        number = isinstance(other, Scalar) and not isinstance(other, BitValue)
        return NotImplemented if number else self._no_arithmetic()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _left_to_numbers
    __truediv__ = __rtruediv__ = _left_to_numbers
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _left_to_numbers
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __pow__ = __rpow__ = _no_arithmetic
    __neg__ = __abs__ = _no_arithmetic


class IntValue(_Logic):
    """An integer of fixed width."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return combine(_ADD, self, other)

    def __sub__(self, other: Any) -> Any:
        return combine(_SUBTRACT, self, other)

    def __rsub__(self, other: Any) -> Any:
        return combine(_SUBTRACT, self, other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return combine(_MULTIPLY, self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __floordiv__(self, other: Any) -> Any:
        return combine(_DIVIDE, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return combine(_DIVIDE, self, other, swapped=True)

    def __mod__(self, other: Any) -> Any:
        return combine(_REMAINDER, self, other)

    def __rmod__(self, other: Any) -> Any:
        return combine(_REMAINDER, self, other, swapped=True)

    def __divmod__(self, other: Any) -> Any:
        quotient = self // other
        return quotient if quotient is NotImplemented else (quotient, self % other)

    def __rdivmod__(self, other: Any) -> Any:
        quotient = self.__rfloordiv__(other)
        return quotient if quotient is NotImplemented else (quotient, self.__rmod__(other))

    def __truediv__(self, other: Any) -> Any:
        raise SourceError(
            "integers are divided by //, which rounds down",
            where=calling_line(),
            advice="Write a // b, or cast to a Fixed or Float type with .to(type).",
        )

    __rtruediv__ = __truediv__

    @classmethod
    def converted(cls, of: IntType, value: Scalar) -> "IntValue":
        """A value of another type in this one: rounded down, and cut off at the top."""
        return value.times_power(of, 0)

    def __neg__(self) -> "IntValue":
        return self.type(0) - self

    def __abs__(self) -> "IntValue":
        if not self.type.signed:
            return self
        return evaluate(UInt(self.type.width), words.magnitude, lambda a: abs(a), self)

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            raise SourceError(
                "a power modulo another number is not known as such",
                where=calling_line(),
                advice="Multiply step by step, with % after each product.",
            )
        if is_number(exponent):
            exponent = _unsigned_number(exponent, "a power")
        elif not isinstance(exponent, Scalar):
            return NotImplemented
        by = _unsigned(exponent, "a power")
        residues = 1 << self.type.width
        return evaluate(self.type, words.power, lambda a, n: pow(a, n, residues), self, by)

    def __rpow__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        base, largest = int(other), (1 << _unsigned(self, "a power").type.width) - 1
        if base < 0 or base.bit_length() * largest > 2 * WIDEST_BY_ITSELF:
            raise _width_unknown(f"{base} **", f"UInt(8)({base}) **")
        return _of_width(f"{base} **", base, base**largest) ** self

    def __lshift__(self, amount: Any) -> Any:
        return self._shifted(amount, right=False)

    def __rshift__(self, amount: Any) -> Any:
        """Signed values keep their sign, as Python's do."""
        return self._shifted(amount, right=True)

    def __rlshift__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        number, largest = int(other), (1 << _unsigned(self, "a shift").type.width) - 1
        if number < 0 or largest >= WIDEST_BY_ITSELF:
            raise _width_unknown(f"{number} <<", f"UInt(8)({number}) <<")
        return _of_width(f"{number} <<", number, number << largest) << self

    def __rrshift__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        number = int(other)
        return least_type(number)(number) >> self

    def _shifted(self, amount: Any, *, right: bool) -> Any:
        of = self.type
        if is_number(amount):
            amount = _unsigned_number(min(int(amount), of.width), "a shift")
        elif not isinstance(amount, Scalar):
            return NotImplemented

        def numbers(a: int, by: int) -> int:
            by = min(by, of.width)
            return a >> by if right else a << by

        def gates(build: CircuitBuilder, a: Sequence[Wire], by: Sequence[Wire]) -> Sequence[Wire]:
            return words.shift_by_word(build, a, by, right=right, signed=of.signed)

        return evaluate(of, gates, numbers, self, _unsigned(amount, "a shift"))

    def __getitem__(self, index: Any) -> Any:
        """Bit `index` (0 is the least significant), or a slice of bits as an unsigned integer. An index
        beyond the width gives 0 if it is traced, or of an integer type, and is an error if it is a Python
        number."""
        if isinstance(index, slice):
            return join_bits(self.bits()[index])
        return pick(self.bits(), index) if isinstance(index, Scalar) else self.bits()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        raise SourceError(
            "integers do not change",
            where=calling_line(),
            advice="Make a new one: x = x.with_bit(index, bit).",
        )

    def with_bit(self, index: Any, bit: Any) -> Self:
        """The same integer but for one bit. An index beyond the width changes nothing if it is traced, or
        of an integer type, and is an error if it is a Python number."""
        bits, bit = self.bits(), a_bit(bit)
        if isinstance(index, Scalar):
            pairs = zip(flags(index, len(bits)), bits, strict=True)
            bits = [choose(flag, bit, old) for flag, old in pairs]
        else:
            bits[index] = bit
        return _joined(self.type, bits)

    def __len__(self) -> int:
        return self.type.width

    def bits(self) -> list[BitValue]:
        """All bits, least significant first."""
        if self.build is None:
            return [BitValue(Bit, self.raw >> i & 1) for i in range(self.type.width)]
        return [BitValue(Bit, [wire], self.build) for wire in self.raw]

    def bit_count(self) -> "IntValue":
        """How many bits are 1, as Python's integers have it; of a negative one, of its two's complement."""
        return ones_among(self.bits())

    def bit_length(self) -> "IntValue":
        """How many bits the absolute value has without leading zeros, as Python's integers have it."""
        bits = abs(self).bits()
        seen = [bits[-1]]
        for bit in reversed(bits[:-1]):
            seen.append(seen[-1] | bit)
        return ones_among(seen)


def pick(items: Sequence[Any], index: Scalar) -> Any:
    """The item at an unsigned index; zero beyond the end. Plain numbers alone are a table of the least type
    that holds all of them."""
    if all(is_number(item) for item in items):
        of = reduce(holding_both, (least_type(int(item)) for item in items))
        items = [of(item) for item in items]
    items, place = same_type(items), _unsigned(index, "an index")
    of = items[0].type
    build = next((x.build for x in (place, *items) if x.build is not None), None)
    if build is None:
        return items[place.number] if place.number < len(items) else of.value(of, 0)
    picked = words.pick(build, [item.wires(build) for item in items], place.wires(build))
    return of.value(of, picked, build)


def flags(index: Scalar, count: int) -> list[BitValue]:
    """For every number below `count`, whether the unsigned index is that one."""
    place = _unsigned(index, "an index")
    if place.build is None:
        return [BitValue(Bit, int(place.number == number)) for number in range(count)]
    wires = words.decode(place.build, place.raw, count)
    return [BitValue(Bit, [wire], place.build) for wire in wires] + [Bit(0)] * (count - len(wires))


def join_bits(bits: Sequence[BitValue]) -> IntValue:
    """Bits, least significant first, as an unsigned integer."""
    if not bits:
        raise SourceError("an integer has at least one bit", where=calling_line())
    return _joined(UInt(len(bits)), bits)


def _joined(of: ScalarType, bits: Sequence[BitValue]) -> Any:
    return evaluate(
        of,
        lambda g, *own: [wire for (wire,) in own],
        lambda *own: sum(bit << i for i, bit in enumerate(own)),
        *bits,
    )


def a_bit(value: Any) -> BitValue:
    """A bit as it is, or the numbers 0 and 1; integers of other types are refused."""
    if isinstance(value, IntValue):
        raise SourceError(
            f"a bit is needed, not {value.type}", where=calling_line(), advice="Write x != 0 or x[0]."
        )
    return value if isinstance(value, BitValue) else Bit(value)


def ones_among(bits: Sequence[BitValue]) -> IntValue:
    """How many of the bits are 1, as an unsigned integer just wide enough."""
    of = UInt(max(len(bits).bit_length(), 1))

    def gates(build: CircuitBuilder, *own: Sequence[Wire]) -> Sequence[Wire]:
        return words.add_columns(build, [[wire for (wire,) in own], *([[]] * (of.width - 1))])

    return evaluate(of, gates, lambda *own: sum(own), *bits)


def _unsigned(value: Scalar, what: str) -> Scalar:
    """This value, if it is an unsigned integer or a bit."""
    if not isinstance(value.type, UInt | BitType):
        raise SourceError(
            f"{what} needs an unsigned integer, not {value.type}",
            where=calling_line(),
            advice="Cast with .to(UInt(width)).",
        )
    return value


def _unsigned_number(number: Any, what: str) -> Scalar:
    if int(number) < 0:
        raise SourceError(f"{what} cannot be by {int(number)}", where=calling_line())
    return least_type(int(number))(int(number))


def _of_width(what: str, number: int, largest: int) -> IntValue:
    """A number in the least type that holds the largest result."""
    of = least_type(largest)
    if of.width > WIDEST_BY_ITSELF:
        raise _width_unknown(what, f"UInt(8)({number}){what.removeprefix(str(number))}")
    return of(number)


def _width_unknown(what: str, better: str) -> SourceError:
    return SourceError(
        f"the width of {what} a traced amount is unknown",
        where=calling_line(),
        advice=f"Give it one: {better} amount.",
    )


BitType.value, IntType.value = BitValue, IntValue
