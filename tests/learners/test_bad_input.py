"""Learners and samples that contradict themselves."""

import numpy as np
import pytest

from tapegrad.circuits import Array, Bit, CircuitBuilder, UInt
from tapegrad.errors import InputError, SourceError
from tapegrad.learners import CircuitLearner, FunctionLearner, best_of, conjunction, nearest, parity


def learner(**changes) -> FunctionLearner:
    parts = {
        "name": "last label",
        "x": Array(Bit, 2),
        "memory": UInt(3),
        "update": lambda memory, x, y, r: UInt(3)(0) | y,
        "predict": lambda memory, x: memory[0],
        "done": lambda memory: memory[1],
    }
    return FunctionLearner(**(parts | changes))


def test_functions_that_disagree_in_size() -> None:
    assert learner().circuit.size >= 0
    with pytest.raises(SourceError, match=r"update .* UInt\(4\)"):
        _ = learner(update=lambda memory, x, y, r: UInt(4)(1) | y).circuit
    with pytest.raises(SourceError, match=r"predict .* UInt\(3\)"):
        _ = learner(predict=lambda memory, x: memory + 1).circuit
    with pytest.raises(SourceError):
        _ = learner(done=lambda memory: None).circuit


def test_branching_on_a_bit_names_where() -> None:
    with pytest.raises(SourceError, match="where"):
        _ = learner(predict=lambda memory, x: 1 if memory[0] else 0).circuit


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([[0, 1], [1, 2]], [0, 1]),
        ([[0, 0.5]], [0]),
        ([[0, 1]], [2]),
        ([[0, 1]], [-1]),
        ([[0, 1]], [0, 1]),
        ([0, 1], [0, 1]),
        ([[0, 1, 1]], [0]),
        ([["a", "b"]], [0]),
        ([[0, float("nan")]], [0]),
        ([[None, 1]], [0]),
    ],
)
def test_samples_that_are_not_bits_or_do_not_fit(x: list, y: list) -> None:
    with pytest.raises(InputError):
        parity(2).start(x, y)


def test_binarising_is_offered() -> None:
    with pytest.raises(InputError, match="Binarise"):
        parity(2).start(np.array([[0.2, 0.7]]), [1])


def test_compositions_that_do_not_fit() -> None:
    with pytest.raises(SourceError, match="same number"):
        best_of([parity(2), parity(3)], 1, 1)
    with pytest.raises(SourceError, match="5 neighbours cannot be found among 4 samples"):
        nearest(3, 4, 5)
    with pytest.raises(SourceError, match="at least one sample"):
        conjunction(3, 0)


def test_circuits_that_are_no_learners() -> None:
    build = CircuitBuilder()
    build.output("answer", build.input("x"))
    with pytest.raises(SourceError, match="does not fit"):
        CircuitLearner(build.circuit(), 1)
    with pytest.raises(SourceError, match="first memory"):
        CircuitLearner(parity(2).circuit, 2, (0, 1))
