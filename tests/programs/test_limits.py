"""Programs that cannot fit are refused before anything is loaded, by the numbers of what would be built."""

import subprocess
import sys
from itertools import islice, product
from typing import Any

import numpy as np
import pytest

from tapegrad.errors import Refused
from tapegrad.lowering.program_learner import step_circuit
from tapegrad.lowering.program_machine import program_machine
from tapegrad.programs import Program, limits, read_assembler
from tapegrad.programs.instructions import INSTRUCTIONS
from tapegrad.programs.library import READY
from tapegrad.programs.model import ProgramState
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq
from tapegrad.targets.simplex import build as simplex
from tapegrad.targets.tape.net import MOST_CELLS

LARGE = ".equ __ram, {}\nli a0, 6\nli a7, 93\necall"


def large(ram: int) -> Program:
    return read_assembler(LARGE.format(ram).encode())


def is_refused(program: Program, target: str) -> bool:
    try:
        limits.refuse(program, target, program.start(), {})
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
    assert limits.MOST_ON_TAPE == MOST_CELLS
    assert (limits.MOST_VERTICES, limits.MOST_IN_VERTICES) == (simplex.MOST_VERTICES, simplex.MOST_CELLS)
    depths = [step_circuit(RV32(ram, 1, 1), "").depth for ram in (16, 64)]
    assert limits.RV32_DEPTH == depths[0] < depths[1]


def sweeps(program: Program, state: ProgramState, most: int) -> int:
    """How often the table goes over a word in one instruction, up to `most`; that, too, if it ends there."""
    way, pitch = program_machine(program), program.machine.word + 1
    for steps, configuration in enumerate(islice(way.after.run(way.encode(state)), most * pitch)):
        if steps and (after := way.decode(configuration)) is not None:
            return most if after.trap else steps // pitch
    return most


def test_no_instruction_of_rv32_is_shorter() -> None:
    """Operands in the lowest places, at two places in memory; system calls with nothing to do too."""
    program = Program("", RV32(64, 1, 1), b"")
    found = []
    for word, (name, of) in product((0, 3), INSTRUCTIONS.items()):
        numbers = (0, 63, 64) if name == "ecall" else (0,)
        for number, offset in product(numbers, (0, 4)):
            values = {"imm": offset} if of.form in "ILSBJ" else {}
            memory = bytearray(64)
            memory[4 * word : 4 * word + 4] = of.encoded(**values).to_bytes(4, "little")
            registers = tuple(number if i == 17 else 0 for i in range(32))
            found.append(sweeps(program, ProgramState(4 * word, bytes(memory), registers), 45) - 2 * word)
    assert min(found) == limits.SHORTEST["rv32im"]


@pytest.mark.parametrize("width", [8, 32])
def test_no_instruction_of_subleq_is_shorter(width: int) -> None:
    program = Program("", Subleq(width, 1, 1, width=width), b"")
    found = []
    for at, *words in product((0, 3), (-1, 0, 1), (-1, 0, 1), (-1, 0, 3)):
        memory = [0] * at + [word % (1 << width) for word in words] + [0] * (5 - at)
        data = b"".join(word.to_bytes(width // 8, "little") for word in memory)
        found.append(sweeps(program, ProgramState(at, data, (), input=b"x"), 45) - 2 * at)
    assert min(found) == limits.SHORTEST["subleq"]


@pytest.mark.parametrize("name", ["subleq-hello", "rv32-fibonacci"])
def test_vertices_have_as_many_cells_as_is_said(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Those of the first configuration, which only grow."""
    monkeypatch.setattr(limits, "MOST_VERTICES", 1)
    program = READY[name].build()
    first = program.start(b"some input")
    way = program_machine(program)
    cells = int(np.ptp(simplex._used([way.encode(first)]))) + 1
    with pytest.raises(Refused, match=f"each with {4 * cells:,} cells"):
        limits.refuse(program, "simplex", first, {})


@pytest.mark.parametrize(
    ("target", "fits", "too_large"),
    [("emulator", 1 << 18, (1 << 18) + 4096), ("tape", 508_400, 508_416)],
)
def test_what_fits_is_not_refused(target: str, fits: int, too_large: int) -> None:
    assert not is_refused(large(fits), target)
    assert is_refused(large(too_large), target)


def test_one_instruction_more() -> None:
    """As many instructions as there may be room for on `relu`, and one more."""
    steps = limits.MOST_GATES // (limits.RV32_DEPTH * limits.bits_of_memory(RV32(64, 1, 1)))
    for more in (0, 1):
        text = "nop\n" * ((steps + more) % 2) + f"li a1, {(steps + more - 3 - (steps + more) % 2) // 2}"
        text += "\nnext: addi a1, a1, -1\nbnez a1, next\nli a7, 93\necall"
        program = read_assembler(f".equ __ram, 64\n{text}".encode())
        taken = sum(1 for _ in program.run(program.start())) - 1
        assert abs(taken - steps - more) <= 1
        assert is_refused(program, "relu") is (taken > steps)


@pytest.mark.parametrize("deep", [False, True])
def test_memory_that_nobody_has_chosen(deep: bool) -> None:
    """What the program does may depend on it: this one ends at once where its stack is above, or is not."""
    branch = "bltu" if deep else "bgeu"
    text = f"li a1, 8192\n{branch} sp, a1, end\nli a2, 99\nnext: addi a2, a2, -1\nbnez a2, next\nend: ebreak"
    program = read_assembler(text.encode())
    assert program.any_memory
    assert program.machine.ram < 8192
    assert not is_refused(program, "relu")
    assert not is_refused(program, "simplex")
    assert is_refused(read_assembler(text.replace(branch, "beq").encode()), "simplex")


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
