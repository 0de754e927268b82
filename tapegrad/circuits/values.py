"""Values with operators: bits and integers that are either traced (wires) or concrete (a Python number).

The type of a result depends on the types of the operands alone, traced or not: it is decided first, here, and
then `evaluate` finds the bits. Concrete values follow Python's integers modulo 2^width and traced ones build
gates, so that the same function computes by two independent routes, and one checks the other.

    + - * & | ^ // % divmod    modulo 2^width, in the type common to both sides
    << >> **                   modulo 2^width, in the type of the left side
    3 << a, 3 ** a             in the least unsigned type that holds every result, of at most 64 bits
    == != < <= > >=            a bit; the numbers themselves are compared
    abs                        unsigned, of the same width, so that it holds abs(-128) too

Division rounds down and the remainder has the sign of the divisor, as in Python. Divided by 0, a number gives
-1 (all bits 1) and leaves itself as remainder.
"""

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Self

from tapegrad.circuits import words
from tapegrad.circuits.branches import rewritten_branch
from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.types import Bit, BitType, Int, IntType, UInt, common_type, holding_both, is_number
from tapegrad.errors import SourceError, calling_line

WIDEST_BY_ITSELF = 64
"""Bits of `3 << a`, whose width nobody has given; more is refused."""

Gates = Callable[..., Sequence[Wire]]
"""An operation on words of wires; the circuit that it builds comes first."""
Numbers = Callable[..., int]
"""The same operation on Python integers."""


class NotForNumpy:
    """What leaves operators to us, and refuses NumPy's functions: they would take a value for its bits."""

    __slots__ = ()
    __array_ufunc__ = None

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise _numpy_refused("NumPy")

    def __array_function__(self, function: Any, *_: Any) -> Any:
        raise _numpy_refused(f"np.{getattr(function, '__name__', 'function')}")


def _numpy_refused(what: str) -> SourceError:
    return SourceError(
        f"{what} cannot compute with traced values",
        where=calling_line(),
        advice="Use operators, @ for products, and `total`, `smallest`, `largest`, `sort`, `where`.",
    )


