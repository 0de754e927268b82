"""A circuit's gates as operations to be planned, the quickest plan for them, and what it carries."""

from collections.abc import Sequence

from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.lowering.schedule import Moment, Operation, Plan, Wire, plan


def quickest_plan(
    circuit: Circuit, tapes: int, carried: int, kept: Sequence[Wire] = ()
) -> tuple[Plan, dict[Wire, Operation]]:
    """The best of a few plans, with the operations. The inputs `kept` stay where they lie."""
    operations = _operations(circuit)
    wanted = circuit.output_wires.tolist()
    orders = (operations, _depth_first(operations, wanted))
    plans = [
        plan(len(circuit.inputs), order, [*wanted, *kept], tapes=tapes, carried=carried) for order in orders
    ]
    return min(plans, key=lambda found: found.steps), operations


def _operations(circuit: Circuit) -> dict[Wire, Operation]:
    """The gates as truth tables, with every NOT taken into the tables of its readers. A NOT that is an
    output itself stays a gate."""
    first = len(circuit.inputs)
    inverted: dict[Wire, Wire] = {}
    found: dict[Wire, Operation] = {}
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    outputs = set(circuit.output_wires.tolist())
    for wire, (table, a, b) in enumerate(rows, first):
        if ARITY[table] == 0:
            found[wire] = Operation(int(table == Gate.TRUE), ())
        elif ARITY[table] == 1:
            inverted[wire] = a
            if wire in outputs:
                found[wire] = Operation(0b01, (a,))
        else:
            if a in inverted:
                table, a = table >> 2 | (table & 0b0011) << 2, inverted[a]
            if b in inverted:
                table, b = table >> 1 & 0b0101 | (table & 0b0101) << 1, inverted[b]
            found[wire] = Operation(table, (a, b))
    return found


def _depth_first(operations: dict[Wire, Operation], outputs: list[Wire]) -> dict[Wire, Operation]:
    """The same operations, each as late as its first reader allows: fewer wires are alive at a time."""
    ordered: dict[Wire, Operation] = {}
    waiting = outputs[::-1]
    while waiting:
        wire = waiting[-1]
        operation = operations.get(wire)  # none for an input
        missing = [w for w in operation.operands if w in operations and w not in ordered] if operation else []
        if missing and wire not in ordered:
            waiting.extend(reversed(missing))
            continue
        waiting.pop()
        if operation:
            ordered.setdefault(wire, operation)
    return ordered


def wires_carried(moments: Sequence[Moment], operations: dict[Wire, Operation]) -> list[list[Wire]]:
    """For each moment, and the end, the wires that the control brings along because they are used before
    they are read again: found backwards."""
    needed: set[Wire] = set()
    carried: list[list[Wire]] = [[]]
    for moment in reversed(moments):
        needed |= set(moment.writes.values())
        for wire in reversed(moment.computes):
            needed.discard(wire)
            needed |= set(operations[wire].operands)
        needed -= set(moment.reads.values())
        carried.append(sorted(needed))
    return carried[::-1]
