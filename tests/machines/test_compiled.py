"""The compiled interpreter beside the plain one, and at its limits."""

from itertools import islice, product

import pytest
from automata.tm.dtm import DTM
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.errors import InputError, Refused
from tapegrad.machines import (
    Configuration,
    GridConfiguration,
    GridMachine,
    GridRule,
    Rule,
    TuringMachine,
    compiled,
)
from tapegrad.machines.formats import read
from tapegrad.machines.model import MOVES
from tests.machines.strategies import machines_with_words

STEPS = st.sampled_from([0, 1, 7, 60])


@pytest.fixture(params=["in Python", "roomy", "cramped"])
def guards(request, monkeypatch):
    """Once as shipped, where the first thousand steps are taken in Python; once in machine code from the
    beginning; and once with tapes that must grow after every few steps, chunks of five steps, and machine
    code after seven."""
    if request.param == "roomy":
        monkeypatch.setattr(compiled, "FEW", 0)
    if request.param == "cramped":
        monkeypatch.setattr(compiled, "FEW", 7)
        monkeypatch.setattr(compiled, "TAPE_GUARD", 1)
        monkeypatch.setattr(compiled, "GRID_GUARD", 1)
        monkeypatch.setattr(compiled.Tapes, "guard", 1)
        monkeypatch.setattr(compiled, "CHUNK", 5)


def check_beside_plain(machine, start, steps):
    plain = list(islice(machine.run(start), steps + 1))
    result = compiled.run(machine, start, steps)
    assert result.final == plain[-1]
    assert result.steps == len(plain) - 1
    assert result.halted == (machine.step(plain[-1]) is None)


def property_settings(check):
    return settings(deadline=None, max_examples=60)(check)


@property_settings
@given(machines_with_words(most_tapes=3, most_symbols=3), STEPS)
def _tapes_agree(case, steps):
    machine, words = case
    check_beside_plain(machine, machine.start(*words), steps)


@st.composite
def grid_machines(draw: st.DrawFn) -> GridMachine:
    states, symbols = ["p", "q", "r"], ["0", "1", "x"]
    rule = st.builds(
        GridRule, st.sampled_from(symbols), st.sampled_from(sorted(MOVES)), st.sampled_from([*states, "end"])
    )
    rules = {
        (s, a): draw(rule) for s in states for a in symbols if draw(st.sampled_from([True] * 8 + [False]))
    }
    return GridMachine(rules, "p", alphabet=tuple(symbols))


@property_settings
@given(grid_machines(), st.lists(st.text("01x", max_size=4), max_size=3), STEPS)
def _grids_agree(machine, rows, steps):
    check_beside_plain(machine, machine.start(rows, head=(1, 1)), steps)


@pytest.mark.usefixtures("guards")
def test_tapes_agree_with_the_plain_interpreter():
    _tapes_agree()


@pytest.mark.usefixtures("guards")
def test_grids_agree_with_the_plain_interpreter():
    _grids_agree()


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("place", [(0, 0), (3, -2), (-5, 7)])
def test_a_grid_lies_where_it_was_put(place, steps):
    """Cells and head anywhere, in rows and columns of both signs."""
    rules = {("a", "0"): GridRule("1", "down", "b"), ("b", "1"): GridRule("x", "right", "a")}
    rules |= {("a", "x"): GridRule("0", "up", "b"), ("b", "0"): GridRule("1", "left", "a")}
    machine = GridMachine(rules, "a", alphabet=("0", "1", "x"))
    row, column = place
    cells = {(row, column): "x", (row - 1, column): "1", (row + 2, column - 3): "x"}
    check_beside_plain(machine, GridConfiguration("a", cells, place), steps)


def test_five_state_champion():
    loaded = read("1RB1LC_1RC1RB_1RD0LE_1LA1LD_1RZ0LA")
    result = compiled.run(loaded.machine, loaded.start())
    assert (result.steps, result.halted, result.final.state) == (47_176_870, True, "Z")
    assert len(result.final.tapes[0]) == 4098


def test_agrees_with_automata_lib():
    loaded = read("1RB1LB_1LA0LC_1RZ1LD_1RD0RA")
    machine = loaded.machine
    assert isinstance(machine, TuringMachine)
    transitions: dict = {}
    for (state, (symbol,)), rule in machine.rules.items():
        move = "R" if rule.moves[0] == 1 else "L"
        transitions.setdefault(state, {})[symbol] = (rule.state, rule.write[0], move)
    theirs = DTM(
        states=set(machine.states),
        input_symbols={"1"},
        tape_symbols={"0", "1"},
        transitions=transitions,
        initial_state="A",
        blank_symbol="0",
        final_states={"Z"},
    )
    configurations = list(theirs.read_input_stepwise(""))
    ours = compiled.run(machine, loaded.start())
    assert ours.steps == len(configurations) - 1 == 107
    assert len(ours.final.tapes[0]) == list(configurations[-1].tape.tape).count("1") == 13


