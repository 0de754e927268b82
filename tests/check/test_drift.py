"""How far a residual stream may be off: every bound by hand, on numbers that are exact in floating point."""

from typing import Any

import numpy as np
import pytest

from tapegrad_check.arithmetic import product
from tapegrad_check.folder import CheckError
from tapegrad_check.rasp import drift as drift_module
from tapegrad_check.rasp.drift import MOST_COLUMNS, Drift

UP = 1 + 2.0**-30
DIRECTIONS = np.array([[1.0, 0, 0], [9.0, 9, 9], [0.5, 2, 0]])
"""Features 0 and 2 are there: then a vector (a, b, c) is a - b/4 times the first, b/2 times the second, and
something of a third that is no feature."""


def near(found: Any, wanted: Any) -> None:
    """Nearer than any of the factors by which bounds are enlarged."""
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=0)


def drift(bits: Any = ()) -> Drift:
    found = Drift(DIRECTIONS, [0, 2], bits)
    found.off, found.relative, found.most = (
        np.array([0.25, 0.5, 1.0]),
        np.array([0.5, 0, 0]),
        np.array([2.0, 3, 0]),
    )
    return found


def test_features_that_are_there() -> None:
    own = drift()
    assert own.features == [0, 2]
    assert own.place == {0: 0, 2: 1}
    assert own.basis[:, :2].tolist() == [[1, 0.5], [0, 2], [0, 0]]
    assert abs(own.basis[:, 2]).tolist() == [0, 0, 1]
    assert own.inverse[:2].tolist() == [[1, -0.25, 0], [0, 0.5, 0]]
    assert (own.step, own.rest, own.grid, own.loose) == (0.5, 0.0, 1.0, False)
    own.take([1])
    assert (own.step, own.place) == (1.0, {1: 0})


def test_directions_that_cannot_be_told_apart() -> None:
    def made(apart: float) -> Drift:
        return Drift(np.array([[1 / 3, 1 / 7], [1 / 3, 1 / 7 + apart]]), [0, 1], [])

    assert 2.0**-38 < made(1e-6).rest < 2.0**-21
    with pytest.raises(CheckError, match="too near each other"):
        made(1e-11)
    off = Drift(np.array([[1 / 3, 1 / 7], [1 / 11, 1 / 5]]), [0, 1], [])
    residual = np.abs(off.inverse @ off.basis - np.eye(2)).sum(axis=1).max()
    terms = (np.abs(off.inverse) @ np.abs(off.basis)).sum(axis=1).max() * 4 * 2.0**-53
    assert terms <= off.rest <= 1.01 * (residual + terms)
    with pytest.raises(CheckError, match="more features"):
        Drift(np.eye(3)[:, :2], [0, 1, 2], [])
    assert MOST_COLUMNS == 4096


