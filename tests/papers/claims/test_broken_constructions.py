"""A construction that is broken on purpose turns its claims to FAILED: the ledger can tell."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tapegrad.circuits.model import Gate
from tapegrad.targets.descent import loss
from tapegrad.targets.extended import formats
from tapegrad.targets.relu import corrections, gadgets, units
from tapegrad.targets.simplex import net as simplex_net
from tapegrad.targets.tape import constants
from tapegrad.targets.transformer import net as transformer_net
from tapegrad_papers.claims import wei, welper
from tapegrad_papers.theory import sample_complexity
from tapegrad_papers.theory.blocks import TwoLayers
from tapegrad_papers.theory.margin_constants import MarginConstants
from tests.papers.claims.failing import failing


def test_a_corner_function_that_is_a_little_too_wide(monkeypatch):
    monkeypatch.setattr(loss, "corner", lambda x, mu: jax.nn.relu(1 - (1 - x) / (1.01 * mu)))
    assert failing(welper, "Lemma A.1", "Lemma A.2") == ["Lemma A.1", "Lemma A.2"]


def test_an_edge_function_without_direction(monkeypatch):
    monkeypatch.setattr(loss, "directed", loss.edge)
    assert failing(welper, "Function (34)") == ["Function (34)"]


def test_a_kink_near_a_vertex(monkeypatch):
    straight = loss.directed
    monkeypatch.setattr(loss, "directed", lambda x, y: straight(x, y) + 30 * jnp.minimum(y, 0.01))
    assert failing(welper, "Lemma 4.1", "Function (34)") == ["Lemma 4.1", "Function (34)"]


def test_weights_of_edges_above_those_of_vertices(monkeypatch):
    weighted = simplex_net.weighted

    def heavier(successor, levels):
        found = weighted(successor, levels)
        return found | {"edge_weight": found["edge_weight"] + 2 * levels.unit}

    monkeypatch.setattr(simplex_net, "weighted", heavier)
    statements = ["Condition (10)", "Condition (15)", "Proposition 4.2"]
    assert failing(welper, *statements) == statements


def test_a_machine_that_writes_the_wrong_symbols(monkeypatch):
    from tapegrad_papers.claims.welper import tracing

    build = tracing.build_graph

    def wrong(machine, chosen):
        graph = build(machine, chosen)
        return replace(graph, written=-graph.written)

    monkeypatch.setattr(tracing, "build_graph", wrong)
    assert failing(welper, "Proposition 4.3") == ["Proposition 4.3"]


def test_constants_that_are_too_small(monkeypatch):
    small = constants.Constants(1, b=2, c=100, low=10, high=20, exact=False)
    monkeypatch.setattr(constants, "choose", lambda tapes, loss: replace(small, tapes=tapes))
    assert failing(welper, "Condition (18)", "Bound (23)") == ["Condition (18)", "Bound (23)"]


def test_switches_that_are_never_quite_open(monkeypatch):
    label, halt = loss.label_switch, loss.halt_switch
    monkeypatch.setattr(loss, "label_switch", lambda u, z, epsilon: 0.999 * label(u, z, epsilon))
    monkeypatch.setattr(loss, "halt_switch", lambda f, u, low, high: halt(f, u, low, high) + 1e-3 * f)
    assert failing(welper, "Section 5.2", "Section 5.3") == ["Section 5.2", "Section 5.3"]


def test_a_vector_that_is_not_quite_orthogonal(monkeypatch):
    found = loss.orthogonal
    monkeypatch.setattr(loss, "orthogonal", lambda z, epsilon: found(z, epsilon) + 1e-9 * z)
    assert failing(welper, "Appendix C") == ["Appendix C"]


def test_digits_from_the_bottom_up(monkeypatch):
    digits = formats.binary_digits
    monkeypatch.setattr(formats, "binary_digits", lambda *arguments: digits(*arguments)[..., ::-1])
    assert failing(welper, "Appendix B") == ["Appendix B"]


def test_an_or_gate_that_is_an_and_gate(monkeypatch):
    monkeypatch.setitem(gadgets.GADGETS, Gate.OR, gadgets.GADGETS[Gate.AND])
    assert failing(wei, "Proposition B.2") == ["Proposition B.2"]


def test_gates_with_a_weight_off_by_a_tenth(monkeypatch):
    rows = gadgets.OUT_ROWS.copy()
    rows[Gate.OR] += [0.1, 0, 0]
    monkeypatch.setattr(units, "OUT_ROWS", rows)
    assert failing(wei, "Lemma B.1", "Lemma 3.2") == ["Lemma B.1", "Lemma 3.2"]


def test_corrections_that_cut_elsewhere(monkeypatch):
    monkeypatch.setitem(corrections.CORRECTIONS, "thirds", corrections.CORRECTIONS["quarters"])
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
        lambda layer: eqx.tree_at(lambda part: part.self_attention.K_0, layer, layer.self_attention.K_0 + 2),
    )
    statements = ["Lemma C.3", "Claim C.4", "Lemma C.8"]
    assert failing(wei, *statements) == statements


def test_a_table_with_the_moves_left_out(monkeypatch):
    def without_moves(layer):
        W_1 = layer.feed_forward.W_1.copy()
        writes_moves = np.flatnonzero((W_1 != 0).sum(axis=1) > 1)
        W_1[writes_moves[-1]] = 0
        return eqx.tree_at(lambda part: part.feed_forward.W_1, layer, W_1)

    changed_layer(monkeypatch, "apply the machine's table", without_moves)
    assert failing(wei, "Lemma C.1", "Lemma C.2") == ["Lemma C.1", "Lemma C.2"]


def test_an_encoder_attention_that_copies_nothing(monkeypatch):
    def silent(layer):
        return eqx.tree_at(lambda part: part.encoder_attention.W_V, layer, 0 * layer.encoder_attention.W_V)

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
    monkeypatch.setattr(
        sample_complexity, "surrogate_loss", lambda margin, gamma: max(0.0, 0.9 - margin / gamma)
    )
    assert failing(wei, "(2.2)") == ["(2.2)"]


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_cover_that_does_not_scale(monkeypatch, factor):
    bound = sample_complexity.rademacher_bound
    monkeypatch.setattr(
        sample_complexity,
        "rademacher_bound",
        lambda n, alpha, gamma, p: bound(n, alpha**factor, gamma, p) / 500 ** (factor < 1),
    )
    assert failing(wei, "Lemma 2.3") == ["Lemma 2.3"]
