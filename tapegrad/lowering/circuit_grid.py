"""Circuit to grid machine: the circuit is drawn on the grid, a row for each gate, and a fixed machine, the
same for all circuits, walks over the drawing.

Columns are registers. Row 0 holds the inputs. Every further row says what becomes of each register while one
gate is computed:

    c   the bit above is copied        u   copied, and used as an operand
    o   the gate's value comes here    d   used, and dropped
    _   nothing, a bit is not needed   v   used, and then the gate's value comes here

and ends with the sign of the gate, whose truth table takes its operands from left to right. `[` stands before
every row. On its way to the right the head copies bits down, column by column, and remembers at most two; at
the sign it knows the value, takes it back to its place, and goes on from `[` to the next row. Where there is
no row it halts, and the outputs are in the last.

A row takes three steps for each bit that is copied or used and one for each register on the way there and
back. So steps grow as gates times registers; the machine does not grow at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from tapegrad.circuits.builder import simplified
from tapegrad.circuits.model import Bits, Circuit
from tapegrad.errors import InputError, Refused
from tapegrad.lowering.circuit_machine import straight_line
from tapegrad.lowering.schedule import Operation, Wire, depth_first, operations_of
from tapegrad.lowering.tables import to_grid
from tapegrad.machines.model import GridConfiguration, GridMachine, GridRule, TuringMachine
from tapegrad.source import Rewriting, chained

BLANK, BITS, EDGE = "_", "01", "["
COPY, USE, DROP, PLACE, REPLACE = "c", "u", "d", "o", "v"
NEXT = "next"
SIGNS = {
    (0, 0): "f",
    (0, 1): "t",
    (1, 1): "~",
    (1, 2): "=",
    **{(2, table): "ABCDEFGHIJKLMNOP"[table] for table in (1, 2, 4, 6, 7, 8, 9, 11, 13, 14)},
}
"""How gates are written, by the number of their operands and their truth table: bit i is the value where the
operands, the left one first, are i as a binary number. Gates that do not depend on all do not occur."""
MOST_CELLS = 1 << 20
"""Of a drawing."""
FEW_STATES = 128
"""Of a machine made for the circuit, which takes fewer steps: a filter has 10 weights for each unit and
channel, so about 80 for each pair of its states, and with more of them than this more than for drawings."""

Held = tuple[int, ...]
"""The operands that the machine remembers."""


@dataclass(frozen=True)
class Drawing:
    """Rows of symbols by column, and the columns of inputs and outputs."""

    rows: list[dict[int, str]]
    inputs: int
    outputs: list[int]

    @property
    def width(self) -> int:
        """Columns, with those of signs."""
        return max([self.inputs, *(1 + max(row) for row in self.rows)])

    @property
    def cells(self) -> int:
        """As many as the head passes on its way to the right."""
        return sum(1 + max(row) for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Rows as words, and the columns of outputs."""
        rows = ["".join(row.get(c, BLANK) for c in range(1 + max(row))) for row in self.rows]
        return {"rows": rows, "outputs": self.outputs}


def drawn(inputs: int, operations: Mapping[Wire, Operation], outputs: Sequence[Wire]) -> Drawing:
    """The gates in this order, all of them needed, each result in the first register that is free. Without
    gates a constant is computed, so that there is a step."""
    gates = dict(operations) or {inputs: Operation(0, ())}
    left = dict.fromkeys([*range(inputs), *gates], 0)
    for wire in (*outputs, *(operand for own in gates.values() for operand in {*own.operands})):
        left[wire] += 1
    column: dict[Wire, int] = {wire: wire for wire in range(inputs) if left[wire]}
    rows: list[dict[int, str]] = []
    cells = 0
    for wire, own in gates.items():
        row = dict.fromkeys(column.values(), COPY)
        operands = sorted({*own.operands}, key=column.__getitem__)
        signed = SIGNS[len(operands), _in_order(own, operands)]
        for operand in operands:
            left[operand] -= 1
            row[column[operand]] = USE if left[operand] else DROP
            if not left[operand]:
                del column[operand]
        taken = {*column.values()}
        column[wire] = next(place for place in range(len(taken) + 1) if place not in taken)
        row[column[wire]] = REPLACE if row.get(column[wire]) == DROP else PLACE
        row[1 + max(row)] = signed
        rows.append(row)
        cells += len(row)
        if cells > MOST_CELLS:
            raise Refused(
                f"drawn on a grid, a row for each gate, {len(rows):,} of {len(gates):,} gates take {cells:,} "
                f"cells, the last {len(row):,} of them; the limit is {MOST_CELLS:,}",
                advice="Use the target relu, transformer or emulator, which take gates as they are.",
            )
    return Drawing(rows, inputs, [column[wire] for wire in outputs])


