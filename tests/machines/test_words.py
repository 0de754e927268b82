"""The words that `verify` chooses: they exercise every rule that a bounded search can reach."""

import dataclasses

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.errors import InputError
from tapegrad.machines import RIGHT, STAY, Rule, TuringMachine
from tapegrad.machines import library as machines
from tapegrad.machines.sampler import LONGEST_RANDOM_WORD, MOST_FOUND, exercising, random_machine

PASSWORD = "010011010110"


def lock(password: str, opens: str = "open") -> TuringMachine:
    """Opens on the password alone: a wrong symbol has no rule, and there the machine halts."""
    rules = {(f"q{i}", (s,)): Rule((s,), (RIGHT,), f"q{i + 1}") for i, s in enumerate(password)}
    last = {(f"q{len(password)}", ("_",)): Rule(("_",), (STAY,), opens)}
    return TuringMachine(rules | last, "q0", accept=frozenset({"open"}), states=("shut",))


def exercised(machine: TuringMachine, words: list[tuple]) -> set:
    """The rules used in runs on these words, by the interpreter alone."""
    used = set()
    for word in words:
        states = [state for state, _ in zip(machine.run(machine.start(*word)), range(1000), strict=False)]
        used |= {(state.state, machine.read(state)) for state in states}
    return used & machine.rules.keys()


@pytest.mark.parametrize("seed", range(8))
def test_a_lock_opens_symbol_by_symbol(seed: int) -> None:
    machine = lock(PASSWORD)
    words = list(exercising(machine, np.random.default_rng(seed)))
    assert (tuple(PASSWORD),) in words
    assert exercised(machine, words) == machine.rules.keys()


@pytest.mark.parametrize("name", ["increment", "palindrome", "busy-beaver-4x2"])
def test_every_rule_of_a_ready_machine_is_exercised(name: str) -> None:
    machine = machines.ready(name)
    assert exercised(machine, list(exercising(machine, np.random.default_rng(0)))) == machine.rules.keys()


@pytest.mark.parametrize("tapes", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_words_are_few_seeded_and_begin_with_the_empty_one(tapes: int) -> None:
    for seed in range(5):
        machine = random_machine(seed, tapes=tapes)
        words = list(exercising(machine, np.random.default_rng(seed)))
        assert words == list(exercising(machine, np.random.default_rng(seed)))
        assert words[0] == ((),) * tapes
        first = 1 + LONGEST_RANDOM_WORD
        assert first <= len(words) <= first + MOST_FOUND
        assert exercised(machine, words) >= exercised(machine, words[:first])


def test_a_machine_without_letters_or_rules_has_the_empty_word() -> None:
    assert list(exercising(TuringMachine({}, "q"), np.random.default_rng(0))) == [((),)]


def test_verify_catches_the_net_of_a_lock_that_never_opens() -> None:
    right = tg.compile(lock(PASSWORD), "transformer")
    report = tg.verify(right)
    assert report.agreed
    assert report.coverage is not None
    assert (report.coverage.exercised, report.coverage.rules) == (13, 13)
    assert str(report).endswith("; 13 of 13 rules exercised")
    assert report.to_json()["coverage"] == {"exercised": 13, "rules": 13}
    never = tg.compile(lock(PASSWORD, opens="shut"), "transformer")
    caught = tg.verify(dataclasses.replace(right, net=never.net))
    assert not caught.agreed
    assert caught.mismatch is not None
    assert "".join(eval(caught.mismatch.input)[0]) == PASSWORD


def test_coverage_is_said_only_of_inputs_that_verify_chose() -> None:
    net = tg.compile(machines.ready("increment"), "transformer")
    assert tg.verify(net, [("1011",)]).coverage is None
    assert tg.verify(tg.compile(tg.read("adder2"), "relu")).coverage is None


def test_words_for_which_the_net_has_no_room_are_left_out() -> None:
    small = tg.verify(tg.compile(machines.ready("increment"), "tape", cells=8))
    assert small.agreed
    assert 1 < small.inputs < 1 + LONGEST_RANDOM_WORD
    with pytest.raises(InputError, match="more cells"):
        tg.verify(tg.compile(machines.ready("increment"), "tape", cells=8), [("11111111",)])
