"""What all typed values have in common: a type, and bits, either traced (wires) or concrete (a number).

The type of a result depends on the types of the operands alone, traced or not: it is decided first, and then
`evaluate` finds the bits. Concrete values follow Python's numbers, wrapped or rounded as the type says, and
traced ones build gates, so that the same function computes by two independent routes, and one checks the
other.
"""

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tapegrad.circuits import words
from tapegrad.circuits.branches import rewritten_branch, rewritten_lookup
from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.scalars import (
    Bit,
    BitType,
    IntType,
    ScalarType,
    common_type,
    holding_both,
    is_number,
    is_real,
    least_type,
)
from tapegrad.errors import SourceError, calling_line

Gates = Callable[..., Sequence[Wire]]
"""An operation on words of wires; the circuit that it builds comes first."""
Numbers = Callable[..., Any]
"""The same operation on Python's numbers."""


class NotForNumpy:
    """What leaves operators to us, and refuses NumPy's functions: they would take a value for its bits."""

    __slots__ = ()
    __array_ufunc__ = None

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise _numpy_refused("NumPy")

    def __array_function__(self, function: Any, *_: Any) -> Any:
        raise _numpy_refused(f"np.{getattr(function, '__name__', 'function')}")


def _numpy_refused(what: str) -> SourceError:
    general = "Use operators, @ for products, and `total`, `smallest`, `largest`, `sort`, `where`."
    return SourceError(
        f"{what} cannot compute with traced values", where=calling_line(), advice=rewritten_lookup(general)
    )


class Scalar(NotForNumpy):
    """A single value. `raw` is the number (whose binary digits are the bits) of a concrete one, or the
    wires of a traced one, least significant first; `build` is the circuit that is being traced."""

    __slots__ = ("build", "raw", "type")

    def __hash__(self) -> int:
        raise SourceError(
            "the key of a dictionary or the element of a set must be known, and it depends on the arguments",
            where=calling_line(),
            advice="Use `array(table)[x]` to look x up in a table, and `any_of(array([1, 3]) == x)` for "
            "x in {1, 3}.",
        )

    def __init__(self, type: Any, raw: Any, build: CircuitBuilder | None = None) -> None:
        self.type: Any = type
        self.raw, self.build = raw, build

    @property
    def number(self) -> Any:
        """The Python number of a concrete value."""
        if self.build is not None:
            raise SourceError(
                "this needs a number that is known, and what comes from the arguments is not known yet",
                where=calling_line(),
                advice=rewritten_lookup(),
            )
        return self.type.number(self.raw)

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
            "the way to go here (if, while, and, or, not, min, max) depends on the arguments, which are not "
            "known while the function is turned into a circuit",
            where=calling_line(),
            advice=rewritten_branch(self),
        )

    def __repr__(self) -> str:
        return f"{self.type}({self.number})" if self.build is None else f"<traced {self.type}>"

    def __pos__(self) -> Any:
        return self

    def __eq__(self, other: Any) -> Any:
        return compare(EQUAL, self, other)

    def __ne__(self, other: Any) -> Any:
        equal = self == other
        return equal if equal is NotImplemented else ~equal

    def __lt__(self, other: Any) -> Any:
        return compare(LESS, self, other)

    def __gt__(self, other: Any) -> Any:
        return compare(LESS, self, other, swapped=True)

    def __le__(self, other: Any) -> Any:
        greater = self > other
        return greater if greater is NotImplemented else ~greater

    def __ge__(self, other: Any) -> Any:
        less = self < other
        return less if less is NotImplemented else ~less

    def to(self, type: ScalarType) -> Any:
        """The same number in another type. Fractions that it cannot hold are rounded down by integers and
        fixed-point types, which also cut off what is too large at the top, and to nearest by floats."""
        if not isinstance(type, ScalarType) or type == Bit:
            raise SourceError(
                f"cannot turn a {self.type} into {type!r}", advice="Write x[0] or x != 0 for a bit."
            )
        return self if self.type == type else type.value.converted(type, self)

    def times_power(self, of: IntType, power: int) -> Any:
        """This number times 2^power, rounded down, modulo 2^width, as an integer: what conversions to
        integers and fixed-point numbers are made of."""
        raise NotImplementedError


# How the bits of a result are found, once its type is known.


