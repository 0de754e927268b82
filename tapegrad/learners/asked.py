"""Learners with several output bits: labels of more than two classes, and scores beside the answer.

The loss of the emulator's network is (output - label)^2 with one output and one bit of label. So a learner
that has more to say is asked for one bit at a time: beside its features a sample has the number of a
question, in binary. Questions 0 to b - 1 are the bits of the label, the lowest first; later ones are the bits
of its scores, which are never trained. To learn a sample of more than two classes the network is shown all
its b questions in order; the learner keeps the bits it has heard and learns when it has heard the last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits import Array, Bit, UInt, concat, where
from tapegrad.circuits.types import IntType, Layout, from_bits
from tapegrad.errors import SourceError
from tapegrad.learners.functions import FunctionLearner
from tapegrad.learners.model import Learner

Update = Callable[[Any, Any, Any, Any], Any]
Predict = Callable[[Any, Any], Any]


class Scores(NamedTuple):
    """Integers that a learner has for a point beside its answer: their types, and the function."""

    types: Sequence[IntType]
    of: Callable[[Any, Any], Sequence[Any]]
    """Takes memory and features."""


class Questions(NamedTuple):
    """What a learner can be asked about a point of `features` bits, and how the answers are put together."""

    features: int
    classes: int = 2
    score_types: tuple[IntType, ...] = ()

    @property
    def label_bits(self) -> int:
        """How many questions there are about the label, which come first."""
        return (self.classes - 1).bit_length()

    @property
    def total(self) -> int:
        """How many questions there are."""
        return self.label_bits + sum(own.width for own in self.score_types)

    @property
    def width(self) -> int:
        """Bits of the number of a question."""
        return (self.total - 1).bit_length()

    def rows(self, points: NDArray[np.uint8], asked: range) -> NDArray[np.uint8]:
        """Every point with each of these questions, one row for each, those of a point together."""
        numbers = np.array(asked, np.int64)[:, None] >> np.arange(self.width) & 1
        repeated = np.repeat(points, len(asked), axis=0)
        return np.column_stack([repeated, np.tile(numbers, (len(points), 1))]).astype(np.uint8)

    def bits_of_labels(self, labels: NDArray[Any]) -> NDArray[np.uint8]:
        """The right answers to the questions about the label, those of a point together."""
        return (labels.astype(np.int64)[:, None] >> np.arange(self.label_bits) & 1).astype(np.uint8).ravel()

    def labels(self, answers: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The label of each point, from the answers to the questions about it."""
        return answers.reshape(-1, self.label_bits).astype(np.int64) @ (1 << np.arange(self.label_bits))

    def scores(self, answers: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The scores of each point, from the answers to the questions about them."""
        rows = answers.reshape(-1, self.total - self.label_bits).tolist()
        words = [[from_bits(own, bits) for own in self.score_types] for bits in map(iter, rows)]
        return np.array(words, np.int64).reshape(len(rows), len(self.score_types))


NONE = Questions(0)


@dataclass(frozen=True, eq=False)
class AskedLearner(FunctionLearner):
    """A learner whose samples have first the features of a point and then the number of a question."""

    questions: Questions = NONE


def questions_of(learner: Learner) -> Questions:
    """What a learner can be asked; most of them the label alone, one bit."""
    return learner.questions if isinstance(learner, AskedLearner) else Questions(learner.inputs)


def asked(
    *,
    name: str,
    features: int,
    memory: dict[str, Layout],
    update: Update,
    predict: Predict,
    done: Callable[[Any], Any],
    classes: int = 2,
    scores: Scores | None = None,
    first_memory: dict[str, Any] | None = None,
) -> AskedLearner:
    """A learner of these functions, as `FunctionLearner` has them, with x an array of `features` bits. With
    more than two classes, labels and answers are of type `UInt`. Where there is only one question, the bit
    that two classes differ in, a sample has its features alone."""
    if classes < 2:
        raise SourceError(f"the learner {name!r} needs at least two classes")
    types = () if scores is None else tuple(scores.types)
    questions = Questions(features, classes, types)
    bits, x = questions.label_bits, Array(Bit, features)
    if questions.total == 1:
        own = {"memory": memory, "update": update, "predict": predict, "done": done}
        return AskedLearner(name=name, x=x, first_memory=first_memory, questions=questions, **own)

    def answer(memory: Any, point: Any) -> Any:
        said = predict(memory["own"], point["x"])
        answers = [said] if classes == 2 else said.bits()
        if scores is not None:
            words = scores.of(memory["own"], point["x"])
            answers += [bit for word, of in zip(words, types, strict=True) for bit in word.to(of).bits()]
        return concat(answers)[point["ask"]]

    def learn(memory: Any, point: Any, y: Any, r: Any) -> Any:
        if bits == 1:
            return {"own": update(memory["own"], point["x"], y, r)}
        heard, ask = memory["heard"], point["ask"]
        learned = update(memory["own"], point["x"], concat(heard.bits(), y), r)
        now = concat([where(ask == number, y, bit) for number, bit in enumerate(heard.bits())])
        return {"own": where(ask == bits - 1, learned, memory["own"]), "heard": now}

    layout: dict[str, Layout] = {"own": memory} | ({"heard": UInt(bits - 1)} if bits > 1 else {})
    first = None
    if first_memory is not None:
        first = {"own": first_memory} | ({"heard": 0} if bits > 1 else {})
    return AskedLearner(
        name=name,
        x={"x": x, "ask": UInt(questions.width)},
        memory=layout,
        update=learn,
        predict=answer,
        done=lambda memory: done(memory["own"]),
        first_memory=first,
        questions=questions,
    )
