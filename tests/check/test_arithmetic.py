"""What is exact in a format and what is off, beside numpy's own single precision in many orders."""

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad_check import CheckError
from tapegrad_check.arithmetic import (
    COARSEST,
    DOUBLE,
    UP,
    evaluated,
    exact,
    finite,
    product,
    rounding,
    step_of,
)


def near(found: Any, wanted: Any) -> None:
    """Nearer than any of the factors by which bounds are enlarged."""
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=0)


def summed(terms: list[Any]) -> float:
    """In this order, in single precision."""
    total = np.float32(0)
    with np.errstate(all="ignore"):
        for term in terms:
            total = np.float32(total + np.float32(term))
    return float(total)


def test_powers_of_two_that_entries_are_multiples_of() -> None:
    assert step_of(np.array([[0.75, 3.0, 0.0]])) == 0.25
    assert step_of(np.array([[-6.0, 12.0]])) == 2.0
    assert step_of(np.array([[1 + 2.0**-52]])) == 2.0**-52
    assert step_of(np.zeros((2, 2))) == step_of([]) == COARSEST == 2.0**60
    assert step_of(np.array([[0.75, 3.0], [0, 0], [8, 12]]), axis=1).tolist() == [0.25, COARSEST, 4.0]


def test_the_borders_of_what_is_exact() -> None:
    """A sum of 2^24 steps; steps that are normal numbers; and what does not overflow."""
    for one in (1, 1.0, Fraction(1)):
        assert exact(2**24 * one, one)
        assert not exact((2**24 + 1) * one, one)
        assert exact(2**53 * one, one, DOUBLE)
    assert exact(2.0**-110, 2.0**-126)
    assert not exact(2.0**-110, 2.0**-127)
    assert exact(2.0**127, 2.0**110)
    assert not exact(2.0**127 * (1 + 2.0**-20), 2.0**110)
    assert exact(0.0, 0.0)
    assert exact(np.array([4.0, 2.0**25]), np.array([0.0, 2.0])).tolist() == [False, True]
    assert finite(2.0**1023, DOUBLE)
    assert not finite(2.0**128)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.integers(-(2**12), 2**12), min_size=1, max_size=5), st.integers(-30, 30), st.booleans())
def test_what_is_called_exact_is(numbers: list[int], power: int, large: bool) -> None:
    """In every order, beside whole numbers. With a large number and its negative among them, sums are exact
    in some orders only, and not called so."""
    terms = [number * 2.0**power for number in numbers]
    if large:
        terms += [2.0 ** (power + 24), -(2.0 ** (power + 24))]
    total, wanted = sum(map(abs, terms)), sum(numbers) * 2.0**power
    found = {summed(list(order)) for order in permutations(terms)}
    off = rounding(len(terms), total, step_of(terms))
    if exact(total, step_of(terms)):
        assert found == {wanted}
        assert off == 0
    else:
        assert large
        assert max(abs(own - wanted) for own in found) <= off < np.inf


def test_the_gate_that_single_precision_loses() -> None:
    """relu(2^25 x + y - 2^25) is AND in doubles."""
    bits = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])
    for large, lost in ((1.0, False), (2.0**21, False), (2.0**25, True)):
        found, off = evaluated(np.array([[large, 1.0]]), np.array([-large]), bits)
        assert np.maximum(found, 0)[:, 0].tolist() == [0, 0, 0, 1]
        assert off.any() == lost == (summed([large, 1.0, -large]) != 1)
        assert not evaluated(np.array([[large, 1.0]]), np.array([-large]), bits, format=DOUBLE)[1].any()


def test_maps_are_evaluated_row_by_row() -> None:
    """Each row has its own step; what is given has one as well, and biases need not be multiples of it."""
    weights, bias = np.array([[1.0, 2.0**-20], [2.0**20, 3.0]]), np.array([0.5, 2.0**-6])
    vectors = np.array([[8.0, 0.0], [8.0, 16.0]])
    found, off = evaluated(weights, bias, vectors, step=8.0)
    assert found.tolist() == [[8.5, 2.0**23 + 2.0**-6], [8.5 + 2.0**-16, 2.0**23 + 48 + 2.0**-6]]
    assert (off > 0).tolist() == [[False, True], [False, True]]
    assert not evaluated(weights, bias, vectors, step=8.0, format=DOUBLE)[1].any()
    assert not evaluated(np.zeros((2, 0)), bias, np.zeros((3, 0)))[1].any()


