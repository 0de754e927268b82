"""Noisy descent and junk flow, beside finite differences and plain numpy."""

import jax
import numpy as np
import pytest

from tapegrad_papers.abbe_sandon.cross_predictability import all_bits
from tapegrad_papers.abbe_sandon.descent import Descent, accuracies, junk_flow, perceptrons, train, weights_of

X = (2 * all_bits(2) - 1).astype(np.float32)


def by_numpy(descent: Descent, layers, x, y):
    """One step without noise, its gradients by central differences; also the mean of |G|^2."""
    shapes = [np.asarray(part, float) for part in jax.tree.leaves(layers)]

    def loss(parts, row, label):
        w1, b1, w2, b2 = parts
        return float((np.maximum(row @ w1 + b1, 0) @ w2 + b2)[0] - label) ** 2

    total, square = [np.zeros_like(part) for part in shapes], 0.0
    for row, label in zip(x.astype(float), y, strict=True):
        for place, part in enumerate(shapes):
            for index in np.ndindex(part.shape):
                ends = []
                for sign in (1, -1):
                    moved = [p.copy() for p in shapes]
                    moved[place][index] += sign * 1e-6
                    ends.append(loss(moved, row, label))
                slope = np.clip((ends[0] - ends[1]) / 2e-6, -descent.overflow, descent.overflow)
                total[place][index] += descent.rate * slope / len(x)
                square += (descent.rate * slope) ** 2 / len(x)
    return [part - move for part, move in zip(shapes, total, strict=True)], square


@pytest.mark.slow
def test_a_step_is_the_clipped_mean_gradient() -> None:
    descent = Descent(rate=0.25, noise=0.0, steps=1, overflow=0.5)
    networks = perceptrons([2, 3, 1], 2, seed=4)
    y = np.array([[1, -1, -1, 1], [1, 1, -1, -1]])
    trained = train(descent, networks, X, y, seed=0)
    for i in range(2):
        one = jax.tree.map(lambda part, i=i: part[i], networks)
        expected, square = by_numpy(descent, one, X, y[i])
        found = [np.asarray(part)[i] for part in jax.tree.leaves(trained.networks)]
        for a, b in zip(found, expected, strict=True):
            assert np.allclose(a, b, atol=2e-5)
        assert trained.square_norms[i, 0] == pytest.approx(square, rel=1e-3)
    assert weights_of(networks) == 2 * 3 + 3 + 3 + 1


@pytest.mark.slow
def test_noise_has_the_deviation_asked_for() -> None:
    networks = perceptrons([2, 40, 1], 20, seed=1)
    still = Descent(rate=0.0, noise=0.5, steps=4, overflow=1.0)
    after = train(still, networks, X, np.ones((20, 4)), seed=2).networks
    moved = np.concatenate(
        [
            np.ravel(np.asarray(a) - np.asarray(b))
            for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(networks), strict=True)
        ]
    )
    assert moved.std() == pytest.approx(0.5 * 2, rel=0.05)  # four steps: twice the noise of one


@pytest.mark.slow
def test_junk_flow_is_bounded_by_corollary_2_and_descent_learns_without_noise() -> None:
    networks = perceptrons([2, 8, 1], 6, seed=3)
    quiet = Descent(rate=0.2, noise=0.0, steps=60, overflow=1.0)
    y = np.tile([1, -1, -1, 1], (6, 1))
    trained = train(quiet, networks, X, y, seed=0)
    assert accuracies(trained.networks, X, y).max() == 1
    flow = junk_flow(quiet, networks, X)
    assert len(flow.steps) == 60
    assert flow.total == pytest.approx(flow.steps.sum())
    assert 0 < flow.total <= quiet.largest * np.sqrt(weights_of(networks)) * quiet.steps
