"""How much tape a run needs, learnt from the machine itself before the net is built."""

from itertools import product
from typing import Any

from tapegrad.errors import Refused
from tapegrad.machines.compiled import run
from tapegrad.machines.model import Configuration, Rule, TuringMachine

MOST_UNASKED = 1 << 16
"""More cells are not chosen without a word: each step of the reference engine costs as much as there are."""

MOST_READINGS = 1 << 18
"""Machines with more states times readings are not run ahead; their nets get the usual number of cells."""


def cells_for(machine: TuringMachine, start: Configuration, steps: int) -> dict[str, Any]:
    """As many cells as the machine touches in its first `steps` steps from here, cell 0 in the middle."""
    if len(machine.states) * (len(machine.alphabet) + 1) ** machine.tapes > MOST_READINGS:
        return {}
    touched = touched_cells(machine, start, steps)
    # `cells` cells are -(cells // 2) to (cells - 1) // 2.
    needed = max(2, -2 * touched.start, 2 * touched.stop - 1)
    if needed > MOST_UNASKED:
        raise Refused(
            f"the machine {machine.name!r} needs a tape of {needed:,} cells for {steps:,} steps",
            where=f"it goes from cell {touched.start:,} to cell {touched.stop - 1:,}",
            advice=f"Ask for them, --set cells={needed}, or for fewer steps.",
        )
    return {"cells": needed}


def touched_cells(machine: TuringMachine, start: Configuration, steps: int) -> range:
    """From the first cell to the last that the input lies on or a head comes to within `steps` steps.

    The machine runs on tapes whose untouched cells hold a symbol of their own, which it takes for the blank:
    what is left of it at the end was never touched.
    """
    untouched = max(machine.alphabet, key=len) + "'"  # longer than every symbol, so it is none of them
    rules: dict[tuple[str, tuple[str, ...]], Rule] = {}
    for (state, read), rule in machine.rules.items():
        for seen in product(*((s, untouched) if s == machine.blank else (s,) for s in read)):
            rules[state, seen] = rule
    marking = TuringMachine(
        rules,
        machine.start_state,
        blank=untouched,
        name=machine.name,
        alphabet=(untouched, *machine.alphabet),
        states=machine.states,
        tapes=machine.tapes,
    )
    final = run(marking, start, steps).final
    cells = [*final.heads, *(cell for tape in final.tapes for cell in tape)]
    return range(min(cells), max(cells) + 1)
