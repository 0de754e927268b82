"""Program to learner: registers and memories are the memory, and each sample is a step.

A port is a bundle of word lines. A decoder gives a line for each word, of which the one at the address is 1.
To read, every bit of a word is ANDed with its line, and the words are ORed. To write, the bits that change
are ANDed with every line, and each cell is flipped by what comes out. So a word costs two gates a bit for
each port that reads it and one for each that writes, and where an address changes, two lines change and not
half of the memory.

A port of two words in a row reads words with even and with odd addresses apart, for one of each is asked for:
the even one at half of the address, rounded up, the odd one at half of it, rounded down. It costs no more
than a port of one word.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder, Wire, copied
from tapegrad.circuits.model import Bits, Circuit
from tapegrad.circuits.types import UInt
from tapegrad.circuits.values import IntValue
from tapegrad.errors import Refused
from tapegrad.learners.model import CircuitLearner, LearnerState, Memory, Response
from tapegrad.programs.compiled import run
from tapegrad.programs.instruction_sets import as_saved
from tapegrad.programs.limits import bits_of_memory, refuse_many_cells, refuse_many_gates
from tapegrad.programs.model import Contents, Machine, Program, ProgramState, Read, Write, follow
from tapegrad.programs.recording import Recorded
from tapegrad.source import Rewriting

Word = Sequence[Wire]

MOST_OUTPUT = 1024
"""Bytes of output that are kept unless more are asked for."""


class Cells:
    """The memories of a machine on wires, while a step is taken."""

    def __init__(self, build: CircuitBuilder, memories: dict[str, list[list[Wire]]]) -> None:
        self.build, self.memories = build, memories

    def read(self, port: Read) -> IntValue:
        """The words that a port reads."""
        held = self.memories[port.memory]
        if port.span == 1:
            return _value(self.build, self._line_read(held, self._lines(port.address, len(held))))
        even, odd = (self._line_read(held[side::2], lines) for side, lines in enumerate(self._pair(port)))
        swapped = self._address(port.address)[0]
        low = self._switched(swapped, odd, even)
        high = self._switched(swapped, even, odd)
        return _value(self.build, [*low, *high])

    def write(self, port: Write) -> None:
        """Flips the bits that a port changes."""
        held, change = self.memories[port.memory], list(port.change.wires(self.build))
        if port.span == 1:
            self._flip(held, range(len(held)), self._lines(port.address, len(held)), change)
            return
        width = len(held[0])
        swapped, halves = self._address(port.address)[0], (change[:width], change[width:])
        for side, lines in enumerate(self._pair(Read(port.memory, port.address, 2))):
            own, other = halves if side == 0 else halves[::-1]
            self._flip(held, range(side, len(held), 2), lines, self._switched(swapped, other, own))

    def _address(self, address: IntValue) -> Word:
        return list(address.wires(self.build))

    def _lines(self, address: IntValue, count: int) -> list[Wire]:
        return words.decode(self.build, self._address(address), count)

    def _pair(self, port: Read) -> tuple[list[Wire], list[Wire]]:
        """Lines of the even and of the odd words: those at (address + 1) / 2 and at address / 2."""
        count = len(self.memories[port.memory])
        above = (port.address.to(UInt(port.address.type.width + 1)) + 1) >> 1
        below = port.address >> 1
        return self._lines(above, (count + 1) // 2), self._lines(below, count // 2)

    def _line_read(self, held: Sequence[Word], lines: Sequence[Wire]) -> list[Wire]:
        build = self.build
        return (
            [
                words.any_of(
                    build, [build.and_(line, word[bit]) for line, word in zip(lines, held, strict=True)]
                )
                for bit in range(len(held[0]))
            ]
            if held
            else []
        )

    def _flip(self, held: list[list[Wire]], which: range, lines: Sequence[Wire], change: Word) -> None:
        build = self.build
        for number, line in zip(which, lines, strict=True):
            held[number] = [
                build.xor(bit, build.and_(line, flips))
                for bit, flips in zip(held[number], change, strict=True)
            ]

    def _switched(self, flag: Wire, a: Word, b: Word) -> list[Wire]:
        """`a` where the flag is 1, else `b`."""
        build = self.build
        other = build.not_(flag)
        return [build.or_(build.and_(flag, x), build.and_(other, y)) for x, y in zip(a, b, strict=True)]


def _value(build: CircuitBuilder, wires: Sequence[Wire]) -> IntValue:
    return IntValue(UInt(len(wires)), list(wires), build)


class ProgramLearner(CircuitLearner):
    """The learner whose memory is that of a machine, and which takes a step for each sample, until the
    program stops. Then it answers whether that was at its end, as it should be. Its interpreter is the
    machine's."""

    def __init__(self, machine: Machine, name: str) -> None:
        super().__init__(step_circuit(machine, name), inputs=0)
        self.machine = machine

    def respond(self, memory: Memory, x: Sequence[int], random: int, guess: int) -> Response:
        state = self.machine.state(_contents(self.machine, memory))
        if state.trap:
            return Response(int(state.trap == self.machine.traps[0]), 1, memory)
        _, after = islice(self.machine.run(state), 2)
        return Response(guess, 0, _bits(self.machine, self.machine.contents(after)))


