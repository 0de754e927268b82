"""States of sources as a line of text for people and as JSON for scripts."""

import re
from typing import Any

import numpy as np

from tapegrad.circuits.model import Circuit
from tapegrad.learners.model import LearnerState
from tapegrad.lowering.rewriting import Source, State
from tapegrad.machines.grid import GridConfiguration, GridMachine
from tapegrad.machines.model import Configuration, TuringMachine

WIDEST = 400
"""Longest stretch of tape that is shown; longer ones are cut and say so."""

BUS = re.compile(r"(.+)\[(\d+)\]")


def state_json(source: Source, state: State) -> Any:
    """The state as plain JSON, in the source's own terms."""
    if isinstance(source, TuringMachine) and isinstance(state, Configuration):
        return {
            "state": state.state,
            "verdict": verdict(source, state),
            "tapes": [tape_text(tape, source.blank) for tape in state.tapes],
            "heads": list(state.heads),
        }
    if isinstance(source, GridMachine) and isinstance(state, GridConfiguration):
        return {
            "state": state.state,
            "head": list(state.head),
            "cells": [[*cell, symbol] for cell, symbol in sorted(state.cells.items())],
        }
    if isinstance(source, Circuit) and isinstance(state, np.ndarray):
        rows = [named_bits(source.outputs, row) for row in state]
        return rows[0] if len(rows) == 1 else rows
    if isinstance(state, LearnerState):
        return {"memory": list(state.memory), "samples": state.position, "answer": state.answer}
    return repr(state)


def state_text(source: Source, state: State) -> str:
    """The state in a line or a few."""
    if isinstance(source, TuringMachine) and isinstance(state, Configuration):
        said = verdict(source, state)
        lines = [f"state {state.state}" + (f" ({said})" if said else "")]
        for number, (tape, head) in enumerate(zip(state.tapes, state.heads, strict=True), 1):
            label = "tape" if source.tapes == 1 else f"tape {number}"
            lines.append(f"{label} {_cut(tape_text(tape, source.blank))!r}, head at {head}")
        return "\n".join(lines)
    if isinstance(source, GridMachine) and isinstance(state, GridConfiguration):
        return f"state {state.state}, head at {state.head}\n{grid_text(state, source.blank)}"
    if isinstance(source, Circuit) and isinstance(state, np.ndarray):
        rows = [named_bits(source.outputs, row) for row in state[:8]]
        more = [f"... {len(state) - 8} more rows"] if len(state) > 8 else []
        return "\n".join(["  ".join(f"{name}={value}" for name, value in row.items()) for row in rows] + more)
    if isinstance(state, LearnerState):
        memory = _cut("".join(map(str, state.memory)))
        answer = "still learning" if state.answer is None else f"answered {state.answer} to the last"
        return f"after {state.position:,} samples, {answer}\nmemory {memory}"
    return str(state)


def verdict(machine: TuringMachine, state: Configuration) -> str | None:
    """Whether the machine has accepted or rejected, if it says so."""
    if state.state in machine.accept:
        return "accept"
    return "reject" if state.state in machine.reject else None


def tape_text(tape: Any, blank: str) -> str:
    """The cells from the first to the last that is not blank; symbols of several characters are spaced."""
    if not tape:
        return ""
    symbols = [tape.get(cell, blank) for cell in range(min(tape), max(tape) + 1)]
    return ("" if all(len(symbol) == 1 for symbol in symbols) else " ").join(symbols)


def grid_text(state: GridConfiguration, blank: str) -> str:
    """The smallest rectangle with every cell that is not blank."""
    if not state.cells:
        return "(all cells blank)"
    rows, columns = zip(*state.cells, strict=True)
    wide = range(min(columns), min(max(columns), min(columns) + WIDEST) + 1)
    high = range(min(rows), min(max(rows), min(rows) + WIDEST) + 1)
    return "\n".join("".join(state.cells.get((r, c), blank) for c in wide) for r in high)


def named_bits(names: tuple[str, ...], row: np.ndarray) -> dict[str, int]:
    """Bits under their names; `x[0]`, `x[1]`, ... become one number, bit 0 lowest."""
    values: dict[str, int] = {}
    for name, bit in zip(names, row, strict=True):
        bus = BUS.fullmatch(name)
        if bus:
            values[bus[1]] = values.get(bus[1], 0) | int(bit) << int(bus[2])
        else:
            values[name] = int(bit)
    return values


def _cut(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}... ({len(text):,} symbols)"
