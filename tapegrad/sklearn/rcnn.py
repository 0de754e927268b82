"""The recurrent convolutional network of a grid machine (Goel et al.) as a classifier."""

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from tapegrad._compile import compile
from tapegrad._files import what_is_broken
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.learners.on_grid import GridLearner
from tapegrad.machines.many_heads import ManyHeadMachine
from tapegrad.machines.model import GridMachine
from tapegrad.sklearn.common import CompiledClassifier, Points, read_classifier
from tapegrad.targets.rcnn.encoding import encoding_of
from tapegrad.targets.rcnn.fast import Roller
from tapegrad.targets.rcnn.network import Frame, Rcnn
from tapegrad.targets.rcnn.predicting import predict
from tapegrad.targets.rcnn.training import memorise

AnyLearner = GridLearner[GridMachine | ManyHeadMachine]


def _signs(bits: NDArray[Any]) -> NDArray[np.float64]:
    return np.where(bits, 1.0, -1.0)


class RCNNClassifier(CompiledClassifier):
    """The network of a grid machine that learns: `fit` trains by SGD, `predict` rolls out.

        RCNNClassifier(tapegrad.learners.on_grid.parity()).fit(X, y).predict(X)

    A learner brings its frame; beside a plain machine it is one cell on each side, or what `frame` says.
    `layers` is the L of Definition 5, an upper limit: a machine that needs more is reported.
    """

    SETTINGS = {"frame": list | None, "layers": int, "form": str, "engine": str}  # noqa: RUF012

    def __init__(
        self,
        machine: AnyLearner | GridMachine | ManyHeadMachine | None = None,
        *,
        threshold: float | str | None = None,
        frame: tuple[int, ...] | None = None,
        layers: int = 10_000_000,
        form: str = "practical",
        engine: str = "fast",
    ) -> None:
        self.machine = machine
        self.threshold = threshold
        self.frame = frame
        self.layers = layers
        self.form = form
        self.engine = engine

    def __sklearn_clone__(self) -> "RCNNClassifier":
        """A copy without what was learned; machines are immutable and shared."""
        return RCNNClassifier(**self.get_params(deep=False))

    def fit(self, X: Points, y: ArrayLike) -> Self:
        """Algorithm 1: one SGD step for each sample, and one for the dummy sample."""
        learner = self._learner()
        bits, labels = self._checked(X, y, reset=True)
        learner.check_sizes(*bits.shape)
        self._begin(learner, len(bits))
        *_, last = memorise(self.network_, _signs(bits), _signs(labels), engine=self.engine)
        self.memory_ = last.memory
        return self

    def predict(self, X: Points) -> NDArray[Any]:
        """What the machine answers for each row; `layers_` says how many layers each took."""
        signs = _signs(self._points(X))
        found = predict(self.network_, self.memory_, signs, engine=self.engine, roller=self._roller)
        self.layers_ = found.layers
        return self.classes_[np.where(found.labels > 0, 1, 0)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the network, what it has memorised and the machine."""
        check_is_fitted(self)
        learner = self._learner()
        if not isinstance(learner.machine, GridMachine):
            raise Refused(
                f"{learner.machine.name!r} has many heads, and only machines with one can be saved",
                advice="Save the data and fit again, or take a machine with one head.",
            )
        settings = {name: getattr(self, name) for name in self.SETTINGS} | {
            "frame": None if self.frame is None else list(self.frame),
            "learner": {
                "frame": list(learner.frame),
                "features": learner.features,
                "samples": learner.samples,
            },
        }
        net = compile(learner.machine, "rcnn", form=self.form).net
        self._write(path, net, learner.machine, {"memory": self.memory_}, settings)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The classifier again."""
        folder, settings, machine = read_classifier(path, "rcnn", cls.SETTINGS | {"learner": dict})
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

    def _learner(self) -> AnyLearner:
        if self.machine is None:
            raise InputError("the classifier has no machine", advice="Give one, e.g. parity().")
        return self.machine if isinstance(self.machine, GridLearner) else GridLearner(self.machine)

    def _begin(self, learner: AnyLearner, samples: int) -> None:
        frame = learner.frame if self.frame is None else Frame(*self.frame)
        self.network_ = Rcnn.of(
            learner.machine,
            samples,
            self.n_features_in_,
            self.layers,
            encoding=encoding_of(self.form),
            frame=frame,
        )
        self._roller = Roller(self.network_.filter, self.network_.encoding)
