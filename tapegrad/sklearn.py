"""Networks that learn, as classifiers of scikit-learn (extra `sklearn`).

`EmulatedClassifier` emulates any learner by plain SGD (Abbe, Sandon); `RCNNClassifier` is the recurrent
convolutional network of a grid machine (Goel et al.). Both keep to one convention:

- **Features** are bits: 0 and 1, or -1 and +1. Other numbers are taken with a `threshold`, above which they
  count as 1: a number, or "mean" for the mean of each feature in the first samples.
- **Labels** are any two values; `classes_` has them in order, the larger one standing for 1. Where only one
  occurs it must tell which it is (0, 1 or -1).
- **Files**: `save` writes a folder of JSON and arrays, which `tapegrad check` checks; `load` opens it again.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tapegrad._compile import compile
from tapegrad._files import read_net, what_is_broken, write_net
from tapegrad._sources import source_from_json, source_to_json
from tapegrad.errors import BrokenNet, DataError, InputError
from tapegrad.learners import CircuitLearner, Learner, Samples, parity
from tapegrad.learners.on_grid import GridLearner
from tapegrad.machines.model import GridMachine
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet
from tapegrad.targets.net import Net
from tapegrad.targets.rcnn.fast import Roller
from tapegrad.targets.rcnn.network import Frame, Rcnn
from tapegrad.targets.rcnn.predicting import predict
from tapegrad.targets.rcnn.training import memorise
from tapegrad_check.folder import Folder

CHUNK = 256
"""Samples between two updates of the progress bar."""

_SOURCE = "source."
"""Prefix of the arrays that belong to the learner or machine."""


class BinaryClassifier(ClassifierMixin, BaseEstimator):
    """What both have in common: data in, and files."""

    threshold: float | str | None
    classes_: NDArray[Any]
    thresholds_: NDArray[np.float64] | None
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    # Data

    def _checked(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool, classes: ArrayLike | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Samples and labels as bits. With `reset`, they decide what the features and classes are."""
        X, y = validate_data(self, cast(Any, X), cast(Any, y), reset=reset)
        check_classification_targets(y)
        X, y = np.asarray(X), np.asarray(y)
        if reset:
            self.thresholds_ = self._thresholds(X)
        bits = self._bits(X)
        if reset:
            self.classes_ = _two_classes(y if classes is None else np.asarray(classes), (X == 0).any())
        if not np.isin(y, self.classes_).all():
            raise DataError(f"y holds a label that is neither {self.classes_[0]!r} nor {self.classes_[1]!r}")
        return bits, (y == self.classes_[1]).astype(np.uint8)

    def _points(self, X: ArrayLike) -> NDArray[np.uint8]:
        """Points to be classified, as bits."""
        check_is_fitted(self)
        return self._bits(np.asarray(validate_data(self, cast(Any, X), reset=False)))

    def _thresholds(self, X: NDArray[Any]) -> NDArray[np.float64] | None:
        if self.threshold is None:
            return None
        if self.threshold == "mean":
            return X.mean(axis=0)
        if isinstance(self.threshold, str):
            raise DataError(f"the threshold is a number or 'mean', not {self.threshold!r}")
        return np.full(X.shape[1], float(self.threshold))

    def _bits(self, X: NDArray[Any]) -> NDArray[np.uint8]:
        if self.thresholds_ is not None:
            return (self.thresholds_ < X).astype(np.uint8)
        lower = 0 if (X == 0).any() else -1
        good = np.isin(X, (lower, 1))
        if not good.all():
            row, column = np.argwhere(~good)[0]
            coding = "0 or 1" if lower == 0 else "-1 or +1, or 0 or 1"
            raise DataError(
                f"features must be {coding}, not {X[row, column].item()!r}",
                where=f"sample {row + 1}, feature {column + 1}",
                advice="Give a threshold, above which a feature counts as 1.",
            )
        return (X == 1).astype(np.uint8)

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
        arrays = net.arrays() | {_SOURCE + name: array for name, array in source_arrays.items()}
        thresholds = None if self.thresholds_ is None else self.thresholds_.tolist()
        common = {"threshold": self.threshold, "classes": self.classes_.tolist(), "thresholds": thresholds}
        config = {
            "target": net.target,
            "options": {},
            "net": net.config(),
            "source": described,
            "estimator": {**settings, **common},
        }
        write_net(path, config, {**arrays, **trained}, net.certificate())

    def _take_over(self, settings: Mapping[str, Any], features: int) -> None:
        """Classes, thresholds and the number of features from a folder."""
        if len(settings["classes"]) != 2:
            raise BrokenNet("a classifier has two classes")
        thresholds = settings["thresholds"]
        self.classes_ = np.array(settings["classes"])
        self.thresholds_ = None if thresholds is None else np.array(thresholds, float)
        self.n_features_in_ = features


