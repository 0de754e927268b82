"""Any learner, emulated by plain SGD on its compiled network, as a classifier."""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tapegrad._compile import compile
from tapegrad._files import what_is_broken
from tapegrad._training import CHUNK, Course, Trainee
from tapegrad.circuits.types import IntType, layout_from_json, layout_to_json
from tapegrad.errors import BrokenNet, DataError
from tapegrad.learners import CircuitLearner, Learner, parity
from tapegrad.learners.asked import Questions, questions_of
from tapegrad.learners.recipes import RECIPES, Recipe
from tapegrad.networks.saving import from_json
from tapegrad.sklearn.common import CompiledClassifier, Points, read_classifier
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet
from tapegrad_check.folder import OF_NETWORK


def _has_probabilities(classifier: Any) -> bool:
    """Whether there is a `predict_proba`; the message is what an AttributeError says."""
    learner = classifier.learner
    if isinstance(learner, Recipe) and learner.has_probabilities:
        return True
    raise AttributeError("the learner has no scores that are probabilities")


def _knows_how_many(classifier: Any) -> bool:
    """Whether there is a `partial_fit`."""
    learner = classifier.learner
    if isinstance(learner, Recipe) and learner.samples is None:
        name = type(learner).__name__
        raise AttributeError(
            f"partial_fit cannot know how many samples there will be: give {name}(samples=...)"
        )
    return True


