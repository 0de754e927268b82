"""Machines with many heads: their words, their steps, and what is refused."""

from itertools import islice

import pytest

from tapegrad.errors import Refused, SourceError
from tapegrad.machines.builder import GridBuilder
from tapegrad.machines.many_heads import HeadsRule, ManyHeadBuilder, ManyHeadMachine


def flip_rows():
    """Down the first column, with a head into each row that begins with 1, which changes all other bits."""
    b = ManyHeadBuilder("flip rows", symbols="01", blank=".")
    with b.until("."):
        with b.if_("1"):
            b.fork("right", "flip")
        b.move("down")
    b.halt("done")
    b.state("flip")
    with b.until("."):
        for bit in b.each("0", "1"):
            b.write("10"[int(bit)])
        b.move("right")
    b.vanish()
    return b.machine()


def grid(configuration, rows, columns):
    return ["".join(configuration.cells.get((r, c), ".") for c in range(columns)) for r in range(rows)]


def test_heads_work_at_once_and_vanish():
    machine = flip_rows()
    run = list(islice(machine.run(machine.start(["1010", "0110", "1111"])), 100))
    assert grid(run[-1], 3, 4) == ["1101", "0110", "1000"]
    assert run[-1].heads == {(3, 0): "done"}
    assert max(len(now.heads) for now in run) == 3
    assert len(run) - 1 == 3 + 4  # down, and then the last row's three bits and its end


def test_a_head_halts_alone_and_the_machine_with_the_last():
    b = ManyHeadBuilder("two", symbols="1", blank=".")
    b.fork("right", "stop")
    b.move("down")
    b.move("down")
    b.halt("below")
    b.state("stop")
    b.write("1")
    b.halt("beside")
    machine = b.machine()
    *_, last = machine.run(machine.start())
    assert last.heads == {(2, 0): "below", (0, 1): "beside"}
    assert last.cells == {(0, 1): "1"}


def test_states_that_differ_in_the_heads_they_send_out_are_not_merged():
    def machine(*forks):
        b = ManyHeadBuilder("same moves", symbols="1", blank=".")
        with b.if_("1"):
            b.move("right")
            b.move("stay")
            for state in forks:
                b.fork("up", state)
            b.move("right")
            b.halt("end")
        b.move("right")
        b.move("stay")
        b.fork("up", "one")
        b.move("right")
        b.halt("end")
        for state, symbol in (("one", "1"), ("two", ".")):
            b.state(state)
            b.write(symbol)
            b.move("up")
            b.vanish()
        return b.machine()

    assert len(machine("one").states) < len(machine("two").states)
    assert len(machine("one").states) < len(machine().states)


def test_a_machine_that_forks_nowhere_is_a_grid_machine():
    builders = GridBuilder("add", symbols="01", blank="."), ManyHeadBuilder("add", symbols="01", blank=".")
    for b in builders:
        b.seek("right", ".")
        b.move("left")
        with b.while_("1"):
            b.write("0")
            b.move("left")
        b.write("1")
        b.halt("done")
    one, many = builders[0].machine(), builders[1].machine()
    assert many.states == one.states
    assert {key: (rule.write, rule.heads) for key, rule in many.rules.items()} == {
        key: (rule.write, rule.heads) for key, rule in one.rules.items()
    }
    for own, other in zip(one.run(one.start(["1011"])), many.run(many.start(["1011"])), strict=True):
        assert (own.cells, {own.head: own.state}) == (other.cells, other.heads)


def test_two_heads_in_one_cell_are_refused():
    machine = ManyHeadMachine(
        {
            ("start", "0"): HeadsRule("0", (("left", "east"), ("right", "west"))),
            ("east", "0"): HeadsRule("0", (("right", "east"),)),
            ("west", "0"): HeadsRule("0", (("left", "west"),)),
        },
        "start",
    )
    with pytest.raises(Refused, match=r"two heads meet, in states 'east' and 'west' \(cell \(0, 0\)\)"):
        list(islice(machine.run(machine.start()), 10))


@pytest.mark.parametrize(
    ("heads", "why"),
    [((("north", "a"),), "'north' is no move"), ((("up", "a"), ("up", "b")), "two heads make the same move")],
)
def test_heads_go_one_of_five_ways_and_each_another(heads, why):
    with pytest.raises(SourceError, match=why):
        ManyHeadMachine({("a", "0"): HeadsRule("0", heads)}, "a")


def test_a_fork_needs_a_direction_and_a_state_that_is_there():
    b = ManyHeadBuilder("wrong")
    with pytest.raises(SourceError, match="'north' is no direction"):
        b.fork("north", "there")
    b.fork("right", "nowhere")
    b.move("down")
    with pytest.raises(SourceError, match="'nowhere': there is no such state"):
        b.machine()
