"""Any one-tape machine as a learner on the grid: the data are laid out in a line for it to read.

The line is

    x=y,x=y,...,x=y,x?        each x a row of signs, each y a sign; as in  +-=+,--=-,-+?

and begins at cell 0, where the machine starts: the samples in order, then the test point. A machine that
accepts answers +, one that rejects, or halts otherwise, answers -. Blanks are blanks.

On the grid the XOR form is undone first. Then the main grid is copied cell by cell, and blanked on the way,
into the row two below it; the row in between, the roof of the line, carries a mark in the column to come back
to. Then the machine runs in its line, and in the end the head follows two marks to the top left cell.
"""

from collections.abc import Mapping

from tapegrad.errors import InputError, Refused
from tapegrad.grid_learners.layout import (
    BLANK,
    MINUS,
    PLUS,
    SIGNS,
    Frame,
    GridLearner,
    builder,
    joined,
    undo_xor_form,
)
from tapegrad.machines.grid import GridRule
from tapegrad.machines.grid_builder import GridBuilder
from tapegrad.machines.model import LEFT, RIGHT, STAY, TuringMachine
from tapegrad.machines.names import Names

EQUALS, COMMA, ASKS = "=", ",", "?"
LINE = (*SIGNS, EQUALS, COMMA, ASKS)
"""The symbols that a line consists of."""

ANSWERS = {sign: f"answer {sign}" for sign in SIGNS}


def from_machine(
    machine: TuringMachine, samples: int, features: int, *, left: int = 1, right: int = 1
) -> GridLearner:
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
