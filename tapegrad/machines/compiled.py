"""The interpreter for long runs: rules as flat arrays of integers, tapes as arrays that grow, a loop in
machine code. It ends where `TuringMachine.run` and `GridMachine.run` end, some hundred times sooner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tapegrad.errors import InputError
from tapegrad.machines.compiled_loops import HALTED, NEEDS_ROOM
from tapegrad.machines.compiled_tapes import Plane, Tapes
from tapegrad.machines.grid import GridConfiguration, GridMachine
from tapegrad.machines.model import Configuration, TuringMachine

CHUNK = 1 << 24
"""Steps between two looks at the keyboard and two reports of progress: about a tenth of a second."""
MAX_CELLS = 1 << 25
"""Cells that the tapes may take unless more are allowed; each takes some 100 bytes in the end."""

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Run:
    """How a run ended: the last configuration, the number of steps to it, and whether the machine halted
    there or was cut off."""

    final: Any
    """A Configuration or a GridConfiguration, as the machine has."""
    steps: int
    halted: bool


def run(
    machine: TuringMachine | GridMachine,
    start: Configuration | GridConfiguration,
    max_steps: int | None = None,
    *,
    max_cells: int = MAX_CELLS,
    progress: Progress | None = None,
) -> Run:
    """Run the machine until it halts or has taken `max_steps` steps; None stands for no limit. `progress` is
    told the number of steps so far, several times a second. Refused when the tapes outgrow `max_cells`."""
    if start.state not in machine.states:
        raise InputError(f"the machine {machine.name!r} has no state {start.state!r}")
    if isinstance(machine, GridMachine) != isinstance(start, GridConfiguration):
        raise InputError("a grid machine starts from a configuration on a grid, others from one on tapes")
    if isinstance(start, Configuration) and len(start.tapes) > 1:
        engine = Tapes(machine, start, max_cells)  # type: ignore[arg-type]
    else:
        engine = Plane(machine, start, max_cells)
    steps, outcome = 0, NEEDS_ROOM
    while outcome != HALTED and (max_steps is None or steps < max_steps):
        taken, outcome = engine.advance(CHUNK if max_steps is None else min(CHUNK, max_steps - steps))
        steps += taken
        if outcome == NEEDS_ROOM:
            engine.grow()
        if progress is not None:
            progress(steps)
    final: Any = engine.configuration()
    # A run that is cut off may stand just where there is no rule: then it has halted all the same.
    return Run(final, steps, halted=outcome == HALTED or machine.step(final) is None)
