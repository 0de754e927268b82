"""Constructions of this paper, broken on purpose, turn their claims to FAILED: by a factor of 2, a dropped
term, a wrong table, an edge that is missing."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tapegrad.circuits.model import Gate
from tapegrad.learners import functions, library
from tapegrad.learners import programs as learners_programs
from tapegrad.targets.emulator import build, net, noise, paper_nets
from tapegrad.targets.emulator.constants import NOISE, PATH, Constants, ExactConstants, gate_weight
from tapegrad.targets.emulator.graph import THRESHOLDS, Computation, GraphBuilder
from tapegrad_papers import abbe_sandon
from tapegrad_papers.abbe_sandon import (
    cross_predictability,
    descent,
    emulation,
    noisy_learning,
    tight,
)
from tests.papers.checking import failing, mutated

pytestmark = pytest.mark.slow  # each runs whole claims again


def fails(*statements: str) -> bool:
    """Whether each of these claims fails now, by one of its checks."""
    return failing(abbe_sandon, *statements) == list(statements)


def twice(monkeypatch, owner, name: str) -> None:
    """A property or a constant, multiplied by 2."""
    right = vars(owner)[name]
    if isinstance(right, property):
        value = right.fget
        assert value is not None
        monkeypatch.setattr(owner, name, property(lambda self: value(self) * 2))
    else:
        monkeypatch.setattr(owner, name, right * 2)


def without(monkeypatch, dropped) -> None:
    """Vertices are built without the edges for which `dropped(edges)` gives a place."""
    right = GraphBuilder.vertex

    def vertex(self, edges):
        own = list(edges)
        place = dropped(own)
        return right(self, own if place is None else own[:place] + own[place + 1 :])

    monkeypatch.setattr(GraphBuilder, "vertex", vertex)


# Lemma 1 and section 4.3


def test_a_gate_that_is_not_flat(monkeypatch):
    monkeypatch.setitem(THRESHOLDS, Gate.AND, (1, 1, -1))
    assert fails("Lemma 1", "Lemma 5")


def test_cells_that_are_too_large(monkeypatch):
    large = lambda cells, steps, precision: Constants(2.0**-5, gate_weight(cells))  # noqa: E731
    monkeypatch.setattr(net, "choose", large)
    assert fails("Section 4.3")


# Theorem 4 and Remark 11


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("labels.append(here ^ (fresh & label))", "labels.append(here ^ (fresh & y))"),
        ("fresh = rest[0] & ~row[0] & ~stored", "fresh = rest[0] & ~row[0]"),
        ("rest.type(0)))  # an absent", "rest.type(0)) ^ rest)  # an absent"),
    ],
)
def test_elimination_that_goes_wrong(monkeypatch, old, new):
    monkeypatch.setattr(emulation, "parity", mutated(library.parity, old, new))
    assert fails("Theorem 4")


@pytest.mark.parametrize("share", [0.25, 0.75])
def test_guesses_that_are_not_fair(monkeypatch, share):
    """The bit r' is the label, or its opposite, more often than not."""
    right = functions.FunctionLearner.start

    def start(self, x, y, seed=0):
        first = right(self, x, y, seed)
        wrong = np.random.default_rng(seed).random(len(first.samples.y)) < share
        guess = first.samples.y ^ wrong.astype(first.samples.y.dtype)
        return replace(first, samples=replace(first.samples, guess=guess))

    monkeypatch.setattr(functions.FunctionLearner, "start", start)
    assert fails("Theorem 4", "Remark 10")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("UInt(width + 1)) << 1,", "UInt(width + 1)),"),
        ('memory["length"] << 1)', 'memory["length"] + 1)'),
        ('memory["root"] + 1)', 'memory["root"] + 2)'),
    ],
)
def test_a_scheme_of_other_rounds(monkeypatch, old, new):
    monkeypatch.setattr(emulation, "doubling", mutated(functions.doubling, old, new))
    assert fails("Remark 11")


# Definition 6


@pytest.mark.parametrize("name", ["control", "s"])
def test_definition_6_with_a_weight_twice_as_large(monkeypatch, name):
    twice(monkeypatch, ExactConstants, name)
    assert fails("Definition 6")


@pytest.mark.parametrize("t", range(1, 7))
def test_definition_6_with_one_edge_of_the_path_twice_as_large(monkeypatch, t):
    right = ExactConstants.path
    monkeypatch.setattr(ExactConstants, "path", lambda self, k: right(self, k) * (2 if k == t else 1))
    assert fails("Definition 6")


