"""Unrolled machines against their interpreter, for every number of steps."""

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.circuits.model import Circuit
from tapegrad.errors import InputError, Refused
from tapegrad.lowering.configurations import unroll
from tapegrad.machines.model import MOVES, Configuration, GridMachine, GridRule, Rule, TuringMachine
from tests.machines.strategies import machines_with_words


def last(states):
    *_, state = states
    return state


def outcome(rewriting, *inputs):
    """What the circuit says, from the user's input to the decoded configuration."""
    bits = rewriting.encode(rewriting.before.start(*inputs))
    first, outputs = rewriting.after.run(bits)
    assert rewriting.decode(first) is None
    return rewriting.decode(outputs)


@settings(deadline=None, max_examples=40)
@given(machines_with_words(most_tapes=3), st.integers(0, 9))
def test_random_machines(machine_and_words, steps):
    machine, words = machine_and_words
    rewriting = unroll(machine, steps, cells=2 * max(steps, 5) + 1)
    expected = last(islice(machine.run(machine.start(*words)), steps + 1))
    assert outcome(rewriting, *words) == expected


@settings(deadline=None, max_examples=40)
@given(machines_with_words(most_tapes=2), st.integers(0, 12), st.integers(-2, 0), st.integers(5, 8))
def test_leaving_the_window_is_noticed(machine_and_words, steps, first, cells):
    machine, words = machine_and_words
    words = [word[:3] for word in words]
    rewriting = unroll(machine, steps, cells, first)
    states = list(islice(machine.run(machine.start(*words)), steps + 1))
    window = range(first, first + cells)
    if all(head in window for state in states for head in state.heads):
        assert outcome(rewriting, *words) == states[-1]
    else:
        with pytest.raises(Refused, match="left the window"):
            outcome(rewriting, *words)


@settings(deadline=None, max_examples=30)
@given(st.data(), st.integers(0, 6))
def test_random_grid_machines(data, steps):
    rule = st.builds(
        GridRule, st.sampled_from("012"), st.sampled_from(list(MOVES)), st.sampled_from(["a", "b", "end"])
    )
    keys = [(state, symbol) for state in "ab" for symbol in "012"]
    rules = {key: data.draw(rule) for key in keys if data.draw(st.integers(0, 9))}
    machine = GridMachine(rules, "a", alphabet=("0", "1", "2"))
    rows = data.draw(st.lists(st.text("012", max_size=3), max_size=3))
    rewriting = unroll(machine, steps, cells=2 * max(steps, 2) + 1)
    assert outcome(rewriting, rows) == last(islice(machine.run(machine.start(rows)), steps + 1))


BEAVER = TuringMachine(
    {
        ("A", ("0",)): Rule(("1",), (1,), "B"),
        ("A", ("1",)): Rule(("1",), (1,), "H"),
        ("B", ("0",)): Rule(("0",), (1,), "C"),
        ("B", ("1",)): Rule(("1",), (1,), "B"),
        ("C", ("0",)): Rule(("1",), (-1,), "C"),
        ("C", ("1",)): Rule(("1",), (-1,), "A"),
    },
    "A",
    blank="0",
    name="3-state busy beaver",
)


def test_a_busy_beaver_halts_inside_the_circuit():
    found = outcome(unroll(BEAVER, 40, 11))
    assert isinstance(found, Configuration)
    assert found.state == "H"
    assert sorted(found.tapes[0].values()) == ["1"] * 6
    assert unroll(BEAVER, 40, 11).covers == 40


def test_only_reachable_cells_cost_gates():
    narrow, wide = (unroll(BEAVER, 6, cells).after for cells in (13, 101))
    assert isinstance(narrow, Circuit)
    assert isinstance(wide, Circuit)
    assert narrow.size == wide.size


@pytest.mark.parametrize(
    ("steps", "cells", "first"), [(-1, 3, None), (3, 0, None), (3, 3, 1), (3, (3, 3), None)]
)
def test_bad_windows(steps, cells, first):
    with pytest.raises(InputError):
        unroll(BEAVER, steps, cells, first)


def test_inputs_outside_the_window():
    with pytest.raises(InputError, match="window"):
        outcome(unroll(BEAVER, 3, 5), "1111")
