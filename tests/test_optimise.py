"""The optimiser on losses whose answer is known by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from tapegrad._optimise import OnSimplex, descend, train
from tapegrad._precision import in_double


@in_double
def test_a_linear_loss_goes_to_its_best_vertex_in_one_step():
    cost = np.array([3.0, 1.0, 2.0])
    result = train(lambda s: s @ cost, np.array([1.0, 0.0, 0.0]), OnSimplex(), 1.0, 10)
    assert np.array_equal(result.parameters, [0, 1, 0])
    assert int(result.steps) == 1


@in_double
def test_a_point_stays_where_no_vertex_is_strictly_better():
    start = np.array([0.0, 0.0, 1.0])
    result = train(lambda s: 0.0 * jnp.sum(s), start, OnSimplex(), -1.0, 5)
    assert np.array_equal(result.parameters, start)
    assert int(result.steps) == 5


@in_double
def test_other_parameters_move_by_plain_gradient_descent():
    def loss(p):
        return p["s"] @ np.array([0.0, 1.0]) + (p["t"] - 3.0) ** 2

    start = {"s": np.array([0.5, 0.5]), "t": np.asarray(1.0)}
    gradient = {"s": np.array([0.0, 1.0]), "t": np.asarray(-4.0)}
    after = descend(loss, start, {"s": OnSimplex(), "t": 0.25}, gradient)
    assert np.array_equal(after["s"], [1, 0])
    assert float(after["t"]) == 2.0


@in_double
@pytest.mark.parametrize("valley", [0.25, 0.5, 1.0])
def test_the_line_search_finds_the_bottom_of_a_piecewise_linear_valley(valley):
    def loss(s):
        return jnp.abs(s[1] - valley)

    result = train(loss, np.array([1.0, 0.0]), OnSimplex(line_search=True), 0.0, 3)
    assert float(result.parameters[1]) == valley
    assert int(result.steps) == 1


@in_double
def test_the_bound_is_asked_after_a_step_never_before_the_first():
    result = train(lambda t: t**2, np.asarray(1.0), 0.25, stop=5.0, budget=10)
    assert int(result.steps) == 1
    assert float(result.parameters) == 0.5
