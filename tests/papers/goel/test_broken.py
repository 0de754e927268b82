"""Constructions of this paper, broken on purpose, turn their claims to FAILED: the ledger can tell."""

from dataclasses import replace

import equinox as eqx
import pytest

from tapegrad.targets.rcnn import training
from tapegrad_papers import goel
from tapegrad_papers.goel import definitions, lemma_5, network, turing_optimal
from tapegrad_papers.goel.turing_optimal import observation_1
from tests.papers.checking import failing

pytestmark = pytest.mark.slow  # each runs whole claims again


@pytest.fixture
def fresh_training():
    """Networks trained for other claims are forgotten, before and after."""
    definitions.trained.cache_clear()
    yield
    definitions.trained.cache_clear()


@pytest.mark.usefixtures("fresh_training")
def test_another_learning_rate_writes_other_memories(monkeypatch):
    monkeypatch.setattr(training, "RATE", 1 / 53)
    assert failing(goel, "Lemma 4") == ["Lemma 4"]


def test_a_filter_with_a_disturbed_threshold_does_not_memorise(monkeypatch):
    case = definitions.trained()
    bias = case.network.filter.maps[2].bias + 0.4
    broken = eqx.tree_at(lambda n: n.filter.convolution.layers[2].map.bias, case.network, bias)
    monkeypatch.setattr(network, "trained", lambda: replace(case, network=broken))
    assert failing(goel, "Lemma 3") == ["Lemma 3"]


def test_bumps_that_are_too_wide(monkeypatch):
    narrow = lemma_5._half_width
    monkeypatch.setattr(lemma_5, "_half_width", lambda X: 9 * narrow(X))
    assert failing(goel, "Lemma 5") == ["Lemma 5"]


def test_an_aim_that_is_twice_too_large(monkeypatch):
    monkeypatch.setattr(turing_optimal, "observation_1", lambda M, k: 2 * observation_1(M, k))
    assert failing(goel, "Observation 1") == ["Observation 1"]
