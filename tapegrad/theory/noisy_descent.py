"""Gradient descent with noise on a perceptron with ReLU units, as section 5 of Abbe, Sandon describes it."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

Layers = list[tuple[jax.Array, jax.Array]]
"""Weights and biases, layer by layer."""


@dataclass(frozen=True)
class Descent:
    """W <- W - rate * mean of [gradient of a sample]_range + N(0, noise^2), `steps` times. The loss of a sample
    is (output - label)^2; the gradient is cut off component by component at the overflow range."""

    rate: float
    noise: float
    steps: int
    overflow: float

    @property
    def largest(self) -> float:
        """The A of Corollary 2: no component of a step is larger."""
        return self.rate * self.overflow


class Trained(NamedTuple):
    """The weights in the end, and for every step the mean over samples of |G|^2 (the rate included)."""

    layers: Layers
    square_norms: jax.Array


def perceptron(sizes: list[int], seed: int) -> Layers:
    """He's uniform initialisation, biases 0."""
    layers: Layers = []
    key = jax.random.key(seed)
    for before, after in pairwise(sizes):
        key, own = jax.random.split(key)
        bound = (6 / before) ** 0.5
        weights = jax.random.uniform(own, (before, after), minval=-bound, maxval=bound)
        layers.append((weights, jnp.zeros(after)))
    return layers


def weights_of(layers: Layers) -> int:
    """Number of weights, biases included: the E of Corollary 2."""
    return sum(w.size + b.size for w, b in layers)


def output(layers: Layers, x: jax.Array) -> jax.Array:
    """The output for one input or for one input in each row."""
    for w, b in layers[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = layers[-1]
    return (x @ w + b)[..., 0]


def train(descent: Descent, layers: Layers, x: ArrayLike, y: ArrayLike, seed: int) -> Trained:
    """Descends with the mean over all samples given. Row y[t] has the labels of step t, or y is one row for
    all steps; with both labels given for each input (a last axis of two) the mean is over both."""
    inputs = jnp.asarray(np.asarray(x), jnp.float32)
    labels = jnp.asarray(np.asarray(y), jnp.float32)
    return _train(descent, layers, inputs, labels, jax.random.key(seed))


@partial(jax.jit, static_argnames="descent")
def _train(descent: Descent, layers: Layers, x: jax.Array, y: jax.Array, key: jax.Array) -> Trained:
    def loss(layers: Layers, x: jax.Array, y: jax.Array) -> jax.Array:
        return (output(layers, x) - y) ** 2

    def step(layers: Layers, key: jax.Array) -> tuple[Layers, jax.Array]:
        slopes = jax.vmap(jax.grad(loss), (None, 0, 0))(layers, x, y)
        moves = jax.tree.map(
            lambda g: descent.rate * jnp.clip(g, -descent.overflow, descent.overflow), slopes
        )
        square = sum(jnp.sum(move**2) for move in jax.tree.leaves(moves)) / len(x)
        leaves, shape = jax.tree.flatten(layers)
        keys = jax.random.split(key, len(leaves))
        noise = [descent.noise * jax.random.normal(k, w.shape) for k, w in zip(keys, leaves, strict=True)]
        mean = [move.mean(axis=0) for move in jax.tree.leaves(moves)]
        after = [w - m + z for w, m, z in zip(leaves, mean, noise, strict=True)]
        return jax.tree.unflatten(shape, after), jnp.asarray(square)

    return Trained(*jax.lax.scan(step, layers, jax.random.split(key, descent.steps)))


@jax.jit
def _accuracy(layers: Layers, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.mean((output(layers, x) > 0) == (y > 0))


def accuracy(layers: Layers, x: ArrayLike, y: ArrayLike) -> float:
    """The share of inputs on which the sign of the output is the label."""
    return float(_accuracy(layers, jnp.asarray(np.asarray(x), jnp.float32), jnp.asarray(np.asarray(y))))
