"""A question with its answer: is there an input that makes a circuit's one output 1?"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tapegrad._vnn.guard import THRESHOLD
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.model import Circuit
from tapegrad.circuits.tracer import Traced, trace
from tapegrad.errors import InputError

UNIT = (Fraction(0), Fraction(1))
"""Where an input is, unless a question says otherwise."""

Point = tuple[Fraction, ...]
"""A value for each input."""


@dataclass(frozen=True)
class Question:
    """A circuit with one output, and what is known of it."""

    circuit: Circuit
    witness: Point | None
    """A point of the box where the guarded network is 1; None where there is none above 0."""
    why: str
    """How the answer is known."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What was drawn, for people."""
    box: tuple[tuple[Fraction, Fraction], ...] | None = None
    """Least and greatest value of each input; by default all of [0, 1]."""
    rounds: tuple[Circuit, ...] = ()
    """The circuit as rounds, where it is laid out round by round (`tapegrad._vnn.rounds`)."""

    def __post_init__(self) -> None:
        if self.witness is not None and not self._holds(self.witness):
            raise InputError(f"the witness of {self.circuit.name!r} does not make its output 1")

    @property
    def satisfiable(self) -> bool:
        """The answer."""
        return self.witness is not None

    @property
    def parts(self) -> tuple[Circuit, ...]:
        """What is laid out, one after the other."""
        return self.rounds or (self.circuit,)

    @property
    def region(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The box, written out."""
        return self.box or (UNIT,) * len(self.circuit.inputs)

    def _holds(self, witness: Point) -> bool:
        """Whether a witness is in the box and its bits satisfy the circuit."""
        inside = all(low <= own <= high for own, (low, high) in zip(witness, self.region, strict=True))
        bits = np.array([[own > THRESHOLD for own in witness]])
        return inside and bool(evaluate(self.circuit, bits).all())


def point(bits: Any) -> Point:
    """Bits as a point."""
    return tuple(Fraction(int(bit)) for bit in bits)


def violation(
    function: Callable[..., Any] | Traced,
    *types: Any,
    ensures: Callable[..., Any],
    requires: Callable[..., Any] | None = None,
) -> Traced:
    """Where a function breaks its contract: the circuit of `requires(*arguments) and not ensures(result,
    *arguments)`. The function is traced with these types; of one that is traced already, they are its own."""
    if isinstance(function, Traced):
        types = tuple(function.inputs.values())
        if function.function is None:
            raise InputError(f"the code of {function.name!r} was not saved with its circuit")
        function = function.function
    traced = function

    def broken(*arguments: Any) -> Any:
        right = ensures(traced(*arguments), *arguments)
        return ~right if requires is None else requires(*arguments) & ~right

    names = ", ".join(f"x{place}" for place in range(len(types)))
    return trace(broken, *types, name=f"contract of {getattr(function, '__name__', names)}")