def _two_classes(y: NDArray[Any], zero_one: bool) -> NDArray[Any]:
    """The labels of 0 and 1 in order. If only one occurs it must tell which it is; the other is then possible
    as an answer too. Beside a 1 alone it is called as the lower value of the features is."""
    found = np.unique(y)
    if len(found) == 1 and y.dtype.kind in "biuf":
        other = {-1: 1, 0: 1, 1: 0 if zero_one or y.dtype.kind in "bu" else -1}.get(found[0].item())
        if other is not None:
            found = np.sort(np.append(found, np.array(other, dtype=y.dtype)))
    if len(found) != 2:
        raise DataError(
            f"Only binary classification is supported: there must be two classes, not {len(found)} class(es)",
            advice="Labels of -1 and +1, or 0 and 1, may all be the same." * (len(found) < 2),
        )
    return found


def _read(
    path: str | os.PathLike[str], target: str, kinds: Mapping[str, Any]
) -> tuple[Folder, dict[str, Any], Any]:
    """The folder of a classifier, its settings and its source; `BrokenNet` says what is wrong with it."""
    folder = read_net(path)
    settings: Any = folder.config.get("estimator")
    kinds = {"threshold": float | int | str | None, "thresholds": list | None, "classes": list, **kinds}
    fits = isinstance(settings, dict) and all(isinstance(settings.get(n), kind) for n, kind in kinds.items())
    if not fits or folder.config["target"] != target:
        raise BrokenNet("this is no saved classifier", where=str(path), advice="Load it with tapegrad.load.")
    own = {n.removeprefix(_SOURCE): a for n, a in folder.arrays.items() if n.startswith(_SOURCE)}
    return folder, settings, source_from_json(folder.config["source"], own)


