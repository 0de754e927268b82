"""Many values to one: any, all, parity, count of ones, sum, smallest, largest; and joining bits.

Each takes an array, a list or the bits of an integer, traced or concrete or plain Python numbers.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.choices import where
from tapegrad.circuits.places import calling_line
from tapegrad.circuits.types import Bit, UInt
from tapegrad.circuits.values import BitValue, IntValue, Scalar, join_bits, same_type
from tapegrad.errors import SourceError


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
