"""Section 6.1 of Abbe, Sandon: the parity of the black squares of an image."""

from dataclasses import dataclass

import numpy as np

from tapegrad_papers.experiments.compiled_parity import Learned, by_emulator
from tapegrad_papers.experiments.perceptron import Errors, fit


@dataclass(frozen=True)
class Images:
    """The same task for the ordinary network and for the compiled one."""

    side: int
    images: int
    perceptron: Errors
    emulator: Learned


def images(side: int = 13, count: int = 1000, epochs: int = 80, seed: int = 0) -> Images:
    """The paper's own settings; `count` images to train on and as many to test on, of side x side squares
    that are black with chance 1/2."""
    rng = np.random.default_rng(seed)
    n = side * side
    train, test = rng.integers(0, 2, (2, count, n))
    errors = fit((train, train.sum(axis=1) % 2), (test, test.sum(axis=1) % 2), epochs=epochs, seed=seed)
    return Images(side, count, errors, by_emulator(np.ones(n, int), seed))
