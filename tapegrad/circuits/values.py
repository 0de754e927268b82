"""Values with operators: bits and integers that are either traced (wires) or concrete (a Python number).

Concrete values follow Python's integers modulo 2^width and traced ones build gates, so that the same
function computes by two independent routes, and one checks the other.

`+ - * & | ^ // %` work modulo 2^width in the type common to both sides, comparisons on the numbers
themselves: see `tapegrad.circuits.types`.
"""

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Self

from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.types import Bit, BitType, Int, IntType, UInt, common_type, holding_both, is_number
from tapegrad.errors import SourceError, calling_line

Operation = tuple[Callable[..., Any], Callable[..., Any]]
"""The same operation twice: on words of wires, and on Python integers."""

_ADD: Operation = (words.add, operator.add)
_SUBTRACT: Operation = (words.subtract, operator.sub)
_MULTIPLY: Operation = (words.multiply, operator.mul)
_DIVIDE: Operation = (lambda g, a, b: words.divide(g, a, b)[0], lambda a, b: a // b if b else -1)
_REMAINDER: Operation = (lambda g, a, b: words.divide(g, a, b)[1], lambda a, b: a % b if b else a)
_AND: Operation = (lambda g, a, b: list(map(g.and_, a, b)), operator.and_)
_OR: Operation = (lambda g, a, b: list(map(g.or_, a, b)), operator.or_)
_XOR: Operation = (lambda g, a, b: list(map(g.xor, a, b)), operator.xor)


class Scalar:
    """A bit or an integer. `raw` is the number (bits of two's complement) of a concrete value, or the
    wires of a traced one, least significant first; `build` is the circuit that is being traced."""

    __slots__ = ("build", "raw", "type")
    __array_ufunc__ = None  # NumPy leaves operators to us
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
                advice="Use `where(condition, a, b)` to choose, and index arrays with the value itself.",
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
            advice="Use `where(condition, a, b)` instead, and & | ~ instead of and, or, not.",
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

    def __invert__(self) -> Self:
        if self.build is None:
            return self.__class__(self.type, self.raw ^ (1 << self.type.width) - 1)
        return self.__class__(self.type, [self.build.not_(w) for w in self.raw], self.build)

    def __eq__(self, other: Any) -> Any:
        return compare(words.equal, operator.eq, self, other)

    def __ne__(self, other: Any) -> Any:
        equal = compare(words.equal, operator.eq, self, other)
        return equal if equal is NotImplemented else ~equal

    def __lt__(self, other: Any) -> Any:
        return compare(words.less, operator.lt, self, other)

    def __gt__(self, other: Any) -> Any:
        return compare(words.less, operator.lt, self, other, swapped=True)

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
        if self.build is None:
            return IntValue(type, self.number & (1 << type.width) - 1)
        fill = self.raw[-1] if self.type.signed else self.build.constant(False)
        extra = max(type.width - self.type.width, 0)
        return IntValue(type, [*self.raw[: type.width], *([fill] * extra)], self.build)


class BitValue(Scalar):
    """A truth value. Bits have logic and comparisons; together with an integer they count as 0 or 1."""

    __slots__ = ()

    def _no_arithmetic(self, other: Any) -> Any:
        if isinstance(other, IntValue):
            return NotImplemented  # the integer's own operator takes over
        raise SourceError(
            "bits have no arithmetic of their own",
            where=calling_line(),
            advice="Use count_ones, ^ or &, or give the bit a width with .to(UInt(8)).",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _no_arithmetic


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
        """Unsigned division; by zero it gives all ones."""
        return combine(_DIVIDE, self.unsigned("//"), other)

    def __mod__(self, other: Any) -> Any:
        """The remainder of unsigned division; modulo zero it gives the value itself."""
        return combine(_REMAINDER, self.unsigned("%"), other)

    def __neg__(self) -> "IntValue":
        return self.type(0) - self

    def __abs__(self) -> "IntValue":
        return choose(self < 0, -self, self)

    def __lshift__(self, amount: Any) -> "IntValue":
        return self._shifted(amount, right=False)

    def __rshift__(self, amount: Any) -> "IntValue":
        """Signed values keep their sign, as Python's do."""
        return self._shifted(amount, right=True)

    def __rlshift__(self, other: Any) -> Any:
        raise SourceError(
            f"the width of {other} << a traced amount is unknown",
            where=calling_line(),
            advice=f"Give it one: UInt(8)({other}) << amount.",
        )

    def _shifted(self, amount: Any, *, right: bool) -> "IntValue":
        of, build = self.type, self.build
        if isinstance(amount, Scalar) and amount.build is not None:
            by = amount.unsigned("a shift") if isinstance(amount, IntValue) else amount
            build, wires = amount.build, self.wires(amount.build)
            moved = words.shift_by_word(build, wires, by.raw, right=right, signed=of.signed)
            return IntValue(of, moved, build)
        by = min(operator.index(amount), of.width)
        if by < 0:
            raise SourceError(f"cannot shift by {by}", where=calling_line())
        if build is None:
            number = self.number >> by if right else self.number << by
            return IntValue(of, number & (1 << of.width) - 1)
        moved = words.shift(build, self.raw, by, right=right, signed=of.signed)
        return IntValue(of, moved, build)

    def __getitem__(self, index: Any) -> Any:
        """Bit `index` (0 is the least significant), or a slice of bits as an unsigned integer."""
        if isinstance(index, slice):
            return join_bits(self.bits()[index])
        return pick(self.bits(), index) if isinstance(index, Scalar) else self.bits()[index]

    def __len__(self) -> int:
        return self.type.width

    def bits(self) -> list[BitValue]:
        """All bits, least significant first."""
        if self.build is None:
            return [BitValue(Bit, self.raw >> i & 1) for i in range(self.type.width)]
        return [BitValue(Bit, [wire], self.build) for wire in self.raw]

    def unsigned(self, what: str) -> Self:
        """This value, if it is unsigned."""
        if self.type.signed:
            raise SourceError(
                f"{what} needs an unsigned integer, not {self.type}",
                where=calling_line(),
                advice="Cast with .to(UInt(width)).",
            )
        return self


def join_bits(bits: Sequence[BitValue]) -> IntValue:
    """Bits, least significant first, as an unsigned integer."""
    if not bits:
        raise SourceError("an integer has at least one bit", where=calling_line())
    build = next((bit.build for bit in bits if bit.build is not None), None)
    if build is None:
        return IntValue(UInt(len(bits)), sum(bit.raw << i for i, bit in enumerate(bits)))
    return IntValue(UInt(len(bits)), [bit.wires(build)[0] for bit in bits], build)


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


def combine(operation: Operation, a: Scalar, other: Any, *, swapped: bool = False) -> Any:
    """One operation on two values of a common type, with gates or with numbers."""
    if is_number(other):
        other = scalar(other, a.type)
    elif not isinstance(other, Scalar):
        return NotImplemented
    of = common_type(a.type, other.type)
    if isinstance(of, IntType):
        a, other = (x if x.type == of else x.to(of) for x in (a, other))
    a, b = (other, a) if swapped else (a, other)
    build = a.build or b.build
    gates, numbers = operation
    kind = BitValue if isinstance(of, BitType) else IntValue
    if build is None:
        return kind(of, numbers(a.raw, b.raw) & (1 << of.width) - 1)
    return kind(of, gates(build, a.wires(build), b.wires(build)), build)


def compare(
    gates: Callable[..., Wire],
    numbers: Callable[[int, int], bool],
    a: Scalar,
    other: Any,
    *,
    swapped: bool = False,
) -> Any:
    """A comparison of two numbers: both are widened until the type holds either."""
    if is_number(other):
        number = int(other)
        of = Int(number.bit_length() + 1) if number < 0 else UInt(max(number.bit_length(), 1))
        other = of(number)
    elif not isinstance(other, Scalar):
        return NotImplemented
    a, b = (other, a) if swapped else (a, other)
    build = a.build or b.build
    if build is None:
        return BitValue(Bit, int(numbers(a.number, b.number)))
    of = holding_both(a.type, b.type)
    x, y = a.to(of).wires(build), b.to(of).wires(build)
    verdict = gates(build, x, y) if gates is words.equal else gates(build, x, y, signed=of.signed)
    return BitValue(Bit, [verdict], build)


def choose(condition: BitValue, a: Any, b: Any) -> Any:
    """`a` if the condition is 1, else `b`, in their common type."""
    a, b = same_type([a, b])
    if condition.build is None:
        return a if condition.raw else b
    build, (c,) = condition.build, condition.raw
    return a.__class__(a.type, words.choose(build, c, a.wires(build), b.wires(build)), build)


def pick(items: Sequence[Any], index: Scalar) -> Scalar:
    """The item at an unsigned index; zero beyond the end."""
    items = same_type(items)
    first = items[0]
    position = index.unsigned("an index") if isinstance(index, IntValue) else index
    if position.build is None:
        return items[position.number] if position.number < len(items) else first.type(0)
    build = position.build
    return first.__class__(
        first.type, words.pick(build, [x.wires(build) for x in items], position.raw), build
    )


def same_type(values: Sequence[Any]) -> list[Any]:
    """All values brought to the one type that is common to them; Python numbers follow the others."""
    types = {x.type for x in values if isinstance(x, Scalar)}
    if not types:
        raise SourceError(
            "all choices are plain numbers, so their width is unknown",
            where=calling_line(),
            advice="Give one of them a type, such as UInt(8)(3) or Bit(0).",
        )
    of = reduce(common_type, types)
    typed = [x if isinstance(x, Scalar) else scalar(x, of) for x in values]
    return [x.to(of) if isinstance(of, IntType) and x.type != of else x for x in typed]
