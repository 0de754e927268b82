"""Programs on the tapes of a Turing machine: the table against the definition of its instructions."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._saved import save
from tapegrad._sources import read, source_to_json
from tapegrad.lowering import program_machine as lowering
from tapegrad.lowering.microcode import LEFT, RIGHT, A, Microcode
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.programs.library import random_subleq
from tapegrad.programs.model import Program, ProgramState
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq
from tapegrad_check import CheckError, check
from tapegrad_check.folder import COMPUTES_SOURCE
from tapegrad_check.instructions import execution
from tapegrad_check.on_tapes.layout import FETCH, laid_out, shown
from tapegrad_check.passes import tables
from tapegrad_check.sources import Machine, model_of
from tapegrad_check.sources import Program as Checked
from tests.programs.states import INSTRUCTIONS, MACHINE, NAMES, after, random_state

ECHO = "subleq-echo"
COUNTING = "subleq 8 9\n7 6 3  6 6 -1  5 1 2"
"""It counts down, ends, and never looks at its input."""


def program(text: str) -> Program:
    found = read(text)
    assert isinstance(found, Program)
    return found


def checked(source: Program) -> Checked:
    found = model_of(*source_to_json(source))
    assert isinstance(found, Checked)
    return found


def seen(source: Program, state: ProgramState) -> execution.State:
    """A state of the compiler's, as the checker has it."""
    size = source.machine.word // 8
    words = (state.memory[at : at + size] for at in range(0, len(state.memory), size))
    return execution.State(
        pc=state.pc,
        memory=tuple(state.memory)
        if isinstance(source.machine, RV32)
        else tuple(int.from_bytes(word, "little") for word in words),
        x=state.registers,
        input=state.input,
        trap=source.machine.traps.index(state.trap) + 1 if state.trap else 0,
        taken=state.taken,
        copied=state.copied,
        output=state.output,
        own=state.extra,
    )


# The definitions, executed, against the plain interpreters


@pytest.mark.parametrize("name", NAMES)
def test_every_instruction_is_executed(name: str) -> None:
    random, source = np.random.default_rng(NAMES.index(name)), Program("one", MACHINE, b"")
    for wild in (False, False, True, True):
        state = random_state(random, INSTRUCTIONS[name], wild=wild)
        found = execution.stepped(checked(source), seen(source, state))
        assert found.state == seen(source, after(state))


CALLS = """.equ __ram, 128
li a7, 63
li a0, 0
li a1, 100
li a2, {}
ecall
mv a2, a0
li a7, 64
li a0, {}
ecall
li a7, {}
ecall
ebreak"""


@pytest.mark.parametrize(
    ("text", "given"),
    [
        (CALLS.format(3, 1, 93), b"xyz"),
        (CALLS.format(9, 2, 94), b"xy"),
        (CALLS.format(0, 3, 7), b"xy"),
        (CALLS.format(64, 1, 93), bytes(range(64))),
        (ECHO, b""),
        (ECHO, b"ab\xff"),
        ("subleq 16 12\n-1 9 3  9 -1 6  10 10 -1  0 0 0", b"\x80"),
        ("subleq 8 9\n-1 -1 0  0 0 0", b"a"),
        ("subleq 8 9\n3 3 7", b""),
    ],
)
def test_programs_with_input_and_output(text: str, given: bytes) -> None:
    source = program(text)
    own = execution.first(checked(source), given)
    for state in islice(source.run(source.start(given)), 60):
        assert own == seen(source, state)
        own = execution.stepped(checked(source), own).state


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_of_subleq(seed: int) -> None:
    source = random_subleq(seed)
    own = execution.first(checked(source), b"qwe")
    for state in islice(source.run(source.start(b"qwe")), 30):
        assert own == seen(source, state)
        own = execution.stepped(checked(source), own).state


def test_it_is_known_which_instructions_look_at_the_input() -> None:
    reads, moves = (checked(program(text)) for text in (CALLS.format(3, 1, 93), ECHO))
    for source, first_look in ((reads, 4), (moves, 0)):
        state = execution.first(source, b"xy")
        for _ in range(first_look):
            stepped = execution.stepped(source, state)
            assert not stepped.looked
            state = stepped.state
        assert execution.stepped(source, state).looked


def test_a_program_that_has_stopped_stays_as_it_is_and_looks_at_nothing() -> None:
    source = checked(program(ECHO))
    stopped = replace(execution.first(source, b"xy"), trap=1)
    assert execution.stepped(source, stopped) == execution.Stepped(stopped, False)


# Where a program lies


