"""Constructions of this paper, broken on purpose, turn their claims to FAILED: the ledger can tell."""

from fractions import Fraction

import numpy as np
import pytest

from tapegrad.circuits.model import Gate
from tapegrad.targets.emulator import net, paper_nets
from tapegrad.targets.emulator.constants import Constants, ExactConstants, gate_weight
from tapegrad.targets.emulator.graph import THRESHOLDS
from tapegrad_papers import abbe_sandon
from tapegrad_papers.abbe_sandon import cross_predictability
from tests.papers.checking import failing

pytestmark = pytest.mark.slow  # each runs whole claims again


def test_a_gate_that_is_not_flat(monkeypatch):
    monkeypatch.setitem(THRESHOLDS, Gate.AND, (1, 1, -1))
    assert failing(abbe_sandon, "Lemma 1", "Lemma 5") == ["Lemma 1", "Lemma 5"]


def test_controls_that_do_not_close(monkeypatch):
    right = ExactConstants.control.fget
    assert right is not None
    monkeypatch.setattr(ExactConstants, "control", property(lambda self: right(self) * 2))
    assert failing(abbe_sandon, "Definition 6") == ["Definition 6"]


def test_a_rate_that_does_not_double(monkeypatch):
    monkeypatch.setattr(paper_nets, "RATE", paper_nets.RATE * 2)
    assert failing(abbe_sandon, "Lemma 4") == ["Lemma 4"]


def test_cells_that_are_too_large(monkeypatch):
    large = lambda cells, steps, precision: Constants(2.0**-5, gate_weight(cells))  # noqa: E731
    monkeypatch.setattr(net, "choose", large)
    assert failing(abbe_sandon, "Section 4.3") == ["Section 4.3"]


def test_a_wrong_cross_predictability_of_samples(monkeypatch):
    monkeypatch.setattr(cross_predictability, "with_samples", lambda infinite, m: infinite + Fraction(1, m))
    assert failing(abbe_sandon, "Theorem 3") == ["Theorem 3"]


def test_parities_that_are_too_easy(monkeypatch):
    honest = cross_predictability.means_by_parity

    def biased(f, n):
        means = honest(f, n)
        return means + np.where(np.arange(len(means)) == 1, 10.0, 0.0)

    monkeypatch.setattr(cross_predictability, "means_by_parity", biased)
    assert failing(abbe_sandon, "Lemma 7", "Corollary 3") == ["Lemma 7", "Corollary 3"]
