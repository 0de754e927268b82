"""Parities, learned by the two networks that this package compiles a parity learner to."""

from dataclasses import dataclass

import numpy as np

from tapegrad import learners
from tapegrad.compile import compile
from tapegrad.learners import on_grid as grid_learners
from tapegrad.targets.emulator.net import PracticalNet
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.predicting import predict
from tapegrad.targets.rcnn.training import memorise

MOST_LAYERS = 10_000_000


@dataclass(frozen=True)
class Learned:
    """How a trained network did on fresh inputs, and how many samples it was trained on."""

    samples: int
    accuracy: float


def by_emulator(subset: np.ndarray, seed: int, tests: int = 200) -> Learned:
    """Plain SGD on the emulator of Gaussian elimination, until it answers by itself: about 2n samples."""
    n = len(subset)
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (8 * n + 40, n))
    learner = learners.parity(n)
    net = compile(learner, "emulator").net
    assert isinstance(net, PracticalNet)
    carry = net.start(learner.start(x, x @ subset % 2, seed))
    while carry.answer is None and not net.done(carry):
        carry = net.advance(carry, 1, "fast")
    test = rng.integers(0, 2, (tests, n))
    said = net.outputs(carry, test, rng.integers(0, 2, tests)) > 0
    return Learned(carry.steps, float(np.mean(said == (test @ subset % 2 == 1))))


def by_rcnn(subset: np.ndarray, seed: int, tests: int = 8) -> Learned:
    """Plain SGD memorises n + 6 samples; the forward pass eliminates. All samples are in the grid, so their
    number is fixed in advance; six more than n span everything but once in 64 times."""
    n = len(subset)
    rng = np.random.default_rng(seed)
    X, test = rng.choice([-1, 1], (n + 6, n)), rng.choice([-1, 1], (tests, n))
    learner = grid_learners.parity()
    network = Rcnn.of(learner.machine, len(X), n, MOST_LAYERS, frame=learner.frame)
    *_, last = memorise(network, X.astype(float), _labels(X, subset).astype(float), engine="fast")
    found = predict(network, last.memory, test)
    return Learned(len(X), float(np.mean(found.labels == _labels(test, subset))))


def _labels(X: np.ndarray, subset: np.ndarray) -> np.ndarray:
    """The product of the features in the subset."""
    return np.where(subset, X, 1).prod(axis=1)
