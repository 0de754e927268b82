"""Lemma 7 of Abbe, Sandon: a function of (X, Y) can tell few parities from random labels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import InputError
from tapegrad_papers.theory.cross_predictability import parity_table


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
