"""Machines written with the builder do what the same words mean in Python, in few states."""

from itertools import islice, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.errors import SourceError
from tapegrad.machines import Configuration, GridBuilder, GridMachine, MachineBuilder, TuringMachine
from tapegrad.machines.kind import table_text


def last(machine: TuringMachine, *words: str) -> tuple[Configuration, int]:
    """The halting configuration, and the number of steps."""
    run = list(islice(machine.run(machine.start(*words)), 10_000))
    assert len(run) < 10_000
    return run[-1], len(run) - 1


def text(tape: dict[int, str]) -> str:
    return "".join(tape.get(c, "_") for c in range(min(tape, default=0), max(tape, default=-1) + 1))


def increment() -> TuringMachine:
    b = MachineBuilder("increment", symbols="01")
    b.seek("right", "_")
    b.move("left")
    with b.while_("1"):
        b.write("0")
        b.move("left")
    b.write("1")
    b.accept()
    return b.machine()


def test_increment_is_two_states_and_counts() -> None:
    machine = increment()
    assert len(machine.states) == 3  # seek, carry, accept
    for number in range(70):
        final, _ = last(machine, f"{number:b}")
        assert text(dict(final.tapes[0])) == f"{number + 1:b}"
        assert final.state in machine.accept


def test_writes_and_moves_share_a_step() -> None:
    b = MachineBuilder("turn", symbols="ab")
    with b.while_("a"):
        b.write("b")
        b.move("right")
    machine = b.machine()
    assert len(machine.states) == 1
    assert last(machine, "aaaa")[1] == 4


def test_parity_written_plainly_has_two_working_states() -> None:
    b = MachineBuilder("parity", symbols="01")
    with b.loop():
        b.skip("right", "0")
        with b.if_("_"):
            b.accept()
        b.move("right")
        b.skip("right", "0")
        with b.if_("_"):
            b.reject()
        b.move("right")
    machine = b.machine()
    assert len(machine.states) == 4  # even, odd, accept, reject
    for bits in product("01", repeat=5):
        final, steps = last(machine, "".join(bits))
        assert (final.state == "accept") == (bits.count("1") % 2 == 0)
        assert steps == 6


def test_equivalent_states_are_merged() -> None:
    def scan(b: MachineBuilder) -> None:
        b.seek("right", "_")

    b = MachineBuilder("twice", symbols="xy")
    with b.if_("x"):
        b.move("right")
        scan(b)
        b.accept()
    with b.else_():
        b.move("right")
        scan(b)
        b.accept()
    assert len(b.machine().states) == 3  # start, scan once, accept


def test_named_states_and_forward_goto() -> None:
    b = MachineBuilder("even length", symbols="a")
    b.state("even")
    with b.if_("a"):
        b.move("right")
        b.goto("odd")
    b.accept()
    b.state("odd")
    with b.if_("a"):
        b.move("right")
        b.goto("even")
    b.reject()
    machine = b.machine()
    assert set(machine.states) == {"even", "odd", "accept", "reject"}
    assert [last(machine, "a" * n)[0].state for n in range(4)] == ["accept", "reject", "accept", "reject"]


def test_each_remembers_the_symbol() -> None:
    """Moves the first symbol to the end, and leaves a hole."""
    b = MachineBuilder("rotate", symbols="abc")
    for symbol in b.each("a", "b", "c"):
        b.write("_")
        b.move("right")
        b.seek("right", "_")
        b.write(symbol)
    machine = b.machine()
    assert text(dict(last(machine, "abcc")[0].tapes[0])) == "bcca"


def test_two_heads_share_steps() -> None:
    b = MachineBuilder("copy", symbols="01", tapes=2)
    source, copy = b.tapes
    with b.until(source.reads("_")):
        for symbol in source.each("0", "1"):
            copy.write(symbol)
        source.move("right")
        copy.move("right")
    machine = b.machine()
    assert len(machine.states) == 1
    final, steps = last(machine, "0110")
    assert final.tapes[0] == final.tapes[1]
    assert steps == 4


def test_conditions_across_tapes() -> None:
    b = MachineBuilder("equal", symbols="01", tapes=2)
    one, two = b.tapes
    with b.while_(one.same_as(two) & ~one.reads("_")):
        one.move("right")
        two.move("right")
    with b.if_(one.reads("_") & two.reads("_")):
        b.accept()
    b.reject()
    machine = b.machine()
    for first, second in product(["", "0", "01", "011"], repeat=2):
        assert (last(machine, first, second)[0].state == "accept") == (first == second)


