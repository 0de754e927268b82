"""The label is one coordinate of the sample, and the samples tell which."""

from tapegrad.grid_learners.layout import BLANK, MINUS, PLUS, SIGNS, GridLearner, builder, finish


def single_coordinate() -> GridLearner:
    """In XOR form the column of the right coordinate is constant, and its sign is the answer. Columns are
    tried from the right; if none is constant the answer is +."""
    b = builder("single coordinate")
    b.move("left")
    with b.until(BLANK):
        for sign in b.each(*SIGNS):
            b.skip("up", sign)
            with b.if_(BLANK):
                b.move("down")
                finish(b, sign)
            other = MINUS if sign == PLUS else PLUS
            with b.if_(other):
                b.seek("down", BLANK)
        b.move("left", "up")
    b.move("right")
    finish(b, PLUS)
    return GridLearner(b.machine())
