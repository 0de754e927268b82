"""Programs run by SGD beside the compiled interpreter, in leaps: registers and the whole memory."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._compile import compile_for
from tapegrad._lockstep import looked_ahead
from tapegrad._verify import run_and_verify
from tapegrad.cli import app
from tapegrad.commands import run as run_command
from tapegrad.learners import LearnerState
from tapegrad.lowering import program_learner
from tapegrad.programs import compiler, read_assembler, read_c, read_elf
from tapegrad.programs.compiled import run
from tapegrad.programs.library import READY
from tapegrad.programs.model import Machine
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet
from tests.programs.test_c import INPUTS
from tests.targets.emulator.test_differences import Beside

TESTS = Path(os.environ.get("TAPEGRAD_CORPUS") or "none") / "programs" / "riscv-tests"
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
    report = tg.verify(sort, [(LETTERS,)], engine="fast", every=40, steps=400)
    assert not report.agreed
    assert report.mismatch is not None
    source, network = report.mismatch.expected, report.mismatch.found
    assert source != network
    if name == "ram[3][1]":  # a bit of an instruction, which is in no other word of the report
        found, expected = (int(text.rpartition("memory[12] is ")[2]) for text in (network, source))
        assert found ^ expected == 2


def test_engine_and_leaps_are_chosen_for_the_length_of_the_run(
    sort: tg.Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry = sort.start(LETTERS)
    assert sort.net.engine_for(carry, 10**9) == "fast"
    assert sort.net.engine_for(carry, 1) == "reference"
    assert sort.net.engine_for(sort.net.advance(carry, 10**6, "fast"), 10**9) == "reference"
    ahead = looked_ahead(sort, (LETTERS,), 10**6)
    assert run_command._leap(sort, (LETTERS,), 10**6, ahead) == 1
    monkeypatch.setattr(run_command, "READ", 100 * sort.net.parameters)
    length = run(sort.source, sort.source.start(LETTERS)).steps  # type: ignore[arg-type]
    assert run_command._leap(sort, (LETTERS,), 100, looked_ahead(sort, (LETTERS,), 100)) == 1
    assert run_command._leap(sort, (LETTERS,), 10**6, ahead) == length // 100 > 1
    report = tg.verify(sort, [(LETTERS,)], engine=None, steps=3)
    assert report.engine == "reference"


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    """The exit code and the lines of `tapegrad run`."""
    with pytest.raises(SystemExit) as ended:
        app(["run", *words, "--target", "emulator"], standalone_mode=True)
    return int(ended.value.code or 0), capsys.readouterr().out.splitlines()


def test_run_prints_output_as_it_comes_and_how_it_ended(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = shown(capsys, "rv32-sort", "--input", "cab")
    assert code == 0
    words = [line.split()[0] for line in lines]
    assert words == [
        *("rv32-sort", "passes", "steps", "input", "output", "weights", "engine"),
        *("prints", "steps", "result", "result", "verified"),
    ]
    assert lines[6] == "engine      fast, chosen for the length of the run"
    assert lines[7] == "prints      abc"
    assert "of SGD, one for each instruction," in lines[8]
    assert lines[9].startswith("result      exit code 0, at ")
    assert lines[10].startswith("result      registers sp 0x100, ")
    assert "agreed at every one of" in lines[11]


@pytest.mark.parametrize("verify", ["--verify", "--no-verify"])
def test_a_program_that_goes_on_ends_at_the_limit(verify: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It writes for ever, and all of it is printed, though the net keeps two bytes."""
    text = ".equ __ram, 64\nla a1, letter\nli a2, 1\nli a7, 64\nagain: li a0, 1\necall\nj again\n"
    text += 'letter: .ascii "x"'
    words = (text, "--steps", "600", "--engine", "fast", verify, "--set", "output=2")
    code, lines = shown(capsys, *words)
    assert code == 3
    (written,) = (line[12:] for line in lines if line.startswith("prints "))
    assert written == "x" * 199  # at the 6th step, the 9th, ... and the 600th
    assert any("stopped at the step limit" in line for line in lines)
    assert not any(line.startswith("result      output") for line in lines)
    code, lines = shown(capsys, *words, "--json")
    found = json.loads("\n".join(lines))["output"]
    assert (code, found["output"], found["written"]) == (3, written, 199)


def test_lines_are_printed_once_and_gaps_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    output = run_command._Output(READY["rv32-sort"].build(), lambda source, state: state)
    for state in ((0, b""), (3, b"one"), (3, b"one"), (8, b"one\ntwo\n"), (20, b"xyz")):
        output(state)
    assert capsys.readouterr().out.split() == ["prints", "one", "prints", "two"]
    output.end((20, b"xyz"))
    assert capsys.readouterr().out == "prints      [9 bytes that were written over]xyz\n"
    output.end(None)


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


@pytest.mark.slow
@pytest.mark.skipif(compiler.compiler() is None, reason="no compiler for RISC-V")
@pytest.mark.parametrize("target", ["emulator", "transformer"])
@pytest.mark.parametrize("name", INPUTS)
def test_examples_to_their_end(name: str, target: str) -> None:
    """Each of them on the last of its inputs, with registers and memory compared now and then."""
    input = INPUTS[name][-1]
    program = read_c((EXAMPLE.parent / f"{name}.c").read_bytes(), name)
    compiled = compile_for(program, target, (input,), 6_000_000)
    outcome: Any
    outcome, report = run_and_verify(compiled, input, steps=6_000_000, engine="fast", every=5_000)
    assert report.agreed, report
    assert report.complete
    expected = run(program, program.start(input)).final
    assert outcome.state.trap == expected.trap == "exit"
    kept = len(outcome.state.output)
    assert outcome.state.output == expected.output[-kept:]
    assert outcome.state.written == expected.written >= kept > 0


@pytest.mark.slow
@pytest.mark.skipif(not TESTS.is_dir(), reason="TAPEGRAD_CORPUS does not point to a corpus")
def test_riscv_tests_at_every_step() -> None:
    """All 50 programs to their end: every bit of registers and memory after every step of SGD. Programs on
    the same machine have the same network; they differ in its cells."""
    networks: dict[Machine, tg.Compiled] = {}
    files = sorted(TESTS.glob("*.elf"))
    assert len(files) == 50
    for file in files:
        program = read_elf(file.read_bytes())
        if program.machine not in networks:
            networks[program.machine] = tg.compile(program, "emulator", steps=2_000, input=1, output=1)
        compiled = networks[program.machine]
        machine = program.with_room(input=1, output=1).machine
        net: Any = compiled.net
        both = Beside(net, net.start(compiled.encode(program.start())))
        last: Any = None
        for steps, last in enumerate(program.run(program.start())):
            both.advance(steps - both.steps)
            expected = np.array(program_learner._bits(machine, machine.contents(last)), bool)
            assert np.array_equal(both.state.weights[net.cells] < 0, expected), (file.name, steps)
        both.spot_check()
        assert (last.trap, last.registers[10], last.registers[17]) == ("exit", 0, 93), file.name
