"""Piecewise linear functions of one real variable that answer a question exactly on finitely many values."""

from collections.abc import Iterator, Sequence
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


def indicator(values: NDArray[np.float64], holds: NDArray[np.bool_]) -> list[Bump]:
    """Flat bumps, one for each run of neighbouring values, that add up to 1 where `holds` and to 0 elsewhere.

    Each edge lies in the gap between a value inside and its neighbour outside: a third of the gap flat at
    0, a third rising, a third flat at 1. So errors up to a third of the gap change nothing, and the
    derivative is 0 at every value.
    """
    order = np.argsort(values)
    return [_flat(values[order], first, last) for first, last in _runs(holds[order])]


def _runs(holds: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], holds, [False]]).astype(int)))
    yield from ((int(first), int(end) - 1) for first, end in edges.reshape(-1, 2))


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


def passing(values: NDArray[np.float64], holds: NDArray[np.bool_], slope: float) -> Bump:
    """The bump that is 1 at the one value where `holds`, with this derivative there, and flat 0 elsewhere."""
    (centre,) = values[holds]
    gap = float(np.abs(values[~holds] - centre).min())
    width = gap / 3
    rise, fall = (1 - slope * width) / width, -(1 + slope * width) / width
    kinks: Sequence[float] = [centre - 2 * width, centre - width, centre + width, centre + 2 * width]
    return Bump(tuple(map(float, kinks)), (rise, slope - rise, fall - slope, -fall))
