"""Each learning machine against the same algorithm written without a grid."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.learners.on_grid import GRID_LEARNERS, start
from tapegrad.machines.compiled import run
from tests.learners.on_grid.oracles import ORACLES, problem

BUILT = {name: make() for name, make in GRID_LEARNERS.items()}


@pytest.mark.parametrize("name", BUILT)
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 5))
def test_answers_alone_in_the_top_left_cell_and_stays_in_the_frame(name, seed, m, d):
    learner = BUILT[name]
    X, y, x = problem(name, m, d, np.random.default_rng(seed))
    ended = run(learner.machine, start(learner.machine, X, y, x), 100_000)
    main = {cell: s for cell, s in ended.final.cells.items() if 0 <= cell[0] <= m and 0 <= cell[1] <= d}
    assert ended.halted
    assert main == {(0, 0): "+" if ORACLES[name](X, y, x) > 0 else "-"}


@pytest.mark.parametrize("name", BUILT)
def test_never_leaves_its_frame(name):
    learner = BUILT[name]
    top, bottom, left, right = learner.frame
    rng = np.random.default_rng(3)
    for _ in range(5):
        X, y, x = problem(name, 4, 3, rng)
        for now in learner.machine.run(start(learner.machine, X, y, x)):
            row, column = now.head
            assert -top <= row < 5 + bottom
            assert -left <= column < 4 + right


def test_parity_predicts_the_true_parity_wherever_the_samples_span_the_point():
    learner = BUILT["parity"]
    rng = np.random.default_rng(0)
    hidden = np.array([True, False, True, True, False, False])
    X = np.vstack([np.where(np.eye(6, dtype=bool), -1, 1), rng.choice([-1, 1], (4, 6))])
    y = np.where(hidden, X, 1).prod(axis=1)
    for x in rng.choice([-1, 1], (12, 6)):
        ended = run(learner.machine, start(learner.machine, X, y, x), 1_000_000)
        assert (ended.final.cells[0, 0] == "+") == (np.where(hidden, x, 1).prod() > 0)
