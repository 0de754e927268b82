"""What is known of a program before anything is built or loaded: that it cannot fit a target.

The limits are the targets' own. What is counted here is a part of what they count, for any input: so nothing
is refused that would have been built.
"""

from dataclasses import replace
from itertools import islice

from tapegrad.circuits.layered import LARGEST as MOST_GATES
from tapegrad.errors import Refused
from tapegrad.programs.model import Machine, Program, ProgramState
from tapegrad.programs.rv32 import RV32

MOST_CELLS = (1 << 21) + (1 << 14)
"""Bits of memory that a learner may have: a memory of 256 KiB, with registers, input and output. On
`emulator`, that is a network of 90 million weights, which takes 8 GB while it is trained."""
MOST_ON_TAPE = 1 << 22
"""Cells of a tape of the target `tape`."""
MOST_VERTICES, MOST_IN_VERTICES = 1 << 18, 1 << 28
"""Vertices of the target `simplex`, and cells of all of them together."""
MOST_ON_GRID = 1 << 13
"""States of a machine on the grid that was made of one with several tapes. A filter has some 40 weights for
each pair of states, so that none is built of more than a fourth of this; the ternary encoding has fewer."""
TABLES = {"subleq": ("SUBLEQ", 191, 3008), "rv32im": ("RV32IM", 5583, 89216)}
"""The Turing machines that run programs: their names, states and rules."""
TAPES = 4
"""On which they run them."""
RV32_DEPTH = 3113
"""Layers of gates of one instruction, in a memory of 16 bytes; in larger ones there are more."""


def refuse(program: Program, target: str, first: ProgramState | None) -> None:
    """Refuses what cannot fit the target of this name, whatever the options; with a first state, for a run
    from there. A program that takes any memory may be given less than it has, before there is a state."""
    machine, sure = program.machine, first is not None or not program.any_memory
    if target == "emulator" and sure:
        refuse_many_cells(program, replace(machine, input=1, output=1))
    elif target == "tape" and sure:
        _refuse_long_tapes(program)
    elif target == "simplex" and first is not None:
        _refuse_many_vertices(program, first)
    elif target == "rcnn":
        refuse_many_states(*TABLES[machine.kind], TAPES)
    elif target == "relu" and first is not None and isinstance(machine, RV32):
        bits = bits_of_memory(replace(machine, input=1, output=1))
        most = MOST_GATES // (bits * RV32_DEPTH)
        taken = sum(1 for _ in islice(program.run(first), most + 2)) - 1
        refuse_many_gates(program, max(1, taken), bits, RV32_DEPTH, more=taken > most)


def bits_of_memory(machine: Machine) -> int:
    """Bits that all memories hold together."""
    return sum(of.width * of.words for of in machine.memories.values())


def refuse_many_cells(program: Program, machine: Machine) -> None:
    """Refuses a learner with too large a memory."""
    cells = sum(of.width for of in machine.registers.values()) + bits_of_memory(machine)
    if cells > MOST_CELLS:
        raise Refused(
            f"the program {program.name!r} has a memory of {machine.ram:,} bytes: the learner would have "
            f"{cells:,} cells, more than {MOST_CELLS:,}",
            advice="Give it a smaller memory: a symbol `__ram` in the program is its size in bytes.",
        )


def refuse_many_gates(program: Program, count: int, bits: int, depth: int, more: bool = False) -> None:
    """Refuses instructions one after the other that take too many gates: in layers, every bit of memory is
    carried through all of them. With `more`, there are more instructions than these."""
    if bits * depth * count > MOST_GATES:
        raise Refused(
            f"{count:,} instructions {'and more ' * more}of the program {program.name!r}, one after the "
            f"other, take at least {bits * depth * count:,} gates: {bits:,} bits of memory pass through "
            f"{depth:,} layers each, and the limit is {MOST_GATES:,}",
            advice=f"Ask for fewer, --set instructions={max(1, MOST_GATES // (bits * depth))}, or less "
            "memory.",
        )


def refuse_many_states(name: str, states: int, rules: int, tapes: int) -> None:
    """Refuses a machine on several tapes that is too large for one head."""
    sweeping = tapes * rules  # for each rule a sweep that does it, tape by tape
    if sweeping > MOST_ON_GRID:
        raise Refused(
            f"the machine {name!r} has {states:,} states and {rules:,} rules on {tapes} tapes: with one head "
            f"it would have at least {sweeping:,} states, and the limit is {MOST_ON_GRID:,}",
            advice="Use the target `tape`, whose machines have several heads.",
        )


def _cells(machine: Machine) -> int:
    """Of a tape with the memory: every word takes its bits and a mark."""
    return machine.ram * 8 // machine.word * (machine.word + 1)


def _refuse_long_tapes(program: Program) -> None:
    machine = program.machine
    if (cells := _cells(machine)) > MOST_ON_TAPE:
        raise Refused(
            f"the program {program.name!r} has a memory of {machine.ram:,} bytes: it takes {cells:,} cells "
            f"of a tape, and the limit is {MOST_ON_TAPE:,}",
            advice="Give it a smaller memory: a symbol `__ram` in the program is its size in bytes.",
        )


def _refuse_many_vertices(program: Program, first: ProgramState) -> None:
    """An instruction begins with a copy of its address, bit after bit and a mark, and so takes at least as
    many steps; each is a vertex, and has as many cells on every tape as the memory on one."""
    machine = program.machine
    steps, cells = machine.word + 1, TAPES * _cells(machine)
    most = min(MOST_VERTICES, MOST_IN_VERTICES // cells) // steps
    if (taken := sum(1 for _ in islice(program.run(first), most + 2)) - 1) > most:
        raise Refused(
            f"{taken:,} instructions and more of the program {program.name!r} would take at least "
            f"{taken * steps:,} vertices of the simplex, each with {cells:,} cells (the limits are "
            f"{MOST_VERTICES:,} vertices and {MOST_IN_VERTICES:,} cells)",
            advice="Use the target `tape`, whose size does not grow with the run.",
        )
