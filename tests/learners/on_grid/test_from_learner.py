"""Learners turned into grid machines, against the learners' own interpreter."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.learners import LearnerState, Samples, conjunction, dictator, majority, nearest, parity
from tapegrad.learners.on_grid import start
from tapegrad.lowering.grid_learner import grid_learner, random_bits
from tapegrad.machines.compiled import run
from tests.lowering.test_learner_machine import learners

SEED = 3
CASES = {
    "majority": majority(2, 3),
    "conjunction": conjunction(2, 3),
    "nearest": nearest(2, 3),
    "dictator, which draws random bits": dictator(2, 2),
    "parity": parity(2),
}
BUILT = {name: grid_learner(learner, SEED) for name, learner in CASES.items()}


def after_learning(learner, X, y) -> tuple[int, ...]:
    """The memory in the end, by the interpreter, on samples that come with the register's random bits."""
    X, y = np.asarray(X, np.uint8), np.asarray(y, np.uint8)
    samples = Samples(X, y, np.array(shift_register(len(y)), np.uint8), 1 - y)
    *_, last = learner.run(LearnerState(learner.first, 0, None, samples))
    return last.memory


def shift_register(count: int) -> list[int]:
    """The bits as a machine would shift them, one by one."""
    register, out = random_bits(SEED, 15), []
    for _ in range(count):
        out.append(register[0])
        register = [*register[1:], register[0] ^ register[1]]
    return out


def interpreted(learner, X, y, x) -> int:
    return learner.respond(after_learning(learner, X, y), x, 0, 0).answer


def points(d: int) -> np.ndarray:
    return np.array(list(product((0, 1), repeat=d)))


def check(learner, made, X, y, x) -> int:
    """Runs the grid machine and compares; gives back the answer."""
    m, d = len(y), learner.inputs
    ended = run(made.machine, start(made.machine, 2 * X - 1, 2 * y - 1, 2 * x - 1), 1_000_000)
    main = {c: s for c, s in ended.final.cells.items() if 0 <= c[0] <= m and 0 <= c[1] <= d}
    answer = interpreted(learner, X, y, x)
    assert ended.halted
    assert main == {(0, 0): "+" if answer else "-"}
    return answer


@pytest.mark.parametrize("name", CASES)
def test_one_machine_answers_as_the_learner_does_for_any_number_of_samples(name):
    learner, made = CASES[name], BUILT[name]
    rng, answers = np.random.default_rng(0), set()
    for m in (1, 2, 3, 5, 12):
        for _ in range(3):
            X, y = rng.integers(0, 2, (m, learner.inputs)), rng.integers(0, 2, m)
            answers |= {check(learner, made, X, y, x) for x in points(learner.inputs)}
    assert answers == {0, 1}


@settings(deadline=None, max_examples=25)
@given(learners().filter(lambda learner: learner.inputs > 0), st.integers(1, 4), st.integers(0, 10**6))
def test_any_circuit_is_a_learner(learner, m, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 2, (m, learner.inputs)), rng.integers(0, 2, m)
    made = grid_learner(learner, SEED)
    check(learner, made, X, y, rng.integers(0, 2, learner.inputs))
    assert min(made.frame) >= 1


def test_random_bits_do_not_repeat_before_their_period():
    bits = random_bits(SEED, 2 * 32_767)
    assert bits[:32_767] == bits[32_767:]
    assert len({tuple(bits[t : t + 15]) for t in range(32_767)}) == 32_767
    assert shift_register(100) == bits[:100]
    assert random_bits(SEED, 100) != random_bits(SEED + 1, 100)


@pytest.mark.parametrize("name", ["parity", "dictator, which draws random bits"])
def test_never_leaves_its_frame(name):
    made, m, d = BUILT[name], 4, 2
    top, bottom, left, right = made.frame
    rng = np.random.default_rng(1)
    for _ in range(3):
        X, y, x = rng.choice([-1, 1], (m, d)), rng.choice([-1, 1], m), rng.choice([-1, 1], d)
        for now in made.machine.run(start(made.machine, X, y, x)):
            row, column = now.head
            assert -top <= row <= m + bottom
            assert -left <= column <= d + right


@pytest.mark.slow
@pytest.mark.parametrize("form", ["practical", "paper"])
def test_network_trained_by_sgd_predicts_what_the_learner_answers(form):
    pytest.importorskip("sklearn")
    from tapegrad.sklearn import RCNNClassifier

    learner, made = CASES["parity"], BUILT["parity"]
    X, y = np.array([[1, 1], [0, 0], [1, 0], [0, 1]]), np.array([0, 0, 1, 1])
    network: Any = RCNNClassifier(made, form=form).fit(X, y)
    expected = [interpreted(learner, X, y, x) for x in points(2)]
    assert network.predict(points(2)).tolist() == expected == [0, 1, 1, 0]


@pytest.mark.slow
def test_eight_bits_of_parity_from_twenty_samples():
    learner = parity(8)
    made = grid_learner(learner)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (20, 8))
    y = X[:, 1] ^ X[:, 4] ^ X[:, 6]
    for x in rng.integers(0, 2, (5, 8)):
        assert check(learner, made, X, y, x) == x[1] ^ x[4] ^ x[6]
