"""What no noisy descent can exceed: Theorem 3, Corollary 2 and Theorem 6 of Abbe, Sandon, as numbers.

Each step is W <- W - E G(W(X), F(X)) + Z, with noise Z of standard deviation sigma on every weight, and G the
gradient of a sample times the rate, cut off at the overflow range. The accuracy after T steps exceeds 1/2 by
at most the total variation between the weights trained on F and those trained on random labels.
"""

from collections.abc import Callable
from math import log2, sqrt

from tapegrad.errors import InputError


def theorem_3(junk_flow: float, noise: float, cross_predictability: float) -> float:
    """1/2 + JF / sigma * CP_m^(1/4). (The proof gives half of the excess: Pinsker's 1/(2 sigma) in (24)
    becomes 1/sigma in (37).)"""
    _check_noise(noise)
    return 0.5 + junk_flow / noise * cross_predictability**0.25


def corollary_2(
    largest: float, noise: float, weights: int, steps: int, samples: int | None, infinite: float
) -> float:
    """1/2 + A / sigma * sqrt(E) T (1/m + (1 - 1/m) CP)^(1/4), from |G| <= A for each of E weights; no
    number of samples means that the gradient is the expectation over all inputs."""
    _check_noise(noise)
    share = 1 / samples if samples else 0.0
    return theorem_3(largest * sqrt(weights) * steps, noise, share + (1 - share) * infinite)


def theorem_6_bound(junk_flow: float, noise: float, n: int) -> float:
    """1/2 + JF / (2 sigma) * 2^(-n/2), for parities of n bits and gradients over all inputs: Lemma 7 in the
    place of (26) to (33) gives the square root of CP = 2^-n in the place of its fourth root."""
    _check_noise(noise)
    return 0.5 + junk_flow / (2 * noise) * 2 ** (-n / 2)


def theorem_6_excess(n: int, weights: int) -> float:
    """log2 of the excess over 1/2 with all parameters at the limits that Theorem 6 allows: T, rate and range
    2^(n/10), variance 2^(-n/10). JF <= T * rate * range * sqrt(E), so it is sqrt(E)/2 * 2^(-3n/20)."""
    flow = 3 * n / 10 + log2(weights) / 2
    return flow + n / 20 - 1 - n / 2


def theorem_6_from(weights: Callable[[int], int], most: int = 100_000) -> int:
    """The "sufficiently large n": from which on descent on a network of `weights(n)` weights stays below
    1/2 + 2^(-n/10). Found by trying; `weights` must be a polynomial."""
    last = max((n for n in range(1, most) if theorem_6_excess(n, weights(n)) > -n / 10), default=0)
    if last == most - 1:
        raise InputError(f"the network is too large for the bound at every n below {most:,}")
    return last + 1


def _check_noise(noise: float) -> None:
    if not noise > 0:
        raise InputError("the bounds are for descent with noise; its standard deviation must be positive")
