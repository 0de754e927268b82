"""Arrays of traced values: like Python lists, but an index may itself be traced."""

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.types import Bit, UInt, is_number
from tapegrad.circuits.values import BitValue, IntValue, Scalar, choose, join_bits, pick, same_type
from tapegrad.errors import SourceError, calling_line

# Choosing without branching: `where` and indexing by traced values, over any structure.


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` if the condition holds, else `b`: bits, integers, arrays, and tuples, lists and dictionaries of
    them. An array of conditions chooses element by element. With an ordinary truth value as condition it
    works on anything at all."""
    if isinstance(condition, list):
        pairs = zip(_spread(a, len(condition)), _spread(b, len(condition)), strict=True)
        return condition.__class__([where(c, x, y) for c, (x, y) in zip(condition, pairs, strict=True)])
    if not isinstance(condition, Scalar) or condition.build is None:
        return a if condition else b
    bit = condition if isinstance(condition, BitValue) else condition != 0
    return _where(bit, a, b)


def _spread(value: Any, length: int) -> Sequence[Any]:
    """One value for each element."""
    return value if isinstance(value, tuple | list) else [value] * length


def _where(bit: BitValue, a: Any, b: Any) -> Any:
    if isinstance(a, Scalar) or isinstance(b, Scalar):
        return choose(bit, a, b)
    if is_number(a) and is_number(b):
        return a if a == b else _number_choice(bit, int(a), int(b))
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return {key: _where(bit, a[key], b[key]) for key in a}
    if isinstance(a, tuple | list) and isinstance(b, tuple | list) and len(a) == len(b):
        return a.__class__([_where(bit, x, y) for x, y in zip(a, b, strict=True)])
    if a is None and b is None:
        return None
    raise SourceError(f"`where` cannot choose between {a!r} and {b!r}", where=calling_line())


def _number_choice(bit: BitValue, a: int, b: int) -> Any:
    """Plain numbers have no width; only 0 and 1, taken for bits, need none."""
    if {a, b} != {0, 1}:
        raise SourceError(
            f"`where` cannot tell the width of {a} and {b}",
            where=calling_line(),
            advice="Give one of them a type, such as UInt(8)(3).",
        )
    return bit if a else ~bit


def item_at(items: Sequence[Any], index: Scalar) -> Any:
    """`items[index]` for an index that may be traced; zero, or zeros, beyond the end."""
    if isinstance(items[0], tuple | list):
        return items[0].__class__([item_at(column, index) for column in zip(*items, strict=True)])
    return pick(items, index)


class ArrayValue(list[Any]):
    """A list of values of one kind. Operators work element by element, and a single value meets every
    element (so `+` adds; `array([*a, *b])` joins). `a[i]` with a traced `i` reads zero beyond the end,
    `a[i] = v` writes nothing there; `a[i, j]` is `a[i][j]`."""

    __array_ufunc__ = None  # NumPy leaves operators to us
    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple):
            first, *deeper = index
            return self[first][tuple(deeper)] if deeper else self[first]
        if isinstance(index, slice):
            return ArrayValue(super().__getitem__(index))
        return item_at(self, index) if isinstance(index, Scalar) else super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, tuple):
            index, *deeper = index
            if deeper:
                row = self[index].copy()
                row[tuple(deeper)] = value
                value = row
        if not isinstance(index, Scalar):
            super().__setitem__(index, value)
            return
        position = index.unsigned("an index") if isinstance(index, IntValue) else index
        if position.build is None:
            if position.number < len(self):
                super().__setitem__(position.number, value)
            return
        for i, flag in enumerate(words.decode(position.build, position.raw, len(self))):
            chosen = where(BitValue(Bit, [flag], position.build), value, self[i])
            super().__setitem__(i, chosen)

    def __bool__(self) -> bool:
        raise SourceError(
            "an array is neither true nor false",
            where=calling_line(),
            advice="Use any_of or all_of, and `where` to choose.",
        )

    def copy(self) -> "ArrayValue":
        """A new array of the same values."""
        return ArrayValue(self)

    def __and__(self, other: Any) -> Any:
        return _each(operator.and_, self, other)

    def __or__(self, other: Any) -> Any:
        return _each(operator.or_, self, other)

    def __xor__(self, other: Any) -> Any:
        return _each(operator.xor, self, other)

    def __add__(self, other: Any) -> Any:
        return _each(operator.add, self, other)

    def __mul__(self, other: Any) -> Any:
        return _each(operator.mul, self, other)

    __rand__, __ror__, __rxor__, __radd__, __rmul__ = __and__, __or__, __xor__, __add__, __mul__
    __iadd__, __imul__ = __add__, __mul__

    def __sub__(self, other: Any) -> Any:
        return _each(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _each(lambda a, b: b - a, self, other)

    def __lshift__(self, other: Any) -> Any:
        return _each(operator.lshift, self, other)

    def __rshift__(self, other: Any) -> Any:
        return _each(operator.rshift, self, other)

    def __eq__(self, other: Any) -> Any:
        return _each(operator.eq, self, other)

    def __ne__(self, other: Any) -> Any:
        return _each(operator.ne, self, other)

    def __lt__(self, other: Any) -> Any:
        return _each(operator.lt, self, other)

    def __le__(self, other: Any) -> Any:
        return _each(operator.le, self, other)

    def __gt__(self, other: Any) -> Any:
        return _each(operator.gt, self, other)

    def __ge__(self, other: Any) -> Any:
        return _each(operator.ge, self, other)

    def __invert__(self) -> "ArrayValue":
        return ArrayValue(~item for item in self)

    def __neg__(self) -> "ArrayValue":
        return ArrayValue(-item for item in self)


def array(values: Any) -> ArrayValue:
    """An array of these values; nested sequences become rows."""
    rows = (array(item) if isinstance(item, tuple | list) else item for item in values)
    return ArrayValue(rows)


def _each(operation: Callable[[Any, Any], Any], a: ArrayValue, b: Any) -> ArrayValue:
    if isinstance(b, Scalar) or not hasattr(b, "__len__"):
        return ArrayValue(operation(item, b) for item in a)
    if len(a) != len(b):
        raise SourceError(
            f"arrays of {len(a)} and {len(b)} elements do not go together", where=calling_line()
        )
    return ArrayValue(operation(x, y) for x, y in zip(a, b, strict=True))


# Many values to one: any, all, parity, count of ones, sum, smallest, largest; and joining bits.
#
# Each takes an array, a list or the bits of an integer, traced or concrete or plain Python numbers.


def any_of(values: Iterable[Any]) -> Any:
    """1 if one of the bits is 1."""
    return _logic(words.any_of, lambda bits: any(bits), values)


def all_of(values: Iterable[Any]) -> Any:
    """1 if all of the bits are 1."""
    return _logic(words.all_of, lambda bits: all(bits), values)


def parity(values: Iterable[Any]) -> Any:
    """1 if an odd number of the bits are 1."""
    return _logic(words.parity, lambda bits: sum(bits) % 2 == 1, values)


def count_ones(values: Iterable[Any]) -> IntValue:
    """How many of the bits are 1, as an unsigned integer just wide enough."""
    bits = _bits(values)
    of = UInt(max(len(bits).bit_length(), 1))
    build = _circuit(bits)
    if build is None:
        return of(sum(bit.raw for bit in bits))
    column = [bit.wires(build)[0] for bit in bits]
    return IntValue(of, words.add_columns(build, [column, *([[]] * (of.width - 1))]), build)


def total(values: Iterable[Any]) -> Any:
    """The sum, modulo 2^width of the widest term."""
    terms = _listed(values)
    build = _circuit(terms)
    if build is None:
        return reduce(operator.add, terms)
    typed = same_type(terms)
    if typed[0].type == Bit:
        raise SourceError("bits have no sum", where=calling_line(), advice="Use count_ones.")
    columns = zip(*(term.wires(build) for term in typed), strict=True)
    return IntValue(typed[0].type, words.add_columns(build, columns), build)


def smallest(values: Iterable[Any]) -> Any:
    """The least of the integers."""
    return _tournament(lambda a, b: where(b < a, b, a), _listed(values))


def largest(values: Iterable[Any]) -> Any:
    """The greatest of the integers."""
    return _tournament(lambda a, b: where(a < b, b, a), _listed(values))


def concat(*pieces: Any) -> IntValue:
    """The bits of all pieces as one unsigned integer, the first piece at the low end."""
    return join_bits([bit for piece in pieces for bit in _bits([piece] if _is_bit(piece) else piece)])


def _is_bit(value: Any) -> bool:
    return isinstance(value, BitValue | bool | int)


def _bits(values: Iterable[Any]) -> list[BitValue]:
    items = values.bits() if isinstance(values, IntValue) else list(values)
    for item in items:
        if isinstance(item, IntValue):
            raise SourceError(
                f"a bit is needed, not {item.type}", where=calling_line(), advice="Write x != 0 or x[0]."
            )
    return [item if isinstance(item, BitValue) else Bit(item) for item in items]


def _listed(values: Iterable[Any]) -> list[Any]:
    terms = list(values)
    if not terms:
        raise SourceError("nothing to add up or compare", where=calling_line())
    return terms


def _circuit(values: Sequence[Any]) -> CircuitBuilder | None:
    return next((v.build for v in values if isinstance(v, Scalar) and v.build is not None), None)


def _logic(
    gates: Callable[..., int], numbers: Callable[[list[int]], bool], values: Iterable[Any]
) -> BitValue:
    bits = _bits(values)
    build = _circuit(bits)
    if build is None:
        return Bit(numbers([bit.raw for bit in bits]))
    return BitValue(Bit, [gates(build, [bit.wires(build)[0] for bit in bits])], build)


def _tournament(better: Callable[[Any, Any], Any], level: list[Any]) -> Any:
    while len(level) > 1:
        winners = [better(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = winners + level[len(level) // 2 * 2 :]
    return level[0]
