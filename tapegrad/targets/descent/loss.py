"""What `simplex`, `tape` and the extended network are trained on: figure 1 of Welper's paper, and its parts.

In order: functions on a simplex (appendix A), the two switches (section 5) and f_perp (appendix C); the
extended network made of them, and its squared error, which is the loss. The update rule is
`tapegrad._optimise.descend`: conditional gradient for the point on the simplex, plain gradient descent for
everything else.

The paper writes each function on a simplex as ReLU(n^T x - d) with a normal n that involves every
coordinate. On the simplex, where the coordinates sum to 1, they reduce to the forms below, which name only
the coordinates they are about; the two differ by a multiple of (sum x - 1), which no direction inside the
simplex can see. None has a kink at a vertex, so automatic differentiation there gives the one-sided
derivatives that the proofs use.
"""

from typing import NamedTuple, Protocol, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.lax import stop_gradient
from jax.nn import relu
from jaxtyping import Array, Float

from tapegrad.networks.jax import room

Arrays = Array | np.ndarray
"""NumPy's at rest, JAX's while they are differentiated."""

Scalar = Float[Array, ""] | float
"""Likewise: NumPy's are floats."""

# Functions on a simplex


def corner(x_v: Float[Arrays, "*n"], mu: float) -> Float[Array, "*n"]:
    """Lemma A.1: 1 at e_v, 0 beyond the corner of size mu."""
    return relu(1 - (1 - x_v) / mu)


def edge(x_v: Float[Arrays, "*n"], x_w: Float[Arrays, "*n"]) -> Float[Array, "*n"]:
    """Lemma A.2: 1 in the middle between e_v and e_w, 0 at every vertex and every other such middle."""
    return relu(2 * (x_v + x_w) - 1) - corner(x_v, 1 / 2) - corner(x_w, 1 / 2)


def skew(x_v: Float[Arrays, "*n"], x_w: Float[Arrays, "*n"]) -> Float[Array, "*n"]:
    """Lemma A.3 with mu = 1/4: 1 at e_v, 0 from a quarter of the way to e_w on, and from half the way to any
    other vertex on."""
    return relu(2 * x_v - 2 * x_w - 1)


def directed(x_v: Float[Arrays, "*n"], x_w: Float[Arrays, "*n"]) -> Float[Array, "*n"]:
    """(34): on the edge from e_v to e_w it is 1 after a quarter and 1/2 after three quarters of the way; 0 on
    every other edge. Leaving e_v towards e_w it rises with slope 4, leaving e_w towards e_v with slope 2.
    This is `edge + corner(x_v, 1/2) - skew` with the corner that appears twice left out."""
    return relu(2 * (x_v + x_w) - 1) - corner(x_w, 1 / 2) - skew(x_v, x_w)


SLOPE_FORWARD, SLOPE_BACKWARD = 4.0, 2.0
"""The two slopes of `directed` at the ends of its edge, as the fast engine and the certificate use them."""


# Switches: one lets the labels in, the other lets the primary network out


def cutoff(t: Float[Arrays, "*n"], start: Scalar, end: Scalar | Float[Arrays, " last"]) -> Float[Array, "*n"]:
    """1 up to `start`, 0 from `end` on, a line between: two ReLUs, one inside the other, so that both
    plateaus are exact in floating point and have derivative exactly 0. (Two ReLUs side by side, as in
    u - (u - 1), would leave a rounding error on the far plateau.)"""
    return relu(1 - relu((t - start) / (end - start)))


def label_switch(u: Float[Arrays, "*n"], z: Float[Arrays, "*n"], epsilon: Scalar) -> Float[Array, "*n"]:
    """s_init of section 5.2: z while |z|^2 is small, u once |z|^2 >= epsilon. At z = 0 its gradient is the
    identity in z and 0 in u: the first step of training copies the labels into z and moves nothing else."""
    reading = cutoff(jnp.sum(z**2), epsilon / 3, 2 * epsilon / 3)
    return (1 - reading) * u + reading * z


def halt_switch(
    f: Float[Arrays, "*n"], u: Float[Arrays, "*n"], low: Scalar, high: Scalar
) -> Float[Array, "*n"]:
    """s_net of section 5.3, (27) and (28): u while |u|^2 > 2 high, f once |u|^2 < 2 low. The ramp keeps a
    quarter of the gap clear at both ends, the paper's delta."""
    delta = (high - low) / 2
    halted = cutoff(jnp.sum(u**2), 2 * low + delta, 2 * high - delta)
    return halted * f + (1 - halted) * u


def orthogonal(z: Float[Arrays, "*n"], epsilon: Scalar) -> Float[Array, "*n"]:
    """f_perp: the projection of v = e_1, or of w = e_2 where z is too nearly parallel to v, normalised.

    "Too nearly" is an angle under 45 degrees: then w is at 45 degrees or more, so whichever is taken keeps at
    least half of its squared length. Lengths are held above epsilon / 3, which |z|^2 >= epsilon never
    notices, and which keeps the value finite at z = 0, before the labels are read.
    """
    flat = z.reshape(-1)
    v, w = jnp.eye(2, flat.size, dtype=flat.dtype)
    length = jnp.maximum(flat @ flat, epsilon / 3)
    axis = jnp.where(2 * (flat @ v) ** 2 > length, w, v)
    projected = axis - (flat @ axis) / length * flat
    unit = projected / jnp.sqrt(jnp.maximum(projected @ projected, 1 / 4))
    return unit.reshape(z.shape)


