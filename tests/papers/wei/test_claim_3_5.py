"""Claim 3.5's chain: formulas against brute force and attacks, and the paper's bounds."""

import itertools

import numpy as np
import pytest

from tapegrad_papers.wei.tight import (
    claim_3_5,
    margin_with_rounding,
    margin_without_rounding,
    plot_claim_3_5,
)


def rounded(z):
    return np.clip(3 * z - 1, 0, 1)


def brute_force(depth: int, rounding: bool, steps: int) -> float:
    axis = np.linspace(0.4, 1, steps)
    best = np.inf
    for weights in itertools.product(axis, repeat=depth):
        value = 1.0
        for weight in weights:
            value = rounded(weight * value) if rounding else weight * value
        if value <= 0.5:
            best = min(best, np.linalg.norm(1 - np.array(weights)))
    return float(best)


@pytest.mark.parametrize(("depth", "steps"), [(1, 601), (2, 301), (3, 41)])
def test_both_formulas_are_the_brute_force_minimum(depth, steps):
    spacing = 0.6 / (steps - 1)
    for formula, rounding in ((margin_without_rounding, False), (margin_with_rounding, True)):
        brute = brute_force(depth, rounding, steps)
        assert brute - spacing * np.sqrt(depth) <= formula(depth) <= brute + 1e-3


@pytest.mark.slow
def test_the_claim():
    rows = claim_3_5((1, 4, 16))
    for row in rows:
        # The paper's own perturbation, 3/d on every weight, is an upper bound: 3 / sqrt(d).
        assert row.without_rounding <= 3 / np.sqrt(row.depth)
        assert row.without_rounding == pytest.approx(row.without_rounding_attacked, rel=2e-3)
        assert row.with_rounding >= 1 / 3
        assert row.with_rounding <= row.with_rounding_attacked + 1e-6 <= 0.5 + 1e-3
    assert margin_without_rounding(10**6) * 10**3 == pytest.approx(np.log(2), rel=1e-5)
    assert margin_with_rounding(1000) > 1 / 3


@pytest.mark.slow
def test_the_picture(tmp_path):
    pytest.importorskip("matplotlib")
    plot_claim_3_5(claim_3_5((1, 2)), tmp_path / "claim.svg")
    assert (tmp_path / "claim.svg").read_bytes().startswith(b"<?xml")
