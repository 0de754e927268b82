"""Machines whose configuration is a learner's memory, stepped beside the machine."""

from itertools import islice

import pytest
from hypothesis import given, settings

import tapegrad as tg
from tapegrad.errors import Refused
from tapegrad.lowering.configurations import machine_learner
from tapegrad.machines.library import ready
from tests.machines.strategies import machines_with_words


@settings(deadline=None, max_examples=25)
@given(machines_with_words(most_tapes=2))
def test_every_sample_is_a_step(machine_and_words) -> None:
    machine, words = machine_and_words
    rewriting = machine_learner(machine, steps=12, cells=31)
    first = machine.start(*words)
    learned = rewriting.after.run(rewriting.encode(first))
    expected = list(islice(machine.run(first), 13))
    if len(expected) == 13:
        with pytest.raises(Refused, match="not halted"):
            list(map(rewriting.decode, learned))
    else:
        assert [own for own in map(rewriting.decode, learned) if own is not None] == expected


def test_plain_sgd_runs_a_turing_machine() -> None:
    net = tg.compile(ready("palindrome"), "emulator", steps=20, cells=12)
    for word, answer in (("abba", 1), ("ab", 0)):
        report = tg.verify(net, [(word,)])
        assert report.agreed, report
        assert report.complete
        state = net.net.decode(net.run(word).carry)
        assert state is not None
        assert state.answer == answer


def test_too_few_samples_are_noticed() -> None:
    net = tg.compile(ready("palindrome"), "emulator", steps=5, cells=12)
    with pytest.raises(Refused, match="not halted after 5 samples"):
        net.run("abba")
