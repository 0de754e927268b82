"""Whole numbers drawn by a seed, the same on every platform and version: all draws are doubles of PCG64, a
stream that NumPy keeps as it is, scaled and cut here."""

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused


class Draws:
    """A stream of whole numbers made from doubles."""

    def __init__(self, seed: int) -> None:
        if seed < 0:
            raise Refused(f"a seed is a whole number from 0 on, not {seed}")
        self._doubles = np.random.Generator(np.random.PCG64(seed))

    def chance(self, probability: float) -> bool:
        return bool(self._doubles.random() < probability)

    def below(self, limits: NDArray[np.int64]) -> NDArray[np.int64]:
        """For every limit a number from 0 to below it; 0 where the limit is 0."""
        return (self._doubles.random(len(limits)) * limits).astype(np.int64)

    def one_below(self, limit: int) -> int:
        return int(self._doubles.random() * limit)

    def order(self, count: int) -> NDArray[np.int64]:
        """The numbers below `count`, shuffled."""
        return np.argsort(self._doubles.random(count), kind="stable")
