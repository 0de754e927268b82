"""Many values to one, or in order: any, all, parity, count of ones, smallest, largest, sorted; joining bits.

Each takes an array, a list or the bits of an integer, traced or concrete or plain Python numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tapegrad.circuits import words
from tapegrad.circuits.arrays import ArrayValue, listed, where
from tapegrad.circuits.operations import Scalar, evaluate, same_type
from tapegrad.circuits.types import Bit
from tapegrad.circuits.values import BitValue, IntValue, a_bit, join_bits, ones_among


def any_of(values: Iterable[Any]) -> BitValue:
    """1 if one of the bits is 1."""
    return _logic(words.any_of, any, values)


def all_of(values: Iterable[Any]) -> BitValue:
    """1 if all of the bits are 1."""
    return _logic(words.all_of, all, values)


def parity(values: Iterable[Any]) -> BitValue:
    """1 if an odd number of the bits are 1."""
    return _logic(words.parity, lambda bits: sum(bits) % 2 == 1, values)


def count_ones(values: Iterable[Any]) -> IntValue:
    """How many of the bits are 1, as an unsigned integer just wide enough."""
    return ones_among(_bits(values))


def smallest(values: Iterable[Any]) -> Any:
    """The least of the integers."""
    return _tournament(lambda a, b: where(b < a, b, a), _typed(values))


def largest(values: Iterable[Any]) -> Any:
    """The greatest of the integers."""
    return _tournament(lambda a, b: where(a < b, b, a), _typed(values))


def sort(values: Iterable[Any]) -> ArrayValue:
    """The integers in ascending order, by Batcher's network of comparisons of pairs."""
    items = _typed(values)
    for a, b in _batcher(len(items)):
        swap = items[b] < items[a]
        items[a], items[b] = where(swap, items[b], items[a]), where(swap, items[a], items[b])
    return ArrayValue(items)


def _batcher(count: int) -> Iterator[tuple[int, int]]:
    """Pairs to put in order so that all are: merge exchange, Knuth 5.2.2, algorithm M."""
    half = top = 1 << max(0, (count - 1).bit_length() - 1)
    while half and count > 1:
        distance, start, step = half, 0, top
        while True:
            yield from ((i, i + distance) for i in range(count - distance) if i & half == start)
            if step == half:
                break
            distance, step, start = step - half, step >> 1, half
        half >>= 1


def concat(*pieces: Any) -> IntValue:
    """The bits of all pieces as one unsigned integer, the first piece at the low end."""
    single = BitValue | bool | int
    return join_bits(
        [bit for piece in pieces for bit in _bits([piece] if isinstance(piece, single) else piece)]
    )


def _bits(values: Iterable[Any]) -> list[BitValue]:
    items = values.bits() if isinstance(values, IntValue) else list(values)
    return [a_bit(item) for item in items]


def _typed(values: Iterable[Any]) -> list[Any]:
    """Values of one type; plain numbers among themselves stay as they are."""
    items = listed(values)
    return same_type(items) if any(isinstance(item, Scalar) for item in items) else items


def _logic(gates: Callable[..., int], numbers: Callable[[Sequence[int]], bool], values: Iterable[Any]) -> Any:
    return evaluate(
        Bit,
        lambda g, *own: [gates(g, [wire for (wire,) in own])],
        lambda *own: int(numbers(own)),
        *_bits(values),
    )


def _tournament(better: Callable[[Any, Any], Any], level: list[Any]) -> Any:
    while len(level) > 1:
        winners = [better(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = winners + level[len(level) // 2 * 2 :]
    return level[0]