def test_elif_break_and_continue() -> None:
    b = MachineBuilder("strip", symbols="abcd")
    with b.loop() as outer:
        with b.if_("a"):
            b.write("x")
        with b.elif_("b"):
            b.move("right")
            b.continue_()
        with b.elif_("c"), b.loop():
            b.break_(outer)
        with b.else_():
            b.break_()
        b.move("right")
    b.write("!")
    machine = b.machine()
    assert text(dict(last(machine, "abca")[0].tapes[0])) == "xb!a"
    assert text(dict(last(machine, "aad")[0].tapes[0])) == "xx!"


instructions = st.recursive(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from("_ab")),
        st.tuples(st.just("move"), st.sampled_from(["left", "right"])),
    ),
    lambda inner: st.tuples(
        st.sampled_from(["if", "while"]), st.sampled_from("_ab"), st.lists(inner, max_size=3)
    ),
    max_leaves=10,
)


def emit(b: MachineBuilder, program: list) -> None:
    for word, what, *body in program:
        if word == "write":
            b.write(what)
        elif word == "move":
            b.move(what)
        else:
            with b.if_(what) if word == "if" else b.while_(what):
                emit(b, body[0])


class Stuck(Exception):
    pass


def interpret(program: list, tape: dict[int, str], head: int, fuel: list[int]) -> int:
    """The same program, run directly."""
    for word, what, *body in program:
        fuel[0] -= 1
        if fuel[0] < 0:
            raise Stuck
        if word == "write":
            tape[head] = what
        elif word == "move":
            head += 1 if what == "right" else -1
        elif word == "if" and tape.get(head, "_") == what:
            head = interpret(body[0], tape, head, fuel)
        elif word == "while":
            while tape.get(head, "_") == what:
                fuel[0] -= 1
                if fuel[0] < 0:
                    raise Stuck
                head = interpret(body[0], tape, head, fuel)
    return head


@settings(deadline=None, max_examples=150)
@given(st.lists(instructions, max_size=5), st.text("ab", max_size=4))
def test_random_programs_do_what_they_say(program: list, word: str) -> None:
    b = MachineBuilder("random", symbols="ab")
    emit(b, program)
    tape = dict(enumerate(word))
    try:
        head = interpret(program, tape, 0, [500])
    except Stuck:
        return
    try:
        machine = b.machine()
    except SourceError as error:
        if "for ever" in str(error):  # on some other symbol than this run met
            return
        raise
    final, _ = last(machine, word)
    assert final.heads == (head,)
    assert final.tapes[0] == {cell: symbol for cell, symbol in tape.items() if symbol != "_"}


def box_filler() -> GridMachine:
    b = GridBuilder("box filler", symbols=".#x", blank=".")
    with b.loop():
        with b.until("#"):
            b.write("x")
            b.move("right")
        b.move("left")
        b.skip("left", "x")
        b.move("down", "right")
        with b.if_("#"):
            b.halt()
    return b.machine()


@pytest.mark.parametrize(("height", "width"), [(1, 1), (2, 5), (4, 3)])
def test_grid_machine_fills_a_frame_of_any_size(height: int, width: int) -> None:
    machine = box_filler()
    assert len(machine.states) == 4  # fill, back, right, look
    edge = "#" * (width + 2)
    rows = [edge, *["#" + "." * width + "#"] * height, edge]
    *_, final = islice(machine.run(machine.start(rows, head=(1, 1))), 1000)
    assert machine.step(final) is None
    filled = {(r, c) for r in range(1, height + 1) for c in range(1, width + 1)}
    assert {cell for cell, symbol in final.cells.items() if symbol == "x"} == filled


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda b: b.goto("nowhere"), "no such state"),
        (lambda b: b.break_(), "outside a loop"),
        (lambda b: b.move("up"), "no direction"),
        (lambda b: b.else_().__enter__(), "right after"),
        (lambda b: b.if_("a").__enter__(), "not been written to its end"),
        (lambda b: next(b.each("a", "b")), "not been written to its end"),
        (lambda b: [b.state("a"), b.move("right"), b.state("a"), b.goto("a")], "several states"),
        (lambda b: b.goto(b.state("round")), "for ever"),
    ],
)
def test_mistakes_are_named(write, message: str) -> None:
    b = MachineBuilder("wrong", symbols="ab")
    with pytest.raises(SourceError, match=message):  # noqa: PT012
        write(b)
        b.machine()


def test_loop_that_only_writes_is_refused() -> None:
    b = MachineBuilder("flicker", symbols="ab")
    with b.while_("a"):
        b.write("a")
    with pytest.raises(SourceError, match="for ever"):
        b.machine()


def test_table_text() -> None:
    lines = table_text(increment()).splitlines()
    assert lines[0] == "increment: 3 states, 3 symbols, 6 rules, on 1 tape(s)"
    assert "start    _      _       left   start.2" in lines
    assert any("down" in line for line in table_text(box_filler()).splitlines())
