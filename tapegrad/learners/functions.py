"""Learners written as ordinary Python functions over bits and integers, traced into circuits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tapegrad.circuits import Array, Bit, Traced, UInt, concat, trace, where
from tapegrad.circuits.model import Circuit
from tapegrad.circuits.types import IntType, Layout, from_bits, names, to_bits
from tapegrad.errors import SourceError
from tapegrad.learners.model import Learner, Memory, Response


@dataclass(frozen=True, eq=False)
class FunctionLearner(Learner):
    """A learner made of three functions.

        update(memory, x, y, r) -> memory      learns from a sample (r is a random bit)
        predict(memory, x) -> bit              answers
        done(memory) -> bit                    whether it has learned enough

    `x` and `memory` are layouts (`tapegrad.circuits.types`): `UInt(8)`, `Array(Bit, 3)`, a dictionary of
    such. A learner that is done leaves its memory alone; with `online` it may go on to change it wherever
    its answer was wrong.
    """

    name: str  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    x: Layout
    memory: Layout
    update: Callable[[Any, Any, Any, Any], Any]
    predict: Callable[[Any, Any], Any]
    done: Callable[[Any], Any]
    online: bool = False
    first_memory: Any = None
    """The memory before the first sample; all bits 0 unless given."""

    @cached_property
    def inputs(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return sum(1 for _ in names(self.x, "x"))

    @cached_property
    def first(self) -> Memory:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self.first_memory is None:
            return tuple(0 for _ in names(self.memory, "memory"))
        return tuple(to_bits(self.memory, self.first_memory))

    def response(self, memory: Any, x: Any, random: Any, guess: Any) -> dict[str, Any]:
        """The functions h and g of Lemma 3, made of the learner's own three as in Theorem 4."""
        finished = self.done(memory)
        answer = where(finished, self.predict(memory, x), guess)
        learned = self.update(memory, x, ~answer, random)  # only used where the label is not the answer
        kept = learned if self.online else where(finished, memory, learned)
        return {"answer": answer, "finished": finished, "memory": kept}

    @cached_property
    def traced(self) -> Traced:
        """`response` as a circuit and as a function of Python numbers."""
        traced = trace(self.response, self.memory, self.x, Bit, Bit, name=self.name)
        wanted = {"answer": Bit, "finished": Bit, "memory": self.memory}
        for part, layout in wanted.items():
            if traced.output[part] != layout:
                function = {"answer": "predict", "finished": "done", "memory": "update"}[part]
                raise SourceError(
                    f"{function} of the learner {self.name!r} gives {traced.output[part]!r}, "
                    f"but {layout!r} is needed",
                    advice="Cast integers back to their type with .to(type), and give bits as Bit.",
                )
        return traced

    @property
    def circuit(self) -> Circuit:
        return self.traced.circuit

    def respond(self, memory: Memory, x: Sequence[int], random: int, guess: int) -> Response:
        said = self.traced.plain(
            from_bits(self.memory, iter(memory)), from_bits(self.x, iter(x)), bool(random), bool(guess)
        )
        bits = tuple(to_bits(self.memory, said["memory"]))
        return Response(int(said["answer"]), int(said["finished"]), bits)


# Learners made of learners: the best of several (Corollary 1), and the doubling scheme (Remark 11).


