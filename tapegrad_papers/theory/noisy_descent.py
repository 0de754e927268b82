"""Gradient descent with noise on perceptrons with ReLU units, as section 5 of Abbe, Sandon describes it."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

Layers = list[tuple[jax.Array, jax.Array]]
"""Weights and biases, layer by layer; of several networks at once, with a first axis for the network."""


@dataclass(frozen=True)
class Descent:
    """W <- W - rate * mean of [gradient of a sample]_range + N(0, noise^2), `steps` times. The loss of a
    sample is (output - label)^2; its gradient is cut off component by component at the overflow range."""

    rate: float
    noise: float
    steps: int
    overflow: float

    @property
    def largest(self) -> float:
        """The A of Corollary 2: no component of a step is larger."""
        return self.rate * self.overflow


class Trained(NamedTuple):
    """The networks in the end; for every network and step the mean over samples of |G|^2, rate included."""

    networks: Layers
    square_norms: NDArray[np.float32]


def perceptrons(sizes: list[int], count: int, seed: int) -> Layers:
    """So many networks, by He's uniform initialisation, biases 0."""
    layers: Layers = []
    key = jax.random.key(seed)
    for before, after in pairwise(sizes):
        key, own = jax.random.split(key)
        bound = (6 / before) ** 0.5
        weights = jax.random.uniform(own, (count, before, after), minval=-bound, maxval=bound)
        layers.append((weights, jnp.zeros((count, after))))
    return layers


def weights_of(networks: Layers) -> int:
    """Number of weights of one network, biases included: the E of Corollary 2."""
    return sum(part[0].size for layer in networks for part in layer)


def output(layers: Layers, x: jax.Array) -> jax.Array:
    """The output of one network for one input, or for one input in each row."""
    for w, b in layers[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = layers[-1]
    return (x @ w + b)[..., 0]


def train(descent: Descent, networks: Layers, x: ArrayLike, y: ArrayLike, seed: int) -> Trained:
    """Every network descends with the mean over all inputs x; row i of y has the labels of network i."""
    inputs, labels = (jnp.asarray(np.asarray(part), jnp.float32) for part in (x, y))
    keys = jax.random.split(jax.random.key(seed), len(labels))
    layers, norms = _train(descent, networks, inputs, labels, keys)
    return Trained(layers, np.asarray(norms))


@partial(jax.jit, static_argnames="descent")
def _train(
    descent: Descent, networks: Layers, x: jax.Array, y: jax.Array, keys: jax.Array
) -> tuple[Layers, jax.Array]:
    def loss(layers: Layers, x: jax.Array, label: jax.Array) -> jax.Array:
        return (output(layers, x) - label) ** 2

    def step(labels: jax.Array, layers: Layers, key: jax.Array) -> tuple[Layers, jax.Array]:
        slopes = jax.vmap(jax.grad(loss), (None, 0, 0))(layers, x, labels)
        slopes, shape = jax.tree.flatten(slopes)
        moves = [descent.rate * jnp.clip(slope, -descent.overflow, descent.overflow) for slope in slopes]
        square = jnp.array([jnp.sum(move**2) for move in moves]).sum() / len(x)
        noise = [
            descent.noise * jax.random.normal(own, move.shape[1:])
            for own, move in zip(jax.random.split(key, len(moves)), moves, strict=True)
        ]
        after = [
            w - move.mean(axis=0) + z
            for w, move, z in zip(jax.tree.leaves(layers), moves, noise, strict=True)
        ]
        return jax.tree.unflatten(shape, after), square

    def one(network: tuple[Layers, jax.Array, jax.Array]) -> tuple[Layers, jax.Array]:
        layers, labels, key = network
        return jax.lax.scan(partial(step, labels), layers, jax.random.split(key, descent.steps))

    return jax.lax.map(one, (networks, y, keys))


def accuracies(networks: Layers, x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    """For each network the share of inputs where the sign of the output is the label; row i of y for it."""
    said = jax.vmap(output, (0, None))(networks, jnp.asarray(np.asarray(x), jnp.float32))
    return ((np.asarray(said) > 0) == (np.asarray(y) > 0)).mean(axis=1)
