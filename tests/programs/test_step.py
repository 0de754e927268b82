"""The step over typed values against the plain interpreter: on concrete values, and as a circuit."""

from itertools import islice

import numpy as np
import pytest

from tapegrad.lowering.program_learner import ProgramLearner, _bits, _contents, program_learner, suiting
from tapegrad.programs.instructions import INSTRUCTIONS
from tapegrad.programs.library import READY, random_subleq
from tapegrad.programs.model import Machine, ProgramState
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq
from tests.programs.states import MACHINE, NAMES, RAM, after, random_state


def stepped(state: ProgramState, machine: Machine = MACHINE) -> ProgramState:
    return machine.state(machine.after(machine.contents(state)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(4)
def test_every_instruction(name):
    random = np.random.default_rng(NAMES.index(name))
    for trial in range(12):
        state = random_state(random, INSTRUCTIONS[name], wild=trial % 2 == 1)
        assert stepped(state) == after(state), (name, trial)


def test_words_that_are_no_instructions():
    random = np.random.default_rng(1)
    seen = set()
    for trial in range(120):
        state = random_state(random, INSTRUCTIONS["add"])
        word = int(random.integers(0, 1 << 32)) | (3 if trial % 3 else 0)
        if trial % 3 == 2:  # near an instruction
            word = int.from_bytes(state.memory[state.pc : state.pc + 4], "little")
            word ^= 1 << int(random.integers(32)) ^ 1 << int(random.integers(32))
        memory = bytearray(state.memory)
        memory[state.pc : state.pc + 4] = word.to_bytes(4, "little")
        state = ProgramState(state.pc, bytes(memory), state.registers)
        expected = after(state)
        seen.add(expected.trap)
        assert stepped(state) == expected, hex(word)
    assert {"", "illegal instruction"} <= seen


def call(number: int, file: int, at: int, count: int, **rest) -> ProgramState:
    registers = [0] * 32
    registers[17], registers[10], registers[11], registers[12] = number, file, at, count
    memory = INSTRUCTIONS["ecall"].encoded().to_bytes(4, "little") + bytes(range(4, 256)) * 17
    return ProgramState(0, memory[:RAM], tuple(registers), **rest)


@pytest.mark.parametrize(
    ("state", "trap", "result", "copied"),
    [
        (call(93, 7, 0, 0), "exit", 7, 0),
        (call(94, 7, 0, 0), "exit", 7, 0),
        (call(12, 7, 0, 0), "", 2**32 - 38, 0),
        (call(64, 3, 8, 1), "", 2**32 - 9, 0),
        (call(63, 1, 8, 1), "", 2**32 - 9, 0),
        (call(64, 1, 8, 0), "", 0, 0),
        (call(64, 1, 8, 1), "", 1, 0),
        (call(64, 2, 8, 5), "", 2, 1),
        (call(64, 2, 8, 5, copied=4), "", 5, 0),
        (call(64, 1, RAM - 1, 5), "", 1, 1),
        (call(64, 1, RAM - 1, 5, copied=1), "address outside memory", 1, 1),
        (call(64, 1, RAM, 1), "address outside memory", 1, 0),
        (call(63, 0, 9, 3), "", 0, 0),
        (call(63, 0, 9, 3, input=b"ab"), "", 0, 1),
        (call(63, 0, 9, 3, input=b"ab", taken=1, copied=1), "", 0, 2),
        (call(63, 0, 9, 3, input=b"ab", taken=2, copied=2), "", 2, 0),
        (call(63, 0, 9, 2, input=b"abc", taken=1, copied=1), "", 2, 0),
        (call(63, 0, 2**32 - 1, 2, input=b"abc"), "address outside memory", 0, 0),
    ],
)
def test_system_calls(state, trap, result, copied):
    expected = after(state)
    assert (expected.trap, expected.registers[10], expected.copied) == (trap, result, copied)
    assert expected.pc == (0 if trap or copied else 4)
    assert stepped(state) == expected


def test_read_and_write_move_what_they_should():
    written = after(call(64, 1, 8, 1))
    assert (written.output, written.written) == (bytes([8]), 1)
    read = after(call(63, 0, 9, 3, input=b"ab"))
    assert read.memory[9] == ord("a")
    assert read.taken == 1


def test_traps_leave_everything_else():
    for code, trap in (
        (INSTRUCTIONS["ebreak"].encoded(), "breakpoint"),
        (0, "illegal instruction"),
        (INSTRUCTIONS["jal"].encoded(rd=5, imm=6), "misaligned jump"),
        (INSTRUCTIONS["jalr"].encoded(rd=5, rs1=0, imm=2), "misaligned jump"),
        (INSTRUCTIONS["lw"].encoded(rd=5, rs1=0, imm=-4), "address outside memory"),
    ):
        state = ProgramState(8, bytes(8) + code.to_bytes(4, "little") + bytes(RAM - 12), (0,) * 32)
        found = after(state)
        assert (found.trap, found.pc, found.registers, found.memory) == (trap, 8, (0,) * 32, state.memory)
        assert stepped(state) == found
    beyond = ProgramState(RAM, bytes(RAM), (0,) * 32)
    assert after(beyond).trap == stepped(beyond).trap == "jump outside memory"


@pytest.mark.parametrize(
    ("name", "size"), [("lb", 1), ("lhu", 2), ("lw", 4), ("sb", 1), ("sh", 2), ("sw", 4)]
)
def test_where_memory_ends(name, size):
    for at in range(RAM - 6, RAM + 3):
        code = INSTRUCTIONS[name].encoded(rd=5, rs1=6, rs2=7, imm=0).to_bytes(4, "little")
        registers = tuple({6: at, 7: 0x12345678}.get(number, 0) for number in range(32))
        state = ProgramState(0, code + bytes(RAM - 4), registers)
        found = after(state)
        assert bool(found.trap) == (at + size > RAM)
        assert stepped(state) == found


@pytest.mark.parametrize(
    ("a", "b", "trap"), [(-1, -1, True), (16, 0, True), (0, 16, True), (-2, 0, True), (15, 15, False)]
)
def test_addresses_of_subleq(a, b, trap):
    machine = Subleq(16, input=1, output=1, width=8)
    state = ProgramState(0, bytes([a % 256, b % 256, 5]).ljust(16, b"\0"))
    found = list(islice(machine.run(state), 2))[-1]
    assert found.trap == ("address outside memory" if trap else "")
    assert stepped(state, machine) == found


def test_output_goes_round():
    machine = RV32(RAM, input=1, output=4)
    state = call(64, 1, 8, 7)
    contents = machine.contents(state)
    for expected in islice(machine.run(state), 7):
        assert machine.state(contents) == expected
        contents = machine.after(contents)
    assert machine.state(contents).output == bytes([11, 12, 13, 14])


@pytest.mark.parametrize("seed", range(30))
def test_subleq(seed):
    program = random_subleq(seed).with_room(input=4, output=4)
    machine = program.machine
    contents = machine.contents(program.start(b"ab"))
    for expected in islice(program.run(program.start(b"ab")), 60):
        assert machine.state(contents) == expected
        contents = machine.after(contents)


def circuit_steps(learner: ProgramLearner, states: list[ProgramState]) -> list[ProgramState]:
    """One step of every state, all at once."""
    machine = learner.machine
    rows = np.array([[*_bits(machine, machine.contents(state)), 0, 0] for state in states], bool)
    *_, outputs = learner.circuit.run(rows)
    return [machine.state(_contents(machine, row[2:].astype(int).tolist())) for row in outputs]


def test_circuit_of_rv32():
    """Every instruction, in memories that are not a power of two too."""
    machine = RV32(RAM - 48, input=4, output=4)
    learner = ProgramLearner(machine, "rv32")
    random = np.random.default_rng(5)
    states = []
    for name in NAMES:
        for trial in range(8):
            state = random_state(random, INSTRUCTIONS[name], wild=trial % 2 == 1)
            states.append(ProgramState(state.pc % machine.ram, state.memory[: machine.ram], state.registers))
    stopped = ProgramState(0, states[0].memory, states[0].registers, trap="exit")
    found = circuit_steps(learner, [*states, stopped])
    for state, seen in zip(states, found, strict=False):
        assert seen == after(state, machine)
    assert found[-1] == stopped


def test_circuit_of_subleq():
    for width in (8, 16):
        learner = ProgramLearner(Subleq(16 * width // 8, input=4, output=4, width=width), "subleq")
        for seed in range(10):
            program = random_subleq(seed, width=width)
            states = list(islice(program.run(program.start(b"ab")), 40))
            expected = [list(islice(program.run(state), 2))[-1] for state in states]
            assert circuit_steps(learner, states) == expected


@pytest.mark.parametrize("name", READY)
def test_learner(name):
    entry = READY[name]
    program = entry.build()
    first = program.start(entry.example)
    rewriting = program_learner(program, **suiting(program, first, 10_000))
    states = [rewriting.decode(state) for state in rewriting.after.run(rewriting.encode(first))]
    assert [state for state in states if state is not None] == list(program.run(first))
