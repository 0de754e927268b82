"""Learners turned into grid machines, against the learners' own interpreter."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from tapegrad.errors import InputError, Refused
from tapegrad.grid_learners import grid_learner, start
from tapegrad.grid_learners.from_learner import MOST_STATES
from tapegrad.learners import conjunction, decision_list, dictator, majority, nearest, parity
from tapegrad.machines.compiled import run
from tapegrad.nets.rcnn.cells import Cells

SEED = 3
CASES = {
    "majority": (majority(2, 3), 3),
    "conjunction": (conjunction(2, 3), 3),
    "nearest": (nearest(2, 3), 3),
    "dictator, which draws random bits": (dictator(2, 2), 4),
    "parity, finished or not": (parity(2), 3),
}


def interpreted(learner, X, y, x):
    *_, last = learner.run(learner.start(X, y, seed=SEED, guessing=False))
    return learner.respond(last.memory, x, 0, 0).answer


def points(d):
    return np.array(list(product((0, 1), repeat=d)))


@pytest.mark.parametrize("name", CASES)
def test_answers_what_the_learner_answers_on_every_test_point(name):
    learner, m = CASES[name]
    d = learner.inputs
    made = grid_learner(learner, m, SEED)
    rng, answers = np.random.default_rng(0), set()
    for _ in range(25):
        X, y = rng.integers(0, 2, (m, d)), rng.integers(0, 2, m)
        for x in points(d):
            begun = start(made.machine, 2 * X - 1, 2 * y - 1, 2 * x - 1)
            ended = run(made.machine, begun, 10_000)
            main = {c: s for c, s in ended.final.cells.items() if 0 <= c[0] <= m and 0 <= c[1] <= d}
            answer = interpreted(learner, X, y, x)
            assert ended.halted
            assert main == {(0, 0): "+" if answer else "-"}
            answers.add(answer)
    assert answers == {0, 1}


def test_never_leaves_its_frame():
    learner, m = CASES["parity, finished or not"]
    made = grid_learner(learner, m, SEED)
    top, bottom, left, right = made.frame
    rng = np.random.default_rng(1)
    for _ in range(5):
        X, y, x = rng.choice([-1, 1], (m, 2)), rng.choice([-1, 1], m), rng.choice([-1, 1], 2)
        for now in made.machine.run(start(made.machine, X, y, x)):
            row, column = now.head
            assert -top <= row <= m + bottom
            assert -left <= column <= 2 + right


def test_network_trained_by_sgd_predicts_what_the_learner_answers():
    pytest.importorskip("sklearn")
    from tapegrad.nets.rcnn.classifier import RCNNClassifier

    learner, m = CASES["conjunction"]
    made = grid_learner(learner, m, SEED)
    X, y = np.array([[1, 1], [0, 0], [1, 0]]), np.array([1, 0, 1])
    network: Any = RCNNClassifier(made.machine, frame=tuple(made.frame), zero_one=True).fit(X, y)
    expected = [interpreted(learner, X, y, x) for x in points(2)]
    assert network.predict(points(2)).tolist() == expected == [0, 0, 1, 1]


def test_the_limit_is_that_of_the_fast_engine():
    assert Cells(3, MOST_STATES).count ** 5 < 1 << 63 <= Cells(3, MOST_STATES + 1).count ** 5


@pytest.mark.parametrize(
    ("learner", "m"), [(parity(3), 4), (decision_list(3, 4), 4), (majority(2, 3), 10**9)]
)
def test_what_is_too_large_is_refused(learner, m):
    with pytest.raises(Refused, match="fewer samples"):
        grid_learner(learner, m)


def test_no_samples():
    with pytest.raises(InputError, match="at least one sample"):
        grid_learner(majority(2, 3), 0)
