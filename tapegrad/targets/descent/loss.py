"""What `simplex`, `tape` and the extended network are trained on: figure 1 of Welper's paper, and its parts.

In order: functions on a simplex (appendix A), the two switches (section 5) and f_perp (appendix C); the
extended network made of them, and its squared error, which is the loss. All are written down node by node in
a `Network`, which is what every backend runs; automatic differentiation of it is the gradient. The update
rule stands beside it: conditional gradient for the point on the simplex, plain gradient descent for
everything else.

The paper writes each function on a simplex as ReLU(n^T x - d) with a normal n that involves every
coordinate. On the simplex, where the coordinates sum to 1, they reduce to the forms below, which name only
the coordinates they are about; the two differ by a multiple of (sum x - 1), which no direction inside the
simplex can see. None has a kink at a vertex, so automatic differentiation there gives the one-sided
derivatives that the proofs use.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from tapegrad.networks.builder import Builder, Operand, Value
from tapegrad.networks.network import Network, Training
from tapegrad.networks.tiles import room

Array = TypeVar("Array")

Constant = float | NDArray[np.float64]

# Functions on a simplex


def corner(x_v: Value, mu: float) -> Value:
    """Lemma A.1: 1 at e_v, 0 beyond the corner of size mu."""
    return (1 - (1 - x_v) / mu).relu()


def edge(x_v: Value, x_w: Value) -> Value:
    """Lemma A.2: 1 in the middle between e_v and e_w, 0 at every vertex and every other such middle."""
    return (2 * (x_v + x_w) - 1).relu() - corner(x_v, 1 / 2) - corner(x_w, 1 / 2)


def skew(x_v: Value, x_w: Value) -> Value:
    """Lemma A.3 with mu = 1/4: 1 at e_v, 0 from a quarter of the way to e_w on, and from half the way to any
    other vertex on."""
    return (2 * x_v - 2 * x_w - 1).relu()


def directed(x_v: Value, x_w: Value) -> Value:
    """(34): on the edge from e_v to e_w it is 1 after a quarter and 1/2 after three quarters of the way; 0 on
    every other edge. Leaving e_v towards e_w it rises with slope 4, leaving e_w towards e_v with slope 2.
    This is `edge + corner(x_v, 1/2) - skew` with the corner that appears twice left out."""
    return (2 * (x_v + x_w) - 1).relu() - corner(x_w, 1 / 2) - skew(x_v, x_w)


SLOPE_FORWARD, SLOPE_BACKWARD = 4.0, 2.0
"""The two slopes of `directed` at the ends of its edge, as the fast engine and the certificate use them."""


# Switches: one lets the labels in, the other lets the primary network out


def cutoff(t: Value, start: Constant, end: Constant) -> Value:
    """1 up to `start`, 0 from `end` on, a line between: two ReLUs, one inside the other, so that both
    plateaus are exact in floating point and have derivative exactly 0. (Two ReLUs side by side, as in
    u - (u - 1), would leave a rounding error on the far plateau.)"""
    return (1 - ((t - start) / (end - start)).relu()).relu()


def label_switch(u: Value, z: Value, epsilon: float) -> Value:
    """s_init of section 5.2: z while |z|^2 is small, u once |z|^2 >= epsilon. At z = 0 its gradient is the
    identity in z and 0 in u: the first step of training copies the labels into z and moves nothing else."""
    reading = cutoff((z * z).total(2), np.float64(epsilon / 3), np.float64(2 * epsilon / 3))
    return (1 - reading) * u + reading * z


def halt_switch(f: Value, u: Value, low: float, high: float) -> Value:
    """s_net of section 5.3, (27) and (28): u while |u|^2 > 2 high, f once |u|^2 < 2 low. The ramp keeps a
    quarter of the gap clear at both ends, the paper's delta."""
    delta = (high - low) / 2
    halted = cutoff((u * u).total(2), np.float64(2 * low + delta), np.float64(2 * high - delta))
    return halted * f + (1 - halted) * u


MOST = float(np.finfo(np.float64).max)


