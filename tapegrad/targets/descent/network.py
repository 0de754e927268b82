"""The extended network of Welper's figure 1, and the ordinary loss it is trained on."""

from typing import NamedTuple, Protocol

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.lax import stop_gradient

from tapegrad.targets.descent.numbers import Numbers
from tapegrad.targets.descent.orthogonal import orthogonal
from tapegrad.targets.descent.switches import halt_switch, label_switch


class Weights(NamedTuple):
    """Everything that is trained: s on the simplex; T, H and z free. Where the whole configuration is a
    vertex (section 4.3), T and H are empty."""

    s: Numbers
    T: Numbers
    """One row for each cell, one column for each writable tape: -1 blank, +1 the other symbol."""
    H: Numbers
    """One row for each cell, one column for each tape, the read-only ones first: 1 under the head."""
    z: Numbers
    """The copy of the labels: 0 before the first step, the labels after it."""


class Thresholds(eqx.Module):
    """The bounds that the switches and the stopping rule (4) use."""

    epsilon: Numbers
    """A lower bound of |y|^2, assumption (5)."""
    low: Numbers
    """Halted below this value of the machine's loss; also B_stop."""
    high: Numbers
    """Running above this value."""


class TracingLoss(Protocol):
    """l_TM: a loss whose gradient descent traces a machine (section 4.3 or 4.4)."""

    def __call__(self, s: Numbers, T: Numbers, H: Numbers) -> Array: ...


class Primary(Protocol):
    """f_theta together with the way its weights are read off the machine, and the read-only tapes."""

    def read_only_tapes(self, x: Numbers, z: Numbers) -> Array:
        """The hidden layer that holds x and z, quantised: one row for each cell."""
        ...

    def output(self, x: Numbers, weights: Weights) -> Array:
        """f_theta(x), theta de-quantised from the weights."""
        ...


class NoPrimary(eqx.Module):
    """The empty primary network: no weights, output 0. Left over is the machine alone."""

    def read_only_tapes(self, x: Numbers, z: Numbers) -> Array:
        """None."""
        return jnp.zeros((1, 0))

    def output(self, x: Numbers, weights: Weights) -> Array:
        """0, in the shape of the labels."""
        return jnp.zeros_like(weights.z)


class ExtendedNetwork(eqx.Module):
    """F(x; s, T, H, z): the machine's branch f_TM = sqrt(2 l_TM) f_perp(z) and the primary network f_theta,
    joined by the two switches. Dotted arcs of figure 1 are stop-gradients here."""

    machine: TracingLoss
    primary: Primary
    thresholds: Thresholds

    def __call__(self, x: Numbers, weights: Weights) -> Array:
        s, written, H, z = weights
        bounds, labels = self.thresholds, stop_gradient(z)
        given = stop_gradient(self.primary.read_only_tapes(x, labels))
        T = jnp.concatenate([jnp.broadcast_to(given, (len(written), given.shape[1])), written], axis=1)
        f_tm = jnp.sqrt(2 * self.machine(s, T, H)) * orthogonal(labels, bounds.epsilon)
        f_theta = self.primary.output(x, stop_gradient(weights))
        return label_switch(halt_switch(f_theta, f_tm, bounds.low, bounds.high), z, bounds.epsilon)


class SquaredError(eqx.Module):
    """(2): 1/2 |F(x) - y|^2. While the machine runs, f_perp being a unit vector orthogonal to y, this is
    l_TM + 1/2 |y|^2, and its gradient in s, T and H is the gradient of l_TM."""

    network: ExtendedNetwork
    x: Numbers
    y: Numbers

    def __call__(self, weights: Weights) -> Array:
        return jnp.sum((self.network(self.x, weights) - self.y) ** 2) / 2


LONE_LABELS = np.array([[1.0, 0.0]])
"""Labels for a machine without a primary network: two numbers, so that an orthogonal direction exists, and
f_perp of them is exactly (0, 1)."""

LONE_INPUTS = np.zeros((1, 0))

LONE_FINAL_LOSS = 0.5
"""1/2 |0 - y|^2: what the empty primary network leaves after the halt."""
