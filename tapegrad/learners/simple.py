"""Majority and conjunctions."""

from typing import Any

from tapegrad.circuits import Array, Bit, UInt, all_of, where
from tapegrad.learners.counting import learner_of
from tapegrad.learners.functions import FunctionLearner


def majority(n: int, samples: int) -> FunctionLearner:
    """Ignores x and answers the label that most of the samples had (0 at a tie)."""

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        return {"ones": memory["ones"] + y}

    return learner_of(
        samples,
        name=f"majority of {samples} labels",
        x=Array(Bit, n),
        memory={"ones": UInt(samples.bit_length())},
        update=update,
        predict=lambda memory, x: memory["ones"] > samples // 2,
    )


def conjunction(n: int, samples: int) -> FunctionLearner:
    """Learns a conjunction of literals by elimination: start from all 2n literals and strike out those
    that a positive sample contradicts. Never wrong on a negative sample."""

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        struck = memory["struck"]
        return {
            "struck": {
                "positive": where(y, struck["positive"] | ~x, struck["positive"]),
                "negated": where(y, struck["negated"] | x, struck["negated"]),
            }
        }

    def predict(memory: Any, x: Any) -> Any:
        struck = memory["struck"]
        return all_of([*(struck["positive"] | x), *(struck["negated"] | ~x)])

    return learner_of(
        samples,
        name=f"conjunction of {n} bits",
        x=Array(Bit, n),
        memory={"struck": {"positive": Array(Bit, n), "negated": Array(Bit, n)}},
        update=update,
        predict=predict,
    )
