"""Parity of an unknown set of coordinates, by Gaussian elimination, with states that do not depend on sizes.

Signs stand for bits, products for sums. Row by row from the top: the first - among a row's features is its
pivot, and the row is added to every other row, the test row included, that has - in that column. In the
end the label of the test row is the prediction. Marks inside the grid are blanks, whose symbols the
state remembers; the row just above the grid is a register for the pivot row.
"""

from tapegrad.grid_learners.layout import (
    BLANK,
    MINUS,
    PLUS,
    SIGNS,
    Frame,
    GridLearner,
    builder,
    finish,
    times,
    undo_xor_form,
)
from tapegrad.machines.grid_builder import GridBuilder


def parity() -> GridLearner:
    """The coordinates that no pivot was found in count as absent from the set."""
    b = builder("parity")
    undo_xor_form(b)
    _fill_register(b)
    with b.loop() as rows:
        b.move("down")
        with b.if_(BLANK):  # the row is the test row, the last one
            b.break_(rows)
        b.move("up")
        b.skip("right", PLUS)
        with b.if_(MINUS):
            b.move("right")
            with b.if_(*SIGNS):  # else it is the label
                b.move("left")
                _eliminate(b)
        with b.if_(BLANK):
            b.move("left")
        b.seek("left", BLANK)
        b.move("down", "right")
    _clear_register(b)
    for answer in b.each(*SIGNS):
        finish(b, answer)
    return GridLearner(b.machine(), Frame(top=2))


def _fill_register(b: GridBuilder) -> None:
    """From above the last column to the top left cell, writing + all along."""
    with b.loop():
        b.write(PLUS)
        b.move("left", "down")
        with b.if_(BLANK):
            b.break_()
        b.move("up")
    b.move("right")


def _eliminate(b: GridBuilder) -> None:
    """From the pivot and back to it. The pivot's cell is blank meanwhile, and so divides its column."""
    _copy_row_to_register(b)
    b.move("left")
    b.seek("left", BLANK)
    b.move("right")
    b.skip("right", PLUS)
    b.write(BLANK)
    b.move("up")
    b.seek("up", BLANK)
    b.move("down", "down")
    for half in ("above the pivot", "below it"):
        if half == "below it":
            b.move("down")
        with b.until(BLANK):
            with b.if_(MINUS):
                b.write(BLANK)
                _add_register(b)
            b.move("down")
    b.move("up")
    b.seek("up", BLANK)
    b.write(MINUS)


def _copy_row_to_register(b: GridBuilder) -> None:
    """From anywhere in the row to the frame on its right."""
    b.seek("left", BLANK)
    b.move("right")
    with b.until(BLANK):
        for symbol in b.each(*SIGNS):
            b.write(BLANK)
            b.move("up")
            b.seek("up", BLANK)
            b.move("down")
            b.write(symbol)
            b.seek("down", BLANK)
            b.write(symbol)
        b.move("right")


def _add_register(b: GridBuilder) -> None:
    """From a row's blank cell in the pivot column, to be + in the end, over the cells on both its sides."""
    b.move("left")
    b.seek("left", BLANK)
    b.move("right")
    for half in ("before the pivot column", "after it"):
        if half == "after it":
            b.move("right")
        with b.until(BLANK):
            for symbol in b.each(*SIGNS):
                b.write(BLANK)
                b.move("up")
                b.seek("up", BLANK)
                b.move("down")
                for other in b.each(*SIGNS):
                    b.seek("down", BLANK)
                    b.write(times(symbol, other))
            b.move("right")
    b.move("left")
    b.seek("left", BLANK)
    b.write(PLUS)


def _clear_register(b: GridBuilder) -> None:
    """From below the first column to the label of the test row."""
    b.move("up")
    b.seek("up", BLANK)
    b.move("down")
    with b.until(BLANK):
        b.write(BLANK)
        b.move("right")
    b.move("down", "left")
    b.seek("down", BLANK)
    b.move("up")
