"""Ready examples: three ways of finding weights, each carried out by gradient descent alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.arrays import where
from tapegrad.circuits.types import Bit, Int
from tapegrad.errors import InputError
from tapegrad.targets.extended.extend import Extended, Progress, TrainingRun, extend
from tapegrad.targets.extended.formats import FixedPoint
from tapegrad.targets.extended.primaries import MLP, linear, perceptron
from tapegrad.targets.extended.threshold_search import threshold_search

TWO_BITS, THREE_BITS = FixedPoint(2), FixedPoint(3)
CORNERS = [[0, 0], [0, 1], [1, 0], [1, 1]]


@dataclass(frozen=True)
class TrainingExample:
    """An extended network that can be built and trained."""

    name: str
    summary: str
    build: Callable[[], Extended]

    def run(self, progress: Progress | None = None, engine: str = "fast") -> TrainingRun:
        """Builds and trains it."""
        return self.build().train(engine=engine, progress=progress)


def _xor() -> Extended:
    labels = [[0], [1], [1], [0]]
    return extend(MLP((2, 2, 1), "step"), threshold_search(), CORNERS, labels, data_format=TWO_BITS)


def perceptron_rule(x: Any, y: Any) -> list[Any]:
    """Three epochs of Rosenblatt's rule, for features and labels that are 0 or 1: on a mistake, the weights
    of the features that are present go up or down by one, and so does the bias."""
    weight = Int(THREE_BITS.width)
    w = [weight(0), weight(0), weight(0)]
    for _ in range(3):
        for (a, b), (label,) in zip(x, y, strict=True):
            present = (a > 0, b > 0, Bit(1))
            fires = (
                sum((where(here, w_i, weight(0)) for here, w_i in zip(present, w, strict=True)), weight(0))
                >= 0
            )
            step = where(fires == (label > 0), weight(0), where(fires, weight(-1), weight(1)))
            w = [where(here, w_i + step, w_i) for here, w_i in zip(present, w, strict=True)]
    return w


def _perceptron() -> Extended:
    labels = [[0], [1], [1], [1]]
    return extend(
        perceptron(2), perceptron_rule, CORNERS, labels, data_format=TWO_BITS, weight_format=THREE_BITS
    )


LINE_X: NDArray[np.float64] = np.array([[-1.0], [0.0], [1.0]])
LINE_Y: NDArray[np.float64] = np.array([[-2.0], [-1.0], [1.0]])
GRID = (-1, 0, 1)


def least_squares_on_grid(x: Any, y: Any) -> list[Any]:
    """The line w x + b with w and b on a grid that has the least sum of squares. Expanded, the sum is
    w^2 Sxx + 2 w b Sx - 2 w Sxy - 2 b Sy + n b^2 (and Syy, the same for all), so four sums of the data and
    a few additions for each point of the grid will do. For three samples from -2 to 1 it is at most 63."""
    wide, weight = Int(7), Int(TWO_BITS.width)
    pairs = [(a.to(wide), b.to(wide)) for (a,), (b,) in zip(x, y, strict=True)]
    s_x, s_y = sum((a for a, _ in pairs), wide(0)), sum((b for _, b in pairs), wide(0))
    s_xx, s_xy = sum((a * a for a, _ in pairs), wide(0)), sum((a * b for a, b in pairs), wide(0))
    best, theta = None, [weight(0), weight(0)]
    for w in GRID:
        for b in GRID:
            error = s_xx * (w * w) + s_x * (2 * w * b) - s_xy * (2 * w) - s_y * (2 * b) + len(pairs) * b * b
            better = True if best is None else error < best
            best = where(better, error, best)
            theta = where(better, [weight(w), weight(b)], theta)
    return theta


def _line() -> Extended:
    return extend(linear(1), least_squares_on_grid, LINE_X, LINE_Y, data_format=TWO_BITS)


EXAMPLES = {
    example.name: example
    for example in (
        TrainingExample("xor", "exhaustive search for the best 2-2-1 threshold network on XOR", _xor),
        TrainingExample("perceptron", "three epochs of the perceptron rule on OR", _perceptron),
        TrainingExample("line", "least squares for a line, weights on a grid", _line),
    )
}


def example_named(name: str) -> TrainingExample:
    """The ready example of this name."""
    if name not in EXAMPLES:
        raise InputError(
            f"there is no training example {name!r}", advice=f"Choose one of {', '.join(EXAMPLES)}."
        )
    return EXAMPLES[name]