class Scalar(NotForNumpy):
    """A bit or an integer. `raw` is the number (bits of two's complement) of a concrete value, or the
    wires of a traced one, least significant first; `build` is the circuit that is being traced."""

    __slots__ = ("build", "raw", "type")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, type: Any, raw: Any, build: CircuitBuilder | None = None) -> None:
        self.type: BitType | IntType = type
        self.raw, self.build = raw, build

    @property
    def number(self) -> int:
        """The Python integer of a concrete value."""
        if self.build is not None:
            raise SourceError(
                "a traced value has no number yet: it differs from run to run",
                where=calling_line(),
                advice="Use `where(condition, a, b)` to choose, `array(table)[x]` to look x up in a table.",
            )
        sign = self.type.signed and self.raw >> self.type.width - 1
        return self.raw - (1 << self.type.width) if sign else self.raw

    def wires(self, build: CircuitBuilder) -> Sequence[Wire]:
        """The wires in this circuit; a concrete value becomes constants."""
        if self.build is None:
            return words.constant(build, self.raw, self.type.width)
        if self.build is not build:
            raise SourceError("a value of one trace is used in another", where=calling_line())
        return self.raw

    def __bool__(self) -> bool:
        if self.build is None:
            return self.number != 0
        raise SourceError(
            "the traced function branches (if, while, and, or, not, min, max) on a traced value",
            where=calling_line(),
            advice=rewritten_branch(),
        )

    def __int__(self) -> int:
        return self.number

    __index__ = __int__

    def __repr__(self) -> str:
        return f"{self.type}({self.number})" if self.build is None else f"<traced {self.type}>"

    def __and__(self, other: Any) -> Any:
        return combine(_AND, self, other)

    def __or__(self, other: Any) -> Any:
        return combine(_OR, self, other)

    def __xor__(self, other: Any) -> Any:
        return combine(_XOR, self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Any:
        return evaluate(self.type, lambda g, a: [g.not_(w) for w in a], lambda a: ~a, self)

    def __eq__(self, other: Any) -> Any:
        return compare(_EQUAL, self, other)

    def __ne__(self, other: Any) -> Any:
        equal = compare(_EQUAL, self, other)
        return equal if equal is NotImplemented else ~equal

    def __lt__(self, other: Any) -> Any:
        return compare(_LESS, self, other)

    def __gt__(self, other: Any) -> Any:
        return compare(_LESS, self, other, swapped=True)

    def __le__(self, other: Any) -> Any:
        greater = self > other
        return greater if greater is NotImplemented else ~greater

    def __ge__(self, other: Any) -> Any:
        less = self < other
        return less if less is NotImplemented else ~less

    def to(self, type: IntType) -> "IntValue":
        """The same value in another integer type: extended by its own sign, or cut off at the top."""
        if not isinstance(type, IntType):
            raise SourceError(
                f"cannot turn a {self.type} into {type!r}", advice="Write x[0] or x != 0 for a bit."
            )
        if isinstance(self, IntValue) and self.type == type:
            return self
        return evaluate(
            type, lambda _, a: words.resized(_, a, type.width, signed=self.type.signed), lambda a: a, self
        )


class BitValue(Scalar):
    """A truth value. Bits have logic and comparisons; together with an integer they count as 0 or 1."""

    __slots__ = ()

    def _no_arithmetic(self, *others: Any) -> Any:
        raise SourceError(
            "bits have no arithmetic of their own",
            where=calling_line(),
            advice="Use count_ones, ^ or &, or give the bit a width with .to(UInt(8)).",
        )

    def _left_to_integers(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, IntValue) else self._no_arithmetic()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _left_to_integers
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = _left_to_integers
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __pow__ = __rpow__ = _no_arithmetic
    __neg__ = __abs__ = _no_arithmetic


class IntValue(Scalar):
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

    def __neg__(self) -> "IntValue":
        return self.type(0) - self

    def __abs__(self) -> "IntValue":
        if not self.type.signed:
            return self
        return evaluate(UInt(self.type.width), words.magnitude, lambda a: abs(a), self)

    def __pow__(self, exponent: Any) -> Any:
        if is_number(exponent):
            exponent = _unsigned_number(exponent, "a power")
        elif not isinstance(exponent, Scalar):
            return NotImplemented
        by = _unsigned(exponent, "a power")
        modulus = 1 << self.type.width
        return evaluate(self.type, words.power, lambda a, n: pow(a, n, modulus), self, by)

    def __rpow__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        base, largest = int(other), (1 << self.unsigned("a power").type.width) - 1
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
        number, largest = int(other), (1 << self.unsigned("a shift").type.width) - 1
        if number < 0 or largest >= WIDEST_BY_ITSELF:
            raise _width_unknown(f"{number} <<", f"UInt(8)({number}) <<")
        return _of_width(f"{number} <<", number, number << largest) << self

    def __rrshift__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        number = int(other)
        return _least_type(number)(number) >> self

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
        """Bit `index` (0 is the least significant), or a slice of bits as an unsigned integer."""
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

    def unsigned(self, what: str) -> Self:
        """This value, if it is unsigned."""
        if self.type.signed:
            raise SourceError(
                f"{what} needs an unsigned integer, not {self.type}",
                where=calling_line(),
                advice="Cast with .to(UInt(width)).",
            )
        return self


# How the bits of a result are found, once its type is known.


def evaluate(of: Any, gates: Gates, numbers: Numbers, *operands: Scalar) -> Any:
    """A value of this type: by gates if an operand is traced, else by Python's integers, modulo 2^width."""
    build = next((x.build for x in operands if x.build is not None), None)
    kind = BitValue if isinstance(of, BitType) else IntValue
    if build is None:
        return kind(of, int(numbers(*(x.number for x in operands))) & (1 << of.width) - 1)
    return kind(of, gates(build, *(x.wires(build) for x in operands)), build)


Operation = Callable[[bool], tuple[Gates, Numbers]]
"""Signed or not: the same operation twice, on words of wires and on Python integers."""


def _plain(gates: Gates, numbers: Numbers) -> Operation:
    """An operation that is the same for signed and unsigned words."""
    return lambda signed: (gates, numbers)


def _divided(part: int, numbers: Numbers) -> Operation:
    def operation(signed: bool) -> tuple[Gates, Numbers]:
        way = words.divide_signed if signed else words.divide
        return lambda g, a, b: way(g, a, b)[part], numbers

    return operation


_ADD = _plain(words.add, operator.add)
_SUBTRACT = _plain(words.subtract, operator.sub)
_MULTIPLY = _plain(words.multiply, operator.mul)
_DIVIDE = _divided(0, lambda a, b: a // b if b else -1)
_REMAINDER = _divided(1, lambda a, b: a % b if b else a)
_AND = _plain(lambda g, a, b: list(map(g.and_, a, b)), operator.and_)
_OR = _plain(lambda g, a, b: list(map(g.or_, a, b)), operator.or_)
_XOR = _plain(lambda g, a, b: list(map(g.xor, a, b)), operator.xor)
_EQUAL = _plain(lambda g, a, b: [words.equal(g, a, b)], operator.eq)


def _LESS(signed: bool) -> tuple[Gates, Numbers]:
    return lambda g, a, b: [words.less(g, a, b, signed=signed)], operator.lt


def combine(operation: Operation, a: Scalar, other: Any, *, swapped: bool = False) -> Any:
    """One operation on two values, in the type common to them."""
    if is_number(other):
        other = scalar(other, a.type)
    elif not isinstance(other, Scalar):
        return NotImplemented
    a, b = same_type([other, a] if swapped else [a, other])
    return evaluate(a.type, *operation(a.type.signed), a, b)


def compare(operation: Operation, a: Scalar, other: Any, *, swapped: bool = False) -> Any:
    """A comparison of two numbers: both are widened until the type holds either."""
    if is_number(other):
        other = _least_type(int(other))(int(other))
    elif not isinstance(other, Scalar):
        return NotImplemented
    of = holding_both(a.type, other.type)
    a, b = (other, a) if swapped else (a, other)
    return evaluate(Bit, *operation(of.signed), a.to(of), b.to(of))


def choose(condition: Scalar, a: Any, b: Any) -> Any:
    """`a` if the condition is 1, else `b`, in their common type."""
    a, b = same_type([a, b])
    build = condition.build
    if build is None:
        return a if condition.raw else b
    chosen = words.choose(build, condition.raw[0], a.wires(build), b.wires(build))
    return a.__class__(a.type, chosen, build)


def pick(items: Sequence[Any], index: Scalar) -> Any:
    """The item at an unsigned index; zero beyond the end."""
    items = same_type(items)
    return evaluate(
        items[0].type,
        lambda g, at, *own: words.pick(g, own, at),
        lambda at, *own: own[at] if at < len(own) else 0,
        _unsigned(index, "an index"),
        *items,
    )


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


def _joined(of: BitType | IntType, bits: Sequence[BitValue]) -> Any:
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


# Python numbers among values, and the types of results.


def scalar(value: Any, like: BitType | IntType) -> Scalar:
    """A Python number as a concrete value of this type; -1 stands for all ones in unsigned types too."""
    number = int(value)
    if not -(1 << like.width - 1) <= number < 1 << like.width:
        raise SourceError(
            f"{number} does not fit {like}",
            where=calling_line(),
            advice="Cast the other operand to a wider type with .to(type).",
        )
    return (BitValue if like == Bit else IntValue)(like, number & (1 << like.width) - 1)


def same_type(values: Sequence[Any]) -> list[Any]:
    """All values brought to the one type that is common to them; Python numbers follow the others."""
    first = values[0].type if isinstance(values[0], Scalar) else None
    if first is not None and all(isinstance(x, Scalar) and x.type == first for x in values):
        return list(values)
    types = {x.type for x in values if isinstance(x, Scalar)}
    if not all(isinstance(x, Scalar) or is_number(x) for x in values):
        raise SourceError("only bits and integers can be chosen from", where=calling_line())
    if not types:
        of = reduce(holding_both, (_least_type(int(number)) for number in values))
        raise SourceError(
            "all choices are plain numbers, so their width is unknown",
            where=calling_line(),
            advice=f"Give them a type, such as {of}({values[0]}), or Array({of}, {len(values)})([...]).",
        )
    of = reduce(common_type, types)
    typed = [x if isinstance(x, Scalar) else scalar(x, of) for x in values]
    return [x.to(of) if isinstance(of, IntType) and x.type != of else x for x in typed]


def _least_type(number: int) -> IntType:
    """The least type that holds a number."""
    return Int(number.bit_length() + 1) if number < 0 else UInt(max(number.bit_length(), 1))


def _unsigned(value: Scalar, what: str) -> Scalar:
    return value.unsigned(what) if isinstance(value, IntValue) else value


def _unsigned_number(number: Any, what: str) -> Scalar:
    if int(number) < 0:
        raise SourceError(f"{what} cannot be by {int(number)}", where=calling_line())
    return _least_type(int(number))(int(number))


def _of_width(what: str, number: int, largest: int) -> IntValue:
    """A number in the least type that holds the largest result."""
    of = _least_type(largest)
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
