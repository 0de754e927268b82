"""Programs on the tapes of a Turing machine, against the plain interpreters after every instruction."""

from functools import cache
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._compile import compile_for
from tapegrad._verify import run_and_verify
from tapegrad.errors import Refused
from tapegrad.lowering.microcode import FETCH
from tapegrad.lowering.program_machine import program_machine, subleq_machine
from tapegrad.lowering.rv32_machine import rv32_machine
from tapegrad.machines.compiled import Tapes
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.programs.instructions import INSTRUCTIONS
from tapegrad.programs.library import READY, random_subleq
from tapegrad.programs.model import Program, ProgramState
from tapegrad.source import Rewriting
from tapegrad.targets import target_named
from tests.programs.states import MACHINE, NAMES, after, random_state


class Stepper:
    """Runs a machine from one instruction to the next, in machine code."""

    def __init__(self, machine: TuringMachine) -> None:
        self.machine = machine
        stopping = {key: rule for key, rule in machine.rules.items() if key[0] != FETCH}
        self.stopping = TuringMachine(
            stopping, FETCH, "0", machine.accept, alphabet=("0", "1"), states=machine.states, tapes=4
        )
        blank = {0: "1"}
        self.tapes = Tapes(self.stopping, Configuration(FETCH, (blank,) * 4, (0,) * 4), 1 << 24)

    def after(self, rewriting: Rewriting, state: ProgramState) -> tuple[ProgramState | None, int]:
        """The program's state after one instruction, and the steps that it took."""
        first = self.machine.step(rewriting.encode(state))
        assert first is not None
        tapes, places = self.tapes, [cell for tape in first.tapes for cell in tape]
        tapes.origin = 4 * tapes.guard - min(places)
        tapes.cells = np.zeros((4, max(places) - min(places) + 8 * tapes.guard), np.uint8)
        for row, tape in zip(tapes.cells, first.tapes, strict=True):
            row[np.array(list(tape), int) + tapes.origin] = 1
        tapes.heads = np.array([head + tapes.origin for head in first.heads])
        tapes.base = tapes.coding.base[first.state]
        steps, _ = tapes.advance(50_000_000)
        return rewriting.decode(tapes.configuration()), steps + 1


@cache
def stepper(kind: str) -> Stepper:
    return Stepper(rv32_machine() if kind == "rv32im" else subleq_machine())


def follow(program: Program, data: bytes = b"", instructions: int = 1000) -> list[ProgramState]:
    """Runs a program by its machine, and compares after every instruction."""
    rewriting, machine = program_machine(program), stepper(program.machine.kind)
    states = list(islice(program.run(program.start(data)), instructions + 1))
    assert rewriting.decode(rewriting.encode(states[0])) == states[0]
    for before, expected in pairwise(states):
        found, _ = machine.after(rewriting, before)
        assert found == expected
        assert found is not None
        assert found.output == expected.output
    return states


@pytest.mark.parametrize("seed", range(20))
def test_random_subleq_programs(seed: int) -> None:
    follow(random_subleq(seed), b"ab", 40)


@pytest.mark.parametrize("first", ["subleq 16 20", "subleq 32 18", "subleq 8 100"])
def test_subleq_with_words_of_any_size(first: str) -> None:
    """Echoes its input up to a byte of 0; with words of 8 bits 255 is negative."""
    code = "loop: -1 x ? x -1 ? one x more zero zero loop more: zero zero -1 x: 0 one: 1 zero: 0"
    states = follow(program_of(f"{first}\n{code}"), b"a\xff\x00b")
    assert states[-1].trap == "end"
    assert states[-1].output == (b"a\xff" if first == "subleq 8 100" else b"a\xff\x00")


@pytest.mark.parametrize(
    ("text", "trap"),
    [
        ("0 0 20 0 0 0 0 0 0 0 0 0 0 0 0 0", "jump outside memory"),
        ("0 0 14 0 0 0 0 0 0 0 0 0 0 0 0 0", "jump outside memory"),
        ("16 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0", "address outside memory"),
        ("-1 16 0 0 0 0 0 0 0 0 0 0 0 0 0 0", "address outside memory"),
        ("-2 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 0", "address outside memory"),
        ("-1 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 0", "address outside memory"),
    ],
)
def test_traps_of_subleq(text: str, trap: str) -> None:
    states = follow(program_of(f"subleq 8 16\n{text}"), b"a")
    assert states[-1].trap == trap
    assert states[-1].taken == 0


