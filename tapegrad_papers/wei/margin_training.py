"""How networks are trained by the all-layer-margin loss (2.2).

**The margin of a net without shared weights, layer by layer.** Changes (D_l, d_l) of the parameters matter
only by what they add to the values `z_l = W_l h_{l-1} + b_l` on the way. The least change that adds r there
has rank one and norm `|r| / |(h_{l-1}, 1)|`. So, with `r = u_l |(h_{l-1}, 1)|`,

    rho(theta, x, y) = min |(u_1, ..., u_L)|   such that   (y - 1/2) F(x, theta; u) <= 0

where F(x, theta; u) adds `u_l |(h_{l-1}, 1)|` to z_l: (2.1) exactly, with as many unknowns as there are
units. Where steps share their weights, as those of a decoder do, u is the change of the parameters itself.

**How it is found.** `u <- g (g . u - F(u)) / |g|^2` with the slope g of F at u: the nearest zero of the
linearised F. A fixed point is a zero of F that is a stationary point of |u|; there may be a nearer one.
What is reported is the length of a multiple of u that does flip the prediction, so that it is never less
than rho.

**What is minimised: a stand-in where predictions are wrong.** (2.2) is 1 there, and flat. Here it is
continued with the same slope, `max(0, 1 - m / gamma)` with the signed margin m, rho where the prediction is
right and minus the distance to a right one where it is wrong. The two are equal where predictions are
right. In particular, parameters at which one is 0 on the whole sample minimise the other.

The slope of m is that of `(y - 1/2) F(x, theta; u)` at the fixed u, divided by the length of g. Parameters
change by Adam on this slope, and shrink towards 0 by the 1-norm's proximal step, because the class is
bounded in the 1-norm; towards the end the shrinking stops, so that margins can grow to gamma.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from tapegrad_papers.wei.samples import lemma_2_3, surrogate_loss

Parameters = Any


@dataclass(frozen=True)
class Network:
    """`output(theta, x, u)` is F(x, theta; u), one number; `room(theta)` is the u that changes nothing."""

    output: Callable[[Parameters, Array, Any], Array]
    room: Callable[[Parameters], Any]


EPSILON = 0.1
ROUNDS, FINAL_ROUNDS = 3, 20
"""Steps to the nearest zero, while training and for what is reported."""
REACH = 5.0
"""How far it is looked for, in units of gamma."""
PENALTY, SHRINKING = 0.2, 0.7
"""How fast the 1-norm is shrunk, in units of the rate, and in which share of the steps."""


def feed_forward(theta: Parameters, x: Array, u: Any) -> Array:
    """`F_{w,d}` of section 3 with u added to every layer, as above."""
    values = x
    for number, ((W, b), own) in enumerate(zip(theta, u, strict=True)):
        z = W @ values + b + own * jnp.sqrt(values @ values + 1)
        values = z if number == len(theta) - 1 else jax.nn.relu(z)
    return values[0]


def recurrent(theta: Parameters, word: Array, u: Any) -> Array:
    """A decoder that reads one symbol in each step and has no other attention: h becomes `W h + E x_i + b`,
    cut off at 0 and 1 (which is `relu(z) - relu(z - 1)`), the same in all steps; then `theta_cls . h + c`."""
    W, E, b, h_0, theta_cls, c = jax.tree.map(jnp.add, theta, u)
    last, _ = lax.scan(lambda h, symbol: (jnp.clip(W @ h + E[:, symbol] + b, 0, 1), None), h_0, word)
    return theta_cls @ last + c


FEED_FORWARD = Network(feed_forward, lambda theta: [jnp.zeros_like(b) for _, b in theta])
RECURRENT = Network(recurrent, lambda theta: jax.tree.map(jnp.zeros_like, theta))


def _nearest_zero(
    output: Callable[[Array], Array], nothing: Array, reach: Array | float, rounds: int
) -> Array:
    """u, as above. None is longer than `reach`: a long one can make many steps with shared weights
    overflow."""

    def nearer(_: int, u: Array) -> Array:
        value, slope = jax.value_and_grad(output)(u)
        u = slope * (slope @ u - value) / (slope @ slope)
        return u * jnp.minimum(1, reach / jnp.linalg.norm(u))

    return lax.fori_loop(0, rounds, nearer, nothing)


@partial(jax.jit, static_argnames=("network", "rounds"))
def signed_margins(
    network: Network, theta: Parameters, xs: Array, signs: Array, reach: Array | float, rounds: int = ROUNDS
) -> Array:
    """m for every x and its sign, +1 or -1, with the derivatives described above; no larger than `reach`."""
    nothing, unravel = ravel_pytree(network.room(theta))

    def one(x: Array, sign: Array) -> Array:
        def output(own: Parameters, u: Array) -> Array:
            return sign * network.output(own, x, unravel(u))

        fixed = partial(output, lax.stop_gradient(theta))
        u = lax.stop_gradient(_nearest_zero(fixed, nothing, reach, rounds))
        moves = output(theta, u) / jnp.linalg.norm(jax.grad(fixed)(u))
        m = jnp.sign(fixed(nothing)) * jnp.linalg.norm(u)
        return m + moves - lax.stop_gradient(moves)

    return jax.vmap(one)(xs, signs)


@partial(jax.jit, static_argnames="network")
def flipping_margins(network: Network, theta: Parameters, xs: Array, signs: Array, reach: float) -> Array:
    """The length of a change that does flip each prediction, negative where the prediction is wrong: of the
    first multiple of u that does, among 400 up to 2 u. Where none does, or where it is longer, `reach`."""
    nothing, unravel = ravel_pytree(network.room(theta))

    def one(x: Array, sign: Array) -> Array:
        def output(u: Array) -> Array:
            return sign * network.output(theta, x, unravel(u))

        u, right = _nearest_zero(output, nothing, reach, FINAL_ROUNDS), output(nothing) > 0
        shares = jnp.linspace(0, 2, 401)[1:]
        flipped = jax.vmap(lambda share: (output(share * u) > 0) != right)(shares)
        first = jnp.where(flipped.any(), shares[flipped.argmax()] * jnp.linalg.norm(u), reach)
        return jnp.where(right, 1, -1) * jnp.minimum(first, reach)

    return jax.vmap(one)(xs, signs)


def hinge_of_margins(network: Network, theta: Parameters, xs: Array, signs: Array, gamma: Array) -> Array:
    """The stand-in for (2.2)."""
    return jax.nn.relu(1 - signed_margins(network, theta, xs, signs, REACH * gamma) / gamma).mean()


def logistic(network: Network, theta: Parameters, xs: Array, signs: Array, gamma: Array) -> Array:
    """Of the output alone: what is usually minimised, for comparison. It knows no gamma."""
    outputs = jax.vmap(lambda x: network.output(theta, x, network.room(theta)))(xs)
    return jnp.logaddexp(0, -signs * outputs).mean()


@partial(jax.jit, static_argnames=("loss", "network", "steps"))
def _train(
    loss: Callable[..., Array],
    network: Network,
    theta: Parameters,
    data: tuple[Array, Array, float],
    rate: float,
    penalty: float,
    steps: int,
) -> Parameters:
    """Adam with a proximal step of the 1-norm."""

    def step(number: int, carry: tuple[Parameters, Parameters, Parameters]) -> Any:
        theta, mean, square = carry
        slope = jax.grad(loss, argnums=1)(network, theta, *data)
        mean = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, mean, slope)
        square = jax.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, square, slope)
        t = number + 1.0
        shrink = jnp.where(t <= SHRINKING * steps, rate * penalty, 0.0)

        def moved(own: Array, a: Array, b: Array) -> Array:
            new = own - rate * (a / (1 - 0.9**t)) / (jnp.sqrt(b / (1 - 0.999**t)) + 1e-8)
            return jnp.sign(new) * jnp.maximum(jnp.abs(new) - shrink, 0)

        return jax.tree.map(moved, theta, mean, square), mean, square

    nothing = jax.tree.map(jnp.zeros_like, theta)
    return lax.fori_loop(0, steps, step, (theta, nothing, nothing))[0]


def margin_loss(margins: NDArray[np.floating], gamma: float) -> float:
    """The mean of (2.2). A negative margin is a wrong prediction."""
    return float(surrogate_loss(np.maximum(margins, 0), gamma).mean())


@dataclass(frozen=True)
class Task:
    """A network, the parameters that training starts from, samples with their signs; and what to test on."""

    network: Network
    theta: Parameters
    samples: Array
    signs: Array
    tests: Array
    wanted: NDArray[np.bool_]
    gamma: float
    rate: float
    steps: int

    def error(self, theta: Parameters) -> float:
        """The share of tests with a wrong prediction."""
        room = self.network.room(theta)
        outputs = jax.jit(jax.vmap(lambda x: self.network.output(theta, x, room)))(self.tests)
        return float(np.mean((np.asarray(outputs) > 0) != self.wanted))

    def learn(self, by_margins: bool) -> Parameters:
        """By the stand-in for (2.2) and the 1-norm, or by the logistic loss alone."""
        loss, penalty = (hinge_of_margins, PENALTY) if by_margins else (logistic, 0.0)
        data = self.samples, self.signs, self.gamma
        return _train(loss, self.network, self.theta, data, self.rate, penalty, self.steps)

    def margins(self, theta: Parameters) -> NDArray[np.floating]:
        """Of the samples, signed."""
        reach = REACH * self.gamma
        return np.asarray(flipping_margins(self.network, theta, self.samples, self.signs, reach))


@dataclass(frozen=True)
class Row:
    """One training, by margins, and beside it one from the same start by the outputs alone."""

    experiment: str
    size: int
    """Of the net (width), of the circuit (gates) or T."""
    seed: int
    samples: int
    error: float
    error_by_outputs: float
    unfit_by_outputs: float
    """The share of the samples that training by the outputs leaves wrong."""
    loss: float
    """(2.2) on the samples."""
    least_margin: float
    norm: float
    norm_by_outputs: float
    parameters: int
    bound: float
    """Samples that suffice for error 0.1 by Lemma 2.3, for the norm and gamma of this net."""


def row_of(experiment: str, size: int, seed: int, task: Task) -> Row:
    """Both trainings and what came of them."""
    theta, other = task.learn(True), task.learn(False)
    margins, alpha = task.margins(theta), norm_of(theta)
    count = sum(leaf.size for leaf in jax.tree.leaves(theta))
    return Row(
        experiment,
        size,
        seed,
        len(task.samples),
        task.error(theta),
        task.error(other),
        float((task.margins(other) <= 0).mean()),
        margin_loss(margins, task.gamma),
        float(margins.min()),
        alpha,
        norm_of(other),
        count,
        lemma_2_3(alpha, task.gamma, count, EPSILON).samples,
    )


def norm_of(theta: Parameters) -> float:
    """alpha: the 1-norm of all parameters."""
    return sum(float(jnp.abs(leaf).sum()) for leaf in jax.tree.leaves(theta))
