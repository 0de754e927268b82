"""Any learner as a Turing machine with 22 states, the same for all learners and all data.

What a learner remembers after a sample is a circuit of what it remembered before, x and y. Its gates lie on a
tape as a program, which the machine follows once for every sample. It carries one bit, a. Three tapes:

    data      the samples, one after the other, two bits a number
    values    what is remembered, the sample, and whatever the gates need
    program   a 1 for every further round, a blank, and the program

A program is made of

    0, 1        the head of the values goes left, goes right
    #tttt       a becomes the entry 2 a + v of the table, v being the value under the head (a blank is 0)
    ##0         a is written
    ##1         a becomes the next bit of the data

and ends with a blank. Only travel is expensive: so a gate's value stays in `a` where the next one wants it,
and is else written to the nearest cell that is free.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache

from tapegrad.circuits.builder import CircuitBuilder, simplified
from tapegrad.circuits.model import Circuit
from tapegrad.errors import InputError, Refused
from tapegrad.learners.model import Learner
from tapegrad.lowering.learner_machine import answers_as_finished, unguided_step
from tapegrad.lowering.schedule import MOST_GATES, Wire, depth_first, operations_of
from tapegrad.machines.model import LEFT, RIGHT, STAY, Rule, TuringMachine
from tapegrad.targets.extended.build import Procedure
from tapegrad.targets.extended.formats import FixedPoint
from tapegrad.targets.extended.rosenblatt import BLANK, DONE, MARK, State, followed

DATA, VALUES, PROGRAM = range(3)
NUMBERS = FixedPoint(2)
"""Of data and weights: -2, -1, 0, 1. A feature, a label, a remembered bit is 1 where its number is."""

Read = tuple[str, ...]


@cache
def learner_machine() -> TuringMachine:
    """The machine, by following its states from the first."""
    return followed(_rule, "learner, sample by sample")


def _rule(state: State, read: Read) -> tuple[Rule, State] | None:
    d, v, p = read
    if v == MARK or d == MARK:
        return None

    def go(
        to: State, data: int = STAY, values: int = STAY, program: int = STAY, *, v: str = v, p: str = p
    ) -> tuple[Rule, State]:
        return Rule((d, v, p), (data, values, program), str(to)), to

    match state.doing, state.carried:
        case "start", ():
            return go(State("to the program"), data=RIGHT, program=RIGHT)
        case "to the program", ():
            return go(state if p in "01" else State("a", ("0",)), program=RIGHT) if p != MARK else None
        case "a", (a,):
            if p == BLANK:
                return go(State("rewind"), program=LEFT)
            if p == MARK:
                return go(State("entry", (a, 0)), program=RIGHT)
            return go(state, values=LEFT if p == "0" else RIGHT, program=RIGHT)
        case "entry", (a, passed):
            if p == MARK:
                return go(State("write or read", (a,)), program=RIGHT) if not passed else None
            if p == BLANK:
                return None
            if passed == 2 * int(a) + int(v == "1"):
                return go(_over(p, 3 - passed), program=RIGHT)
            return go(State("entry", (a, passed + 1)), program=RIGHT) if passed < 2 * int(a) + 1 else None
        case "over", (a, left):
            return go(_over(a, left - 1), program=RIGHT) if p in "01" else None
        case "write or read", (a,):
            if p == "0":
                return go(State("a", (a,)), program=RIGHT, v=a)
            return go(State("a", (d,)), data=RIGHT, program=RIGHT) if p == "1" and d != BLANK else None
        case "rewind", ():
            if p != BLANK:
                return go(state, program=LEFT)
            if d != BLANK:
                return go(State("a", ("0",)), program=RIGHT)
            return go(State("another round"), data=LEFT, program=LEFT)
        case "another round", ():
            if p == "1":
                return go(State("first sample"), program=RIGHT, p="0")
            return go(state, program=LEFT) if p == "0" else go(State(DONE)) if p == BLANK else None
        case "first sample", ():
            if d != BLANK:
                return go(state, data=LEFT)
            return go(State("to the program"), data=RIGHT)
    return None


def _over(a: str, left: int) -> State:
    """The rest of a table is passed over."""
    return State("over", (a, left)) if left else State("a", (a,))


# What the machine follows


def step_circuit(learner: Learner) -> Circuit:
    """From what is remembered, x and y to what is remembered then: every sample is learned from."""
    build = CircuitBuilder()
    memory = [build.input(f"memory[{i}]") for i in range(learner.cells)]
    x = [build.input(f"x[{i}]") for i in range(learner.inputs)]
    label, random = build.input("y"), build.input("random")
    for i, wire in enumerate(unguided_step(build, learner, memory, x, label, random)):
        build.output(f"memory[{i}]", wire)
    circuit = simplified(build.circuit(learner.name))
    drawn = learner.cells + learner.inputs + 1
    used = {wire for operation in operations_of(circuit).values() for wire in operation.operands}
    if drawn in used or drawn in circuit.output_wires.tolist():
        raise Refused(
            f"the learner {learner.name!r} draws random bits, which training does not have",
            advice="Take one that learns from its samples alone.",
        )
    return circuit


def answer_circuit(learner: Learner) -> Circuit:
    """From what is remembered and x to the answer of a learner that has finished."""
    build = CircuitBuilder()
    given = [build.input(f"memory[{i}]") for i in range(learner.cells)]
    given += [build.input(f"x[{i}]") for i in range(learner.inputs)]
    build.output("answer", answers_as_finished(build, learner, given))
    return simplified(build.circuit(learner.name))


@dataclass(frozen=True)
class Program:
    """What stands on the tape; the cells that hold the memory, before and after; the order in which it reads
    a sample, the label counting as the last feature; and how far to the left and right it writes."""

    text: str
    memory: list[int]
    order: list[int]
    reach: tuple[int, int]


LOAD, CLEAR_UNLESS_POSITIVE = "#0101", "#0100"
WRITE, READ = "##0", "##1"
WINDOW = 48
"""Gates among which the nearest is chosen."""
FAR = 100
"""From farther away a value that is wanted again is brought along, and written down nearby."""
STRIDES = (1, 2, 3)
"""Distances between the cells of the inputs that are tried: between them is room for gates."""


def program_of(circuit: Circuit, cells: int) -> Program:
    """The shortest of a few programs; the first `cells` inputs are the memory, the last is not used."""
    if circuit.size > MOST_GATES:
        raise Refused(
            f"{circuit.name!r} has {circuit.size:,} gates; a program is made of {MOST_GATES:,} at most",
            advice="Take fewer features, cuts or samples.",
        )
    found = [_Writer(circuit, cells, stride).program() for stride in STRIDES]
    return min(found, key=lambda program: len(program.text))


class _Writer:
    def __init__(self, circuit: Circuit, cells: int, stride: int) -> None:
        self.head = 0
        outputs = circuit.output_wires.tolist()
        self.operations = depth_first(operations_of(circuit), outputs)
        self.readers: defaultdict[Wire, set[Wire]] = defaultdict(set)
        for wire, operation in self.operations.items():
            for operand in operation.operands:
                self.readers[operand].add(wire)
        self.outputs = dict(enumerate(outputs))
        self.uses = Counter({wire: len(those) for wire, those in self.readers.items()})
        self.uses.update(outputs)
        self.place_in_order = {wire: number for number, wire in enumerate(self.operations)}
        last = len(self.operations)
        inputs = len(circuit.inputs) - 1
        first_use = {
            wire: min((self.place_in_order[reader] for reader in self.readers[wire]), default=last)
            for wire in range(inputs)
        }
        laid = sorted(range(inputs), key=lambda wire: (first_use[wire], wire))
        self.cells_of = {wire: [stride * number] for number, wire in enumerate(laid)}
        self.memory = [self.cell(wire) for wire in range(cells)]
        self.inputs, self.cells = inputs, cells
        end = stride * len(laid)
        self.free = set(range(end)) - {cell for (cell,) in self.cells_of.values()}
        self.reach = [0, end]
        self.text: list[str] = []

    def program(self) -> Program:
        order = sorted(range(self.cells, self.inputs), key=self.cell)
        for wire in order:  # 01 is 1, and 00, 11 and 10 are 0
            self.go(self.cell(wire))
            self.text += [READ, WRITE, READ, CLEAR_UNLESS_POSITIVE, WRITE]
        for wire in range(self.inputs):
            self._release(wire)
        self._compute_all()
        self._put_outputs()
        self.go(0)
        low, end = self.reach
        return Program("".join(self.text), self.memory, [wire - self.cells for wire in order], (low, end - 1))

    def go(self, cell: int) -> None:
        self.text.append(("1" if cell > self.head else "0") * abs(cell - self.head))
        self.head = cell

    def cell(self, wire: Wire) -> int:
        """Where its value is written, the nearest of several places."""
        return min(self.cells_of[wire], key=lambda cell: abs(cell - self.head))

    def _compute_all(self) -> None:
        missing = {w: len({*op.operands} & self.operations.keys()) for w, op in self.operations.items()}
        ready = sorted((w for w, n in missing.items() if not n), key=self.place_in_order.__getitem__)
        held: Wire | None = None
        while ready:
            following = [wire for wire in self.readers[held] if wire in ready] if held is not None else []
            if held is not None and not (following and self.uses[held] == 1):
                self._keep(held)
            wire = min(following or ready[:WINDOW], key=lambda wire: self._travel(wire, held))
            ready.remove(wire)
            self._compute(wire, held)
            for operand in {*self.operations[wire].operands}:
                self.uses[operand] -= 1
                self._release(operand)
            new = [r for r in self.readers[wire] if missing[r] == 1]
            for reader in self.readers[wire]:
                missing[reader] -= 1
            ready = sorted([*ready, *new], key=self.place_in_order.__getitem__) if new else ready
            held = wire
        if held is not None:
            self._keep(held)

    def _travel(self, wire: Wire, held: Wire | None) -> tuple[int, int]:
        cells = [self.cell(operand) for operand in self.operations[wire].operands if operand != held]
        if len(cells) == 2:
            a, b = cells
            way = abs(a - b) + min(abs(a - self.head), abs(b - self.head))
        else:
            way = sum(abs(cell - self.head) for cell in cells)
        return way, self.place_in_order[wire]

    def _compute(self, wire: Wire, held: Wire | None) -> None:
        """Its value into `a`, which has that of the wire held."""
        table, operands = self.operations[wire].table, self.operations[wire].operands
        if not operands:
            self.text.append("#" + f"{table & 1}" * 4)
            return
        for operand in operands:
            if operand != held and self.uses[operand] > 2 and abs(self.cell(operand) - self.head) > FAR:
                held = self._bring(operand, held)
        first, *rest = operands
        if first == held and not rest:
            entries = [table >> (index >> 1) & 1 for index in range(4)]
        elif not rest:
            self.go(self.cell(first))
            entries = [table >> (index & 1) & 1 for index in range(4)]
        else:
            (second,) = rest
            swapped = second == held or (first != held and self._is_nearer(second, first))
            if swapped:
                first, second = second, first
            if first != held:
                self._load(first)
            self.go(self.cell(second))
            order = (0, 2, 1, 3) if swapped else range(4)
            entries = [table >> index & 1 for index in order]
        self.text.append("#" + "".join(map(str, entries)))

    def _bring(self, wire: Wire, held: Wire | None) -> Wire:
        """Its value into `a`, and to a cell nearby."""
        here = self.head
        if held is not None:
            self._keep(held)
        self._load(wire)
        self.go(here)
        cell = self._nearest_free()
        self.cells_of[wire].append(cell)
        self.go(cell)
        self.text.append(WRITE)
        return wire

    def _load(self, wire: Wire) -> None:
        self.go(self.cell(wire))
        self.text.append(LOAD)

    def _is_nearer(self, one: Wire, other: Wire) -> bool:
        return abs(self.cell(one) - self.head) < abs(self.cell(other) - self.head)

    def _keep(self, wire: Wire) -> None:
        """Writes `a`: where the memory wants it, if what was there is no longer wanted, or nearby."""
        if wire in self.cells_of:
            return
        targets = [i for i, own in self.outputs.items() if own == wire and not self.uses[i]]
        if targets and self.uses[wire] == 1:
            cell = self.memory[targets[0]]
            del self.outputs[targets[0]]
            self.uses[wire] -= 1
        else:
            cell = self._nearest_free()
            self.cells_of[wire] = [cell]
        self.go(cell)
        self.text.append(WRITE)

    def _nearest_free(self) -> int:
        low, high = self.reach
        cell = min([*self.free, low - 1, high], key=lambda cell: (abs(cell - self.head), cell))
        self.free.discard(cell)
        self.reach = [min(low, cell), max(high, cell + 1)]
        return cell

    def _release(self, wire: Wire) -> None:
        """The cells of a wire that nobody wants are free, but for the one that the memory has."""
        if not self.uses[wire] and wire in self.cells_of:
            own = self.memory[wire : wire + 1] if wire < self.cells else []
            self.free.update(set(self.cells_of[wire]).difference(own))
            self.cells_of[wire] = own

    def _put_outputs(self) -> None:
        """Every bit of the memory to its cell, the nearest first; none is written over that is wanted."""
        for i, wire in list(self.outputs.items()):
            if wire == i:
                self.uses[i] -= 1
                del self.outputs[i]
        moved: set[int] = set()
        while self.outputs:
            open_ = [i for i in self.outputs if not self.uses[i] or i in moved]
            if not open_:  # they go round in a circle
                i = next(iter(self.outputs))
                self._load(i)
                self.cells_of[i] = [self._nearest_free()]
                self.go(self.cell(i))
                self.text.append(WRITE)
                moved.add(i)
                continue
            i = min(open_, key=lambda i: abs(self.cell(self.outputs[i]) - self.head))
            wire = self.outputs.pop(i)
            self._load(wire)
            self.go(self.memory[i])
            self.text.append(WRITE)
            self.uses[wire] -= 1
            self._release(wire)


# Where everything lies


def learned(learner: Learner, samples: int, rounds: int = 1) -> Procedure:
    """The machine with its tapes laid out for so many samples, which it goes over so many times. theta is
    what the learner remembers in the end, a number 0 or 1 for every bit."""
    if samples < 1 or rounds < 1:
        raise InputError(f"a learner needs at least one sample and one round, not {samples} and {rounds}")
    circuit = step_circuit(learner)
    program = program_of(circuit, learner.cells)
    numbers, width = learner.inputs + 1, NUMBERS.width
    at = {number: place for place, number in enumerate(program.order)}

    def bits(sample: int, number: int) -> list[int]:
        first = 1 + width * (sample * numbers + at[number])
        return [*range(first, first + width)]

    rows = [cell for s in range(samples) for number in range(learner.inputs) for cell in bits(s, number)]
    labels = [cell for s in range(samples) for cell in bits(s, learner.inputs)]
    never_one = program.reach[0] - 1
    values = {cell: str(bit) for cell, bit in zip(program.memory, learner.first, strict=True)}
    return Procedure(
        learner_machine(),
        (
            dict.fromkeys(range(1, 1 + width * numbers * samples), "0"),
            values | {never_one: "0"},
            dict.fromkeys(range(1, rounds), "1") | dict(enumerate(program.text, rounds + 1)),
        ),
        tuple(((DATA, cell),) for cell in [*rows, *labels]),
        tuple((VALUES, place) for cell in program.memory for place in (cell, never_one)),
        {
            "name": "learner",
            "rounds": rounds,
            "first": list(learner.first),
            "gates": gate_rows(circuit),
            "outputs": circuit.output_wires.tolist(),
        },
    )


def room_for(procedure: Procedure) -> int:
    """Cells that are enough on either side: every other one is blank (`stay_free`), and no head leaves what
    is written by more than one. The program is the longest, since it has a move for every cell in use."""
    return 2 * (2 * max(abs(cell) for tape in procedure.tapes for cell in tape) + 8)


def gate_rows(circuit: Circuit) -> list[list[int]]:
    """Table and operands of every gate."""
    return [list(map(int, gate)) for gate in zip(circuit.kinds, circuit.left, circuit.right, strict=True)]
