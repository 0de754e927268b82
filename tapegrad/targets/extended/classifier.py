"""Classifiers in the manner of scikit-learn whose `fit` is gradient descent on an extended network."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import DataError, InputError
from tapegrad.learners import decision_tree, naive_bayes, nearest, winnow
from tapegrad.learners.data import cuts_of
from tapegrad.learners.model import Learner, Memory
from tapegrad.learners.tree import steps_to_grow
from tapegrad.targets.extended.formats import FixedPoint
from tapegrad.targets.extended.net import Extended, Progress, Training, TrainingRun, extend
from tapegrad.targets.extended.primary import MLP
from tapegrad.targets.extended.rosenblatt import perceptron_rule


class TrainedClassifier(ABC):
    """Two classes, told apart by an extended network. It depends on the number of samples and of numbers for
    each, never on what they are: to fit again with data of the same shape is to train the same network.
    Labels are -1 and +1, which keeps |y|^2 away from 0."""

    settings: ClassVar[tuple[str, ...]]

    classes_: NDArray[Any]
    """Both labels, in order; the network says +1 for the second."""
    n_features_in_: int
    training_: Training
    run_: TrainingRun
    engine: str | None
    progress: Progress | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name, as `sklearn.base.clone` and a grid search want them."""
        return {name: getattr(self, name) for name in self.settings}

    def set_params(self, **params: Any) -> Self:
        """Sets settings by name."""
        for name, value in params.items():
            if name not in self.settings:
                raise DataError(f"there is no setting {name!r}", advice=f"Choose {', '.join(self.settings)}.")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of a classifier for two classes."""
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        two = ClassifierTags(multi_class=False)
        return Tags("classifier", TargetTags(required=True), classifier_tags=two)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Trains the network of this shape until the algorithm has ended."""
        samples, labels = _numbers(X), np.asarray(y)
        if labels.shape != (len(samples),):
            raise DataError(f"there are {len(samples)} samples but labels of shape {labels.shape}")
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            raise DataError(f"this classifier tells two classes apart, not {len(self.classes_)}")
        self.n_features_in_ = samples.shape[1]
        self._look_at(samples)
        x, signs = self.scaled(samples), np.where(labels == self.classes_[1], 1.0, -1.0)
        self.training_ = self._network(*x.shape).on(x, signs[:, None])
        self.run_ = self.training_.train(engine=self.engine, progress=self.progress)
        return self

    @abstractmethod
    def _look_at(self, samples: NDArray[np.float64]) -> None:
        """How features become numbers of the format is decided by the samples trained on."""

    @abstractmethod
    def scaled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Features as numbers of the format."""

    @abstractmethod
    def _network(self, samples: int, inputs: int) -> Extended:
        """For data of this shape."""

    @abstractmethod
    def plainly(self, X: ArrayLike, y: ArrayLike) -> Callable[[ArrayLike], NDArray[Any]]:
        """The same algorithm on the same numbers, without any network; gives what predicts classes."""

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each sample: the output of the extended network, with the weights of training."""
        x = self._fitted(X)
        outputs = self.training_.extended.predict(self.run_, x)
        return self.classes_[(outputs.ravel() > 0).astype(int)]

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """The part of the samples that is classified right."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def _fitted(self, X: ArrayLike) -> NDArray[np.float64]:
        if not hasattr(self, "run_"):
            raise InputError(
                "this classifier has not been fitted", advice="Call fit with samples and labels first."
            )
        return self._of_this_width(_numbers(X))

    def _of_this_width(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        if X.shape[1] != self.n_features_in_:
            raise DataError(f"the samples have {X.shape[1]} features; training had {self.n_features_in_}")
        return self.scaled(X)


class PerceptronClassifier(TrainedClassifier):
    """A perceptron for two classes, trained by Rosenblatt's rule, which gradient descent carries out.

        PerceptronClassifier(epochs=10).fit(X, y).score(X_test, y_test)

    Features are scaled to numbers of `bits` bits: the smallest of each in the training samples becomes -2,
    the largest 2 - 2^(2 - bits), and what lies beyond is cut off. On these numbers the weights are, to the
    last bit, those of scikit-learn's `Perceptron(max_iter=epochs, tol=None, shuffle=False)`.
    """

    settings = ("epochs", "bits", "engine", "progress")

    def __init__(
        self,
        epochs: int = 10,
        bits: int = 8,
        *,
        engine: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.epochs, self.bits, self.engine, self.progress = epochs, bits, engine, progress

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weights."""
        return self.run_.theta[None, :-1]

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """The bias."""
        return self.run_.theta[-1:]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """w . x + b for each sample: positive for the second class."""
        return (self._fitted(X) @ self.coef_.T + self.intercept_).ravel()

    def _look_at(self, samples: NDArray[np.float64]) -> None:
        self._least, self._most = samples.min(axis=0), samples.max(axis=0)

    def scaled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Features as numbers of the format."""
        spread = np.where(self._most > self._least, self._most - self._least, 1.0)
        units = np.rint((X - self._least) / spread * ((1 << self.bits) - 1))
        return np.clip(units, 0, (1 << self.bits) - 1) * 2.0 ** (2 - self.bits) - 2

    def _network(self, samples: int, inputs: int) -> Extended:
        return _perceptron_network(samples, inputs, self.epochs, self.bits)

    def plainly(self, X: ArrayLike, y: ArrayLike) -> Callable[[ArrayLike], NDArray[Any]]:
        """The rule in whole numbers."""
        one = 1 << self.bits - 2

        def units(features: ArrayLike) -> NDArray[np.int64]:
            return np.rint(self._fitted(features) * one).astype(np.int64)

        signs = np.where(np.asarray(y) == self.classes_[1], 1, -1)
        *weights, bias = perceptron_plainly(units(X), signs, self.epochs, one)
        return lambda features: self.classes_[(units(features) @ weights + bias * one > 0).astype(int)]


def perceptron_plainly(x: NDArray[Any], signs: NDArray[Any], epochs: int, one: int) -> list[int]:
    """The same rule in whole numbers, without any network: data in units of 1 / `one`, weights likewise, the
    bias last."""
    weights = [0] * (x.shape[1] + 1)
    for _ in range(epochs):
        mistakes = 0
        for row, sign in zip(([*map(int, row), one] for row in x), map(int, signs), strict=True):
            if sign * sum(w * value for w, value in zip(weights, row, strict=True)) <= 0:
                weights = [w + sign * value for w, value in zip(weights, row, strict=True)]
                mistakes += 1
        if not mistakes:
            break
    return weights


class Named(NamedTuple):
    """A learner of the library by name: made for so many features, samples and rounds; and the rounds that
    it takes, if they are given."""

    summary: str
    make: Callable[[int, int, int], Learner]
    rounds: Callable[[int, int, int], int] = lambda inputs, samples, epochs: 1


def _rounds_to_grow(depth: int) -> Callable[[int, int, int], int]:
    return lambda inputs, samples, epochs: -(-steps_to_grow(inputs, samples, depth) // samples)


LEARNERS = {
    "naive-bayes": Named("counts of bits in each class", lambda n, m, epochs: naive_bayes(n, m)),
    "winnow": Named(
        "weights doubled and halved at mistakes",
        lambda n, m, epochs: winnow(n, m * epochs),
        lambda inputs, samples, epochs: epochs,
    ),
    "nearest": Named("a vote of the 5 nearest samples", lambda n, m, epochs: nearest(n, m, min(5, m))),
    "stump": Named("one question", lambda n, m, epochs: decision_tree(n, m, 1), _rounds_to_grow(1)),
    "tree": Named("a tree of depth 2", lambda n, m, epochs: decision_tree(n, m, 2), _rounds_to_grow(2)),
}
"""Of `tapegrad.learners`, on bits."""


def learner_named(name: str) -> Named:
    """The learner, or a refusal that says which there are."""
    if name not in LEARNERS:
        near = get_close_matches(name, LEARNERS, 1)
        meant = f"Did you mean {near[0]}? " if near else ""
        raise InputError(
            f"there is no learner {name!r}", advice=f"{meant}There are perceptron, {', '.join(LEARNERS)}."
        )
    return LEARNERS[name]


class LearnerClassifier(TrainedClassifier):
    """A learner of the library, which gradient descent carries out on one machine for all of them.

        LearnerClassifier("naive-bayes", cuts=2).fit(X, y).score(X_test, y_test)

    Each feature becomes `cuts` bits, or fewer if it has no more than `cuts` distinct values: whether it lies
    above each of so many cuts between the values of the training samples (`learners.data.cuts_of`); 0 and 1
    pass as they are. What is remembered is, bit for bit, what the learner remembers when run plainly.
    """

    settings = ("learner", "cuts", "epochs", "engine", "progress")

    def __init__(
        self,
        learner: str = "naive-bayes",
        cuts: int = 1,
        epochs: int = 10,
        *,
        engine: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.learner, self.cuts, self.epochs = learner, cuts, epochs
        self.engine, self.progress = engine, progress

    def _look_at(self, samples: NDArray[np.float64]) -> None:
        if self.cuts < 1:
            raise DataError(f"a feature needs at least one cut, not {self.cuts}")
        self._cuts = [cuts_of(column, self.cuts) for column in samples.T]

    def scaled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Features as bits, those of one feature together."""
        bits = [column[:, None] > cuts for column, cuts in zip(X.T, self._cuts, strict=True)]
        return np.concatenate(bits, axis=1).astype(float)

    def _network(self, samples: int, inputs: int) -> Extended:
        return _learner_network(self.learner, samples, inputs, self.epochs)

    def plainly(self, X: ArrayLike, y: ArrayLike) -> Callable[[ArrayLike], NDArray[Any]]:
        """The learner's own Python, sample by sample."""
        bits = self._fitted(X).astype(np.uint8)
        learner, rounds = _made(self.learner, len(bits), bits.shape[1], self.epochs)
        memory = remembered_plainly(learner, bits, np.asarray(y) == self.classes_[1], rounds)

        def predicted(features: ArrayLike) -> NDArray[Any]:
            rows = self._fitted(features).astype(np.uint8).tolist()
            answers = [learner.respond(memory, row, 0, 0).answer for row in rows]
            return self.classes_[np.array(answers, int)]

        return predicted