class EmulatedClassifier(CompiledClassifier):
    """Trains the compiled network of a learner by plain SGD, one sample at a time.

        EmulatedClassifier(NaiveBayes(alpha=1)).fit(X, y).predict(X)
        EmulatedClassifier(tapegrad.learners.parity).fit(X, y).predict(X)

    `learner` is a recipe (`tapegrad.learners.recipes`), whose parameters are `learner__...` for a grid
    search; or a function from the number of features to a learner; or a learner.

    `fit` goes through the samples until the learner has finished, `passes` times at most. `partial_fit` shows
    each sample once more. With guesses "both" every sample is learned from exactly once in each pass, in two
    steps of SGD; with "random" it takes one step, and is lost where the network's guess was right
    (`tapegrad._training`). Everything is determined by `random_state`.

    Of more than two classes, a learner that can tell them apart is asked for one bit of the label after the
    other, on one network (`tapegrad.learners.asked`). For any other learner, and with
    `multiclass="one-vs-rest"`, there is a network for each class against the rest: one graph, and weights for
    each class. The class with the highest score is the answer, the first of several.

    A `sample_weight` must be whole: a sample of weight 3 is shown three times, one of weight 0 never.
    """

    SETTINGS: ClassVar[Mapping[str, Any]] = {
        "passes": int, "precision": str, "random_state": int, "progress": bool,
    }  # fmt: skip
    LATER: ClassVar[Mapping[str, Any]] = {"guesses": "random", "multiclass": "auto"}
    """Settings that older folders do not have, and what they meant."""

    most_classes: ClassVar[int | None] = None

    def __init__(
        self,
        learner: Learner | Callable[[int], Learner] | Recipe = parity,
        *,
        threshold: float | str | None = None,
        guesses: str = "both",
        multiclass: str = "auto",
        passes: int = 20,
        precision: str = "float64",
        random_state: int = 0,
        progress: bool = False,
    ) -> None:
        self.learner = learner
        self.threshold = threshold
        self.guesses = guesses
        self.multiclass = multiclass
        self.passes = passes
        self.precision = precision
        self.random_state = random_state
        self.progress = progress

    # Training

    def fit(self, X: Points, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Starts afresh and trains until the learner has finished."""
        bits, labels = self._checked(X, y, reset=True, weights=sample_weight)
        self._begin(len(bits))
        for _ in range(self.passes):
            self._train(bits, labels)
            if self.finished_:
                return self
        warnings.warn(
            f"the learner has not finished after {self.passes} passes over {len(bits)} samples; "
            f"until it has, the network merely guesses",
            ConvergenceWarning,
            stacklevel=2,
        )
        return self

    @available_if(_knows_how_many)
    def partial_fit(
        self,
        X: Points,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Shows each sample once more, going on from where the network is. The first call may name all
        classes; else it must show them."""
        first = not hasattr(self, "trainees_")
        bits, labels = self._checked(X, y, reset=first, classes=classes, weights=sample_weight)
        if first:
            self._begin(None)
        self._train(bits, labels)
        return self

    def _begin(self, samples: int | None) -> None:
        if self.multiclass not in ("auto", "one-vs-rest"):
            raise DataError(f"multiclass is 'auto' or 'one-vs-rest', not {self.multiclass!r}")
        if not isinstance(self.passes, int | np.integer) or self.passes < 1:
            raise DataError(f"the number of passes must be a whole number of at least 1, not {self.passes!r}")
        classes = len(self.classes_)
        learner = self._made(samples, classes)
        questions = questions_of(learner)
        if questions.features != self.n_features_in_:
            raise DataError(
                f"the learner {learner.name!r} takes {questions.features} bits, "
                f"but X has {self.n_features_in_} features"
            )
        one_against_the_rest = classes > 2 and questions.classes == 2
        if not one_against_the_rest and classes > questions.classes:
            raise DataError(f"the learner tells {questions.classes} classes apart, and y has {classes}")
        net = compile(learner, "emulator", precision=self.precision).net
        assert isinstance(net, PracticalNet)
        # The learner's circuit, rather than its functions: that can be saved, copied and sent elsewhere.
        self.learner_ = CircuitLearner(learner.circuit, learner.inputs, learner.first)
        course = Course(questions, self.guesses, self.random_state)
        self.trainees_: tuple[Trainee, ...] = (Trainee.of(net, course),) * (
            classes if one_against_the_rest else 1
        )

    def _made(self, samples: int | None, classes: int) -> Learner:
        """The learner, for data of the size that is known now."""
        if isinstance(self.learner, Learner):
            return self.learner
        if not isinstance(self.learner, Recipe):
            return self.learner(self.n_features_in_)
        at_once = self.learner.several_classes and self.multiclass == "auto"
        return self.learner.learner(self.n_features_in_, samples or 1, classes if at_once else 2)

    def _train(self, bits: NDArray[np.uint8], labels: NDArray[np.int64]) -> None:
        trained = []
        for number, trainee in enumerate(self.trainees_):
            own = labels if len(self.trainees_) == 1 else (labels == number).astype(np.int64)
            for begin in self._chunks(len(bits)):
                part = slice(begin, begin + CHUNK)
                trainee = trainee.trained(bits[part], own[part])
            trained.append(trainee)
        self.trainees_ = tuple(trained)

    def _chunks(self, count: int) -> Iterable[int]:
        starts = range(0, count, CHUNK)
        if not self.progress:
            return starts
        from rich.progress import track  # only where a bar is asked for

        return track(starts, description="SGD")

    # Answers

    def predict(self, X: Points) -> NDArray[Any]:
        """The class that the network answers; the first one where it has not finished learning."""
        points = self._points(X)
        if len(self.trainees_) > 1:
            return self.classes_[self._decision(points).argmax(axis=1)]
        found = self._first.labels(points)
        return self.classes_[np.minimum(found, len(self.classes_) - 1)]

    def decision_function(self, X: Points) -> NDArray[np.float64]:
        """The learner's score: above 0 for the second of two classes, else the highest for the class that is
        the answer. Of a learner without scores, the output of the network: -1 or 1."""
        return self._decision(self._points(X))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Points) -> NDArray[np.float64]:
        """The probability of each class by the learner's scores. The network is asked for their bits, one by
        one. Of networks for one class against the rest, what they say is divided by its sum."""
        points = self._points(X)
        assert isinstance(self.learner, Recipe)
        found = [self.learner.probabilities(trainee.scores(points)) for trainee in self.trainees_]
        likely = [own for own in found if own is not None]
        if len(likely) == 1:
            return likely[0]
        of_class = np.column_stack([own[:, 1] for own in likely])
        sums = of_class.sum(axis=1, keepdims=True)
        return np.where(sums > 0, of_class / np.where(sums > 0, sums, 1), 1 / len(self.classes_))

    def _decision(self, points: NDArray[np.uint8]) -> NDArray[np.float64]:
        columns = [self._decision_of(trainee, points) for trainee in self.trainees_]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)

    def _decision_of(self, trainee: Trainee, points: NDArray[np.uint8]) -> NDArray[np.float64]:
        questions = trainee.course.questions
        if isinstance(self.learner, Recipe) and questions.score_types:
            return self.learner.decision(trainee.scores(points))
        answers = trainee.labels(points)
        if questions.classes == 2:
            return np.where(answers == 1, 1.0, -1.0)
        return np.where(answers[:, None] == np.arange(len(self.classes_)), 1.0, -1.0)

    # What has been learned

    @property
    def _first(self) -> Trainee:
        networks: tuple[Trainee, ...] = self.trainees_
        return networks[0]

    @property
    def net_(self) -> PracticalNet:
        """The compiled network, before training."""
        check_is_fitted(self)
        return self._first.net

    @property
    def carry_(self) -> EmulatorCarry:
        """The network as trained so far; the first one where there is one for each class."""
        check_is_fitted(self)
        return self._first.carry

    @property
    def finished_(self) -> bool:
        """Whether the learner has learned enough."""
        check_is_fitted(self)
        return all(trainee.finished for trainee in self.trainees_)

    @property
    def memory_(self) -> tuple[int, ...]:
        """The learner's memory, read off the weights; that of all networks one after the other."""
        check_is_fitted(self)
        return tuple(bit for own in self.trainees_ for bit in own.net.decode(own.carry).memory)

    @property
    def steps_(self) -> int:
        """How many steps of SGD were taken, on all networks together."""
        check_is_fitted(self)
        return sum(trainee.carry.steps for trainee in self.trainees_)

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the network as trained so far, how many steps it has taken, and the learner's circuit."""
        check_is_fitted(self)
        questions, weights = (
            self.trainees_[0].course.questions,
            [trainee.carry.weights for trainee in self.trainees_],
        )
        settings = {name: getattr(self, name) for name in (*self.SETTINGS, *self.LATER)} | {
            "steps": self.carry_.steps,
            "questions": [questions.features, questions.classes, *map(layout_to_json, questions.score_types)],
        }
        if isinstance(self.learner, Recipe) and RECIPES.get(type(self.learner).__name__) is type(
            self.learner
        ):
            settings["recipe"] = {"name": type(self.learner).__name__, **self.learner.get_params()}
        trained = weights[0] if len(weights) == 1 else np.array(weights)
        self._write(path, self.net_, self.learner_, {"trained": trained}, settings)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The classifier again, ready to go on training."""
        folder, settings, learner = read_classifier(path, "emulator", {**cls.SETTINGS, "steps": int})
        with what_is_broken(path):
            if not isinstance(learner, CircuitLearner):
                raise BrokenNet("the saved source is no learner")
            if folder.network is None:
                raise BrokenNet("the network is missing")
            network = from_json(folder.network, folder.part(OF_NETWORK))
            net = PracticalNet.from_arrays(folder.config["net"], folder.arrays, network)
            questions = _questions(settings.get("questions", [net.inputs, 2]))
            trained = np.atleast_2d(folder.arrays["trained"])
            networks = len(settings["classes"]) if questions.classes < len(settings["classes"]) else 1
            fits = trained.shape == (networks, *net.weights.shape)
            if not fits or questions.features + questions.width != net.inputs:
                raise BrokenNet("the weights do not fit the network")
            own = {name: settings[name] for name in cls.SETTINGS}
            own |= {name: settings.get(name, before) for name, before in cls.LATER.items()}
            loaded = cls(_recipe(settings) or learner, threshold=settings["threshold"], **own)
            loaded._take_over(settings, questions.features)
            loaded.learner_ = learner
            course = Course(questions, loaded.guesses, loaded.random_state)
            loaded.trainees_ = tuple(Trainee.of(net, course, row, settings["steps"]) for row in trained)
        return loaded


def _questions(saved: list[Any]) -> Questions:
    features, classes, *types = saved
    scores = [layout_from_json(own) for own in types]
    if not all(isinstance(own, IntType) for own in scores):
        raise BrokenNet("scores must be integers")
    return Questions(int(features), int(classes), tuple(scores))  # type: ignore[arg-type]


def _recipe(settings: Mapping[str, Any]) -> Recipe | None:
    """The recipe by which the learner was made, where that was one of ours."""
    saved = settings.get("recipe")
    if saved is None:
        return None
    parameters = dict(saved)
    return RECIPES[parameters.pop("name")](**parameters)
