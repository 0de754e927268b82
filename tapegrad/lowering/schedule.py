"""Planning a circuit's evaluation by a machine whose heads travel: what is read, computed and written when.

The finite control carries a few wires; everything else lies on the tapes, one bit to a cell. Computing costs
no step, for the control does it while it reads. Only travel costs, so the plan

  - lays inputs out in the order of their first use, dealt to the tapes in turn;
  - computes a gate as soon as its operands are in the control, if the results fit there;
  - writes over the cell that is under a head anyway, if nobody needs its content any more;
  - lets every head travel while the others work.

Heads move at every step, since some targets take no machine that stays: a head that waits steps aside and
comes back, so it can only be where it was after an even number of steps.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.errors import Refused

Wire = int
Place = tuple[int, int]
"""A tape and a cell on it."""

MOST_FOR_NEAREST = 3000
"""Looking for the nearest gate takes time that grows with the square of their number."""


@dataclass(frozen=True)
class Operation:
    """A gate with none, one or two operands. Bit i of the table is its value where the operands, read as a
    binary number, are i."""

    table: int
    operands: tuple[Wire, ...]

    def value(self, values: Mapping[Wire, int]) -> int:
        """The gate's value, given those of its operands."""
        index = 0
        for operand in self.operands:
            index = 2 * index + values[operand]
        return self.table >> index & 1


@dataclass
class Moment:
    """What happens in one step, in this order."""

    reads: dict[int, Wire] = field(default_factory=dict)
    """On a tape, this wire."""
    computes: list[Wire] = field(default_factory=list)
    writes: dict[int, Wire] = field(default_factory=dict)
    """On a tape, this wire."""

    def to_json(self, operations: Mapping[Wire, Operation]) -> list[Any]:
        """Reads, gates and writes as lists: tape and wire; wire, table and operands; tape and wire."""
        gates = [[wire, operations[wire].table, *operations[wire].operands] for wire in self.computes]
        return [
            [list(pair) for pair in self.reads.items()],
            gates,
            [list(pair) for pair in self.writes.items()],
        ]


@dataclass(frozen=True)
class Plan:
    """The whole run: the moments in which something happens, when each head must be where, and where the
    wires lie before and after."""

    moments: dict[int, Moment]
    visits: list[list[tuple[int, int]]]
    """For each tape (time, cell), in order."""
    input_places: list[Place]
    output_places: list[Place]
    steps: int


@dataclass
class Head:
    visits: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    written: bool = False
    """Whether it wrote at its last visit; what it wrote cannot be read, or changed, in the same step."""
    waits: bool = False
    """Whether it may stay where it is."""

    def arrival(self, cell: int, now: int) -> int:
        """The first moment, from `now` on, at which the head can be at this cell and use it."""
        time, last = self.visits[-1]
        distance = abs(cell - last)
        earliest = time + ((1 if self.waits else 2) if self.written and not distance else distance)
        if self.waits:
            return max(earliest, now)
        return earliest if earliest >= now else now + (now - earliest) % 2

    def visit(self, time: int, cell: int, *, write: bool) -> None:
        """Goes there."""
        if self.visits[-1] != (time, cell):
            self.visits.append((time, cell))
        self.written = write


def plan(
    inputs: int, operations: dict[Wire, Operation], outputs: Sequence[Wire], *, tapes: int, carried: int
) -> Plan:
    """A plan for the operations, which are given in an order in which they can be computed: it keeps that
    order, or takes the gate that is nearest, whichever needs fewer steps. Wires below `inputs` are inputs.
    The control carries about `carried` wires (one or two more on the way to a gate's operands)."""
    ways = (Planner.run_in_order, Planner.run_nearest_first)
    plans: list[Plan] = []
    for way in ways if len(operations) <= MOST_FOR_NEAREST else ways[:1]:
        planner = Planner(inputs, operations, outputs, tapes, carried)
        way(planner)
        plans.append(planner.finished(outputs))
    return min(plans, key=lambda found: found.steps)


