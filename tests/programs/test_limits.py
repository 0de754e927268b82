"""Programs that cannot fit are refused before anything is loaded, by the numbers of what would be built."""

import subprocess
import sys
from typing import Any

import pytest

from tapegrad.errors import Refused
from tapegrad.lowering.program_learner import step_circuit
from tapegrad.lowering.program_machine import program_machine
from tapegrad.programs import Program, limits, read_assembler, read_subleq
from tapegrad.programs.library import READY
from tapegrad.programs.rv32 import RV32
from tapegrad.targets.simplex import build as simplex
from tapegrad.targets.tape import target as tape

LARGE = ".equ __ram, {}\nli a0, 6\nli a7, 93\necall"


def large(ram: int) -> Program:
    return read_assembler(LARGE.format(ram).encode())


def is_refused(program: Program, target: str) -> bool:
    try:
        limits.refuse(program, target, program.start())
    except Refused:
        return True
    return False


@pytest.mark.parametrize("name", ["subleq-hello", "rv32-sort"])
def test_numbers_are_those_of_the_tables(name: str) -> None:
    program = READY[name].build()
    table: Any = program_machine(program).after
    kind = program.machine.kind
    assert limits.TABLES[kind] == (table.name, len(table.states), len(table.rules))
    assert table.tapes == limits.TAPES


def test_numbers_are_those_of_the_targets() -> None:
    assert limits.MOST_ON_TAPE == tape.MOST_CELLS
    assert (limits.MOST_VERTICES, limits.MOST_IN_VERTICES) == (simplex.MOST_VERTICES, simplex.MOST_CELLS)
    depths = [step_circuit(RV32(ram, 1, 1), "").depth for ram in (16, 64)]
    assert limits.RV32_DEPTH == depths[0] < depths[1]


def test_an_instruction_takes_as_many_steps_as_its_address_has_bits() -> None:
    """The shortest there is: a jump to itself, once, in the smallest memory."""
    for program in (
        read_subleq(b"subleq 8 3\n0 0 0"),
        read_assembler(b".equ __ram, 16\nfence\nj 4"),
    ):
        way = program_machine(program)
        steps = 0
        for steps, state in enumerate(way.after.run(way.encode(program.start()))):
            if steps and way.decode(state) is not None:
                break
        assert steps > program.machine.word + 1


@pytest.mark.parametrize(
    ("target", "fits", "too_large"),
    [("emulator", 1 << 18, (1 << 18) + 4096), ("tape", 508_400, 508_416)],
)
def test_what_fits_is_not_refused(target: str, fits: int, too_large: int) -> None:
    assert not is_refused(large(fits), target)
    assert is_refused(large(too_large), target)


@pytest.mark.parametrize(
    ("target", "steps"),
    [
        ("relu", limits.MOST_GATES // (limits.RV32_DEPTH * limits.bits_of_memory(RV32(64, 1, 1)))),
        ("simplex", limits.MOST_IN_VERTICES // (4 * 16 * 33) // 33),
    ],
)
def test_one_instruction_more(target: str, steps: int) -> None:
    """As many instructions as there may be room for, and one more."""
    for more in (0, 1):
        text = "nop\n" * ((steps + more) % 2) + f"li a1, {(steps + more - 3 - (steps + more) % 2) // 2}"
        text += "\nnext: addi a1, a1, -1\nbnez a1, next\nli a7, 93\necall"
        program = read_assembler(f".equ __ram, 64\n{text}".encode())
        taken = sum(1 for _ in program.run(program.start())) - 1
        assert abs(taken - steps - more) <= 1
        assert is_refused(program, target) is (taken > steps)


def test_refused_without_loading_what_takes_time() -> None:
    code = (
        "import sys, tapegrad\nfrom tapegrad._compile import compile_for\n"
        "from tapegrad.errors import Refused\n"
        f"program = tapegrad.read({LARGE.format(1 << 20)!r})\n"
        "for target in ('emulator', 'tape', 'relu', 'rcnn', 'simplex'):\n"
        "    try: compile_for(program, target, (b'',), 100_000)\n"
        "    except Refused: print(target)\n"
        "print(*sorted({'jax', 'numba', 'equinox'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["emulator", "tape", "relu", "rcnn", "simplex"]
