"""Machines on tapes and on the grid as kinds of source: what the rest of the package knows about them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.machines.formats import FORMATS
from tapegrad.machines.grid import GridMachine, GridRule
from tapegrad.machines.library import READY
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.machines.sampler import random_grid_machine, random_machine
from tapegrad.machines.view import (
    GridView,
    MachineView,
    grid_state_json,
    grid_state_text,
    state_json,
    state_text,
    table_text,
)
from tapegrad.machines.words import exercising
from tapegrad.source import Arrays, Inputs, Lowering, Option, Ready, ReadyBy, Rules, SourceKind

_UNROLL = Lowering(
    "circuit",
    "tapegrad.lowering.configurations:unroll",
    {
        "steps": Option(..., "how many steps of the machine the circuit takes"),
        "cells": Option(
            ..., "how many cells of each tape, or rows and columns of the grid, the circuit keeps"
        ),
        "first": Option(None, "the first of those cells; by default cell 0 is in the middle"),
    },
)


def _to_json(machine: TuringMachine) -> tuple[dict[str, Any], Arrays]:
    return {
        "name": machine.name,
        "tapes": machine.tapes,
        "start_state": machine.start_state,
        "blank": machine.blank,
        "accept": sorted(machine.accept),
        "reject": sorted(machine.reject),
        "alphabet": list(machine.alphabet),
        "states": list(machine.states),
        "rules": [[q, *read, *r.write, *r.moves, r.state] for (q, read), r in machine.rules.items()],
    }, {}


def _from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> TuringMachine:
    k = int(data["tapes"])
    rules = {
        (row[0], tuple(row[1 : k + 1])): Rule(
            tuple(row[k + 1 : 2 * k + 1]), tuple(row[2 * k + 1 : 3 * k + 1]), row[3 * k + 1]
        )
        for row in data["rules"]
    }
    return TuringMachine(
        rules,
        data["start_state"],
        data["blank"],
        frozenset(data["accept"]),
        frozenset(data["reject"]),
        data["name"],
        tuple(data["alphabet"]),
        tuple(data["states"]),
        k,
    )


def _grid_to_json(machine: GridMachine) -> tuple[dict[str, Any], Arrays]:
    return {
        "name": machine.name,
        "start_state": machine.start_state,
        "blank": machine.blank,
        "alphabet": list(machine.alphabet),
        "states": list(machine.states),
        "rules": [[q, read, r.write, r.move, r.state] for (q, read), r in machine.rules.items()],
    }, {}


def _grid_from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> GridMachine:
    return GridMachine(
        {(q, read): GridRule(*rest) for q, read, *rest in data["rules"]},
        data["start_state"],
        data["blank"],
        data["name"],
        tuple(data["alphabet"]),
        tuple(data["states"]),
    )


def _words(machine: TuringMachine, texts: Sequence[str]) -> tuple[list[str], ...]:
    """One word for each tape."""
    return tuple(_word(machine, text) for text in texts)


def _rows(machine: GridMachine, texts: Sequence[str]) -> tuple[list[list[str]]]:
    """Rows of the grid, separated by `/`."""
    return ([_word(machine, row) for text in texts for row in text.split("/")],)


def _word(machine: TuringMachine | GridMachine, text: str) -> list[str]:
    """A space stands for a blank, unless it is a symbol; where symbols have several characters, spaces
    separate them."""
    if any(len(symbol) > 1 for symbol in machine.alphabet):
        return text.split()
    return [machine.blank if letter == " " and " " not in machine.alphabet else letter for letter in text]


def _default_inputs(
    machine: TuringMachine, random: np.random.Generator, in_batches: bool
) -> tuple[Inputs, bool]:
    return exercising(machine, random), False


GRID_MACHINE = SourceKind(
    name="grid machine",
    type=GridMachine,
    to_json=_grid_to_json,
    from_json=_grid_from_json,
    parse_input=_rows,
    sample=random_grid_machine,
    describe=table_text,
    state_json=grid_state_json,
    state_text=grid_state_text,
    view=GridView,
    one_by_one=True,
    compiled_run="tapegrad.machines.compiled:run",
    lowerings=(_UNROLL,),
)

TURING_MACHINE = SourceKind(
    name="turing machine",
    type=TuringMachine,
    to_json=_to_json,
    from_json=_from_json,
    formats=FORMATS,
    found=lambda loaded: (loaded.machine, (loaded.start(),)),
    ready=ReadyBy(READY, lambda name, entry: Ready(entry.summary, entry.build, lambda: entry.example)),
    parse_input=_words,
    default_inputs=_default_inputs,
    rules=Rules(
        lambda machine: len(machine.rules), lambda machine, state: (state.state, machine.read(state))
    ),
    sample=random_machine,
    describe=table_text,
    state_json=state_json,
    state_text=state_text,
    view=MachineView,
    one_by_one=True,
    compiled_run="tapegrad.machines.compiled:run",
    lowerings=(
        _UNROLL,
        Lowering(
            "learner",
            "tapegrad.lowering.configurations:machine_learner",
            {
                "steps": Option(..., "how many samples are shown: more than the machine takes steps"),
                "cells": Option(..., "how many cells of each tape the memory holds"),
            },
        ),
        Lowering("grid machine", "tapegrad.lowering.tables:on_grid"),
    ),
)
