"""Parities from samples of which some have the wrong label."""

from itertools import combinations
from typing import Any

from tapegrad.circuits import Array, Bit, UInt, array, where
from tapegrad.circuits import parity as parity_of
from tapegrad.errors import SourceError
from tapegrad.learners.counting import learner_of
from tapegrad.learners.functions import FunctionLearner


def robust_parity(n: int, samples: int, size: int | None = None) -> FunctionLearner:
    """Counts, for every subset of the n bits (of at most `size` of them), the samples that contradict its
    parity, and answers with the subset that has the fewest. Wrong labels contradict all subsets alike, so
    that, unlike elimination, it withstands any rate of noise below one half, given enough samples."""
    subsets = [s for k in range((n if size is None else size) + 1) for s in combinations(range(n), k)]
    if len(subsets) > 1 << 12:
        raise SourceError(
            f"{len(subsets):,} subsets are too many to count for", advice="Give a smaller n, or a size."
        )
    count = UInt(samples.bit_length())

    def says(subset: tuple[int, ...], x: Any) -> Any:
        return parity_of(x[i] for i in subset)

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        wrong = [says(subset, x) ^ y for subset in subsets]
        counts = zip(memory["wrong"], wrong, strict=True)
        return {"wrong": array([where(w, c + 1, c) for c, w in counts])}

    def predict(memory: Any, x: Any) -> Any:
        contenders = [(c, says(s, x)) for c, s in zip(memory["wrong"], subsets, strict=True)]
        while len(contenders) > 1:
            rest = contenders[len(contenders) // 2 * 2 :]
            pairs = zip(contenders[::2], contenders[1::2], strict=False)
            contenders = [(where(b[0] < a[0], b[0], a[0]), where(b[0] < a[0], b[1], a[1])) for a, b in pairs]
            contenders += rest
        return contenders[0][1]

    return learner_of(
        samples,
        name=f"robust parity of {n} bits",
        x=Array(Bit, n),
        memory={"wrong": Array(count, len(subsets))},
        update=update,
        predict=predict,
    )
