"""Learning machines with many heads: the same answers as with one, in fewer layers.

Parity by Gaussian elimination takes d pivots, m rows for each, and d cells for each row. One head goes
through all of these cells. Here one head only goes down the column of the pivot, and sends another into every
row: d m steps, as many as there are row operations.
"""

from itertools import product

from tapegrad.learners.on_grid import (
    BLANK,
    MINUS,
    SIGNS,
    GridLearner,
    answer_at_mark,
    flip,
    mark_corner,
    times,
    to_pivot,
)
from tapegrad.machines.many_heads import ManyHeadBuilder, ManyHeadMachine

NEXT, LAST = "next", "last"
"""Whether another row follows below the one that the pivot's row changes places with."""


def parity() -> GridLearner[ManyHeadMachine]:
    """As in `on_grid.parity`, the pivot's row sinks: it changes places with the row below it again and again,
    and is added to those that need it on the way. In the last row it is erased.

    For each of these rows the first head takes 3 steps, and so does a head in a row for each cell. So heads
    in neighbouring rows stay a cell apart, what was sent out earlier is never caught up with, and no two
    heads meet. On its way back up the first head goes through the next column, which the others have left.
    Altogether 4 m steps for each of the d columns, and not 4 m d."""
    b = ManyHeadBuilder("parity, many heads", symbols=SIGNS, blank=BLANK)
    _undo_xor_form(b)
    b.move("left")
    mark_corner(b)
    with b.loop() as columns:
        to_pivot(b, columns)
        with b.if_(MINUS):  # a pivot; in the test row it has no row below it, and is only erased
            b.write(BLANK)
            b.move("down")
            with b.until(BLANK):
                for bit in b.each(*SIGNS):
                    b.move("down")
                    with b.if_(BLANK):
                        b.move("up")
                        b.fork("right", f"{LAST} {bit}")
                    with b.else_():
                        b.move("up")
                        b.fork("right", f"{NEXT} {bit}")
                b.write(BLANK)
                b.move("down")
        b.move("up", "up", "right")
        b.seek("up", BLANK)
        b.move("down")
    answer_at_mark(b)
    for direction in ("left", "up"):
        b.state(f"flip {direction}")
        flip(b, direction)
        b.vanish()
    for row, bit in product((NEXT, LAST), SIGNS):
        b.state(f"{row} {bit}")
        _change_places(b, row, bit)
        b.vanish()
    return GridLearner(b.machine())


def _undo_xor_form(b: ManyHeadBuilder) -> None:
    """From the start to above the first column: a head goes through each row labelled -, and through each
    column in which the test row has -; the others go on meanwhile. 3 m + d steps."""
    b.move("up")
    with b.until(BLANK):
        with b.if_(MINUS):
            b.fork("left", "flip left")
        b.move("up")
    b.move("left", "down")
    b.seek("down", BLANK)
    b.move("up")
    with b.until(BLANK):
        with b.if_(MINUS):
            b.fork("up", "flip up")
        b.move("left")
    b.move("right")
    b.seek("up", BLANK)


def _change_places(b: ManyHeadBuilder, row: str, bit: str) -> None:
    """From the second cell of a row to its end: the pivot's row, above it, and this one change places, and
    the pivot's is added to this one if its bit in the pivot's column is -."""
    with b.until(BLANK):
        for other in b.each(*SIGNS):
            b.move("up")
            for pivot in b.each(*SIGNS):
                b.write(times(other, pivot) if bit == MINUS else other)
                b.move("down")
                b.write(BLANK if row == LAST else pivot)
        b.move("right")
