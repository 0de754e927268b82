"""A machine's transition table as text."""

from tapegrad.machines.grid import GridMachine
from tapegrad.machines.model import LEFT, RIGHT, STAY, TuringMachine

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
