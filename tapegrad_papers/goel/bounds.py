"""How many restarts and how large a validation set: the sample sizes of Corollary 2 and its neighbours."""

import math
from dataclasses import dataclass
from fractions import Fraction

from tapegrad.errors import InputError


def deviation_bound(candidates: int, validation: int, failure: float) -> float:
    """`sqrt(log(2 M / delta) / (2 N))`: with probability `1 - delta` no candidate's error on N problems is
    further from its true error (appendix B.5, by Hoeffding and a union bound)."""
    return math.sqrt(math.log(2 * candidates / failure) / (2 * validation))


def validation_size(candidates: int, accuracy: float, failure: float) -> int:
    """The N for which twice the deviation bound is at most the accuracy: then the candidate chosen is within
    `accuracy` of the best one tried."""
    require_probability(accuracy, "accuracy")
    require_probability(failure, "failure")
    return math.ceil(2 * math.log(2 * candidates / failure) / accuracy**2)


@dataclass(frozen=True)
class Restarts:
    """Corollary 2 with numbers: `log10_success` of one random filter, and what follows from it."""

    parameters: int
    values: int
    log10_success: float
    log10_restarts: float
    validation: float
    """Size of the validation set: it grows with the logarithm of the restarts only."""


def corollary_2(parameters: int, values: int, accuracy: float, failure: float) -> Restarts:
    """One filter in `values ** parameters` is the one wanted (others may do as well: a lower bound).
    `log(2 / failure)` times as many restarts find it with probability `1 - failure / 2`, and the
    validation set must then tell that many candidates apart."""
    require_probability(accuracy, "accuracy")
    require_probability(failure, "failure")
    log_success = -parameters * math.log(values)
    log_restarts = -log_success + math.log(math.log(2 / failure))
    validation = 2 * (log_restarts + math.log(4 / failure)) / accuracy**2
    ten = math.log(10)
    return Restarts(parameters, values, log_success / ten, log_restarts / ten, validation)


def observation_1(examples: int, k: int) -> Fraction:
    """The accuracy and failure probability to aim for when only the number M of extra examples is known: the
    power of 2 in `[M^(-1/3k) / 2, M^(-1/3k)]`."""
    if examples < 1 or k < 1:
        raise InputError("the number of examples and the exponent must be at least 1")
    power = 0
    while (2 ** (power + 1)) ** (3 * k) <= examples:
        power += 1
    if (2**power) ** (3 * k) < examples:
        power += 1
    return Fraction(1, 2**power)


def claim_1_examples(s: int, k: int, needed: int, time: int) -> int:
    """How many extra examples let Algorithm 2 reach (s, k): `(s + k + needed)^10 + time`."""
    return (s + k + needed) ** 10 + time


def claim_2_examples(dimension: int, k: int, accuracy: float, failure: float) -> int:
    """Training samples for which a Turing-optimal learner is as good as a PAC learner that needs
    `(d / (epsilon delta))^k`: the larger of `d^(3k)` and `(8 / min(epsilon, delta)^3)^k`."""
    least = min(accuracy, failure)
    return max(dimension ** (3 * k), math.ceil((8 / least**3) ** k))


def require_probability(value: float, name: str) -> None:
    if not 0 < value < 1:
        raise InputError(f"the {name} must lie between 0 and 1, and it is {value}")