def test_definition_6_without_a_control(monkeypatch):
    control = ExactConstants.of(Fraction(3), 5).control

    def dropped(edges):
        return next((i for i, (_, weight) in enumerate(edges) if weight == -control), None)

    without(monkeypatch, dropped)
    assert fails("Definition 6")


def test_definition_6_with_two_paths_of_one_sign(monkeypatch):
    right = build._component

    def component(*given):
        first, (vertex, weight) = right(*given)
        return [first, (vertex, -weight)]

    monkeypatch.setattr(build, "_component", component)
    assert fails("Definition 6")


# Definition 7 and Lemma 4


@pytest.mark.parametrize("name", ["READ", "BEFORE", "AFTER"])
def test_components_with_a_weight_twice_as_large(monkeypatch, name):
    twice(monkeypatch, build, name)
    assert fails("Definition 7", *([] if name == "READ" else ["Lemma 4"]))


@pytest.mark.parametrize("t", range(5))
def test_components_with_one_edge_of_the_path_twice_as_large(monkeypatch, t):
    monkeypatch.setattr(build, "PATH", tuple(w * (2 if k == t else 1) for k, w in enumerate(PATH)))
    assert fails("Definition 7", "Lemma 4")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_components_with_an_edge_removed(monkeypatch, place):
    without(monkeypatch, lambda edges: place if len(edges) == 3 and edges[0][1] == PATH[3] else None)
    assert fails("Definition 7", "Lemma 4")


@pytest.mark.parametrize("factor", [2, 0.5])
def test_a_rate_that_does_not_double(monkeypatch, factor):
    monkeypatch.setattr(paper_nets, "RATE", paper_nets.RATE * paper_nets.Decimal(factor))
    assert fails("Lemma 4")


def test_a_sample_that_is_written_twice(monkeypatch):
    right = Computation.all_of
    monkeypatch.setattr(Computation, "all_of", lambda self, terms: right(self, terms[-1:]))
    assert fails("Lemma 4")


# Lemma 5


def test_an_xor_of_the_weights_that_bear_too_little(monkeypatch):
    right = Computation.gate

    def gate(self, kind, a=0, b=0):
        found = right(self, kind, a, b)
        if kind in (Gate.XOR, Gate.XNOR):
            last = self.build.weights
            last[-4:] = [weight / 2 for weight in last[-4:]]
        return found

    monkeypatch.setattr(Computation, "gate", gate)
    assert fails("Lemma 5")


@pytest.mark.parametrize("kind", [Gate.AND, Gate.OR, Gate.NOT])
def test_gates_of_half_the_weights(monkeypatch, kind):
    monkeypatch.setitem(THRESHOLDS, kind, tuple(weight / 2 for weight in THRESHOLDS[kind]))
    assert fails("Lemma 5")


# Theorem 5 and Remark 12


def test_a_rate_that_does_not_flip(monkeypatch):
    monkeypatch.setattr(noisy_learning, "STEPS", 300)
    twice(monkeypatch, Constants, "rate")
    assert fails("Theorem 5")


def test_noise_that_is_not_there(monkeypatch):
    monkeypatch.setattr(noisy_learning, "STEPS", 300)
    monkeypatch.setattr(noise.Noise, "at", lambda self, step, first, steps: np.zeros_like(first))
    assert fails("Theorem 5")


def test_a_bound_on_the_noise_that_is_twice_too_large(monkeypatch):
    monkeypatch.setattr(noisy_learning, "STEPS", 300)
    right = noise.error
    monkeypatch.setattr(noise, "error", lambda *given: right(*given) / 2)
    assert fails("Theorem 5")


def test_the_metaalgorithm_with_noise_and_a_rate_twice_as_large(monkeypatch):
    monkeypatch.setattr(paper_nets, "RATE", paper_nets.RATE * 2)
    assert fails("Remark 12")


@pytest.mark.parametrize("statement", ["Remark 12", "Theorem 5"])
def test_noise_that_is_lost_in_the_rounding_of_doubles(monkeypatch, statement):
    """What doubles bear: nearly every weight is where it would be without noise."""

    def noisy(learner, samples, noise):
        return paper_nets.NoisyNet.of(learner, samples, "double", float(NOISE["double"]) if noise else 0.0)

    monkeypatch.setattr(noisy_learning, "STEPS", 300)
    monkeypatch.setattr(noisy_learning, "_noisy", noisy)
    assert fails(statement)


