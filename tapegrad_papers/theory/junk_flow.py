"""Junk flow (Abbe, Sandon, Theorem 3): how far a descent moves a network on random labels.

JF_T = sum over t of (E |G_(t-1)(W(X), Y)|^2)^(1/2), with W trained on random labels Y; the rate is part of G.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad_papers.theory.noisy_descent import Descent, Layers, train


@dataclass(frozen=True)
class JunkFlow:
    """The flow, its share in every step, and the standard deviation of single runs."""

    total: float
    steps: NDArray[np.float64]
    spread: float


def both_labels(x: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Every input twice, with the labels 1 and -1: the mean over these is that over random labels."""
    return np.repeat(x, 2, axis=0), np.tile(np.array([1, -1], np.float32), len(x))


def junk_flow(descent: Descent, networks: Layers, x: NDArray[np.float32], seed: int = 0) -> JunkFlow:
    """Trains the networks on random labels; the mean over them, each with noise of its own, stands for the
    expectation over the noise."""
    inputs, labels = both_labels(x)
    runs = len(networks[0][0])
    norms = train(descent, networks, inputs, np.tile(labels, (runs, 1)), seed).square_norms
    steps = np.sqrt(norms.mean(axis=0, dtype=np.float64))
    return JunkFlow(float(steps.sum()), steps, float(np.sqrt(norms).sum(axis=1).std()))
