"""The ready examples, each against an answer found without tapegrad."""

from itertools import product

import numpy as np
import pytest

from tapegrad.errors import InputError
from tapegrad.targets.extended.examples import CORNERS, EXAMPLES, GRID, LINE_X, LINE_Y, example_named


def spot_check(extended, steps):
    """Inside a run, the gradient of the fast engine against automatic differentiation of the whole loss."""
    carry = extended.start()
    for chosen in steps:
        carry = extended.net.advance(carry, chosen - carry.steps, "fast")
        pairs = zip(extended.net.fast_gradient(carry), extended.net.gradient(carry), strict=True)
        assert all(np.allclose(ours, reference, rtol=1e-12, atol=1e-9) for ours, reference in pairs)


@pytest.mark.slow
def test_the_perceptron_rule():
    """Against Rosenblatt's rule in plain Python."""
    w, labels = np.zeros(3), [0, 1, 1, 1]
    for _ in range(3):
        for (a, b), label in zip(CORNERS, labels, strict=True):
            sample = np.array([a, b, 1])
            w = w + (label - int(w @ sample >= 0)) * sample
    extended = EXAMPLES["perceptron"].build()
    run = extended.train()
    assert np.array_equal(run.theta, w)
    assert run.output.ravel().tolist() == labels
    assert np.array_equal(run.output, extended.primary_output(w))
    spot_check(extended, (2, 100, run.steps - 1))


@pytest.mark.slow
def test_exhaustive_search_on_xor():
    """The first of all 2^18 networks, in the order of the counter, that makes no mistake."""
    numbers = np.arange(2**18)[:, None]
    weights = (numbers >> np.arange(0, 18, 2) & 1) - 2 * (numbers >> np.arange(1, 18, 2) & 1)
    mistakes = np.zeros(len(numbers), int)
    for (a, b), label in zip(CORNERS, [0, 1, 1, 0], strict=True):
        hidden = [weights[:, i] * a + weights[:, i + 1] * b + weights[:, i + 2] >= 0 for i in (0, 3)]
        out = weights[:, 6] * hidden[0] + weights[:, 7] * hidden[1] + weights[:, 8] >= 0
        mistakes += out != label
    extended = EXAMPLES["xor"].build()
    run = extended.train()
    assert np.array_equal(run.theta, weights[np.argmin(mistakes)])
    assert run.output.ravel().tolist() == [0, 1, 1, 0]
    assert run.loss == 0
    assert run.to_json()["steps"] == run.steps
    spot_check(extended, (2, 1_000_000))


@pytest.mark.slow
def test_least_squares_on_a_grid():
    best = min(product(GRID, GRID), key=lambda p: np.sum((p[0] * LINE_X + p[1] - LINE_Y) ** 2))
    run = EXAMPLES["line"].run()
    assert tuple(run.theta) == best
    assert run.loss == np.sum((best[0] * LINE_X + best[1] - LINE_Y) ** 2) / 2


def test_an_unknown_example_is_refused_with_the_names_of_those_there_are():
    with pytest.raises(InputError, match="xor, perceptron, line"):
        example_named("sgd")
