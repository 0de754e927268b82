"""A learning machine as a scikit-learn classifier (extra `sklearn`): fit trains by SGD, predict rolls out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from tapegrad.errors import InputError
from tapegrad.machines.grid import GridMachine
from tapegrad.nets.rcnn.fast import Roller
from tapegrad.nets.rcnn.network import Frame, Rcnn
from tapegrad.nets.rcnn.predicting import predict
from tapegrad.nets.rcnn.training import memorise


class RCNNClassifier(ClassifierMixin, BaseEstimator):
    """The network of a grid machine that learns. Features are -1 and +1, or 0 and 1 with `zero_one`;
    labels are any two values, the smaller one standing for -1.

    `layers` is the L of Definition 5, an upper limit: a machine that needs more is reported.
    """

    def __init__(
        self,
        machine: GridMachine | None = None,
        *,
        frame: tuple[int, ...] = (1, 1, 1, 1),
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
            raise InputError("the classifier has no machine", advice="Give one, e.g. parity().machine.")
        X, y = validate_data(self, X, y)
        self.classes_ = unique_labels(y)
        if len(self.classes_) > 2:
            raise InputError(f"{len(self.classes_)} classes, and the network tells two apart")
        signs = np.where(y == self.classes_[-1], 1.0, -1.0) if len(self.classes_) == 2 else np.ones(len(y))
        frame = Frame(*self.frame)
        layers = max(self.layers, len(X) + 2)
        self.network_ = Rcnn.of(self.machine, len(X), X.shape[1], layers, encoding=self.encoding, frame=frame)
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
        return self.classes_[np.where(found.labels > 0, len(self.classes_) - 1, 0)]

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
