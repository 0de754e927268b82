"""Monomials r 2^a p^b m0^c by hand, and the constants of noise-tolerant memory against whole numbers."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import pytest

from tapegrad.targets.emulator import constants
from tapegrad.targets.emulator.numbers import Exact, Field

FIELD = Field(Fraction(3), 10)
HALF = Fraction(1, 2)


def test_products_and_signs() -> None:
    two, root, third = FIELD.number(1), FIELD.number(0, HALF), FIELD.number(r=Fraction(1, 3))
    assert (two * root).exponents == (1, HALF, 0)
    assert (root * third * 2).r == (2 * (third * root)).r == Fraction(2, 3)
    assert [number.sign for number in (two, -two, two * 0)] == [1, -1, 0]
    assert abs(-root) == root == abs(root)
    assert FIELD.generators == (2, 3, 10)
    assert str(FIELD.number(1, 0, -HALF, 5)) == "5 2^(1) m0^(-1/2)"


def test_numbers_are_equal_as_values() -> None:
    assert FIELD.number(1) == 2 == FIELD.number(r=2)
    assert FIELD.number(2, 1, 1) == 120
    assert FIELD.number(2, HALF) == FIELD.number(0, HALF, r=4)
    assert FIELD.number(0, HALF) != FIELD.number(HALF)
    assert FIELD.number(0, HALF) != 1
    assert FIELD.number(r=0) == FIELD.number(5, r=0) == 0
    assert FIELD.number(r=0) != FIELD.number()
    assert FIELD.number() != "1"


def test_sums_are_taken_where_they_are_monomials() -> None:
    root = FIELD.number(0, HALF)
    assert root + root == 2 * root
    assert root + FIELD.number(2, HALF) == 5 * root
    assert (root - root).r == 0
    assert root + 0 == root == 0 + root
    assert 0 * root + root == root
    assert FIELD.number(1) + 3 == 3 + FIELD.number(1) == 5
    assert (FIELD.number(1) + 3).exponents == (0, 0, 0)
    assert 3 - FIELD.number(1) == 1 == FIELD.number(1, 1) - 5
    with pytest.raises(ArithmeticError, match="no sum"):
        root.__add__(1)


def test_powers() -> None:
    assert FIELD.number(r=Fraction(720, 7) * 7).power(HALF) == FIELD.number(Fraction(3, 2), 1, HALF)
    assert FIELD.number(2, 3, r=Fraction(1, 20)).power(Fraction(3)) == FIELD.number(3, 9, -3)
    assert FIELD.number(r=8).power(Fraction(2, 3)) == 4
    with pytest.raises(ArithmeticError, match="no power"):
        FIELD.number(r=7).power(HALF)
    plain = Field(Fraction(3), 1)  # where m0 is 1, it is a factor of everything
    assert plain.number(r=8).power(Fraction(1, 3)) == plain.number(r=2)


def test_values_and_bounds() -> None:
    for a, b, c, r in product((0, HALF, -3), (0, HALF), (-1, Fraction(1, 3)), (1, Fraction(-2, 7))):
        wanted = float(r) * 2.0 ** float(a) * 3.0 ** float(b) * 10.0 ** float(c)
        found = FIELD.number(a, b, c, r)
        assert float(found) == pytest.approx(wanted, rel=1e-12)
        assert found.log2() == pytest.approx(math.log2(abs(wanted)), abs=1e-12)
        for factor, above in ((Fraction(999, 1000), True), (Fraction(1001, 1000), False)):
            assert found.exceeds(Fraction(abs(wanted)) * factor) is above
    assert float(FIELD.number(r=0)) == 0.0
    assert not FIELD.number(r=0).exceeds(Fraction(0))
    five = FIELD.number(r=-5)
    assert [five.exceeds(Fraction(bound)) for bound in (4, 5, 6)] == [True, False, False]


def test_bounds_that_doubles_cannot_tell() -> None:
    """The convergents of the square root of 3 are now above, now below."""
    p, q = 1, 1
    for number in range(40):
        near = Fraction(p, q)
        root: Exact = FIELD.number(0, HALF)
        assert root.exceeds(near) is (near * near < 3), number
        p, q = p + 3 * q, p + q


def test_constants_of_noise_tolerant_memory_are_what_they_should_be() -> None:
    def same(found: Decimal, wanted: Fraction) -> bool:
        ideal = Decimal(wanted.numerator) / Decimal(wanted.denominator)
        return abs(found / ideal - 1) < Decimal(10) ** -75

    two, three = Fraction(2), Fraction(3)
    with localcontext(prec=400):
        for t, weight in enumerate(constants.PATH):
            assert same(weight**2, 1 / (16 * three**t))
        assert len(constants.PATH) == 5
        assert same(constants.RATE**3, two**716 * three**72)
        assert same(constants.BEFORE, -(two**-81) * three**-9)
        assert same(constants.AFTER, -(two**-41) * three**-9)
        assert same(constants.LOW**2, two**-42 * three**-3)
        assert same(constants.HIGH**2, two**-30 * three**-3)
        for found, exponents in (
            (constants.DEAD_ZONES, {"decimal": (-121, -9), "double": (-82, -9)}),
            (constants.NOISE, {"decimal": (-134, -11), "double": (-85, -9)}),
        ):
            assert found.keys() == exponents.keys()
            for name, (a, b) in exponents.items():
                assert same(found[name], two**a * three**b)
    assert constants.READ == 128