def orthogonal(z: Value, epsilon: float) -> Value:
    """f_perp: the projection of v = e_1, or of w = e_2 where z is too nearly parallel to v, normalised.

    "Too nearly" is an angle under 45 degrees: then w is at 45 degrees or more, so whichever is taken keeps at
    least half of its squared length. Lengths are held above epsilon / 3, which |z|^2 >= epsilon never
    notices, and which keeps the value finite at z = 0, before the labels are read.
    """
    count = math.prod(z.sizes)
    flat, (v, w) = z.reshape(len(z.sizes), 1, count), np.eye(2, count)[:, None]
    length = at_least(_dot(flat, flat), epsilon / 3)
    along = _dot(flat, v)
    axis = v + (2 * (along * along) > length) * (w - v)
    projected = axis - _dot(flat, axis) / length * flat
    unit = projected / at_least(_dot(projected, projected), 1 / 4).sqrt()
    return unit.reshape(2, *z.sizes)


def _dot(a: Value, b: Operand) -> Value:
    """Of two rows."""
    return a.builder.node("product", a, a.builder.value(b), turned=True)


def at_least(x: Value, low: float) -> Value:
    """max(x, low)."""
    return x.builder.node("clip", x, low=low, high=MOST)


# The network and its loss


class Weights(NamedTuple, Generic[Array]):
    """Everything that is trained: s on the simplex; T, H and z free. Where the whole configuration is a
    vertex (section 4.3), T and H are empty."""

    s: Array
    """One number for each vertex."""
    T: Array
    """One row for each cell, one column for each writable tape: -1 blank, +1 the other symbol."""
    H: Array
    """One row for each cell, one column for each tape, the read-only ones first: 1 under the head."""
    z: Array
    """The copy of the labels, one row for each sample: 0 before the first step, the labels after it."""


class Trained(NamedTuple):
    """The same as values of a network; None where there are no such weights."""

    s: Value
    T: Value | None
    H: Value | None
    z: Value


Numbers = NDArray[np.float64]

ABOUT = {
    "s": "the point on the simplex: a vertex for each control state and the symbols that it reads",
    "T": "the tapes that are written: a row for each cell, -1 blank, +1 the other symbol",
    "H": "the heads: a row for each cell, 1 under the head of each tape",
    "z": "the copy of the labels: 0 before the first step, the labels after it",
}
"""What each of the weights is."""

LEAST = 256
"""Even the smallest graphs and tapes are given room for so many vertices, edges and cells: it costs next to
nothing."""


def in_room(array: NDArray[Any], fill: float = 0.0, least: int = LEAST) -> NDArray[Any]:
    """With rows of padding behind the last, up to a round number and at least so many: machines of like size
    then share one compiled step."""
    array = np.asarray(array)
    more = roomy(len(array), least) - len(array)
    return np.concatenate([array, np.full((more, *array.shape[1:]), fill, array.dtype)])


def roomy(count: int, least: int = LEAST) -> int:
    """Rows of an array with room."""
    return room(max(count, least))


class Thresholds(NamedTuple):
    """The bounds that the switches and the stopping rule (4) use."""

    epsilon: float
    """A lower bound of |y|^2, assumption (5)."""
    low: float
    """Halted below this value of the machine's loss; also B_stop."""
    high: float
    """Running above this value."""


class TracingLoss(Protocol):
    """l_TM: a loss whose gradient descent traces a machine (section 4.3 or 4.4)."""

    def __call__(self, s: Value, T: Value | None, H: Value | None) -> Value:
        """The loss, of the weights s, all tapes and all heads, where there are any."""
        ...

    def in_room(self, cells: int, vertices: int = LEAST, edges: int = LEAST) -> Self:
        """The same loss for weights with room (`in_room`), whose tapes have this many cells of their own;
        with room for so many vertices and edges at least."""
        ...


class Primary(Protocol):
    """f_theta together with the way its weights are read off the machine, and the read-only tapes."""

    def read_only_tapes(self, x: Value, z: Value) -> Value:
        """The hidden layer that holds x and z, quantised: one row for each cell."""
        ...

    def theta(self, weights: Trained) -> Value:
        """The weights of f_theta, de-quantised from the machine's."""
        ...

    def output(self, x: Value, theta: Value) -> Value:
        """f_theta(x)."""
        ...


