"""The interpreter for long runs: rules as flat arrays of integers, tapes as arrays that grow, a loop in
machine code. It ends where `TuringMachine.run` and `GridMachine.run` end, some hundred times sooner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from tapegrad.errors import InputError
from tapegrad.machines.compiled_loops import HALTED, NEEDS_ROOM
from tapegrad.machines.compiled_tapes import Plane, Tapes
from tapegrad.machines.grid import GridConfiguration, GridMachine
from tapegrad.machines.model import Configuration, TuringMachine

CHUNK = 1 << 24
"""Steps between two looks at the keyboard and two reports of progress: about a tenth of a second."""
MAX_CELLS = 1 << 30

Progress = Callable[[int], None]
Final = TypeVar("Final", Configuration, GridConfiguration)


@dataclass(frozen=True)
class Run(Generic[Final]):
    """How a run ended: the last configuration, the number of steps to it, and whether the machine halted
    there or was cut off."""

    final: Final
    steps: int
    halted: bool


@overload
def run(
    machine: TuringMachine,
    start: Configuration,
    max_steps: int | None = None,
    *,
    max_cells: int = MAX_CELLS,
    progress: Progress | None = None,
) -> Run[Configuration]: ...


@overload
def run(
    machine: GridMachine,
    start: GridConfiguration,
    max_steps: int | None = None,
    *,
    max_cells: int = MAX_CELLS,
    progress: Progress | None = None,
) -> Run[GridConfiguration]: ...


def run(
    machine: Any,
    start: Any,
    max_steps: int | None = None,
    *,
    max_cells: int = MAX_CELLS,
    progress: Progress | None = None,
) -> Run[Any]:
    """Run the machine until it halts or has taken `max_steps` steps; None stands for no limit. `progress` is
    told the number of steps so far, several times a second. Refused when the tapes outgrow `max_cells`."""
    if start.state not in machine.states:
        raise InputError(f"the machine {machine.name!r} has no state {start.state!r}")
    on_plane = isinstance(machine, GridMachine) or machine.tapes == 1
    engine: Plane | Tapes = (Plane if on_plane else Tapes)(machine, start, max_cells)
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
