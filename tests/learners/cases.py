"""Learners with something to learn: one table that feeds the tests of learners and of networks."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tapegrad.learners import (
    Learner,
    best_of,
    conjunction,
    decision_list,
    dictator,
    doubling,
    majority,
    nearest,
    parity,
    perceptron,
)


@dataclass(frozen=True)
class Case:
    """A learner, the function it is to learn, and a number of samples that suffices."""

    name: str
    learner: Learner
    concept: Callable[[np.ndarray], np.ndarray]
    samples: int
    learns: bool = True
    """Whether it gets the function right on all inputs."""

    def drawn(self, seed: int = 0, count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Random samples with the right labels."""
        x = np.random.default_rng(seed).integers(0, 2, (count or self.samples, self.learner.inputs))
        return x, self.concept(x)

    def all_inputs(self) -> np.ndarray:
        n = self.learner.inputs
        return np.arange(1 << n)[:, None] >> np.arange(n) & 1


def _list(x: np.ndarray) -> np.ndarray:
    """if x2 then 1 else if not x0 then 0 else x3."""
    return np.where(x[:, 2] == 1, 1, np.where(x[:, 0] == 0, 0, x[:, 3]))


CASES = [
    Case("parity", parity(6), lambda x: x[:, [1, 3, 5]].sum(axis=1) % 2, 60),
    Case("conjunction", conjunction(4, 30), lambda x: x[:, 0] * (1 - x[:, 3]), 90),
    Case("perceptron", perceptron(4, 90), lambda x: (2 * x[:, 0] + x[:, 1] - x[:, 2] >= 1) * 1, 220),
    Case("decision list", decision_list(4, 70), _list, 170),
    Case("look-up", nearest(3, 8), lambda x: (x.sum(axis=1) == 2) * 1, 60, learns=False),
    Case("three nearest", nearest(4, 7, 3), lambda x: (x.sum(axis=1) > 2) * 1, 30, learns=False),
    Case("dictator", dictator(5, 7), lambda x: x[:, 3], 250),
    Case("majority", majority(3, 15), lambda x: x[:, 0] | x[:, 1], 40, learns=False),
    Case(
        "best of three",
        best_of([majority(4, 9), parity(4), conjunction(4, 9)], 12, 6),
        lambda x: x[:, 0] ^ x[:, 2],
        60,
    ),
    Case("doubling", doubling(parity(3), 4), lambda x: x[:, 0] ^ x[:, 2], 150),
]
