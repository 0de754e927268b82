"""Fixed-point numbers against Python's fractions."""

import operator
from fractions import Fraction
from math import floor
from typing import Any

import pytest

from tapegrad.circuits import Array, Fixed, Int, Traced, UFixed, UInt, total, trace, where
from tapegrad.circuits.evaluator import evaluate
from tapegrad.errors import InputError, SourceError

TYPES = [Fixed(3, 2), UFixed(2, 3), Fixed(1, 4), Fixed(5, 0), UFixed(0, 5)]


def values(of: Any) -> list[Fraction]:
    return [Fraction(of.number(bits)) for bits in range(1 << of.width)]


def agrees(traced: Traced, cases: list[tuple[Any, ...]], wanted: list[Any]) -> None:
    """The circuit on all cases, and the function itself on some."""
    rows = evaluate(traced.circuit, [traced.encode(*case) for case in cases])
    assert [traced.decode(row) for row in rows] == wanted
    assert [traced.plain(*case) for case in cases[::7]] == wanted[::7]


def wrapped(of: Any, exact: Fraction) -> Fraction:
    """Rounded down to a step, modulo 2^whole."""
    steps = floor(exact * 2**of.fraction) % 2**of.width
    return Fraction(of.number(steps))


@pytest.mark.parametrize("of", TYPES, ids=repr)
def test_all_pairs(of: Any) -> None:
    def function(a: Any, b: Any) -> Any:
        return a + b, a - b, a * b, a < b, a <= b, a == b, a > b, a >= b, a != b

    compared = [operator.lt, operator.le, operator.eq, operator.gt, operator.ge, operator.ne]
    traced = trace(function, of, of)
    cases = [(a, b) for a in values(of) for b in values(of)]
    wanted = [
        (*(wrapped(of, own) for own in (a + b, a - b, a * b)), *(c(a, b) for c in compared)) for a, b in cases
    ]
    agrees(traced, cases, wanted)


@pytest.mark.parametrize("of", TYPES, ids=repr)
def test_division_rounds_down(of: Any) -> None:
    cases = [(a, b) for a in values(of)[::2] for b in values(of)]
    by_zero = Fraction(of.number(2**of.width - 1))
    agrees(
        trace(lambda a, b: (a / b, 0 / b), of, of),
        cases,
        [(wrapped(of, a / b), 0) if b else (by_zero, by_zero) for a, b in cases],
    )


@pytest.mark.parametrize("of", TYPES, ids=repr)
def test_whole_quotients_and_what_is_left(of: Any) -> None:
    cases = [(a, b) for a in values(of) for b in values(of)]
    ones = Fraction(of.number(2**of.width - 2**of.fraction))
    wanted = []
    for a, b in cases:
        whole, left = (wrapped(of, Fraction(a // b)), a % b) if b else (ones, a)
        wanted.append((whole, left, (whole, left), 0 if b else ones, 0))
    agrees(trace(lambda a, b: (a // b, a % b, divmod(a, b), 0 // b, 0 % b), of, of), cases, wanted)


def test_one_operand_and_shifts() -> None:
    of = Fixed(3, 3)
    traced = trace(lambda a, n: (-a, abs(a), a >> n, a << 1, +a), of, UInt(3))
    cases = [(a, n) for a in values(of) for n in range(8)]
    wanted = [(wrapped(of, -a), abs(a), wrapped(of, a / 2**n), wrapped(of, a * 2), a) for a, n in cases]
    agrees(traced, cases, wanted)
    assert traced.output[1] == UFixed(3, 3)


@pytest.mark.parametrize(("a_type", "b_type"), [(Fixed(2, 4), Fixed(4, 1)), (UFixed(3, 0), UFixed(1, 3))])
def test_two_types_meet_in_one_that_has_the_more_of_both(a_type: Any, b_type: Any) -> None:
    traced = trace(lambda a, b: (a + b, a * b, where(a < b, a, b)), a_type, b_type)
    of = type(a_type)(max(a_type.whole, b_type.whole), max(a_type.fraction, b_type.fraction))
    assert traced.output == (of, of, of)
    cases = [(a, b) for a in values(a_type) for b in values(b_type)]
    agrees(traced, cases, [(wrapped(of, a + b), wrapped(of, a * b), min(a, b)) for a, b in cases])


def test_sums() -> None:
    of = Fixed(3, 2)
    traced = trace(lambda a: (total(a), a @ a), Array(of, 3))
    a = [Fraction(11, 4), Fraction(-3, 4), Fraction(7, 4)]
    squares = sum(wrapped(of, own * own) for own in a)
    wanted = wrapped(of, Fraction(sum(a))), wrapped(of, Fraction(squares))
    assert traced(a) == traced.plain(a) == wanted


def test_comparisons_across_signs_are_of_the_numbers() -> None:
    traced = trace(lambda a, b: (a < b, a == b, b <= a), Fixed(3, 1), UFixed(2, 3))
    cases = [(a, b) for a in values(Fixed(3, 1)) for b in values(UFixed(2, 3))]
    agrees(traced, cases, [(a < b, a == b, b <= a) for a, b in cases])


@pytest.mark.parametrize("to", [Fixed(2, 1), UFixed(4, 4), Int(3), UInt(6)], ids=repr)
def test_conversions_round_down(to: Any) -> None:
    of = Fixed(3, 3)
    traced = trace(lambda a: a.to(to), of)
    fraction = getattr(to, "fraction", 0)
    for a in values(of):
        steps = floor(a * 2**fraction) % 2**to.width
        assert traced(a) == traced.plain(a) == to.number(steps)
    back = trace(lambda a: a.to(Fixed(5, 2)), Int(4))
    assert [back(a) for a in range(-8, 8)] == [back.plain(a) for a in range(-8, 8)] == list(range(-8, 8))


def test_what_is_given_is_rounded_to_nearest_or_refused() -> None:
    of = Fixed(3, 1)
    assert [float(of(x)) for x in (0.24, 0.25, 0.26, 0.75, -0.75, 1.0)] == [0, 0, 0.5, 1, -1, 1]
    with pytest.raises(InputError, match=r"-4.0 to 3.5"):
        of(4)
    for wrong in (float("nan"), float("inf"), "1", None):
        with pytest.raises(InputError):
            of(wrong)
    with pytest.raises(SourceError, match="53"):
        Fixed(40, 20)
    with pytest.raises(SourceError, match="do not mix"):
        trace(lambda a, b: a + b, Fixed(3, 1), UFixed(3, 1))
    with pytest.raises(SourceError, match="do not mix"):
        trace(lambda a, b: a == b, Fixed(3, 1), Int(3))
