"""Learners that stop after a given number of samples: a counter beside their own memory."""

from collections.abc import Callable
from typing import Any

from tapegrad.circuits import UInt
from tapegrad.circuits.types import Layout
from tapegrad.errors import SourceError
from tapegrad.learners.functions import FunctionLearner


def learner_of(
    samples: int,
    *,
    name: str,
    x: Layout,
    memory: dict[str, Layout],
    update: Callable[[Any, Any, Any, Any], dict[str, Any]],
    predict: Callable[[Any, Any], Any],
) -> FunctionLearner:
    """A learner that is done once it has learned from `samples` samples, as the proof of Theorem 4 has it.
    `update` finds the count in `memory["seen"]`, and need not return it."""
    if samples < 1:
        raise SourceError(f"the learner {name!r} needs at least one sample")
    count = UInt(samples.bit_length())

    def counted(memory: Any, x: Any, y: Any, r: Any) -> Any:
        return {**update(memory, x, y, r), "seen": memory["seen"] + 1}

    return FunctionLearner(
        name=name,
        x=x,
        memory={**memory, "seen": count},
        update=counted,
        predict=predict,
        done=lambda memory: memory["seen"] == samples,
    )
