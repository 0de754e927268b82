"""Passes from a circuit to a machine on the grid: the circuit drawn row by row, or, for a few gates, a
straight-line machine on one row.

A drawing has a row for each gate. Executed on formulas in place of bits, the last row must have the formulas
of the circuit's outputs in their columns: that is the proof. The machine is the same for all drawings, and is
written down anew. It leaves the bits of row r above the marks of row r + 1:

    scan    to the right: over nothing and over the place of the result; at a mark that asks for a bit, up
    fetch   on that bit: down again with it
    put     copies the bit (c, u), drops it (d), or leaves the place of the result (v); u, d and v remember it
    back    from the sign to the left with the gate's value, up to its place; then `home` to the edge

so that after a row all bits that it copies, and the result, stand in it, and the head is at the next edge.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

from tapegrad_check.core.nodes import Nodes
from tapegrad_check.folder import NotProved, require
from tapegrad_check.passes.machines import line_to_grid
from tapegrad_check.passes.plans import BITS, Gate, straight_line
from tapegrad_check.passes.step import Step
from tapegrad_check.sources import Circuit, GridMachine, GridRule, Model

SIGNS = {"f": (0, 0), "t": (0, 1), "~": (1, 1), "=": (1, 2)} | {
    chr(ord("A") + table): (2, table) for table in (1, 2, 4, 6, 7, 8, 9, 11, 13, 14)
}
"""How many operands a gate has, and its truth table."""
COPIED, USED, RESULT = "cu", "udv", "ov"


def _row_by_row(before: Model, step: Step) -> Model:
    require(isinstance(before, Circuit), "only a circuit is drawn")
    assert isinstance(before, Circuit)
    drawing = step.relation
    if drawing is None:
        raise NotProved(f"the folder holds no drawing for the pass {step.name!r}; save the net again")
    rows, outputs = drawing["rows"], drawing["outputs"]
    texts = isinstance(rows, list) and rows and all(isinstance(row, str) and len(row) > 1 for row in rows)
    require(texts, "the rows of the drawing are no texts")
    nodes = Nodes()
    inputs = nodes.variables(len(before.inputs))
    registers = dict(enumerate(inputs))
    for row in rows:
        registers = _after(row, registers, nodes)
    known = isinstance(outputs, list) and all(type(c) is int and c in registers for c in outputs)
    require(known and len(outputs) == len(before.outputs), "not every output has a column")
    found = [registers[column] for column in outputs]
    nodes.require_same(found, nodes.outputs(before, inputs), "the drawing does not compute the circuit")
    step.statements.append(
        f"the drawing of {len(rows):,} rows has the circuit's {len(outputs):,} outputs in its last row, "
        "shown on formulas in place of bits"
    )
    return _machine()


def _after(row: str, above: dict[int, int], nodes: Nodes) -> dict[int, int]:
    """The bits that a row leaves, from those above it."""
    operands, kept, places = list[int](), dict[int, int](), list[int]()
    for column, mark in enumerate(row[:-1]):
        require(mark in "_cudov", "the drawing has a mark that is none")
        if mark in COPIED + USED:
            require(column in above, "the drawing uses a bit that is not there")
        if mark in COPIED:
            kept[column] = above[column]
        if mark in USED:
            operands.append(above[column])
        if mark in RESULT:
            places.append(column)
    count, table = SIGNS.get(row[-1], (-1, 0))
    require(count == len(operands) and len(places) == 1, "a row of the drawing is no gate")
    names = tuple(range(count))
    return kept | {places[0]: Gate(-1, table, names).formula(nodes, dict(enumerate(operands)))}


def _machine() -> GridMachine:
    """Rules in the order in which they are saved."""
    rules: dict[tuple[str, str], GridRule] = {}

    def add(state: str, read: str, write: str, move: str, to: str) -> None:
        rules[state, read] = GridRule(write, move, to)

    add("next", "[", "[", "right", "scan")
    for memory in [(), *product(BITS), *product(BITS, BITS)]:
        mind = "".join(f" {bit}" for bit in memory)
        more = len(memory) < 2
        add(f"scan{mind}", "_", "_", "right", f"scan{mind}")
        add(f"scan{mind}", "o", "o", "right", f"scan{mind}")
        for mark in "cudv" if more else "c":
            add(f"scan{mind}", mark, mark, "up", f"fetch{mind}")
        place = sum(1 << i for i, bit in enumerate(reversed(memory)) if bit == "1")
        for sign, (operands, table) in SIGNS.items():
            if operands == len(memory):
                add(f"scan{mind}", sign, sign, "left", f"back {table >> place & 1}")
        for bit in BITS:
            add(f"fetch{mind}", bit, bit, "down", f"put {bit}{mind}")
            add(f"put {bit}{mind}", "c", bit, "right", f"scan{mind}")
            for mark, left in zip("udv", (bit, "_", "o"), strict=True) if more else ():
                add(f"put {bit}{mind}", mark, left, "right", f"scan{mind} {bit}")
    for read in ("_", *BITS):
        for state in ("back 0", "back 1", "home"):
            add(state, read, read, "left", state)
    for bit in BITS:
        add(f"back {bit}", "o", bit, "left", "home")
    add("home", "[", "[", "down", "next")
    symbols = dict.fromkeys(["_", *(s for (_, read), rule in rules.items() for s in (read, rule.write))])
    states = dict.fromkeys(["next", *(s for (state, _), rule in rules.items() for s in (state, rule.state))])
    return GridMachine("next", "_", tuple(symbols), tuple(states), rules)


def _on_a_row(before: Model, step: Step) -> Model:
    return line_to_grid(straight_line(before, step), step)


PASSES: dict[str, Callable[[Model, Step], Any]] = {
    "gates drawn row by row": _row_by_row,
    "straight-line machine on the grid": _on_a_row,
}
