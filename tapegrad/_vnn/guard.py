"""From a circuit to a network that asks a verifier one question, with the same answer over the reals as over
bits, by a margin of one half.

A circuit C with one output and n inputs is satisfiable or not. Its ReLU network F takes bits to bits, but a
verifier may choose any x in [0, 1]^n, and between the bits F has values of its own: |a - b|, which is XOR, is
0 at a = b = 1/2, and so a contradiction may be "satisfied" by halves. The guard rules that out. For every
input there are four ReLUs, r_k = relu(x - k) with k = 1/4, 3/8, 5/8, 3/4, and of these

    t(x) = 4 r_3/8 - 4 r_5/8                          0 up to 3/8, 1 from 5/8 on, and linear between
    q(x) = 8 (r_1/4 - r_3/8 - r_5/8 + r_3/4)          0 up to 1/4, 1 from 3/8 to 5/8, 0 from 3/4 on

The network is Y(x) = F(t(x_1), ..., t(x_n)) - q(x_1) - ... - q(x_n), and the question is whether some x of
the region has Y(x) >= 1/2.

*F is in [0, 1] on all of [0, 1]^n.* In the paper's form every gate takes [0, 1]^2 to [0, 1]:
relu(a + b - 1) <= 1 since a + b <= 2; 1 - relu(1 - a - b) >= 0 since a + b >= 0; |a - b| <= 1; and one minus
each of these. Gates of the compact form are right on bits and may be anything between. There F is what the
circuit's network G gives, cut off above: F = relu(G) - relu(relu(G) - 1).

*If C is unsatisfiable, Y <= 0 everywhere.* Either some x_i is strictly between 3/8 and 5/8: then q(x_i) = 1,
the other q are not negative, and Y <= F - 1 <= 0. Or none is: then every t(x_i) is a bit, F is the value of C
on these bits, which is 0, and Y <= 0.

*If C is satisfied by the bits b, then Y(x) = 1 for every x within 1/4 of b:* there t(x_i) = b_i and q(x_i) =
0.

So the greatest value of Y is 1 or at most 0, and the question asks about 1/2. A solver that errs by less than
1/2 in Y cannot turn the answer over; nor can one that errs by less than 1/4 in x lose a witness. Where the
region is smaller than [0, 1]^n the second line still holds, and whoever chose the region has a witness inside
it or none.

In float32 the argument stands as it is: all cuts are eighths, x - k is exact for x in [1/4, 1], and rounding
does not take a sum of terms that is at most 1 above 1. Only the sum of the q, at most n, is rounded, by less
than n 2^-20 in all. Between the bits, values of the compact form may be large: it is refused where their
bounds, by interval arithmetic, leave the range of float32, and what is rounded below that is cut off.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tapegrad.circuits.layered import LayeredCircuit, layered
from tapegrad.circuits.model import Circuit
from tapegrad.errors import InputError, Refused
from tapegrad.networks.form import Affine, Dense
from tapegrad.targets.relu.build import lay_out, layer_sizes
from tapegrad.targets.relu.compact.build import made

DTYPE = "float32"
CORRECTION = "none"
"""What the guard lets through are exact bits, which need no correction between layers."""
CUTS = (Fraction(1, 4), Fraction(3, 8), Fraction(5, 8), Fraction(3, 4))
SNAP = (0, 4, -4, 0)
"""t, by the four cut units."""
PENALTY = (8, -8, -8, 8)
"""q, by the four cut units."""
THRESHOLD = Fraction(1, 2)
"""Y >= 1/2 is asked for; Y reaches 1, or is nowhere above 0."""
MARGIN = Fraction(1, 2)
RADIUS = CUTS[0]
"""Y is 1 within this distance of a witness of bits."""
PAPER, COMPACT = FORMS = "paper", "practical"
LARGEST_VALUE = 2.0**120
"""Bounds of values may not exceed this; float32 ends at 2^128."""


def guarded(parts: Sequence[Circuit], form: str = PAPER) -> list[Dense]:
    """The layers of Y: the cuts, then t and the sum of all q, then F with that sum carried along; the last is
    linear. F is one circuit, or several, each of which reads the outputs of the one before."""
    if len(parts[-1].outputs) != 1:
        raise InputError(
            f"a question is a circuit with one output, and {parts[-1].name!r} has {len(parts[-1].outputs)}",
            advice="Combine them to one bit: what is asked for is an input that makes it 1.",
        )
    inputs = len(parts[0].inputs)
    layers = [Dense(_cuts(inputs), "relu"), Dense(_snapped(inputs), "relu")]
    each = {id(own): _laid_out(own, form) for own in parts}
    layers += [layer for own in parts for layer in each[id(own)]]
    read = [[1, -1]]  # the bit itself, not 2 z - 1, and the sum of all q
    if form == COMPACT:
        layers.append(Dense(Affine.of(np.array([[1, 0], [1, 0], [0, 1]], DTYPE), _ABOVE_ONE), "relu"))
        read = [[1, -1, -1]]
        _bounded(layers)
    return [*layers, Dense(Affine.of(np.array(read, DTYPE), np.zeros(1, DTYPE)), "linear")]


_ABOVE_ONE = np.array([0, -1, 0], DTYPE)


def _laid_out(circuit: Circuit, form: str) -> list[Dense]:
    """The layers of a circuit up to its outputs, which the last of them holds as bits."""
    if form == COMPACT:
        chain = made(circuit, skips=False).wiring
        layers = [chain.layer(number) for number in range(chain.layers)]
        signs = layers.pop()  # 2 z - 1 or 1 - 2 z; half of it and a half is the bit
        half = Affine(signs.rows, signs.columns, signs.values / 2, (signs.bias + 1) / 2, signs.width)
        return [Dense(_beside(own), "relu") for own in (*layers, half)]
    steps: LayeredCircuit = layered(circuit).after  # type: ignore[assignment]
    chain = lay_out(steps, CORRECTION, DTYPE)
    return [Dense(_beside(chain.layer(number)), "relu") for number in range(chain.layers - 1)]


def _bounded(layers: Sequence[Dense]) -> None:
    """Refuses layers whose values may leave the range of float32 for inputs from 0 to 1."""
    most = np.ones(layers[0].map.width)
    for layer in layers:
        own = layer.map
        assert isinstance(own, Affine)
        above = np.maximum(own.bias.astype(np.float64), 0)
        np.add.at(above, own.rows, np.maximum(own.values, 0) * most[own.columns])
        most = above
    if most.max(initial=0) > LARGEST_VALUE:
        raise Refused(
            "between the bits, values of this compact network may leave the range of float32",
            advice="Take a smaller one, or form=paper, whose values are from 0 to 1.",
        )


def relu_count(parts: Sequence[Circuit], form: str = PAPER) -> int:
    """How many ReLUs `guarded` will have."""
    if form == COMPACT:
        return sum(len(layer.map) for layer in guarded(parts, form)[:-1])
    inputs, each = len(parts[0].inputs), dict[int, int]()
    for own in {id(own): own for own in parts}.values():
        sizes = layer_sizes(layered(own).after, CORRECTION)[:-1]  # type: ignore[arg-type]
        each[id(own)] = int(sizes.sum()) + len(sizes)
    return len(CUTS) * inputs + inputs + 1 + sum(each[id(own)] for own in parts)


def _cuts(inputs: int) -> Affine:
    """Four units for each input, side by side."""
    many = len(CUTS) * inputs
    bias = -np.tile(np.array(CUTS, DTYPE), inputs)
    return Affine(
        np.arange(many), np.repeat(np.arange(inputs), len(CUTS)), np.ones(many, DTYPE), bias, inputs
    )


def _snapped(inputs: int) -> Affine:
    """t of every input, and in the last row the sum of all q."""
    weight = np.zeros((inputs + 1, len(CUTS) * inputs), DTYPE)
    for place in range(inputs):
        weight[place, len(CUTS) * place : len(CUTS) * (place + 1)] = SNAP
    weight[inputs] = np.tile(np.array(PENALTY, DTYPE), inputs)
    return Affine.of(weight, np.zeros(inputs + 1, DTYPE))


def _beside(own: Affine) -> Affine:
    """A layer, and one more unit that passes on the last value of the layer before."""
    return Affine(
        np.append(own.rows, len(own)),
        np.append(own.columns, own.width),
        np.append(own.values, 1).astype(DTYPE),
        np.append(own.bias, 0).astype(DTYPE),
        own.width + 1,
    )
