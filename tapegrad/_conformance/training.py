"""A network that is trained: some steps of plain SGD, each value on the way known.

It is a compiled learner (target `emulator`), whose memory is in its weights. The vertices stand in levels;
those of the next level are `clip(A x, -2, 2)` of all values so far, where the entries of A are the edges, and
the last vertex is the output. A step takes `rate` times the derivative of (output - label)^2 off every
weight. So a runtime differentiates gathers, products, sums and clips, as in any training.

What must come out is worked out in fractions: values and derivatives exactly, then each new weight rounded
once to the format. Any runtime must agree to the bit, since rate times derivative is a number of the format
(which is made sure of), so that `w - rate * derivative` is the only operation that rounds.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._compile import compile
from tapegrad._conformance.formats import FORMATS, Form
from tapegrad._conformance.nets import Case
from tapegrad.errors import BrokenNet
from tapegrad.learners.library import parity
from tapegrad.networks.builder import Builder
from tapegrad.networks.form import Affine
from tapegrad.networks.network import Network
from tapegrad.targets.emulator.loss import sgd_step_by_hand
from tapegrad.targets.emulator.net import PracticalNet, input_rows

BITS = 3
SHOWN = (1, 5, 4, 7, 2, 6, 3, 0)
"""The samples, as numbers whose bits they are; the learner changes its memory at several of them."""
CLIP = 2


@dataclass(frozen=True)
class Training:
    """Steps of SGD on a network, whose maps are trained, from one row each."""

    form: Form
    rate: float
    rows: NDArray[Any]
    labels: NDArray[Any]

    @property
    def levels(self) -> list[str]:
        """The values that are compared."""
        return [node.name for node in self.form.network.nodes if node.operation == "clip"]

    @property
    def weights(self) -> dict[str, NDArray[Any]]:
        """What is trained, by the names of the arrays, before the first step."""
        own = self.form.cast
        return {
            node.arrays["values"]: own.array(node, "values")
            for node in own.nodes
            if node.operation == "affine"
        }


def names_of(network: Network, steps: int) -> list[str]:
    """What is compared, in order: for each step the value of every level, then the weights after it."""
    levels = [node.name for node in network.nodes if node.operation == "clip"]
    weights = [node.name for node in network.nodes if node.operation == "affine"]
    return [f"step_{step}.{name}" for step in range(steps) for name in (*levels, *weights)]


def training_case(precision: str) -> tuple[Case, float, dict[str, NDArray[np.float64]]]:
    """The parity learner on some samples, each of which it learns from; the rate; and what must come out."""
    learner = parity(BITS)
    net = compile(learner, "emulator", precision=precision).net
    assert isinstance(net, PracticalNet)
    x = (np.array(SHOWN)[:, None] >> np.arange(BITS)) & 1
    carry = net.start(learner.start(x, x[:, 0] ^ x[:, 2], guessing=False))
    graph, of_vertex = net.graph, net.graph.levels()
    # In order of their levels; a vertex's number is then its place in the row of all values.
    order = np.argsort(of_vertex, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rows = input_rows(carry.samples, 0, len(SHOWN)).astype(precision)
    make = Builder("training", precision)
    v = level = make.input("row", 1, rows.shape[1])
    every = [np.flatnonzero(of_vertex == number) for number in range(1, int(of_vertex.max()) + 1)]
    edges = [np.flatnonzero(np.isin(graph.ends, vertices)) for vertices in every]
    for number, (vertices, own) in enumerate(zip(every, edges, strict=True)):
        ends, weights = np.searchsorted(vertices, graph.ends[own]), carry.weights[own].astype(precision)
        bias = np.zeros(len(vertices), precision)
        sums = make.affine(v, Affine(ends, place[graph.sources[own]], weights, bias, 0), f"weights_{number}")
        level = make.node("clip", sums, name=f"level_{number}", low=-CLIP, high=CLIP)
        v = make.join(v, level, axis=-1)
    make.output("output", level)
    inputs = {"rows": rows, "labels": 2 * carry.samples.y.astype(precision) - 1}
    case = Case(make.network(), inputs, np.zeros(0), written=False)
    found = list[NDArray[np.float64]]()
    current, rate = [Fraction(float(w)) for w in carry.weights], Fraction(net.constants.rate)
    for row, label in zip(rows, inputs["labels"], strict=True):
        own_row = [int(value) for value in row]
        after, values = sgd_step_by_hand(graph, current, own_row, int(label), rate, _clipped)
        _representable([*values, *(w - v for w, v in zip(current, after, strict=True))], precision)
        current = [_rounded(w, precision) for w in after]
        found += [np.array([[float(values[v]) for v in vertices]]) for vertices in every]
        found += [np.array([float(current[e]) for e in own]) for own in edges]
    expected = dict(zip(names_of(case.network, len(rows)), found, strict=True))
    return case, net.constants.rate, expected


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
