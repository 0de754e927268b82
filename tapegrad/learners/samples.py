"""A stream of samples, each with the two random bits of Theorem 4."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import InputError

Sample = tuple[Sequence[int], int, int, int]
"""x, y, the random bit, the guess."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples in the order in which they are shown, one row each, all of them bits.

    `random` feeds randomised learners. `guess` is what a learner says while it is still learning: where it
    equals the label, the sample is lost (Theorem 4).
    """

    x: NDArray[np.uint8]
    y: NDArray[np.uint8]
    random: NDArray[np.uint8]
    guess: NDArray[np.uint8]

    @classmethod
    def drawn(cls, x: ArrayLike, y: ArrayLike, seed: int = 0, *, guessing: bool = True) -> "Samples":
        """Samples with random bits from the seed; without guessing all guesses are wrong."""
        rows, labels = as_bits(x, "x"), as_bits(y, "y")
        if rows.ndim != 2 or labels.shape != rows.shape[:1]:
            raise InputError(
                f"samples need a matrix x and one label y for each row, not shapes {rows.shape} and "
                f"{labels.shape}"
            )
        generator = np.random.default_rng(seed)
        random, guess = generator.integers(0, 2, (2, len(rows)), np.uint8)
        return cls(rows, labels, random, guess if guessing else 1 - labels)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, t: int) -> Sample:
        return self.x[t].tolist(), int(self.y[t]), int(self.random[t]), int(self.guess[t])


def as_bits(values: ArrayLike, what: str) -> NDArray[np.uint8]:
    """An array of 0 and 1; anything else is refused, never rounded."""
    array: NDArray[Any] = np.asarray(values)
    if array.dtype == object or array.dtype.kind not in "buif" or not np.isin(array, (0, 1)).all():
        raise InputError(
            f"{what} must consist of 0 and 1",
            advice="Binarise the features first, for instance (X > X.mean(axis=0)).astype(int).",
        )
    return array.astype(np.uint8)
