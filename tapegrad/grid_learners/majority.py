"""The label that most samples have; + where they are equally many."""

from tapegrad.grid_learners.layout import BLANK, MINUS, PLUS, SIGNS, Frame, GridLearner, builder, finish
from tapegrad.machines.grid_builder import GridBuilder


def majority() -> GridLearner:
    """A stack of equal signs grows upwards in the frame on the right, on a mark below it: a label equal to
    the sign on top is pushed, another one pops. What is left at the end is the majority."""
    b = builder("majority")
    b.move("right", "down")
    b.write(PLUS)  # the mark below the stack; unlike the stack it has a blank on its left
    b.move("left", "up", "up")
    with b.until(BLANK):
        for label in b.each(*SIGNS):
            b.write(BLANK)  # so that the way back is known
            _push_or_pop(b, label)
            b.move("left")
            b.seek("up", BLANK)
            b.write(label)
        b.move("up")
    b.move("right")
    b.seek("down", *SIGNS)
    for sign in b.each(*SIGNS):
        b.move("left")
        with b.if_(BLANK):
            _clear_stack_and_finish(b, PLUS)
        _clear_stack_and_finish(b, sign)
    return GridLearner(b.machine(), Frame(bottom=2))


def _push_or_pop(b: GridBuilder, label: str) -> None:
    """From the label's cell to the top of the stack."""
    other = MINUS if label == PLUS else PLUS
    b.move("right")
    b.seek("down", *SIGNS)
    b.move("left")
    with b.if_(BLANK):
        b.move("right", "up")
        b.write(label)
    with b.else_():
        b.move("right")
        with b.if_(other):
            b.write(BLANK)
        with b.else_():
            b.move("up")
            b.write(label)


def _clear_stack_and_finish(b: GridBuilder, answer: str) -> None:
    b.move("right")
    with b.while_(*SIGNS):
        b.write(BLANK)
        b.move("down")
    b.move("up", "up", "left")
    finish(b, answer)