@pytest.mark.parametrize(
    ("source", "given"),
    [
        (Program("a", Subleq(10, width=8), bytes(range(10)), 3), b"input"),
        (Program("b", Subleq(12, width=32), bytes(range(200, 212)), 1), b""),
        (Program("c", RV32(32), bytes(range(32)), 4), b"\xff\x00"),
        (Program("d", Subleq(9, width=8), bytes(9)), b"\x00"),
        (Program("e", RV32(16), bytes(16)), b"\x00"),
    ],
)
def test_tapes_are_laid_out_as_the_compiler_does(source: Program, given: bytes) -> None:
    (way,) = [lowering.program_machine(source)]
    start = replace(source.start(given), taken=min(len(given), 1), output=b"s\x00\x80")
    start = replace(start, copied=5 if source.name == "c" else 0, written=3)
    own = seen(source, start)
    configuration = way.encode(start)
    tapes = laid_out(checked(source), own)
    assert [{cell for cell, bit in tape.items() if bit == "1"} for tape in configuration.tapes] == tapes
    assert shown(checked(source), FETCH, tapes) == own
    assert shown(checked(source), "back", tapes) is None
    trapped = replace(own, trap=2)
    assert shown(checked(source), source.machine.traps[1], tapes) == trapped


def test_states_of_rv32_are_shown_as_they_are_laid_out() -> None:
    """Without a table, which takes seconds. Word i begins at cell 33 i, register i at cell -33 (i + 1)."""
    random = np.random.default_rng(3)
    source = checked(Program("p", RV32(24, input=4, output=4), bytes(24)))
    for taken, given in ((0, b""), (1, b"\x00"), (2, b"ab\xff")):
        memory, x = random.bytes(24), tuple(random.integers(0, 1 << 32, 32).tolist())
        state = execution.State(2**31 + 4, tuple(memory), x, given, 0, taken, 3, b"\x00\xffz")
        tapes = laid_out(source, state)
        assert shown(source, FETCH, tapes) == state
        words = np.frombuffer(memory, "<u4").tolist()
        held = {33 * i + 1 + bit for i, word in enumerate(words) for bit in range(32) if word >> bit & 1}
        held |= {33 * (-1 - i) + 1 + bit for i, word in enumerate(x) for bit in range(32) if word >> bit & 1}
        assert tapes[0] == held | {0, 6 * 33}
        assert tapes[1] == {33 * word for word in range(-34, 9)}
        assert tapes[2] >= {0, -33 * (taken + 1), -33 * (len(given) + 2)}


# What is genuine


def verdict(folder: Path, source: Program, target: str, **options: Any) -> str:
    save(compile(source, target, **options), folder / "net")
    return check(folder / "net").verdict


def test_a_program_that_does_not_look_at_its_input_is_proved_for_all(tmp_path: Path) -> None:
    assert verdict(tmp_path, program(COUNTING), "tape", cells=200) == COMPUTES_SOURCE


def test_one_that_does_is_proved_by_its_table(tmp_path: Path) -> None:
    assert verdict(tmp_path, program(ECHO), "tape", cells=400) == COMPUTES_SOURCE


def test_on_a_simplex_it_is_proved_for_all_that_have_a_vertex(tmp_path: Path) -> None:
    inputs = [("",), ("x",)]
    assert verdict(tmp_path, program(ECHO), "simplex", inputs=inputs) == COMPUTES_SOURCE


def test_a_program_that_goes_on_is_followed_as_far_as_there_are_steps() -> None:
    forever = program("subleq 8 9\n6 6 0  0 0 0  0 0 0")
    run = tables.followed(checked(forever), table_of(lowering.subleq_machine()), b"", 5_000)
    assert not run.ended
    assert 0 < run.instructions < 20


def test_a_program_of_rv32_may_read_over_the_instruction_that_reads() -> None:
    """What is there then begins to count anew."""
    text = (
        ".equ __ram, 64\nli a7, 63\nli a1, 16\nli a2, 2\nli a0, 0\necall\nli a0, 0\nli a1, 60\necall\nebreak"
    )
    run = tables.followed(checked(program(text)), table_of(lowering.rv32_machine()), b"\x13\x00ab", 1 << 22)
    assert run.ended


@pytest.mark.slow
def test_rv32_on_tapes(tmp_path: Path) -> None:
    assert verdict(tmp_path, program("rv32-fibonacci"), "tape", cells=8_000) == COMPUTES_SOURCE


# What is not


def table_of(machine: TuringMachine) -> tables.Table:
    found = model_of(*source_to_json(machine))
    assert isinstance(found, Machine)
    return tables.Table(found)


def with_rule(machine: TuringMachine, case: Any, rule: Rule) -> TuringMachine:
    return replace(machine, rules={**machine.rules, case: rule})


def used_rules(machine: TuringMachine) -> list[Any]:
    """What the table does on this way through the program that counts."""
    table = table_of(machine)
    tables.followed(checked(program(COUNTING)), table, b"", 1 << 20)
    cases = {(machine.states[q], tuple("01"[code >> i & 1] for i in range(4))) for q, code in table.used}
    return sorted(cases)


ALTERED: dict[str, Callable[[Rule], Rule]] = {
    "goes elsewhere": lambda rule: replace(rule, state="end" if rule.state != "end" else "hop"),
    "writes on memory": lambda rule: replace(rule, write=("10"[int(rule.write[0])], *rule.write[1:])),
    "moves": lambda rule: replace(rule, moves=(*rule.moves[:3], 1 if rule.moves[3] < 1 else -1)),
}


