"""The ordinary network of section 6.1 of Abbe, Sandon, as a rival: 3 hidden layers of 128 ReLU units, SGD."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from tapegrad.theory.noisy_descent import Layers, output

HIDDEN = (128, 128, 128)


@dataclass(frozen=True)
class Errors:
    """Errors in the end: the share of wrong answers, the mean of the shares for each of the two labels, so
    that guessing and always saying the same both give 1/2."""

    train: float
    test: float


def fit(
    train: tuple[ArrayLike, ArrayLike],
    test: tuple[ArrayLike, ArrayLike],
    *,
    epochs: int = 80,
    rate: float = 0.1,
    batch: int = 10,
    hidden: tuple[int, ...] = HIDDEN,
    seed: int = 0,
) -> Errors:
    """Cross-entropy, He's uniform initialisation, batches in a new order in every epoch. Samples of the rarer
    label count for more, so that both labels weigh the same."""
    key = jax.random.key(seed)
    x, y = _arrays(train)
    layers: Layers = []
    for before, after in pairwise([x.shape[1], *hidden, 1]):
        key, own = jax.random.split(key)
        bound = (6 / before) ** 0.5
        layers.append(
            (jax.random.uniform(own, (before, after), minval=-bound, maxval=bound), jnp.zeros(after))
        )
    share = jnp.clip(y.mean(), 0.01, 0.99)
    importance = jnp.where(y > 0.5, 0.5 / share, 0.5 / (1 - share))
    whole = len(x) // batch * batch
    for _ in range(epochs):
        key, own = jax.random.split(key)
        order = jax.random.permutation(own, len(x))[:whole].reshape(-1, batch)
        layers = _epoch(layers, x, y, importance, order, rate)
    return Errors(_error(layers, *_arrays(train)), _error(layers, *_arrays(test)))


def _arrays(samples: tuple[ArrayLike, ArrayLike]) -> tuple[jax.Array, jax.Array]:
    x, y = (np.asarray(part) for part in samples)
    return jnp.asarray(2.0 * x - 1, jnp.float32), jnp.asarray(y, jnp.float32)


def _error(layers: Layers, x: jax.Array, y: jax.Array) -> float:
    wrong, ones = np.asarray((output(layers, x) > 0) != (y > 0.5)), np.asarray(y > 0.5)
    return float(np.mean([wrong[part].mean() for part in (ones, ~ones) if part.any()]))


@partial(jax.jit, static_argnames="rate")
def _epoch(
    layers: Layers, x: jax.Array, y: jax.Array, importance: jax.Array, order: jax.Array, rate: float
) -> Layers:
    def loss(layers: Layers, batch: jax.Array) -> jax.Array:
        z = output(layers, x[batch])
        return jnp.mean(importance[batch] * (jax.nn.softplus(z) - y[batch] * z))

    def step(layers: Layers, batch: jax.Array) -> tuple[Layers, None]:
        slopes = jax.grad(loss)(layers, batch)
        return jax.tree.map(lambda w, g: w - rate * g, layers, slopes), None

    return jax.lax.scan(step, layers, order)[0]
