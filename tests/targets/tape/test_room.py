"""The cells that a run needs: against the heads of the plain interpreter, and not one more than that."""

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad._compile import compile, compile_for
from tapegrad._verify import verify
from tapegrad.errors import InputError, Refused, TapegradError
from tapegrad.machines import library as machines
from tapegrad.machines import room
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.machines.room import look_ahead
from tests.targets.tape.random_machines import random_machine, random_start


@given(seed=st.integers(0, 10**6), tapes=st.integers(1, 3), steps=st.integers(0, 60))
@settings(deadline=None, max_examples=40)
def test_touched_cells_are_those_of_the_input_and_of_the_heads(seed, tapes, steps):
    machine = random_machine(seed, tapes)
    start = random_start(seed + 1, machine)
    touched = {cell for tape in start.tapes for cell in tape}
    for state in islice(machine.run(start), steps + 1):
        touched |= set(state.heads)
    ahead = look_ahead(machine, start, steps)
    assert ahead is not None
    assert ahead.cells == range(min(touched), max(touched) + 1)


@pytest.mark.parametrize(
    ("name", "word"), [("increment", "1011"), ("busy-beaver-3x2", ""), ("palindrome", "ab")]
)
def test_the_chosen_tape_is_long_enough_and_no_longer(name, word):
    machine = machines.ready(name)
    net = compile_for(machine, "tape", (word,), 1_000)
    cells = net.options["cells"]
    report = verify(net, [(word,)], engine="fast")
    assert report.agreed
    assert report.complete
    with pytest.raises((Refused, InputError)):
        compile(machine, "tape", cells=cells - 1).run(word, engine="fast")


def test_a_run_that_is_cut_off_fits_too():
    runaway = TuringMachine({("a", ("0",)): Rule(("1",), (1,), "a")}, "a", blank="0")
    for engine in ("reference", "fast"):
        net = compile_for(runaway, "tape", (), 40)
        assert net.run(steps=40, engine=engine).steps == 40


def test_a_number_that_is_given_is_taken():
    assert compile_for(machines.ready("increment"), "tape", ("1",), 100, cells=77).options == {"cells": 77}


def test_options_of_a_target_may_have_the_names_of_our_own():
    net = compile_for(machines.ready("busy-beaver-3x2"), "transformer", (), 100, steps=32)
    assert net.options == {"steps": 32}


def test_a_very_long_tape_must_be_asked_for():
    runaway = TuringMachine({("a", ("0",)): Rule(("1",), (-1,), "a")}, "a", blank="0")
    with pytest.raises(Refused, match=r"--set cells=200000\."):
        compile_for(runaway, "tape", (), 100_000)


def test_machines_with_too_many_readings_get_the_usual_tape(monkeypatch):
    monkeypatch.setattr(room, "MOST_READINGS", 1)
    assert compile_for(machines.ready("increment"), "tape", ("1",), 100).options == {}


def test_inputs_of_simplex_are_chosen_likewise():
    net = compile_for(machines.ready("increment"), "simplex", ("1011",), 100)
    assert verify(net, [("1011",)], engine="fast").complete
    with pytest.raises(TapegradError):
        net.run("111")
