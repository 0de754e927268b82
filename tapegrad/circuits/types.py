"""The types of traced values: bits, integers of a fixed width, arrays; and how they lie on wires.

Calling a type makes a value. Of what class, `values.py` and `arrays.py` say when they are imported, since
they stand above this file.

A *layout* is a type, or a tuple, list or dictionary of layouts. It turns into bits in order, least
significant bit first, and every bit gets a name:

    Bit             x                  UInt(8) or Int(8)       x[0] ... x[7]
    Array(Bit, 3)   x[0] ... x[2]      Array(UInt(8), 3)       x[0][0] ... x[2][7]
    tuple or list   x[0], x[1], ...    dictionary              x.key (key alone for a result)
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tapegrad.errors import InputError, SourceError, calling_line

if TYPE_CHECKING:
    from tapegrad.circuits.arrays import ArrayValue
    from tapegrad.circuits.values import BitValue, IntValue


@dataclass(frozen=True)
class BitType:
    """One bit. There is a single one, `Bit`; calling it makes a value: `Bit(1)`."""

    width: ClassVar[int] = 1
    signed: ClassVar[bool] = False

    value: ClassVar[type]
    """Of what class its values are."""

    def __call__(self, value: Any = 0) -> "BitValue":
        return self.value(self, residue(self, value))

    def __repr__(self) -> str:
        return "Bit"


Bit = BitType()


@dataclass(frozen=True)
class IntType:
    """An integer of `width` bits, written `UInt(8)` or `Int(8)`. Calling the type makes a value:
    `UInt(8)(200)`."""

    width: int
    signed: ClassVar[bool] = False
    value: ClassVar[type]

    def __post_init__(self) -> None:
        if not 1 <= self.width <= 1 << 16:
            raise SourceError(f"an integer type has 1 to 65536 bits, not {self.width}")

    def __call__(self, value: Any = 0) -> "IntValue":
        return self.value(self, residue(self, value))

    def __repr__(self) -> str:
        return f"{'Int' if self.signed else 'UInt'}({self.width})"


class UInt(IntType):
    """Unsigned: 0 to 2^width - 1."""


class Int(IntType):
    """Signed, two's complement: -2^(width-1) to 2^(width-1) - 1."""

    signed: ClassVar[bool] = True


@dataclass(frozen=True)
class Array:
    """`Array(UInt(8), 4)`: four integers; `Array(Bit, 3, 5)`: three rows of five bits."""

    element: "BitType | IntType | Array"
    length: int

    def __init__(self, element: "BitType | IntType | Array", *shape: int) -> None:
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


Type = BitType | IntType | Array
Layout = Any
"""A type, or a tuple, list or dictionary of layouts."""


def limits(of: BitType | IntType) -> tuple[int, int]:
    """The smallest and the largest value."""
    if of.signed:
        return -(1 << of.width - 1), (1 << of.width - 1) - 1
    return 0, (1 << of.width) - 1


def residue(of: BitType | IntType, value: Any) -> int:
    """A Python integer in range, as the number whose binary digits are the bits of the value."""
    low, high = limits(of)
    if not hasattr(value, "__index__") and not isinstance(value, np.bool_):
        raise InputError(f"{value!r} is no integer, so it does not fit {of}")
    number = int(value)
    if not low <= number <= high:
        raise InputError(f"{number} does not fit {of}, which holds {low} to {high}")
    return number & (1 << of.width) - 1


def parts(layout: Layout, name: str) -> Iterator[tuple[str, Layout]]:
    """The named parts of a layout that is not a bit or an integer."""
    if isinstance(layout, Array):
        yield from ((f"{name}[{i}]", layout.element) for i in range(layout.length))
    elif isinstance(layout, tuple | list):
        yield from ((f"{name}[{i}]", part) for i, part in enumerate(layout))
    elif isinstance(layout, dict):
        yield from ((f"{name}.{key}" if name else str(key), part) for key, part in layout.items())
    else:
        raise SourceError(
            f"{layout!r} is no type",
            where=name,
            advice="Use Bit, UInt(8), Int(16), Array(UInt(8), 4) or tuples, lists and dictionaries of them.",
        )


def names(layout: Layout, name: str) -> Iterator[str]:
    """The name of every bit, in order."""
    if isinstance(layout, BitType):
        yield name
    elif isinstance(layout, IntType):
        yield from (f"{name}[{i}]" for i in range(layout.width))
    else:
        for part_name, part in parts(layout, name):
            yield from names(part, part_name)


def to_bits(layout: Layout, value: Any) -> Iterator[int]:
    """The bits of a Python value, in order."""
    if isinstance(layout, BitType | IntType):
        number = residue(layout, value)
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
    if isinstance(layout, IntType):
        number = sum(int(next(bits)) << i for i in range(layout.width))
        return number - (1 << layout.width) if layout.signed and number >> layout.width - 1 else number
    items = [from_bits(part, bits) for _, part in parts(layout, "")]
    if isinstance(layout, dict):
        return dict(zip(layout, items, strict=True))
    return tuple(items) if isinstance(layout, tuple) else items


def layout_to_json(layout: Layout) -> Any:
    """A layout as plain JSON: `"Bit"`, `"UInt(8)"`, `{"array": ..., "length": 4}`, lists and objects."""
    if isinstance(layout, BitType | IntType):
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
        match = re.fullmatch(r"(U?Int)\(([1-9][0-9]{0,5})\)", data)
        if data != "Bit" and match is None:
            raise ValueError(f"{data[:40]!r} is no type")
        return Bit if match is None else {"UInt": UInt, "Int": Int}[match[1]](int(match[2]))
    if "array" in data:
        return Array(layout_from_json(data["array"]), int(data["length"]))  # type: ignore[arg-type]
    if "fields" in data:
        return {str(key): layout_from_json(part) for key, part in data["fields"].items()}
    items = [layout_from_json(part) for part in data.get("tuple", data.get("list"))]
    return tuple(items) if "tuple" in data else items


# Which type a result has.
#
# Of two integers the wider type wins, and the narrower is extended by its own sign; signed and unsigned do
# not mix without `.to(type)`. A Python number or a bit takes the type of its partner. Comparisons widen both
# sides until neither loses anything, so they compare the numbers whatever the types.


def is_number(value: Any) -> bool:
    """Whether this is an ordinary Python or NumPy integer or truth value."""
    return isinstance(value, int | np.integer | np.bool_)


def common_type(a: BitType | IntType, b: BitType | IntType) -> BitType | IntType:
    """The type of a result: the wider one; a bit gives way to an integer."""
    if a == b or b == Bit:
        return a
    if a == Bit:
        return b
    if a.signed != b.signed:
        raise SourceError(
            f"{a} and {b} do not mix", where=calling_line(), advice="Cast one of them with .to(type)."
        )
    return a if a.width > b.width else b


def holding_both(a: BitType | IntType, b: BitType | IntType) -> IntType:
    """The smallest integer type that has every value of both: what they are compared in."""
    if not a.signed and not b.signed:
        return UInt(max(a.width, b.width))
    return Int(max(t.width + (not t.signed) for t in (a, b)))
