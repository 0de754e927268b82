"""A small form for what a transformer computes: named bits, heads that look them up, gates that combine them.

A decoder takes steps. Each begins with the bits that the step before has handed on (`carried`) and goes
through heads and maps in order. A head looks for a place (an earlier step or this one, or a token of the
input) where certain bits are equal to bits known here, and copies bits from there; where no place fits it
gives zeros. Of several steps the latest wins; of the tokens at most one may fit. A map is a circuit on bits
known so far. Last, the `output` names the bits that become the carried ones of the next step.

Nothing is ever overwritten: every bit has one name and one place in the residual stream, set once in a step.
A variable is a word of bits; a one-hot is a word in which one bit is 1, and a whole number its binary digits.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tapegrad.circuits.model import Circuit
from tapegrad.errors import SourceError

Bit = str
"""The name of a bit, as `pc[3]`: bit 3 of the variable `pc`, counted from the lowest."""

Side = Bit | Literal[0, 1]
"""A bit, or a constant."""


def word(name: str, width: int) -> list[Bit]:
    """The bits of a variable, lowest first."""
    return [f"{name}[{bit}]" for bit in range(width)]


@dataclass(frozen=True)
class Variable:
    """A word of bits that is carried from step to step, or that a token of the input has."""

    name: str
    width: int

    @property
    def bits(self) -> list[Bit]:
        """Its bits, lowest first."""
        return word(self.name, self.width)


@dataclass(frozen=True)
class Head:
    """Copies bits from the place whose bits fit. `over` says what the places are: the steps up to this one,
    of which the latest wins, or the tokens of the input, of which only one may fit."""

    name: str
    over: Literal["steps", "input"]
    compared: tuple[tuple[Side, Side], ...]
    """What asks, here, and what answers, there: all must be equal."""
    copies: tuple[tuple[Bit, Bit], ...]
    """A bit there, and the new bit here that takes its value; 0 if no place fits."""
    found: Bit
    """A new bit: whether a place fits."""

    @property
    def gives(self) -> list[Bit]:
        """The new bits."""
        return [self.found, *(here for _, here in self.copies)]


@dataclass(frozen=True)
class Map:
    """A circuit: its inputs are named as bits that are known, its outputs are new bits."""

    name: str
    circuit: Circuit

    @property
    def gives(self) -> list[Bit]:
        """The new bits."""
        return list(self.circuit.outputs)


@dataclass(frozen=True)
class AttentionProgram:
    """What one step of a decoder computes."""

    name: str
    carried: tuple[Variable, ...]
    token: tuple[Variable, ...]
    """What every token of the input consists of."""
    layers: tuple[Head | Map, ...]
    output: Mapping[Bit, Bit]
    """From each carried bit to the bit that takes its place in the next step."""
    ends: tuple[Bit, ...]
    """Carried bits; the program has ended where one of them is 1."""

    def __post_init__(self) -> None:
        known = {bit for variable in self.carried for bit in variable.bits}
        there = {bit for variable in self.token for bit in variable.bits}
        carried = set(known)
        for layer in self.layers:
            needed, places = set(), set()
            if isinstance(layer, Map):
                needed |= set(layer.circuit.inputs)
            else:
                needed |= {ask for ask, _ in layer.compared if isinstance(ask, str)}
                places |= {answer for _, answer in layer.compared if isinstance(answer, str)}
                places |= {source for source, _ in layer.copies}
            _known(layer.name, needed, known)
            _known(layer.name, places, known if isinstance(layer, Head) and layer.over == "steps" else there)
            twice = known.intersection(layer.gives)
            if twice or len(set(layer.gives)) < len(layer.gives):
                raise SourceError(f"{layer.name!r} sets a bit twice: {', '.join(sorted(twice))}")
            known |= set(layer.gives)
        _known("the output", set(self.output.values()), known)
        if self.output.keys() != carried or not carried.issuperset(self.ends):
            raise SourceError("the output is not about the bits that are carried")

    @property
    def heads(self) -> Iterator[Head]:
        """All heads, in order."""
        return (layer for layer in self.layers if isinstance(layer, Head))


def _known(name: str, needed: set[Bit], known: set[Bit]) -> None:
    if missing := needed - known:
        raise SourceError(f"{name!r} reads {', '.join(sorted(missing)[:3])}, which is not known there")
