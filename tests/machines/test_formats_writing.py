"""Writing a machine and reading it back."""

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.errors import Refused
from tapegrad.machines import GridMachine, GridRule, Rule, TuringMachine
from tapegrad.machines.formats import read, write_bbchallenge, write_yaml

quick = settings(deadline=None, max_examples=100)


@st.composite
def bbchallenge_texts(draw: st.DrawFn) -> str:
    """A text in the standard form, in which every state has a rule."""
    states, symbols = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    letters = "ABCDEF"[:states] + "Z"
    entry = st.builds(
        "{}{}{}".format, st.integers(0, symbols - 1), st.sampled_from("LR"), st.sampled_from(letters)
    )
    rows = []
    for _ in range(states):
        others = [draw(st.one_of(entry, st.just("---"))) for _ in range(symbols - 1)]
        rows.append("".join([draw(entry), *others]))
    return "_".join(rows)


@quick
@given(bbchallenge_texts())
def test_bbchallenge_text_comes_back(text):
    machine = read(text).machine
    assert write_bbchallenge(machine) == text


@st.composite
def yaml_machines(draw: st.DrawFn) -> TuringMachine:
    """Machines with one tape, no rule that stays, and names and symbols of all sorts."""
    character = st.characters(exclude_categories=["Cs"])
    symbols = draw(st.lists(character, min_size=1, max_size=4, unique=True))
    names = st.one_of(
        st.text(character, min_size=1, max_size=5), st.sampled_from(["accept", "reject", "no", "07"])
    )
    states = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    halting = draw(st.sets(st.sampled_from(states)))
    rule = st.builds(
        Rule,
        st.tuples(st.sampled_from(symbols)),
        st.tuples(st.sampled_from([-1, 1])),
        st.sampled_from(states),
    )
    keys = [(state, (symbol,)) for state in states if state not in halting for symbol in symbols]
    rules = {key: draw(rule) for key in keys if draw(st.booleans())}
    accept = draw(st.sets(st.sampled_from(sorted(halting)))) if halting else set()
    return TuringMachine(
        rules,
        states[0],
        symbols[0],
        accept=frozenset(accept),
        reject=frozenset(halting - accept),
        name=draw(st.text(character, max_size=8)),
        alphabet=tuple(symbols),
        states=tuple(states),
        tapes=1,
    )


@quick
@given(yaml_machines())
def test_bbchallenge_keeps_what_the_machine_does(machine):
    try:
        text = write_bbchallenge(machine)
    except Refused:
        return
    again = read(text).machine
    assert isinstance(again, TuringMachine)
    number = {symbol: str(code) for code, symbol in enumerate(machine.alphabet)}
    runs = zip(islice(machine.run(machine.start()), 60), again.run(again.start()), strict=False)
    for ours, theirs in runs:
        assert theirs.heads == ours.heads
        assert theirs.tapes[0] == {cell: number[symbol] for cell, symbol in ours.tapes[0].items()}
        assert (machine.step(ours) is None) == (again.step(theirs) is None)


@quick
@given(yaml_machines(), st.data())
def test_yaml_gives_an_equal_machine_back(machine, data):
    word = "".join(data.draw(st.lists(st.sampled_from(machine.alphabet), max_size=5)))
    loaded = read(write_yaml(machine, word), format="turingmachine.io")
    assert loaded.machine == machine
    assert "".join(loaded.input) == word


def stay(tapes: int = 1) -> TuringMachine:
    return TuringMachine({("a", ("_",) * tapes): Rule(("_",) * tapes, (0,) * tapes, "b")}, "a")


def mover(state: str = "a", symbol: str = "x", target: str = "a") -> TuringMachine:
    return TuringMachine({(state, ("_",)): Rule((symbol,), (1,), target)}, state)


MANY = tuple("0123456789X")
GRID = GridMachine({("a", "0"): GridRule("1", "up", "a")}, "a")
TWO_ENDS = TuringMachine(
    {("a", ("_",)): Rule(("x",), (1,), "yes"), ("a", ("x",)): Rule(("x",), (1,), "no")}, "a"
)
LONG = TuringMachine({(f"q{i}", ("_",)): Rule(("_",), (1,), f"q{i + 1}") for i in range(26)}, "q0")


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (GRID, "works on a grid"),
        (stay(2), "2 tapes"),
        (stay(), "do not move"),
        (TuringMachine({}, "a"), "start state has no rules"),
        (TuringMachine(mover().rules, "a", alphabet=MANY), "symbols"),
        (LONG, "26 states with rules"),
        (TWO_ENDS, "2 halting states"),
    ],
)
def test_machines_that_do_not_fit_bbchallenge(machine, reason):
    with pytest.raises(Refused, match=reason):
        write_bbchallenge(machine)


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (GRID, "works on a grid"),
        (stay(2), "2 tapes"),
        (stay(), "do not move"),
        (mover(symbol="xy"), "not one character"),
        (mover(state="", target="b"), "empty or too long"),
        (mover(state="s" * 201), "empty or too long"),
        (mover(state="\ud800"), "surrogate"),
    ],
)
def test_machines_that_do_not_fit_yaml(machine, reason):
    with pytest.raises(Refused, match=reason):
        write_yaml(machine)


def test_what_the_yaml_looks_like():
    machine = read("1RB1LA_0LA1RZ").machine
    assert write_yaml(machine) == (
        'name: "1RB1LA_0LA1RZ"\nblank: 0\nstart state: A\nalphabet: [0, 1]\ntable:\n'
        "  A:\n    0: {write: 1, R: B}\n    1: L\n"
        "  B:\n    0: {L: A}\n    1: {R: Z}\n"
        "  Z:\n"
    )
