"""The interpreters for long runs: loops in machine code that end where the plain interpreters end.

An instruction of RV32IM is decoded when it is first reached, into an operation, its registers and its
immediate. A store forgets what was decoded of the words it touches, so that a program may write its own
instructions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from tapegrad._jit import njit
from tapegrad.errors import InputError
from tapegrad.programs.model import COUNTED, Machine, Program, ProgramState
from tapegrad.programs.rv32 import BREAKPOINT, EXIT, ILLEGAL, JUMP_OUTSIDE, MISALIGNED, OUTSIDE, RV32
from tapegrad.programs.subleq import END, Subleq
from tapegrad.programs.subleq import JUMP_OUTSIDE as SUBLEQ_JUMP_OUTSIDE
from tapegrad.programs.subleq import OUTSIDE as SUBLEQ_OUTSIDE

# What the loops share with Python: an array of numbers, and the bytes that were written since the last look.

PC, TRAP, COPIED, TAKEN, WRITTEN = range(5)

# The operations. Those that end in I take the immediate for their second operand.

UNKNOWN, WRONG, ADD, ADDI, SUB, LW, SW, BEQ, BNE, BLT, BGE, BLTU, BGEU, JAL, JALR, LUI = range(16)
SLL, SLLI, SRL, SRLI, SRA, SRAI, AND, ANDI, OR, ORI, XOR, XORI, SLT, SLTI, SLTU, SLTUI = range(16, 32)
LB, LBU, LH, LHU, SB, SH, MUL, MULH, MULHSU, MULHU, DIV, REM, DIVU, REMU = range(32, 46)
FENCE, ECALL, EBREAK = range(46, 49)
NOWHERE = 32
"""The register that takes what is written to x0."""


@njit(nogil=True)
def decode(code, pc):  # pragma: no cover
    """Operation, registers and immediate. Jumps have their target for an immediate, and `auipc` its sum, so
    that it is a `lui`."""
    opcode, f3, top = code & 0x7F, code >> 12 & 7, code >> 25 & 127
    rd, rs1, rs2 = code >> 7 & 31, code >> 15 & 31, code >> 20 & 31
    code = np.int64(np.int32(code))  # so that shifts keep the sign
    imm = code >> 20
    op = WRONG
    if opcode == 0x33 and top == 0:
        op = (ADD, SLL, SLT, SLTU, XOR, SRL, OR, AND)[f3]
    elif opcode == 0x33 and top == 1:
        op = (MUL, MULH, MULHSU, MULHU, DIV, DIVU, REM, REMU)[f3]
    elif opcode == 0x33 and top == 0x20 and f3 == 0:
        op = SUB
    elif opcode == 0x33 and top == 0x20 and f3 == 5:
        op = SRA
    elif opcode == 0x13:
        if f3 == 1:
            op = SLLI if top == 0 else WRONG
            imm &= 31
        elif f3 == 5:
            op = SRLI if top == 0 else SRAI if top == 0x20 else WRONG
            imm &= 31
        else:
            op = (ADDI, WRONG, SLTI, SLTUI, XORI, WRONG, ORI, ANDI)[f3]
    elif opcode == 0x03:
        op = (LB, LH, LW, WRONG, LBU, LHU, WRONG, WRONG)[f3]
    elif opcode == 0x23:
        op = (SB, SH, SW, WRONG, WRONG, WRONG, WRONG, WRONG)[f3]
        imm = code >> 25 << 5 | code >> 7 & 31
    elif opcode == 0x63:
        op = (BEQ, BNE, WRONG, WRONG, BLT, BGE, BLTU, BGEU)[f3]
        imm = code >> 31 << 12 | (code >> 7 & 1) << 11 | (code >> 25 & 63) << 5 | (code >> 8 & 15) << 1
        imm += pc
    elif opcode == 0x37:
        op, imm = LUI, code >> 12 << 12
    elif opcode == 0x17:
        op, imm = LUI, (code >> 12 << 12) + pc
    elif opcode == 0x6F:
        op = JAL
        imm = code >> 31 << 20 | (code >> 12 & 255) << 12 | (code >> 20 & 1) << 11 | (code >> 21 & 1023) << 1
        imm += pc
    elif opcode == 0x67 and f3 == 0:
        op = JALR
    elif opcode == 0x0F and f3 < 2:
        op = FENCE
    elif code == 0x73:
        op = ECALL
    elif code == 0x100073:
        op = EBREAK
    return op, rd if rd else NOWHERE, rs1, rs2, np.int32(np.uint32(imm & 0xFFFFFFFF))


@njit(nogil=True)
def rv32_steps(x, ram, words, ops, fields, imms, numbers, arriving, leaving, limit):  # pragma: no cover
    """Up to `limit` steps; how many it took, and how many bytes it wrote to `leaving`. It stops early when
    that is full. Registers are signed words, and `ram` and `words` the same memory."""
    pc = np.uint32(numbers[PC])
    copied, taken = numbers[COPIED], numbers[TAKEN]
    size = np.uint32(len(ram))
    written = 0
    trap = 0
    steps = 0
    while steps < limit:
        if pc >= size:
            trap = JUMP_OUTSIDE
            steps += 1
            break
        index = pc >> np.uint32(2)
        op = ops[index]
        if op == UNKNOWN:
            op, rd, rs1, rs2, imm = decode(np.int64(words[index]), np.int64(pc))
            fields[index] = np.uint32(rd | rs1 << 8 | rs2 << 16)
            imms[index] = imm
            ops[index] = op
        packed = fields[index]
        rd = packed & np.uint32(255)
        a = x[packed >> np.uint32(8) & np.uint32(255)]
        second = packed >> np.uint32(16)
        imm = imms[index]
        steps += 1
        if op == ADDI:
            x[rd] = a + imm
        elif op == ADD:
            x[rd] = a + x[second]
        elif op == LW:
            at = np.uint32(a + imm)
            if at > size - np.uint32(4):
                trap = OUTSIDE
                break
            if at & np.uint32(3):
                low, shift = words[at >> np.uint32(2)], (at & np.uint32(3)) << np.uint32(3)
                high = words[(at >> np.uint32(2)) + np.uint32(1)]
                x[rd] = np.int32(np.uint32(low >> shift | high << (np.uint32(32) - shift)))
            else:
                x[rd] = np.int32(words[at >> np.uint32(2)])
        elif op == SW:
            at = np.uint32(a + imm)
            if at > size - np.uint32(4):
                trap = OUTSIDE
                break
            value = np.uint32(x[second])
            ops[at >> np.uint32(2)] = UNKNOWN
            if at & np.uint32(3):
                ops[(at >> np.uint32(2)) + np.uint32(1)] = UNKNOWN
                for i in range(4):
                    ram[at + np.uint32(i)] = np.uint8(value >> np.uint32(8 * i) & np.uint32(255))
            else:
                words[at >> np.uint32(2)] = value
        elif BEQ <= op <= BGEU:
            b = x[second]
            if op == BEQ:
                takes = a == b
            elif op == BNE:
                takes = a != b
            elif op == BLT:
                takes = a < b
            elif op == BGE:
                takes = a >= b
            elif op == BLTU:
                takes = np.uint32(a) < np.uint32(b)
            else:
                takes = np.uint32(a) >= np.uint32(b)
            if takes:
                if imm & 2:
                    trap = MISALIGNED
                    break
                pc = np.uint32(imm)
                continue
        elif op == JAL:
            if imm & 2:
                trap = MISALIGNED
                break
            x[rd] = np.int32(pc + np.uint32(4))
            pc = np.uint32(imm)
            continue
        elif op == JALR:
            target = np.uint32(a + imm) & np.uint32(0xFFFFFFFE)
            if target & np.uint32(2):
                trap = MISALIGNED
                break
            x[rd] = np.int32(pc + np.uint32(4))
            pc = target
            continue
        elif op == LUI:
            x[rd] = imm
        elif op == SUB:
            x[rd] = a - x[second]
        elif op == SLLI:
            x[rd] = a << imm
        elif op == SRLI:
            x[rd] = np.int32(np.uint32(a) >> np.uint32(imm))
        elif op == SRAI:
            x[rd] = a >> imm
        elif op == ANDI:
            x[rd] = a & imm
        elif op == ORI:
            x[rd] = a | imm
        elif op == XORI:
            x[rd] = a ^ imm
        elif op == SLTI:
            x[rd] = np.int32(a < imm)
        elif op == SLTUI:
            x[rd] = np.int32(np.uint32(a) < np.uint32(imm))
        elif op == AND:
            x[rd] = a & x[second]
        elif op == OR:
            x[rd] = a | x[second]
        elif op == XOR:
            x[rd] = a ^ x[second]
        elif op == SLL:
            x[rd] = a << (x[second] & np.int32(31))
        elif op == SRL:
            x[rd] = np.int32(np.uint32(a) >> np.uint32(x[second] & np.int32(31)))
        elif op == SRA:
            x[rd] = a >> (x[second] & np.int32(31))
        elif op == SLT:
            x[rd] = np.int32(a < x[second])
        elif op == SLTU:
            x[rd] = np.int32(np.uint32(a) < np.uint32(x[second]))
        elif LB <= op <= LBU:
            at = np.uint32(a + imm)
            if at >= size:
                trap = OUTSIDE
                break
            x[rd] = np.int32(np.int8(ram[at])) if op == LB else np.int32(ram[at])
        elif LH <= op <= LHU:
            at = np.uint32(a + imm)
            if at > size - np.uint32(2):
                trap = OUTSIDE
                break
            half = np.int32(ram[at]) | np.int32(ram[at + np.uint32(1)]) << np.int32(8)
            x[rd] = np.int32(np.int16(half)) if op == LH else half
        elif op == SB:
            at = np.uint32(a + imm)
            if at >= size:
                trap = OUTSIDE
                break
            ops[at >> np.uint32(2)] = UNKNOWN
            ram[at] = np.uint8(x[second] & np.int32(255))
        elif op == SH:
            at = np.uint32(a + imm)
            if at > size - np.uint32(2):
                trap = OUTSIDE
                break
            ops[at >> np.uint32(2)] = UNKNOWN
            ops[(at + np.uint32(1)) >> np.uint32(2)] = UNKNOWN
            ram[at] = np.uint8(x[second] & np.int32(255))
            ram[at + np.uint32(1)] = np.uint8(x[second] >> np.int32(8) & np.int32(255))
        elif op == MUL:
            x[rd] = np.int32(np.int64(a) * np.int64(x[second]) & np.int64(0xFFFFFFFF))
        elif op == MULH:
            x[rd] = np.int32(np.int64(a) * np.int64(x[second]) >> np.int64(32))
        elif op == MULHSU:
            x[rd] = np.int32(np.int64(a) * np.int64(np.uint32(x[second])) >> np.int64(32))
        elif op == MULHU:
            product = np.uint64(np.uint32(a)) * np.uint64(np.uint32(x[second]))
            x[rd] = np.int32(np.uint32(product >> np.uint64(32)))
        elif DIVU <= op <= REMU:
            n, d = np.uint32(a), np.uint32(x[second])
            quotient = n // d if d != 0 else np.uint32(0xFFFFFFFF)
            x[rd] = np.int32(quotient) if op == DIVU else np.int32(np.uint32(n - quotient * d))
        elif DIV <= op <= REM:
            n64, d64 = np.int64(a), np.int64(x[second])
            quotient64 = np.int64(-1)
            if d64 != 0:  # rounded towards 0
                quotient64 = abs(n64) // abs(d64)
                if (n64 < 0) != (d64 < 0):
                    quotient64 = -quotient64
            value64 = quotient64 if op == DIV else n64 - quotient64 * d64
            x[rd] = np.int32(value64 & np.int64(0xFFFFFFFF))
        elif op == ECALL:
            number, file = x[17], x[10]
            count, at = np.uint32(x[12]), np.uint32(x[11]) + np.uint32(copied)
            if number == 93 or number == 94:
                trap = EXIT
                break
            if number != 63 and number != 64:
                x[10] = -38
            elif not (file == 0 if number == 63 else file == 1 or file == 2):
                x[10] = -9
            elif count == 0 or (number == 63 and taken == len(arriving)):
                x[10] = np.int32(copied)
                copied = 0
            else:
                if at >= size:
                    trap = OUTSIDE
                    break
                if number == 64:
                    leaving[written] = ram[at]
                    written += 1
                else:
                    ops[at >> np.uint32(2)] = UNKNOWN
                    ram[at] = arriving[taken]
                    taken += 1
                copied += 1
                if copied == np.int64(count):
                    x[10] = np.int32(count)
                    copied = 0
                    pc += np.uint32(4)
                if written == len(leaving):
                    break
                continue
        elif op == EBREAK:
            trap = BREAKPOINT
            break
        elif op == WRONG:
            trap = ILLEGAL
            break
        pc += np.uint32(4)
    numbers[PC], numbers[TRAP], numbers[COPIED], numbers[TAKEN] = pc, trap, copied, taken
    return steps, written


@njit(nogil=True)
def subleq_steps(words, numbers, arriving, leaving, limit):  # pragma: no cover
    """Up to `limit` steps, as above; words are signed."""
    pc, taken, size = numbers[PC], numbers[TAKEN], len(words)
    written = 0
    trap = 0
    steps = 0
    while steps < limit:
        steps += 1
        if pc + 2 >= size:
            trap = SUBLEQ_JUMP_OUTSIDE
            break
        a, b, c = np.int64(words[pc]), np.int64(words[pc + 1]), np.int64(words[pc + 2])
        if 0 <= a < size and 0 <= b < size:
            words[b] -= words[a]
            if words[b] <= 0:
                if c < 0:
                    trap = END
                    break
                pc = c
                continue
        elif a == -1 and 0 <= b < size:
            if taken < len(arriving):
                words[b] = arriving[taken]
                taken += 1
            else:
                words[b] = -1
        elif b == -1 and 0 <= a < size:
            leaving[written] = np.uint8(words[a] & 255)
            written += 1
            if written == len(leaving):
                pc += 3
                break
        else:
            trap = SUBLEQ_OUTSIDE
            break
        pc += 3
    numbers[PC], numbers[TRAP], numbers[TAKEN] = pc, trap, taken
    return steps, written


# The state of a run as arrays.


class _Loop:
    """Memory, devices and the numbers that the loops keep."""

    def __init__(self, state: ProgramState) -> None:
        self.ram = np.frombuffer(state.memory, np.uint8).copy()
        self.arriving = np.frombuffer(state.input, np.uint8)
        self.leaving = np.zeros(BUFFER, np.uint8)
        self.numbers = np.array([state.pc, 0, state.copied, state.taken, state.written], np.int64)

    def registers(self) -> tuple[int, ...]:
        return ()

    def extra(self) -> Mapping[str, int | tuple[int, ...]]:
        return {}

    def advance(self, limit: int) -> tuple[int, int]:
        """Up to so many steps: how many, and how many bytes wait in `leaving`."""
        raise NotImplementedError


class _RV32Loop(_Loop):
    def __init__(self, state: ProgramState) -> None:
        super().__init__(state)
        count = len(self.ram) // 4
        self.x = np.zeros(NOWHERE + 1, np.int32)
        self.x[:32] = np.array(state.registers, np.uint32).view(np.int32)
        self.decoded = np.zeros(count, np.uint8), np.zeros(count, np.uint32), np.zeros(count, np.int32)

    def registers(self) -> tuple[int, ...]:
        return tuple(self.x[:32].view(np.uint32).tolist())

    def advance(self, limit: int) -> tuple[int, int]:
        words = self.ram.view(np.uint32)
        return rv32_steps(
            self.x, self.ram, words, *self.decoded, self.numbers, self.arriving, self.leaving, limit
        )


class _SubleqLoop(_Loop):
    def __init__(self, state: ProgramState, width: int) -> None:
        super().__init__(state)
        self.words = self.ram.view(f"int{width}")

    def advance(self, limit: int) -> tuple[int, int]:
        return subleq_steps(self.words, self.numbers, self.arriving, self.leaving, limit)


class _PlainLoop(_Loop):
    """A machine without a loop of its own, by its plain interpreter."""

    def __init__(self, machine: Machine, start: ProgramState) -> None:
        super().__init__(start)
        self.machine, self.state = machine, replace(start, output=b"")

    def registers(self) -> tuple[int, ...]:
        return self.state.registers

    def advance(self, limit: int) -> tuple[int, int]:
        before, taken = self.state.written, -1
        for state in islice(self.machine.run(replace(self.state, output=b"")), min(limit, AT_ONCE) + 1):
            self.state, taken = state, taken + 1
        state, traps = self.state, self.machine.traps
        trap = traps.index(state.trap) + 1 if state.trap else 0
        self.ram = np.frombuffer(state.memory, np.uint8)
        self.numbers[:] = state.pc, trap, state.copied, state.taken, state.written
        self.leaving[: len(state.output)] = np.frombuffer(state.output, np.uint8)
        return taken, state.written - before

    def extra(self) -> Mapping[str, int | tuple[int, ...]]:
        return self.state.extra


def places_of(start: ProgramState, most: int) -> tuple[set[int], bool]:
    """Of an RV32IM program, the addresses of the instructions that a run takes within so many steps, except
    where it has written over them; and whether it has ended."""
    loop = _RV32Loop(start)
    while most > 0 and not loop.numbers[TRAP]:
        most -= loop.advance(most)[0]
    return set((np.flatnonzero(loop.decoded[0] != UNKNOWN) * 4).tolist()), bool(loop.numbers[TRAP])


CHUNK = 1 << 24
"""Steps between two looks at the keyboard and two reports of progress."""
BUFFER = 1 << 16
"""Bytes that are written between two looks."""
AT_ONCE = 1 << 10
"""Steps of a plain interpreter between two looks."""


@dataclass(frozen=True)
class Run:
    """How a run ended: the last state, the number of steps to it, and whether the program stopped there or
    was cut off."""

    final: ProgramState
    steps: int
    halted: bool


def run(
    program: Program,
    start: ProgramState,
    max_steps: int | None = None,
    *,
    progress: Callable[[int], None] | None = None,
    output: Callable[[bytes], None] | None = None,
) -> Run:
    """Runs until the program stops or has taken `max_steps` steps; None stands for no limit. `progress` is
    told the number of steps so far, several times a second, and `output` what was written since it was told
    last: the final state then keeps none of it."""
    machine = program.machine
    if len(start.memory) != machine.ram or len(start.registers) != len(machine.first):
        raise InputError(f"the state does not fit the machine of the program {program.name!r}")
    if isinstance(machine, RV32):
        loop: _Loop = _RV32Loop(start)
    elif isinstance(machine, Subleq):
        loop = _SubleqLoop(start, machine.width)
    else:
        loop = _PlainLoop(machine, start)
    steps, written = 0, bytearray(start.output)
    halted = bool(start.trap)
    total = start.written
    while not halted and (max_steps is None or steps < max_steps):
        taken, count = loop.advance(CHUNK if max_steps is None else min(CHUNK, max_steps - steps))
        steps += taken
        total += count
        halted = bool(loop.numbers[TRAP])
        new = loop.leaving[:count].tobytes()
        if output is None:
            written += new
        elif new:
            output(new)
        if progress is not None:
            progress(steps)
    pc, trap, copied, read, _ = (int(number) for number in loop.numbers)
    final = ProgramState(
        pc=pc,
        memory=loop.ram.tobytes(),
        registers=loop.registers(),
        trap=machine.traps[trap - 1] if trap else start.trap,
        input=start.input,
        taken=read,
        copied=copied,
        output=bytes(written),
        written=total % (1 << COUNTED),
        extra=loop.extra(),
    )
    return Run(final, steps, halted)
