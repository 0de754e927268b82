"""What both classifiers have in common: data in, and files."""

import os
from collections.abc import Mapping
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, sparray, spmatrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tapegrad._files import read_net, write_net
from tapegrad._sources import source_from_json, source_to_json
from tapegrad.errors import BrokenNet, DataError
from tapegrad.learners import Learner
from tapegrad.learners.data import bits_of, classes_of, numbers_of, thresholds_of
from tapegrad.machines.model import GridMachine
from tapegrad.networks.saving import to_json
from tapegrad.targets.net import Net
from tapegrad_check.folder import SOURCE, Folder

Points = ArrayLike | sparray | spmatrix
"""One row for each point."""


class CompiledClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose features are bits."""

    most_classes: ClassVar[int | None] = 2
    """None for any number."""

    threshold: float | str | None
    classes_: NDArray[Any]
    thresholds_: NDArray[np.float64] | None
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = self.most_classes is None
        return tags

    # Data

    def _checked(
        self,
        X: Points,
        y: ArrayLike,
        *,
        reset: bool,
        classes: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Samples as bits and labels as numbers of classes, each as often as its weight says. With `reset`,
        they decide what the features and classes are."""
        X, y = validate_data(self, cast(Any, X), cast(Any, y), reset=reset, accept_sparse="csr")
        check_classification_targets(y)
        X, y = _dense(X), np.asarray(y)
        if weights is not None:
            times = _times(weights, len(y))
            X, y = np.repeat(X, times, axis=0), np.repeat(y, times)
        if reset:
            self.thresholds_ = thresholds_of(X, self.threshold)
        bits = bits_of(X, self.thresholds_)
        if reset:
            named = y if classes is None else np.asarray(classes)
            self.classes_ = classes_of(named, bool((X == 0).any()), self.most_classes)
        return bits, numbers_of(y, self.classes_)

    def _points(self, X: Points) -> NDArray[np.uint8]:
        """Points to be classified, as bits."""
        check_is_fitted(self)
        X = validate_data(self, cast(Any, X), reset=False, accept_sparse="csr")
        return bits_of(_dense(X), self.thresholds_)

    # Files

    def _write(
        self,
        path: str | os.PathLike[str],
        net: Net,
        source: Learner | GridMachine,
        trained: Mapping[str, NDArray[Any]],
        settings: Mapping[str, Any],
    ) -> None:
        """The folder of a net, with what was trained among the arrays and the settings in `config.json`."""
        described, source_arrays = source_to_json(source)
        arrays = net.all_arrays() | {SOURCE + name: array for name, array in source_arrays.items()}
        thresholds = None if self.thresholds_ is None else self.thresholds_.tolist()
        common = {"threshold": self.threshold, "classes": self.classes_.tolist(), "thresholds": thresholds}
        config = {
            "target": net.target,
            "options": {},
            "net": net.config(),
            "source": described,
            "estimator": {**settings, **common},
        }
        network = to_json(net.network) if net.saves_network else None
        write_net(path, config, {**arrays, **trained}, net.certificate(), network)

    def _take_over(self, settings: Mapping[str, Any], features: int) -> None:
        """Classes, thresholds and the number of features from a folder."""
        count, most = len(settings["classes"]), self.most_classes
        if count < 2 or (most is not None and count > most):
            raise BrokenNet(f"{count} classes are too few or too many for this classifier")
        thresholds = settings["thresholds"]
        self.classes_ = np.array(settings["classes"])
        self.thresholds_ = None if thresholds is None else np.array(thresholds, float)
        self.n_features_in_ = features


def _dense(X: Any) -> NDArray[Any]:
    """A network has a weight for every bit, so that zeros are stored as well."""
    return X.toarray() if issparse(X) else np.asarray(X)


def _times(weights: ArrayLike, samples: int) -> NDArray[np.int64]:
    """How often each sample is shown."""
    times = np.asarray(weights)
    times = np.full(samples, times) if times.ndim == 0 else times
    if times.shape != (samples,):
        raise DataError(f"sample_weight.shape == {times.shape}, expected {(samples,)}")
    if times.dtype.kind not in "biuf" or not (np.isfinite(times) & (times >= 0) & (times % 1 == 0)).all():
        raise DataError(
            "sample_weight must consist of whole numbers of at least 0: a sample of weight 3 is shown three "
            "times, and there is no showing it half a time",
            advice="Scale the weights and round them.",
        )
    if not times.any():
        raise DataError("all sample weights are zero")
    return times.astype(np.int64)


def read_classifier(
    path: str | os.PathLike[str], target: str, kinds: Mapping[str, Any]
) -> tuple[Folder, dict[str, Any], Any]:
    """The folder of a classifier, its settings and its source; `BrokenNet` says what is wrong with it."""
    folder = read_net(path)
    settings: Any = folder.config.get("estimator")
    kinds = {"threshold": float | int | str | None, "thresholds": list | None, "classes": list, **kinds}
    fits = isinstance(settings, dict) and all(isinstance(settings.get(n), kind) for n, kind in kinds.items())
    if not fits or folder.config["target"] != target:
        raise BrokenNet("this is no saved classifier", where=str(path), advice="Load it with tapegrad.load.")
    own = {n.removeprefix(SOURCE): a for n, a in folder.arrays.items() if n.startswith(SOURCE)}
    return folder, settings, source_from_json(folder.config["source"], own)
