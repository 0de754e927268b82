"""Learners by hand: which samples are learned from and what is answered; a bad one for every condition."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit
from tapegrad.errors import InputError, SourceError
from tapegrad.learners.model import CircuitLearner, Learner, LearnerState, Memory, Response, Samples, as_bits


class Counting(Learner):
    """Guesses until it has been wrong twice; then it answers with the first bit."""

    name, inputs, first = "counting", 2, (0, 0)

    @property
    def circuit(self) -> Circuit:
        raise NotImplementedError

    def respond(self, memory: Memory, x: Sequence[int], random: int, guess: int) -> Response:
        finished = memory == (1, 1)
        return Response(x[0] if finished else guess, int(finished), (1, memory[0]))


def test_only_wrong_answers_are_learned_from() -> None:
    learner = Counting()
    x, y = [[0, 0], [1, 0], [0, 1], [1, 1], [0, 0]], [0, 1, 1, 1, 1]
    samples = Samples(*(np.array(own, np.uint8) for own in (x, y, [0] * 5, [1, 1, 0, 0, 0])))
    states = list(learner.run(LearnerState((0, 0), 0, None, samples)))
    assert [(state.memory, state.position, state.answer) for state in states] == [
        ((0, 0), 0, None),
        ((1, 0), 1, None),  # guessed 1, was 0
        ((1, 0), 2, None),  # guessed right
        ((1, 1), 3, None),
        ((1, 1), 4, 1),  # answers
        ((1, 1), 5, 0),  # wrongly, and learns what it knows
    ]
    later = list(learner.run(states[3]))
    assert later == states[3:]
    assert learner.cells == 2
    assert samples[2] == ([0, 1], 1, 0, 0)
    assert len(samples) == 5


def test_random_bits_come_from_the_seed() -> None:
    x, y = np.zeros((200, 2), int), np.arange(200) % 2
    one, same, other = (Counting().start(x, y, seed).samples for seed in (1, 1, 2))
    assert (one.random == same.random).all()
    assert (one.guess == same.guess).all()
    assert (one.random != other.random).any()
    assert (one.random != one.guess).any()
    assert {*one.random.tolist()} == {*one.guess.tolist()} == {0, 1}
    default = Counting().start(x, y).samples
    assert (default.guess == Counting().start(x, y, 0).samples.guess).all()
    assert (default.guess == default.y).any()
    wrong = Counting().start(x, y, 1, guessing=False).samples
    assert (wrong.guess == 1 - wrong.y).all()
    assert (wrong.random == one.random).all()
    first = Counting().start(x, y)
    assert (first.memory, first.position, first.answer) == ((0, 0), 0, None)


def test_samples_out_of_form_are_refused() -> None:
    for x, y in (([0, 1], [0, 1]), ([[0, 1]], [0, 1]), ([[0, 1]], [[0]]), ([[[0, 1]]], [0])):
        with pytest.raises(InputError, match="samples need a matrix"):
            Samples.drawn(x, y)
    with pytest.raises(InputError, match="takes 2 bits, but the samples have 3"):
        Counting().start([[0, 0, 0]], [0])
    assert as_bits([[True, 0.0]], "x").tolist() == [[1, 0]]
    bad: list[Any] = [[0.5], [2], [-1], ["1"], [None], [0j], [np.nan]]
    for values in bad:
        with pytest.raises(InputError, match="x must consist of 0 and 1"):
            as_bits(values, "x")


def by_circuit(cells: int, inputs: int, outputs: int) -> Circuit:
    """Says the guess; finished where the first x is 1; the memory turned round."""
    build = CircuitBuilder()
    memory = [build.input(f"m{n}") for n in range(cells)]
    x = [build.input(f"x{n}") for n in range(inputs)]
    _, guess = build.input("random"), build.input("guess")
    ends = [guess, x[0] if x else guess, *memory[::-1]]
    for number in range(outputs):
        build.output(f"o{number}", ends[number % len(ends)])
    return build.circuit("c")


def test_a_circuit_is_a_learner() -> None:
    learner = CircuitLearner(by_circuit(3, 2, 5), 2, (1, 0, 0))
    assert (learner.name, learner.inputs, learner.first, learner.cells) == ("c", 2, (1, 0, 0), 3)
    assert CircuitLearner(by_circuit(3, 2, 5), 2).first == (0, 0, 0)
    assert learner.respond((1, 1, 0), [1, 0], 0, 0) == Response(0, 1, (0, 1, 1))
    assert learner.respond((1, 0, 0), [0, 1], 0, 1) == Response(1, 0, (0, 0, 1))
    assert CircuitLearner(by_circuit(0, 0, 2), 0).first == ()


@pytest.mark.parametrize(
    ("circuit", "inputs"),
    [(by_circuit(3, 2, 4), 2), (by_circuit(3, 2, 5), 3), (by_circuit(0, 0, 3), -1), (by_circuit(0, 0, 1), 1)],
)
def test_a_circuit_that_fits_no_learner_is_refused(circuit: Circuit, inputs: int) -> None:
    with pytest.raises(SourceError, match="does not fit a learner"):
        CircuitLearner(circuit, inputs)


@pytest.mark.parametrize("first", [(0, 0), (0, 0, 0, 0), (0, 2, 0), (0, -1, 1)])
def test_a_first_memory_out_of_form_is_refused(first: tuple[int, ...]) -> None:
    with pytest.raises(SourceError, match="is not 3 bits"):
        CircuitLearner(by_circuit(3, 2, 5), 2, first)
