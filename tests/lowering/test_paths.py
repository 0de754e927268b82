"""Which way every kind of source takes to every target."""

import pytest

from tapegrad._compile import compile
from tapegrad._sources import route
from tapegrad.circuits import library as circuits
from tapegrad.learners import parity
from tapegrad.lowering.tables import to_grid
from tapegrad.machines import library as machines
from tapegrad.targets import target_named

MACHINE = machines.ready("increment")
SOURCES = {
    "machine": MACHINE,
    "grid": to_grid(MACHINE).after,
    "circuit": circuits.ready("adder2"),
    "learner": parity(1),
}
WAYS = {
    ("machine", "tape"): [],
    ("machine", "transformer"): [],
    ("machine", "decoder"): [],
    ("machine", "relu"): ["unroll"],
    ("machine", "emulator"): ["machine_learner"],
    ("machine", "rcnn"): ["on_grid"],
    ("grid", "tape"): ["unroll", "circuit_machine"],
    ("grid", "relu"): ["unroll"],
    ("grid", "emulator"): ["unroll", "one_cycle", "clocked_learner"],
    ("grid", "rcnn"): [],
    ("grid", "transformer"): ["unroll", "one_cycle"],
    ("grid", "decoder"): ["unroll", "circuit_rasp"],
    ("circuit", "tape"): ["circuit_machine"],
    ("circuit", "transformer"): ["one_cycle"],
    ("circuit", "decoder"): ["circuit_rasp"],
    ("circuit", "relu"): [],
    ("circuit", "emulator"): ["one_cycle", "clocked_learner"],
    ("circuit", "rcnn"): ["circuit_grid"],
    ("learner", "tape"): ["learner_machine"],
    ("learner", "transformer"): ["learner_machine"],
    ("learner", "decoder"): ["learner_machine"],
    ("learner", "relu"): ["learner_machine", "unroll"],
    ("learner", "emulator"): [],
    ("learner", "rcnn"): ["learner_machine", "on_grid"],
}


@pytest.mark.parametrize(("kind", "target"), WAYS)
def test_every_source_reaches_every_target(kind, target):
    targets = ("tape", "simplex") if target == "tape" else (target,)
    for name in targets:
        found = [way.function.partition(":")[2] for way in route(SOURCES[kind], *target_named(name).kinds)]
        assert found == WAYS[kind, target]


def test_an_option_of_a_machine_leads_by_way_of_one():
    circuit, kinds = SOURCES["circuit"], target_named("emulator").kinds
    found = [way.function.partition(":")[2] for way in route(circuit, *kinds, names=["tapes", "cells"])]
    assert found == ["circuit_machine", "machine_learner"]
    passes = compile(circuit, "transformer", tapes=2, steps=32).passes
    assert [rewriting.name for rewriting in passes] == ["straight-line machine"]
