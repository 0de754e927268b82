"""Arrays of traced values, whose indices may themselves be traced; and choosing without branching.

Indexing is NumPy's, as far as it goes: numbers, slices, tuples of them, and traced numbers; anything else is
refused. Two things differ, as with Python's lists: a slice is a copy, and a traced index beyond the end reads
zero and writes nothing. A number that is assigned takes the type of what it replaces. Operators work element
by element; of two shapes the smaller meets every row of the larger, as in NumPy, but nothing of length 1 is
stretched.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tapegrad.circuits.fixed import FixedValue
from tapegrad.circuits.operations import NotForNumpy, Scalar, choose, evaluate, same_type, scalar
from tapegrad.circuits.scalars import (
    Bit,
    Float,
    Float16,
    Float32,
    Float64,
    Int,
    ScalarType,
    UInt,
    is_number,
    is_real,
)
from tapegrad.circuits.types import Array
from tapegrad.circuits.values import BitValue, flags, pick
from tapegrad.circuits.words import add_columns
from tapegrad.errors import SourceError, calling_line


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` if the condition holds, else `b`: single values, arrays, and tuples, lists and dictionaries of
    them. An array of conditions chooses element by element. With an ordinary truth value as condition it
    works on anything at all."""
    if isinstance(condition, list):
        rows = zip(condition, _rows(a, condition), _rows(b, condition), strict=True)
        return condition.__class__([where(c, x, y) for c, x, y in rows])
    if not isinstance(condition, Scalar):
        return a if condition else b
    return _where(condition if isinstance(condition, BitValue) else condition != 0, a, b)


def _where(bit: BitValue, a: Any, b: Any) -> Any:
    if isinstance(a, Scalar) or isinstance(b, Scalar):
        return choose(bit, a, b)
    if is_real(a) and is_real(b):
        return a if a == b else _number_choice(bit, a, b)
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return {key: _where(bit, a[key], b[key]) for key in a}
    if isinstance(a, tuple | list) and isinstance(b, tuple | list) and len(a) == len(b):
        return a.__class__([_where(bit, x, y) for x, y in zip(a, b, strict=True)])
    if a is None and b is None:
        return None
    raise SourceError(f"`where` cannot choose between {a!r} and {b!r}", where=calling_line())


def _number_choice(bit: BitValue, a: Any, b: Any) -> Any:
    """Plain numbers have no type; only 0 and 1, taken for bits, need none."""
    if {a, b} != {0, 1} or not (is_number(a) and is_number(b)):
        raise SourceError(
            f"`where` cannot tell the type of {a} and {b}",
            where=calling_line(),
            advice="Give one of them a type, such as UInt(8)(3).",
        )
    return bit if a else ~bit


def item_at(items: Sequence[Any], index: Scalar) -> Any:
    """`items[index]` for an index of an integer type; zero, or zeros, beyond the end."""
    if isinstance(items[0], tuple | list):
        return items[0].__class__([item_at(column, index) for column in zip(*items, strict=True)])
    return pick(items, index)


