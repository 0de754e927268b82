"""Arrays of traced values: like Python lists, but an index may itself be traced."""

import operator
from collections.abc import Callable
from typing import Any

from tapegrad.circuits import words
from tapegrad.circuits.choices import item_at, where
from tapegrad.circuits.places import calling_line
from tapegrad.circuits.types import Bit
from tapegrad.circuits.values import BitValue, IntValue, Scalar
from tapegrad.errors import SourceError


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
