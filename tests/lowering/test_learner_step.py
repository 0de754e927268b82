"""One step of a learner as gates: both ways to write it, against the interpreter."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.learners import LearnerState, Samples, conjunction, nearest, parity
from tapegrad.lowering.learner_machine import learner_step, unguided_step
from tests.lowering.test_learner_machine import learners


def circuit_of(learner, *, unguided):
    build = CircuitBuilder()
    memory = [build.input(f"memory[{i}]") for i in range(learner.cells)]
    x = [build.input(f"x[{i}]") for i in range(learner.inputs)]
    given_ = build, learner, memory, x, build.input("y"), build.input("random")
    after = unguided_step(*given_) if unguided else learner_step(*given_, build.not_(given_[4]))[2]
    for i, wire in enumerate(after):
        build.output(f"memory[{i}]", wire)
    return build.circuit()


def check(learner):
    inputs = np.array(list(product((0, 1), repeat=learner.cells + learner.inputs + 2)), np.uint8)
    inputs = inputs[:: 1 + len(inputs) // 256]
    expected = []
    for row in inputs:
        memory, (*x, y, random) = tuple(row[: learner.cells].tolist()), row[learner.cells :].tolist()
        bits = ([x], [y], [random], [1 - y])
        samples = Samples(*(np.array(part, np.uint8) for part in bits))
        *_, after = learner.run(LearnerState(memory, 0, None, samples))
        expected.append(after.memory)
    for unguided in (False, True):
        *_, found = circuit_of(learner, unguided=unguided).run(inputs.astype(bool))
        np.testing.assert_array_equal(found.reshape(len(inputs), -1), np.array(expected, bool))


@settings(deadline=None, max_examples=25)
@given(learners())
def test_both_ways_learn_as_the_learner_does(learner):
    check(learner)


@pytest.mark.parametrize("learner", [conjunction(2, 3), parity(2)], ids=lambda learner: learner.name)
def test_both_ways_learn_as_ready_learners_do(learner):
    check(learner)


def test_a_learner_that_stops_learning_need_not_answer():
    sizes = [circuit_of(nearest(2, 3), unguided=unguided).size for unguided in (False, True)]
    assert sizes[1] < sizes[0] / 2