def step_circuit(machine: Machine, name: str) -> Circuit:
    """One step of a machine: the circuit of its learner."""
    machine, build = as_saved(machine), CircuitBuilder()
    registers = {
        register: [build.input(f"{register}[{bit}]") for bit in range(of.width)]
        for register, of in machine.registers.items()
    }
    memories = {
        memory: [[build.input(f"{memory}[{i}][{bit}]") for bit in range(of.width)] for i in range(of.words)]
        for memory, of in machine.memories.items()
    }
    build.input("random")
    guess = build.input("guess")
    stopped = words.any_of(build, registers["trap"])
    runs = build.not_(stopped)
    cells = Cells(build, memories)
    typed = {register: _value(build, wires) for register, wires in registers.items()}
    effect = follow(machine.step(typed), lambda reads: tuple(cells.read(port) for port in reads))
    for port in effect.writes:
        change = [build.and_(runs, bit) for bit in port.change.wires(build)]
        cells.write(port._replace(change=_value(build, change)))
    well = words.equal(build, registers["trap"], words.constant(build, 1, len(registers["trap"])))
    build.output("answer", build.where(stopped, well, guess))
    build.output("finished", stopped)
    for register, old in registers.items():
        new = effect.registers[register].wires(build) if register in effect.registers else old
        for bit, (before, after) in enumerate(zip(old, new, strict=True)):
            kept = build.or_(build.and_(runs, after), build.and_(stopped, before))
            build.output(f"{register}[{bit}]", kept if after != before else before)
    for memory, held in cells.memories.items():
        for i, word in enumerate(held):
            for bit, wire in enumerate(word):
                build.output(f"{memory}[{i}][{bit}]", wire)
    return build.circuit(f"{name} as a learner")


def program_learner(program: Program, steps: int, input: int = 64, output: int = 64) -> Rewriting:
    """The learner that takes a step of the program for each of `steps` samples. The samples are empty, and
    their labels 1; every guess is wrong, so that every sample is learned from."""
    machine = program.with_room(input=input, output=output).machine
    refuse_many_cells(program, machine)
    learner = ProgramLearner(machine, program.name)

    def encode(state: ProgramState) -> LearnerState:
        first = learner.start(np.zeros((steps, 0), np.uint8), np.ones(steps, np.uint8), guessing=False)
        return LearnerState(_bits(machine, machine.contents(state)), 0, None, first.samples)

    def decode(state: LearnerState) -> ProgramState | None:
        found = machine.state(_contents(machine, state.memory))
        last = state.position == len(state.samples)
        if last and not found.trap:
            raise Refused(f"the program has not stopped after {steps:,} samples", advice="Show it more.")
        return found if last or not found.trap else None

    return Rewriting("registers and memory as memory", program, learner, encode, decode, in_step=True)


