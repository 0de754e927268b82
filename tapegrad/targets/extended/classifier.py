"""A classifier in the manner of scikit-learn whose `fit` is gradient descent on an extended network."""

from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import DataError, InputError
from tapegrad.targets.extended.formats import FixedPoint
from tapegrad.targets.extended.net import Extended, Progress, Training, TrainingRun, extend
from tapegrad.targets.extended.primary import MLP
from tapegrad.targets.extended.rosenblatt import perceptron_rule


class PerceptronClassifier:
    """A perceptron for two classes, trained by Rosenblatt's rule, which gradient descent carries out.

        PerceptronClassifier(epochs=10).fit(X, y).score(X_test, y_test)

    Features are scaled to numbers of `bits` bits: the smallest of each in the training samples becomes -2,
    the largest 2 - 2^(2 - bits), and what lies beyond is cut off. On these numbers the weights are, to the
    last bit, those of scikit-learn's `Perceptron(max_iter=epochs, tol=None, shuffle=False)`. The network
    depends on the number of samples and features, never on what they are: to fit again with data of the same
    shape is to train the same network. Labels are -1 and +1, which keeps |y|^2 away from 0.
    """

    classes_: NDArray[Any]
    """Both labels, in order; the network says +1 for the second."""
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    n_features_in_: int
    training_: Training
    run_: TrainingRun

    def __init__(
        self,
        epochs: int = 10,
        bits: int = 8,
        *,
        engine: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.epochs, self.bits, self.engine, self.progress = epochs, bits, engine, progress

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name, as `sklearn.base.clone` and a grid search want them."""
        return {name: getattr(self, name) for name in ("epochs", "bits", "engine", "progress")}

    def set_params(self, **params: Any) -> Self:
        """Sets settings by name."""
        for name, value in params.items():
            if name not in self.get_params():
                raise DataError(
                    f"there is no setting {name!r}", advice=f"Choose {', '.join(self.get_params())}."
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of a classifier for two classes."""
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        two = ClassifierTags(multi_class=False)
        return Tags("classifier", TargetTags(required=True), classifier_tags=two)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Trains the network of this shape until the rule has ended."""
        samples, labels = _numbers(X), np.asarray(y)
        if labels.shape != (len(samples),):
            raise DataError(f"there are {len(samples)} samples but labels of shape {labels.shape}")
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            raise DataError(f"a perceptron tells two classes apart, not {len(self.classes_)}")
        self._least, self._most = samples.min(axis=0), samples.max(axis=0)
        self.n_features_in_ = samples.shape[1]
        x, signs = self.scaled(samples), np.where(labels == self.classes_[1], 1.0, -1.0)
        self.training_ = _network(*samples.shape, self.epochs, self.bits).on(x, signs[:, None])
        self.run_ = self.training_.train(engine=self.engine, progress=self.progress)
        self.coef_, self.intercept_ = self.run_.theta[None, :-1], self.run_.theta[-1:]
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """w . x + b for each sample: positive for the second class."""
        return (self._fitted(X) @ self.coef_.T + self.intercept_).ravel()

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
        return self.scaled(_numbers(X))

    def scaled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Features as numbers of the format."""
        if X.shape[1] != len(self._least):
            raise DataError(f"the samples have {X.shape[1]} features; training had {len(self._least)}")
        spread = np.where(self._most > self._least, self._most - self._least, 1.0)
        units = np.rint((X - self._least) / spread * ((1 << self.bits) - 1))
        return np.clip(units, 0, (1 << self.bits) - 1) * 2.0 ** (2 - self.bits) - 2


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


@lru_cache(maxsize=1)
def _network(samples: int, inputs: int, epochs: int, bits: int) -> Extended:
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