@pytest.mark.parametrize("how", ALTERED)
def test_a_table_with_another_rule_is_refused_where_the_rule_matters(how: str) -> None:
    """The word of the plain interpreter decides whether it matters, for a run with an input of its own."""
    machine, source = lowering.subleq_machine(), program(COUNTING)
    cases = used_rules(machine)
    random = np.random.default_rng(7)
    noticed = 0
    for case in (cases[i] for i in random.permutation(len(cases))[:12]):
        forged = with_rule(machine, case, ALTERED[how](machine.rules[case]))
        try:
            run = tables.followed(checked(source), table_of(forged), b"", 1 << 14)
        except CheckError:
            noticed += 1
            continue
        noticed += not run.ended
        assert not (run.ended and run.blind) or agrees(source, forged, b"other"), case
    assert noticed > 6


def agrees(source: Program, machine: TuringMachine, given: bytes) -> bool:
    """Whether the compiler's own machine and decoder give what the plain interpreter gives."""
    way = lowering.program_machine(source)
    states = [
        state
        for state in map(way.decode, islice(machine.run(way.encode(source.start(given))), 1 << 16))
        if state
    ]
    wanted = list(source.run(source.start(given)))
    return states == wanted


def saved_with(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    machine: TuringMachine,
    source: Program,
    target: str,
    **options: Any,
) -> Path:
    monkeypatch.setattr(lowering, "subleq_machine", lambda: machine)
    save(compile(source, target, **options), folder / "net")
    return folder / "net"


def deaf() -> TuringMachine:
    """A table to which the input is always at its end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Microcode, "peek", lambda self, byte, end: end)
        return lowering.subleq_machine.__wrapped__()


def spying() -> TuringMachine:
    """A table that looks at the input before each instruction, and stops where it does not like it."""
    machine = lowering.subleq_machine()
    rules = dict(machine.rules)
    for case in [case for case in rules if case[0] == FETCH]:
        read = case[1]
        rules["begin", read] = rules[case]
        rules[case] = Rule(read, (0, 0, LEFT, 0), "spy")
    for case in [case for case in rules if case[0] == "begin"]:
        read = case[1]
        to = "end" if read[A] == "1" else "back from spying"
        rules["spy", read] = Rule(read, (0, 0, RIGHT, 0), to)
        rules["back from spying", read] = Rule(read, (0, 0, 0, 0), "begin")
    return TuringMachine(rules, FETCH, "0", machine.accept, name="spying", alphabet=("0", "1"), tapes=4)


def test_a_table_that_does_not_read_the_input_is_not_taken_for_proved() -> None:
    reader = program("subleq 8 9\n-1 6 3  6 6 -1  0 0 0")
    run = tables.followed(checked(reader), table_of(deaf()), b"", 1 << 20)
    assert run.ended
    assert not run.blind
    with pytest.raises(CheckError, match="shows something else"):
        tables.followed(checked(reader), table_of(deaf()), b"7", 1 << 20)


def test_a_table_that_looks_at_an_input_which_the_program_does_not_want() -> None:
    source = program(COUNTING)
    run = tables.followed(checked(source), table_of(spying()), b"ab", 1 << 20)
    assert run.ended
    assert not run.blind
    with pytest.raises(CheckError):
        tables.followed(checked(source), table_of(spying()), b"\x80", 1 << 20)


@pytest.mark.parametrize(("target", "options"), [("tape", {"cells": 400}), ("simplex", {"inputs": [("x",)]})])
def test_nets_of_such_a_table_are_refused(
    target: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = saved_with(tmp_path, monkeypatch, deaf(), program(ECHO), target, **options)
    with pytest.raises(CheckError, match=r"something else than subleq|no instruction of subleq"):
        check(net)


def test_a_net_that_looks_where_nothing_is_seen_yet_is_not_said_to_compute_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the inputs that are tried it does what it should; on others it does not."""
    net = saved_with(tmp_path, monkeypatch, spying(), program(COUNTING), "tape", cells=400)
    assert check(net).verdict == "tested on 3 inputs"
    assert not agrees(program(COUNTING), spying(), b"\x80")


def test_a_program_that_does_not_fit_is_not_said_to_be_computed(tmp_path: Path) -> None:
    assert verdict(tmp_path, program(COUNTING), "tape", cells=50).startswith("computes its own table")


@pytest.mark.parametrize(
    ("rules", "accept", "said"),
    [
        ({("address outside memory", ("0",) * 4): Rule(("0",) * 4, (0,) * 4, "end")}, {"end"}, "goes on"),
        ({}, {"end", "jump outside memory"}, "ends well"),
    ],
)
def test_states_in_which_a_program_has_stopped_are_the_ends(
    rules: Any, accept: set[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = lowering.subleq_machine()
    forged = replace(machine, rules={**machine.rules, **rules}, accept=frozenset(accept))
    net = saved_with(tmp_path, monkeypatch, forged, program(COUNTING), "tape", cells=400)
    with pytest.raises(CheckError, match=said):
        check(net)
