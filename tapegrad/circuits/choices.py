"""Choosing without branching: `where` and indexing by traced values, over any structure."""

from collections.abc import Sequence
from typing import Any

from tapegrad.circuits.places import calling_line
from tapegrad.circuits.values import BitValue, Scalar, choose, pick
from tapegrad.circuits.widths import is_number
from tapegrad.errors import SourceError


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
