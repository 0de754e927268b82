"""The evaluation of a circuit as a round trip: which spots to visit in which order, wherever they may lie.

A plan for one tape (`schedule`) says what is read, computed and written when. Where the head goes depends on
the time alone, so the cells of that tape need not be the cells of a line: whoever writes the machine gives
every spot a cell of a tape or a grid, and the head walks from one to the next. Outputs have spots of their
own, where the results are taken in the end.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.builder import simplified
from tapegrad.circuits.model import Circuit
from tapegrad.errors import Refused
from tapegrad.lowering.schedule import Moment, Operation, Plan, Wire, quickest_plan, wires_carried
from tapegrad.machines.model import MOVES, Cell, GridRule

MOST_RULES = 1_000_000


@dataclass(frozen=True)
class Output:
    """The spot of an output."""

    index: int


Spot = int | Output
"""Inputs and intermediate results have the numbers of their cells in the plan."""


@dataclass(frozen=True)
class Stop:
    """A visit: what is read, computed and written there."""

    spot: Spot
    moment: Moment


@dataclass(frozen=True)
class Itinerary:
    """The stops, no two in a row at the same spot, and the spot of every input."""

    stops: list[Stop]
    inputs: list[int]
    operations: dict[Wire, Operation]
    name: str


def itinerary(circuit: Circuit, carried: int, kept: Sequence[int] = ()) -> Itinerary:
    """The round trip that evaluates a circuit, with about `carried` wires in the state at a time. In the end
    the outputs are taken to their spots, as many at a time. Of the inputs those numbered in `kept` are left
    as they are; the others may be written over."""
    smaller = simplified(circuit)
    plan, operations = quickest_plan(smaller, 1, carried, kept)
    stops = list(_stops(plan))
    found = zip(plan.output_places, smaller.output_wires.tolist(), strict=False)  # no places of kept ones
    outputs = sorted((cell, index, wire) for index, ((_, cell), wire) in enumerate(found))
    for first in range(0, len(outputs), carried):
        group = outputs[first : first + carried]
        stops += [Stop(cell, Moment(reads={0: wire})) for cell, _, wire in group]
        stops += [Stop(Output(index), Moment(writes={0: wire})) for _, index, wire in group]
    inputs = [cell for _, cell in plan.input_places]
    return Itinerary(list(_merged(stops)), inputs, operations, circuit.name)


def _stops(plan: Plan) -> Iterator[Stop]:
    """The moments of the plan; what needs no visit is computed at the next."""
    visited = dict(plan.visits[0])
    computes: list[Wire] = []
    for time, moment in sorted(plan.moments.items()):
        computes = [*computes, *moment.computes]
        if moment.reads or moment.writes:
            yield Stop(visited[time], Moment(moment.reads, computes, moment.writes))
            computes = []


def _merged(stops: Sequence[Stop]) -> Iterator[Stop]:
    """Two stops in a row at one spot become one: what the second reads, the first has read or written."""
    waiting: Stop | None = None
    for stop in stops:
        if waiting is None:
            waiting = stop
        elif waiting.spot != stop.spot:
            yield waiting
            waiting = stop
        else:
            first, second = waiting.moment, stop.moment
            reads = first.reads or ({} if first.writes else second.reads)
            computes = [*first.computes, *second.computes]
            waiting = Stop(stop.spot, Moment(reads, computes, second.writes or first.writes))
    if waiting is not None:
        yield waiting


Member = tuple[int, Spot]
"""A spot of one of several round trips, which share the cells that they are walked on."""


@dataclass(frozen=True)
class Body:
    """Spots that stay together: each member is so many rows below the body's cell."""

    members: tuple[tuple[Member, int], ...]

    def cells(self, at: Cell) -> list[tuple[Member, Cell]]:
        """Where the members are when the body is there."""
        return [(member, (at[0] + down, at[1])) for member, down in self.members]


