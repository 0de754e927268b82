"""Training the net of a learner on data: what it is shown, and what it answers.

A net that still learns says the guess that came with the sample, and SGD changes something only where that
was wrong (Theorem 4 of Abbe and Sandon). With guesses "both", every sample is shown twice, with the guess 0
and with the guess 1: exactly one of them is wrong, whatever the label, so that every sample is learned from
exactly once, in order. With guesses "random" it is shown once, and lost where the guess happens to be right.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad._compile import Compiled
from tapegrad.errors import DataError, InputError, Refused
from tapegrad.learners import Learner, LearnerState, Samples
from tapegrad.learners.asked import Questions, questions_of
from tapegrad.learners.data import bits_of, classes_of, numbers_of, thresholds_of
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet

GUESSES = ("both", "random")
CHUNK = 256
"""Samples that are shown before progress is reported."""


@dataclass(frozen=True, eq=False)
class Course:
    """How samples are made into steps of SGD; everything is determined by the seed."""

    questions: Questions
    guesses: str = "both"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.guesses not in GUESSES:
            raise DataError(f"guesses are 'both' or 'random', not {self.guesses!r}")
        if self.guesses == "random" and self.questions.label_bits > 1:
            raise DataError(
                "a label of several bits cannot be learned where samples are lost",
                advice='Use guesses="both".',
            )

    def steps(self, samples: int) -> int:
        """How many steps so many samples take."""
        return samples * self.questions.label_bits * (2 if self.guesses == "both" else 1)

    def shown(self, points: NDArray[np.uint8], labels: NDArray[Any], taken: int) -> Samples:
        """What the net is shown, after `taken` steps."""
        asked = range(self.questions.label_bits)
        x, y = self.questions.rows(points, asked), self.questions.bits_of_labels(labels)
        if self.guesses == "both":
            x, y = np.repeat(x, 2, axis=0), np.repeat(y, 2)
        random, guess = self._random_bits(taken, len(y))
        if self.guesses == "both":
            guess = (np.arange(len(y)) % 2).astype(np.uint8)
        return Samples(x, y, random, guess)

    def _random_bits(self, taken: int, count: int) -> NDArray[np.uint8]:
        """The two random bits of each step depend on the seed and on how many came before, so that it does
        not matter in which portions the samples come: one block of the counter-based Philox for each."""
        source = np.random.Philox(key=self.seed).advance(taken)
        return (np.random.Generator(source).random((count, 4))[:, :2] < 0.5).astype(np.uint8).T


class Trainee(NamedTuple):
    """A practical network under training. It is a value: training gives another one."""

    net: PracticalNet
    course: Course
    carry: EmulatorCarry

    @classmethod
    def of(
        cls, net: PracticalNet, course: Course, weights: NDArray[Any] | None = None, taken: int = 0
    ) -> Self:
        """The network before training, or after `taken` steps, which left these weights."""
        nothing = Samples(*(np.zeros(shape, np.uint8) for shape in ((0, net.inputs), 0, 0, 0)))
        return cls(net, course, EmulatorCarry(net.weights if weights is None else weights, taken, nothing))

    def trained(self, points: NDArray[np.uint8], labels: NDArray[Any], engine: str = "fast") -> Self:
        """After these samples."""
        taken = self.carry.steps
        samples = self.course.shown(points, labels, taken)
        self.net.check_length(taken + len(samples))
        after = self.net.advance(replace(self.carry, steps=0, samples=samples), len(samples), engine)
        return self._replace(carry=replace(after, steps=taken + len(samples), samples=self.carry.samples))

    def labels(self, points: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The number of the class that the network answers for each point, without training it further."""
        questions = self.course.questions
        found = questions.labels(self._answers(points, range(questions.label_bits)))
        return np.minimum(found, questions.classes - 1)

    def scores(self, points: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The learner's scores of each point, as the network answers when asked for their bits."""
        questions = self.course.questions
        return questions.scores(self._answers(points, range(questions.label_bits, questions.total)))

    def _answers(self, points: NDArray[np.uint8], asked: range) -> NDArray[np.bool_]:
        return self.net.outputs(self.carry, self.course.questions.rows(points, asked)) > 0

    @property
    def finished(self) -> bool:
        """Whether the network answers rather than guesses."""
        return self.net.has_finished(self.carry)

    def agreeing(self, points: NDArray[np.uint8], labels: NDArray[Any], steps: int, seed: int = 0) -> int:
        """Of so many steps, drawn at random from those that these samples lead to, how many leave the same
        weights by automatic differentiation of the whole network as by the fast engine, bit for bit."""
        samples = self.course.shown(points, labels, self.carry.steps)
        drawn = np.sort(np.random.default_rng(seed).integers(0, len(samples), steps))
        carry, agreed = replace(self.carry, steps=0, samples=samples), 0
        for at in drawn.tolist():
            carry = self.net.advance(carry, at - carry.steps, "fast")
            ahead = self.net.advance(carry, 1, "fast").weights, self.net.step(carry).weights
            agreed += np.array_equal(*(weights.view(f"u{weights.itemsize}") for weights in ahead))
        return agreed


# fit, predict and score on a compiled net


class Fitted(NamedTuple):
    """What `fit` has found out: how data become bits, and the learner after them."""

    classes: NDArray[Any]
    thresholds: NDArray[np.float64] | None
    state: LearnerState
    finished: bool
    steps: int
    """Of the net, one after the other."""
    engine: str
    trainee: Trainee | None
    """The network itself, where its weights hold the memory."""


def fit(
    compiled: Compiled,
    X: ArrayLike,
    y: ArrayLike,
    *,
    passes: int = 20,
    threshold: float | str | None = None,
    guesses: str = "both",
    seed: int = 0,
    engine: str | None = None,
) -> Fitted:
    """Shows the samples until the learner has finished, `passes` times at most."""
    learner = _learner(compiled)
    course = Course(questions_of(learner), guesses, seed)
    if not isinstance(passes, int) or passes < 1:
        raise DataError(f"the number of passes must be a whole number of at least 1, not {passes!r}")
    array = _matrix(X, course.questions)
    thresholds = thresholds_of(array, threshold)
    points, labels = bits_of(array, thresholds), np.asarray(y)
    if labels.shape != (len(points),) or not len(points):
        raise DataError(
            f"there are {len(points)} samples and labels of shape {labels.shape}",
            advice="Give one label for each sample, and at least one sample.",
        )
    classes = classes_of(labels, bool((array == 0).any()), course.questions.classes)
    numbers = numbers_of(labels, classes)
    chosen = engine or ("fast" if "fast" in compiled.net.engines else "reference")
    compiled.net.check_engine(chosen)
    training = _by_sgd if isinstance(compiled.net, PracticalNet) else _by_running
    state, finished, steps, trainee = training(compiled, course, points, numbers, passes, chosen)
    if not finished:
        warnings.warn(
            f"the learner has not finished after {passes} passes over {len(points)} samples; until it has, "
            f"the network merely guesses",
            stacklevel=3,
        )
    return Fitted(classes, thresholds, state, finished, steps, chosen, trainee)


def predict(compiled: Compiled, fitted: Fitted, X: ArrayLike) -> NDArray[Any]:
    """The class of each row of X."""
    questions = questions_of(_learner(compiled))
    points = bits_of(_matrix(X, questions), fitted.thresholds)
    if fitted.trainee is not None:
        return fitted.classes[np.minimum(fitted.trainee.labels(points), len(fitted.classes) - 1)]
    rows = questions.rows(points, range(questions.label_bits))
    answers = np.array([_answer(compiled, fitted, row) for row in rows], bool)
    return fitted.classes[np.minimum(questions.labels(answers), len(fitted.classes) - 1)]


def _by_sgd(
    compiled: Compiled, course: Course, points: Any, labels: Any, passes: int, engine: str
) -> tuple[LearnerState, bool, int, Trainee]:
    """On the emulator a step of the net is one of SGD, and what it has learned stays in its weights."""
    trainee = Trainee.of(compiled.net, course)  # type: ignore[arg-type]
    for _ in range(passes):
        trainee = trainee.trained(points, labels, engine)
        if trainee.finished:
            break
    return trainee.net.decode(trainee.carry), trainee.finished, trainee.carry.steps, trainee


def _by_running(
    compiled: Compiled, course: Course, points: Any, labels: Any, passes: int, engine: str
) -> tuple[LearnerState, bool, int, None]:
    """On any other target a pass is a run over all samples, and the next one starts from its memory."""
    learner, taken, steps, finished = _learner(compiled), 0, 0, False
    state = LearnerState(learner.first, 0, None, course.shown(points[:0], labels[:0], 0))
    for _ in range(passes):
        samples = course.shown(points, labels, taken)
        state, more = _run(compiled, LearnerState(state.memory, 0, None, samples), engine)
        taken, steps = taken + len(samples), steps + more
        finished = bool(learner.respond(state.memory, [0] * learner.inputs, 0, 0).finished)
        if finished:
            break
    return state, finished, steps, None


def _answer(compiled: Compiled, fitted: Fitted, row: NDArray[np.uint8]) -> int:
    """The answer to one question: a run of its own from the memory after training. The label that the sample
    needs has no influence on what is said to it."""
    zero = np.zeros(1, np.uint8)
    samples = Samples(row[None], zero, zero, zero)
    state, _ = _run(compiled, LearnerState(fitted.state.memory, 0, None, samples), fitted.engine)
    return state.answer or 0


def _run(compiled: Compiled, first: LearnerState, engine: str) -> tuple[LearnerState, int]:
    carry = compiled.net.begin(compiled.encode(first), engine)
    run = compiled.resume(carry, steps=1 << 40, engine=engine)
    if run.state is None:
        raise Refused(f"the net did not end within {run.steps:,} steps")
    return run.state, run.steps


def _learner(compiled: Compiled) -> Learner:
    if not isinstance(compiled.source, Learner):
        raise InputError(
            f"{compiled.source.name!r} is no learner, so there is nothing to fit",
            advice="Call the net, or use `run`.",
        )
    return compiled.source


def _matrix(X: ArrayLike, questions: Questions) -> NDArray[Any]:
    array = np.asarray(X)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise DataError("X must be a matrix of numbers, one row for each sample, without NaN or infinity")
    if array.shape[1] != questions.features:
        raise DataError(f"X has {array.shape[1]} features, and the learner takes {questions.features}")
    return array
