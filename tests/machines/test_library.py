"""The ready machines against plain Python."""

from itertools import islice, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.errors import Refused, SourceError
from tapegrad.machines import Configuration, TuringMachine
from tapegrad.machines.compiled import run
from tapegrad.machines.library import BUSY_BEAVERS, READY, busy_beaver, ready
from tapegrad.machines.universal import simulation, universal_code
from tests.machines.side_by_side import check_side_by_side
from tests.machines.strategies import machines_with_words


def last(machine: TuringMachine, *words: str, most: int = 50_000) -> Configuration:
    """The halting configuration."""
    *_, final = islice(machine.run(machine.start(*words)), most)
    assert machine.step(final) is None
    return final


def written(final: Configuration) -> str:
    """The first tape from its first mark to its last."""
    tape = final.tapes[0]
    return "".join(tape.get(cell, "_") for cell in range(min(tape, default=0), max(tape, default=-1) + 1))


def test_increment() -> None:
    machine = ready("increment")
    assert all(written(last(machine, f"{n:b}")) == f"{n + 1:b}" for n in range(130))


@settings(deadline=None, max_examples=80)
@given(st.text("01", max_size=7), st.text("01", max_size=7))
def test_addition(first: str, second: str) -> None:
    total = int("0" + first, 2) + int("0" + second, 2)
    assert int("0" + written(last(ready("addition"), f"{first}+{second}")), 2) == total


def test_addition_of_all_small_numbers() -> None:
    machine = ready("addition")
    for a, b in product(range(16), repeat=2):
        assert int(written(last(machine, f"{a:b}+{b:b}")), 2) == a + b


def test_multiplication() -> None:
    machine = ready("multiplication")
    for a, b in product(range(5), repeat=2):
        assert written(last(machine, "1" * a + "*" + "1" * b)) == "1" * (a * b)


def test_palindrome() -> None:
    machine = ready("palindrome")
    for length in range(8):
        for word in map("".join, product("ab", repeat=length)):
            final = last(machine, word)
            assert final.state in machine.accept | machine.reject
            assert (final.state in machine.accept) == (word == word[::-1])


def balanced(word: str) -> bool:
    """By crossing out neighbours, as nobody would program it."""
    while "()" in word or "[]" in word:
        word = word.replace("()", "").replace("[]", "")
    return not word


def test_brackets() -> None:
    machine = ready("brackets")
    accepted = 0
    for length in range(7):
        for word in map("".join, product("()[]", repeat=length)):
            final = last(machine, word)
            assert final.state in machine.accept | machine.reject
            assert (final.state in machine.accept) == balanced(word)
            accepted += balanced(word)
    assert accepted == 1 + 2 + 8 + 40  # Catalan numbers times powers of two


@pytest.mark.parametrize("length", range(6))
def test_copying(length: int) -> None:
    machine = ready("copying")
    for word in map("".join, product("ab", repeat=length)):
        assert written(last(machine, word)) == f"{word}#{word}"


@pytest.mark.parametrize("size", BUSY_BEAVERS)
def test_busy_beavers(size: str) -> None:
    known = BUSY_BEAVERS[size]
    machine = busy_beaver(size)
    ended = run(machine, machine.start(), known.steps + 1)
    assert ended.halted
    assert ended.steps == known.steps
    assert len(ended.final.tapes[0]) == known.marks


def test_universal_machine_is_small() -> None:
    machine = ready("universal")
    assert machine.tapes == 1
    assert (len(machine.states), len(machine.alphabet)) == (47, 14)


@settings(deadline=None, max_examples=30)
@given(machines_with_words(most_symbols=4, most_states=3))
def test_universal_machine_runs_any_machine(case: tuple[TuringMachine, list[str]]) -> None:
    machine, words = case
    check_side_by_side(simulation(machine), words, 6, limit=200_000)


def test_universal_machine_runs_the_library() -> None:
    check_side_by_side(simulation(ready("increment")), ["1011"], 50, limit=200_000)
    check_side_by_side(simulation(busy_beaver("3x2")), [], 21, limit=200_000)


def test_universal_machine_takes_a_word() -> None:
    """From the plain text of its input to the plain result, by the compiled interpreter: 7 + 1 = 8."""
    rewriting = simulation(ready("increment"))
    machine = ready("universal")
    first = machine.start(universal_code(ready("increment"), "111"))
    assert first == rewriting.encode(ready("increment").start("111"))
    ended = run(machine, first, 1_000_000)
    assert ended.halted
    register = "".join(ended.final.tapes[0][cell] for cell in sorted(ended.final.tapes[0]))
    assert register.partition("$")[0] == ""  # the head is on the first digit, at cell -1
    digits = [register.partition("]")[2][i : i + 3] for i in range(0, 12, 3)]
    assert digits[::-1] == ["011", "010", "010", "000"]  # the code of 0 is 01; then a 1 for cell 0


def test_universal_machine_refuses_two_tapes() -> None:
    with pytest.raises(Refused, match="one-tape"):
        universal_code(TuringMachine({}, "q", tapes=2), "")


@pytest.mark.parametrize("name", READY)
def test_every_ready_machine_takes_its_example(name: str) -> None:
    machine = ready(name)
    first = machine.start(*READY[name].example())
    assert machine.step(first) is not None


def test_unknown_name() -> None:
    with pytest.raises(SourceError, match="increment"):
        ready("nonesuch")
