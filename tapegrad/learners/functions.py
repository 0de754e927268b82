"""Learners written as ordinary Python functions over bits and integers, traced into circuits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tapegrad.circuits import Bit, Traced, trace, where
from tapegrad.circuits.model import Circuit
from tapegrad.circuits.types import Layout, from_bits, names, to_bits
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