# The network and its loss


class Weights(NamedTuple):
    """Everything that is trained: s on the simplex; T, H and z free. Where the whole configuration is a
    vertex (section 4.3), T and H are empty."""

    s: Float[Arrays, " vertices"]
    T: Float[Arrays, "cells writable"]
    """One row for each cell, one column for each writable tape: -1 blank, +1 the other symbol."""
    H: Float[Arrays, "cells tapes"]
    """One row for each cell, one column for each tape, the read-only ones first: 1 under the head."""
    z: Float[Arrays, "samples outputs"]
    """The copy of the labels: 0 before the first step, the labels after it."""


LEAST = 256
"""Even the smallest graphs and tapes are given room for so many vertices, edges and cells: it costs next to
nothing."""


def in_room(array: Arrays, fill: float = 0.0, least: int = LEAST) -> np.ndarray:
    """With rows of padding behind the last, up to a round number and at least so many: machines of like size
    then share one compiled step."""
    array = np.asarray(array)
    more = room(max(len(array), least), fine=True) - len(array)
    return np.concatenate([array, np.full((more, *array.shape[1:]), fill, array.dtype)])


class Thresholds(eqx.Module):
    """The bounds that the switches and the stopping rule (4) use."""

    epsilon: Scalar
    """A lower bound of |y|^2, assumption (5)."""
    low: Scalar
    """Halted below this value of the machine's loss; also B_stop."""
    high: Scalar
    """Running above this value."""


class TracingLoss(Protocol):
    """l_TM: a loss whose gradient descent traces a machine (section 4.3 or 4.4)."""

    def __call__(
        self,
        s: Float[Arrays, " vertices"],
        T: Float[Arrays, "cells tapes"],
        H: Float[Arrays, "cells tapes"],
    ) -> Float[Array, ""]: ...

    def in_room(self, cells: int, vertices: int = LEAST, edges: int = LEAST) -> Self:
        """The same loss for weights with room (`in_room`), whose tapes have this many cells of their own;
        with room for so many vertices and edges at least."""
        ...


class Primary(Protocol):
    """f_theta together with the way its weights are read off the machine, and the read-only tapes."""

    def read_only_tapes(
        self, x: Float[Arrays, "samples inputs"], z: Float[Arrays, "samples outputs"]
    ) -> Float[Array, "cells given"]:
        """The hidden layer that holds x and z, quantised: one row for each cell."""
        ...

    def output(self, x: Float[Arrays, "samples inputs"], weights: Weights) -> Float[Array, "samples outputs"]:
        """f_theta(x), theta de-quantised from the weights."""
        ...


class NoPrimary(eqx.Module):
    """The empty primary network: no weights, output 0. Left over is the machine alone."""

    def read_only_tapes(
        self, x: Float[Arrays, "samples inputs"], z: Float[Arrays, "samples outputs"]
    ) -> Float[Array, "cells given"]:
        """None."""
        return jnp.zeros((1, 0))

    def output(self, x: Float[Arrays, "samples inputs"], weights: Weights) -> Float[Array, "samples outputs"]:
        """0, in the shape of the labels."""
        return jnp.zeros_like(weights.z)


class ExtendedNetwork(eqx.Module):
    """F(x; s, T, H, z): the machine's branch f_TM = sqrt(2 l_TM) f_perp(z) and the primary network f_theta,
    joined by the two switches. Dotted arcs of figure 1 are stop-gradients here."""

    machine: TracingLoss
    primary: Primary
    thresholds: Thresholds

    def __call__(
        self, x: Float[Arrays, "samples inputs"], weights: Weights
    ) -> Float[Array, "samples outputs"]:
        s, written, H, z = weights
        bounds, labels = self.thresholds, stop_gradient(z)
        given = stop_gradient(self.primary.read_only_tapes(x, labels))
        T = jnp.concatenate([jnp.broadcast_to(given, (len(written), given.shape[1])), written], axis=1)
        f_tm = jnp.sqrt(2 * self.traced(Weights(s, T, H, z))) * orthogonal(labels, bounds.epsilon)
        f_theta = self.primary.output(x, stop_gradient(weights))
        return label_switch(halt_switch(f_theta, f_tm, bounds.low, bounds.high), z, bounds.epsilon)

    def traced(self, weights: Weights) -> Float[Array, ""]:
        """l_TM, with all tapes; z plays no part in it."""
        return self.machine(weights.s, weights.T, weights.H)


class SquaredError(eqx.Module):
    """(2): 1/2 |F(x) - y|^2. While the machine runs, f_perp being a unit vector orthogonal to y, this is
    l_TM + 1/2 |y|^2, and its gradient in s, T and H is the gradient of l_TM."""

    network: ExtendedNetwork
    x: Float[Arrays, "samples inputs"]
    y: Float[Arrays, "samples outputs"]

    def __call__(self, weights: Weights) -> Float[Array, ""]:
        return jnp.sum((self.network(self.x, weights) - self.y) ** 2) / 2


LONE_LABELS = np.array([[1.0, 0.0]])
"""Labels for a machine without a primary network: two numbers, so that an orthogonal direction exists, and
f_perp of them is exactly (0, 1)."""

LABELS = LONE_LABELS.size
LONE_INPUTS = np.zeros((1, 0))

LONE_FINAL_LOSS = 0.5
"""1/2 |0 - y|^2: what the empty primary network leaves after the halt."""