def _in_order(own: Operation, operands: Sequence[Wire]) -> int:
    """The truth table for operands in this order, each once."""
    cases = product((0, 1), repeat=len(operands))
    return sum(own.value(dict(zip(operands, bits, strict=True))) << case for case, bits in enumerate(cases))


def circuit_grid(circuit: Circuit) -> Rewriting:
    """The machine that evaluates drawings, with this circuit drawn on its grid; for a few gates one that is
    made for them, on a row of the grid."""
    if circuit.size <= FEW_STATES:
        single = straight_line(circuit)
        assert isinstance(single.after, TuringMachine)
        if len(single.after.states) <= FEW_STATES:
            chain = chained(single, to_grid(single.after))
            return replace(chain, name="straight-line machine on the grid", relation=single.relation)
    return circuit_drawing(circuit)


def drawing_of(small: Circuit) -> Drawing:
    """The smaller of two drawings of a circuit without gates that are not needed: in the order of its
    outputs, each with all that it takes, and in its own. One of them may be too large."""
    inputs, outputs = len(small.inputs), small.output_wires.tolist()
    gates = operations_of(small)
    deep = depth_first(gates, outputs)
    orders = (deep, {wire: own for wire, own in gates.items() if wire in deep})
    fitting: list[Drawing] = []
    for last, order in enumerate(orders, 1):
        try:
            fitting.append(drawn(inputs, order, outputs))
        except Refused:
            if last == len(orders) and not fitting:
                raise
    return min(fitting, key=lambda own: own.cells)


def circuit_drawing(circuit: Circuit) -> Rewriting:
    """The machine that evaluates drawings, with this circuit drawn on its grid."""
    drawing, inputs = drawing_of(simplified(circuit)), len(circuit.inputs)
    last = len(drawing.rows)
    cells = {(r, c): symbol for r, row in enumerate(drawing.rows, 1) for c, symbol in row.items()}
    cells |= {(r, -1): EDGE for r in range(1, 1 + last)}

    def encode(bits: Bits) -> GridConfiguration:
        if len(bits) != 1:
            raise InputError(f"a machine evaluates one row of bits at a time, not {len(bits)}")
        row = {(0, c): BITS[bit] for c, bit in enumerate(circuit.start(bits)[0].astype(int))}
        return GridConfiguration(NEXT, cells | row, (1, -1))

    def decode(state: GridConfiguration) -> Bits | None:
        places = {1: (0, range(inputs)), last + 1: (last, drawing.outputs)}
        if state.state != NEXT or state.head[0] not in places:
            return None
        r, columns = places[state.head[0]]
        return np.array([[state.cells[r, c] == BITS[1] for c in columns]], bool)

    return Rewriting(
        "gates drawn row by row",
        circuit,
        drawing_machine(),
        encode,
        decode,
        one_by_one=True,
        relation=lambda: (drawing.to_json(), {}),
    )


@cache
def drawing_machine() -> GridMachine:
    """The machine itself. In `scan` it is on its way to the right, in `fetch` on the bit above, in `put` back
    below with that bit; all of them remember the operands so far. `back` brings the gate's value to its
    place, `home` goes on to the edge."""
    rules: dict[tuple[str, str], GridRule] = {(NEXT, EDGE): GridRule(EDGE, "right", _name("scan"))}
    for held in _HELD:
        scan, fetch = _name("scan", held), _name("fetch", held)
        for passed in (BLANK, PLACE):
            rules[scan, passed] = GridRule(passed, "right", scan)
        for asks in (COPY, USE, DROP, REPLACE) if len(held) < 2 else (COPY,):
            rules[scan, asks] = GridRule(asks, "up", fetch)
        for (operands, table), sign in SIGNS.items():
            if operands == len(held):
                value = table >> int("0" + "".join(map(str, held)), 2) & 1
                rules[scan, sign] = GridRule(sign, "left", f"back {value}")
        for bit, symbol in enumerate(BITS):
            put = _name(f"put {bit}", held)
            rules[fetch, symbol] = GridRule(symbol, "down", put)
            rules[put, COPY] = GridRule(symbol, "right", scan)
            for asks, left in ((USE, symbol), (DROP, BLANK), (REPLACE, PLACE)) if len(held) < 2 else ():
                rules[put, asks] = GridRule(left, "right", _name("scan", (*held, bit)))
    for passed in (BLANK, *BITS):
        for state in ("back 0", "back 1", "home"):
            rules[state, passed] = GridRule(passed, "left", state)
    for symbol in BITS:
        rules[f"back {symbol}", PLACE] = GridRule(symbol, "left", "home")
    rules["home", EDGE] = GridRule(EDGE, "down", NEXT)
    return GridMachine(rules, NEXT, BLANK, "evaluator of drawings")


_HELD = [held for count in range(3) for held in product((0, 1), repeat=count)]


def _name(what: str, held: Held = ()) -> str:
    return " ".join([what, *map(str, held)])
