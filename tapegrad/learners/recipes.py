"""Recipes for learners: their parameters, before it is known how many features and samples there are.

A recipe is a dataclass whose fields are the parameters. It has `get_params` and `set_params` as scikit-learn
has them, so that `GridSearchCV` and `clone` take it as part of a classifier: `learner__depth` is the `depth`
of the recipe that is the classifier's `learner`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import DataError, Refused, SourceError
from tapegrad.learners.asked import AskedLearner
from tapegrad.learners.bayes import FRACTION, naive_bayes
from tapegrad.learners.linear import perceptron, winnow
from tapegrad.learners.neighbours import nearest
from tapegrad.learners.tree import decision_stump, decision_tree

MOST_GATES = 5_000_000
"""Of a circuit: tracing and compiling it takes about a minute and 4 GB."""

Words = NDArray[np.int64]
"""The scores of points, one row for each."""


@dataclass
class Recipe(ABC):
    """Makes a learner for data of a given size, and says what its scores mean."""

    several_classes: ClassVar[bool] = False
    """Whether one learner tells more than two classes apart."""

    samples: int | None = None
    """Samples to learn from; None for as many as `fit` is given."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Sets parameters by name."""
        for name, value in params.items():
            if name not in self.get_params():
                raise DataError(
                    f"{type(self).__name__} has no parameter {name!r}",
                    advice=f"It has {', '.join(self.get_params())}.",
                )
            setattr(self, name, value)
        return self

    def learner(self, features: int, samples: int, classes: int = 2) -> AskedLearner:
        """The learner for data of this size; refused where it would be far too large."""
        self._check()
        samples = samples if self.samples is None else self.samples
        gates = self.gates(features, samples, classes)
        if gates > MOST_GATES:
            raise Refused(
                f"{type(self).__name__} for {samples:,} samples of {features:,} features takes about "
                f"{gates:,.0f} gates, more than {MOST_GATES:,}",
                advice="Give fewer samples or features.",
            )
        try:
            return self.build(features, samples, classes)
        except SourceError as error:  # a parameter that does not fit the data
            raise DataError(error.what, advice=error.advice) from error

    def _check(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0
            fits = (
                whole or (field.type is float and isinstance(value, float)) or value is field.default is None
            )
            if not fits:
                wanted = "number" if field.type is float else "whole number"
                raise DataError(
                    f"{field.name} of {type(self).__name__} must be a {wanted} of at least 0, not {value!r}"
                )

    @abstractmethod
    def build(self, features: int, samples: int, classes: int) -> AskedLearner:
        """The learner, with scores."""

    @abstractmethod
    def gates(self, features: int, samples: int, classes: int) -> float:
        """About how many gates it has."""

    def decision(self, scores: Words) -> NDArray[np.float64]:
        """Above 0 where the answer is 1, for two classes; else a column for each class, the largest for the
        answer."""
        likely = self.probabilities(scores)
        assert likely is not None, "a recipe without probabilities says what its decision is"
        return likely[:, 1] - 0.5 if likely.shape[1] == 2 else likely

    def probabilities(self, scores: Words) -> NDArray[np.float64] | None:
        """A column for each class; None where the scores are not probabilities."""
        return None

    @property
    def has_probabilities(self) -> bool:
        """Whether its scores are probabilities."""
        return type(self).probabilities is not Recipe.probabilities


@dataclass
class DecisionTree(Recipe):
    """CART with Gini impurity to a fixed depth; see `decision_tree`. The probability of a class is its part
    of the leaf's samples."""

    depth: int = 2

    def build(self, features: int, samples: int, classes: int) -> AskedLearner:
        return decision_tree(features, samples, self.depth, scores=True)

    def gates(self, features: int, samples: int, classes: int) -> float:
        width = samples.bit_length()
        return 2.0**self.depth * features * (10 * width + 8) + 160 * width**2

    def probabilities(self, scores: Words) -> NDArray[np.float64]:
        size, positive = scores.T
        part = np.where(size > 0, positive / np.maximum(size, 1), 0.5)
        return np.column_stack([1 - part, part])


@dataclass
class DecisionStump(Recipe):
    """A tree with one question; see `decision_stump`."""

    def build(self, features: int, samples: int, classes: int) -> AskedLearner:
        return decision_stump(features, samples, scores=True)

    def gates(self, features: int, samples: int, classes: int) -> float:
        return DecisionTree(depth=1).gates(features, samples, classes)

    def probabilities(self, scores: Words) -> NDArray[np.float64]:
        return DecisionTree().probabilities(scores)


@dataclass
class NaiveBayes(Recipe):
    """Counts and logarithms in fixed point; see `naive_bayes`."""

    several_classes: ClassVar[bool] = True

    alpha: float = 1.0
    fraction: int = FRACTION

    def build(self, features: int, samples: int, classes: int) -> AskedLearner:
        return naive_bayes(
            features, samples, self.alpha, fraction=self.fraction, classes=classes, scores=True
        )

    def gates(self, features: int, samples: int, classes: int) -> float:
        return 3.6 * classes * features * (samples + 60)

    def decision(self, scores: Words) -> NDArray[np.float64]:
        logarithms = scores * (np.log(2) * 2.0**-self.fraction)
        return logarithms[:, 1] - logarithms[:, 0] if scores.shape[1] == 2 else logarithms

    def probabilities(self, scores: Words) -> NDArray[np.float64]:
        odds = np.exp2((scores - scores.max(axis=1, keepdims=True)) * 2.0**-self.fraction)
        return odds / odds.sum(axis=1, keepdims=True)


@dataclass
class NearestNeighbours(Recipe):
    """The vote of the nearest samples, which are all remembered; see `nearest`. The probability of a class is
    its part of the votes."""

    several_classes: ClassVar[bool] = True

    neighbours: int = 5

    def build(self, features: int, samples: int, classes: int) -> AskedLearner:
        return nearest(features, samples, self.neighbours, classes=classes, scores=True)

    def gates(self, features: int, samples: int, classes: int) -> float:
        return samples * (9.0 * features + 8 * samples.bit_length() + 6 * classes)

    def probabilities(self, scores: Words) -> NDArray[np.float64]:
        votes = scores.sum(axis=1, keepdims=True)
        return np.where(votes > 0, scores / np.maximum(votes, 1), 1 / scores.shape[1])


@dataclass
class Perceptron(Recipe):
    """Integer weights, corrected at mistakes, in so many passes over the samples; see `perceptron`."""

    passes: int = 5

    def build(self, features: int, samples: int, classes: int) -> AskedLearner:
        return perceptron(features, samples * self.passes, scores=True)

    def gates(self, features: int, samples: int, classes: int) -> float:
        return 14.0 * features * (samples * self.passes).bit_length()

    def decision(self, scores: Words) -> NDArray[np.float64]:
        return scores[:, 0].astype(np.float64)


@dataclass
class Winnow(Recipe):
    """Weights that are powers of two, doubled and halved at mistakes, in so many passes over the samples; see
    `winnow`."""

    passes: int = 5
    floor: int = 8

    def build(self, features: int, samples: int, classes: int) -> AskedLearner:
        return winnow(features, samples * self.passes, self.floor, scores=True)

    def gates(self, features: int, samples: int, classes: int) -> float:
        return 25.0 * features * (self.floor + features.bit_length())

    def decision(self, scores: Words) -> NDArray[np.float64]:
        return scores[:, 0].astype(np.float64) * 2.0**-self.floor


RECIPES: dict[str, type[Recipe]] = {
    recipe.__name__: recipe
    for recipe in (DecisionStump, DecisionTree, NaiveBayes, NearestNeighbours, Perceptron, Winnow)
}
"""By name, as saved classifiers have them."""
