"""Parities of n bits: what noisy descent attains, its bound, and what compiled networks do."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from tapegrad_papers.experiments.compiled_parity import Learned, by_emulator, by_rcnn
from tapegrad_papers.theory.cross_predictability import Estimated, all_bits, of_parities
from tapegrad_papers.theory.descent_bounds import corollary_2, theorem_3, theorem_6_bound
from tapegrad_papers.theory.junk_flow import both_labels, junk_flow
from tapegrad_papers.theory.noisy_descent import Descent, accuracies, perceptrons, train, weights_of

DESCENT = Descent(rate=0.3, noise=0.15, steps=16, overflow=0.5)
"""Little enough noise to learn parities of two bits, and enough for the bound to say something at 16."""
HIDDEN = 8
SIZES = (1, 2, 3, 4, 6, 8, 12, 16)


@dataclass(frozen=True)
class NoisyParities:
    """One number of bits. Accuracies are means over runs, each with a parity, a network and noise of its own;
    the descent follows the mean gradient over all 2^n inputs, and is tested on all of them."""

    n: int
    weights: int
    accuracy: Estimated
    junk_flow: float
    theorem_3: float
    corollary_2: float
    theorem_6: float
    emulator: Learned
    rcnn: Learned | None
    """Left out where the grid would be large."""


def measure(
    sizes: Sequence[int] = SIZES,
    runs: int = 12,
    descent: Descent = DESCENT,
    hidden: int = HIDDEN,
    largest_grid: int = 8,
    seed: int = 0,
) -> list[NoisyParities]:
    """One row for each number of bits; `largest_grid` is the most bits that rcnn is asked for."""
    return [_measured(n, runs, descent, hidden, n <= largest_grid, seed) for n in sizes]


def _measured(n: int, runs: int, descent: Descent, hidden: int, grid: bool, seed: int) -> NoisyParities:
    rng = np.random.default_rng([seed, n])
    bits = all_bits(n)
    x = (2 * bits - 1).astype(np.float32)
    subsets = rng.integers(0, 2, (runs, n))
    labels = 1 - 2 * (subsets @ bits.T % 2)
    networks = perceptrons([n, hidden, 1], runs, seed + n)
    # Each input twice, as for random labels: the mean is the same, and one compiled program does for both.
    twice, _ = both_labels(x)
    trained = train(descent, networks, twice, np.repeat(labels, 2, axis=1), seed + 1)
    shares = accuracies(trained.networks, x, labels)
    flow = junk_flow(descent, networks, x, seed + 2)
    weights, cp = weights_of(networks), float(of_parities(n))
    return NoisyParities(
        n=n,
        weights=weights,
        accuracy=Estimated(float(shares.mean()), float(shares.std(ddof=1) / sqrt(runs))),
        junk_flow=flow.total,
        theorem_3=theorem_3(flow.total, descent.noise, cp),
        corollary_2=corollary_2(descent.largest, descent.noise, weights, descent.steps, None, cp),
        theorem_6=theorem_6_bound(flow.total, descent.noise, n),
        emulator=by_emulator(subsets[0], seed),
        rcnn=by_rcnn(subsets[0], seed) if grid else None,
    )
