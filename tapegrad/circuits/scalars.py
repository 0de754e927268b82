"""The types of single values: bits, integers, fixed-point numbers and floats; and what their bits stand for.

Calling a type makes a value. Of what class, the files of the values say when they are imported, since they
stand above this one. Every type says three things of its bits, which are given as a number whose binary
digits they are:

    residue(x)     the bits of a Python number that a person gives; what does not fit is refused
    raw(x)         the bits of the result of an operation, wrapped or rounded as the type does
    number(bits)   the Python number that bits stand for
"""

import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError, SourceError, calling_line

if TYPE_CHECKING:
    from tapegrad.circuits.fixed import FixedValue
    from tapegrad.circuits.floats import FloatValue
    from tapegrad.circuits.values import BitValue, IntValue

LARGEST_EXPONENT, LARGEST_MANTISSA = 11, 52
"""Bits of Python's own floats, which hold every number of every type with a fraction."""


class ScalarType:
    """What all types of single values have."""

    width: int
    signed: ClassVar[bool] = False

    value: ClassVar[type]
    """Of what class its values are."""

    @property
    def dtype(self) -> Any:
        """Of NumPy's arrays of such numbers: one that holds all of them, not just those that are there."""
        return np.float64

    def __call__(self, value: Any = 0) -> Any:
        return self.value(self, self.residue(value))

    def __getitem__(self, length: Any) -> Any:
        raise SourceError(
            f"{self}[{length}] is no type", advice=f"Write Array({self}, {length}) for an array."
        )

    def residue(self, value: Any) -> int:
        """The bits of a Python number, which must fit."""
        raise NotImplementedError

    def raw(self, number: Any) -> int:
        """The bits of a result."""
        raise NotImplementedError

    def number(self, raw: int) -> Any:
        """The Python number that the bits stand for."""
        raise NotImplementedError

    def residues(self, values: Iterable[Any]) -> NDArray[Any]:
        """The bits of many numbers, each as `residue` gives them."""
        return np.array([self.residue(value) for value in values], type_of_words(self.width))

    def numbers(self, words: NDArray[Any]) -> NDArray[Any]:
        """The numbers that many words stand for, each as `number` gives it."""
        return np.array([self.number(word) for word in words.tolist()], self.dtype)


class _Whole(ScalarType):
    """Bits and integers."""

    def residue(self, value: Any) -> int:
        low, high = limits(self)
        number = whole(value, f"is no integer, so it does not fit {self}")
        if not low <= number <= high:
            raise InputError(f"{number} does not fit {self}, which holds {low} to {high}")
        return self.raw(number)

    def raw(self, number: Any) -> int:
        return int(number) & (1 << self.width) - 1

    def number(self, raw: int) -> Any:
        return raw - (1 << self.width) if self.signed and raw >> self.width - 1 else raw

    def residues(self, values: Iterable[Any]) -> NDArray[Any]:
        if isinstance(values, np.ndarray) and within(values, self.width, *limits(self)):
            return residues_of(values, self.width)
        return super().residues(values)

    def numbers(self, words: NDArray[Any]) -> NDArray[Any]:
        if words.dtype == object:
            return super().numbers(words)
        if not self.signed:
            return words.astype(self.dtype)
        unused = np.uint64(64 - self.width)  # the sign to the front, and back
        return (words << unused).view(np.int64) >> unused.astype(np.int64)


@dataclass(frozen=True)
class BitType(_Whole):
    """One bit. There is a single one, `Bit`; calling it makes a value: `Bit(1)`."""

    width: ClassVar[int] = 1  # type: ignore[misc]
    dtype: ClassVar[Any] = np.bool_  # type: ignore[misc]

    if TYPE_CHECKING:

        def __call__(self, value: Any = 0) -> "BitValue": ...

    def __repr__(self) -> str:
        return "Bit"


Bit = BitType()


@dataclass(frozen=True)
class IntType(_Whole):
    """An integer of `width` bits, written `UInt(8)` or `Int(8)`. Calling the type makes a value:
    `UInt(8)(200)`."""

    width: int

    if TYPE_CHECKING:

        def __call__(self, value: Any = 0) -> "IntValue": ...

    def __post_init__(self) -> None:
        if not 1 <= self.width <= 1 << 16:
            raise SourceError(f"an integer type has 1 to 65536 bits, not {self.width}")

    @property
    def dtype(self) -> Any:
        return dtype_of_integers(self.width, signed=self.signed)

    def __repr__(self) -> str:
        return f"{'Int' if self.signed else 'UInt'}({self.width})"


