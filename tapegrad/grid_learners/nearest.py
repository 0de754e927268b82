"""The label of the sample that differs from the test point in the fewest places; the last of several."""

from tapegrad.grid_learners.layout import BLANK, MINUS, PLUS, SIGNS, GridLearner, builder, finish


def nearest_neighbour() -> GridLearner:
    """In XOR form a place of row i differs from the label where sample and test point differ. Round after
    round one such place in every row is put right; the first row found without any is the nearest. A
    sample equal to the test point wins in the first round: look-up is the special case."""
    b = builder("nearest neighbour")
    b.move("up")
    with b.loop():
        for label in b.each(*SIGNS):
            b.move("left")
            b.skip("left", label)
            with b.if_(BLANK):
                b.move("right")
                finish(b, label)
            other = MINUS if label == PLUS else PLUS
            with b.if_(other):
                b.write(label)
        b.seek("right", BLANK)
        b.move("left", "up")
        with b.if_(BLANK):
            b.move("down")
            b.seek("down", BLANK)
            b.move("up", "up")
    return GridLearner(b.machine())
