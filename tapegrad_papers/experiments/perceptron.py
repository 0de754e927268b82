"""The ordinary network of section 6.1 of Abbe, Sandon, as a rival: 3 hidden layers of 128 ReLU units, SGD."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from tapegrad_papers.theory.noisy_descent import Layers, output, perceptrons

HIDDEN = (128, 128, 128)


@dataclass(frozen=True)
class Errors:
    """Shares of wrong answers after each epoch: the mean of the shares for the two labels, so that guessing
    and always saying the same both give 1/2."""

    train_by_epoch: list[float]
    test_by_epoch: list[float]

    @property
    def train(self) -> float:
        """In the end."""
        return self.train_by_epoch[-1]

    @property
    def test(self) -> float:
        """In the end."""
        return self.test_by_epoch[-1]


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
    x, y = _arrays(train)
    networks = perceptrons([x.shape[1], *hidden, 1], 1, seed)
    layers: Layers = jax.tree.map(lambda part: part[0], networks)
    share = jnp.clip(y.mean(), 0.01, 0.99)
    importance = jnp.where(y > 0.5, 0.5 / share, 0.5 / (1 - share))
    whole = len(x) // batch * batch
    unseen, errors = _arrays(test), Errors([], [])
    for key in jax.random.split(jax.random.key(seed + 1), epochs):
        order = jax.random.permutation(key, len(x))[:whole].reshape(-1, batch)
        layers = _epoch(layers, x, y, importance, order, rate)
        errors.train_by_epoch.append(_error(layers, x, y))
        errors.test_by_epoch.append(_error(layers, *unseen))
    return errors


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
