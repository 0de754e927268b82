"""Ready learners by name and width, each with samples of something that it can learn."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tapegrad.errors import InputError
from tapegrad.learners.decision_list import decision_list
from tapegrad.learners.dictator import dictator
from tapegrad.learners.functions import FunctionLearner
from tapegrad.learners.nearest import nearest
from tapegrad.learners.parity import parity
from tapegrad.learners.perceptron import perceptron
from tapegrad.learners.simple import conjunction, majority

Labelling = Callable[[np.ndarray], np.ndarray]

NAME = re.compile(r"learn-([a-z-]+?)(\d+)")
SHOWN_WIDTH, LARGEST = 8, 64


@dataclass(frozen=True)
class ReadyLearner:
    """A learner that comes with the package; `label` is a hidden concept from its class."""

    summary: str
    build: Callable[[int], FunctionLearner]
    label: Labelling


def _every_third(x: np.ndarray) -> np.ndarray:
    return x[:, ::3]


KINDS: Mapping[str, ReadyLearner] = {
    "parity": ReadyLearner(
        "parity of hidden bits, by Gaussian elimination", parity, lambda x: _every_third(x).sum(1) % 2
    ),
    "conjunction": ReadyLearner(
        "AND of hidden bits, by elimination", lambda n: conjunction(n, 32), lambda x: x[:, 0] * x[:, -1]
    ),
    "dictator": ReadyLearner("one hidden bit", lambda n: dictator(n, 8), lambda x: x[:, -1]),
    "majority": ReadyLearner(
        "the more frequent label", lambda n: majority(n, 15), lambda x: x.sum(1) > x.shape[1] // 3
    ),
    "perceptron": ReadyLearner(
        "a threshold of integer weights", lambda n: perceptron(n, 64), lambda x: x[:, 0] | x[:, -1]
    ),
    "decision-list": ReadyLearner(
        "if this bit then that, else ...",
        lambda n: decision_list(n, 64),
        lambda x: np.where(x[:, 0], 1, 1 - x[:, -1]),
    ),
    "nearest": ReadyLearner("the label of the nearest sample", lambda n: nearest(n, 32), lambda x: x[:, 0]),
}


class _Ready(Mapping[str, ReadyLearner]):
    """`learn-parity8`, `learn-conjunction5`, ...: every kind at every width; listing shows width 8."""

    def __getitem__(self, name: str) -> ReadyLearner:
        found = NAME.fullmatch(name)
        if found is None or found[1] not in KINDS or not 1 <= int(found[2]) <= LARGEST:
            raise KeyError(name)
        return KINDS[found[1]]

    def __iter__(self) -> Iterator[str]:
        return (f"learn-{kind}{SHOWN_WIDTH}" for kind in KINDS)

    def __len__(self) -> int:
        return len(KINDS)


READY: Mapping[str, ReadyLearner] = _Ready()


def ready(name: str) -> FunctionLearner:
    """The learner of this name."""
    if name not in READY:
        raise InputError(f"there is no ready learner {name!r}", advice=f"Try {', '.join(READY)}.")
    return READY[name].build(_width(name))


def example_samples(name: str, count: int | None = None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random samples, labelled by the hidden concept of this learner; 100 for 8 bits unless told."""
    count = 4 + 12 * _width(name) if count is None else count
    x = np.random.default_rng(seed).integers(0, 2, (count, _width(name)), np.uint8)
    return x, READY[name].label(x).astype(np.uint8)


def _width(name: str) -> int:
    found = NAME.fullmatch(name)
    assert found is not None
    return int(found[2])
