"""Look-up: remember every sample, answer by the k nearest."""

from typing import Any

from tapegrad.circuits import Array, UInt, count_ones
from tapegrad.errors import SourceError
from tapegrad.learners.counting import learner_of
from tapegrad.learners.functions import FunctionLearner


def nearest(n: int, samples: int, k: int = 1) -> FunctionLearner:
    """Remembers `samples` samples and answers by a vote of the k nearest in Hamming distance; of two at
    the same distance the earlier counts as nearer. With k = 1 this is a look-up table."""
    if k % 2 == 0 or not 1 <= k <= samples:
        raise SourceError(f"the number of neighbours must be odd and at most {samples}, not {k}")

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        xs, ys = memory["xs"].copy(), memory["ys"].copy()
        xs[memory["seen"]] = x
        ys[memory["seen"]] = UInt(1)(0) | y
        return {"xs": xs, "ys": ys}

    def predict(memory: Any, x: Any) -> Any:
        distances = [count_ones(stored ^ x) for stored in memory["xs"]]
        chosen = []
        for i, d in enumerate(distances):
            nearer = [other <= d for other in distances[:i]] + [other < d for other in distances[i + 1 :]]
            chosen.append(count_ones(nearer) < k if nearer else d >= 0)
        votes = count_ones(c & y[0] for c, y in zip(chosen, memory["ys"], strict=True))
        return votes > k // 2

    return learner_of(
        samples,
        name=f"{k} nearest of {samples} samples of {n} bits",
        x=UInt(n),
        memory={"xs": Array(UInt(n), samples), "ys": Array(UInt(1), samples)},
        update=update,
        predict=predict,
    )