@pytest.mark.parametrize("move", [-1, 1])
def test_tapes_grow_both_ways(move):
    rules = {("walk", ("_",)): Rule(("x",), (move,), "walk")}
    machine = TuringMachine(rules, "walk")
    result = compiled.run(machine, machine.start(), 300_000)
    assert result.final.heads == (300_000 * move,)
    assert set(result.final.tapes[0]) == {step * move for step in range(300_000)}
    assert not result.halted


def test_limit_on_cells():
    machine = TuringMachine({("walk", ("_", "_")): Rule(("x", "x"), (1, -1), "walk")}, "walk")
    with pytest.raises(Refused, match="cells, more than 500,000"):
        compiled.run(machine, machine.start(), max_cells=500_000)
    grid = GridMachine({("walk", "0"): GridRule("1", "up", "walk")}, "walk")
    with pytest.raises(Refused, match="more than 500,000"):
        compiled.run(grid, grid.start(), max_cells=500_000)


def test_far_cells_are_refused_before_memory_is_taken():
    machine = TuringMachine({("a", ("_",)): Rule(("x",), (1,), "a")}, "a")
    with pytest.raises(Refused, match="cells"):
        compiled.run(machine, Configuration("a", ({10**30: "x"},), (0,)), 5)


def test_limit_on_the_table():
    symbols = tuple(chr(0x4E00 + number) for number in range(100))
    rules = {("a", ("_",) * 4): Rule(("_",) * 4, (0,) * 4, "a")}
    machine = TuringMachine(rules, "a", alphabet=symbols)
    with pytest.raises(Refused, match="entries"):
        compiled.run(machine, machine.start(), 5)


def test_halting_exactly_at_the_limit_is_halting():
    loaded = read("1RB1LB_1LA1RZ")
    assert compiled.run(loaded.machine, loaded.start(), 6).halted
    assert not compiled.run(loaded.machine, loaded.start(), 5).halted


def test_progress_is_told(monkeypatch):
    monkeypatch.setattr(compiled, "CHUNK", 40)
    loaded = read("1RB1LB_1LA0LC_1RZ1LD_1RD0RA")
    told = []
    compiled.run(loaded.machine, loaded.start(), progress=told.append)
    assert told == [40, 80, 107]


def test_more_symbols_than_a_byte_holds():
    symbols = [chr(0x4E00 + number) for number in range(300)]
    rules = {
        ("a", (old,)): Rule((new,), (1,), "a") for old, new in zip(symbols, [*symbols[1:], "_"], strict=True)
    }
    machine = TuringMachine(rules, "a")
    check_beside_plain(machine, machine.start(symbols), 500)


def test_foreign_configurations_are_refused():
    machine = TuringMachine({("a", ("_",)): Rule(("x",), (1,), "a")}, "a")
    with pytest.raises(InputError, match="no state 'b'"):
        compiled.run(machine, Configuration("b", ({},), (0,)), 5)
    with pytest.raises(InputError, match="no symbol 'y'"):
        compiled.run(machine, Configuration("a", ({3: "y"},), (0,)), 5)


@pytest.mark.usefixtures("guards")
@pytest.mark.parametrize("guards", ["cramped"], indirect=True)
def test_arrays_double_on_the_sides_that_a_head_is_near():
    """With a guard of 1 there are four cells around what is given, and fewer than two are near."""
    grid = GridMachine({("a", "0"): GridRule("1", "up", "a")}, "a", alphabet=("2",))
    line = TuringMachine({("a", ("_",)): Rule(("x",), (1,), "a")}, "a")
    for row, column in product(range(10), range(12)):
        plane = compiled.Plane(grid, grid.start(["02"], (1, 3)), 10**6)
        assert (plane.cells.shape, plane.origin, plane.row, plane.column) == ((10, 11), (-4, -3), 5, 6)
        plane.row, plane.column = row, column
        before = plane.configuration()
        plane.grow()
        assert plane.configuration() == before
        high = 10 * (1 + (row < 2) + (row > 8))
        assert plane.cells.shape == (high, 11 * (1 + (column < 2) + (column > 9)))
    for column in range(9):
        plane = compiled.Plane(line, Configuration("a", ({7: "x"},), (7,)), 10**6)
        assert (plane.cells.shape, plane.origin, plane.row, plane.column) == ((1, 9), (0, 3), 0, 4)
        plane.column = column
        before = plane.configuration()
        plane.grow()
        assert plane.configuration() == before
        assert plane.cells.shape == (1, 9 * (1 + (column < 2) + (column > 7)))
    two = TuringMachine({("a", ("_", "_")): Rule(("x", "x"), (1, 1), "a")}, "a")
    for columns in product(range(11), repeat=2):
        tapes = compiled.Tapes(two, Configuration("a", ({}, {5: "x"}), (3, 4)), 10**6)
        assert (tapes.cells.shape, tapes.origin, tapes.heads.tolist()) == ((2, 11), 1, [4, 5])
        tapes.heads[:] = columns
        before = tapes.configuration()
        tapes.grow()
        assert tapes.configuration() == before
        assert tapes.cells.shape == (2, 11 * (1 + (min(columns) < 2) + (max(columns) > 9)))
