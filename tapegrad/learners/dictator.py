"""A randomised learner: it needs the random bits that come with the samples."""

from typing import Any

from tapegrad.circuits import Array, Bit, UInt, where
from tapegrad.learners.functions import FunctionLearner


def dictator(n: int, checks: int) -> FunctionLearner:
    """Finds the one bit of x that the label copies, by drawing indices at random.

    It collects random bits, one from each sample, until it has an index; then it tests the index on up to
    `checks` samples, starts over at the first contradiction, and is done when all were passed. An index
    beyond n is contradicted at once.
    """
    width = max((n - 1).bit_length(), 1)
    index, drawn, passed = UInt(width), UInt(width.bit_length()), UInt(checks.bit_length())

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        drawing = memory["drawn"] < width
        holds = (memory["index"] < n) & ~(x[memory["index"]] ^ y)
        shifted = (memory["index"] << 1) | r
        return {
            "index": where(drawing, shifted, memory["index"]),
            "drawn": where(drawing, memory["drawn"] + 1, where(holds, memory["drawn"], drawn(0))),
            "passed": where(holds & ~drawing, memory["passed"] + 1, passed(0)),
        }

    return FunctionLearner(
        name=f"dictator of {n} bits",
        x=Array(Bit, n),
        memory={"index": index, "drawn": drawn, "passed": passed},
        update=update,
        predict=lambda memory, x: x[memory["index"]],
        done=lambda memory: memory["passed"] == checks,
    )
