"""Noisy descent on which the bounds of section 5 bite: one step, on classes small enough to be summed out.

The total variation between the weights after a step on F and after a step on random labels is what the proof
bounds. For Gaussian noise it is erf(|d| / (2 sqrt(2) sigma)), d the difference of the mean gradients; that is
about 0.4 |d|/sigma where the proof has 0.5 |d|/sigma, so no bound of this kind is tighter than 0.8.
"""

from itertools import product
from math import erf, sqrt

import numpy as np

from tapegrad_papers.abbe_sandon import cross_predictability as cp

SIGNAL = 0.2
"""Size of a gradient, in units of the noise: small enough for erf to be nearly linear."""


def variation(distance: float, noise: float) -> float:
    """Total variation of two Gaussians with this distance between their means."""
    return erf(distance / (2 * sqrt(2) * noise))


def signs_of_a_bit(weights: int, gradient: float, noise: float, runs: int, seed: int) -> float:
    """The class of x and -x on one bit. All weights see the gradient -F(x) x `gradient`, and their sum times
    x is the output: the share of runs, after one step from 0, that answer rightly."""
    rng = np.random.default_rng(seed)
    sign = rng.choice([-1, 1], runs)
    after = gradient * sign[:, None] + noise * rng.normal(size=(runs, weights))
    return float(np.mean(np.sign(after.sum(axis=1)) == sign))


def on_two_points(samples: int | None, gradient: float, noise: float) -> tuple[float, float, float]:
    """All four functions of two points; one weight for each point, which sees -y `gradient` there. Summed
    over functions and batches (all inputs, if no number of samples is given): the mean total variation, CP_m, and
    the root of the mean square of the gradient, which is the junk flow of the step."""
    functions = np.array(list(product((-1, 1), repeat=2)))
    batches = list(product(range(2), repeat=samples)) if samples else [(0, 1)]
    found = []
    for f in functions:
        for batch in batches:
            mean = np.bincount(batch, f[list(batch)], minlength=2) / len(batch) * gradient
            found.append(variation(float(np.linalg.norm(mean)), noise))
    together = [
        np.mean([f[x] * g[x] for x in batch]) ** 2 for f in functions for g in functions for batch in batches
    ]
    return float(np.mean(found)), float(np.mean(together)), gradient


def flat_spectrum(n: int) -> np.ndarray:
    """A function of an even number of bits that is correlated with all parities alike: (-1)^(x0 x1 + ...)."""
    bits = cp.all_bits(n)
    return 1 - 2 * ((bits[:, ::2] * bits[:, 1::2]).sum(axis=1) % 2)


def on_parities(n: int, gradient: float, noise: float) -> tuple[float, float, float]:
    """One weight with the gradient -y h(x) `gradient`, h of flat spectrum: the mean total variation over all
    parities, E_F |E_F g - E g|^2, and E |g|^2, summed out."""
    h, table = flat_spectrum(n), cp.parity_table(n)
    means = gradient * (table * h).mean(axis=1)
    spread = [variation(abs(mean), noise) for mean in means]
    return float(np.mean(spread)), float(np.mean(means**2)), gradient**2


def parities_of_one_bit(gradient: float, noise: float, runs: int, seed: int) -> float:
    """The parities 1 and x of one bit, a weight with the gradient -y (1 - x)/sqrt(2) `gradient`, whose mean
    is opposite for the two; the answer is 1 where it is positive and x where not. The share of right answers."""
    rng = np.random.default_rng(seed)
    is_constant = rng.integers(0, 2, runs).astype(bool)
    after = gradient / sqrt(2) * np.where(is_constant, 1, -1) + noise * rng.normal(size=runs)
    x = rng.choice([-1, 1], runs)
    said, right = np.where(after > 0, 1, x), np.where(is_constant, 1, x)
    return float(np.mean(said == right))