class UInt(IntType):
    """Unsigned: 0 to 2^width - 1."""


class Int(IntType):
    """Signed, two's complement: -2^(width-1) to 2^(width-1) - 1."""

    signed: ClassVar[bool] = True


def within(values: NDArray[Any], width: int, low: int, high: int) -> bool:
    """Whether these are integers of NumPy's own, none beyond the limits, of words that NumPy has."""
    known = values.dtype.kind in "biu" and width <= 64
    return known and (not values.size or (low <= int(values.min()) and int(values.max()) <= high))


def residues_of(values: NDArray[Any], width: int) -> NDArray[np.uint64]:
    """Integers modulo 2^width."""
    return values.astype(np.uint64) & np.uint64((1 << width) - 1)


def type_of_words(width: int) -> Any:
    """Of an array of words of so many bits: uint64, or Python's own integers where they are wider."""
    return np.uint64 if width <= 64 else object


class Words(NamedTuple):
    """Words for each pattern, one or several, and of how many bits they are."""

    words: NDArray[Any]
    width: int

    @property
    def bits(self) -> int:
        """Of a pattern."""
        return self.width * math.prod(self.words.shape[1:])


def rows_of(parts: Sequence[Words], count: int) -> NDArray[np.uint8]:
    """Their bits side by side, a row for each of so many patterns; of a part that has one, the same in
    all."""
    if parts and all(width in (8, 16, 32, 64) for _, width in parts):  # so they lie in memory as they are
        fields = np.empty(count, [("", f"<u{width // 8}", words.shape[1:]) for words, width in parts])
        for name, (words, _) in zip(fields.dtype.names or (), parts, strict=True):
            fields[name] = words
        return np.unpackbits(fields.view(np.uint8), bitorder="little").reshape(
            count, sum(own.bits for own in parts)
        )
    rows = [bits_of(own.words.reshape(-1), own.width).reshape(len(own.words), own.bits) for own in parts]
    spread = [own if len(own) == count else np.broadcast_to(own, (count, own.shape[1])) for own in rows]
    return np.concatenate([np.zeros((count, 0), np.uint8), *spread], axis=1)


def bits_of(words: NDArray[Any], width: int) -> NDArray[np.uint8]:
    """A row of bits for each word, the lowest first."""
    if width == 1:
        return words.astype(np.uint8).reshape(-1, 1)
    size = _octets(width)
    if words.dtype == object:
        octets = np.frombuffer(b"".join(word.to_bytes(size, "little") for word in words), np.uint8)
    else:
        octets = words.astype(f"<u{size}").view(np.uint8)
    return np.unpackbits(octets, bitorder="little").reshape(len(words), 8 * size)[:, :width]


def words_of(bits: NDArray[Any]) -> NDArray[Any]:
    """The words again."""
    count, width = bits.shape
    size = _octets(width)
    if width != 8 * size:
        bits, narrow = np.zeros((count, 8 * size), bool), bits
        bits[:, :width] = narrow
    octets = np.packbits(bits.reshape(-1), bitorder="little")  # of all rows at once, which takes no longer
    if width > 64:
        rows = octets.reshape(count, size)
        return np.array([int.from_bytes(row.tobytes(), "little") for row in rows], object)
    return octets.view(f"<u{size}").astype(np.uint64)


