"""`EmulatedClassifier`: a learner, emulated by SGD, as a classifier of scikit-learn (extra `sklearn`)."""

import os
import warnings
from collections.abc import Callable
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tapegrad.compile import compile
from tapegrad.errors import DataError, InputError
from tapegrad.learners import CircuitLearner, Learner, Samples, parity
from tapegrad.learners.model import as_bits
from tapegrad.targets.emulator.estimator_files import read_estimator, write_estimator
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet

CHUNK = 256
"""Samples between two updates of the progress bar."""


SAVED = ("threshold", "passes", "precision", "random_state", "progress")
"""The settings that a saved classifier keeps as they are."""


class EmulatedClassifier(ClassifierMixin, BaseEstimator):
    """Trains the compiled network of a learner by plain SGD, one sample at a time.

        EmulatedClassifier(tapegrad.learners.parity).fit(X, y).predict(X)

    `learner` is a learner, or a function from the number of features to one. Features are 0 and 1; other
    numbers are only taken with a `threshold`, above which they count as 1: a number, or "mean" for the mean
    of each feature in the first samples. Classes are any two.

    `fit` goes through the samples until the learner has finished, `passes` times at most (the network loses
    about half of the samples, those where its guess is right). `partial_fit` takes one step of SGD for each
    sample. Everything is determined by `random_state`.
    """

    def __init__(
        self,
        learner: Learner | Callable[[int], Learner] = parity,
        *,
        threshold: float | str | None = None,
        passes: int = 20,
        precision: str = "float64",
        random_state: int = 0,
        progress: bool = False,
    ) -> None:
        self.learner = learner
        self.threshold = threshold
        self.passes = passes
        self.precision = precision
        self.random_state = random_state
        self.progress = progress

    classes_: NDArray[Any]
    thresholds_: NDArray[Any] | None
    n_features_in_: int

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Starts afresh and trains until the learner has finished."""
        bits, labels = self._checked(X, y, None, reset=True)
        self._begin()
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

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """One step of SGD for each sample, going on from where the network is. The first call may name both
        classes; else it must show both."""
        first = not hasattr(self, "net_")
        bits, labels = self._checked(X, y, classes, reset=first)
        if first:
            self._begin()
        self._train(bits, labels)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class that the network answers; the first one where it has not finished learning."""
        answers = self.decision_function(X) > 0
        return self.classes_[answers.astype(int)]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """The output of the network: -1 or 1."""
        check_is_fitted(self)
        bits = self._bits(validate_data(self, cast(Any, X), reset=False))
        return self.net_.outputs(self.carry_, bits).astype(np.float64)

    @property
    def finished_(self) -> bool:
        """Whether the learner has learned enough."""
        check_is_fitted(self)
        return self.net_.has_finished(self.carry_)

    @property
    def memory_(self) -> tuple[int, ...]:
        """The learner's memory, read off the weights."""
        check_is_fitted(self)
        return self.net_.decode(self.carry_).memory

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the network as trained so far, the samples seen and the learner's circuit to a folder."""
        check_is_fitted(self)
        thresholds = None if self.thresholds_ is None else self.thresholds_.tolist()
        settings = {name: getattr(self, name) for name in SAVED} | {
            "classes": self.classes_.tolist(),
            "thresholds": thresholds,
            "steps": self.carry_.steps,
        }
        write_estimator(path, self.net_, self.learner_, self.carry_.weights, settings)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The classifier again, ready to go on training."""
        net, learner, weights, settings = read_estimator(path)
        loaded = cls(learner, **{name: settings[name] for name in SAVED})
        loaded.classes_ = np.array(settings["classes"])
        thresholds = settings["thresholds"]
        loaded.thresholds_ = None if thresholds is None else np.array(thresholds, float)
        loaded.n_features_in_ = net.inputs
        loaded.net_, loaded.learner_ = net, learner
        loaded.carry_ = EmulatorCarry(weights, int(settings["steps"]), loaded._no_samples(net.inputs))
        return loaded

    # Training

    def _begin(self) -> None:
        width = self.n_features_in_
        learner = self.learner if isinstance(self.learner, Learner) else self.learner(width)
        if learner.inputs != width:
            raise DataError(
                f"the learner {learner.name!r} takes {learner.inputs} bits, but X has {width} features"
            )
        net = compile(learner, "emulator", precision=self.precision).net
        assert isinstance(net, PracticalNet)
        # The learner's circuit, rather than its functions: that can be saved, copied and sent elsewhere.
        self.learner_, self.net_ = CircuitLearner(learner.circuit, width, learner.first), net
        self.carry_ = EmulatorCarry(net.weights, 0, self._no_samples(width))

    def _train(self, bits: NDArray[np.uint8], labels: NDArray[np.uint8]) -> None:
        for begin in self._chunks(len(bits)):
            x, y = bits[begin : begin + CHUNK], labels[begin : begin + CHUNK]
            seen = self.carry_.steps
            random, guess = self._random_bits(seen, len(x))
            part = EmulatorCarry(self.carry_.weights, 0, Samples(x, y, random, guess))
            trained = self.net_.advance(part, len(x), "fast")
            self.carry_ = EmulatorCarry(trained.weights, seen + len(x), self._no_samples(x.shape[1]))

    def _random_bits(self, seen: int, count: int) -> NDArray[np.uint8]:
        """The two random bits of each sample depend on the seed and on how many came before, so that it does
        not matter in which portions the samples come: one block of the counter-based Philox for each."""
        source = np.random.Philox(key=self.random_state).advance(seen)
        return (np.random.Generator(source).random((count, 4))[:, :2] < 0.5).astype(np.uint8).T

    def _chunks(self, count: int) -> Any:
        starts = range(0, count, CHUNK)
        if not self.progress:
            return starts
        from rich.progress import track

        return track(starts, description="SGD")

    def _no_samples(self, width: int) -> Samples:
        return Samples.drawn(np.zeros((0, width)), np.zeros(0))

    # Data

    def _checked(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None, *, reset: bool
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        X, y = validate_data(self, cast(Any, X), cast(Any, y), reset=reset)
        check_classification_targets(y)
        if reset:
            self.thresholds_ = self._thresholds(np.asarray(X))
        bits = self._bits(X)
        if reset:
            found = np.unique(y if classes is None else np.asarray(classes))
            if len(found) != 2:
                raise DataError(
                    f"Only binary classification is supported: there must be two classes, not {len(found)} "
                    f"class(es)",
                    advice="A network emulates a learner of yes and no.",
                )
            self.classes_ = found
        if not np.isin(y, self.classes_).all():
            raise DataError(f"y holds a label that is neither {self.classes_[0]!r} nor {self.classes_[1]!r}")
        return bits, (y == self.classes_[1]).astype(np.uint8)

    def _thresholds(self, X: NDArray[Any]) -> NDArray[Any] | None:
        if self.threshold is None:
            return None
        if self.threshold == "mean":
            return X.mean(axis=0)
        if isinstance(self.threshold, str):
            raise DataError(f"the threshold is a number or 'mean', not {self.threshold!r}")
        return np.full(X.shape[1], float(self.threshold))

    def _bits(self, X: Any) -> NDArray[np.uint8]:
        if self.thresholds_ is not None:
            return (np.asarray(X) > self.thresholds_).astype(np.uint8)
        try:
            return as_bits(X, "X")
        except InputError as error:
            advice = "Give a threshold, above which a feature counts as 1."
            raise DataError(error.what, where=error.where, advice=advice) from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
