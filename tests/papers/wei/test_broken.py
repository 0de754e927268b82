"""Constructions of this paper, broken on purpose, turn their claims to FAILED: the ledger can tell."""

import equinox as eqx
import numpy as np
import pytest

from tapegrad.circuits.model import Gate
from tapegrad.targets.relu import build
from tapegrad.targets.transformer import net as transformer_net
from tapegrad_papers import wei
from tapegrad_papers.wei import samples
from tapegrad_papers.wei.blocks import TwoLayers
from tapegrad_papers.wei.margins import MarginConstants
from tests.papers.checking import failing

pytestmark = pytest.mark.slow  # each runs whole claims again


def test_an_or_gate_that_is_an_and_gate(monkeypatch):
    monkeypatch.setitem(build.GADGETS, Gate.OR, build.GADGETS[Gate.AND])
    assert failing(wei, "Proposition B.2") == ["Proposition B.2"]


def test_gates_with_a_weight_off_by_a_tenth(monkeypatch):
    rows = build.OUT_ROWS.copy()
    rows[Gate.OR] += [0.1, 0, 0]
    monkeypatch.setattr(build, "OUT_ROWS", rows)
    assert failing(wei, "Lemma B.1", "Lemma 3.2") == ["Lemma B.1", "Lemma 3.2"]


def test_corrections_that_cut_elsewhere(monkeypatch):
    monkeypatch.setitem(build.CORRECTIONS, "thirds", build.CORRECTIONS["quarters"])
    assert failing(wei, "Proposition 3.4") == ["Proposition 3.4"]


def changed_layer(monkeypatch, place, change):
    """Rebuilds transformers with one layer altered; `place` names it by the start of its purpose."""
    build = transformer_net.build_layers

    def altered(*arguments):
        layers = build(*arguments)
        return tuple(change(layer) if layer.purpose.startswith(place) else layer for layer in layers)

    monkeypatch.setattr(transformer_net, "build_layers", altered)


def test_a_null_key_that_always_wins(monkeypatch):
    changed_layer(
        monkeypatch,
        "was the cell written",
        lambda layer: eqx.tree_at(
            lambda part: part.self_attention.null_key, layer, layer.self_attention.null_key + 2
        ),
    )
    statements = ["Lemma C.3", "Claim C.4", "Lemma C.8"]
    assert failing(wei, *statements) == statements


def test_a_table_with_the_moves_left_out(monkeypatch):
    def without_moves(layer):
        table = layer.feed_forward[0].map
        writes_moves = np.flatnonzero(np.bincount(table.rows) > 1)
        values = np.where(table.rows == writes_moves[-1], 0, table.values)
        return eqx.tree_at(lambda part: part.feed_forward[0].map.values, layer, values)

    changed_layer(monkeypatch, "apply the machine's table", without_moves)
    assert failing(wei, "Lemma C.1", "Lemma C.2") == ["Lemma C.1", "Lemma C.2"]


def test_an_encoder_attention_that_copies_nothing(monkeypatch):
    def silent(layer):
        value = layer.encoder_attention.value
        return eqx.tree_at(lambda part: part.encoder_attention.value.values, layer, 0 * value.values)

    changed_layer(monkeypatch, "copy the last write", silent)
    assert failing(wei, "Lemma C.7", "Lemma C.8") == ["Lemma C.7", "Lemma C.8"]


def test_margins_that_promise_too_much(monkeypatch):
    honest = MarginConstants.terms.fget
    assert honest is not None
    monkeypatch.setattr(
        MarginConstants, "terms", property(lambda self: {n: 50 * v for n, v in honest(self).items()})
    )
    assert failing(wei, "Theorem D.6", "Lemma D.8") == ["Theorem D.6", "Lemma D.8"]


def test_lipschitz_constants_that_are_too_small(monkeypatch):
    gain = TwoLayers.gain
    monkeypatch.setattr(TwoLayers, "gain", lambda self, s: gain(self, s) / 2)
    assert failing(wei, "Definition D.2", "Condition D.3") == ["Definition D.2", "Condition D.3"]


def test_a_surrogate_below_the_loss(monkeypatch):
    monkeypatch.setattr(samples, "surrogate_loss", lambda margin, gamma: max(0.0, 0.9 - margin / gamma))
    assert failing(wei, "(2.2)") == ["(2.2)"]


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_cover_that_does_not_scale(monkeypatch, factor):
    bound = samples.rademacher_bound
    monkeypatch.setattr(
        samples,
        "rademacher_bound",
        lambda n, alpha, gamma, p: bound(n, alpha**factor, gamma, p) / 500 ** (factor < 1),
    )
    assert failing(wei, "Lemma 2.3") == ["Lemma 2.3"]
