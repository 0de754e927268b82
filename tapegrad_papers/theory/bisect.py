"""Bisection on a logarithmic scale, for radii of unknown size."""

import math
from collections.abc import Callable


def largest_log(holds: Callable[[float], bool], least: float) -> float:
    """The largest logarithm up to 0 at which a condition holds that fails from some point on; it does hold
    there. -inf if it fails at `least` already."""
    if holds(0.0):
        return 0.0
    if not holds(least):
        return -math.inf
    low, high = least, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def largest(holds: Callable[[float], bool]) -> float:
    """The largest number up to 1 for which a condition holds that fails from some number on, or 0."""
    return math.exp(largest_log(lambda log: holds(math.exp(log)), -700.0))