class EmulatedClassifier(BinaryClassifier):
    """Trains the compiled network of a learner by plain SGD, one sample at a time.

        EmulatedClassifier(tapegrad.learners.parity).fit(X, y).predict(X)

    `learner` is a learner, or a function from the number of features to one.

    `fit` goes through the samples until the learner has finished, `passes` times at most (the network loses
    about half of the samples, those where its guess is right). `partial_fit` takes one step of SGD for each
    sample. Everything is determined by `random_state`.
    """

    SETTINGS = {"passes": int, "precision": str, "random_state": int, "progress": bool}  # noqa: RUF012

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

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Starts afresh and trains until the learner has finished."""
        bits, labels = self._checked(X, y, reset=True)
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
        bits, labels = self._checked(X, y, reset=first, classes=classes)
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
        bits = self._points(X)
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the network as trained so far, how many samples it has seen, and the learner's circuit."""
        check_is_fitted(self)
        settings = {name: getattr(self, name) for name in self.SETTINGS} | {"steps": self.carry_.steps}
        self._write(path, self.net_, self.learner_, {"trained": self.carry_.weights}, settings)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The classifier again, ready to go on training."""
        folder, settings, learner = _read(path, "emulator", cls.SETTINGS | {"steps": int})
        with what_is_broken(path):
            if not isinstance(learner, Learner):
                raise BrokenNet("the saved source is no learner")
            net = PracticalNet.from_saved(folder.config["net"], folder.arrays)
            trained = folder.arrays["trained"]
            if trained.shape != net.weights.shape:
                raise BrokenNet("the weights do not fit the network")
            loaded = cls(
                learner, threshold=settings["threshold"], **{name: settings[name] for name in cls.SETTINGS}
            )
            loaded._take_over(settings, net.inputs)
            loaded.net_, loaded.learner_ = net, learner
            loaded.carry_ = EmulatorCarry(trained, settings["steps"], _no_samples(net.inputs))
        return loaded

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
        self.carry_ = EmulatorCarry(net.weights, 0, _no_samples(width))

    def _train(self, bits: NDArray[np.uint8], labels: NDArray[np.uint8]) -> None:
        for begin in self._chunks(len(bits)):
            x, y = bits[begin : begin + CHUNK], labels[begin : begin + CHUNK]
            seen = self.carry_.steps
            random, guess = self._random_bits(seen, len(x))
            part = EmulatorCarry(self.carry_.weights, 0, Samples(x, y, random, guess))
            trained = self.net_.advance(part, len(x), "fast")
            self.carry_ = EmulatorCarry(trained.weights, seen + len(x), _no_samples(x.shape[1]))

    def _random_bits(self, seen: int, count: int) -> NDArray[np.uint8]:
        """The two random bits of each sample depend on the seed and on how many came before, so that it does
        not matter in which portions the samples come: one block of the counter-based Philox for each."""
        source = np.random.Philox(key=self.random_state).advance(seen)
        return (np.random.Generator(source).random((count, 4))[:, :2] < 0.5).astype(np.uint8).T

    def _chunks(self, count: int) -> Iterable[int]:
        starts = range(0, count, CHUNK)
        if not self.progress:
            return starts
        from rich.progress import track  # only where a bar is asked for

        return track(starts, description="SGD")


def _no_samples(width: int) -> Samples:
    return Samples.drawn(np.zeros((0, width)), np.zeros(0))


def _signs(bits: NDArray[np.uint8]) -> NDArray[np.float64]:
    return np.where(bits, 1.0, -1.0)


class RCNNClassifier(BinaryClassifier):
    """The network of a grid machine that learns: `fit` trains by SGD, `predict` rolls out.

        RCNNClassifier(tapegrad.learners.on_grid.parity()).fit(X, y).predict(X)

    A learner brings its frame; beside a plain machine it is one cell on each side, or what `frame` says.
    `layers` is the L of Definition 5, an upper limit: a machine that needs more is reported.
    """

    SETTINGS = {"frame": list | None, "layers": int, "encoding": str, "engine": str}  # noqa: RUF012

    def __init__(
        self,
        machine: GridLearner | GridMachine | None = None,
        *,
        threshold: float | str | None = None,
        frame: tuple[int, ...] | None = None,
        layers: int = 10_000_000,
        encoding: str = "channels",
        engine: str = "fast",
    ) -> None:
        self.machine = machine
        self.threshold = threshold
        self.frame = frame
        self.layers = layers
        self.encoding = encoding
        self.engine = engine

    def __sklearn_clone__(self) -> "RCNNClassifier":
        """A copy without what was learned; machines are immutable and shared."""
        return RCNNClassifier(**self.get_params(deep=False))

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Algorithm 1: one SGD step for each sample, and one for the dummy sample."""
        learner = self._learner()
        bits, labels = self._checked(X, y, reset=True)
        learner.check_sizes(*bits.shape)
        self._begin(learner, len(bits))
        *_, last = memorise(self.network_, _signs(bits), _signs(labels), engine=self.engine)
        self.memory_ = last.memory
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """What the machine answers for each row; `layers_` says how many layers each took."""
        signs = _signs(self._points(X))
        found = predict(self.network_, self.memory_, signs, engine=self.engine, roller=self._roller)
        self.layers_ = found.layers
        return self.classes_[np.where(found.labels > 0, 1, 0)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the network, what it has memorised and the machine."""
        check_is_fitted(self)
        learner = self._learner()
        settings = {name: getattr(self, name) for name in self.SETTINGS} | {
            "frame": None if self.frame is None else list(self.frame),
            "learner": {
                "frame": list(learner.frame),
                "features": learner.features,
                "samples": learner.samples,
            },
        }
        net = compile(learner.machine, "rcnn", encoding=self.encoding).net
        self._write(path, net, learner.machine, {"memory": self.memory_}, settings)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The classifier again."""
        folder, settings, machine = _read(path, "rcnn", cls.SETTINGS | {"learner": dict})
        with what_is_broken(path):
            if not isinstance(machine, GridMachine):
                raise BrokenNet("the saved source is no grid machine")
            made_for = settings["learner"]
            learner = GridLearner(
                machine, Frame(*made_for["frame"]), made_for["features"], made_for["samples"]
            )
            own = {name: settings[name] for name in cls.SETTINGS}
            own["frame"] = None if own["frame"] is None else tuple(own["frame"])
            loaded = cls(learner, threshold=settings["threshold"], **own)
            loaded.memory_ = folder.arrays["memory"]
            rows, columns = loaded.memory_.shape
            loaded._take_over(settings, columns - 1)
            loaded._begin(learner, rows - 1)
        return loaded

    def _learner(self) -> GridLearner:
        if self.machine is None:
            raise InputError("the classifier has no machine", advice="Give one, e.g. parity().")
        return self.machine if isinstance(self.machine, GridLearner) else GridLearner(self.machine)

    def _begin(self, learner: GridLearner, samples: int) -> None:
        frame = learner.frame if self.frame is None else Frame(*self.frame)
        self.network_ = Rcnn.of(
            learner.machine, samples, self.n_features_in_, self.layers, encoding=self.encoding, frame=frame
        )
        self._roller = Roller(self.network_.filter, self.network_.encoding)
