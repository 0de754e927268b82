"""The compiled interpreter against the plain one."""

import dataclasses
import itertools
import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from tapegrad.errors import InputError
from tapegrad.programs import read_assembler, read_elf
from tapegrad.programs.compiled import BUFFER, run
from tapegrad.programs.instructions import INSTRUCTIONS
from tapegrad.programs.library import READY, random_rv32, random_subleq
from tapegrad.programs.model import Program
from tapegrad.programs.subleq import Subleq
from tests.programs.states import MACHINE, NAMES, after, random_state

TESTS = Path(os.environ.get("TAPEGRAD_CORPUS") or "none") / "programs" / "riscv-tests"


def same_run(program: Program, input: bytes = b"", most: int = 5000) -> None:
    states = list(islice(program.run(program.start(input)), most + 1))
    for steps in {0, min(1, len(states) - 1), len(states) // 2, len(states) - 1}:
        found = run(program, program.start(input), steps)
        assert found.final == states[steps]
        assert found.final.output == states[steps].output
        assert found.steps == steps
        assert found.halted == bool(states[steps].trap)
    found = run(program, program.start(input), most)
    assert found.final == states[-1]
    assert found.steps == len(states) - 1
    again = run(program, found.final, 10)
    assert (again.final == found.final) or not found.halted


@pytest.mark.skipif(not TESTS.is_dir(), reason="TAPEGRAD_CORPUS does not point to a corpus")
def test_riscv_tests():
    files = sorted(TESTS.glob("*.elf"))
    assert len(files) == 50
    for file in files:
        program = read_elf(file.read_bytes())
        *_, last = program.run(program.start())
        assert (last.trap, last.registers[10], last.registers[17]) == ("exit", 0, 93), file.name
        assert run(program, program.start()).final == last, file.name


@pytest.mark.parametrize("name", NAMES)
def test_traps(name):
    """The addresses and targets that unicorn is spared."""
    random = np.random.default_rng(NAMES.index(name) + 1000)
    for _ in range(40):
        state = random_state(random, INSTRUCTIONS[name], wild=True)
        assert run(Program("one", MACHINE, b""), state, 1).final == after(state)


@pytest.mark.parametrize("name", READY)
def test_ready(name):
    entry = READY[name]
    same_run(entry.build(), entry.example)


OPCODES = (0x03, 0x0F, 0x13, 0x17, 0x23, 0x33, 0x37, 0x63, 0x67, 0x6F, 0x73, 0x7B)


@pytest.mark.parametrize("opcode", OPCODES)
def test_what_tells_instructions_apart(opcode):
    """Every third and seventh field that matters, and some that do not, with both signs of the immediate."""
    random = np.random.default_rng(opcode)
    for f3, top, rest in itertools.product(range(8), (0, 1, 2, 0x1F, 0x20, 0x21, 0x60, 0x7F), range(2)):
        state = random_state(random, INSTRUCTIONS["add"])
        code = opcode | f3 << 12 | top << 25 | (int(random.integers(1 << 25)) & 0x1FF8F80) * rest
        memory = bytearray(state.memory)
        memory[state.pc : state.pc + 4] = code.to_bytes(4, "little")
        state = dataclasses.replace(state, memory=bytes(memory))
        assert run(Program("one", MACHINE, b""), state, 1).final == after(state)


@pytest.mark.parametrize("name", ["lb", "lbu", "lh", "lhu", "lw", "sb", "sh", "sw"])
def test_both_ends_of_memory(name):
    """Every address near the end, and around 0, which is near the end of all addresses."""
    for at in (*range(-5, 3), *range(58, 67)):
        text = f".equ __ram, 64\nli t0, {at}\nli t1, 0x8899aabb\n{name} t1, 0(t0)\nebreak"
        same_run(read_assembler(text.encode()))


@pytest.mark.parametrize("number", [62, 63, 64, 65, 93, 94, 95])
@pytest.mark.parametrize("file", [-1, 0, 1, 2, 3])
def test_system_calls(number, file):
    """Every call on every file, with bytes to move, with none, and beyond the end of memory."""
    for at, count in ((40, 3), (40, 0), (62, 3), (-1, 1)):
        text = f"li a7, {number}\nli a0, {file}\nli a1, {at}\nli a2, {count}\necall\nebreak"
        same_run(read_assembler(f".equ __ram, 64\n{text}".encode()), b"xy")


@pytest.mark.parametrize("width", [8, 16, 32])
def test_instructions_of_subleq(width):
    """Addresses outside, at both ends of memory and in it; jumps to every place; results of each sign."""
    size, count = width // 8, 9
    machine = Subleq(count * size, width=width)
    places = (-2, -1, 0, 3, count - 1, count)
    for a, b, c in itertools.product(places, places, (-2, -1, 0, 3, count - 3, count)):
        words = [a, b, c, 1, 0, -1, 5, -7, 2]
        image = b"".join(word.to_bytes(size, "little", signed=True) for word in words)
        for start, given in ((0, b"z"), (0, b""), (count - 3, b"z"), (count - 2, b"")):
            one = Program("one", machine, image, start)
            first = one.start(given)
            assert run(one, first, 1).final == list(islice(one.run(first), 2))[-1]


def test_random_programs():
    for seed in range(40):
        same_run(random_rv32(seed))
    for seed in range(200):
        same_run(random_subleq(seed, width=(8, 16, 32)[seed % 3]), b"abc", 300)


def test_programs_that_write_themselves():
    """Every kind of store replaces an instruction that has run before."""
    for store, at, value in (
        ("sw", 0, 0x00700513),
        ("sh", 2, 0x0070),
        ("sb", 3, 0x00),
        ("sw", 2, 0x8613_0070),  # and half of the next, which becomes addi a2, t0, 1
        ("sh", 3, 0x1300),  # and a byte of the next, which becomes addi tp, t0, 1
    ):
        program = read_assembler(
            f"""
            li t1, 2
    again:  la t2, change
    change: li a0, 0x7f0
            addi t0, t0, 1
            li t3, {value}
            {store} t3, {at}(t2)
            addi t1, t1, -1
            bnez t1, again
            li a7, 93
            ecall
            """.encode()
        )
        same_run(program)
    taken = read_assembler(b"li a7, 63\nla a1, there\nli a2, 4\nthere: li a0, 0\necall\nli a0, 0\nj there")
    same_run(taken, INSTRUCTIONS["ebreak"].encoded().to_bytes(4, "little"))


def test_long_output_and_progress():
    program = read_assembler(
        b"li t0, 70000\nli a2, 1\nli a7, 64\nloop: li a0, 1\nmv a1, zero\necall\naddi t0, t0, -1\n"
        b"bnez t0, loop\nli a7, 93\nli a0, 3\necall"
    )
    pieces, counts = [], []
    whole = run(program, program.start())
    told = run(program, program.start(), output=pieces.append, progress=counts.append)
    assert whole.final.output == b"".join(pieces) == program.image[:1] * 70_000
    assert whole.final.written == told.final.written == 70_000
    assert len(pieces[0]) == BUFFER
    assert counts[-1] == told.steps == whole.steps
    assert told.final == whole.final


def test_states_of_other_machines_are_refused():
    entry, other = READY["rv32-sort"].build(), READY["subleq-echo"].build()
    with pytest.raises(InputError, match="does not fit"):
        run(entry, other.start())