def suiting(program: Program, first: ProgramState, steps: int) -> dict[str, int]:
    """Options for the run from a first state: samples for all of its steps, or one more than `steps` if it
    goes on for longer, and room for its input and output."""
    found = run(program, first, steps)
    written = max(1, min(found.final.written, MOST_OUTPUT))
    return {
        "steps": max(1, found.steps) if found.halted else steps + 1,
        "input": max(1, len(first.input)),
        "output": 1 << (written - 1).bit_length(),
    }


# Program to circuit: the same step, many times over, with the whole state on its inputs and outputs.


def program_circuit(program: Program, instructions: int, input: int = 64, output: int = 64) -> Rewriting:
    """The circuit that takes registers and memories to what they are after so many instructions, or where
    the program stops if that is earlier."""
    machine = program.with_room(input=input, output=output).machine
    bits = bits_of_memory(machine)
    # First with next to no memory, if the machine can have another: its step is quickly built, and no deeper.
    ram = machine.ram if isinstance(machine, Recorded) else min(machine.ram, 64)
    small = replace(machine, ram=ram, input=1, output=1)
    refuse_many_gates(program, instructions, bits, step_circuit(small, program.name).depth)
    one = step_circuit(machine, program.name)
    refuse_many_gates(program, instructions, bits, one.depth)
    build = CircuitBuilder()
    wires = [build.input(name) for name in one.inputs[:-2]]
    off = build.constant(False)
    for _ in range(instructions):
        _, _, *wires = copied(one, build, [*wires, off, off])
    trap = machine.registers["pc"].width
    stopped = wires[trap : trap + machine.registers["trap"].width]
    build.output("stopped", words.any_of(build, stopped))
    for name, wire in zip(one.inputs, wires, strict=False):
        build.output(name, wire)
    circuit = build.circuit(f"{program.name}, {instructions:,} instructions")

    def encode(state: ProgramState) -> Bits:
        return np.array([_bits(machine, machine.contents(state))], bool)

    def decode(row: Bits) -> ProgramState | None:
        if row.shape[1] == len(circuit.inputs):
            return None
        return machine.state(_contents(machine, row[0, 1:].astype(int).tolist()))

    return Rewriting("steps one after the other", program, circuit, encode, decode, covers=instructions)


def suiting_circuit(program: Program, first: ProgramState, steps: int) -> dict[str, int]:
    """`suiting`, by the name that the option has here: the net's own steps are layers."""
    chosen = suiting(program, first, steps)
    return {"instructions": chosen.pop("steps"), **chosen}


def _bits(machine: Machine, contents: Contents) -> tuple[int, ...]:
    """Registers, then memories, every word with its lowest bit first."""
    parts = [
        _unpacked(np.array([contents.registers[name]]), of.width) for name, of in machine.registers.items()
    ]
    parts += [_unpacked(np.array(contents.memories[name]), of.width) for name, of in machine.memories.items()]
    return tuple(np.concatenate(parts).tolist())


def _unpacked(numbers: np.ndarray, width: int) -> np.ndarray:
    return (numbers.astype(np.int64)[:, None] >> np.arange(width) & 1).ravel()


def _contents(machine: Machine, memory: Sequence[int]) -> Contents:
    bits, at = np.frombuffer(bytes(memory), np.uint8).astype(np.int64), 0

    def taken(width: int, count: int) -> list[int]:
        nonlocal at
        at += width * count
        return (bits[at - width * count : at].reshape(count, width) @ (1 << np.arange(width))).tolist()

    registers = {name: taken(of.width, 1)[0] for name, of in machine.registers.items()}
    return Contents(registers, {name: taken(of.width, of.words) for name, of in machine.memories.items()})
