"""Cross-predictability, the bounds and Lemma 7, beside brute force and closed forms."""

from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.errors import InputError
from tapegrad_papers.abbe_sandon import cross_predictability as cp
from tapegrad_papers.abbe_sandon.cross_predictability import lemma_7, means_by_parity
from tapegrad_papers.abbe_sandon.descent import (
    corollary_2,
    theorem_3,
    theorem_6_bound,
    theorem_6_excess,
    theorem_6_from,
)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_parities_by_brute_force(n: int) -> None:
    """Four nested loops over pairs of subsets and pairs of inputs, nothing shared with the package."""
    inputs, subsets = list(product((0, 1), repeat=n)), list(product((0, 1), repeat=n))
    total = Fraction(0)
    for s, t in product(subsets, repeat=2):
        mean = Fraction(0)
        for x in inputs:
            mean += (-1) ** sum(a * b for a, b in zip(s, x, strict=True)) * (-1) ** sum(
                a * b for a, b in zip(t, x, strict=True)
            )
        total += (mean / len(inputs)) ** 2
    assert total / len(subsets) ** 2 == Fraction(1, 2**n) == cp.of_parities(n)
    assert cp.of_signs(cp.parity_table(n)) == Fraction(1, 2**n)


def test_other_classes_with_known_values() -> None:
    assert cp.of_signs([[1, -1, 1, 1]]) == 1  # one function predicts itself
    # All functions on k inputs: E_X FF' is a mean of k fair coins, whose square has mean 1/k.
    every = np.array(list(product((-1, 1), repeat=4)))
    assert cp.of_signs(every) == Fraction(1, 4)
    # The n dictators are orthogonal: 1/n.
    dictators = (1 - 2 * cp.all_bits(5)).T
    assert cp.of_signs(dictators) == Fraction(1, 5)
    assert cp.exact(dictators) == pytest.approx(1 / 5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 5), st.integers(1, 3))
def test_samples_by_brute_force(seed: int, functions: int, inputs: int, m: int) -> None:
    """(47): the mean over all m-tuples of inputs, written out."""
    table = np.random.default_rng(seed).choice([-1, 1], (functions, inputs))
    total = Fraction(0)
    for f, g in product(range(functions), repeat=2):
        for places in product(range(inputs), repeat=m):
            total += Fraction(sum(int(table[f, x] * table[g, x]) for x in places), m) ** 2
    assert total / (functions**2 * inputs**m) == cp.with_samples(cp.of_signs(table), m)


def test_estimates_cover_the_truth() -> None:
    rng = np.random.default_rng(1)
    found = cp.estimated(cp.parities(4), 3000, 50, rng)
    assert found.agrees_with(1 / 16)
    assert 0 < found.error < 0.02
    biased = cp.estimated(cp.parities(4), 3000, 10, rng, unbiased=False)
    assert biased.agrees_with(float(cp.with_samples(1 / 16, 10)))
    assert not biased.agrees_with(1 / 16)


def test_bounds_are_the_formulas() -> None:
    assert theorem_3(2.0, 0.5, 1 / 16) == pytest.approx(0.5 + 2 / 0.5 / 2)
    m, infinite = 100, 1e-6
    assert corollary_2(0.1, 0.5, 400, 7, m, infinite) == pytest.approx(
        0.5 + 0.1 / 0.5 * 20 * 7 * (1 / m + (1 - 1 / m) * infinite) ** 0.25
    )
    assert theorem_6_bound(2.0, 0.5, 10) == pytest.approx(0.5 + 2 / (2 * 0.5) / 32)
    n, weights = 100, 10_000  # T = rate = range = 2^10, sigma = 2^-5
    flow = 2**10 * 2**10 * 2**10 * sqrt(weights)
    assert 2 ** theorem_6_excess(n, weights) == pytest.approx(theorem_6_bound(flow, 2**-5, n) - 0.5)


def test_the_sufficiently_large_n() -> None:
    def weights(n: int) -> int:
        return n * n

    first = theorem_6_from(weights)
    assert 2 ** theorem_6_excess(first, weights(first)) <= 2 ** (-first / 10)
    assert 2 ** theorem_6_excess(first - 1, weights(first - 1)) > 2 ** (-(first - 1) / 10)
    assert 50 < first < 300


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_lemma_7_by_brute_force(seed: int, n: int) -> None:
    f = np.random.default_rng(seed).normal(size=(1 << n, 2))
    squares = absolute = 0.0
    means = []
    for s in range(1 << n):
        mean = float(np.mean([f[x, (x & s).bit_count() % 2] for x in range(1 << n)]))
        means.append(mean)
        squares += (f.mean() - mean) ** 2
        absolute += abs(f.mean() - mean)
    found = lemma_7(f)
    assert np.allclose(means_by_parity(f, n), means)
    assert found.squares == pytest.approx(squares)
    assert found.absolute == pytest.approx(absolute)
    assert squares <= found.mean_square * (1 + 1e-12)
    assert found.squares == pytest.approx(np.mean((f[:, 1] - f[:, 0]) ** 2) / 4)  # (55)


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError):
        cp.of_signs([[0, 1]])
    with pytest.raises(InputError):
        cp.exact([1, 2])
    with pytest.raises(InputError):
        cp.with_samples(0.5, 0)
    with pytest.raises(InputError):
        theorem_3(1.0, 0.0, 0.5)
    with pytest.raises(InputError):
        lemma_7([[1, 2, 3]])
    with pytest.raises(InputError):
        theorem_6_from(lambda n: 2**n, most=200)
