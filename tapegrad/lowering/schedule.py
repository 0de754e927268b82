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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Wire = int
Place = tuple[int, int]
"""A tape and a cell on it."""


@dataclass(frozen=True)
class Operation:
    """A gate with none, one or two operands. Bit i of the table is its value where the operands, read as a
    binary number, are i."""

    table: int
    operands: tuple[Wire, ...]


@dataclass
class Moment:
    """What happens in one step, in this order."""

    reads: dict[int, Wire] = field(default_factory=dict)
    """On a tape, this wire."""
    computes: list[Wire] = field(default_factory=list)
    writes: dict[int, Wire] = field(default_factory=dict)
    """On a tape, this wire."""


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
class _Head:
    visits: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    written: bool = False
    """Whether it wrote at its last visit; what it wrote cannot be read, or changed, in the same step."""

    def arrival(self, cell: int, now: int) -> int:
        """The first moment, from `now` on, at which the head can be at this cell and use it."""
        time, last = self.visits[-1]
        distance = abs(cell - last)
        earliest = time + (2 if self.written and not distance else distance)
        return earliest if earliest >= now else now + (now - earliest) % 2

    def visit(self, time: int, cell: int, *, write: bool) -> None:
        """Goes there."""
        if self.visits[-1] != (time, cell):
            self.visits.append((time, cell))
        self.written = write


def plan(
    inputs: int, operations: dict[Wire, Operation], outputs: Sequence[Wire], *, tapes: int, carried: int
) -> Plan:
    """A plan for the operations, which are given in an order in which they can be computed. Wires below
    `inputs` are inputs. The control carries about `carried` wires (a step or two, a few more)."""
    planner = _Planner(inputs, operations, outputs, tapes, carried)
    planner.run()
    return Plan(
        dict(planner.moments),
        [head.visits for head in planner.heads],
        planner.input_places,
        [planner.place[wire] for wire in outputs],
        planner.now + 1,
    )


class _Planner:
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
        self.heads = [_Head() for _ in range(tapes)]
        by_first_use = sorted(range(inputs), key=lambda wire: (self._next_use(wire), wire))
        self.place: dict[Wire, Place] = {w: (i % tapes, i // tapes) for i, w in enumerate(by_first_use)}
        self.input_places = [self.place[wire] for wire in range(inputs)]
        self.extent = [
            [0, max((c for t, c in self.input_places if t == tape), default=0)] for tape in range(tapes)
        ]
        self.free: list[set[int]] = [set() for _ in range(tapes)]
        for wire in range(inputs):
            self._release(wire)

    def run(self) -> None:
        """Everything, in order."""
        for wire in self.operations:
            if wire not in self.done:
                self._compute(wire)
        while self.held:
            self._store(self._least_urgent(self.held))
            self._drop_dead()

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

    def _compute(self, wire: Wire) -> None:
        missing = [w for w in dict.fromkeys(self.operations[wire].operands) if w not in self.held]
        self._fetch(missing)
        for gate in self._batch(wire, missing):
            self.moments[self.now].computes.append(gate)
            self.done.add(gate)
            self.held.add(gate)
            for operand in self.operations[gate].operands:
                self.pending[operand] -= 1
                self._release(operand)
        self._drop_dead()
        self._write_in_passing()
        self._make_room()

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
            for cell in (*self.free[tape], self.extent[tape][0] - 1, self.extent[tape][1] + 1)
        ]
        self.now, tape, cell = min(choices)
        self.heads[tape].visit(self.now, cell, write=True)
        self._write(wire, tape, cell, self.now)

    def _write(self, wire: Wire, tape: int, cell: int, time: int) -> None:
        self.moments[time].writes[tape] = wire
        self.heads[tape].written = True
        self.place[wire] = (tape, cell)
        self.free[tape].discard(cell)
        low, high = self.extent[tape]
        self.extent[tape] = [min(low, cell), max(high, cell)]
