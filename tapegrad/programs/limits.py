"""What is known of a program before anything is built or loaded: that it cannot fit a target.

The limits are the targets' own. What is counted here is a part of what they count, for any input: so nothing
is refused that would have been built.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

from tapegrad.circuits.layered import LARGEST as MOST_GATES
from tapegrad.errors import Refused
from tapegrad.machines.model import refuse_many_states
from tapegrad.programs.fitting import MUCH, least_memory, with_memory
from tapegrad.programs.model import Machine, Program, ProgramState
from tapegrad.programs.recording import record
from tapegrad.programs.rv32 import RV32

MOST_CELLS = (1 << 21) + (1 << 14)
"""Bits of memory that a learner may have: a memory of 256 KiB, with registers, input and output. On
`emulator`, that is a network of 90 million weights, which takes 8 GB while it is trained."""
MOST_ON_TAPE = 1 << 22
"""Cells of a tape of the target `tape`."""
MOST_VERTICES, MOST_IN_VERTICES = 1 << 18, 1 << 28
"""Vertices of the target `simplex`, and cells of all of them together."""
TABLES = {"subleq": ("SUBLEQ", 191, 3008), "rv32im": ("RV32IM", 5567, 88960)}
"""The Turing machines that run programs: their names, states and rules."""
TAPES = 4
"""On which they run them."""
RV32_DEPTH = 3113
"""Layers of gates of one instruction, in a memory of 16 bytes; in larger ones there are more."""
SHORTEST = {"subleq": 32, "rv32im": 39}
"""Sweeps over the bits of a word that an instruction takes at least, the ways in memory left out."""


def refuse(program: Program, target: str, first: ProgramState | None, options: Mapping[str, Any]) -> None:
    """Refuses what cannot fit the target of this name, whatever the options; with a first state, for a run
    from there. A program that takes any memory is given the least."""
    machine = replace(program.machine, ram=least_memory(program), input=1, output=1)
    if machine.kind not in TABLES and target in ("decoder", "rcnn"):
        raise Refused(
            f"programs for {machine.kind!r} do not become networks of the target {target}",
            advice="Use relu, transformer, emulator, tape or simplex, which take any instruction set.",
        )
    if target == "emulator":
        refuse_many_cells(program, machine)
    elif target == "tape":
        _refuse_long_tapes(program, machine)
    elif target == "simplex" and first is not None:
        _refuse_many_vertices(program, machine, first)
    elif target == "rcnn":
        refuse_many_states(*TABLES[machine.kind], TAPES)
    elif target == "relu" and first is not None and isinstance(machine, RV32):
        bits = bits_of_memory(machine)
        most = MOST_GATES // (bits * RV32_DEPTH)
        taken = min(sum(1 for _ in islice(run, most + 2)) - 1 for run in _runs(program, first))
        refuse_many_gates(program, max(1, taken), bits, RV32_DEPTH, more=taken > most)


def _runs(program: Program, first: ProgramState) -> list[Iterator[ProgramState]]:
    """What may be the run: one that takes any memory is given enough to do what it does with much, or, where
    what it does depends on that, stays as it is."""
    if not program.any_memory:
        return [program.run(first)]
    much = with_memory(program, max(MUCH, program.machine.ram))
    return [program.run(first), much.run(much.start(first.input))]


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
    fits = MOST_GATES // (bits * depth)
    if count > fits:
        what = f"{count:,} instructions {'and more ' * more}" if count > 1 else "one instruction "
        raise Refused(
            f"{what}of the program {program.name!r}{', one after the other,' * (count > 1)} would take at "
            f"least {bits * depth * count:,} gates: {bits:,} bits of memory pass through {depth:,} layers "
            f"for each, and the limit is {MOST_GATES:,}",
            advice=f"Ask for fewer, --set instructions={fits}, or less memory."
            if fits
            else "Give it less memory.",
        )


def _cells(machine: Machine) -> int:
    """Of a tape with the memory: every word takes its bits and a mark."""
    return machine.ram * 8 // machine.word * (machine.word + 1)


def _refuse_long_tapes(program: Program, machine: Machine) -> None:
    if (cells := _cells(machine)) > MOST_ON_TAPE:
        raise Refused(
            f"the program {program.name!r} has a memory of {machine.ram:,} bytes: it takes {cells:,} cells "
            f"of a tape, and the limit is {MOST_ON_TAPE:,}",
            advice="Give it a smaller memory: a symbol `__ram` in the program is its size in bytes.",
        )


def _refuse_many_vertices(program: Program, machine: Machine, first: ProgramState) -> None:
    """Every step of the Turing machine is a vertex, and has as many cells on each tape as the ruler has, or
    the input. An instruction takes its `SHORTEST` sweeps over a word at least, and one over every word before
    it to reach it, and one on the way back; of an instruction set of one's own, one for each word that it
    reads. The one that stops the program is not counted."""
    pitch, known = machine.word + 1, machine.kind in SHORTEST
    sweeps = SHORTEST[machine.kind] if known else sum(port.span for port in record(machine).form.ports)
    beyond = max(len(machine.first), len(first.input)) + 4
    cells = TAPES * (_cells(machine) + beyond * pitch + 1)
    most = min(MOST_VERTICES, MOST_IN_VERTICES // cells)

    def counted(run: Iterator[ProgramState]) -> tuple[int, int]:
        """Vertices, as far as they are too many, and of how many instructions."""
        vertices = count = 0
        for state, after in pairwise(run):
            if after.trap or vertices > most:
                break
            vertices += pitch * (sweeps + 2 * (state.pc // machine.alignment) * known)
            count += 1
        return vertices, count

    vertices, count = min(map(counted, _runs(program, first)))
    if vertices > most:
        raise Refused(
            f"the first {f'{count:,} instructions' if count > 1 else 'instruction'} of the program "
            f"{program.name!r} would take at least {vertices:,} vertices of the simplex, each with "
            f"{cells:,} cells (the limits are {MOST_VERTICES:,} vertices and {MOST_IN_VERTICES:,} cells)",
            advice="Use the target `tape`, whose size does not grow with the run.",
        )
