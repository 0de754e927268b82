"""The types of traced values: single values (`scalars.py`), arrays of them; and how they lie on wires.

A *layout* is a type, or a tuple, list or dictionary of layouts. It turns into bits in order, least
significant bit first, and every bit gets a name:

    Bit             x                  any other of 8 bits     x[0] ... x[7]
    Array(Bit, 3)   x[0] ... x[2]      Array(UInt(8), 3)       x[0][0] ... x[2][7]
    tuple or list   x[0], x[1], ...    dictionary              x.key (key alone for a result)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.scalars import (
    BFloat16,
    Bit,
    BitType,
    Fixed,
    Float,
    Float16,
    Float32,
    Float64,
    Int,
    IntType,
    ScalarType,
    UFixed,
    UInt,
    Words,
    scalar_type,
    words_of,
)
from tapegrad.errors import InputError, SourceError

__all__ = [
    "Array",
    "BFloat16",
    "Bit",
    "BitType",
    "Fixed",
    "Float",
    "Float16",
    "Float32",
    "Float64",
    "Int",
    "IntType",
    "Layout",
    "ScalarType",
    "Type",
    "UFixed",
    "UInt",
    "from_bits",
    "integers",
    "layout_from_json",
    "layout_to_json",
    "many_from_bits",
    "many_to_words",
    "names",
    "parts",
    "to_bits",
]

if TYPE_CHECKING:
    from tapegrad.circuits.arrays import ArrayValue


@dataclass(frozen=True)
class Array:
    """`Array(UInt(8), 4)`: four integers; `Array(Bit, 3, 5)`: three rows of five bits."""

    element: "ScalarType | Array"
    length: int

    def __init__(self, element: "ScalarType | Array", *shape: int) -> None:
        if not shape or min(shape) < 1:
            raise SourceError("an array type needs the number of its elements, at least 1")
        object.__setattr__(self, "element", Array(element, *shape[1:]) if shape[1:] else element)
        object.__setattr__(self, "length", shape[0])

    value: ClassVar[type]

    def __call__(self, values: Any) -> "ArrayValue":
        return self.value([self.element(item) for item in self.items(values)])

    def items(self, values: Any) -> list[Any]:
        """The elements of a Python sequence, which must be as many as the type says."""
        if not hasattr(values, "__len__") or len(values) != self.length:
            raise InputError(f"{values!r} is no sequence of {self.length} elements")
        return list(values)

    def __repr__(self) -> str:
        return f"Array({self.element}, {self.length})"


Type = ScalarType | Array
Layout = Any
"""A type, or a tuple, list or dictionary of layouts."""


def parts(layout: Layout, name: str) -> Iterator[tuple[str, Layout]]:
    """The named parts of a layout that is no single value."""
    if isinstance(layout, Array):
        yield from ((f"{name}[{i}]", layout.element) for i in range(layout.length))
    elif isinstance(layout, tuple | list):
        yield from ((f"{name}[{i}]", part) for i, part in enumerate(layout))
    elif isinstance(layout, dict):
        yield from ((f"{name}.{key}" if name else str(key), part) for key, part in layout.items())
    else:
        raise _no_type(layout, name)


_INSTEAD = {
    int: "An integer has a width here: write UInt(8) for 0 to 255, Int(8) for -128 to 127, or other widths.",
    bool: "Write `Bit` for a single bit.",
    float: "Write Fixed(8, 8) for 8 bits before the point and 8 after it, or `Float16`.",
    list: "A list has a fixed length here: write Array(UInt(8), 4) for four integers of 8 bits.",
}
"""For types of Python's own: what to write."""


def _no_type(layout: Any, name: str) -> SourceError:
    plain = isinstance(layout, type) and not hasattr(layout, "__origin__")  # list[int] is a type and is not
    return SourceError(
        f"{layout.__name__ if plain else repr(layout)} is no type for bits",
        where=name,
        advice=_INSTEAD.get(
            getattr(layout, "__origin__", layout),
            "Use `Bit`, UInt(8), Int(16), Fixed(8, 8), `Float16`, Array(UInt(8), 4) or tuples, lists and "
            "dictionaries of them.",
        ),
    )


def names(layout: Layout, name: str) -> Iterator[str]:
    """The name of every bit, in order."""
    if isinstance(layout, BitType):
        yield name
    elif isinstance(layout, ScalarType):
        yield from (f"{name}[{i}]" for i in range(layout.width))
    else:
        for part_name, part in parts(layout, name):
            yield from names(part, part_name)


