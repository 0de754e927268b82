"""Constructions of this paper, broken on purpose, turn their claims to FAILED: the ledger can tell."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from tapegrad.targets.descent import loss
from tapegrad.targets.extended import formats
from tapegrad.targets.simplex import net as simplex_net
from tapegrad.targets.tape import build
from tapegrad_papers import welper
from tapegrad_papers.welper import runs
from tests.papers.checking import failing

pytestmark = pytest.mark.slow  # each runs whole claims again


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
    build = runs.build_graph

    def wrong(machine, chosen):
        graph = build(machine, chosen)
        return replace(graph, written=-graph.written)

    monkeypatch.setattr(runs, "build_graph", wrong)
    assert failing(welper, "Proposition 4.3") == ["Proposition 4.3"]


def test_constants_that_are_too_small(monkeypatch):
    small = build.Constants(1, b=2, c=100, low=10, high=20, exact=False)
    monkeypatch.setattr(build, "choose", lambda tapes, loss: replace(small, tapes=tapes))
    assert failing(welper, "Condition (18)", "Bound (23)") == ["Condition (18)", "Bound (23)"]


@pytest.mark.parametrize("part", ["label_switch", "halt_switch", "orthogonal", "cutoff"])
@pytest.mark.parametrize("more", [1, 8])
def test_further_layers(monkeypatch, part, more):
    """Each adds 0 to what it had, by ReLUs in a row."""
    shallow = getattr(loss, part)

    def deeper(*given):
        found = shallow(*given)
        nothing = found
        for _ in range(more):
            nothing = jax.nn.relu(nothing + 1)
        return found + 0 * nothing

    monkeypatch.setattr(loss, part, deeper)
    assert failing(welper, "Section 5.5") == ["Section 5.5"]


def test_a_network_that_knows_only_larger_labels(monkeypatch):
    """epsilon must be at most |y|^2 for all labels of the format, not for those of one data set."""
    smallest = formats.FixedPoint.smallest
    larger = property(lambda form: 2 * smallest.fget(form))  # type: ignore[misc]
    monkeypatch.setattr(formats.FixedPoint, "smallest", larger)
    assert failing(welper, "Proposition 2.1") == ["Proposition 2.1"]


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
