"""Piecewise linear functions of one real variable that answer a question exactly on finitely many values."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Bump:
    """`constant + sum(slopes[i] * relu(v - kinks[i]))`."""

    kinks: tuple[float, ...]
    slopes: tuple[float, ...]
    constant: float = 0.0

    def __call__(self, v: float) -> float:
        pairs = zip(self.kinks, self.slopes, strict=True)
        return self.constant + sum(slope * max(v - kink, 0.0) for kink, slope in pairs)


def indicator(ordered: NDArray[np.float64], places: NDArray[np.int64]) -> list[Bump]:
    """Flat bumps, one for each run of neighbouring values, that add up to 1 at the values in these places of
    the (ordered) list and to 0 at the others.

    Each edge lies in the gap between a value inside and its neighbour outside: a third of the gap flat at
    0, a third rising, a third flat at 1. So errors up to a third of the gap change nothing, and the
    derivative is 0 at every value.
    """
    runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(places) else []
    return [_flat(ordered, int(run[0]), int(run[-1])) for run in runs]


def _flat(ordered: NDArray[np.float64], first: int, last: int) -> Bump:
    kinks: list[float] = []
    slopes: list[float] = []
    constant = 1.0
    if first > 0:
        constant = 0.0
        kinks, slopes = _ramp(ordered[first - 1], ordered[first], +1)
    if last < len(ordered) - 1:
        falling = _ramp(ordered[last], ordered[last + 1], -1)
        kinks, slopes = kinks + falling[0], slopes + falling[1]
    return Bump(tuple(kinks), tuple(slopes), constant)


def _ramp(low: float, high: float, sign: int) -> tuple[list[float], list[float]]:
    third = (high - low) / 3
    return [float(low + third), float(high - third)], [float(sign / third), float(-sign / third)]


def passing(ordered: NDArray[np.float64], place: int, slope: float) -> Bump:
    """The bump that is 1 at the value in this place, with this derivative there, and flat 0 elsewhere."""
    centre = float(ordered[place])
    width = float(min(np.diff(ordered[max(place - 1, 0) : place + 2]))) / 3
    rise, fall = (1 - slope * width) / width, -(1 + slope * width) / width
    kinks = (centre - 2 * width, centre - width, centre + width, centre + 2 * width)
    return Bump(kinks, (rise, slope - rise, fall - slope, -fall))