def _octets(width: int) -> int:
    """Of a word of so many bits; as many as a type of NumPy's has, unless it is wider than all of them."""
    size = max(1, (width + 7) // 8)
    return size if size > 8 else 1 << (size - 1).bit_length()


def dtype_of_integers(width: int, *, signed: bool = False) -> Any:
    """The type of an array of integers of this width: int64 where it holds all of them, else uint64, else
    Python's own integers."""
    if width + (not signed) <= 64:
        return np.int64
    return np.uint64 if width <= 64 else object


def whole(value: Any, refusal: str, where: str = "") -> int:
    """The integer that a person has given; a float is none, even a whole one."""
    try:
        return int(value) if isinstance(value, np.bool_) else operator.index(value)
    except TypeError:
        floats = "Floats round integers of more than 53 bits: give Python's integers, or an array of them."
        advice = floats if isinstance(value, float | np.floating) else ""
        raise InputError(f"{value!r} {refusal}", where=where, advice=advice) from None


def limits(of: ScalarType) -> tuple[int, int]:
    """The smallest and the largest number that the bits stand for, taken as an integer."""
    if of.signed:
        return -(1 << of.width - 1), (1 << of.width - 1) - 1
    return 0, (1 << of.width) - 1


@dataclass(frozen=True)
class FixedType(ScalarType):
    """A multiple of 2^-fraction, written `Fixed(8, 4)` or `UFixed(8, 4)`: the integer of `whole + fraction`
    bits, the sign among the whole ones, divided by 2^fraction."""

    whole: int
    fraction: int

    if TYPE_CHECKING:

        def __call__(self, value: Any = 0) -> "FixedValue": ...

    def __post_init__(self) -> None:
        if min(self.whole, self.fraction) < 0 or not 1 <= self.width <= LARGEST_MANTISSA + 1:
            raise SourceError(
                f"a fixed-point type has 1 to {LARGEST_MANTISSA + 1} bits, as many as Python's floats hold, "
                f"not {self.whole} and {self.fraction}",
                where=calling_line(),
            )

    @property
    def width(self) -> int:  # type: ignore[override]
        """All bits."""
        return self.whole + self.fraction

    @property
    def integer(self) -> IntType:
        """The type of the integer that it is a part of."""
        return (Int if self.signed else UInt)(self.width)

    def residue(self, value: Any) -> int:
        """To the nearest number of this type, the even one of two."""
        exact = _fraction(value, self)
        scaled = round(exact * (1 << self.fraction))
        low, high = limits(self)
        if not low <= scaled <= high:
            ends = f"{low / (1 << self.fraction)} to {high / (1 << self.fraction)}"
            raise InputError(f"{value} does not fit {self}, which holds {ends}")
        return self.integer.raw(scaled)

    def raw(self, number: Any) -> int:
        """Rounded down, modulo 2^whole."""
        return self.integer.raw(math.floor(Fraction(number) * (1 << self.fraction)))

    def number(self, raw: int) -> float:
        return self.integer.number(raw) / (1 << self.fraction)

    def __repr__(self) -> str:
        return f"{'Fixed' if self.signed else 'UFixed'}({self.whole}, {self.fraction})"


class UFixed(FixedType):
    """Unsigned: 0 to 2^whole, which is left out, in steps of 2^-fraction."""


class Fixed(FixedType):
    """Signed, two's complement: -2^(whole-1) to 2^(whole-1), which is left out."""

    signed: ClassVar[bool] = True


@dataclass(frozen=True)
class Float(ScalarType):
    """A float as IEEE 754 has them: a sign, bits of an exponent, bits of a mantissa; with subnormal numbers,
    two zeros, two infinities, and NaN."""

    exponent: int
    mantissa: int
    signed: ClassVar[bool] = True

    if TYPE_CHECKING:

        def __call__(self, value: Any = 0) -> "FloatValue": ...

    def __post_init__(self) -> None:
        if not (2 <= self.exponent <= LARGEST_EXPONENT and 1 <= self.mantissa <= LARGEST_MANTISSA):
            raise SourceError(
                f"a float has 2 to {LARGEST_EXPONENT} bits of exponent and 1 to {LARGEST_MANTISSA} of "
                f"mantissa, not {self.exponent} and {self.mantissa}",
                where=calling_line(),
            )

    @property
    def width(self) -> int:  # type: ignore[override]
        """All bits, the sign at the top."""
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        """What an exponent of 0 is written as."""
        return (1 << self.exponent - 1) - 1

    @property
    def infinity(self) -> int:
        """The bits of infinity; whatever is above them, but for the sign, is no number."""
        return (1 << self.exponent) - 1 << self.mantissa

    @property
    def nan(self) -> int:
        """The bits of the NaN that operations give: quiet, without a sign or a message."""
        return self.infinity | 1 << self.mantissa - 1

    def residue(self, value: Any) -> int:
        """To the nearest number of this type, as `raw` does."""
        return self.raw(float(value) if isinstance(value, float | np.floating) else _fraction(value, self))

    def raw(self, number: Any) -> int:
        """The nearest float; of two the one with an even mantissa. A fraction is exact; of a Python float the
        sign of zero counts, and infinities and NaN stay what they are."""
        if isinstance(number, float):
            if math.isnan(number):
                return self.nan
            negative = math.copysign(1, number) < 0
            size = self.infinity if math.isinf(number) else self._nearest(Fraction(abs(number)))
        else:
            negative, size = number < 0, self._nearest(abs(Fraction(number)))
        return int(negative) << self.width - 1 | size

    def _nearest(self, size: Fraction) -> int:
        """Numbers between two powers of two lie on a grid of 2^mantissa steps. The bits, read as an integer,
        count the floats from 0 on, so they are the steps of the grids below and those of this one."""
        if not size:
            return 0
        top = size.numerator.bit_length() - size.denominator.bit_length()
        top -= size < Fraction(2) ** top
        finest = 1 - self.bias - self.mantissa
        grid = max(top - self.mantissa, finest)
        return min((grid - finest << self.mantissa) + round(size / Fraction(2) ** grid), self.infinity)

    def number(self, raw: int) -> float:
        size = raw & (1 << self.width - 1) - 1
        sign = -1.0 if raw >> self.width - 1 else 1.0
        if size >= self.infinity:
            return sign * math.inf if size == self.infinity else math.nan
        field, rest = size >> self.mantissa, size & (1 << self.mantissa) - 1
        significand = rest | int(field > 0) << self.mantissa
        return sign * math.ldexp(significand, max(field, 1) - self.bias - self.mantissa)

    def __repr__(self) -> str:
        return f"Float({self.exponent}, {self.mantissa})"


Float16 = Float(5, 10)
BFloat16 = Float(8, 7)
Float32 = Float(8, 23)
Float64 = Float(11, 52)


def _fraction(value: Any, of: ScalarType) -> Fraction:
    """A Python number, exactly."""
    own = value.item() if isinstance(value, np.generic) else value
    if not isinstance(own, int | float | Fraction) or (isinstance(own, float) and not math.isfinite(own)):
        raise InputError(f"{value!r} is no number that {of} could hold")
    return Fraction(own)


def scalar_type(text: str) -> ScalarType:
    """The type that is written like this; anything else is a ValueError."""
    name, _, arguments = text.removesuffix(")").partition("(")
    kinds = {
        "UInt": (UInt, 1),
        "Int": (Int, 1),
        "Fixed": (Fixed, 2),
        "UFixed": (UFixed, 2),
        "Float": (Float, 2),
    }
    if text == "Bit":
        return Bit
    numbers = arguments.split(", ")
    known = name in kinds and len(numbers) == kinds[name][1]
    if not known or not all(n.isascii() and n.isdecimal() and len(n) < 7 for n in numbers):
        raise ValueError(f"{text[:40]!r} is no type")
    found = kinds[name][0](*map(int, numbers))
    if repr(found) != text:
        raise ValueError(f"{text[:40]!r} is no type")
    return found


# Which type a result has.
#
# Of two integers the wider type wins, and the narrower is extended by its own sign; signed and unsigned do
# not mix without `.to(type)`, and neither do integers, fixed-point numbers and floats. Of two fixed-point
# types the result has the whole bits of the one and the fraction of the other that has more. A Python number
# or a bit takes the type of its partner. Comparisons of integers widen both sides until neither loses
# anything, so they compare the numbers whatever the types.


def is_number(value: Any) -> bool:
    """Whether this is an ordinary Python or NumPy integer or truth value."""
    return isinstance(value, int | np.integer | np.bool_)


def is_real(value: Any) -> bool:
    """Whether this is an ordinary number, whole or not."""
    return is_number(value) or isinstance(value, float | np.floating | Fraction)


def common_type(a: ScalarType, b: ScalarType) -> ScalarType:
    """The type of a result: the wider one; a bit gives way to anything."""
    if a == b or b == Bit:
        return a
    if a == Bit:
        return b
    if isinstance(a, FixedType) and type(a) is type(b):
        assert isinstance(b, FixedType)
        return type(a)(max(a.whole, b.whole), max(a.fraction, b.fraction))
    if not isinstance(a, IntType) or type(a) is not type(b):
        raise SourceError(
            f"{a} and {b} do not mix", where=calling_line(), advice="Cast one of them with .to(type)."
        )
    return a if a.width > b.width else b


def holding_both(a: ScalarType, b: ScalarType) -> IntType:
    """The smallest integer type that has every value of both: what they are compared in."""
    if not a.signed and not b.signed:
        return UInt(max(a.width, b.width))
    return Int(max(t.width + (not t.signed) for t in (a, b)))


def least_type(number: int) -> IntType:
    """The least type that holds a number."""
    return Int(number.bit_length() + 1) if number < 0 else UInt(max(number.bit_length(), 1))
