"""Any learner as a machine on the grid, with a number of states that does not depend on that of the samples.

First the XOR form is undone, so that row i holds `x_i` and `y_i`. Then row by row, from the top: the machine
evaluates one step of the learner on the row, whose memory lies on the right of the main grid, behind a blank
column, and writes the new memory one row further down, where it goes on. On the last row it evaluates the
answer instead. Memory and work cells lie in a block, in rows above and below too, so that walks are short.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from tapegrad.circuits.builder import CircuitBuilder, copied
from tapegrad.circuits.model import Circuit
from tapegrad.errors import InputError, Refused
from tapegrad.learners.model import Learner, Memory
from tapegrad.learners.on_grid import (
    BLANK,
    MINUS,
    PLUS,
    SIGNS,
    Frame,
    GridLearner,
    builder,
    finish,
    joined,
    undo_xor_form,
)
from tapegrad.lowering.itinerary import Arrangement, Body, Itinerary, Member, Output, Spot, Walks, itinerary
from tapegrad.lowering.learner_machine import learner_step, unguided_step
from tapegrad.machines.builder import GridBuilder
from tapegrad.machines.model import LEFT, RIGHT, STAY, Cell, GridMachine, GridRule, Names, TuringMachine

REGISTER = 15
"""Bits of the shift register that feeds randomised learners."""

HEIGHT = 4
"""Rows above and below that of the sample which the memory and work cells may lie in."""

UNDONE, ROW, ANSWERED = "undone", "row", "answered"
"""States: the XOR form is undone; the head is below the first cell of a row, to see whether it is the last;
the answer stands in the label cell of the last row."""


def grid_learner(learner: Learner, seed: int = 0) -> GridLearner[GridMachine]:
    """The grid machine that answers as the learner does once it has learned from all samples, in order. Bit 1
    is the sign +. Every guess is wrong, so that every sample is learned from; a learner that has not
    finished in the end answers 0. One that draws random bits finds them in a shift register beside its
    memory, filled from the seed (`random_bits`). Measured, one machine for all numbers of samples
    (`python -m bench.rcnn` has more):

        learner                     states    steps for 4, 16 and 64 samples
        conjunction of 2 bits          468       603      2,151      8,415
        parity of 2 bits               637     1,027      3,871     15,319
        conjunction of 4 bits        1,249     1,829      6,905     27,221
        parity of 4 bits             2,526     2,521      9,685     38,353
        parity of 8 bits            10,021    17,145     66,333    263,269

    The square of the number of samples comes from undoing the XOR form, as in all machines that do.
    """
    made = [_made(learner, seed, carried) for carried in (1, 2)]  # more save steps, but double the states
    return min(made, key=lambda found: len(found.machine.states))


def random_bits(seed: int, count: int) -> list[int]:
    """What a randomised learner draws on the grid, a bit for each sample: the sequence with
    `b[t + 15] = b[t + 1] xor b[t]`, which comes back to its beginning after 32,767 bits."""
    bits = list(_first_register(seed))
    while len(bits) < count:
        bits.append(bits[-REGISTER] ^ bits[1 - REGISTER])
    return bits[:count]


def _first_register(seed: int) -> Memory:
    drawn = np.random.default_rng(seed).integers(0, 2, REGISTER).tolist()
    return (*drawn[:-1], 1)  # not all of them 0, for so they would stay


def _made(learner: Learner, seed: int, carried: int) -> GridLearner[GridMachine]:
    first, learning = learner.first, _learning_circuit(learner, register=1)
    draws = learning.needed()[learning.inputs.index("register[0]")]
    if draws:
        first = (*first, *_first_register(seed))
    learning = _learning_circuit(learner, register=REGISTER if draws else 0)
    learn = itinerary(learning, carried)
    answer = itinerary(_answer_circuit(learner, len(first)), carried)

    features = [(0, column) for column in range(learner.inputs)]
    label = (0, learner.inputs)
    places = _placed(learn, answer, len(first), features, label)
    memory = [places[0][spot] for spot in learn.inputs[: len(first)]]

    walks = Walks({BLANK: 0, MINUS: 0, PLUS: 1}, (MINUS, PLUS))
    ones = [cell for cell, bit in zip(memory, first, strict=True) if bit]
    _remember(walks, [(-1, learner.inputs), *ones, (1, 0)])
    starts = [
        walks.evaluate(learn, places[0], "learn", ((2, 0), ROW)),
        walks.evaluate(answer, places[1], "answer", (label, ANSWERED)),
    ]
    walks.go(ROW, {sign: sign for sign in SIGNS}, (1, 0), *starts[0])
    walks.go(ROW, {BLANK: BLANK}, (1, 0), *starts[1])
    rows, columns = zip(*(cell for cells in places for cell in cells.values()), strict=True)
    frame = Frame(max(1, -min(rows)), max(1, *rows), right=max(1, max(columns) - learner.inputs))
    machine = joined(f"{learner.name} on the grid", _undo(), walks, _finish())
    return GridLearner(machine, frame, features=learner.inputs)


def _learning_circuit(learner: Learner, register: int) -> Circuit:
    """The memory after a sample, from the memory before it and the row of the sample: the smaller of two
    circuits for the same."""
    found: list[Circuit] = []
    for unguided in (False, True):
        build = CircuitBuilder()
        memory = [build.input(f"memory[{i}]") for i in range(learner.cells)]
        shifts = [build.input(f"register[{i}]") for i in range(register)]
        x = [build.input(f"x[{i}]") for i in range(learner.inputs)]
        label = build.input("y")
        random = shifts[0] if shifts else build.constant(False)
        given = build, learner, memory, x, label, random
        after = unguided_step(*given) if unguided else learner_step(*given, build.not_(label))[2]
        if len(shifts) > 1:
            after += [*shifts[1:], build.xor(shifts[0], shifts[1])]
        for i, wire in enumerate(after):
            build.output(f"memory[{i}]", wire)
        found.append(build.circuit(learner.name))
    return min(found, key=lambda circuit: circuit.size)


def _answer_circuit(learner: Learner, cells: int) -> Circuit:
    """The answer, from the memory and the row of the test point."""
    build = CircuitBuilder()
    memory = [build.input(f"memory[{i}]") for i in range(cells)]
    x = [build.input(f"x[{i}]") for i in range(learner.inputs)]
    never = build.constant(False)
    answer, *_ = copied(learner.circuit, build, [*memory[: learner.cells], *x, never, never])
    build.output("answer", answer)
    return build.circuit(learner.name)


def _placed(
    learn: Itinerary, answer: Itinerary, memory: int, features: Sequence[Cell], label: Cell
) -> list[dict[Spot, Cell]]:
    """Where everything lies, in the round trip that learns and in the one that answers: memory and work cells
    behind a blank column, as near to each other as may be. The memory is written one row further down."""
    trips = (learn, answer)
    given = [*features, label]
    fixed: dict[Member, Cell] = {
        (number, spot): cell
        for number, trip in enumerate(trips)
        for spot, cell in zip(trip.inputs[memory:], given, strict=False)
    }
    fixed[1, Output(0)] = label
    bodies = [
        Body((((0, here), 0), ((0, Output(i)), 1), ((1, there), 0)))
        for i, (here, there) in enumerate(zip(learn.inputs[:memory], answer.inputs[:memory], strict=True))
    ]
    known = {*fixed, *(member for body in bodies for member, _ in body.members)}
    visits = [(number, stop.spot) for number, trip in enumerate(trips) for stop in trip.stops]
    bodies += [Body(((member, 0),)) for member in dict.fromkeys(visits) if member not in known]
    columns = range(label[1] + 2, label[1] + 4 + len(bodies))
    room = [(row, column) for row in range(-HEIGHT, HEIGHT + 1) for column in columns]
    arrangement = Arrangement(trips, room, fixed)
    for body in bodies:
        arrangement.place(body)
    arrangement.settle()
    return [
        {spot: cell for (own, spot), cell in arrangement.cell.items() if own == number}
        for number in range(len(trips))
    ]


def _remember(walks: Walks, cells: Sequence[Cell]) -> None:
    """From the first of these cells to the last; those in between become +."""
    states = [UNDONE, *(f"{UNDONE}, {cell}" for cell in cells[1:-1]), ROW]
    for (here, there), (state, to) in zip(pairwise(cells), pairwise(states), strict=True):
        written = {BLANK: BLANK if state == UNDONE else PLUS}
        walks.go(state, written, here, there, to)


def _undo() -> dict[tuple[str, str], GridRule]:
    b = builder("undo")
    b.state("undo")
    undo_xor_form(b)
    b.halt(UNDONE)
    return dict(b.machine().rules)


def _finish() -> dict[tuple[str, str], GridRule]:
    b = builder("finish")
    b.state(ANSWERED)
    for answer in b.each(*SIGNS):
        finish(b, answer)
    return dict(b.machine().rules)


# Any one-tape machine as a learner on the grid: the data are laid out in a line for it to read.
#
# The line is
#
#     x=y,x=y,...,x=y,x?        each x a row of signs, each y a sign; as in  +-=+,--=-,-+?
#
# and begins at cell 0, where the machine starts: the samples in order, then the test point. A machine that
# accepts answers +, one that rejects, or halts otherwise, answers -. Blanks are blanks.
#
# On the grid the XOR form is undone first. Then the main grid is copied cell by cell, and blanked on the way,
# into the row two below it; the row in between, the roof of the line, carries a mark in the column to come
# back to. Then the machine runs in its line, and in the end the head follows two marks to the top left cell.


EQUALS, COMMA, ASKS = "=", ",", "?"
LINE = (*SIGNS, EQUALS, COMMA, ASKS)
"""The symbols that a line consists of."""

ANSWERS = {sign: f"answer {sign}" for sign in SIGNS}


def from_machine(
    machine: TuringMachine, samples: int, features: int, *, left: int = 1, right: int = 1
) -> GridLearner[GridMachine]:
    """The grid machine that lays out the line and runs the machine on it. How many states it has depends on
    the machine alone. The frame is wide enough for `samples` samples of `features` bits, and for the
    machine to visit so many cells on the left and on the right of the line."""
    if machine.tapes != 1:
        raise Refused(
            f"the machine {machine.name!r} has {machine.tapes} tapes, and there is one line",
            advice="Join the tapes with one_tape first.",
        )
    if machine.blank in LINE:
        raise Refused(f"the blank {machine.blank!r} of {machine.name!r} is a symbol of the line")
    if min(samples, features, left, right) < 1:
        raise InputError("a line has at least one sample, one feature, and a cell beside it on either side")
    joint = joined(
        f"{machine.name} on the grid",
        _lay_out(left, f"run {machine.start_state}"),
        _run(machine),
        *(_answer(sign, left) for sign in SIGNS),
    )
    length = samples * (features + 3) + features + 1
    frame = Frame(bottom=2, left=left + 1, right=length + right - features - 1)
    return GridLearner(joint, frame, features, samples)


def _lay_out(left: int, start: str) -> Mapping[tuple[str, str], GridRule]:
    b = builder("line")
    b.state("line")
    undo_xor_form(b)
    _mark_the_way_back(b, left)
    with b.loop() as rows:  # on the first cell of a row
        b.move("down")
        with b.if_(BLANK):
            b.move("up")
            b.break_(rows)
        b.move("up")
        _copy_features(b)
        for label in b.each(*SIGNS):
            _append(b, EQUALS, label, COMMA)
        b.move("down")
        b.seek("left", BLANK)
        b.move("right")
    _copy_features(b)
    _append(b, ASKS)
    b.move("down", "down")
    b.seek("left", BLANK)
    b.move("right")
    b.halt(start)
    return b.machine().rules


def _mark_the_way_back(b: GridBuilder, left: int) -> None:
    """From above the last column to the top left cell. One mark goes above and beside that cell, one on the
    roof, on the left of all cells that the machine may visit."""
    b.move("down")
    b.seek("left", BLANK)
    b.move("up")
    b.write(PLUS)
    b.move("down", "right")
    b.seek("down", BLANK)
    b.move(*["left"] * (left + 1))
    b.write(MINUS)
    b.move(*["right"] * (left + 1))
    b.move("up")
    b.seek("up", BLANK)
    b.move("down")


def _copy_features(b: GridBuilder) -> None:
    """From the first cell of a row to its label: what has a cell on its right is a feature."""
    with b.loop() as cells:
        b.move("right")
        with b.if_(BLANK):
            b.move("left")
            b.break_(cells)
        b.move("left")
        for symbol in b.each(*SIGNS):
            _append(b, symbol)
        b.move("right")


def _append(b: GridBuilder, *symbols: str) -> None:
    """Blanks the cell, writes the symbols at the end of the line, and comes back. The cells above are blank
    already, those below are not; and the line reaches at least to this column."""
    b.write(BLANK)
    b.move("down")
    b.seek("down", BLANK)
    b.write(PLUS)
    b.move("down")
    b.seek("right", BLANK)
    for symbol in symbols:
        b.write(symbol)
        b.move("right")
    b.move("up")
    b.seek("left", PLUS)
    b.write(BLANK)
    b.move("up")
    b.seek("up", BLANK)


def _run(machine: TuringMachine) -> Mapping[tuple[str, str], GridRule]:
    """The machine's own rules; where it has none, up to the roof, to answer."""
    names = Names([BLANK])
    symbols = {symbol: names(symbol, symbol) for symbol in machine.alphabet}
    symbols |= {symbol: symbol for symbol in LINE}
    symbols[machine.blank] = BLANK
    moves = {LEFT: "left", STAY: "stay", RIGHT: "right"}
    rules = {
        (f"run {state}", symbols[read]): GridRule(
            symbols[rule.write[0]], moves[rule.moves[0]], f"run {rule.state}"
        )
        for (state, (read,)), rule in machine.rules.items()
    }
    for state in machine.states:
        answer = ANSWERS[PLUS if state in machine.accept else MINUS]
        for symbol in symbols.values():
            rules.setdefault((f"run {state}", symbol), GridRule(symbol, "up", answer))
    return rules


def _answer(answer: str, left: int) -> Mapping[tuple[str, str], GridRule]:
    """From the roof, at or on the right of its mark, to the top left cell."""
    b = builder("answer")
    b.state(ANSWERS[answer])
    b.seek("left", MINUS)
    b.move(*["right"] * left)
    b.move("up")
    b.seek("up", PLUS)
    b.move("down", "right")
    b.write(answer)
    b.halt("done")
    return b.machine().rules