@pytest.mark.parametrize("statement", ["Remark 12", "Corollary 1"])
def test_a_metaalgorithm_that_takes_the_worst(monkeypatch, statement):
    monkeypatch.setattr(learners_programs, "_best", lambda pairs: pairs[-1][1])
    assert fails(statement)


# Corollary 1


@pytest.mark.parametrize("instruction", learners_programs.INSTRUCTIONS)
def test_an_instruction_that_does_nothing(monkeypatch, instruction):
    right = learners_programs._step

    def step(program, place, at, label):
        if program[place] == instruction:
            return iter([(place + 1, at)])
        return right(program, place, at, label)

    monkeypatch.setattr(learners_programs, "_step", step)
    assert fails("Corollary 1")


def test_a_time_limit_of_half(monkeypatch):
    right = learners_programs._run
    monkeypatch.setattr(
        learners_programs, "_run", lambda program, x, label, a, limit: right(program, x, label, a, limit // 2)
    )
    assert fails("Corollary 1")


def test_samples_learned_from_that_are_lost_ones(monkeypatch):
    right = functions.FunctionLearner.response

    def response(self, memory, x, random, guess):
        return right(self, memory, x, random, ~guess)

    monkeypatch.setattr(functions.FunctionLearner, "response", response)
    assert fails("Corollary 1")


# Remark 10


def test_a_learning_rate_twice_as_large(monkeypatch):
    twice(monkeypatch, ExactConstants, "rate")
    assert fails("Remark 10")


def test_twice_the_copies_of_the_gates(monkeypatch):
    right = build.Copies.add

    def add(self, counts, sources, weights):
        right(self, counts, sources, weights)
        if len(counts) > 1 and self.edges > len(sources):
            right(self, counts, sources, weights)

    monkeypatch.setattr(build.Copies, "add", add)
    assert fails("Remark 10")


def test_a_learner_that_learns_from_every_sample(monkeypatch):
    right = functions.FunctionLearner.start
    monkeypatch.setattr(
        functions.FunctionLearner,
        "start",
        lambda self, x, y, seed=0, guessing=True: right(self, x, y, seed, False),
    )
    assert fails("Remark 10")


# Theorems 3 and 6, Corollaries 2 and 3, Lemma 7


@pytest.mark.parametrize("factor", [2, 0.5])
@pytest.mark.parametrize(
    ("name", "statement"),
    [("theorem_3", "Theorem 3"), ("corollary_2", "Corollary 2"), ("theorem_6_bound", "Theorem 6")],
)
def test_bounds_off_by_a_factor(monkeypatch, name, statement, factor):
    right = getattr(descent, name)
    monkeypatch.setattr(descent, name, lambda *given: 0.5 + factor * (right(*given) - 0.5))
    assert fails(statement)


def test_a_bound_with_another_root(monkeypatch):
    monkeypatch.setattr(descent, "theorem_3", lambda flow, sigma, found: 0.5 + flow / sigma * found**0.5)
    assert fails("Corollary 2")


def test_a_bound_without_its_batches(monkeypatch):
    right = descent.corollary_2
    monkeypatch.setattr(descent, "corollary_2", lambda a, s, e, t, m, found: right(a, s, e, t, None, found))
    assert fails("Corollary 2")


def test_a_step_that_is_twice_as_long(monkeypatch):
    right = tight.signs_of_a_bit
    monkeypatch.setattr(tight, "signs_of_a_bit", lambda e, g, *others: right(e, 2 * g, *others))
    assert fails("Theorem 3", "Corollary 2")


def test_a_wrong_cross_predictability_of_samples(monkeypatch):
    monkeypatch.setattr(cross_predictability, "with_samples", lambda infinite, m: infinite + Fraction(1, m))
    assert fails("Theorem 3")


def test_parities_that_are_too_easy(monkeypatch):
    honest = cross_predictability.means_by_parity

    def biased(f, n):
        means = honest(f, n)
        return means + np.where(np.arange(len(means)) == 1, 10.0, 0.0)

    monkeypatch.setattr(cross_predictability, "means_by_parity", biased)
    assert fails("Lemma 7", "Corollary 3")


def test_parities_with_a_wrong_table(monkeypatch):
    honest = cross_predictability.parity_table
    monkeypatch.setattr(cross_predictability, "parity_table", lambda n: np.roll(honest(n), 1, axis=1) ** 2)
    assert fails("Theorem 6")
