"""Ready circuits by name, such as `adder8` or `parity64`: a kind and a number of bits, traced on demand; and
ready functions, which take and give numbers with a fraction."""

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tapegrad.circuits.arrays import where
from tapegrad.circuits.model import Circuit
from tapegrad.circuits.reductions import any_of, concat, count_ones, parity
from tapegrad.circuits.tracer import Traced, trace
from tapegrad.circuits.types import Float16, Int, UInt
from tapegrad.errors import InputError


def _add(a: Any, b: Any) -> Any:
    return a.to(UInt(len(a) + 1)) + b


def _multiply(a: Any, b: Any) -> Any:
    return a.to(UInt(2 * len(a))) * b


def _divide(a: Any, b: Any) -> Any:
    return {"quotient": a // b, "remainder": a % b}


def _compare(a: Any, b: Any) -> Any:
    return {"less": a < b, "equal": a == b, "greater": a > b}


def _parity(a: Any) -> Any:
    return parity(a)


def _popcount(a: Any) -> Any:
    return count_ones(a)


def _majority(a: Any) -> Any:
    return count_ones(a) > len(a) // 2


def _interrupts(a: Any, b: Any, c: Any, enabled: Any) -> Any:
    """Three buses of requests, `a` before `b` before `c`; within a bus the highest place comes first. Which
    bus is served, and the place of the request; at a place that is not enabled nothing is requested."""
    requests = [bus & enabled for bus in (a, b, c)]
    pending = [any_of(bus) for bus in requests]
    first, second, third = pending[0], pending[1] & ~pending[0], pending[2] & ~any_of(pending[:2])
    served = where(first, requests[0], where(second, requests[1], requests[2]))
    place: Any = UInt(max(1, (len(a) - 1).bit_length()))(0)
    for own in range(1, len(a)):
        place = where(served[own], own, place)
    return {"a": first, "b": second, "c": third, "place": place}


CHECK_BITS = 8


def check_column(place: int) -> int:
    """The check bits that a data bit counts for: three of eight, different ones for every place. So the
    parities that are wrong tell which single bit has changed; and if it is a check bit, just one is wrong."""
    return [column for column in range(1 << CHECK_BITS) if column.bit_count() == 3][place]


def _correct(data: Any, check: Any, enabled: Any) -> Any:
    """The data with the bit changed back, if just one has changed since `check` was computed."""
    columns = [check_column(place) for place in range(len(data))]
    wrong = concat(
        *(
            parity([check[row], *(data[place] for place, own in enumerate(columns) if own >> row & 1)])
            for row in range(CHECK_BITS)
        )
    )
    return data ^ concat(*((wrong == column) & enabled for column in columns))


def _same(operands: int, type: Callable[[int], Any] = UInt) -> Callable[[int], tuple[Any, ...]]:
    """So many integers of the same width."""
    return lambda width: (type(width),) * operands


@dataclass(frozen=True)
class ReadyCircuit:
    """A function of integers, by default two of the same width."""

    function: Callable[..., Any]
    summary: str
    types: Callable[[int], tuple[Any, ...]] = lambda width: (UInt(width),) * 2
    """Of its operands, for a width."""
    largest: int = 1024
    """The greatest width on offer."""
    shown: int = 8
    """The width under which it is listed; any other up to the largest works too."""

    def traced(self, width: int, name: str) -> Traced:
        """The function at this width, as a circuit."""
        return trace(self.function, *self.types(width), name=name)


KINDS: dict[str, ReadyCircuit] = {
    "adder": ReadyCircuit(_add, "a + b, with the carry as top bit"),
    "multiplier": ReadyCircuit(_multiply, "a * b in twice the width", largest=128),
    "divider": ReadyCircuit(
        _divide, "quotient and remainder of a by b (by zero: all ones, and a)", largest=128
    ),
    "comparator": ReadyCircuit(_compare, "a < b, a = b, a > b"),
    "signed-comparator": ReadyCircuit(_compare, "a < b, a = b, a > b in two's complement", _same(2, Int)),
    "parity": ReadyCircuit(_parity, "1 if an odd number of bits are 1", _same(1), largest=1 << 16),
    "popcount": ReadyCircuit(_popcount, "how many bits are 1", _same(1), largest=1 << 14),
    "interrupts": ReadyCircuit(
        _interrupts, "the first of the requests on three buses", _same(4), largest=64, shown=9
    ),
    "corrector": ReadyCircuit(
        _correct,
        "the data with a single wrong bit put right by eight check bits",
        lambda width: (UInt(width), UInt(CHECK_BITS), UInt(1)),
        largest=math.comb(CHECK_BITS, 3),
        shown=32,
    ),
    "majority": ReadyCircuit(_majority, "1 if more than half of the bits are 1", _same(1), largest=1 << 14),
}


class _Ready(Mapping[str, ReadyCircuit]):
    """Every kind at every width, listed at one width each."""

    def __getitem__(self, name: str) -> ReadyCircuit:
        found = _parsed(name)
        if found is None:
            raise KeyError(name)
        return KINDS[found[0]]

    def __iter__(self) -> Iterator[str]:
        return (f"{kind}{entry.shown}" for kind, entry in KINDS.items())

    def __len__(self) -> int:
        return len(KINDS)


READY: Mapping[str, ReadyCircuit] = _Ready()


def traced(name: str) -> Traced:
    """A ready circuit with its Python function: `traced("adder8")(3, 250) == 253`."""
    found = _parsed(name)
    if found is None:
        listed = ", ".join(f"{kind} (up to {entry.largest})" for kind, entry in KINDS.items())
        raise InputError(
            f"there is no ready circuit {name!r}",
            advice=f"Write a kind and a number of bits, such as adder8. Kinds: {listed}.",
        )
    kind, width = found
    return KINDS[kind].traced(width, name)


def ready(name: str) -> Circuit:
    """The ready circuit of this name."""
    return traced(name).circuit


def _parsed(name: str) -> tuple[str, int] | None:
    match = re.fullmatch(r"([a-z-]+)([1-9][0-9]{0,5})", name)
    if match is None or match[1] not in KINDS or int(match[2]) > KINDS[match[1]].largest:
        return None
    return match[1], int(match[2])


@dataclass(frozen=True)
class ReadyFunction:
    """A function of two values of one type."""

    function: Callable[[Any, Any], Any]
    type: Any
    summary: str
    example: tuple[Any, Any]

    def traced(self, name: str) -> Traced:
        """The function as a circuit, with the function itself beside it."""
        return trace(lambda a, b: self.function(a, b), self.type, self.type, name=name)


FUNCTIONS: dict[str, ReadyFunction] = {
    "float16-add": ReadyFunction(operator.add, Float16, "a + b as IEEE 754 rounds it", (1.5, 2.25)),
    "float16-multiply": ReadyFunction(operator.mul, Float16, "a * b as IEEE 754 rounds it", (1.5, 2.25)),
    "float16-less": ReadyFunction(operator.lt, Float16, "a < b; false where one is NaN", (1.5, 2.25)),
}
