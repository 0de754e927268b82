"""Steps between two numbers of the residual stream: where they begin and end, by hand."""

from fractions import Fraction

import pytest

from tapegrad.attention.steps import BETA, ROUNDOFF, Scalar, TooNear, added, on_grid, power_above


def scalar(*centres: Fraction | int, **others: Fraction) -> Scalar:
    numbers = tuple(map(Fraction, centres))
    return Scalar(0, "it", {}, numbers, tuple(centres), Fraction(8), **others)


def test_constants() -> None:
    assert Fraction(1, 1 << 24) == ROUNDOFF
    assert BETA == 256


def test_errors_are_relative_and_absolute() -> None:
    own = scalar(2, 4, relative=Fraction(1, 8), absolute=Fraction(1, 16))
    assert [own.error(place) for place in (0, 1)] == [Fraction(5, 16), Fraction(9, 16)]
    assert own.grid == Fraction(1, 1 << 21)


def test_a_step_is_the_widest_power_of_two_in_the_middle() -> None:
    """Between 1 + 1/8 and 5 - 1/8 there is room for 2, from 2 on; between 2.5 and 6.5 for 4 itself."""
    begins, wide = scalar(1, 5, absolute=Fraction(1, 8)).step(1)
    assert (begins, wide) == (2, 2)
    assert scalar(0, 2, 7, absolute=Fraction(1, 2)).step(2) == (Fraction(5, 2), 4)
    assert scalar(0, 2, 7, absolute=Fraction(1, 2)).step(1) == (Fraction(1, 2), 1)
    begins, wide = scalar(1, 4, relative=Fraction(1, 4)).step(1)
    assert (begins, wide) == (Fraction(5, 4) + Fraction(3, 8), 1)


def test_ends_of_a_step_are_on_the_grid() -> None:
    third = Fraction(1, 3)
    own = scalar(third, 1 + third)
    begins, wide = own.step(1)
    assert begins % own.grid == wide % own.grid == 0
    assert begins >= third
    assert begins + wide <= 1 + third


def test_values_that_are_too_near() -> None:
    grid = Fraction(1, 1 << 21)
    assert scalar(1, 1 + grid).step(1) == (1, grid)
    for centres, absolute in (
        ((1, 1 + grid / 2), Fraction(0)),
        ((1, 2), Fraction(1, 2)),
        ((1, 1 + 2 * grid), grid),
    ):
        with pytest.raises(TooNear, match="'it' differ by") as near:
            scalar(*centres, absolute=absolute).step(1)
        assert near.value.gap == centres[1] - centres[0]


def test_powers_of_two() -> None:
    for number, power in ((1, 1), (2, 2), (3, 4), (5, 8), (1024, 1024), (1025, 2048)):
        assert power_above(Fraction(number)) == power
        assert power_above(Fraction(number, 4096)) == Fraction(power, 4096)


def test_multiples_and_sums() -> None:
    assert [on_grid(Fraction(n, 8), Fraction(1, 4)) for n in (1, 2, 3, 5)] == [
        0,
        Fraction(1, 4),
        Fraction(1, 2),
        Fraction(1, 2),
    ]
    assert added(({0: 1.0, 1: 2.0}, 2.0), ({1: 4.0, 2: 1.0}, -1.0)) == {0: 2.0, 2: -1.0}
