"""An algorithm made ready for the tapes of the extended network: its machine, and where the bits lie."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused, SourceError
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.source import Rewriting
from tapegrad.targets.tape.target import passes

Place = tuple[int, int]
"""A tape and a cell on it."""

DATA_TAPE, RESULT_TAPE = 0, 1
FIRST_CELL = 1
"""Data and result begin at cell 1: cell 0, where all heads start, must not depend on the labels, which the
network does not know when it starts."""


@dataclass(frozen=True)
class Algorithm:
    """A binary machine and its connections. Data bit i lies at the places `data[i]`, on read-only tapes, as
    the sign given there if it is 1 and the opposite if it is 0. Bit j of the result is 1 where the tape
    has the sign given in `result[j]`."""

    machine: TuringMachine
    start: Configuration
    read_only: int
    data: tuple[tuple[tuple[Place, int], ...], ...]
    result: tuple[tuple[Place, int], ...]
    rewritings: tuple[Rewriting, ...]
    original: TuringMachine

    @property
    def reach(self) -> int:
        """The farthest cell that data or result lie at, counted from cell 0 both ways."""
        places = [place for bit in self.data for place, _ in bit] + [place for place, _ in self.result]
        return max((abs(cell) for _, cell in places), default=0)

    def result_symbols(self, final: Configuration) -> list[str]:
        """The symbols on the result tape of the machine as it was given, after a run."""
        state: Configuration | None = final
        for rewriting in reversed(self.rewritings):
            state = rewriting.decode(state) if state is not None else None
        if state is None:
            raise SourceError("the rewritten machine halted between two steps of the one that was given")
        tape = state.tapes[RESULT_TAPE]
        return [tape.get(FIRST_CELL + bit, self.original.blank) for bit in range(len(self.result))]


def lower(machine: TuringMachine, data_bits: int, result_bits: int) -> Algorithm:
    """Rewrites the machine for the target `tape` and finds out where each bit has gone, by encoding
    configurations that differ in one bit."""
    _check(machine)
    rewritings = tuple(passes(machine, cells=0))
    zeros = _encoded(machine, rewritings, DATA_TAPE, ["0"] * data_bits)
    data = []
    for bit in range(data_bits):
        word = ["0"] * data_bits
        word[bit] = "1"
        data.append(tuple(_differences(zeros, _encoded(machine, rewritings, DATA_TAPE, word))))
    result = []
    nothing = _encoded(machine, rewritings, RESULT_TAPE, ["0"] * result_bits)
    for bit in range(result_bits):
        word = ["0"] * result_bits
        word[bit] = "1"
        result.append(_differences(nothing, _encoded(machine, rewritings, RESULT_TAPE, word))[0])
    lowered = cast(TuringMachine, rewritings[-1].after) if rewritings else machine
    read_only = 1 + max((tape for bit in data for (tape, _), _ in bit), default=-1)
    read_only = max(read_only, lowered.tapes // machine.tapes)
    return Algorithm(lowered, zeros, read_only, tuple(data), tuple(result), rewritings, machine)


def _encoded(
    machine: TuringMachine, rewritings: Sequence[Rewriting], tape: int, word: list[str]
) -> Configuration:
    """The start configuration with this word on this tape, from the first cell on."""
    content = {FIRST_CELL + i: symbol for i, symbol in enumerate(word) if symbol != machine.blank}
    tapes = tuple(content if index == tape else {} for index in range(machine.tapes))
    state = Configuration(machine.start_state, tapes, (0,) * machine.tapes)
    for rewriting in rewritings:
        state = rewriting.encode(state)
    return state


def _differences(zero: Configuration, one: Configuration) -> list[tuple[Place, int]]:
    """Where two configurations differ, with the sign that the second has there: blank is -1."""
    found = []
    for tape, (before, after) in enumerate(zip(zero.tapes, one.tapes, strict=True)):
        for cell in sorted(before.keys() | after.keys()):
            if (cell in before) != (cell in after):
                found.append(((tape, cell), 1 if cell in after else -1))
    return found


def _check(machine: TuringMachine) -> None:
    if machine.tapes < 2:
        raise Refused(
            f"the machine {machine.name!r} has one tape; an algorithm reads its data from the first tape and "
            "writes its result on the second",
            advice="Give it at least two tapes.",
        )
    if not {"0", "1"} <= set(machine.alphabet):
        raise SourceError(f"the machine {machine.name!r} does not know the symbols 0 and 1")
    for (state, read), rule in machine.rules.items():
        if rule.write[DATA_TAPE] != read[DATA_TAPE]:
            raise SourceError(
                f"the machine {machine.name!r} writes on its first tape, which holds the data",
                where=f"state {state!r} reading {' '.join(read)!r}",
                advice="Let it copy what it wants to change to another tape.",
            )


def tape_signs(configuration: Configuration, tape: int, first_cell: int, cells: int) -> NDArray[np.float64]:
    """One tape as signs: -1 blank, +1 the other symbol."""
    signs = np.full(cells, -1.0)
    for cell in configuration.tapes[tape]:
        signs[cell - first_cell] = 1.0
    return signs