def test_all_that_makes_a_sum_inexact() -> None:
    """Biases, steps of weights and of what is given, and how many terms there are; by the formula."""
    one, none = np.ones((1, 2)), np.zeros(1)
    for weights, bias in (
        ([[1.0, 0.0]], [2.0**25]),
        ([[0.5, 2.0**23]], [0.0]),
        ([[2.0**-30, 1.0]], [0.0]),
        ([[1.0, 1.0]], [2.0**-30]),
    ):
        assert evaluated(np.array(weights), np.array(bias), one)[1].all()
    weights = np.array([[2.0**-30, 2.0**30]])
    (off,) = evaluated(weights, none, one)[1][0]
    total = 2.0**-30 + 2.0**30
    near(off, sum(3 * u / (1 - 3 * u) * total * UP for u in (2.0**-24, 2.0**-53)))


def test_what_may_overflow_is_off_infinitely_far() -> None:
    large = 2.0**127
    assert summed([large, large, -large]) == np.inf
    assert rounding(3, 3 * large, large) == rounding(3, 3 * large, 0.0) == np.inf
    assert rounding(3, large / 2, large / 4) == 0
    assert rounding(3, large * (1 - 2.0**-31), 0.0) == np.inf  # enlarged, it is more
    with np.errstate(all="raise"):
        assert rounding(3 << 22, 1.0, 0.0) == rounding(1 << 25, 1.0, 0.0) == np.inf  # too many terms
    for weight in (np.nan, np.inf):
        with pytest.raises(CheckError, match="out of range"):
            evaluated(np.array([[weight]]), np.zeros(1), np.ones((1, 1)))
    with pytest.raises(CheckError, match="out of range"):
        evaluated(np.array([[1e300]]), np.zeros(1), np.array([[1e300]]))


def test_what_is_too_small_may_be_lost() -> None:
    assert rounding(1, 2.0**-126, 2.0**-126) == 0
    assert rounding(1, 2.0**-126, 2.0**-127) >= 2.0**-126


def test_products_are_exact_where_all_terms_are_multiples_of_one_power() -> None:
    a, b = np.array([[1.0, 2.0**26]]), np.array([[1.0], [2.0**26]])
    found, error = product(a, b)  # 1 + 2^52, in steps of 1
    assert (found.tolist(), error.tolist()) == ([[1 + 2.0**52]], [[0.0]])
    found, error = product(a, b, np.array([[3.0]]))  # above 2^53
    near(error, [[3 * (1 + 2.0**52) * (4 + 3) * 2.0**-53 * UP]])
    _, error = product(a, -b)
    assert not error.any()
    _, error = product(a, np.array([[0.5], [2.0**27]]))
    near(error, [[(0.5 + 2.0**53) * 4 * 2.0**-53 * UP]])


def test_steps_of_products_are_those_of_all_factors() -> None:
    for one, other in (([[2.0**-10, 1.0]], [[1.0], [2.0**52]]), ([[1.0, 2.0**52]], [[2.0**-10], [1.0]])):
        assert product(np.array(one), np.array(other))[1].all()


def test_the_border_of_exact_products() -> None:
    """Enlarged a little, as sums of magnitudes are."""
    for size, is_exact in ((2.0**53, False), (2.0**52, True), (2.0**53 - 2.0**24, True)):
        _, error = product(np.array([[1.0]]), np.array([[size, 1.0]]))
        assert not error.any() if is_exact else error.all()
    _, error = product(np.array([[1.0]]), np.array([[2.0**53 - 2.0**23, 1.0]]))  # enlarged, it is 2^53
    assert not error.any()
    _, error = product(np.array([[2.0**-60]]), np.array([[1.0]]))
    assert not error.any()


def test_sums_of_single_precision() -> None:
    u = 2.0**-24
    near(rounding(5, np.array(3.0), 0.0), (5 * u / (1 - 5 * u) * 3) * UP)
    near(rounding(1 << 23, np.array(1.0), 0.0), UP)
    near(rounding(5, np.array(2.0**-200), 0.0), 10 * 2.0**-126 * UP)
    assert rounding(5, np.array(2.0**22), 0.25) > 0 == rounding(5, np.array(2.0**21), 0.25)
    assert rounding(5, np.array(2.0**24 * (1 - 2.0**-28)), 1.0) == 0
    assert rounding(5, np.array(2.0**24 - 2.0**-6), 1.0) == 0  # enlarged, it is 2^24
    assert rounding(5, np.array(2.0**24 - 2.0**-7), 1.0) > 0
