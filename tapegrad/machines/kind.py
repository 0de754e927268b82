"""Machines on tapes and on the grid as kinds of source: what the rest of the package knows about them,
and how they are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._panels import Cells, CellsFrame, Fields, Panel, Table
from tapegrad.errors import InputError
from tapegrad.machines.formats import FORMATS
from tapegrad.machines.library import READY
from tapegrad.machines.model import (
    LEFT,
    RIGHT,
    STAY,
    Configuration,
    GridConfiguration,
    GridMachine,
    GridRule,
    Rule,
    Symbols,
    TuringMachine,
)
from tapegrad.machines.sampler import exercising, random_grid_machine, random_machine
from tapegrad.source import (
    Arrays,
    Call,
    Inputs,
    Lowering,
    Option,
    Ready,
    ReadyBy,
    Rules,
    SourceKind,
    shortened,
)

# How machines are shown: tables as text; states as a line, as JSON and as panels of the player.


_MOVES = {LEFT: "left", STAY: "stay", RIGHT: "right"}


def table_text(machine: TuringMachine | GridMachine) -> str:
    """One line for each rule, state by state, and a heading with the sizes. Several tapes share a column,
    their symbols separated by spaces."""
    rows = [("state", "reads", "writes", "moves", "then")]
    previous = None
    for state, read, write, move, then in _rules(machine):
        rows.append((state if state != previous else "", read, write, move, then))
        previous = state
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in [*_heading(machine), "", *lines])


def _heading(machine: TuringMachine | GridMachine) -> list[str]:
    place = "the grid" if isinstance(machine, GridMachine) else f"{machine.tapes} tape(s)"
    lines = [
        f"{machine.name}: {len(machine.states)} states, {len(machine.alphabet)} symbols, "
        f"{len(machine.rules)} rules, on {place}",
        f"starts in {machine.start_state}, blank {machine.blank}",
    ]
    if isinstance(machine, TuringMachine):
        for verb, states in (("accepts", machine.accept), ("rejects", machine.reject)):
            if states:
                lines.append(f"{verb} in {', '.join(sorted(states))}")
    return lines


def _rules(machine: TuringMachine | GridMachine) -> list[tuple[str, str, str, str, str]]:
    """The rules as words, sorted by the order of the states and symbols."""
    if isinstance(machine, GridMachine):
        rows = [(s, (read,), (r.write,), (r.move,), r.state) for (s, read), r in machine.rules.items()]
    else:
        rows = [
            (s, read, r.write, tuple(_MOVES[move] for move in r.moves), r.state)
            for (s, read), r in machine.rules.items()
        ]
    states = {state: number for number, state in enumerate(machine.states)}
    symbols = {symbol: number for number, symbol in enumerate(machine.alphabet)}
    rows.sort(key=lambda row: (states[row[0]], [symbols[symbol] for symbol in row[1]]))
    return [
        (s, " ".join(read), " ".join(write), " ".join(moves), then) for s, read, write, moves, then in rows
    ]


# The table of a Turing machine as a panel, with the rule that applies next as its current entry.


MOST_STATES, MOST_READS = 200, 12
"""Larger tables are not shown."""

_LETTERS = {-1: "L", 0: "S", 1: "R"}
_WORDS = {-1: "left", 0: "nowhere", 1: "right"}


@dataclass(frozen=True)
class RuleTable:
    """The panel, and where in it each state and combination of symbols stands."""

    panel: Table
    rows: dict[str, int]
    columns: dict[Symbols, int]

    def place(self, state: str, read: Symbols) -> tuple[int, int] | None:
        """The entry of the rule that applies; None in states without any."""
        if state not in self.rows or read not in self.columns:
            return None
        return self.rows[state], self.columns[read]


def rule_table(machine: TuringMachine) -> RuleTable | None:
    """One row for each state that has rules, one column for each combination of symbols that is read."""
    states = tuple(dict.fromkeys(state for state, _ in machine.rules))
    reads = tuple(
        dict.fromkeys(read for _, read in sorted(machine.rules, key=lambda key: _order(machine, key[1])))
    )
    if not states or len(states) > MOST_STATES or len(reads) > MOST_READS:
        return None
    rules = [[machine.rules.get((state, read)) for read in reads] for state in states]
    panel = Table(
        "Table: what is read, what to do",
        columns=tuple(" ".join(read) for read in reads),
        rows=states,
        entries=[["" if rule is None else _short(rule) for rule in row] for row in rules],
        words=[
            [
                f"In state {state!r}, reading {' '.join(read)}: "
                + ("halt." if rule is None else f"{rule_words(rule)}.")
                for read, rule in zip(reads, row, strict=True)
            ]
            for state, row in zip(states, rules, strict=True)
        ],
    )
    return RuleTable(panel, {s: r for r, s in enumerate(states)}, {read: c for c, read in enumerate(reads)})


def rule_words(rule: Rule) -> str:
    """What a rule does, in words."""
    ways = ", ".join(_WORDS[move] for move in rule.moves)
    return f"write {' '.join(rule.write)}, go {ways}, enter {rule.state}"


def _short(rule: Rule) -> str:
    return f"{' '.join(rule.write)} {''.join(_LETTERS[move] for move in rule.moves)} {rule.state}"


def _order(machine: TuringMachine, read: Symbols) -> list[int]:
    return [machine.alphabet.index(symbol) for symbol in read]


WIDEST = 400
"""Longest stretch of tape that is shown; longer ones are cut and say so."""


def state_json(machine: TuringMachine, state: Configuration) -> dict[str, Any]:
    """A configuration as plain JSON."""
    return {
        "state": state.state,
        "verdict": verdict(machine, state),
        "tapes": [tape_text(tape, machine.blank) for tape in state.tapes],
        "heads": list(state.heads),
    }


def state_text(machine: TuringMachine, state: Configuration) -> str:
    """A configuration in a line for its state and one for each tape."""
    said = verdict(machine, state) or _without_rule(machine, state)
    lines = [f"state {state.state}" + (f" ({said})" if said else "")]
    for number, (tape, head) in enumerate(zip(state.tapes, state.heads, strict=True), 1):
        label = "tape" if machine.tapes == 1 else f"tape {number}"
        lines.append(f"{label} {shortened(tape_text(tape, machine.blank), WIDEST)!r}, head at {head}")
    return "\n".join(lines)


def grid_state_json(machine: GridMachine, state: GridConfiguration) -> dict[str, Any]:
    """A configuration on the grid as plain JSON."""
    return {
        "state": state.state,
        "head": list(state.head),
        "cells": [[*cell, symbol] for cell, symbol in sorted(state.cells.items())],
    }


def grid_state_text(machine: GridMachine, state: GridConfiguration) -> str:
    """A configuration on the grid: its state, then its cells."""
    return f"state {state.state}, head at {state.head}\n{grid_text(state, machine.blank)}"


def _without_rule(machine: TuringMachine, state: Configuration) -> str | None:
    """That the machine stands still here for want of a rule, though its state is not one that only halts: it
    may have been forgotten."""
    read = tuple(tape.get(head, machine.blank) for tape, head in zip(state.tapes, state.heads, strict=True))
    if (state.state, read) in machine.rules or not any(own == state.state for own, _ in machine.rules):
        return None
    return f"no rule for {' '.join(map(repr, read))}"


def verdict(machine: TuringMachine, state: Configuration) -> str | None:
    """Whether the machine has accepted or rejected, if it says so."""
    if state.state in machine.accept:
        return "accept"
    return "reject" if state.state in machine.reject else None


def call(machine: TuringMachine, given: tuple[Any, ...], named: Mapping[str, Any]) -> Call:
    """A word for each tape. What comes back is whether the machine accepts, if it says so, else its tape, or
    a tuple of tapes."""
    if named:
        raise InputError("the tapes of a machine have no names", advice="Give a word for each, in order.")
    for word in given:
        if not isinstance(word, str | Sequence | Configuration):
            raise InputError(
                f"{word!r} is no word for a tape", advice=f"Write it as text, {str(word)!r}, or as a list."
            )

    def result(state: Configuration) -> Any:
        if (said := verdict(machine, state)) is not None:
            return said == "accept"
        tapes = tuple(tape_text(tape, machine.blank) for tape in state.tapes)
        return tapes[0] if machine.tapes == 1 else tapes

    return Call(given, result)


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


class MachineView:
    """State, tapes and table of a Turing machine."""

    def __init__(self, machine: TuringMachine) -> None:
        self.machine = machine
        names = ["Tape"] if machine.tapes == 1 else [f"Tape {n}" for n in range(1, machine.tapes + 1)]
        tapes = [
            Cells(
                name,
                "text",
                rows=("",),
                default=(machine.blank,),
                explain=lambda _, cell, name=name: (
                    f"{name}, cell {cell}, as the machine's interpreter has it."
                ),
                room=2,
            )
            for name in names
        ]
        self.table = rule_table(machine)
        self.panels: list[Panel] = [Fields("Machine"), *tapes]
        if self.table is not None:
            self.panels.append(self.table.panel)

    def frame(self, state: Configuration) -> list[Any]:
        read = self.machine.read(state)
        rule = self.machine.rules.get((state.state, read))
        then = "halt" if rule is None else rule_words(rule)
        fields = {"state": state.state, "reads": " ".join(read), "then": then}
        if said := verdict(self.machine, state):
            fields["verdict"] = said
        tapes = [
            CellsFrame([(0, cell, symbol) for cell, symbol in sorted(tape.items())], [(0, head)])
            for tape, head in zip(state.tapes, state.heads, strict=True)
        ]
        return [fields, *tapes, *([self.table.place(state.state, read)] if self.table else [])]


class GridView:
    """State and plane of a grid machine."""

    def __init__(self, machine: GridMachine) -> None:
        self.panels: list[Panel] = [
            Fields("Grid machine"),
            Cells(
                "Plane",
                "text",
                default=(machine.blank,),
                explain=lambda r, c: (
                    f"Row {r}, column {c} of the plane, as the machine's interpreter has it."
                ),
            ),
        ]
        self.machine = machine

    def frame(self, state: GridConfiguration) -> list[Any]:
        reads = state.cells.get(state.head, self.machine.blank)
        cells = [(r, c, symbol) for (r, c), symbol in sorted(state.cells.items())]
        return [{"state": state.state, "reads": reads}, CellsFrame(cells, [state.head])]


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
    suits="tapegrad.lowering.configurations:suiting",
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
    ready=ReadyBy(READY, lambda name, entry: Ready(entry.summary, entry.build, entry.example)),
    parse_input=_words,
    call=call,
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
            suits="tapegrad.lowering.configurations:suiting_learner",
        ),
        Lowering("grid machine", "tapegrad.lowering.tables:on_grid"),
    ),
)
