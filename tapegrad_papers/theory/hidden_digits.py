"""Section 6.3 of Abbe, Sandon: sums whose digits are written in unknown symbols.

An input lists n numbers of n digits in base n, then a place among the digits of their sum (of which there
are n + 1, and the first is not asked for), then a digit. The function says whether the sum has that digit
there. There is one function for each way to give the n symbols their values.
"""

from itertools import permutations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from tapegrad_papers.theory.cross_predictability import Function, FunctionClass, Values

Meaning = tuple[int, ...]
"""The value of each symbol."""


def draw_inputs(n: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Uniform: n * n symbols, most significant first, number by number; the place, from 0 for the units; the
    symbol at that place."""
    return rng.integers(0, n, (count, n * n + 2))


def matches(inputs: NDArray[np.int64], n: int, meaning: Meaning) -> NDArray[np.bool_]:
    """Whether the sum has the digit, by arithmetic on integers."""
    values = np.asarray(meaning)[inputs]
    powers = n ** np.arange(n - 1, -1, -1)
    total = (values[:, : n * n].reshape(-1, n, n) @ powers).sum(axis=1)
    return total // n ** inputs[:, -2] % n == values[:, -1]


def centred(answers: NDArray[np.bool_], n: int) -> Values:
    """Outputs of mean 0 and mean square 1: one answer in n is yes, for the last symbol is independent of the
    sum and its value uniform."""
    return np.where(answers, sqrt(n - 1), -1 / sqrt(n - 1))


def meanings(n: int) -> list[Meaning]:
    """All ways to give the symbols their values."""
    return list(permutations(range(n)))


def hidden_digit_sums(n: int) -> FunctionClass:
    """The class, with a uniformly random meaning of the symbols."""

    def function(rng: np.random.Generator) -> Function:
        meaning = tuple(rng.permutation(n).tolist())
        return lambda x: centred(matches(x, n, meaning), n)

    return FunctionClass(f"sums in base {n}", lambda rng, count: draw_inputs(n, count, rng), function)


def all_inputs(n: int) -> NDArray[np.int64]:
    """Every input, for small n: n^(n*n + 2) of them."""
    return np.indices((n,) * (n * n + 2), dtype=np.int8).reshape(n * n + 2, -1).T.astype(np.int64)


def consistent(inputs: NDArray[np.int64], answers: NDArray[np.bool_], n: int) -> list[Meaning]:
    """The meanings that explain all answers."""
    return [m for m in meanings(n) if (matches(inputs, n, m) == answers).all()]
