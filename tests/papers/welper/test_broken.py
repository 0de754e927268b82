"""Constructions of this paper, broken on purpose, turn their claims to FAILED: by a factor of 2, a dropped
term, a wrong table, an edge that is missing, a further layer. Every claim has a mutant of its own."""

import inspect
import sys
from dataclasses import replace
from typing import Any

import jax
import pytest

from tapegrad import _optimise
from tapegrad.lowering import tables
from tapegrad.targets.descent import loss
from tapegrad.targets.extended import batches, formats, rosenblatt, whole
from tapegrad.targets.extended import build as extended_build
from tapegrad.targets.extended.net import Extended
from tapegrad.targets.extended.primary import Connected, OfVertices
from tapegrad.targets.simplex import build as simplex_build
from tapegrad.targets.simplex.loss import ChosenLoss, SimplexLoss
from tapegrad.targets.tape import build
from tapegrad.targets.tape.loss import TapeLoss
from tapegrad_papers import welper
from tests.papers.checking import failing, mutated


def fails(*statements: str) -> bool:
    """Whether each of these claims fails now, by one of its checks."""
    return failing(welper, *statements) == list(statements)


@pytest.fixture(autouse=True)
def nothing_compiled():
    """What was traced before a change, or with it, is of no use to anyone else."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    jax.clear_caches()
    build.choose.cache_clear()
    rosenblatt.perceptron_machine.cache_clear()
    rosenblatt.batch_machine.cache_clear()


def mutate(monkeypatch, owner: Any, name: str, old: str, new: str) -> None:
    """A function or method with a piece of its source replaced, in every module that knows it."""
    right: Any = vars(owner)[name]
    plain: Any = right.fget if isinstance(right, property) else getattr(right, "__func__", right)
    function = inspect.unwrap(plain)
    wrong = mutated(getattr(function, "method", function), old, new)
    monkeypatch.setattr(owner, name, wrong)
    if inspect.ismodule(owner):
        for module in [m for known, m in sys.modules.items() if known.startswith("tapegrad")]:
            for known in [own for own, value in vars(module).items() if value is right]:
                monkeypatch.setattr(module, known, wrong)


MUTANTS = {
    "Proposition 2.1": [
        (formats.FixedPoint, "smallest", "2.0**-self.fraction", "2.0 ** (1 - self.fraction)"),
        (build, "build_graph", "[1 if symbol != machine.blank", "[1 if symbol == machine.blank"),
        (build, "build_graph", "codes[None, :])", "codes[None, :] // 2 * 2)"),
        (Connected, "of", "ends - first, shown", "ends - first + 1, shown"),
        (Extended, "predict", "padded[i : i + rows]}", "padded[i : i + rows] / 2}"),
        (loss.SquaredError, "__call__", "total(2) / 2", "total(2)"),
        (loss, "label_switch", "(2 * epsilon / 3)", "(2 * epsilon)"),
        (extended_build.Procedure, "side_by_side", "range(FIRST_CELL, FIRST_CELL + d", "range(2, 2 + d"),
    ],
    "Corollary 2.2": [
        (ChosenLoss, "__call__", "chosen * build", "0 * chosen * build"),
        (ChosenLoss, "__call__", "weight = chosen *", "weight = 1.0 *"),
        (ChosenLoss, "__call__", "(bits - 1)", "(bits - 3)"),
        (whole, "build", "first_to=first_to,", "first_to=first_to[::-1],"),
        (whole, "build", "(level[start] + level[first_to]) / 2", "level[start] + level[first_to]"),
        (whole, "_results", "cell - vertices.first_cell", "cell - vertices.first_cell + 1"),
        (OfVertices, "read_only_tapes", "2 * self.bits(x, z)", "0 * self.bits(x, z)"),
        (SimplexLoss, "__call__", "(edge_weight * edge", "(0.0 * edge_weight * edge"),
        (simplex_build, "weighted", "weight[successor[running]]) / 2", "weight[successor[running]])"),
    ],
    "Corollary 2.3": [
        (build, "build_graph", "(len(machine.states), 1)", "(2 * len(machine.states), 1)"),
        (loss, "directed", "- skew(x_v, x_w)", "- skew(x_v, x_w) + 0 * x_v.relu() + 0 * x_w.relu()"),
    ],
    "Remark 2.4": [
        (batches.BatchNetwork, "traced", "total(2) / 2", "total(2) / 4"),
        (batches.BatchNetwork, "traced", "total(2) / 2", "total(2)"),
        (batches.BatchNetwork, "traced", " + asks * (z * z).total(2) / 2", ""),
        (batches.BatchNetwork, "traced", "weights.s.detach()", "weights.s"),
        (batches, "_vertices", " & blank", ""),
        (rosenblatt, "batch_machine", 'read[SUM] != "1"', "False"),
        (rosenblatt, "_updating", "_added(w, change * x, change * carry)", "_added(w, x, carry)"),
        (rosenblatt, "_deciding", "sign == (1 if label else -1)", "sign != (-1 if label else 1)"),
        (rosenblatt, "_multiplying", "-1 if last else 1", "1"),
    ],
    "Condition (10)": [
        (simplex_build, "weighted", "weight[successor[running]]) / 2", "weight[successor[running]])"),
        (simplex_build.Levels, "outside", "self.most + 1", "self.most - 1"),
    ],
    "Condition (15)": [
        (simplex_build, "weighted", "weight[successor[running]]) / 2", "weight[successor[running]]) / 4"),
        (SimplexLoss, "__call__", "corner(s, 1 / 2)", "corner(s, 1 / 4)"),
    ],
    "Proposition 4.2": [
        (SimplexLoss, "__call__", "(edge_weight * edge", "(0.0 * edge_weight * edge"),
        (simplex_build, "weighted", "1.0 + 3.0 *", "1.0 - 3.0 *"),
        (_optimise, "_best_vertex", "jnp.argmin", "jnp.argmax"),
    ],
    "Condition (18)": [
        (build, "choose", "b**3 <= 8 *", "b**3 <= 4 *"),
        (build, "build_graph", "unchanged * b", "0 * unchanged"),
    ],
    "Condition (20)": [
        (tables, "triple_states", "(r + 1) % 3", "(r + 1) % 2"),
        (tables, "triple_states", "Rule(rule.write, rule.moves,", "Rule(read, rule.moves,"),
        (build, "has_two_cycle", "(after, before) in steps", "False"),
    ],
    "Proposition 4.3": [
        (TapeLoss, "__call__", "terms = write", "terms = 2 * write"),
        (TapeLoss, "__call__", "* read + move", "* read"),
        (TapeLoss, "__call__", "np.asarray(4 * self.b**2)", "np.asarray(0.0)"),
        (build, "build_graph", "unchanged * b", "0 * unchanged"),
        (build, "build_graph", "moves[vertex] = rule.moves", "moves[vertex] = 1"),
    ],
    "Bound (23)": [
        (TapeLoss, "__call__", "4 * self.b**2", "2 * self.b**2"),
        (TapeLoss, "__call__", "4 * self.b**2", "8 * self.b**2"),
        (build, "build_graph", "-float(b**3)", "-float(b**3) / 2"),
        (build, "build_graph", "-float(b**3)", "-float(b**3) * 2"),
    ],
    "Section 5.2": [
        (loss, "label_switch", "reading * z", "2 * reading * z"),
        (loss, "label_switch", "(1 - reading) * u", "u"),
        (loss.ExtendedNetwork, "__call__", "orthogonal(labels,", "orthogonal(z,"),
        (_optimise, "_best_vertex", "slope[best] < slope @ point", "slope[best] <= slope @ point"),
    ],
    "Section 5.3": [
        (loss, "halt_switch", "2 * low + delta", "low + delta"),
        (loss, "halt_switch", "2 * high - delta", "4 * high - delta"),
        (loss, "halt_switch", "(1 - halted) * u", "u"),
        (loss, "halt_switch", "halted * f", "f"),
        (build, "choose", "low=c - 2 * third", "low=2 * (c - 2 * third)"),
        (build, "choose", "high=c - third", "high=2 * (c - third)"),
        (loss.ExtendedNetwork, "__call__", "(2 * traced).sqrt()", "traced.sqrt()"),
    ],
    "Section 5.4": [
        (loss.ExtendedNetwork, "__call__", "(2 * traced).sqrt()", "traced.sqrt()"),
        (loss.ExtendedNetwork, "__call__", "* orthogonal(labels, bounds.epsilon)", "* labels"),
        (loss.SquaredError, "__call__", "total(2) / 2", "total(2)"),
    ],
    "Lemma A.1": [(loss, "corner", "(1 - x_v) / mu", "2 * (1 - x_v) / mu")],
    "Lemma A.2": [
        (loss, "edge", "2 * (x_v + x_w)", "(x_v + x_w)"),
        (loss, "edge", "- corner(x_w, 1 / 2)", ""),
    ],
    "Lemma A.3": [
        (loss, "skew", "- 2 * x_w", "- x_w"),
        (loss, "skew", "2 * x_v", "4 * x_v"),
    ],
    "Function (34)": [
        (loss, "directed", "- skew(x_v, x_w)", ""),
        (loss, "directed", "- corner(x_w, 1 / 2)", ""),
        (loss, "directed", "2 * (x_v + x_w)", "4 * (x_v + x_w)"),
    ],
    "Appendix B": [
        (formats.FixedPoint, "dequantise", "/ 2**self.fraction", "/ 2 ** (self.fraction + 1)"),
        (formats.FixedPoint, "quantise", "+ 2 ** (self.width - 1)", ""),
        (formats, "binary_digits", "number - digit * 2**place", "number"),
        (formats, "step", "1 - (t < 0)", "t > 0"),
        (formats.FloatingPoint, "quantise", "- first * 2**self.mantissa", ""),
        (formats.FloatingPoint, "dequantise", "* (2 - hidden)", ""),
    ],
    "Appendix C": [
        (loss, "orthogonal", "/ length * flat", "/ (2 * length) * flat"),
        (loss, "orthogonal", "(2 * (along * along) > length) *", "0 *"),
        (loss, "orthogonal", "projected / at_least", "2 * projected / at_least"),
    ],
}  # fmt: skip
"""For each claim the functions that are broken, and how: what is replaced by what."""

BY_HAND = {"Lemma 4.1", "Section 5.5"}
"""Claims that are broken below."""


def test_every_claim_is_broken():
    assert MUTANTS.keys() | BY_HAND == set(welper.PAPER.statements)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "mutant"),
    [
        pytest.param(statement, mutant, id=f"{statement}: {mutant[1]}: {mutant[2]} becomes {mutant[3]}")
        for statement, mutants in MUTANTS.items()
        for mutant in mutants
    ],
)
def test_mutants(monkeypatch, statement, mutant):
    mutate(monkeypatch, *mutant)
    assert fails(statement)


@pytest.mark.slow
def test_a_kink_near_a_vertex(monkeypatch):
    straight = loss.directed
    monkeypatch.setattr(loss, "directed", lambda x, y: straight(x, y) + 30 * (0.01 - (0.01 - y).relu()))
    assert fails("Lemma 4.1", "Function (34)")


@pytest.mark.slow
@pytest.mark.parametrize("more", [1, 8])
@pytest.mark.parametrize("part", ["label_switch", "halt_switch", "orthogonal", "cutoff"])
def test_further_layers(monkeypatch, part, more):
    """Each adds 0 to what it had, by ReLUs in a row."""
    _deepen(monkeypatch, loss, part, more)
    assert fails("Section 5.5", "Corollary 2.3", *(["Appendix C"] if part == "orthogonal" else []))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "statement"),
    [(TapeLoss, "Corollary 2.3"), (TapeLoss, "Section 5.5"), (ChosenLoss, "Corollary 2.2")],
)
def test_eight_further_layers_in_the_loss(monkeypatch, owner, statement):
    _deepen(monkeypatch, owner, "__call__", 8)
    assert fails(statement)


def _deepen(monkeypatch, owner, name: str, more: int) -> None:
    shallow = getattr(owner, name)

    def deeper(*given):
        found = shallow(*given)
        nothing = found
        for _ in range(more):
            nothing = (nothing + 1).relu()
        return found + 0 * nothing

    monkeypatch.setattr(owner, name, deeper)


@pytest.mark.slow
def test_constants_that_are_too_small(monkeypatch):
    small = build.Constants(1, b=2, c=100, low=10, high=20, exact=False)
    monkeypatch.setattr(build, "choose", lambda tapes, loss: replace(small, tapes=tapes))
    assert fails("Condition (18)", "Bound (23)")