def _instructions(name: str, wild: bool, count: int) -> None:
    random = np.random.default_rng([NAMES.index(name), wild])
    rewriting = program_machine(Program("random", MACHINE, b""))
    for _ in range(count):
        state = random_state(random, INSTRUCTIONS[name], wild=wild)
        found, _ = stepper("rv32im").after(rewriting, state)
        assert found == after(state), name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(4)
def test_every_instruction_in_random_states(name: str) -> None:
    _instructions(name, wild=True, count=1)
    _instructions(name, wild=False, count=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wild", [False, True])
def test_every_instruction_in_many_random_states(name: str, wild: bool) -> None:
    _instructions(name, wild, 40)


ECHO = """
        .equ __ram, 128
loop:   li a7, 63
        li a0, 0
        addi a1, sp, -16
        li a2, 3
        ecall
        beqz a0, done
        mv a2, a0
        li a7, 64
        li a0, 1
        ecall
        j loop
done:   li a7, 64
        li a0, 7
        ecall
        li a7, 99
        ecall
        li a7, 93
        ecall
"""


def test_system_calls() -> None:
    states = follow(program_of(ECHO), b"words")
    assert states[-1].trap == "exit"
    assert states[-1].output == b"words"


@pytest.mark.parametrize("number", [63, 64])
def test_a_system_call_at_the_end_of_memory(number: int) -> None:
    text = f".equ __ram, 64\nli a7, {number}\nli a0, {number - 63}\nli a1, 63\nli a2, 3\necall"
    states = follow(program_of(text), b"abc")
    assert states[-1].trap == "address outside memory"
    assert states[-1].taken + states[-1].written == 1


def program_of(text: str) -> Program:
    found = tg.read(text)
    assert isinstance(found, Program)
    return found


# To the targets


SHORT = "subleq 8 8\n6 7 3 0 0 -1 1 5"
"""5 - 1, then the end: three instructions would be one too many."""


def test_by_gradient_descent_to_the_end() -> None:
    compiled = compile_for(program_of(SHORT), "tape", (), 100_000)
    outcome: Any
    outcome, report = run_and_verify(compiled, steps=100_000, engine="fast", every=500)
    assert report.agreed, report
    assert outcome.halted
    assert outcome.state.trap == "end"
    assert outcome.state.memory[7] == 4


@pytest.mark.slow
def test_every_instruction_is_compared() -> None:
    compiled = compile_for(program_of(SHORT), "simplex", (), 100_000)
    report = tg.verify(compiled, [()], engine="fast", steps=100_000)
    assert report.agreed, report
    assert report.complete
    assert report.states == 3


def test_steps_one_after_the_other() -> None:
    compiled = compile_for(program_of(SHORT), "relu", (), 100)
    outcome: Any
    outcome, report = run_and_verify(compiled)
    assert report.agreed, report
    assert outcome.state.trap == "end"
    assert outcome.state.memory[7] == 4


@pytest.mark.parametrize(
    ("target", "name", "why"),
    [
        ("relu", "rv32-fibonacci", "2,065 bits of memory pass through 3,113 layers for each"),
        ("rcnn", "subleq-hello", "at least 12,032 states"),
        ("simplex", "rv32-fibonacci", "at least 31,350 vertices of the simplex, each with 8,980 cells"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_numbers(target: str, name: str, why: str) -> None:
    program = READY[name].build()
    with pytest.raises(Refused, match=why):
        compile_for(program, target, (b"",), 100_000)


def test_simplex_has_room_for_the_whole_run() -> None:
    program = READY["subleq-hello"].build()
    way = program_machine(program)
    taken = sum(1 for _ in way.after.run(way.encode(program.start()))) - 1
    fitted = target_named("simplex").fitted(way.after, way.encode(program.start()), 100_000)
    assert fitted == {"steps": taken}
    assert taken > 10_000


@pytest.mark.slow
def test_a_program_of_rv32_by_gradient_descent() -> None:
    compiled = compile_for(program_of(ECHO), "tape", (b"ab",), 10_000_000)
    outcome: Any
    outcome, report = run_and_verify(compiled, b"ab", steps=10_000_000, engine="fast", every=50_000)
    assert report.agreed, report
    assert outcome.halted
    assert outcome.state.output == b"ab"