def best_of(learners: Sequence[FunctionLearner], train: int, validate: int) -> FunctionLearner:
    """The metaalgorithm of Corollary 1: trains all learners on the same `train` samples, counts their
    errors on `validate` more, and answers with the best; the earlier one at a tie."""
    if not learners or len({learner.inputs for learner in learners}) != 1:
        raise SourceError("best_of needs at least one learner, and all of them on the same number of bits")
    if train < 1 or validate < 1:
        raise SourceError("best_of needs at least one sample to train on and one to validate on")
    count, errors = UInt((train + validate).bit_length()), UInt(validate.bit_length())

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        training = memory["seen"] < train
        parts, wrong = [], []
        for learner, part, so_far in zip(learners, memory["parts"], memory["errors"], strict=True):
            own = _as(learner.x, x)
            learns = training & ~learner.done(part)
            parts.append(where(learns, learner.update(part, own, y, r), part))
            missed = ~training & (learner.predict(part, own) ^ y)
            wrong.append(where(missed, so_far + 1, so_far))
        return {"parts": parts, "errors": wrong, "seen": memory["seen"] + 1}

    def predict(memory: Any, x: Any) -> Any:
        answers = [
            learner.predict(part, _as(learner.x, x))
            for learner, part in zip(learners, memory["parts"], strict=True)
        ]
        best, answer = memory["errors"][0], answers[0]
        for wrong, other in zip(memory["errors"][1:], answers[1:], strict=True):
            better = wrong < best
            best, answer = where(better, wrong, best), where(better, other, answer)
        return answer

    return FunctionLearner(
        name=f"best of {', '.join(learner.name for learner in learners)}",
        x=Array(Bit, learners[0].inputs),
        memory={
            "parts": [learner.memory for learner in learners],
            "errors": [errors] * len(learners),
            "seen": count,
        },
        update=update,
        predict=predict,
        done=lambda memory: memory["seen"] == train + validate,
        first_memory={
            "parts": [from_bits(learner.memory, iter(learner.first)) for learner in learners],
            "errors": [0] * len(learners),
            "seen": 0,
        },
    )


def doubling(learner: FunctionLearner, rounds: int, width: int = 8) -> FunctionLearner:
    """Remark 11: for learners of which nobody knows how many samples they need.

    It counts its mistakes. Whenever their number is a perfect square it learns from the next sample, and
    otherwise it answers, so that learning becomes rare. The samples learned from train the learner afresh
    on 1, then 2, then 4, ... of them (2^(rounds - 1) at most); what it answers with is the outcome of the
    last round completed. Square roots are counted up to 2^width - 1; from there on the gap stays the same.
    """
    size, root = UInt(rounds), UInt(width)
    longest = 1 << rounds - 1
    blank = from_bits(learner.memory, iter(learner.first))

    def update(memory: Any, x: Any, y: Any, r: Any) -> dict[str, Any]:
        learning = memory["until"] == 0
        fresh = memory["fresh"]
        trained = where(learner.done(fresh), fresh, learner.update(fresh, x, y, r))
        ends = memory["left"] == 1
        longer = where(memory["length"] == longest, memory["length"], memory["length"] << 1)
        after = {
            "settled": where(ends, trained, memory["settled"]),
            "fresh": where(~ends, trained, blank),
            "length": where(ends, longer, memory["length"]),
            "left": where(ends, longer, memory["left"] - 1),
            # One mistake after k^2 there are 2k to go to (k + 1)^2.
            "until": memory["root"].to(UInt(width + 1)) << 1,
            "root": where(memory["root"] == (1 << width) - 1, memory["root"], memory["root"] + 1),
        }
        waiting = {**memory, "until": memory["until"] - 1}
        return where(learning, after, {key: waiting[key] for key in after})

    return FunctionLearner(
        name=f"doubling {learner.name}",
        x=learner.x,
        memory={
            "settled": learner.memory,
            "fresh": learner.memory,
            "length": size,
            "left": size,
            "until": UInt(width + 1),
            "root": root,
        },
        update=update,
        predict=lambda memory, x: learner.predict(memory["settled"], x),
        done=lambda memory: memory["until"] != 0,
        online=True,
        first_memory={"settled": blank, "fresh": blank, "length": 1, "left": 1, "until": 0, "root": 0},
    )


def _as(layout: Layout, bits: Any) -> Any:
    """The bits of a sample in the layout that a learner wants."""
    return concat(bits) if isinstance(layout, IntType) else bits
