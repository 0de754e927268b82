"""Parity with many heads: against elimination in Python, on the grid and through the trained network."""

from itertools import product

import numpy as np
import pytest

from tapegrad.errors import Refused
from tapegrad.learners import on_grid
from tapegrad.learners.many_heads import parity
from tapegrad.learners.on_grid import start
from tapegrad.sklearn import RCNNClassifier
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.predicting import predict, roll_out, with_heads
from tapegrad.targets.rcnn.training import memorise
from tests.learners.on_grid.oracles import ORACLES, problem

LEARNER = parity()


def answer(X, y, x):
    """What the machine leaves in the main grid, if no head leaves the frame and one is left at the end."""
    m, d = X.shape
    run = list(LEARNER.machine.run(start(LEARNER.machine, X, y, x)))  # refuses heads that meet
    assert all(-1 <= r <= m + 1 and -1 <= c <= d + 1 for now in run for r, c in now.heads)
    assert run[-1].heads == {(0, 0): "done"}
    return {cell: sign for cell, sign in run[-1].cells.items() if 0 <= cell[0] <= m and 0 <= cell[1] <= d}


@pytest.mark.parametrize(
    ("m", "d"), [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1), pytest.param(3, 2, marks=pytest.mark.slow)]
)
def test_no_heads_meet_and_the_answer_is_right_on_every_input(m, d):
    for signs in product((-1, 1), repeat=m * d + m + d):
        X, y, x = np.split(np.array(signs), [m * d, m * d + m])
        X = X.reshape(m, d)
        assert answer(X, y, x) == {(0, 0): "+" if ORACLES["parity"](X, y, x) > 0 else "-"}


def test_random_inputs_of_many_shapes():
    rng = np.random.default_rng(11)
    for _ in range(150):
        m, d = rng.integers(1, 14, 2)
        X, y, x = problem("parity", m, d, rng)
        assert answer(X, y, x) == {(0, 0): "+" if ORACLES["parity"](X, y, x) > 0 else "-"}


def test_most_rows_are_at_work_at_once():
    X, y, x = problem("parity", 16, 16, np.random.default_rng(4))
    assert max(len(now.heads) for now in LEARNER.machine.run(start(LEARNER.machine, X, y, x))) > 8


@pytest.mark.parametrize("encoding", [pytest.param("ternary", marks=pytest.mark.slow), "channels"])
def test_every_layer_decodes_to_the_machines_grid(encoding):
    X, y, x = problem("parity", 4, 3, np.random.default_rng(8))
    network = Rcnn.of(LEARNER.machine, 4, 3, 400, encoding=encoding, frame=LEARNER.frame)
    *_, last = memorise(network, X.astype(float), y.astype(float))
    expected = list(LEARNER.machine.run(start(LEARNER.machine, X, y, x)))
    grids = list(roll_out(network.with_layers(len(expected) + 1), last.memory, x))
    assert not with_heads(network, grids[0]).heads  # the first layer puts the head down
    assert [with_heads(network, grid) for grid in grids[1:]] == [*expected, expected[-1]]
    assert max(len(now.heads) for now in expected) > 3
    assert int(predict(network, last.memory, x[None]).layers[0]) == len(expected) + 1


def test_the_classifier_learns_in_far_fewer_layers_than_with_one_head():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], (36, 16))
    y = X[:, 1] * X[:, 4] * X[:, 6]
    one, many = (RCNNClassifier(learner).fit(X[:24], y[:24]) for learner in (on_grid.parity(), LEARNER))
    assert (one.predict(X[24:]) == y[24:]).all()
    assert (many.predict(X[24:]) == y[24:]).all()
    assert 8 * many.layers_.max() < one.layers_.max()
    assert RCNNClassifier(LEARNER.machine).fit(X[:24], y[:24]).score(X[24:], y[24:]) == 1


def test_saving_it_is_refused_with_a_reason(tmp_path):
    network = RCNNClassifier(LEARNER).fit([[0, 1], [1, 0], [1, 1]], [1, 0, 1])
    with pytest.raises(Refused, match="has many heads, and only machines with one can be saved"):
        network.save(tmp_path / "net")
    assert not (tmp_path / "net").exists()
