"""Cross-predictability (Abbe, Sandon): how well two random functions of a class predict each other.

    CP = E_(F, F') (E_X F(X) F'(X))^2

for functions with values of mean square 1. A class with a small CP cannot be learned by noisy descent, for
its gradients hardly depend on which function is being learned (`descent`). For parities, Lemma 7 says so of
every function of (X, Y).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import InputError

Values = NDArray[np.float64]
Function = Callable[[NDArray[np.int64]], Values]


@dataclass(frozen=True)
class FunctionClass:
    """A distribution over functions and one over inputs (P_F and P_X), both to be drawn from."""

    name: str
    inputs: Callable[[np.random.Generator, int], NDArray[np.int64]]
    """Draws this many inputs, one in each row."""
    function: Callable[[np.random.Generator], Function]
    """Draws a function, of rows of inputs."""


@dataclass(frozen=True)
class Estimated:
    """A mean over independent draws, and its standard error."""

    value: float
    error: float

    def agrees_with(self, truth: float, errors: float = 4.0) -> bool:
        """Whether the truth lies within this many standard errors."""
        return abs(self.value - truth) <= errors * self.error + 1e-12


def exact(values: ArrayLike) -> float:
    """CP of a class that is written out: a row for each function, a column for each input, both uniform."""
    table = np.asarray(values, np.float64)
    if table.ndim != 2 or table.size == 0:
        raise InputError(
            "cross-predictability needs a table: a row for each function, a column for each input"
        )
    together = table @ table.T / table.shape[1]
    return float(np.mean(together**2))


def of_signs(values: ArrayLike) -> Fraction:
    """The same for functions with values -1 and 1, as an exact fraction."""
    table = np.asarray(values)
    if table.ndim != 2 or table.size == 0 or not np.isin(table, (-1, 1)).all():
        raise InputError("an exact cross-predictability needs a table of -1 and 1")
    together = table.astype(np.int64) @ table.T.astype(np.int64)
    total = sum(int(x) ** 2 for x in together.ravel())
    return Fraction(total, (table.shape[0] * table.shape[1]) ** 2)


def of_parities(n: int) -> Fraction:
    """2^-n: different parities are orthogonal, so only equal ones count, and those come with chance 2^-n."""
    if n < 0:
        raise InputError("there are no parities of a negative number of bits")
    return Fraction(1, 2**n)


def with_samples(infinite: float | Fraction, m: int) -> float | Fraction:
    """CP_m = 1/m + (1 - 1/m) CP (47), with m samples in the place of the distribution of inputs: of the m^2
    pairs of samples m are equal, and there F(X)^2 F'(X)^2 = 1 (so the values must be -1 and 1)."""
    if m < 1:
        raise InputError("a batch has at least one sample")
    share = Fraction(1, m)
    return share + (1 - share) * infinite


def estimated(
    functions: FunctionClass, pairs: int, points: int, rng: np.random.Generator, *, unbiased: bool = True
) -> Estimated:
    """CP by drawing `pairs` pairs of functions and `points` inputs for each.

    The square of a mean over m points is too large by the variance of the mean; the mean over pairs of
    different points, ((sum z)^2 - sum z^2) / (m (m - 1)), is not. Without `unbiased` it is CP_m itself.
    """
    if pairs < 2 or points < 2:
        raise InputError("an estimate needs at least two pairs of functions and two inputs")
    found = np.empty(pairs)
    for i in range(pairs):
        x = functions.inputs(rng, points)
        z = functions.function(rng)(x) * functions.function(rng)(x)
        off_diagonal = z.sum() ** 2 - (z**2).sum() if unbiased else z.sum() ** 2
        found[i] = off_diagonal / (points * (points - 1) if unbiased else points**2)
    return Estimated(float(found.mean()), float(found.std(ddof=1) / sqrt(pairs)))


def all_bits(n: int) -> NDArray[np.int64]:
    """Every input of n bits, one in a row."""
    return np.arange(1 << n)[:, None] >> np.arange(n) & 1


def parity_table(n: int) -> NDArray[np.int64]:
    """Every parity of n bits on every input, as signs: row s belongs to the subset with the bits of s."""
    bits = all_bits(n)
    return 1 - 2 * (bits @ bits.T % 2)


def parities(n: int) -> FunctionClass:
    """Section 6.1: the parity of a uniformly random subset, on uniform bits."""

    def function(rng: np.random.Generator) -> Function:
        subset = rng.integers(0, 2, n)
        return lambda x: (1 - 2 * (x @ subset % 2)).astype(np.float64)

    return FunctionClass(f"parities of {n} bits", lambda rng, m: rng.integers(0, 2, (m, n)), function)


class Lemma7(NamedTuple):
    """Both sides of Lemma 7, of (58) and of Corollary 3."""

    squares: float
    """Sum over all subsets s of (E f(X, Y) - E f(X, p_s(X)))^2."""
    mean_square: float
    """E f(X, Y)^2, the bound."""
    variance: float
    """Var_F E_X f(X, F(X)), at most 2^-n E f^2."""
    absolute: float
    """The sum of absolute values, at most 2^(n/2) sqrt(E f^2)."""


def lemma_7(values: ArrayLike) -> Lemma7:
    """Every quantity, summed out: `values[x, y]` is f at the input with number x and the label y."""
    f = np.asarray(values, np.float64)
    n = f.shape[0].bit_length() - 1
    if f.ndim != 2 or f.shape != (1 << n, 2):
        raise InputError("a function on n bits and a label needs a table of 2^n rows and two columns")
    labelled = means_by_parity(f, n)
    gaps = f.mean() - labelled
    return Lemma7(
        float((gaps**2).sum()), float((f**2).mean()), float(labelled.var()), float(np.abs(gaps).sum())
    )


def means_by_parity(f: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """E f(X, p_s(X)) for every subset s, by looking up the label of every input."""
    labels = (1 - parity_table(n)) // 2
    return f[np.arange(1 << n)[None, :], labels].mean(axis=1)