class Arrangement:
    """Bodies on a grid, moved and exchanged until no such change makes the walks shorter. A walk counts once
    for each content of the finite control that it may be made with, for these are states."""

    TRIED = 12
    """Places that a body is tried at, the nearest to where its walks lead."""
    MOST_ROUNDS = 30

    def __init__(
        self, trips: Sequence[Itinerary], room: Sequence[Cell], fixed: Mapping[Member, Cell]
    ) -> None:
        self.room = np.array(room)
        self.cell = dict(fixed)
        self.at: dict[Body, Cell] = {}
        self.taken: dict[tuple[int, Cell], Body] = {}
        self.legs: dict[Member, dict[Member, int]] = defaultdict(lambda: defaultdict(int))
        for number, trip in enumerate(trips):
            held = wires_carried([stop.moment for stop in trip.stops], trip.operations)
            for (one, two), wires in zip(pairwise(trip.stops), held[1:], strict=False):
                a, b = (number, one.spot), (number, two.spot)
                self.legs[a][b] += 1 << len(wires)
                self.legs[b][a] += 1 << len(wires)

    def put(self, body: Body, at: Cell) -> None:
        """Takes the body there."""
        self.lift(body)
        self.at[body] = at
        for member, cell in body.cells(at):
            self.cell[member] = cell
            self.taken[member[0], cell] = body

    def lift(self, body: Body) -> None:
        """Leaves its cells free."""
        if body in self.at:
            for (trip, _), cell in body.cells(self.at.pop(body)):
                self.taken.pop((trip, cell), None)

    def fits(self, body: Body, at: Cell) -> bool:
        """Whether nothing else is there."""
        return all(self.taken.get((trip, cell), body) is body for (trip, _), cell in body.cells(at))

    def costs(self, body: Body) -> NDArray[np.int64]:
        """The walks to and from the body, for each place of the room; spots without a cell do not count."""
        own = {member for member, _ in body.members}
        total = np.zeros(len(self.room), np.int64)
        for member, down in body.members:
            for other, weight in self.legs[member].items():
                if other in self.cell and other not in own:
                    row, column = self.cell[other]
                    away = np.abs(self.room[:, 0] + down - row) + np.abs(self.room[:, 1] - column)
                    total += weight * away
        return total

    def cost(self, body: Body) -> int:
        """The walks to and from the body where it is."""
        return sum(
            weight * len(way(self.cell[member], self.cell[other]))
            for member, _ in body.members
            for other, weight in self.legs[member].items()
        )

    def place(self, body: Body) -> None:
        """Puts a body where the walks to what has a cell already are shortest."""
        order = np.argsort(self.costs(body), kind="stable")
        places = ((int(row), int(column)) for row, column in self.room[order])
        self.put(body, next(at for at in places if self.fits(body, at)))

    def settle(self) -> None:
        """Moves and exchanges bodies while that helps."""
        for _ in range(self.MOST_ROUNDS):
            if not sum(self._improve(body) for body in list(self.at)):
                return

    def _improve(self, body: Body) -> bool:
        here, costs = self.at[body], self.costs(body)
        before = self.cost(body)
        for place in np.argsort(costs, kind="stable")[: self.TRIED]:
            there = int(self.room[place][0]), int(self.room[place][1])
            if there == here:
                continue
            if self.fits(body, there):
                self.put(body, there)
                if self.cost(body) < before:
                    return True
                self.put(body, here)
                continue
            other = self.taken.get((body.members[0][0][0], there))
            if other is None or self.at[other] != there or not _alike(body, other):
                continue
            both = before + self.cost(other)
            self._exchange(body, other)
            if self.cost(body) + self.cost(other) < both:
                return True
            self._exchange(body, other)
        return False

    def _exchange(self, one: Body, other: Body) -> None:
        here, there = self.at[one], self.at[other]
        self.lift(one)
        self.put(other, here)
        self.put(one, there)


def _alike(one: Body, other: Body) -> bool:
    """Whether each fits where the other is."""
    shape = [[(trip, down) for (trip, _), down in body.members] for body in (one, other)]
    return shape[0] == shape[1]


class Walks(dict[tuple[str, str], GridRule]):
    """The rules of a machine that walks from cell to cell; on a line all cells have row 0.

    `bits` says which bit a symbol stands for, `signs` how 0 and 1 are written.
    """

    def __init__(self, bits: Mapping[str, int], signs: tuple[str, str]) -> None:
        super().__init__()
        self.bits, self.signs = bits, signs

    def go(self, state: str, written: Mapping[str, str], here: Cell, there: Cell, to: str) -> None:
        """In this state, on one of these symbols: write another and walk to the next state's cell. The rest
        of a walk depends on its end and on the cell alone, so walks to the same state share their states."""
        row, column = here
        for move in way(here, there) or ["stay"]:
            row, column = row + MOVES[move][0], column + MOVES[move][1]
            following = to if (row, column) == there else f"{to} from {row},{column}"
            self.update({(state, old): GridRule(new, move, following) for old, new in written.items()})
            state, written = following, {symbol: symbol for symbol in self.bits}

    def evaluate(
        self, trip: Itinerary, cells: Mapping[Spot, Cell], name: str, end: tuple[Cell, str]
    ) -> tuple[Cell, str]:
        """The round trip, and from its last stop on to the end, a cell and a state. Gives back where it
        begins: its first cell and state."""
        moments = [stop.moment for stop in trip.stops]
        carried = wires_carried(moments, trip.operations)
        possible: set[tuple[int, ...]] = {()}
        for number, (stop, following) in enumerate(pairwise([*trip.stops, None])):
            assert stop is not None
            reached: set[tuple[int, ...]] = set()
            for held in sorted(possible):
                for symbol, bit in self.bits.items():
                    values = dict(zip(carried[number], held, strict=True))
                    values |= dict.fromkeys(stop.moment.reads.values(), bit)
                    for wire in stop.moment.computes:
                        values[wire] = trip.operations[wire].value(values)
                    new = next((values[wire] for wire in stop.moment.writes.values()), bit)
                    after = tuple(values[wire] for wire in carried[number + 1])
                    reached.add(after)
                    there, to = (cells[following.spot], _state(name, number + 1, after)) if following else end
                    written = {symbol: symbol if new == bit else self.signs[new]}
                    self.go(_state(name, number, held), written, cells[stop.spot], there, to)
            possible = reached
            self.check_size(trip.name)
        return (cells[trip.stops[0].spot], _state(name, 0, ())) if trip.stops else end

    def check_size(self, name: str) -> None:
        """Refuses tables beyond all use before they fill the memory."""
        if len(self) > MOST_RULES:
            raise Refused(
                f"a machine for {name!r} needs more than {MOST_RULES:,} rules",
                advice="Take fewer features or less memory; the target emulator takes learners as they are.",
            )


def way(here: Cell, there: Cell) -> list[str]:
    """The moves between two cells, first up or down."""
    down, right = there[0] - here[0], there[1] - here[1]
    return ["down" if down > 0 else "up"] * abs(down) + ["right" if right > 0 else "left"] * abs(right)


def _state(name: str, number: int, bits: tuple[int, ...]) -> str:
    return f"{name} {number}" + (f":{''.join(map(str, bits))}" if bits else "")