def remembered_plainly(learner: Learner, x: NDArray[Any], y: NDArray[Any], rounds: int) -> Memory:
    """What a learner remembers after so many rounds, by its interpreter."""
    *_, last = learner.run(learner.start(np.tile(x, (rounds, 1)), np.tile(y, rounds), guessing=False))
    return last.memory


def _made(name: str, samples: int, inputs: int, epochs: int) -> tuple[Learner, int]:
    named = learner_named(name)
    return named.make(inputs, samples, epochs), named.rounds(inputs, samples, epochs)


@lru_cache(maxsize=1)
def _learner_network(name: str, samples: int, inputs: int, epochs: int) -> Extended:
    """The last one is kept, to be trained again."""
    learner, rounds = _made(name, samples, inputs, epochs)
    return extend(None, learner, (samples, inputs), (samples, 1), rounds=rounds)


@lru_cache(maxsize=1)
def _perceptron_network(samples: int, inputs: int, epochs: int, bits: int) -> Extended:
    """The last one is kept, to be trained again."""
    shapes, form = ((samples, inputs), (samples, 1)), FixedPoint(bits, bits - 2)
    rule, weights = perceptron_rule(*shapes, form, epochs)
    return extend(MLP((inputs, 1), "sign"), rule, *shapes, data_format=form, weight_format=weights)


def _numbers(X: ArrayLike) -> NDArray[np.float64]:
    try:
        found = np.asarray(X, float)
    except (TypeError, ValueError) as error:
        raise InputError("the samples are not an array of numbers") from error
    if found.ndim != 2 or not found.size or not np.isfinite(found).all():
        raise DataError(f"samples are rows of finite numbers, not an array of shape {found.shape}")
    return found