class ArrayValue(NotForNumpy, list[Any]):
    """A list of values of one kind, or of rows. `+` adds; `array([*a, *b])` joins. An index that is traced,
    or of an integer type, reads 0 beyond the end and writes nothing there; a Python number is an error."""

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> Any:
        first, *deeper = _indices(index)
        if isinstance(first, slice):
            rows = ArrayValue(super().__getitem__(first))
            return ArrayValue([row[tuple(deeper)] for row in rows]) if deeper else rows
        item = item_at(self, first) if isinstance(first, Scalar) else super().__getitem__(first)
        return item[tuple(deeper)] if deeper else item

    def __setitem__(self, index: Any, value: Any) -> None:
        first, *deeper = _indices(index)
        if isinstance(first, slice):
            places = range(*first.indices(len(self)))
            values = _rows(value, [self[place] for place in places], _depth(self) - _lost(deeper))
            if len(values) != len(places):
                raise SourceError(
                    f"{len(values)} values cannot be assigned to {len(places)} places", where=calling_line()
                )
            for place, own in zip(places, values, strict=True):
                self[(place, *deeper)] = own
        elif isinstance(first, Scalar):
            for place, flag in enumerate(flags(first, len(self))):
                at = (place, *deeper)
                self[at] = _where(flag, value, self[at])
        elif deeper or isinstance(self[first], ArrayValue):
            self[first][tuple(deeper) or slice(None)] = value
        else:
            old = self[first]
            number = is_real(value) and isinstance(old, Scalar)
            super().__setitem__(first, scalar(value, old.type) if number else value)

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

    def __floordiv__(self, other: Any) -> Any:
        return _each(operator.floordiv, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _each(lambda a, b: b // a, self, other)

    def __truediv__(self, other: Any) -> Any:
        return _each(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _each(lambda a, b: b / a, self, other)

    def __mod__(self, other: Any) -> Any:
        return _each(operator.mod, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _each(lambda a, b: b % a, self, other)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        return _each(operator.pow, self, other)

    def __rpow__(self, other: Any) -> Any:
        return _each(lambda a, b: b**a, self, other)

    def __lshift__(self, other: Any) -> Any:
        return _each(operator.lshift, self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _each(lambda a, b: b << a, self, other)

    def __rshift__(self, other: Any) -> Any:
        return _each(operator.rshift, self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _each(lambda a, b: b >> a, self, other)

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
        return ArrayValue([~item for item in self])

    def __neg__(self) -> "ArrayValue":
        return ArrayValue([-item for item in self])

    def __abs__(self) -> "ArrayValue":
        return ArrayValue([abs(item) for item in self])

    def __matmul__(self, other: Any) -> Any:
        """The product of vectors or matrices; NumPy's numbers follow the others, as in `+`."""
        return _product(self, _untyped(other))

    def __rmatmul__(self, other: Any) -> Any:
        return _product(_untyped(other), self)


Array.value = ArrayValue


def array(values: Any) -> ArrayValue:
    """An array of these values; nested sequences become rows. Bytes are of type UInt(8), elements of NumPy's
    arrays of the type that their dtype says; Python numbers take the type of whatever they meet."""
    if isinstance(values, bytes | bytearray):
        return ArrayValue([UInt(8)(value) for value in values])
    if isinstance(values, np.ndarray):
        return Array(_element(values.dtype), *values.shape)(values.tolist())
    rows = (array(item) if isinstance(item, tuple | list | bytes | np.ndarray) else item for item in values)
    return ArrayValue(rows)


def _untyped(values: Any) -> ArrayValue:
    return array(values.tolist() if isinstance(values, np.ndarray) else values)


def _element(dtype: np.dtype[Any]) -> ScalarType:
    floats = {2: Float16, 4: Float32, 8: Float64}
    kinds = {"b": lambda _: Bit, "u": UInt, "i": Int, "f": lambda width: floats.get(width // 8)}
    if dtype.kind not in kinds or kinds[dtype.kind](8 * dtype.itemsize) is None:
        raise SourceError(
            f"an array of {dtype} holds no bits or numbers",
            where=calling_line(),
            advice="Convert it, as in values.astype(np.uint8).",
        )
    return kinds[dtype.kind](8 * dtype.itemsize)


def total(values: Iterable[Any]) -> Any:
    """The sum in the type common to all terms: modulo 2^width, or of floats from left to right."""
    terms = listed(values)
    if not any(isinstance(term, Scalar) for term in terms):
        return sum(terms)
    typed = same_type(terms)
    if typed[0].type == Bit:
        raise SourceError("bits have no sum", where=calling_line(), advice="Use count_ones.")
    if isinstance(typed[0].type, Float):
        return sum(typed[1:], typed[0])
    if isinstance(typed[0], FixedValue):
        return typed[0].of_steps(total([term.steps for term in typed]))
    return evaluate(
        typed[0].type,
        lambda g, *own: add_columns(g, zip(*own, strict=True)),
        lambda *own: sum(own),
        *typed,
    )


def listed(values: Iterable[Any]) -> list[Any]:
    """The values, at least one."""
    terms = list(values)
    if not terms:
        raise SourceError("nothing to add up or compare", where=calling_line())
    return terms


# Shapes.


def _indices(index: Any) -> tuple[Any, ...]:
    """The index of every axis that is indexed."""
    indices = index if isinstance(index, tuple) else (index,)
    for own in indices:
        if not isinstance(own, Scalar | slice) and (not is_number(own) or isinstance(own, bool | np.bool_)):
            raise SourceError(
                f"an array cannot be indexed by {own!r}",
                where=calling_line(),
                advice="Use numbers, slices, traced integers, or tuples of them; `where` for masks.",
            )
    if not indices:
        raise SourceError("an array needs an index", where=calling_line())
    return indices


def _depth(value: Any) -> int:
    """The number of axes."""
    return 1 + _depth(value[0]) if isinstance(value, tuple | list | np.ndarray) and len(value) else 0


def _lost(indices: Sequence[Any]) -> int:
    """How many axes these indices take away."""
    return sum(not isinstance(index, slice) for index in indices)


def _rows(value: Any, shape: Sequence[Any], depth: int | None = None) -> Sequence[Any]:
    """A value for every row of a shape: its own rows if it has as many axes, else the whole for each."""
    depth = _depth(shape) if depth is None else depth
    return value if _depth(value) >= depth else [value] * len(shape)


def _each(operation: Callable[[Any, Any], Any], a: ArrayValue, b: Any) -> Any:
    if isinstance(b, Scalar) or not hasattr(b, "__len__"):
        return ArrayValue([operation(item, b) for item in a])
    if (depths := _depth(a) - _depth(b)) > 0:
        return ArrayValue([operation(row, b) for row in a])
    if depths < 0:
        return ArrayValue([operation(a, row if isinstance(row, ArrayValue) else array(row)) for row in b])
    if len(a) != len(b):
        raise SourceError(
            f"arrays of {len(a)} and {len(b)} elements do not go together", where=calling_line()
        )
    return ArrayValue([operation(x, y) for x, y in zip(a, b, strict=True)])


def _product(a: ArrayValue, b: ArrayValue) -> Any:
    if _depth(a) > 1:
        return ArrayValue([_product(row, b) for row in a])
    if len(a) != len(b):
        raise SourceError(
            f"a row of {len(a)} and a column of {len(b)} elements have no product", where=calling_line()
        )
    if _depth(b) > 1:
        return ArrayValue([_product(a, ArrayValue(column)) for column in zip(*b, strict=True)])
    return total([x * y for x, y in zip(a, b, strict=True)])
