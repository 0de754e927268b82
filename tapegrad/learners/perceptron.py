"""The perceptron, with integer weights."""

from typing import Any

from tapegrad.circuits import Array, Bit, Int, array, total, where
from tapegrad.learners.counting import learner_of
from tapegrad.learners.functions import FunctionLearner


def perceptron(n: int, samples: int) -> FunctionLearner:
    """Rosenblatt's rule: where sign(w x + b) is wrong, add the sample to the weights or subtract it.

    After t samples no weight exceeds t in size and no score exceeds (n + 1) t, which gives the widths.
    """
    weight = Int(samples.bit_length() + 1)
    score = Int((samples * (n + 1)).bit_length() + 1)

    def predict(memory: Any, x: Any) -> Any:
        terms = [where(bit, w, weight(0)).to(score) for bit, w in zip(x, memory["weights"], strict=True)]
        return total([*terms, memory["bias"].to(score)]) >= 0

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        wrong = predict(memory, x) ^ y
        change = where(wrong, where(y, weight(1), weight(-1)), weight(0))
        moved = [w + where(bit, change, weight(0)) for bit, w in zip(x, memory["weights"], strict=True)]
        return {"weights": array(moved), "bias": memory["bias"] + change}

    return learner_of(
        samples,
        name=f"perceptron of {n} bits",
        x=Array(Bit, n),
        memory={"weights": Array(weight, n), "bias": weight},
        update=update,
        predict=predict,
    )
