"""Random instructions in random states, and one step by the plain interpreter."""

from itertools import islice

import numpy as np

from tapegrad.programs.instructions import INSTRUCTIONS, Instruction
from tapegrad.programs.model import ProgramState
from tapegrad.programs.rv32 import RV32

RAM = 1024
MACHINE = RV32(RAM, input=4, output=4)
EDGES = (0, 1, 2, 31, 32, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x8000_0001, 0x0000_FFFF, 0xFFFF_8000)


def random_state(random: np.random.Generator, of: Instruction, *, wild: bool = False) -> ProgramState:
    """A state whose next instruction is one of this kind. Unless it is `wild`, loads, stores and jumps stay
    inside the memory, and jumps are aligned."""
    registers = [_word(random) for _ in range(32)]
    registers[0] = 0
    pc = 4 * int(random.integers(64, RAM // 4 - 64))
    rd, rs1, rs2 = (int(n) for n in random.integers(0, 32, 3))
    imm = int(random.integers(-2048, 2048))
    if of.form == "H":
        imm &= 31
    elif of.form == "U":
        imm = int(random.integers(0, 1 << 20))
    elif of.form in "BJ":
        imm = 4 * int(random.integers(-64, 64))
        if wild:
            imm += 2 * int(random.integers(0, 2))
        if of.form == "B" and random.random() < 0.3:
            registers[rs2] = registers[rs1]
    elif of.form in "LS" and not wild:
        rs1 = rs1 or 1
        target = int(random.integers(0, RAM - 4))
        registers[rs1] = (target & ~3 if of.name == "jalr" else target) - imm & 0xFFFF_FFFF
    elif of.form in "LS" and rs1 and random.random() < 0.7:
        registers[rs1] = int(random.integers(RAM - 8, RAM + 8)) - imm & 0xFFFF_FFFF
    memory = bytearray(random.bytes(RAM))
    code = of.encoded(rd=rd, rs1=rs1, rs2=rs2, imm=imm)
    memory[pc : pc + 4] = code.to_bytes(4, "little")
    registers[0] = 0
    return ProgramState(pc, bytes(memory), tuple(registers))


def _word(random: np.random.Generator) -> int:
    if random.random() < 0.4:
        return EDGES[int(random.integers(len(EDGES)))]
    return int(random.integers(0, 1 << 32))


def after(state: ProgramState, machine: RV32 = MACHINE) -> ProgramState:
    """The next state, by the plain interpreter."""
    return list(islice(machine.run(state), 2))[-1]


NAMES = tuple(INSTRUCTIONS)
