"""Constructions of these two papers, broken on purpose: their claims fail, by a check and not by an error."""

from dataclasses import replace
from fractions import Fraction

import equinox as eqx
import numpy as np
import pytest

from tapegrad.circuits.model import Gate
from tapegrad.targets.emulator import net, paper_nets
from tapegrad.targets.emulator.constants import Constants, ExactConstants, gate_weight
from tapegrad.targets.emulator.graph import THRESHOLDS
from tapegrad.targets.rcnn import lemma5, training
from tapegrad_papers.claims import abbe_sandon, goel
from tapegrad_papers.claims.abbe_sandon import limits
from tapegrad_papers.claims.goel import instances, network, turing_optimal
from tapegrad_papers.goel.bounds import observation_1
from tapegrad_papers.theory import fourier
from tests.papers.claims.failing import failing


@pytest.fixture
def fresh_training():
    """Networks trained for other claims are forgotten, before and after."""
    instances.trained.cache_clear()
    yield
    instances.trained.cache_clear()


@pytest.mark.usefixtures("fresh_training")
def test_another_learning_rate_writes_other_memories(monkeypatch):
    monkeypatch.setattr(training, "RATE", 1 / 53)
    assert failing(goel, "Lemma 4") == ["Lemma 4"]


def test_a_filter_with_a_disturbed_threshold_does_not_memorise(monkeypatch):
    case = instances.trained()
    maps = list(case.network.filter.maps)  # type: ignore[union-attr]
    maps[2] = eqx.tree_at(lambda m: m.bias, maps[2], maps[2].bias + 0.4)
    broken = eqx.tree_at(lambda n: n.filter.maps, case.network, tuple(maps))
    monkeypatch.setattr(network, "trained", lambda: replace(case, network=broken))
    assert failing(goel, "Lemma 3") == ["Lemma 3"]


def test_bumps_that_are_too_wide(monkeypatch):
    narrow = lemma5._half_width
    monkeypatch.setattr(lemma5, "_half_width", lambda X: 9 * narrow(X))
    assert failing(goel, "Lemma 5") == ["Lemma 5"]


def test_an_aim_that_is_twice_too_large(monkeypatch):
    monkeypatch.setattr(turing_optimal, "observation_1", lambda M, k: 2 * observation_1(M, k))
    assert failing(goel, "Observation 1") == ["Observation 1"]


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
    monkeypatch.setattr(limits, "with_samples", lambda infinite, m: infinite + Fraction(1, m))
    assert failing(abbe_sandon, "Theorem 3") == ["Theorem 3"]


def test_parities_that_are_too_easy(monkeypatch):
    honest = fourier.means_by_parity

    def biased(f, n):
        means = honest(f, n)
        return means + np.where(np.arange(len(means)) == 1, 10.0, 0.0)

    monkeypatch.setattr(fourier, "means_by_parity", biased)
    assert failing(abbe_sandon, "Lemma 7", "Corollary 3") == ["Lemma 7", "Corollary 3"]