@dataclass(frozen=True, eq=False)
class ExtendedNetwork:
    """F(x; s, T, H, z): the machine's branch f_TM = sqrt(2 l_TM) f_perp(z) and the primary network f_theta,
    joined by the two switches. Dotted arcs of figure 1 are nodes `detach`. Without a primary network, which
    is then 0, the machine alone is left."""

    machine: TracingLoss
    primary: Primary | None
    thresholds: Thresholds

    def __call__(self, x: Value | None, weights: Trained) -> Value:
        """F(x). On the way the read-only tapes and theta become outputs of the network."""
        s, T, H, z = weights
        bounds, labels = self.thresholds, z.detach("labels", "dotted in figure 1")
        f_theta = z.builder.value(0.0)
        if self.primary is not None:
            assert x is not None
            given = self.primary.read_only_tapes(x, labels).detach("data", "the read-only tapes")
            T = given if T is None else z.builder.join(given, T, axis=-1)
            theta = self.primary.theta(weights).detach()
            f_theta = self.primary.output(x, theta)
            z.builder.output("data", given)
            z.builder.output("theta", theta)
        traced = self.traced(Trained(s, T, H, z))
        f_tm = (2 * traced).sqrt() * orthogonal(labels, bounds.epsilon)
        return label_switch(halt_switch(f_theta, f_tm, bounds.low, bounds.high), z, bounds.epsilon)

    def traced(self, weights: Trained) -> Value:
        """l_TM, with all tapes; z plays no part in it."""
        return self.machine(weights.s, weights.T, weights.H)


@dataclass(frozen=True, eq=False)
class SquaredError:
    """(2): 1/2 |F(x) - y|^2. While the machine runs, f_perp being a unit vector orthogonal to y, this is
    l_TM + 1/2 |y|^2, and its gradient in s, T and H is the gradient of l_TM."""

    network: ExtendedNetwork
    x: Float[np.ndarray, "samples inputs"]
    y: Float[np.ndarray, "samples outputs"]

    def __call__(self, output: Value, y: Value) -> Value:
        difference = output - y
        return (difference * difference).total(2) / 2

    def graph(self, shapes: Weights[tuple[int, ...]], training: Training | None = None) -> Network:
        """The loss as a network, for weights of these shapes. Those that there are none of are no inputs."""
        build = Builder("squared error of the extended network", np.float64, shared=True)

        def weight(name: str, shape: tuple[int, ...]) -> Value:
            return build.input(name, *shape, about=ABOUT[name])

        s = weight("s", shapes.s)
        T = weight("T", shapes.T) if math.prod(shapes.T) else None
        H = weight("H", shapes.H) if math.prod(shapes.H) else None
        weights, x = Trained(s, T, H, weight("z", shapes.z)), None
        if self.network.primary is not None:
            x = build.input("x", *self.x.shape, about="the inputs, a row for each sample")
        y = build.input("y", *self.y.shape, about="the labels")
        output = self.network(x, weights)
        build.output("output", output)
        build.output("loss", self(output, y))
        return build.network(training)

    def in_room(self, shapes: Weights[tuple[int, ...]], vertices: int = LEAST, edges: int = LEAST) -> Network:
        """The same for weights with room (`in_room`); its graph is that of every machine of like size."""
        machine = self.network.machine.in_room(shapes.H[0], vertices, edges)
        padded = replace(self, network=replace(self.network, machine=machine))
        s, *tapes, z = shapes
        T, H = ((roomy(rows), columns) if rows else (0, columns) for rows, columns in tapes)
        return padded.graph(Weights((roomy(s[0], vertices),), T, H, z))

    def data(self) -> dict[str, Numbers]:
        """What the network is given beside its weights."""
        return {"y": self.y} if self.network.primary is None else {"x": self.x, "y": self.y}


LONE_LABELS = np.array([[1.0, 0.0]])
"""Labels for a machine without a primary network: two numbers, so that an orthogonal direction exists, and
f_perp of them is exactly (0, 1)."""

LABELS = LONE_LABELS.size
LONE_INPUTS = np.zeros((1, 0))

LONE_FINAL_LOSS = 0.5
"""1/2 |0 - y|^2: what the empty primary network leaves after the halt."""