def evaluate(of: Any, gates: Gates, numbers: Numbers, *operands: Scalar) -> Any:
    """A value of this type: by gates if an operand is traced, else by Python's numbers."""
    build = next((x.build for x in operands if x.build is not None), None)
    if build is None:
        return of.value(of, of.raw(numbers(*(x.number for x in operands))))
    return of.value(of, gates(build, *(x.wires(build) for x in operands)), build)


Operation = Callable[[bool], tuple[Gates, Numbers]]
"""Signed or not: the same operation twice, on words of wires and on Python integers."""


def plain(gates: Gates, numbers: Numbers) -> Operation:
    """An operation that is the same for signed and unsigned words."""
    return lambda signed: (gates, numbers)


EQUAL = plain(lambda g, a, b: [words.equal(g, a, b)], operator.eq)


def LESS(signed: bool) -> tuple[Gates, Numbers]:
    return lambda g, a, b: [words.less(g, a, b, signed=signed)], operator.lt


def combine(operation: Operation, a: Scalar, other: Any, *, swapped: bool = False) -> Any:
    """One operation on two values, in the type common to them."""
    if (other := partner(a, other)) is None:
        return NotImplemented
    a, b = same_type([other, a] if swapped else [a, other])
    return evaluate(a.type, *operation(a.type.signed), a, b)


def compare(operation: Operation, a: Scalar, other: Any, *, swapped: bool = False) -> Any:
    """A comparison of two integers: both are widened until the type holds either."""
    if is_number(other):
        other = least_type(int(other))(int(other))
    elif (other := partner(a, other)) is None:
        return NotImplemented
    if not isinstance(other.type, BitType | IntType):
        return NotImplemented  # fixed-point numbers and floats compare by themselves
    of = holding_both(a.type, other.type)
    a, b = (other, a) if swapped else (a, other)
    return evaluate(Bit, *operation(of.signed), a.times_power(of, 0), b.times_power(of, 0))


def partner(a: Scalar, other: Any) -> Scalar | None:
    """The other side of an operation as a value; a Python number takes the type of this one."""
    if isinstance(other, np.ndarray):
        raise SourceError(
            "an array of NumPy is no single value", where=calling_line(), advice="Write array(values) first."
        )
    return scalar(other, a.type) if is_real(other) else other if isinstance(other, Scalar) else None


def choose(condition: Scalar, a: Any, b: Any) -> Any:
    """`a` if the condition is 1, else `b`, in their common type."""
    a, b = same_type([a, b])
    build = condition.build
    if build is None:
        return a if condition.raw else b
    chosen = words.choose(build, condition.raw[0], a.wires(build), b.wires(build))
    return a.__class__(a.type, chosen, build)


# Python numbers among values, and the types of results.


def scalar(value: Any, like: ScalarType) -> Scalar:
    """A Python number as a concrete value of this type; -1 stands for all ones in unsigned types too."""
    if not isinstance(like, BitType | IntType):
        return like(value)
    if not is_number(value):
        raise SourceError(
            f"{value} is no integer, and {like} holds nothing else",
            where=calling_line(),
            advice="Cast the other operand with .to(type), to a Fixed or Float type.",
        )
    number = int(value)
    if not -(1 << like.width - 1) <= number < 1 << like.width:
        raise SourceError(
            f"{number} does not fit {like}",
            where=calling_line(),
            advice="Cast the other operand to a wider type with .to(type).",
        )
    return like.value(like, like.raw(number))


def same_type(values: Sequence[Any]) -> list[Any]:
    """All values brought to the one type that is common to them; Python numbers follow the others."""
    first = values[0].type if isinstance(values[0], Scalar) else None
    if first is not None and all(isinstance(x, Scalar) and x.type == first for x in values):
        return list(values)
    types = {x.type for x in values if isinstance(x, Scalar)}
    if not all(isinstance(x, Scalar) or is_real(x) for x in values):
        raise SourceError("only single values can be chosen from", where=calling_line())
    if not types:
        raise SourceError(
            "all choices are plain numbers, so their type is unknown",
            where=calling_line(),
            advice=f"Give one of them a type, such as UInt(8)({values[0]}).",
        )
    of = reduce(common_type, types)
    typed = [x if isinstance(x, Scalar) else scalar(x, of) for x in values]
    return [x.to(of) if x.type != of else x for x in typed]
