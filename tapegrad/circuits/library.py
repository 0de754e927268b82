"""Ready circuits by name, such as `adder8` or `parity64`: a kind and a number of bits, traced on demand; and
ready functions, which take and give numbers with a fraction."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tapegrad.circuits.model import Circuit
from tapegrad.circuits.reductions import count_ones, parity
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


@dataclass(frozen=True)
class ReadyCircuit:
    """A function of one or two integers of the same width."""

    function: Callable[..., Any]
    summary: str
    operands: int = 2
    type: Callable[[int], Any] = UInt
    largest: int = 1024
    """The greatest width on offer."""

    def traced(self, width: int, name: str) -> Traced:
        """The function at this width, as a circuit."""
        return trace(self.function, *[self.type(width)] * self.operands, name=name)


KINDS: dict[str, ReadyCircuit] = {
    "adder": ReadyCircuit(_add, "a + b, with the carry as top bit"),
    "multiplier": ReadyCircuit(_multiply, "a * b in twice the width", largest=128),
    "divider": ReadyCircuit(
        _divide, "quotient and remainder of a by b (by zero: all ones, and a)", largest=128
    ),
    "comparator": ReadyCircuit(_compare, "a < b, a = b, a > b"),
    "signed-comparator": ReadyCircuit(_compare, "a < b, a = b, a > b in two's complement", type=Int),
    "parity": ReadyCircuit(_parity, "1 if an odd number of bits are 1", operands=1, largest=1 << 16),
    "popcount": ReadyCircuit(_popcount, "how many bits are 1", operands=1, largest=1 << 14),
    "majority": ReadyCircuit(_majority, "1 if more than half of the bits are 1", operands=1, largest=1 << 14),
}
SHOWN_WIDTH = 8
"""The width under which each kind is listed; any other up to its largest works too."""


class _Ready(Mapping[str, ReadyCircuit]):
    """Every kind at every width, listed at one width each."""

    def __getitem__(self, name: str) -> ReadyCircuit:
        found = _parsed(name)
        if found is None:
            raise KeyError(name)
        return KINDS[found[0]]

    def __iter__(self) -> Iterator[str]:
        return (f"{kind}{SHOWN_WIDTH}" for kind in KINDS)

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
