"""Thresholds of weighted sums, learned from mistakes: by adding (the perceptron), by doubling (winnow)."""

from typing import Any

from tapegrad.circuits import Array, Int, UInt, array, total, where
from tapegrad.errors import SourceError
from tapegrad.learners.asked import AskedLearner, Scores, asked
from tapegrad.learners.counted import counted


def perceptron(n: int, samples: int, *, scores: bool = False) -> AskedLearner:
    """Rosenblatt's rule with integer weights: the answer is 1 where w x + b > 0. Unless w x + b is on the
    right side of 0, add the sample to the weights or subtract it; on 0 it is on no side, as in scikit-learn's
    `Perceptron`. Its score is w x + b.

    After t samples no weight exceeds t in size and no score exceeds (n + 1) t, which gives the widths.
    """
    weight = Int(samples.bit_length() + 1)
    score = Int((samples * (n + 1)).bit_length() + 1)

    def margin(memory: Any, x: Any) -> Any:
        terms = [where(bit, w, weight(0)).to(score) for bit, w in zip(x, memory["weights"], strict=True)]
        return total([*terms, memory["bias"].to(score)])

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        side = margin(memory, x)
        wrong = where(y, side <= 0, side >= 0)
        change = where(wrong, where(y, weight(1), weight(-1)), weight(0))
        moved = [w + where(bit, change, weight(0)) for bit, w in zip(x, memory["weights"], strict=True)]
        return {"weights": array(moved), "bias": memory["bias"] + change}

    return asked(
        features=n,
        predict=lambda memory, x: margin(memory, x) > 0,
        scores=Scores([score], lambda memory, x: [margin(memory, x)]) if scores else None,
        **counted(
            samples,
            name=f"perceptron of {n} bits",
            memory={"weights": Array(weight, n), "bias": weight},
            update=update,
        ),
    )


def winnow(n: int, samples: int, floor: int = 8, *, scores: bool = False) -> AskedLearner:
    """Littlestone's Winnow2 on the 2n literals x_i and not x_i: weights start at 1; the answer is 1 where
    those of the literals that hold add up to more than n, as many as hold. Where that is wrong, their weights
    are doubled (the label is 1) or halved (0), but never below 2^-floor. Its score is the sum, less n, in
    units of 2^-floor.

    A weight is doubled only while it is at most n, so no exponent exceeds log2(n) + 1: nothing else is cut
    off.
    """
    if not 0 <= floor <= 32:
        raise SourceError(f"the floor of winnow must be between 0 and 32, not {floor}")
    top = floor + n.bit_length()
    exponent, score = UInt(top.bit_length()), Int(((2 * n + 1) << top).bit_length() + 1)

    def literals(x: Any) -> list[Any]:
        return [*x, *(~x)]

    def margin(memory: Any, x: Any) -> Any:
        held = zip(literals(x), memory["exponents"], strict=True)
        powers = [where(holds, UInt(top + 1)(1) << e, UInt(top + 1)(0)).to(score) for holds, e in held]
        return total(powers) - (n << floor)

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        wrong = (margin(memory, x) > 0) ^ y
        moved = []
        for holds, e in zip(literals(x), memory["exponents"], strict=True):
            halved = where(e == 0, e, e - 1)
            moved.append(where(wrong & holds, where(y, e + 1, halved), e))
        return {"exponents": array(moved)}

    return asked(
        features=n,
        predict=lambda memory, x: margin(memory, x) > 0,
        scores=Scores([score], lambda memory, x: [margin(memory, x)]) if scores else None,
        **counted(
            samples,
            name=f"winnow of {n} bits",
            memory={"exponents": Array(exponent, 2 * n)},
            update=update,
            first_memory={"exponents": [floor] * (2 * n)},
        ),
    )
