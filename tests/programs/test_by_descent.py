"""Programs run by SGD beside the compiled interpreter, in leaps: registers and the whole memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._compile import compile_for
from tapegrad._verify import run_and_verify
from tapegrad.commands import run as run_command
from tapegrad.learners import LearnerState
from tapegrad.programs import compiler, read_assembler, read_c
from tapegrad.programs.compiled import run
from tapegrad.programs.library import READY
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet
from tests.targets.emulator.test_differences import Beside

EXAMPLE = Path(__file__).parents[2] / "examples" / "programs" / "sudoku.c"
LETTERS = b"thequickbrownfox"


@pytest.fixture(scope="module")
def sort() -> tg.Compiled:
    return compile_for(READY["rv32-sort"].build(), "emulator", (LETTERS,), 100_000)


def test_leaps_agree_to_the_end(sort: tg.Compiled) -> None:
    outcome: Any
    outcome, report = run_and_verify(sort, LETTERS, engine="fast", every=333)
    expected = run(sort.source, sort.source.start(LETTERS))  # type: ignore[arg-type]
    assert report.agreed, report
    assert report.complete
    assert outcome.halted
    assert outcome.steps == expected.steps
    assert report.states == 1 + -(-expected.steps // 333)
    assert outcome.state == expected.final
    assert outcome.state.output == bytes(sorted(LETTERS))


def test_samples_beyond_the_end_change_nothing() -> None:
    program = read_assembler(b".equ __ram, 64\nli a0, 5\nli a7, 93\necall")
    compiled = tg.compile(program, "emulator", steps=130, input=1, output=1)
    outcome: Any
    outcome, report = run_and_verify(compiled, engine="fast", every=2)
    assert report.agreed, report
    assert outcome.steps == 130
    assert outcome.state.trap == "exit"


@pytest.mark.parametrize("name", ["x[5][3]", "ram[3][1]"])
def test_a_flipped_cell_is_found(sort: tg.Compiled, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit of a register, or of an instruction, is another in the net than in the program."""
    start = PracticalNet.start

    def with_a_mistake(net: PracticalNet, state: LearnerState) -> EmulatorCarry:
        cell = net.names.index(name)
        bits = [bit ^ (number == cell) for number, bit in enumerate(state.memory)]
        return start(net, replace(state, memory=tuple(bits)))

    monkeypatch.setattr(PracticalNet, "start", with_a_mistake)
    assert not tg.verify(sort, [(LETTERS,)], engine="fast", every=40, steps=400).agreed


def test_engine_and_leaps_are_chosen_for_the_length_of_the_run(
    sort: tg.Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry = sort.start(LETTERS)
    assert sort.net.engine_for(carry, 10**9) == "fast"
    assert sort.net.engine_for(carry, 1) == "reference"
    assert sort.net.engine_for(sort.net.advance(carry, 10**6, "fast"), 10**9) == "reference"
    assert run_command._leap(sort, (LETTERS,), 10**6) == 1
    monkeypatch.setattr(run_command, "READ", 100 * sort.net.parameters)
    length = run(sort.source, sort.source.start(LETTERS)).steps  # type: ignore[arg-type]
    assert run_command._leap(sort, (LETTERS,), 100) == 1
    assert run_command._leap(sort, (LETTERS,), 10**6) == length // 100 > 1
    report = tg.verify(sort, [(LETTERS,)], engine=None, steps=3)
    assert report.engine == "reference"


@pytest.mark.slow
@pytest.mark.skipif(compiler.compiler() is None, reason="no compiler for RISC-V")
def test_sudoku_by_descent() -> None:
    """1.7 million steps of SGD on 7.1 million weights, with spot checks of every weight and value."""
    program = read_c(EXAMPLE.read_bytes(), "sudoku")
    compiled = compile_for(program, "emulator", (b"",), 3_000_000)
    outcome: Any
    outcome, report = run_and_verify(compiled, b"", steps=3_000_000, engine="fast", every=100_000)
    assert report.agreed, report
    assert report.complete
    assert outcome.steps > 1_600_000
    assert outcome.state == run(program, program.start()).final
    net: Any = compiled.net
    both = Beside(net, compiled.start(b""))
    for steps in np.random.default_rng(0).integers(1, 20_000, 10):
        both.advance(int(steps))
        both.spot_check()
