"""A classifier in the manner of scikit-learn whose `fit` is gradient descent on an extended network."""

from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import DataError, InputError
from tapegrad.targets.extended.formats import FixedPoint
from tapegrad.targets.extended.net import Extended, Progress, Training, TrainingRun, extend
from tapegrad.targets.extended.primary import perceptron
from tapegrad.targets.extended.rosenblatt import perceptron_rule


class PerceptronClassifier:
    """A perceptron for two classes, trained by Rosenblatt's rule, which gradient descent carries out.

        PerceptronClassifier(epochs=10).fit(X, y).score(X_test, y_test)

    Features are scaled to numbers of `bits` bits: the smallest of each in the training samples becomes -2,
    the largest 2 - 2^(2 - bits), and what lies beyond is cut off. The network depends on the number of
    samples and features, never on what they are: to fit again with data of the same shape is to train the
    same network.
    """

    classes_: NDArray[Any]
    """Both labels, in order; the network says 1 for the second."""
    coef_: NDArray[np.float64]
    intercept_: float
    training_: Training
    run_: TrainingRun

    def __init__(
        self, epochs: int = 10, bits: int = 8, *, engine: str = "fast", progress: Progress | None = None
    ) -> None:
        self.epochs, self.bits, self.engine, self.progress = epochs, bits, engine, progress

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Trains the network of this shape until the rule has ended."""
        samples, labels = _numbers(X), np.asarray(y)
        if labels.shape != (len(samples),):
            raise DataError(f"there are {len(samples)} samples but labels of shape {labels.shape}")
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            raise DataError(f"a perceptron tells two classes apart, not {len(self.classes_)}")
        self._least, self._most = samples.min(axis=0), samples.max(axis=0)
        x, ones = self.scaled(samples), (labels == self.classes_[1]).astype(float)
        self.training_ = _network(*samples.shape, self.epochs, self.bits).on(x, ones[:, None])
        self.run_ = self.training_.train(engine=self.engine, progress=self.progress)
        self.coef_, self.intercept_ = self.run_.theta[:-1], float(self.run_.theta[-1])
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each sample: the output of the extended network, with the weights of training."""
        outputs = self.training_.extended.predict(self.run_, self.scaled(_numbers(X)))
        return self.classes_[outputs.ravel().astype(int)]

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """The part of the samples that is classified right."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def scaled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Features as numbers of the format."""
        if X.shape[1] != len(self._least):
            raise DataError(f"the samples have {X.shape[1]} features; training had {len(self._least)}")
        spread = np.where(self._most > self._least, self._most - self._least, 1.0)
        units = np.rint((X - self._least) / spread * ((1 << self.bits) - 1))
        return np.clip(units, 0, (1 << self.bits) - 1) * 2.0 ** (2 - self.bits) - 2


@lru_cache(maxsize=1)
def _network(samples: int, inputs: int, epochs: int, bits: int) -> Extended:
    """The last one is kept, to be trained again."""
    shapes, form = ((samples, inputs), (samples, 1)), FixedPoint(bits, bits - 2)
    rule, weights = perceptron_rule(*shapes, form, epochs)
    return extend(perceptron(inputs), rule, *shapes, data_format=form, weight_format=weights)


def _numbers(X: ArrayLike) -> NDArray[np.float64]:
    try:
        found = np.asarray(X, float)
    except (TypeError, ValueError) as error:
        raise InputError("the samples are not an array of numbers") from error
    if found.ndim != 2 or not found.size or not np.isfinite(found).all():
        raise DataError(f"samples are rows of finite numbers, not an array of shape {found.shape}")
    return found
