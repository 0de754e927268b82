"""Theorem 1's draw: the compiled filter is one of those that can be drawn, and works as one."""

import math

import numpy as np
import pytest

from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.learners.on_grid import Frame, single_coordinate
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad_papers.goel import drawn
from tapegrad_papers.goel.drawn import (
    draw_raw_network,
    embedded,
    initialisation_set,
    predict_raw,
    regrouped,
    rounding,
    shapes_of,
    success,
    train_raw,
    width_of,
)
from tapegrad_papers.goel.network import SMALLEST, _drawable, _full_machine


@pytest.mark.parametrize("states", [1, 2, 3, 5, pytest.param(20, marks=pytest.mark.slow)])
def test_filters_of_full_machines_can_be_drawn(states):
    assert [_drawable(_full_machine(states, seed)) for seed in range(2)] == ["", ""]


@pytest.mark.parametrize(
    "states", [75, 77, 100, *(pytest.param(s, marks=pytest.mark.slow) for s in (150, 243, 300, 364, 400))]
)
def test_filters_of_machines_with_many_states_can_be_drawn(states):
    assert _drawable(_full_machine(states, 0), zeros=False) == ""


def test_rounding_is_far_below_the_distance_of_different_weights():
    for states in (4, 75, 400):
        values = initialisation_set(states)
        assert (np.diff(values) > 1e6 * rounding(np.maximum(*np.abs([values[1:], values[:-1]])))).all()


def test_the_smallest_learner_is_trained_and_answers_as_a_draw():
    network = embedded(Rcnn.of(SMALLEST, 1, 1, 12, encoding="ternary"))
    for x, y in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        memory = train_raw(network, np.array([[x]]), np.array([y]))
        assert np.abs(3 * memory - [[x * y, y], [1, 1]]).max() < 1e-9
        assert predict_raw(network, memory, np.array([[1], [-1]])).tolist() == [x * y, -x * y]


@pytest.mark.slow
def test_the_single_coordinate_learner_is_trained_and_answers_as_a_draw():
    X = np.array([[1, -1], [-1, -1], [1, 1]])
    network = embedded(Rcnn.of(single_coordinate().machine, 3, 2, 60, encoding="ternary"))
    memory = train_raw(network, X, X[:, 1])
    points = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    assert predict_raw(network, memory, points).tolist() == points[:, 1].tolist()


def test_one_wrong_weight_is_another_network():
    """Each matrix has a weight without which the learner does not learn."""
    right = embedded(Rcnn.of(SMALLEST, 1, 1, 12, encoding="ternary"))
    for place in range(7):
        matrices = [matrix.copy() for matrix in (*right.V, right.U1, right.U2)]
        matrices[place][matrices[place] != 0] *= 2
        *V, U1, U2 = matrices
        wrong = type(right)(tuple(V), U1, U2, right.layers, right.frame)
        memory = train_raw(wrong, np.array([[1]]), np.array([-1]))
        said = predict_raw(wrong, memory, np.array([[1], [-1]])).tolist()
        assert said != [-1, 1] or np.abs(3 * memory - [[-1, -1], [1, 1]]).max() > 1e-3


def test_on_the_printed_grid_the_head_is_lost():
    """Work cells on the right only: the same filter memorises nothing of use."""
    right = embedded(Rcnn.of(SMALLEST, 1, 1, 12, encoding="ternary"))
    printed = type(right)(right.V, right.U1, right.U2, right.layers, Frame(0, 0, 0, 12))
    memory = train_raw(printed, np.array([[1]]), np.array([1]))
    assert not np.allclose(3 * memory, 1, atol=0.1)


def test_what_does_not_fit_is_refused(monkeypatch):
    network = Rcnn.of(_full_machine(1, 0), 1, 1, 4, encoding="ternary")
    with monkeypatch.context() as patch:
        patch.setattr(drawn, "width_of", lambda states: 100 * states)
        with pytest.raises(Refused, match=r"V2 has 1\d\d x"):
            embedded(network)
    without_head = initialisation_set(1)[np.abs(initialisation_set(1)) != 36]
    monkeypatch.setattr(drawn, "initialisation_set", lambda states: without_head)
    with pytest.raises(BrokenNet, match="the weight -36, which is not in U_s"):
        embedded(network)


def test_the_set_is_that_of_s_alone_and_has_no_duplicates():
    for states in (1, 2, 5, 33):
        values = initialisation_set(states)
        apart = np.diff(values)
        assert (apart > 1e-10 * np.abs(values[1:])).all()
        assert {0, 1, 36, -36, 18, -18, 1 / 6, -1 / 6, -1 / 9} <= set(values.tolist())
        assert len(values) <= 24 * 16 * states + 5
        for seed in range(3):
            network = Rcnn.of(_full_machine(states, seed), 1, 1, 4, encoding="ternary")
            used = np.unique(np.concatenate([part.ravel() for part in regrouped(network.filter)]))
            away = np.abs(used[:, None] - values).min(axis=1)
            assert (away <= rounding(used)).all()


def test_the_chance_is_that_of_all_weights_at_once():
    chance = success(2)
    assert chance.parameters == 3 * 200 * 201 + 10 * 200 + 201 + 301
    assert chance.log10_probability == pytest.approx(-chance.parameters * math.log10(chance.values))
    assert (width_of(1), width_of(2), width_of(7)) == (200, 200, 700)
    assert shapes_of(3)[1] == (300, 301)
    with pytest.raises(InputError):
        success(0)
    network = draw_raw_network(2, 4, np.random.default_rng(0))
    assert sum(part.size for part in (*network.V, network.U1, network.U2)) == chance.parameters
    assert np.isin(network.V[1], initialisation_set(2)).all()
