"""Turing machines by heads and gates: several tapes, tables too large for dense matrices, and the proof."""

from dataclasses import replace

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.attention.sources import TapePorts
from tapegrad.errors import Refused
from tapegrad.machines.library import ready
from tapegrad.machines.model import Configuration, Rule, TuringMachine
from tapegrad.machines.sampler import random_machine
from tapegrad.targets.transformer.memory_net import MemoryNet
from tapegrad.targets.transformer.net import TransformerNet
from tapegrad_check.folder import COMPUTES_SOURCE, CheckError
from tapegrad_check.sources import model_of
from tests.check.altering import net_of
from tests.check.of_heads import taken_apart

STEPS = 40


def by_ports(machine: TuringMachine, **options) -> tg.Compiled:
    compiled = tg.compile(machine, "transformer", **({"steps": STEPS, "form": "practical"} | options))
    assert isinstance(compiled.net, MemoryNet)
    return compiled


@pytest.mark.parametrize("tapes", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_random_machines(tapes):
    for seed in range(1, 4):
        machine = random_machine(seed, tapes=tapes, symbols=1 + seed % 4, states=2 + seed % 3)
        attention_kind = ("hardmax", "softmax")[seed % 2]
        compiled = by_ports(machine, attention=attention_kind)
        for engine in MemoryNet.engines:
            report = tg.verify(compiled, steps=STEPS, engine=engine)
            assert report.agreed, (seed, report)
            assert report.deviation == 0


def test_a_step_of_the_decoder_is_a_step_of_the_machine():
    machine = random_machine(3, tapes=2, states=3, halt=0.1)
    compiled = tg.compile(machine, "transformer", steps=STEPS)
    assert compiled.passes == ()
    *_, last = states = list(machine.run(machine.start("", "")))
    run = compiled.run("", "")
    assert run.halted
    assert run.steps == len(states) - 1
    assert run.state == last


def test_from_anywhere():
    """A head that does not start at 0, and a cell further away than it can go, which stays as it is."""
    machine = ready("increment")
    first = Configuration(machine.start_state, ({1000: "1", 1001: "1", 5000: "1"},), (1000,))
    assert tg.verify(by_ports(machine, steps=8), [(first,)]).agreed


def test_which_form():
    one, two = ready("palindrome"), random_machine(0, tapes=2)
    kinds = [
        type(tg.compile(machine, "transformer", steps=16, **options).net)
        for machine in (one, two)
        for options in ({}, {"form": "paper"}, {"correction": "thirds"})
    ]
    assert kinds == [MemoryNet, TransformerNet, TransformerNet] * 2
    with pytest.raises(Refused, match="rounds with quarters"):
        tg.compile(one, "transformer", steps=16, form="practical", correction="thirds")


def test_large_tables(monkeypatch):
    """Where the paper's matrices are too large, gates are not."""
    monkeypatch.setattr("tapegrad.targets.transformer.target.LARGEST", 1 << 24)
    machine = random_machine(1, states=80, symbols=4, halt=0.01)
    with pytest.raises(Refused, match="GiB"):
        tg.compile(machine, "transformer", steps=64, form="paper")
    compiled = tg.compile(machine, "transformer", steps=64)
    assert sum(array.nbytes for array in compiled.net.all_arrays().values()) < 1 << 20
    assert tg.verify(compiled, [("",)], steps=64, engine="fast").agreed


@pytest.mark.slow
def test_a_thousand_states(tmp_path):
    """1,000 states and 4 symbols, which the paper's matrices have no room for, proved."""
    compiled = tg.compile(random_machine(1, states=1000, symbols=4, halt=0.001), "transformer")
    assert isinstance(compiled.net, MemoryNet)
    tg.save(compiled, tmp_path / "net")
    assert tg.check(tmp_path / "net").verdict == COMPUTES_SOURCE


def test_too_many_rules_are_refused(monkeypatch):
    monkeypatch.setattr("tapegrad.targets.transformer.target.MOST_RULES", 10)
    with pytest.raises(Refused, match="rules"):
        by_ports(ready("palindrome"))


@pytest.mark.parametrize("tapes", [1, 2, 3])
def test_proved(tapes, tmp_path):
    for seed in range(3):
        machine = random_machine(seed, tapes=tapes, symbols=1 + seed, states=2)
        options = [{}, {"steps": 1 << 22}, {"attention": "softmax"}][seed]
        folder = tmp_path / str(seed)
        compiled = by_ports(machine, **options)
        tg.save(compiled, folder)
        report = tg.check(folder)
        assert report.verdict == COMPUTES_SOURCE
        assert "source" not in compiled.net.certificate()
        assert tg.verify(tg.load(folder), steps=20).agreed


def checked(compiled: tg.Compiled, **changed: np.ndarray) -> str:
    """What the checker says of a net with other arrays than its own, under the names of `of_heads`."""
    net = net_of(compiled.source, "transformer", compiled.options)
    net.arrays |= changed
    return net.verdict("transformer")


def test_every_other_rule_is_noticed():
    """The net of one machine, said to be that of another that differs in one thing."""
    machine = random_machine(4, states=2, symbols=2, tapes=2, halt=0.2)
    compiled = by_ports(machine)
    net = compiled.net
    assert isinstance(net, MemoryNet)
    assert checked(compiled) == COMPUTES_SOURCE
    for case, rule in machine.rules.items():
        first, *others = rule.moves
        symbol = next(s for s in machine.alphabet if s != rule.write[1])
        for other in (
            replace(rule, moves=((first + 2) % 3 - 1, *others)),
            replace(rule, write=(rule.write[0], symbol)),
            replace(rule, state=next(q for q in machine.states if q != rule.state)),
        ):
            assert isinstance(other, Rule)
            said = replace(machine, rules={**machine.rules, case: other})
            if said.states == machine.states:
                forged = net_of(compiled.source, "transformer", compiled.options)
                forged.config["machine"] = TapePorts(said, STEPS).to_json()
                forged.source = model_of(forged.config["machine"]["source"], {})
                with pytest.raises(CheckError):
                    forged.verdict("transformer")


def test_rewired_gates_are_noticed():
    """A gate that reads another bit of the same kind is still a gate, and another machine."""
    machine = ready("palindrome")
    compiled = by_ports(machine)
    net = compiled.net
    assert isinstance(net, MemoryNet)
    _, arrays = taken_apart(net)
    rules = net.stream.group("rule")
    read = np.flatnonzero(np.isin(arrays["units.columns"], rules))
    for place in read[:: max(1, len(read) // 12)]:
        columns = arrays["units.columns"].copy()
        columns[place] = rules[(rules.index(int(columns[place])) + 1) % len(rules)]
        with pytest.raises(CheckError):
            checked(compiled, **{"units.columns": columns})


def test_heads_that_look_elsewhere_are_noticed():
    compiled = by_ports(random_machine(2, tapes=2))
    net = compiled.net
    assert isinstance(net, MemoryNet)
    _, arrays = taken_apart(net)
    for name in ("query.columns", "key.columns", "value.columns"):
        for place in range(0, len(arrays[name]), 9):
            columns = arrays[name].copy()
            columns[place] += 1 if columns[place] == 0 else -1
            with pytest.raises(CheckError):
                checked(compiled, **{name: columns})


@pytest.mark.slow
def test_millions_of_steps():
    """The busy beaver of five states, to the end of its 47,176,870 steps as far as the horizon goes."""
    machine = tg.read("1RB1LC_1RC1RB_1RD0LE_1LA1LD_1RZ0LA")
    assert isinstance(machine, TuringMachine)
    compiled = by_ports(machine, steps=1 << 24)
    report = tg.verify(compiled, [()], steps=1 << 24, engine="fast", every=1 << 21)
    assert report.agreed
    assert report.steps == 1 << 24
