"""Learners: memory bits, a way to learn from a sample, a way to answer; and the interpreter, the oracle."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.circuits.model import Circuit
from tapegrad.errors import InputError, SourceError

# A stream of samples, each with the two random bits of Theorem 4.


Sample = tuple[Sequence[int], int, int, int]
"""x, y, the random bit, the guess."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples in the order in which they are shown, one row each, all of them bits.

    `random` feeds randomised learners. `guess` is what a learner says while it is still learning: where it
    equals the label, the sample is lost (Theorem 4).
    """

    x: NDArray[np.uint8]
    y: NDArray[np.uint8]
    random: NDArray[np.uint8]
    guess: NDArray[np.uint8]

    @classmethod
    def drawn(cls, x: ArrayLike, y: ArrayLike, seed: int = 0, *, guessing: bool = True) -> "Samples":
        """Samples with random bits from the seed; without guessing all guesses are wrong."""
        rows, labels = as_bits(x, "x"), as_bits(y, "y")
        if rows.ndim != 2 or labels.shape != rows.shape[:1]:
            raise InputError(
                f"samples need a matrix x and one label y for each row, not shapes {rows.shape} and "
                f"{labels.shape}"
            )
        generator = np.random.default_rng(seed)
        random, guess = generator.integers(0, 2, (2, len(rows)), np.uint8)
        return cls(rows, labels, random, guess if guessing else 1 - labels)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, t: int) -> Sample:
        return self.x[t].tolist(), int(self.y[t]), int(self.random[t]), int(self.guess[t])


def as_bits(values: ArrayLike, what: str) -> NDArray[np.uint8]:
    """An array of 0 and 1; anything else is refused, never rounded."""
    array: NDArray[Any] = np.asarray(values)
    if array.dtype == object or array.dtype.kind not in "buif" or not np.isin(array, (0, 1)).all():
        raise InputError(
            f"{what} must consist of 0 and 1",
            advice="Binarise the features first, for instance (X > X.mean(axis=0)).astype(int).",
        )
    return array.astype(np.uint8)


Memory = tuple[int, ...]
"""The bits that a learner remembers."""


class Response(NamedTuple):
    """What a learner says to a sample, whether that was an answer (or a guess, while it still learns), and
    what it will remember if the label turns out to be the opposite of what it said."""

    answer: int
    finished: int
    if_wrong: Memory


@dataclass(frozen=True)
class LearnerState:
    """Where a learner stands: its memory after `position` samples, and what it answered to the last one
    (None while it was still learning, for then it merely guesses)."""

    memory: Memory
    position: int
    answer: int | None
    samples: Samples = field(compare=False, repr=False)


class Learner(ABC):
    """A learner in the form of Lemma 3 and Theorem 4 (Abbe, Sandon).

    To each sample it says its own answer if it has finished learning, and the guess that came with the
    sample if not. It learns only where that was wrong, that is, from about half of the samples; all others
    leave its memory as it is.
    """

    name: str
    inputs: int
    """Number of bits of x."""
    first: Memory
    """The memory before the first sample."""

    @property
    def cells(self) -> int:
        """Number of bits of memory."""
        return len(self.first)

    @property
    @abstractmethod
    def circuit(self) -> Circuit:
        """`respond` as a circuit. Inputs: memory, x, random bit, guess; outputs: answer, finished, then the
        memory if wrong."""

    @abstractmethod
    def respond(self, memory: Memory, x: Sequence[int], random: int, guess: int) -> Response:
        """What the learner says and would learn; the guess is the answer while it has not finished."""

    def start(self, x: ArrayLike, y: ArrayLike, seed: int = 0, guessing: bool = True) -> LearnerState:
        """The first state, on samples with rows `x` and labels `y` of 0 and 1. The two random bits of each
        sample are drawn from the seed; without `guessing` every guess is wrong, so that every sample is
        learned from, as Theorem 5 has it."""
        samples = Samples.drawn(x, y, seed, guessing=guessing)
        if samples.x.shape[1] != self.inputs:
            raise InputError(
                f"the learner {self.name!r} takes {self.inputs} bits, "
                f"but the samples have {samples.x.shape[1]}"
            )
        return LearnerState(self.first, 0, None, samples)

    def run(self, state: LearnerState) -> Iterator[LearnerState]:
        """The state before the first sample, then the state after each."""
        yield state
        for t in range(state.position, len(state.samples)):
            x, y, random, guess = state.samples[t]
            said = self.respond(state.memory, x, random, guess)
            memory = state.memory if said.answer == y else said.if_wrong
            answer = said.answer if said.finished else None
            state = replace(state, memory=memory, position=t + 1, answer=answer)
            yield state


class CircuitLearner(Learner):
    """A learner given by its circuit, as `Learner.circuit` describes it."""

    def __init__(self, circuit: Circuit, inputs: int, first: Memory | None = None) -> None:
        cells = len(circuit.outputs) - 2
        if len(circuit.inputs) != cells + inputs + 2 or cells < 0 or inputs < 0:
            raise SourceError(
                f"the circuit {circuit.name!r} has {len(circuit.inputs)} inputs and {len(circuit.outputs)} "
                f"outputs, which does not fit a learner of {inputs}-bit samples",
                advice="Inputs: memory, x, random bit, guess. Outputs: answer, finished, memory.",
            )
        if first is not None and (len(first) != cells or not set(first) <= {0, 1}):
            raise SourceError(f"the first memory of {circuit.name!r} is not {cells} bits")
        self.name, self.inputs, self._circuit = circuit.name, inputs, circuit
        self.first = tuple(first) if first is not None else (0,) * cells

    @property
    def circuit(self) -> Circuit:
        return self._circuit

    def respond(self, memory: Memory, x: Sequence[int], random: int, guess: int) -> Response:
        wires = self._circuit.wire_numbers([*map(int, (*memory, *x, random, guess))], 1)
        answer, finished, *rest = (wires[wire] for wire in self._circuit.output_wires.tolist())
        return Response(answer, finished, tuple(rest))