def to_bits(layout: Layout, value: Any) -> Iterator[int]:
    """The bits of a Python value, in order."""
    if isinstance(layout, ScalarType):
        number = layout.residue(value)
        yield from (number >> i & 1 for i in range(layout.width))
        return
    if isinstance(layout, dict):
        if not isinstance(value, dict) or value.keys() != layout.keys():
            raise InputError(f"{value!r} is no dictionary with the keys {', '.join(map(str, layout))}")
        items: Any = [value[key] for key in layout]
    elif isinstance(layout, Array):
        items = layout.items(value)
    else:
        if not hasattr(value, "__len__") or len(value) != len(layout):
            raise InputError(f"{value!r} is no sequence of {len(layout)} elements")
        items = value
    for (_, part), item in zip(parts(layout, ""), items, strict=True):
        yield from to_bits(part, item)


def from_bits(layout: Layout, bits: Iterator[Any]) -> Any:
    """The Python value whose bits these are: the inverse of `to_bits`."""
    if isinstance(layout, BitType):
        return bool(next(bits))
    if isinstance(layout, ScalarType):
        return layout.number(sum(int(next(bits)) << i for i in range(layout.width)))
    items = [from_bits(part, bits) for _, part in parts(layout, "")]
    if isinstance(layout, dict):
        return dict(zip(layout, items, strict=True))
    return tuple(items) if isinstance(layout, tuple) else items


def many_to_words(layout: Layout, values: Sequence[Any] | NDArray[Any]) -> Words:
    """The words of many values: of an array or a list of integers at once, else every bit as one."""
    if isinstance(layout, ScalarType | Array):
        shape, of = shape_of(layout)
        array = values if isinstance(values, np.ndarray) else integers(values)
        if array is not None and array.shape[1:] == shape:
            return Words(of.residues(array.reshape(-1)).reshape(array.shape), of.width)
    bits = [list(to_bits(layout, value)) for value in values]
    return Words(np.array(bits, np.uint64).reshape(len(values), sum(1 for _ in names(layout, ""))), 1)


def many_from_bits(layout: Layout, bits: NDArray[Any]) -> Any:
    """The values of many rows of bits: arrays where `from_bits` has numbers and lists of them."""
    if isinstance(layout, ScalarType | Array):
        shape, of = shape_of(layout)
        words = words_of(bits.reshape(-1, of.width))
        return of.numbers(words).reshape(len(bits), *shape)
    own = [part for _, part in parts(layout, "")]
    ends = np.cumsum([sum(1 for _ in names(part, "")) for part in own])
    found = [
        many_from_bits(part, columns) for part, columns in zip(own, np.split(bits, ends[:-1], 1), strict=True)
    ]
    return dict(zip(layout, found, strict=True)) if isinstance(layout, dict) else type(layout)(found)


def shape_of(layout: Type) -> tuple[tuple[int, ...], ScalarType]:
    """Of an array the axes and the type of a single value."""
    if isinstance(layout, ScalarType):
        return (), layout
    shape, of = shape_of(layout.element)
    return (layout.length, *shape), of


def integers(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any] | None:
    """Integers as an array; None where there is anything else, or what no type of NumPy's holds."""
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        return None
    return array if array.dtype.kind in "biu" else None


def layout_to_json(layout: Layout) -> Any:
    """A layout as plain JSON: `"Bit"`, `"UInt(8)"`, `"Float(5, 10)"`, `{"array": ..., "length": 4}`, lists
    and objects."""
    if isinstance(layout, ScalarType):
        return repr(layout)
    if isinstance(layout, Array):
        return {"array": layout_to_json(layout.element), "length": layout.length}
    if isinstance(layout, dict):
        return {"fields": {key: layout_to_json(part) for key, part in layout.items()}}
    kind = "tuple" if isinstance(layout, tuple) else "list"
    return {kind: [layout_to_json(part) for part in layout]}


def layout_from_json(data: Any) -> Layout:
    """The layout again; anything else is a ValueError."""
    if isinstance(data, str):
        return scalar_type(data)
    if "array" in data:
        return Array(layout_from_json(data["array"]), int(data["length"]))  # type: ignore[arg-type]
    if "fields" in data:
        return {str(key): layout_from_json(part) for key, part in data["fields"].items()}
    items = [layout_from_json(part) for part in data.get("tuple", data.get("list"))]
    return tuple(items) if "tuple" in data else items
