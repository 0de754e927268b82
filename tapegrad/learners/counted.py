"""Learners that stop after a given number of samples: a counter beside their own memory."""

from collections.abc import Callable
from typing import Any

from tapegrad.circuits import UInt
from tapegrad.circuits.types import Layout
from tapegrad.errors import SourceError
from tapegrad.learners.functions import FunctionLearner


def counted(
    samples: int,
    *,
    name: str,
    memory: dict[str, Layout],
    update: Callable[[Any, Any, Any, Any], dict[str, Any]],
    first_memory: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The parts of a learner that is done once it has learned from `samples` samples, as the proof of
    Theorem 4 has it. `update` finds the count in `memory["seen"]`, and need not return it."""
    if samples < 1:
        raise SourceError(f"the learner {name!r} needs at least one sample")
    return {
        "name": name,
        "memory": {**memory, "seen": UInt(samples.bit_length())},
        "update": lambda m, x, y, r: {**update(m, x, y, r), "seen": m["seen"] + 1},
        "done": lambda m: m["seen"] == samples,
        "first_memory": None if first_memory is None else {**first_memory, "seen": 0},
    }


def learner_of(
    samples: int,
    *,
    name: str,
    x: Layout,
    memory: dict[str, Layout],
    update: Callable[[Any, Any, Any, Any], dict[str, Any]],
    predict: Callable[[Any, Any], Any],
) -> FunctionLearner:
    """A learner that is done after so many samples and has nothing to say but its answer."""
    return FunctionLearner(x=x, predict=predict, **counted(samples, name=name, memory=memory, update=update))
