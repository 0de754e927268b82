"""Program to Turing machine: the program is what the tapes hold, and the table is the same for all programs.

SUBLEQ has one table for words of any size and memories of any length, RV32IM another; any other instruction
set has one for each size of its memory (`instruction_machine`). An instruction takes many steps, most of them
on the way to words of memory and back, two for each cell in between. What lies where is told in
`tapegrad.lowering.microcode`.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from tapegrad.lowering.instruction_machine import BEYOND, OUTPUT, Places, instruction_machine
from tapegrad.lowering.microcode import (
    FETCH,
    LEFT,
    MEMORY,
    PC,
    RIGHT,
    RULER,
    A,
    B,
    Microcode,
    State,
    adds,
    constant,
    copy,
    highest,
)
from tapegrad.lowering.rv32_machine import OUTPUT as RV32_OUTPUT
from tapegrad.lowering.rv32_machine import rv32_machine
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.programs.instruction_sets import as_saved
from tapegrad.programs.model import Contents, Machine, Program, ProgramState
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq
from tapegrad.source import Rewriting

# SUBLEQ: the three words of an instruction are words 0, 1 and 2 of A.

SUBLEQ_OUTPUT = 2
"""The word of B with which the output begins."""


@cache
def subleq_machine() -> TuringMachine:
    """One machine for all SUBLEQ programs."""
    code = Microcode()
    fetch = State(FETCH, entered=True)
    end, jump_outside, outside = (State(trap) for trap in Subleq.traps)
    follow = code.at(None, PC, False, "next three words", fetch, adds(B), 3)
    jump = code.at(2, PC, False, "jump", fetch, copy(A, B))
    ending = code.at(2, None, False, "to a negative address?", lambda c: end if c else jump, highest(A), 0)

    def done(leq: Hashable) -> State:
        """After the subtraction, the heads of MEMORY and RULER at word b, that of A at its number."""
        return code.home(RIGHT, code.on_a(LEFT, ending if leq else follow))

    subtract = code.at(None, 0, True, "subtract", lambda c: done(_at_most_0(c)), _subtract, (0, 0, 0))
    to_b = code.on_a(RIGHT, code.reach(RIGHT, subtract, outside))
    load = code.home(RIGHT, to_b)
    normal = code.reach(RIGHT, code.at(None, 0, True, "load", load, copy(MEMORY, B)), outside)

    put = code.put(0, SUBLEQ_OUTPUT, follow)
    output = code.reach(
        RIGHT, code.at(0, None, True, "load byte", code.home(RIGHT, put), copy(MEMORY, A)), outside
    )

    def store(after: State) -> State:
        back = code.home(RIGHT, code.on_a(LEFT, after))
        stored = code.at(None, 0, True, "store", back, copy(B, MEMORY))
        return code.on_a(RIGHT, code.reach(RIGHT, stored, outside))

    none = code.at(None, 0, False, "end of input", store(follow), constant(B), -1)
    input = code.peek(store(code.taken(follow)), none)

    def by_b(on_ones: State, else_: State) -> State:
        return code.at(1, None, False, "b outside?", lambda c: on_ones if c else else_, _all_ones, 1)

    of_kind = code.at(
        0,
        None,
        False,
        "a outside?",
        lambda c: by_b(outside, input) if c else by_b(output, normal),
        _all_ones,
        1,
    )
    state = code.home(RIGHT, of_kind)
    for _ in range(3):
        state = code.sweep("back", {MEMORY: LEFT, RULER: LEFT, A: LEFT}, state)
    for number in range(3):
        if number:
            state = code.on_mark("end of memory?", MEMORY, jump_outside, state)
        state = code.sweep("fetch", {MEMORY: RIGHT, RULER: RIGHT, A: RIGHT}, state, copy(MEMORY, A))
    begin = code.at(
        0, PC, False, "address of the instruction", code.reach(RIGHT, state, jump_outside), copy(B, A)
    )
    fetch.rule = lambda read: begin
    return code.machine(fetch, "SUBLEQ", accept=Subleq.traps[:1])


def _all_ones(carried: Hashable, m: int, a: int, b: int) -> tuple[Hashable, Mapping[int, int]]:
    return int(bool(carried) and a), {}


def _subtract(carried: Hashable, m: int, a: int, b: int) -> tuple[Hashable, Mapping[int, int]]:
    """B from MEMORY; carried are the borrow, whether a bit of the result is 1, and whether the last is."""
    assert isinstance(carried, tuple)
    difference = m - b - carried[0]
    bit = difference & 1
    return (int(difference < 0), carried[1] | bit, bit), {MEMORY: bit}


def _at_most_0(carried: Hashable) -> bool:
    assert isinstance(carried, tuple)
    return not carried[1] or carried[2] == 1


# Where a state of a program lies on the tapes


class Layout:
    """The cells of words, for one machine; of SUBLEQ and RV32IM, which have words for their registers."""

    marked_input = 0
    """What a byte of input has in its word beside its bits."""

    def __init__(self, machine: Machine, first_output: int) -> None:
        self.machine, self.first_output = machine, first_output
        self.width = machine.word
        self.pitch = self.width + 1
        self.words = machine.ram * 8 // machine.word
        self.general = len(machine.first)

    def encode(self, state: ProgramState) -> Configuration:
        """Tapes and heads between two instructions, or where the program has stopped."""
        memory, ruler, b = self._memory(state)
        a = {0: "1", -(state.taken + 1) * self.pitch: "1", -(len(state.input) + 2) * self.pitch: "1"}
        for number, byte in enumerate(state.input):
            a |= self._bits(-1 - number, byte | self.marked_input)
        for number, byte in enumerate(state.output, self.first_output):
            b |= self._bits(number, byte) | {number * self.pitch: "1"}
        return Configuration(state.trap or FETCH, (memory, ruler, a, b), (0,) * 4)

    def decode(self, configuration: Configuration) -> ProgramState | None:
        """What lies on the tapes between two instructions."""
        state = configuration.state
        if state != FETCH and state not in self.machine.traps:
            return None
        _, _, a, b = configuration.tapes
        given = [-cell // self.pitch for cell in a if cell < 0 and cell % self.pitch == 0]
        output = bytes(self._word(b, number) & 255 for number in self._written(b))
        return ProgramState(
            **self._held(configuration.tapes),
            trap="" if state == FETCH else state,
            input=bytes(self._word(a, -1 - number) & 255 for number in range(max(given) - 2)),
            taken=min(given) - 1,
            output=output,
            written=len(output),
        )

    def _memory(self, state: ProgramState) -> tuple[dict[int, str], dict[int, str], dict[int, str]]:
        """MEMORY and RULER, and B without the output."""
        size = self.machine.word // 8
        ram = (state.memory[i : i + size] for i in range(0, len(state.memory), size))
        memory = {0: "1", self.words * self.pitch: "1"}
        for number, word in enumerate(ram):
            memory |= self._bits(number, int.from_bytes(word, "little"))
        for number, word in enumerate(state.registers):
            memory |= self._bits(-1 - number, word)
        ruler = {number * self.pitch: "1" for number in range(-self.general - 2, self.words + 3)}
        return memory, ruler, self._bits(PC, state.pc) | self._bits(PC + 1, state.copied)

    def _held(self, tapes: Sequence[Mapping[int, str]]) -> dict[str, Any]:
        """What registers and memory hold."""
        memory, _, _, b = tapes
        size = self.machine.word // 8
        return {
            "pc": self._word(b, PC),
            "memory": b"".join(self._word(memory, i).to_bytes(size, "little") for i in range(self.words)),
            "registers": tuple(self._word(memory, -1 - number) for number in range(self.general)),
            "copied": self._word(b, PC + 1) if self.first_output > PC + 1 else 0,
        }

    def _bits(self, number: int, word: int) -> dict[int, str]:
        first = number * self.pitch + 1
        return {first + bit: "1" for bit in range(word.bit_length()) if word >> bit & 1}

    def _word(self, tape: Mapping[int, str], number: int) -> int:
        first = number * self.pitch + 1
        return sum((tape.get(first + bit) == "1") << bit for bit in range(self.width))

    def _written(self, b: Mapping[int, str]) -> Iterator[int]:
        number = self.first_output
        while b.get(number * self.pitch) == "1":
            yield number
            number += 1


class PlacesLayout(Layout):
    """Of any other instruction set: all memories in a row, and registers bit by bit."""

    marked_input = 256

    def __init__(self, machine: Machine, places: Places) -> None:
        super().__init__(machine, OUTPUT)
        self.places, self.width, self.pitch = places, places.width, places.pitch

    def _memory(self, state: ProgramState) -> tuple[dict[int, str], dict[int, str], dict[int, str]]:
        places, held = self.places, self.machine.contents(replace(state, input=b"", output=b""))
        memory = {0: "1"}
        ruler = {number * self.pitch: "1" for number in range(places.words + BEYOND + 1)}
        for name, base in places.bases.items():
            for number, word in enumerate(held.memories[name], base):
                memory |= self._bits(number, word)
        for (name, bit), (tape, cell) in places.registers.items():
            if held.registers[name] >> bit & 1:
                (memory, ruler)[tape][cell] = "1"
        return memory, ruler, {}

    def _held(self, tapes: Sequence[Mapping[int, str]]) -> dict[str, Any]:
        machine, places = self.machine, self.places
        registers = dict.fromkeys(machine.registers, 0)
        for (name, bit), (tape, cell) in places.registers.items():
            registers[name] |= (tapes[tape].get(cell) == "1") << bit
        memories = {
            name: [self._word(tapes[0], base + i) for i in range(places.memories[name].words)]
            for name, base in places.bases.items()
        }
        ends = {"input": [0] * machine.input, "output": [0] * machine.output}
        found = machine.state(Contents(registers, memories | ends))
        return {name: getattr(found, name) for name in ("pc", "memory", "registers", "extra")}


def program_machine(program: Program) -> Rewriting:
    """The machine of the program's instruction set, with the program on its tapes."""
    machine = program.machine
    if isinstance(machine, Subleq):
        layout, table = Layout(machine, SUBLEQ_OUTPUT), subleq_machine()
    elif isinstance(machine, RV32):
        layout, table = Layout(machine, RV32_OUTPUT), rv32_machine()
    else:
        table, places = instruction_machine(replace(as_saved(machine), input=1, output=1))
        layout = PlacesLayout(machine, places)
    return Rewriting("memory on tapes", program, table, layout.encode, layout.decode)
