"""The spine end to end: the way that `compile` finds, and a `verify` that can say no."""

import dataclasses

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.circuits import Circuit, UInt, trace
from tapegrad.circuits import library as circuits
from tapegrad.errors import InputError, Refused
from tapegrad.machines import library as machines
from tapegrad.networks.form import Dense, Matrix
from tapegrad.targets import all_targets, target_named
from tapegrad.targets.transformer import TransformerNet
from tests.networks.written import with_decoder


def sum_of_three(a, b, c):
    return a + b + c


def test_a_traced_function_becomes_a_verified_net() -> None:
    traced = trace(sum_of_three, UInt(3), UInt(3), UInt(3))
    net = tg.compile(traced.circuit, "relu")
    report = tg.verify(net, engine="fast")
    assert report.agreed
    assert report.exhaustive
    assert report.inputs == 2**9


def test_a_machine_reaches_relu_by_unrolling() -> None:
    net = tg.compile(machines.ready("increment"), "relu", steps=8, cells=10)
    assert [rewriting.name for rewriting in net.passes] == ["unroll"]
    run = net.run("1011", engine="fast")
    assert run.halted
    assert run.state is not None
    assert run.state.tapes[0] == {0: "1", 1: "1", 2: "0", 3: "0"}
    assert tg.verify(net, [("1011",), ("111",)], engine="fast").agreed


def test_a_circuit_reaches_a_machine_target() -> None:
    net = tg.compile(circuits.ready("adder2"), "tape", cells=64, tapes=2)
    report = tg.verify(net, engine="fast")
    assert report.agreed
    assert report.exhaustive
    assert report.inputs == 16


def test_a_machine_on_a_grid_needs_no_sizes() -> None:
    """How many steps and cells its circuit holds is found by running it."""
    (turmite,) = target_named("rcnn").examples()
    assert tg.verify(tg.compile(turmite.source, "relu"), [()]).agreed


def test_unknown_targets_options_and_values_are_refused() -> None:
    adder = circuits.ready("adder2")
    with pytest.raises(Refused, match="no target 'rleu'"):
        tg.compile(adder, "rleu")
    with pytest.raises(Refused, match="no option 'colour'"):
        tg.compile(adder, "relu", colour=3)
    with pytest.raises(Refused, match="cannot be 'halves'"):
        tg.compile(adder, "relu", correction="halves")
    with pytest.raises(InputError, match="no engine 'warp'"):
        tg.compile(adder, "relu").run(np.zeros((1, 4)), engine="warp")


def other_circuit(circuit: Circuit) -> Circuit:
    """The same circuit but for one gate: an AND has become an OR."""
    kinds = circuit.kinds.copy()
    kinds[np.flatnonzero(kinds == 0b1000)[0]] = 0b1110
    return dataclasses.replace(circuit, kinds=kinds)


def test_verify_notices_a_net_of_another_circuit() -> None:
    circuit = circuits.ready("adder2")
    net = tg.compile(circuit, "relu")
    wrong = tg.compile(other_circuit(circuit), "relu")
    report = tg.verify(dataclasses.replace(net, net=wrong.net), engine="fast")
    assert not report.agreed
    assert report.mismatch is not None
    assert "MISMATCH" in str(report)


def test_verify_notices_a_net_of_another_machine() -> None:
    net = tg.compile(machines.ready("busy-beaver-3x2"), "transformer", form="paper", steps=24)
    wrong = tg.compile(machines.ready("busy-beaver-2x2"), "transformer", form="paper", steps=24)
    report = tg.verify(dataclasses.replace(net, net=wrong.net), [()], engine="fast")
    assert not report.agreed


def test_verify_notices_a_net_that_stops_early() -> None:
    net = tg.compile(machines.ready("busy-beaver-3x2"), "transformer", form="paper", steps=24)
    own = net.net
    assert isinstance(own, TransformerNet)
    pairs = np.flatnonzero([name.startswith("pair") for name in own.layout.names])
    first = own.layers[0].feed_forward[0].map.entries().restricted(pairs)
    every = Matrix(np.ones((1, len(pairs)), np.float32), np.zeros(1, np.float32))
    halting = Dense(first, "relu"), Dense(every, "linear")
    eager = with_decoder(own, dataclasses.replace(own.decoder, halting=halting))
    report = tg.verify(dataclasses.replace(net, net=eager), [()], engine="fast")
    assert not report.agreed
    assert report.mismatch is not None
    assert report.mismatch.found == "the net has stopped"


def test_a_run_that_meets_the_step_limit_is_not_called_complete() -> None:
    net = tg.compile(machines.ready("busy-beaver-4x2"), "transformer", steps=107)
    report = tg.verify(net, [()], steps=50, engine="fast")
    assert report.agreed
    assert not report.complete


def test_long_runs_are_verified_in_leaps() -> None:
    machine = machines.ready("busy-beaver-2x4")
    net = tg.compile(machine, "tape", cells=8192)
    report = tg.verify(net, [()], steps=200_000, engine="fast", every=10_000)
    assert report.agreed, report
    assert report.states == 21
    other = tg.compile(machines.ready("busy-beaver-2x3"), "tape", cells=8192)
    wrong = dataclasses.replace(other, net=net.net)
    assert not tg.verify(wrong, [()], steps=200_000, engine="fast", every=10_000).agreed
    with pytest.raises(InputError, match="leaps"):
        tg.verify(tg.compile(circuits.ready("adder2"), "relu"), every=5)


@pytest.mark.parametrize("target", all_targets(), ids=lambda target: target.name)
def test_every_target_explains_every_unit_and_estimates_its_cost(target) -> None:
    example = target.examples()[0]
    net = tg.compile(example.source, target.name, **example.options)
    cost = tg.estimate(example.source, target.name, **example.options)
    assert cost.parameters > 0
    assert cost.width > 0
    names = list(net.net.units())
    assert names
    chosen = names if len(names) < 200 else names[:: len(names) // 100]
    assert all(len(net.explain(name)) > 10 for name in chosen)
    with pytest.raises(InputError):
        net.explain("no such unit")


@pytest.mark.parametrize("target", all_targets(), ids=lambda target: target.name)
def test_every_engine_runs_the_example_in_the_same_steps(target) -> None:
    example = target.examples()[0]
    net = tg.compile(example.source, target.name, **example.options)
    runs = [net.run(*example.inputs, steps=example.steps, engine=engine) for engine in net.net.engines]
    assert all(run.halted for run in runs)
    assert len({run.steps for run in runs}) == 1
    assert runs[0].steps > 0