def test_how_far_the_inverse_may_be_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the residual r, r / (1 - r) times what is multiplied with it."""
    error = np.array([[2.0**-22, 2.0**-23], [0, 2.0**-22]])
    monkeypatch.setattr(drift_module, "product", lambda *factors: (np.eye(2), error))
    rest = 1.5 * 2.0**-22 * UP
    near(Drift(np.eye(2), [0, 1], []).rest, rest / (1 - rest) * UP)
    error = np.diag([2.0**-20 * (1 - 2.0**-30), 0])  # enlarged, it is 2^-20
    with pytest.raises(CheckError, match="too near each other"):
        Drift(np.eye(2), [0, 1], [])


def test_the_width_of_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift_module, "MOST_COLUMNS", 3)
    Drift(np.eye(3), [0], [])
    with pytest.raises(CheckError, match="too wide"):
        Drift(np.eye(4), [0], [])


def test_how_far_features_may_be_off() -> None:
    near(drift().whole, [0.25 + 0.5 * 2, 0.5, 1.0])


def test_the_largest_product_with_features() -> None:
    own = drift()
    spare = 8 * (3 * 2.0**-53)
    assert own.largest(np.array([[1.0, -2, 5], [-1, 2, 5], [1, 2, 5]])).tolist() == [
        (6 + spare) * UP,
        (6 + spare) * UP,
        (8 + spare) * UP,
    ]
    own.loose = True
    near(own.largest(np.array([[1.0, -2, 5]])), [8 * UP])


def test_bits_of_a_group_rise_together() -> None:
    """Both are 0, or the first is 1, or both are."""
    own = drift([[0, 1, 2]])
    own.most = np.array([1.0, 1, 1])
    for row, wanted in (
        ([3.0, -5, 0], 3),
        ([-3, 5, 0], 3),
        ([3, 5, 0], 8),
        ([-3, -5, 10], 10),
        ([3, 5, -10], 10),
        ([-3, -5, 0], 8),
    ):
        near(own.largest(np.array([row])), [wanted * UP])
    own.most = np.array([1.0, 0, 0])  # the second is never 1
    near(own.largest(np.array([[1.0, 5, 7]])), [UP])
    own.loose = True
    own.most = np.array([1.0, 1, 0])
    near(own.largest(np.array([[3.0, -5, 0]])), [8 * UP])


def test_several_groups_are_added() -> None:
    own = Drift(np.eye(4), [0, 1, 2, 3], [[0, 1], [2, 3]])
    own.most = np.ones(4)
    near(own.largest(np.array([[1.0, 2, 4, -5], [-1, 3, -4, 1]])), [7 * UP, 5 * UP])


def test_how_large_coordinates_are() -> None:
    """|basis| times what features should be, and how far they are off: 2 + 3/2, 6 and 0."""
    near(drift().size, [(3.5 * UP + 1.25 + 0.25) * UP, (6 * UP + 1) * UP, UP])


WEIGHTS = np.array([[1.0, 0.5], [0, 0.25], [2, 0]])


def test_what_weights_read() -> None:
    rows, error = drift().read(WEIGHTS)
    assert np.abs(rows).tolist() == [[1, 0.5, 2], [0.5, 0.75, 0]]
    assert not error.any()


def test_how_far_products_with_weights_are_rounded() -> None:
    own = drift()
    assert own.rounding(WEIGHTS).tolist() == [0, 0]  # all of y is a multiple of 1, and small
    own.grid = 0.0
    u, size = 2.0**-24, own.size
    near(
        own.rounding(WEIGHTS),
        [(2 * u / (1 - 2 * u) * total) * UP for total in (size[0] + 2 * size[2], size[0] / 2 + size[1] / 4)],
    )
    own.grid = 2.0**-21  # times 1 the first is a multiple of this, up to 8; times 1/4 the second, up to 2
    assert (own.rounding(WEIGHTS) > 0).tolist() == [False, True]
    own.grid = 2.0**-18
    assert not own.rounding(WEIGHTS).any()


def test_rows_that_are_not_those_wanted() -> None:
    own = drift()
    rows, wanted = np.array([[1.0, -2, 4]]), np.array([[0.5, -2, 4]])
    error = np.array([[0.125, 0.0625, 0.5]])
    apart = 0.5 * 2 * UP + 0.125 * 2 + 0.0625 * 3
    near(own.off_by(rows, error, wanted), [(apart + 1.125 * 1.25 + 2.0625 * 0.5 + 4.5) * UP])


def test_how_large_products_with_weights_are() -> None:
    own = drift()
    own.grid = 0.0
    rows = np.abs(own.read(WEIGHTS)[0])
    most = [(1 * 2 + 0.5 * 3) * UP, (0.5 * 2 + 0.75 * 3) * UP]
    near(own.magnitude(WEIGHTS), (most + rows @ own.whole + own.rounding(WEIGHTS)) * UP)
    uneven = (WEIGHTS + 1) / 3
    rows, error = own.read(uneven)
    assert error.all()
    off = (np.abs(rows) + error) @ own.whole + error @ own.most
    assert (own.magnitude(uneven) == (own.largest(rows) + off + own.rounding(uneven)) * UP).all()


def test_vectors_in_terms_of_features() -> None:
    own = drift()
    columns, error = np.array([[1.0, 0], [4, 2], [0, 0]]), np.array([[0.5, 0], [0.25, 0], [0, 0]])
    near(own.in_features(columns, error)[:2], [[(0 + 0.5 + 0.0625) * UP, 0.5 * UP], [(2 + 0.125) * UP, UP]])
    found, off = own.signed(columns, error)
    assert found[:2].tolist() == [[0, -0.5], [2, 1]]
    near(off[:2], [[0.5625 * UP, 0], [0.125 * UP, 0]])
    own.rest = 0.25
    near(own.in_features(columns, error)[:2, 0], [(0.5625 + 2.125 / 4) * UP, (2.125 + 2.125 / 4) * UP])
    near(own.signed(columns, error)[1][:2, 0], [(0.5625 + 2.125 / 4) * UP, (0.125 + 2.125 / 4) * UP])
    near(own.in_features(columns / 8, error / 8) * 8, own.in_features(columns, error))
    near(own.signed(columns / 8, error / 8)[1] * 8, own.signed(columns, error)[1])


def test_products_of_uneven_vectors_are_off_as_well() -> None:
    own = drift()
    columns = np.array([[1 / 3], [1 / 7], [0.0]])
    exact, error = product(own.inverse, columns)
    assert error[0] > 0
    assert own.in_features(columns, np.zeros_like(columns))[0] == (np.abs(exact[0]) + error[0]) * UP
    assert own.signed(columns, np.zeros_like(columns))[1][0] == error[0] * UP


def test_errors_of_coordinates() -> None:
    own = drift()
    before = own.off.tolist()
    own.adds(np.zeros(3))
    assert (own.off.tolist(), own.grid) == (before, 1.0)
    own.adds(np.array([1.0, 2, 0]))
    near(own.off, [(0.25 + 1.5 * UP) * UP, (0.5 + UP) * UP, UP])
    assert own.grid == 0


def test_features_that_go_leave_what_they_were_off_by() -> None:
    """Feature 2 goes, and is again what remains beside the first; what it was off by, 1 after more is added,
    lies half along the first and 2 across it."""
    own = drift()
    own.replaced([0], np.array([0.25, 0.5, 0]))
    assert own.place == {0: 0}
    assert own.relative.tolist() == [0.5, 0, 0]
    assert own.most.tolist() == [2, 0, 0]
    lost = UP * UP
    near(own.off[0], (0.5 * UP + 0.5 * lost) * UP)
    near(sorted(own.off[1:]), [lost * UP, 2 * lost * UP])
    own = drift()
    own.replaced([2, 0], np.zeros(3))
    near(own.off, [0.5 * UP * UP, 0.25 * UP * UP, UP * UP * UP])
    assert own.relative.tolist() == [0, 0.5, 0]
    assert own.most.tolist() == [3, 2, 0]
