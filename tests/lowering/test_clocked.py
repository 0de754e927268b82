"""Circuits with state as learners and without state, beside their own interpreter, and on targets."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad.circuits.clocked.kind import random_trace
from tapegrad.circuits.clocked.library import READY, random_sequential
from tapegrad.circuits.clocked.model import SequentialCircuit, SequentialState
from tapegrad.circuits.layered import LARGEST, layered_widths
from tapegrad.cli import app
from tapegrad.errors import InputError, Refused
from tapegrad.learners.model import CircuitLearner, Learner
from tapegrad.lowering.clocked import at_cycle, clocked_learner, unrolled

CYCLES = 5


def decoded(rewriting, state: SequentialState) -> list[SequentialState]:
    states = map(rewriting.decode, rewriting.after.run(rewriting.encode(state)))
    return [own for own in states if own is not None]


@given(seed=st.integers(0, 10**6), latches=st.integers(0, 4), inputs=st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_rewritings_run_as_the_circuit_does(seed: int, latches: int, inputs: int) -> None:
    source = random_sequential(seed, inputs=inputs, latches=latches)
    state = source.start(*random_trace(source, np.random.default_rng(seed), CYCLES))
    run = list(source.run(state))
    rewriting = clocked_learner(source)
    assert decoded(rewriting, state) == run
    learner = rewriting.after
    assert isinstance(learner, Learner)
    gates = CircuitLearner(learner.circuit, learner.inputs, learner.first)  # as its circuit has it
    assert [rewriting.decode(own) for own in gates.run(rewriting.encode(state))] == run
    (end,) = decoded(unrolled(source, CYCLES), state)  # no more, also where inputs are as many as outputs
    assert end == run[-1]
    assert end.outputs.tolist() == run[-1].outputs.tolist()  # all rows, not only the last
    assert end.outputs.shape == (CYCLES, 2)


def test_names_in_a_cycle() -> None:
    assert at_cycle("data[3]", 5) == "data@5[3]"
    assert at_cycle("send", 12) == "send@12"
    circuit = unrolled(READY["counter8"].build(), 2).after
    assert isinstance(circuit, tg.Circuit)
    assert circuit.inputs == ("enable@1", "clear@1", "enable@2", "clear@2")
    assert circuit.outputs[8:10] == ("full@1", "count@2[0]")
    assert circuit.outputs[-1] == "count@3[7]"


def test_other_numbers_of_cycles_are_refused() -> None:
    rewriting = unrolled(READY["counter8"].build(), 2)
    with pytest.raises(
        InputError, match=r"for 2 cycles from reset on, and 3 were given. Compile with cycles=3"
    ):
        rewriting.encode(READY["counter8"].build().start([[1, 0]] * 3))


@pytest.mark.slow
def test_the_refusal_of_many_cycles_is_right() -> None:
    """What is said to take so many gates does, and just less is built."""
    source = READY["uart"].build()
    with pytest.raises(Refused) as caught:
        unrolled(source, 5000)
    said = re.search(r"([0-9,]+) of them would take ([0-9,]+) gates", str(caught.value))
    assert said is not None
    cycles, gates = (int(number.replace(",", "")) for number in said.groups())
    half = unrolled(source, cycles // 2).after
    assert isinstance(half, tg.Circuit)
    assert int(layered_widths(half)[1:].sum()) < LARGEST < gates


TARGETS = {
    "emulator": {},
    "relu": {"cycles": CYCLES},
    "transformer": {"steps": 40},
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "seed", [1, pytest.param(0, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_targets(target: str, seed: int) -> None:
    source = random_sequential(seed, inputs=seed, latches=3 - seed % 2, outputs=1 + seed)
    report = tg.verify(tg.compile(source, target, **TARGETS[target]))
    assert report.agreed
    assert report.complete
    assert report.states >= (16 if target == "relu" else 4 + 1 + 7 + 40)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "options"),
    [("tape", {"cells": 400}), ("decoder", {"tokens": 40_000}), ("simplex", {"inputs": [([[1], [0]],)]}),
     ("emulator", {"form": "paper"})],
)  # fmt: skip
def test_targets_for_machines(target: str, options: dict) -> None:
    source = random_sequential(3, inputs=1, latches=2, outputs=1, size=4)
    report = tg.verify(tg.compile(source, target, **options))
    assert report.agreed
    assert report.complete


def test_a_wrong_output_of_an_early_cycle_is_noticed() -> None:
    """Of an unrolled circuit all rows are compared, not only the last."""
    net = tg.compile(READY["counter8"].build(), "relu", cycles=3)
    (rewriting,) = net.passes
    right = rewriting.decode

    def wrong(row):
        state = right(row)
        if state is not None:
            state.outputs[0] ^= 1
        return state

    trace = [[1, 0]] * 3
    assert tg.verify(net, [(trace,)]).agreed
    object.__setattr__(rewriting, "decode", wrong)
    assert not tg.verify(net, [(trace,)]).agreed


def command(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, done.output
    return done.output


def test_commands(tmp_path: Path) -> None:
    ran = json.loads(
        command("run", "uart", "-t", "transformer", "--input", "data=0x55,send=1", "send=0*40", "--json")
    )
    assert ran["verified"] is True
    line = [row["tx"] for row in ran["trace"]]
    assert line == [1] + [bit for bit in (0, 1, 0, 1, 0, 1, 0, 1, 0, 1) for _ in range(4)]
    assert ran["output"]["cycles"] == 41
    folder = str(tmp_path / "net")
    command("compile", "counter8", "-t", "relu", "--set", "cycles=3", "-o", folder)
    assert "computes this source, for all inputs" in command("check", folder)
    assert "agreed" in command("verify", folder)
    assert '"count": 2' in command("run", folder, "--input", "10*3", "--json")
    page = tmp_path / "page.html"
    command("show", "uart", "-t", "transformer", "--input", "data=1,send=1 *12", "-o", str(page))
    assert "Waves" in page.read_text()
    assert "reset    1111111111000000" in command("show", "uart")
    exported = tmp_path / "uart.aag"
    command("export", "uart", "--to", "aiger", "-o", str(exported))
    again = tg.read(str(exported))
    assert isinstance(again, SequentialCircuit)
    assert again.resets == READY["uart"].build().resets
    campaign = json.loads(
        command("campaign", "sequential circuit", "-t", "emulator", "--count", "2", "--json")
    )
    assert campaign["mismatches"] == 0
