"""Machines made from learners, stepped beside the learners' own interpreter."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import InputError, Refused
from tapegrad.learners import CircuitLearner, dictator, majority, parity
from tapegrad.lowering.learner_machine import learner_machine
from tapegrad.machines.model import STAY, TuringMachine
from tests.machines.side_by_side import check_side_by_side


@st.composite
def learners(draw: st.DrawFn) -> CircuitLearner:
    cells, bits = draw(st.integers(0, 4)), draw(st.integers(0, 3))
    seed, size = draw(st.integers(0, 10**6)), draw(st.integers(0, 25))
    first = tuple(draw(st.lists(st.integers(0, 1), min_size=cells, max_size=cells)))
    circuit = random_circuit(seed, inputs=cells + bits + 2, size=size, outputs=cells + 2)
    return CircuitLearner(circuit, bits, first)


def samples(learner: Any, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, (count, learner.inputs)), rng.integers(0, 2, count)


@settings(deadline=None, max_examples=60)
@given(learners(), st.integers(0, 4), st.integers(1, 4), st.integers(0, 10**6))
def test_memory_and_answer_after_every_sample(learner, count, carried, seed):
    rewriting = learner_machine(learner, carried)
    steps = check_side_by_side(rewriting, (*samples(learner, count, seed), seed), steps=count + 1)
    assert len(steps) == count
    assert len(set(steps)) <= 1  # a sample takes the same time whatever it is


def test_the_machine_is_oblivious_never_stays_and_does_not_know_how_many_samples_there_are():
    learner = parity(2)
    machine = learner_machine(learner).after
    assert isinstance(machine, TuringMachine)
    assert machine.alphabet == ("0", "1")
    assert all(STAY not in rule.moves for rule in machine.rules.values())
    ways = set()
    for seed in range(5):
        first = learner_machine(learner).encode(learner.start(*samples(learner, 3, seed), seed))
        ways.add(tuple(now.heads[0] for now in machine.run(first)))
    assert len(ways) == 1


def test_the_samples_are_still_there_in_the_end():
    learner = dictator(2, 2)
    rewriting = learner_machine(learner)
    first = learner.start(*samples(learner, 4), seed=7)
    *_, last = rewriting.after.run(rewriting.encode(first))
    found = rewriting.decode(last)
    assert found is not None
    for name in ("x", "y", "random", "guess"):
        np.testing.assert_array_equal(getattr(found.samples, name), getattr(first.samples, name))


def test_a_machine_may_start_in_the_middle():
    learner = parity(2)
    rewriting = learner_machine(learner)
    states = list(learner.run(learner.start(*samples(learner, 5), seed=2)))
    decoded = map(rewriting.decode, rewriting.after.run(rewriting.encode(states[2])))
    assert [state for state in decoded if state is not None] == states[2:]


def last_label() -> CircuitLearner:
    """Remembers the label of the last sample that it guessed wrong: about the smallest learner there is."""
    build = CircuitBuilder()
    build.input("memory")
    build.input("random")
    guess = build.input("guess")
    build.output("answer", guess)
    build.output("finished", build.constant(False))
    build.output("memory", build.not_(guess))
    return CircuitLearner(build.circuit("last label"), 0)


TARGETS = [
    ("tape", parity(1), {}),
    ("simplex", majority(1, 1), {"inputs": [([[1], [0]], [0, 1])]}),
    ("transformer", parity(1), {"steps": 200}),
    ("rcnn", last_label(), {"margin": 12}),
    pytest.param("relu", last_label(), {"steps": 80, "cells": 24, "first": 0}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("target", "learner", "options"), TARGETS)
def test_a_learner_reaches_every_target(target, learner, options):
    net = tg.compile(learner, target, **options)
    shown = (np.resize([1, 0, 0], (2, learner.inputs)), np.array([0, 1]))
    report = tg.verify(net, [shown], engine="fast")
    assert report.agreed, report
    assert report.complete
    assert report.states == (1 if target == "relu" else 3)
    *_, last = learner.run(learner.start(*shown))
    assert net.run(*shown, engine="fast").state == last


def test_a_saved_net_of_a_learner(tmp_path):
    tg.save(tg.compile(parity(1), "tape"), tmp_path / "net")
    shown = (np.ones((3, 1), int), np.array([1, 1, 0]))
    report = tg.verify(tg.load(tmp_path / "net"), [shown], engine="fast")
    assert report.agreed
    assert report.states == 4


def test_verify_notices_a_net_of_another_learner():
    one, other = (CircuitLearner(random_circuit(seed, inputs=5, size=9, outputs=4), 1) for seed in (1, 2))
    net = tg.compile(other, "tape")
    shown = (np.array([[1], [0], [1]]), np.array([1, 1, 0]))
    assert tg.verify(net, [shown], engine="fast").agreed
    assert not tg.verify(replace(net, source=one), [shown], engine="fast").agreed


def test_what_cannot_be_built_is_refused():
    with pytest.raises(Refused, match="GiB"):
        tg.compile(parity(3), "transformer", form="paper")
    with pytest.raises(Refused, match="weights"):
        tg.compile(parity(4), "rcnn")
    with pytest.raises(InputError, match="at least one wire"):
        learner_machine(parity(1), carried=0)


def test_tables_beyond_all_use(monkeypatch):
    monkeypatch.setattr("tapegrad.lowering.itinerary.MOST_RULES", 50)
    with pytest.raises(Refused, match="more than 50 rules"):
        learner_machine(parity(2))
