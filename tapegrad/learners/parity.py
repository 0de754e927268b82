"""Parities, learned by online Gaussian elimination (Example 1)."""

from typing import Any

from tapegrad.circuits import UInt, all_of, where
from tapegrad.circuits.types import Bit
from tapegrad.learners.functions import FunctionLearner


def parity(n: int) -> FunctionLearner:
    """Learns the parity of a hidden subset of n bits from n linearly independent samples.

    The samples are kept in echelon form. Row i starts at column i: its first bit, the pivot, says whether
    the row is there at all, so that n(n + 1)/2 bits of rows and n labels suffice. A new sample is reduced
    by the rows it meets until it leads where there is no row yet, and becomes that row.
    """

    def reduced(memory: Any, x: Any, label: Any) -> list[tuple[Any, Any]]:
        """What is left of the sample at each column, cut off before it, and its label there."""
        stages = []
        for i, row in enumerate(memory["rows"]):
            stages.append((x, label))
            meets = x[0] & row[0]
            label = label ^ (meets & memory["labels"][i])
            if i + 1 < n:
                x = (x ^ where(meets, row, row.type(0)))[1:]
        stages.append((x, label))
        return stages

    def update(memory: Any, x: Any, y: Any, r: Any) -> Any:
        stored, rows, labels = Bit(0), [], []
        for i, (rest, label) in enumerate(reduced(memory, x, y)[:-1]):
            row, here = memory["rows"][i], memory["labels"][i]
            fresh = rest[0] & ~row[0] & ~stored
            rows.append(row ^ where(fresh, rest, rest.type(0)))  # an absent row is zero
            labels.append(here ^ (fresh & label))
            stored = stored | fresh
        return {"rows": rows, "labels": labels}

    def predict(memory: Any, x: Any) -> Any:
        return reduced(memory, x, Bit(0))[-1][1]

    def done(memory: Any) -> Any:
        return all_of(row[0] for row in memory["rows"])

    return FunctionLearner(
        name=f"parity of {n} bits",
        x=UInt(n),
        memory={"rows": [UInt(n - i) for i in range(n)], "labels": [Bit] * n},
        update=update,
        predict=predict,
        done=done,
        online=True,  # with every row present there is nothing left to change
    )