class Planner:
    gain, order = 1.0, 0.0
    """By how many steps a gate is preferred for each wire that it sets free, and for each gate that it comes
    before in the order given."""

    def __init__(
        self,
        inputs: int,
        operations: dict[Wire, Operation],
        outputs: Iterable[Wire],
        tapes: int,
        carried: int,
    ) -> None:
        self.operations, self.carried, self.wanted = operations, carried, set(outputs)
        self.position = {wire: i for i, wire in enumerate(operations)}
        self.consumers: defaultdict[Wire, list[Wire]] = defaultdict(list)
        for wire, operation in operations.items():
            for operand in operation.operands:
                self.consumers[operand].append(wire)
        self.pending = {wire: len(self.consumers[wire]) for wire in [*range(inputs), *operations]}
        self.done: set[Wire] = set()
        self.held: set[Wire] = set()
        self.now = 0
        self.moments: defaultdict[int, Moment] = defaultdict(Moment)
        self.heads = [Head() for _ in range(tapes)]
        by_first_use = sorted(range(inputs), key=lambda wire: (self._next_use(wire), wire))
        self.place: dict[Wire, Place] = {w: (i % tapes, i // tapes) for i, w in enumerate(by_first_use)}
        self.input_places = [self.place[wire] for wire in range(inputs)]
        self.extent = [
            [0, max((c for t, c in self.input_places if t == tape), default=0)] for tape in range(tapes)
        ]
        self.free: list[set[int]] = [set() for _ in range(tapes)]
        for wire in range(inputs):
            self._release(wire)

    def run_in_order(self) -> None:
        """All gates in the order given, save those computed early."""
        for wire in self.operations:
            if wire not in self.done:
                self._compute(wire)

    def run_nearest_first(self) -> None:
        """Always the gate whose operands are reached first; setting a wire free counts as steps gained."""
        missing = {w: len({*op.operands} & self.operations.keys()) for w, op in self.operations.items()}
        readers = {wire: set(self.consumers[wire]) for wire in self.operations}
        ready = {wire for wire, count in missing.items() if not count}
        while ready:
            for wire in self._compute(min(ready, key=self._cost)):
                ready.discard(wire)
                for reader in readers[wire]:
                    missing[reader] -= 1
                    if not missing[reader] and reader not in self.done:
                        ready.add(reader)

    def _cost(self, wire: Wire) -> tuple[float, int]:
        operands = {*self.operations[wire].operands}
        gained = sum(self.pending[operand] == 1 for operand in operands)
        arrival, reached = self.now, dict[int, Head]()
        for operand in operands - self.held:
            tape, cell = self.place[operand]
            head = reached.get(tape, self.heads[tape])
            time = head.arrival(cell, self.now)
            reached[tape] = Head([(time, cell)], waits=head.waits)
            arrival = max(arrival, time)
        return arrival - self.gain * gained + self.order * self.position[wire], self.position[wire]

    def finished(self, outputs: Sequence[Wire]) -> Plan:
        """The plan, once what is still in the control has been written down."""
        while self.held:
            self._store(self._least_urgent(self.held))
            self._drop_dead()
        visits = [head.visits for head in self.heads]
        places = [self.place[wire] for wire in outputs]
        return Plan(dict(self.moments), visits, self.input_places, places, self.now + 1)

    def _next_use(self, wire: Wire) -> int:
        """When, in the order of gates, the wire is needed next; never is late."""
        consumers = self.consumers[wire]
        while consumers and consumers[0] in self.done:
            consumers.pop(0)
        waiting = (self.position[c] for c in consumers if c not in self.done)
        return next(waiting, len(self.position))

    def _alive(self, wire: Wire) -> bool:
        return self.pending[wire] > 0 or (wire in self.wanted and wire not in self.place)

    def _drop_dead(self) -> None:
        self.held = {wire for wire in self.held if self._alive(wire)}

    def _release(self, wire: Wire) -> None:
        """Gives back the cell of a wire that nobody needs any more."""
        if wire in self.place and not self.pending[wire] and wire not in self.wanted:
            tape, cell = self.place.pop(wire)
            self.free[tape].add(cell)

    def _compute(self, wire: Wire) -> list[Wire]:
        """Computes a gate, and gives back all that were computed with it."""
        missing = [w for w in dict.fromkeys(self.operations[wire].operands) if w not in self.held]
        self._fetch(missing)
        batch = self._batch(wire, missing)
        for gate in batch:
            self.moments[self.now].computes.append(gate)
            self.done.add(gate)
            self.held.add(gate)
            for operand in self.operations[gate].operands:
                self.pending[operand] -= 1
                self._release(operand)
        self._drop_dead()
        self._write_in_passing()
        self._make_room()
        return batch

    def _fetch(self, missing: list[Wire]) -> None:
        """Reads wires from their cells; two on the same tape in the order that needs less travel."""
        if len(missing) == 2:
            (tape, a), (other, b) = (self.place[wire] for wire in missing)
            _, here = self.heads[tape].visits[-1]
            if tape == other and abs(b - here) < abs(a - here):
                missing = missing[::-1]
        begin = self.now
        for wire in missing:
            tape, cell = self.place[wire]
            time = self.heads[tape].arrival(cell, begin)
            self.heads[tape].visit(time, cell, write=False)
            self.moments[time].reads[tape] = wire
            self.held.add(wire)
            self.now = max(self.now, time)

    def _batch(self, wire: Wire, fetched: list[Wire]) -> list[Wire]:
        """The gate, and with it all others that have become computable, if what is left fits."""
        batch, known = [wire], self.held | {wire}
        waiting = [*fetched, wire]
        while waiting:
            for consumer in self.consumers[waiting.pop()]:
                ready = consumer not in known and consumer not in self.done
                if ready and known.issuperset(self.operations[consumer].operands):
                    batch.append(consumer)
                    known.add(consumer)
                    waiting.append(consumer)
        left = {wire: self.pending[wire] for wire in known}
        for gate in batch:
            for operand in self.operations[gate].operands:
                left[operand] -= 1
        alive = sum(n > 0 or (w in self.wanted and w not in self.place) for w, n in left.items())
        return batch if alive <= self.carried else [wire]

    def _write_in_passing(self) -> None:
        for tape, head in enumerate(self.heads):
            time, cell = head.visits[-1]
            only_here = [wire for wire in self.held if wire not in self.place]
            if only_here and time == self.now and not head.written and cell in self.free[tape]:
                self._write(self._least_urgent(only_here), tape, cell, time)
        self._drop_dead()

    def _make_room(self) -> None:
        while len(self.held) > self.carried:
            on_tape = self.held & self.place.keys()
            victim = self._least_urgent(on_tape or self.held)
            if victim not in self.place:
                self._store(victim)
            self.held.discard(victim)

    def _least_urgent(self, wires: Iterable[Wire]) -> Wire:
        return max(wires, key=lambda wire: (self._next_use(wire), wire))

    def _store(self, wire: Wire) -> None:
        """Writes a wire to the free cell that a head reaches first."""
        choices = [
            (head.arrival(cell, self.now), tape, cell)
            for tape, head in enumerate(self.heads)
            for cell in (*self.free[tape], *self._edges(tape))
        ]
        self.now, tape, cell = min(choices)
        self.heads[tape].visit(self.now, cell, write=True)
        self._write(wire, tape, cell, self.now)

    def _edges(self, tape: int) -> Iterable[int]:
        """The cells beside those that are in use."""
        low, high = self.extent[tape]
        return low - 1, high + 1

    def _write(self, wire: Wire, tape: int, cell: int, time: int) -> None:
        self.moments[time].writes[tape] = wire
        self.heads[tape].written = True
        self.place[wire] = (tape, cell)
        self.free[tape].discard(cell)
        low, high = self.extent[tape]
        self.extent[tape] = [min(low, cell), max(high, cell)]


# A circuit's gates as operations to be planned, the quickest plan for them, and what it carries.


MOST_GATES = 20_000
"""Planning a machine for more than these would take minutes, and its table would fill gigabytes."""


def refuse_many_gates(circuit: Circuit) -> None:
    """Says at once, before any plan, that a circuit is too large for a machine of its own."""
    if circuit.size > MOST_GATES:
        raise Refused(
            f"{circuit.name!r} has {circuit.size:,} gates; a machine is made of {MOST_GATES:,} at most",
            advice="Choose relu for a circuit and emulator for a learner or a program: they take gates as "
            "they are. Or make it smaller (for a program: less memory).",
        )


def quickest_plan(
    circuit: Circuit, tapes: int, carried: int, kept: Sequence[Wire] = ()
) -> tuple[Plan, dict[Wire, Operation]]:
    """The best of a few plans, with the operations. The inputs `kept` stay where they lie."""
    operations = operations_of(circuit)
    wanted = circuit.output_wires.tolist()
    orders = (operations, depth_first(operations, wanted))
    plans = [
        plan(len(circuit.inputs), order, [*wanted, *kept], tapes=tapes, carried=carried) for order in orders
    ]
    return min(plans, key=lambda found: found.steps), operations


def operations_of(circuit: Circuit) -> dict[Wire, Operation]:
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


def depth_first(operations: dict[Wire, Operation], outputs: list[Wire]) -> dict[Wire, Operation]:
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
