"""The plain interpreter and the compiled one in lockstep with unicorn, an emulator by others."""

import numpy as np
import pytest

from tapegrad.programs.compiled import run
from tapegrad.programs.instructions import INSTRUCTIONS
from tapegrad.programs.library import random_rv32
from tapegrad.programs.model import Program, ProgramState
from tests.programs.states import MACHINE, NAMES, after, random_state

unicorn = pytest.importorskip("unicorn")
from unicorn import riscv_const as const  # noqa: E402

X = [getattr(const, f"UC_RISCV_REG_X{i}") for i in range(32)]


class Unicorn:
    """A processor with the memory of a state."""

    def __init__(self, state: ProgramState) -> None:
        self.uc = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
        self.size = len(state.memory)
        self.uc.mem_map(0, -(-self.size // 4096) * 4096)
        self.set(state)

    def set(self, state: ProgramState) -> None:
        self.uc.mem_write(0, state.memory)
        for number, value in zip(X[1:], state.registers[1:], strict=True):
            self.uc.reg_write(number, value)
        self.uc.reg_write(const.UC_RISCV_REG_PC, state.pc)
        self.uc.ctl_flush_tb()

    def step(self) -> None:
        self.uc.emu_start(self.uc.reg_read(const.UC_RISCV_REG_PC), 0xFFFF_FFF0, count=1)

    def seen(self) -> tuple[int, tuple[int, ...], bytes]:
        registers = tuple(self.uc.reg_read(number) & 0xFFFF_FFFF for number in X)
        pc = self.uc.reg_read(const.UC_RISCV_REG_PC) & 0xFFFF_FFFF
        return pc, registers, bytes(self.uc.mem_read(0, self.size))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("ecall", "ebreak")])
def test_every_instruction(name):
    random = np.random.default_rng(NAMES.index(name))
    for trial in range(60):
        state = random_state(random, INSTRUCTIONS[name])
        other = Unicorn(state)
        other.step()
        expected = other.seen()
        found = after(state)
        assert (found.pc, found.registers, found.memory) == expected, (name, trial)
        assert not found.trap
        fast = run(Program("one", MACHINE, b""), state, 1).final
        assert (fast.pc, fast.registers, fast.memory, fast.trap) == (*expected, ""), (name, trial)


@pytest.mark.parametrize("seed", range(12))
def test_sequences(seed):
    program = random_rv32(seed, instructions=200, ram=4096)
    first, *states, last = program.run(program.start())
    other = Unicorn(first)
    for number, state in enumerate(states):
        other.step()
        assert (state.pc, state.registers, state.memory) == other.seen(), number
    assert last.trap == "exit"
    assert len(states) > 100
