"""A learning machine as a scikit-learn classifier (extra `sklearn`): fit trains by SGD, predict rolls out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from tapegrad.errors import DataError, InputError
from tapegrad.learners.on_grid import GridLearner
from tapegrad.machines.grid import GridMachine
from tapegrad.targets.rcnn.fast import Roller
from tapegrad.targets.rcnn.network import Frame, Rcnn
from tapegrad.targets.rcnn.predicting import predict
from tapegrad.targets.rcnn.training import memorise


class RCNNClassifier(ClassifierMixin, BaseEstimator):
    """The network of a grid machine that learns. Features are -1 and +1, or 0 and 1 with `zero_one`;
    labels are any two values, the smaller one standing for -1.

        RCNNClassifier(tapegrad.learners.on_grid()).fit(X, y).predict(X)

    A learner brings its frame; beside a plain machine it is one cell on each side, or what `frame` says.
    `layers` is the L of Definition 5, an upper limit: a machine that needs more is reported.
    """

    def __init__(
        self,
        machine: GridLearner | GridMachine | None = None,
        *,
        frame: tuple[int, ...] | None = None,
        layers: int = 10_000_000,
        encoding: str = "channels",
        engine: str = "fast",
        zero_one: bool = False,
    ) -> None:
        self.machine = machine
        self.frame = frame
        self.layers = layers
        self.encoding = encoding
        self.engine = engine
        self.zero_one = zero_one

    def __sklearn_clone__(self) -> "RCNNClassifier":
        """A copy without what was learned; machines are immutable and shared."""
        return RCNNClassifier(**self.get_params(deep=False))

    def fit(self, X: Any, y: Any) -> "RCNNClassifier":
        """Algorithm 1: one SGD step for each sample, and one for the dummy sample."""
        if self.machine is None:
            raise InputError("the classifier has no machine", advice="Give one, e.g. parity().")
        X, y = validate_data(self, X, y)
        learner = self.machine if isinstance(self.machine, GridLearner) else GridLearner(self.machine)
        samples, features = X.shape
        learner.check_sizes(samples, features)
        self.classes_ = self._two_classes(y)
        signs = np.where(y == self.classes_[1], 1.0, -1.0)
        frame = learner.frame if self.frame is None else Frame(*self.frame)
        self.network_ = Rcnn.of(
            learner.machine, samples, features, self.layers, encoding=self.encoding, frame=frame
        )
        *_, last = memorise(self.network_, self._signs(X), signs, engine=self.engine)
        self.memory_ = last.memory
        self._roller = Roller(self.network_.filter, self.network_.encoding)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """What the machine answers for each row; `layers_` says how many layers each took."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        found = predict(self.network_, self.memory_, self._signs(X), engine=self.engine, roller=self._roller)
        self.layers_ = found.layers
        return self.classes_[np.where(found.labels > 0, 1, 0)]

    def _two_classes(self, y: NDArray[Any]) -> NDArray[Any]:
        """The labels of -1 and +1. If only one occurs it must tell which it is; the other is then possible
        as an answer too. Beside a 1 alone it is called as the lower value of the features is."""
        found = unique_labels(y)
        if len(found) == 1 and y.dtype.kind in "biuf":
            other = {-1: 1, 0: 1, 1: 0 if self.zero_one or y.dtype.kind in "bu" else -1}.get(found[0].item())
            if other is not None:
                found = np.sort(np.append(found, np.array(other, dtype=y.dtype)))
        if len(found) != 2:
            raise DataError(
                f"{len(found)} class{'es' * (len(found) > 1)}, and the network tells two apart",
                advice="Labels of -1 and +1, or 0 and 1, may all be the same." * (len(found) < 2),
            )
        return found

    def _signs(self, X: NDArray[Any]) -> NDArray[np.float64]:
        if not self.zero_one:
            return X.astype(np.float64)
        good = np.isin(X, (0, 1))
        if not good.all():
            row, column = np.argwhere(~good)[0]
            raise InputError(
                f"features must be 0 or 1, not {X[row, column].item()!r}",
                where=f"sample {row + 1}, feature {column + 1}",
            )
        return 2.0 * X - 1
