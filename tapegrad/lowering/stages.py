"""A circuit evaluated in stages by the four heads of microcode, each stage a straight-line plan (`schedule`).

Some inputs are there at first, and others come between two stages, because what an earlier one has computed
says where to look for them. Every stage takes certain wires to certain cells, and ends with the heads where
the microcode wants them. What later stages need stays on the tapes; the state brings nothing along, save the
wires that are asked for. Heads may stay where they are.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tapegrad.circuits.model import Circuit
from tapegrad.lowering.microcode import TAPES, A, Action, Microcode, Reading, State
from tapegrad.lowering.schedule import (
    Head,
    Moment,
    Operation,
    Place,
    Planner,
    Wire,
    depth_first,
    operations_of,
    wires_carried,
)

ZERO, ONE = -1, -2
"""Wires that are always 0 and 1, and lie nowhere."""
CONSTANTS = {ZERO: Operation(0, ()), ONE: Operation(1, ())}


class Way(NamedTuple):
    """How stages are planned: wires that the state carries, and what is preferred (`Planner`)."""

    carried: int
    gain: float
    order: float


@dataclass(frozen=True)
class Stage:
    """What is done when, from time 0 on; where the heads are at every time; and the wires that the state
    holds in the end."""

    moments: list[Moment]
    heads: list[tuple[int, ...]]
    held: list[Wire]

    def carried(self, operations: Mapping[Wire, Operation]) -> list[list[Wire]]:
        """What the state brings along before each moment, and in the end."""
        last = Moment(
            computes=[wire for wire in self.held if wire in CONSTANTS], writes=dict(enumerate(self.held))
        )
        return wires_carried([*self.moments, last], {**operations, **CONSTANTS})[:-1]

    def states(self, operations: Mapping[Wire, Operation]) -> int:
        """How many there are, at most."""
        return sum(1 << len(wires) for wires in self.carried(operations)[:-1])


class Stages(Planner):
    """Stages one after the other, planned as they are asked for."""

    def __init__(
        self,
        circuit: Circuit,
        copies: Mapping[Wire, Wire],
        places: Mapping[Wire, Place],
        kept: Iterable[Wire],
        used: Sequence[int],
        asked: Sequence[Wire],
        way: Way,
    ) -> None:
        """`copies` are further wires, each like another. `places` are those of inputs, of which the cells of
        `kept` are never written over by other wires. Of each tape so many cells are `used` beside cell 0: to
        the right on A, to the left on the others. `asked` are all wires that stages will be asked for, as
        often as they will."""
        operations = operations_of(circuit) | {own: Operation(0b10, (of,)) for own, of in copies.items()}
        operations = depth_first(operations, [wire for wire in asked if wire not in CONSTANTS])
        self.kept = set(kept)
        super().__init__(len(circuit.inputs), operations, (), TAPES, way.carried)
        self.gain, self.order = way.gain, way.order
        self.place = dict(places)
        self.free = [set() for _ in range(TAPES)]
        self.extent = [[0, cells] if tape == A else [-cells, 0] for tape, cells in enumerate(used)]
        for wire in asked:
            if wire not in CONSTANTS:
                self.pending[wire] += 1
        self.heads = [Head(waits=True) for _ in range(TAPES)]

    def stage(
        self,
        targets: Sequence[tuple[Wire, Place]] = (),
        held: Sequence[Wire] = (),
        ends: Mapping[int, int] | None = None,
    ) -> Stage:
        """Takes these wires to their places, and goes on to the cells `ends`, home where there is none."""
        self._evaluate([wire for wire, _ in targets] + list(held))
        for wire, (tape, cell) in targets:
            if wire not in CONSTANTS and wire not in self.held:
                self._fetch([wire])
            self._put(wire, tape, cell)
            self._asked(wire)
            self._make_room()
        for wire in sorted(self.held - self.place.keys()):
            if self.pending[wire] > held.count(wire):
                self._store(wire)
        self.held &= {*held}
        for wire in held:
            if wire not in self.held and wire not in CONSTANTS:
                self._fetch([wire])
        for wire in held:
            self._asked(wire)
        cells = [(ends or {}).get(tape, 0) for tape in range(TAPES)]
        end = max(head.arrival(cell, self.now + 1) for head, cell in zip(self.heads, cells, strict=True))
        for head, cell in zip(self.heads, cells, strict=True):
            head.visit(end, cell, write=False)
        for moment in self.moments.values():
            moment.computes += [wire for wire in moment.writes.values() if wire in CONSTANTS]
        nothing = Moment()
        found = Stage(
            [self.moments.get(time, nothing) for time in range(end)],
            list(zip(*(_positions(head.visits) for head in self.heads), strict=True)),
            list(held),
        )
        self.begin(cells)
        return found

    def begin(self, cells: Sequence[int]) -> None:
        """The heads are at these cells, and time begins again."""
        self.now, self.moments, self.held = 0, defaultdict(Moment), set()
        self.heads = [Head([(0, cell)], waits=True) for cell in cells]

    def _evaluate(self, wires: Iterable[Wire]) -> None:
        """All gates that these depend on: always the one whose operands are reached first."""
        cone: dict[Wire, None] = {}
        waiting = [wire for wire in wires if wire in self.operations]
        while waiting:
            wire = waiting.pop()
            if wire not in cone and wire not in self.done:
                cone[wire] = None
                waiting += [own for own in self.operations[wire].operands if own in self.operations]
        missing = {wire: {*self.operations[wire].operands} & cone.keys() for wire in cone}
        readers: defaultdict[Wire, list[Wire]] = defaultdict(list)
        for wire, operands in missing.items():
            for own in operands:
                readers[own].append(wire)
        ready = {wire for wire, operands in missing.items() if not operands}
        while ready:
            for wire in self._compute(min(ready, key=self._cost)):
                ready.discard(wire)
                for reader in readers[wire]:
                    missing[reader].discard(wire)
                    if not missing[reader] and reader not in self.done:
                        ready.add(reader)

    def _put(self, wire: Wire, tape: int, cell: int) -> None:
        """Writes a wire to a cell that is not its own."""
        head = self.heads[tape]
        self.now = head.arrival(cell, self.now)
        head.visit(self.now, cell, write=True)
        self.moments[self.now].writes[tape] = wire

    def _asked(self, wire: Wire) -> None:
        if wire not in CONSTANTS:
            self.pending[wire] -= 1
            self._release(wire)
            self.held = {own for own in self.held if self._alive(own) or own == wire}

    def _release(self, wire: Wire) -> None:
        if wire not in self.kept:
            super()._release(wire)

    def _edges(self, tape: int) -> Iterable[int]:
        low, high = super()._edges(tape)
        return (high,) if tape == A else (low,)


def _positions(visits: Sequence[tuple[int, int]]) -> list[int]:
    """Where a head is at every time: it waits, and goes as late as it may."""
    cells = [visits[0][1]]
    for (time, cell), (following, there) in pairwise(visits):
        away = abs(there - cell)
        step = 1 if there > cell else -1
        cells += [cell] * (following - time - away)
        cells += [cell + step * turn for turn in range(1, away + 1)]
    return cells


def states_of(
    code: Microcode,
    label: str,
    stage: Stage,
    operations: Mapping[Wire, Operation],
    exits: Callable[[tuple[int, ...]], State],
) -> State:
    """The first state of a stage; `exits` takes the wires that are held in the end to what comes after."""
    table = {**operations, **CONSTANTS}
    end, carried = len(stage.moments), stage.carried(operations)
    own = object()

    def at(time: int, held: tuple[int, ...]) -> State:
        if time == end:
            values = {**dict(zip(carried[end], held, strict=True)), ZERO: 0, ONE: 1}
            return exits(tuple(values[wire] for wire in stage.held))
        state, new = code.state(label, own, time, held)
        if new:
            state.rule = lambda read: taken(time, held, read)
        return state

    def taken(time: int, held: tuple[int, ...], read: Reading) -> Action:
        moment = stage.moments[time]
        values = dict(zip(carried[time], held, strict=True))
        values |= {wire: read[tape] for tape, wire in moment.reads.items()}
        for wire in moment.computes:
            values[wire] = table[wire].value(values)
        write = {tape: values[wire] for tape, wire in moment.writes.items()}
        places = zip(stage.heads[time], stage.heads[time + 1], strict=True)
        moves = {tape: there - here for tape, (here, there) in enumerate(places) if there != here}
        return Action(write, moves, at(time + 1, tuple(values[wire] for wire in carried[time + 1])))

    return at(0, ())
