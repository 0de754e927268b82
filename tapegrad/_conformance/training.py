"""A network that is trained: some steps of plain SGD, each value on the way known.

It is a compiled learner (target `emulator`), whose memory is in its weights. The vertices stand in levels;
with all values so far in one vector v, those of the next level are

    clip((w * v[sources]) into, -2, 2)      w: the weights of the edges that lead there, `into`: 0 and 1

and the last vertex is the output. A step takes `rate` times the derivative of (output - label)^2 off every
weight. So a runtime differentiates gathers, products, sums and clips, as in any training.

What must come out is worked out in fractions: values and derivatives exactly, then each new weight rounded
once to the format. Any runtime must agree to the bit, since rate times derivative is a number of the format
(which is made sure of), so that `w - rate * derivative` is the only operation that rounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import compile
from tapegrad._conformance.formats import FORMATS
from tapegrad.errors import BrokenNet
from tapegrad.learners.library import parity
from tapegrad.targets.emulator.loss import sgd_step_by_hand
from tapegrad.targets.emulator.net import PracticalNet, input_rows

BITS = 3
SHOWN = (1, 5, 4, 7, 2, 6, 3, 0)
"""The samples, as numbers whose bits they are; the learner changes its memory at several of them."""
CLIP = 2


@dataclass(frozen=True)
class Level:
    """The edges that lead to one level: where each comes from, and to which vertex of the level."""

    sources: NDArray[np.int64]
    into: NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """Steps of SGD."""

    name: str
    about: str
    format: str
    """The only one that these weights are for."""
    rate: float
    levels: tuple[Level, ...]
    weights: tuple[NDArray[np.float64], ...]
    """For each level, before training."""
    rows: NDArray[np.float64]
    """The input of each step."""
    labels: NDArray[np.float64]

    @property
    def names(self) -> list[str]:
        """What is compared, in order."""
        return [name for step in range(len(self.labels)) for name in self.names_of(step)]

    def names_of(self, step: int) -> list[str]:
        """For a step the values of every level, then the weights after it."""
        count = range(len(self.levels))
        return [f"step_{step}.level_{i}" for i in count] + [f"step_{step}.weights_{i}" for i in count]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays."""
        found: dict[str, NDArray[Any]] = {"rows": self.rows, "labels": self.labels}
        for number, (level, weights) in enumerate(zip(self.levels, self.weights, strict=True)):
            own = {"sources": level.sources, "into": level.into, "weights": weights}
            found |= {f"level_{number}.{name}": array for name, array in own.items()}
        return found

    def to_json(self) -> dict[str, Any]:
        """All but the arrays."""
        own = {"name": self.name, "about": self.about, "format": self.format}
        return {**own, "training": True, "rate": self.rate, "levels": len(self.levels)}

    @classmethod
    def from_json(cls, found: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Training":
        """The network again."""
        numbers = range(found["levels"])
        levels = tuple(Level(arrays[f"level_{i}.sources"], arrays[f"level_{i}.into"]) for i in numbers)
        weights = tuple(arrays[f"level_{i}.weights"] for i in numbers)
        own = found["name"], found["about"], found["format"], float(found["rate"])
        return cls(*own, levels, weights, arrays["rows"], arrays["labels"])


def training_case(precision: str) -> tuple[Training, dict[str, NDArray[np.float64]]]:
    """The parity learner on some samples, each of which it learns from; and what must come out."""
    learner = parity(BITS)
    net = compile(learner, "emulator", precision=precision).net
    assert isinstance(net, PracticalNet)
    x = (np.array(SHOWN)[:, None] >> np.arange(BITS)) & 1
    carry = net.start(learner.start(x, x[:, 0] ^ x[:, 2], guessing=False))
    graph, of_vertex = net.graph, net.graph.levels()
    # In order of their levels; a vertex's number is then its place in the vector of all values.
    order = np.argsort(of_vertex, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    levels, edges = [], []
    for number in range(1, int(of_vertex.max()) + 1):
        own = np.flatnonzero(of_vertex[graph.ends] == number)
        vertices = np.flatnonzero(of_vertex == number)
        into = (graph.ends[own][:, None] == vertices).astype(np.float64)
        levels.append(Level(place[graph.sources[own]].astype(np.int64), into))
        edges.append(own)
    labels = 2 * carry.samples.y.astype(np.float64) - 1
    made = Training(
        f"training-{precision}",
        f"{len(SHOWN)} steps of SGD on {len(carry.weights):,} weights, which emulate a learner of parities",
        precision,
        net.constants.rate,
        tuple(levels),
        tuple(carry.weights[own].astype(np.float64) for own in edges),
        input_rows(carry.samples, 0, len(SHOWN)).astype(np.float64),
        labels,
    )
    expected: dict[str, NDArray[np.float64]] = {}
    weights = [Fraction(float(w)) for w in carry.weights]
    for step in range(len(SHOWN)):
        row = [int(value) for value in made.rows[step]]
        label, rate = int(labels[step]), Fraction(made.rate)
        after, values = sgd_step_by_hand(graph, weights, row, label, rate, _clipped)
        _representable([*values, *(w - v for w, v in zip(weights, after, strict=True))], precision)
        weights = [_rounded(w, precision) for w in after]
        names = iter(made.names_of(step))
        for number in range(1, len(levels) + 1):
            expected[next(names)] = np.array([float(values[v]) for v in np.flatnonzero(of_vertex == number)])
        for own in edges:
            expected[next(names)] = np.array([float(weights[e]) for e in own])
    return made, expected


def _clipped(x: Fraction) -> tuple[Fraction, int]:
    """max(-2, min(2, x)) and its derivative, which has no value at the kinks."""
    if abs(x) == CLIP:
        raise BrokenNet("a vertex is where the activation has no derivative")
    return (x, 1) if abs(x) < CLIP else (Fraction(CLIP if x > 0 else -CLIP), 0)


def _rounded(x: Fraction, precision: str) -> Fraction:
    """To the nearest number of the format, ties to the even one."""
    if x == 0:
        return x
    shift = FORMATS[precision].bits - 1 - _exponent(x)
    return Fraction(round(x * Fraction(2) ** shift)) / Fraction(2) ** shift


def _exponent(x: Fraction) -> int:
    """The e with 2^e <= |x| < 2^(e + 1)."""
    e = abs(x.numerator).bit_length() - x.denominator.bit_length()
    return e if abs(x) >= Fraction(2) ** e else e - 1


def _representable(numbers: list[Any], precision: str) -> None:
    for own in numbers:
        if _rounded(Fraction(own), precision) != own:
            raise BrokenNet(f"{own} is no number of {precision}")
