"""Machines can be copied and pickled, by their users: the copy is equal, and checked as the original was."""

import pickle
from copy import deepcopy

import pytest

from tapegrad.machines.many_heads import HeadsRule, ManyHeadMachine
from tapegrad.machines.model import GridMachine, GridRule, Rule, TuringMachine

MACHINES = [
    GridMachine({("A", "0"): GridRule("1", "right", "B")}, "A", name="g", alphabet=("z",), states=("C",)),
    ManyHeadMachine(
        {("A", "0"): HeadsRule("1", (("right", "B"), ("up", "A")))}, "A", name="h", alphabet=("z",)
    ),
    TuringMachine({}, "a", tapes=3),
    TuringMachine(
        {("a", ("x", " ")): Rule((" ", "x"), (1, -1), "yes")},
        "a",
        blank=" ",
        accept=frozenset({"yes"}),
        reject=frozenset({"no"}),
        name="t",
        alphabet=(" ", "q"),
        states=("a", "unused"),
    ),
]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.name)
def test_copies_are_equal(machine) -> None:
    for again in (pickle.loads(pickle.dumps(machine)), deepcopy(machine)):
        assert again == machine
        assert vars(again) == vars(machine)
        assert again is not machine
