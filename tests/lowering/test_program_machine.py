"""Programs on the tapes of a Turing machine, against the plain interpreters after every instruction."""

from functools import cache
from itertools import islice

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.lowering.microcode import FETCH
from tapegrad.lowering.program_machine import program_machine, subleq_machine
from tapegrad.lowering.rv32_machine import rv32_machine
from tapegrad.machines.compiled import Tapes
from tapegrad.machines.model import TuringMachine
from tapegrad.programs.library import random_subleq
from tapegrad.programs.model import Program, ProgramState
from tapegrad.programs.rv32 import RV32
from tapegrad.source import Rewriting
from tests.programs.states import MACHINE, NAMES, after, random_state
from tapegrad.programs.instructions import INSTRUCTIONS


class Stepper:
    """Runs a machine from one instruction to the next, in machine code."""

    def __init__(self, machine: TuringMachine) -> None:
        self.machine = machine
        stopping = {key: rule for key, rule in machine.rules.items() if key[0] != FETCH}
        self.stopping = TuringMachine(
            stopping, FETCH, "0", machine.accept, alphabet=("0", "1"), states=machine.states, tapes=4
        )
        blank = {0: "1"}
        self.tapes = Tapes(self.stopping, tg.machines.Configuration(FETCH, (blank,) * 4, (0,) * 4), 1 << 24)

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
    for before, expected in zip(states, states[1:], strict=False):
        found, _ = machine.after(rewriting, before)
        assert found == expected
        assert found is not None
        assert found.output == expected.output
    return states


@pytest.mark.parametrize("seed", range(40))
def test_random_subleq_programs(seed: int) -> None:
    follow(random_subleq(seed), b"ab", 40)


@pytest.mark.parametrize("text", ["subleq 16 20\n", "subleq 32 18\n", "subleq 8 100\n"])
def test_subleq_with_words_of_any_size(text: str) -> None:
    program = tg.read(text + "loop: -1 x ? x -1 ? one x more zero zero loop more: zero zero -1 x: 0 one: 1 zero: 0")
    states = follow(program, b"a\x00\xff")
    assert states[-1].trap == "end"


def rv32(image: bytes = b"") -> Program:
    return Program("random", MACHINE, image)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wild", [False, True])
def test_every_instruction_in_random_states(name: str, wild: bool) -> None:
    random = np.random.default_rng([NAMES.index(name), wild])
    rewriting = program_machine(rv32())
    for _ in range(6):
        state = random_state(random, INSTRUCTIONS[name], wild=wild)
        found, _ = stepper("rv32im").after(rewriting, state)
        assert found == after(state), name
