"""A conjunction of literals, by elimination: keep the literals that no positive sample contradicts."""

from tapegrad.grid_learners.layout import BLANK, MINUS, PLUS, SIGNS, GridLearner, builder, finish


def conjunction() -> GridLearner:
    """A literal is left where the positive samples all agree, and the test point contradicts it where they
    all differ from the point. In XOR form: the answer is + if every column has a + in some row labelled +,
    else -. Without a positive sample all literals are left, and the answer is -."""
    b = builder("conjunction")
    b.move("left")
    with b.until(BLANK):
        b.move("up")
        with b.loop() as rows:
            with b.if_(BLANK):
                b.move("down")
                finish(b, MINUS)
            with b.if_(PLUS):
                b.write(BLANK)  # so that the way back from the label is known
                b.move("right")
                b.seek("right", BLANK)
                b.move("left")
                for label in b.each(*SIGNS):
                    b.move("left")
                    b.seek("left", BLANK)
                    b.write(PLUS)
                    if label == PLUS:
                        b.break_(rows)
            b.move("up")
        b.seek("down", BLANK)
        b.move("up", "left")
    b.move("right")
    finish(b, PLUS)
    return GridLearner(b.machine())
