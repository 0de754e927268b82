"""Naive Bayes on bits, from counts: the learner's memory has them, and a table of logarithms is gates."""

import math
from typing import Any

from tapegrad.circuits import Array, UInt, array, total, where
from tapegrad.errors import SourceError
from tapegrad.learners.asked import AskedLearner, Scores, asked
from tapegrad.learners.counted import counted
from tapegrad.learners.neighbours import most

FRACTION = 10
"""Bits after the point of a logarithm to base 2."""


def naive_bayes(
    n: int,
    samples: int,
    alpha: float = 1.0,
    *,
    fraction: int = FRACTION,
    classes: int = 2,
    scores: bool = False,
) -> AskedLearner:
    """Counts, for each class, its samples and how often each bit was 1 among them; answers with the class c
    of the largest log N_c + sum_i log((k_ci + alpha) / (N_c + 2 alpha)), where k_ci counts the samples of c
    that agree with x in bit i. This is scikit-learn's `BernoulliNB(alpha=alpha, binarize=None)`, in fixed
    point: a logarithm is a multiple of 2^-fraction, so that two classes are told apart as they are without
    rounding wherever their logarithms to base 2 differ by more than (n + 1) 2^-fraction. Of two with the same
    sum it is the smaller class; a class without samples counts as one that had one.

    The scores are these sums in units of 2^-fraction, up to a number that is the same for all classes.
    """
    if not 0 < alpha <= 1e6 or not 0 <= fraction <= 24:
        raise SourceError(
            f"naive Bayes needs an alpha above 0 and 0 to 24 bits after the point, not {alpha} and {fraction}"
        )

    def log(count: int, more: float) -> float:
        return math.log2(count + more) * 2**fraction

    count = UInt(samples.bit_length())
    agreeing = [round(log(k, alpha) - log(0, alpha)) for k in range(samples + 1)]
    whole = [log(max(k, 1), 0) - n * log(k, 2 * alpha) for k in range(samples + 1)]
    of_class = [round(own - min(whole)) for own in whole]
    sum_type = UInt((n * agreeing[-1] + max(of_class)).bit_length() or 1)

    def table(numbers: list[int], at: Any) -> Any:
        entry = UInt(max(numbers).bit_length() or 1)
        return array([entry(number) for number in numbers])[at].to(sum_type)

    def logarithms(memory: Any, x: Any) -> list[Any]:
        sums = []
        for size, ones in zip(memory["size"], memory["ones"], strict=True):
            agree = [where(bit, k, size - k) for bit, k in zip(x, ones, strict=True)]
            sums.append(total([table(of_class, size), *(table(agreeing, k) for k in agree)]))
        return sums

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        its_own = [~y, y] if classes == 2 else [y == c for c in range(classes)]
        sizes = zip(memory["size"], its_own, strict=True)
        rows = zip(memory["ones"], its_own, strict=True)
        return {
            "size": array([size + own for size, own in sizes]),
            "ones": array([[k + (own & bit) for k, bit in zip(row, x, strict=True)] for row, own in rows]),
        }

    return asked(
        features=n,
        classes=classes,
        predict=lambda memory, x: most(logarithms(memory, x)),
        scores=Scores([sum_type] * classes, logarithms) if scores else None,
        **counted(
            samples,
            name=f"naive Bayes of {n} bits",
            memory={"size": Array(count, classes), "ones": Array(count, classes, n)},
            update=update,
        ),
    )
