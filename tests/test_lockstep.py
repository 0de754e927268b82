"""Net and source in one pass: the result is the net's, the report that of `verify`."""

import dataclasses

import pytest

import tapegrad as tg
from tapegrad._lockstep import ENDED, NOTHING, STOPPED, Lockstep, looked_ahead
from tapegrad._verify import run_and_verify
from tapegrad.commands import run as run_command
from tapegrad.errors import Refused
from tapegrad.learners import library as learners
from tapegrad.machines import library as machines
from tapegrad.machines.model import TuringMachine
from tapegrad.machines.sampler import random_machine
from tapegrad.targets import net as net_module


def compiled(name: str, cells: int = 32) -> tg.Compiled:
    return tg.compile(machines.ready(name), "tape", cells=cells)


def untimed(value) -> dict:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)} | {"seconds": 0}


@pytest.mark.parametrize(("steps", "every"), [(10_000, 1), (50, 1), (10_000, 25)])
def test_one_pass_gives_what_run_and_verify_give(steps: int, every: int) -> None:
    net = compiled("busy-beaver-4x2", 64)
    run, report = run_and_verify(net, steps=steps, engine="fast", every=every)
    alone = net.run(steps=steps, engine="fast")
    assert (run.steps, run.halted, run.state) == (alone.steps, alone.halted, alone.state)
    assert untimed(report) == untimed(tg.verify(net, [()], steps=steps, engine="fast", every=every))
    assert run.halted == report.complete == (steps > 107)


def test_the_source_is_followed_through_its_passes() -> None:
    net = compiled("increment")
    source, lowered = net.source, net.lowered
    assert isinstance(source, TuringMachine)
    pair = Lockstep(net, ("1011",))
    first = source.start("1011")
    own, between = list(source.run(first)), list(lowered.run(net.encode(first)))
    for _ in range(8):
        pair.step()
        assert pair.source_state == own[pair.states - 1]
        assert pair.lowered_state == between[pair.steps - 1]  # the first step of the net reads the labels
    assert pair.parted is None


@pytest.mark.parametrize("every", [1, 5])
def test_a_net_of_another_machine_runs_on_to_its_own_result(every: int) -> None:
    right, other = compiled("busy-beaver-3x2"), compiled("busy-beaver-2x2")
    wrong = dataclasses.replace(right, net=other.net)
    run, report = run_and_verify(wrong, engine="fast", every=every)
    assert not report.agreed
    assert report.mismatch is not None
    assert run.halted
    assert run.state == other.run(engine="fast").state


def test_a_side_that_goes_on_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    net = compiled("busy-beaver-3x2")
    done = type(net.net).done
    monkeypatch.setattr(type(net.net), "done", lambda net, carry: carry.steps >= 5)
    assert run_and_verify(net)[1].mismatch == tg.verify(net, [()]).mismatch
    pair = Lockstep(net, ())
    while not pair.ended:
        pair.step()
    assert pair.agrees
    assert pair.parted is not None
    assert pair.parted[1] == STOPPED
    monkeypatch.setattr(type(net.net), "done", done)
    short = machines.ready("busy-beaver-3x2")
    monkeypatch.setattr(TuringMachine, "run", lambda machine, state: iter([state]))
    pair = Lockstep(dataclasses.replace(net, source=short), ())
    pair.step()
    pair.step()
    assert pair.parted is not None
    assert pair.parted[0] == ENDED


def test_the_command_leaps_only_where_the_source_itself_runs_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_command, "LONG", 50)
    monkeypatch.setattr(net_module, "LOOKS", 10)
    long, short = compiled("busy-beaver-4x2", 64), compiled("busy-beaver-3x2")
    for net, horizon, every in ((long, 1_000, 107 // 10), (long, 50, 1), (short, 1_000, 1)):
        assert run_command._leap(net, (), horizon, looked_ahead(net, (), horizon)) == every
    adder = tg.compile(tg.read("adder2"), "relu")
    assert looked_ahead(adder, ([0, 0, 0, 0],), 1_000) is None
    assert run_command._leap(adder, ([0, 0, 0, 0],), 1_000, None) == 1


def test_a_circuit_that_ends_within_a_step_of_the_source_is_refused() -> None:
    learner = tg.compile(learners.ready("learn-parity1"), "relu", steps=3, cells=80)
    with pytest.raises(Refused, match="between two steps of the source"):
        run_and_verify(learner, [[1]], [1])


@pytest.mark.parametrize("deviation", [float("nan"), float("inf")])
@pytest.mark.parametrize("every", [1, 5])
def test_values_that_are_no_numbers_are_a_mismatch(monkeypatch, deviation: float, every: int) -> None:
    net = compiled("increment")
    assert tg.verify(net, [("1011",)], every=every).agreed
    monkeypatch.setattr(type(net.net), "deviation", lambda self, carry: deviation)
    report = tg.verify(net, [("1011",)], every=every)
    assert report.mismatch is not None
    assert report.mismatch.expected == "finite values"


def on_two_tapes(seed: int) -> TuringMachine:
    """A machine that soon halts on a missing rule."""
    return random_machine(seed, tapes=2, states=2, halt=0.3)


@pytest.mark.parametrize(
    ("target", "seed", "options"),
    [
        ("transformer", 8, {"form": "paper"}),
        ("transformer", 9, {}),
        ("rcnn", 31, {}),
    ],
)
def test_a_missing_rule_on_two_tapes_leaves_the_last_state(
    target: str, seed: int, options: dict[str, str]
) -> None:
    machine = on_two_tapes(seed)
    *others, expected = machine.run(machine.start())
    assert others
    net = tg.compile(machine, target, **options)
    run, report = run_and_verify(net)
    assert report.agreed, report
    assert run.halted
    assert run.state == expected
    assert net.resume(run.carry).state == expected


@pytest.mark.parametrize("every", [1, 5])
def test_a_run_that_ends_without_a_state_of_the_source_is_a_mismatch(every: int) -> None:
    net = tg.compile(on_two_tapes(9), "transformer", form="paper")
    assert tg.verify(net, [()], every=every).agreed
    (rewriting,) = net.passes
    lost = dataclasses.replace(net, passes=(dataclasses.replace(rewriting, halted=None),))
    report = tg.verify(lost, [()], every=every)
    assert not report.agreed
    assert report.mismatch is not None
    assert report.mismatch.found == NOTHING
