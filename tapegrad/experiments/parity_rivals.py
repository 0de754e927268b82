"""What the emulator is measured beside: linear algebra, and the perceptron of section 6.1."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

Layers = list[tuple[jax.Array, jax.Array]]


def eliminated(x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """The subset whose parity explains the labels, by Gaussian elimination on whole columns; None if the
    samples contradict each other or leave several subsets."""
    system = np.column_stack([x, y]).astype(bool)
    n, rank = x.shape[1], 0
    for column in range(n):
        pivots = np.flatnonzero(system[rank:, column])
        if len(pivots) == 0:
            return None
        system[[rank, rank + pivots[0]]] = system[[rank + pivots[0], rank]]
        others = system[:, column].copy()
        others[rank] = False
        system[others] ^= system[rank]
        rank += 1
    return None if system[rank:, n].any() else system[:n, n].astype(int)


def mlp_errors(
    train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray], epochs: int = 80, seed: int = 0
) -> tuple[list[float], list[float]]:
    """Training and test error after every epoch of section 6.1's network: 3 hidden layers of 128 ReLU units,
    cross-entropy, SGD with step 0.1 (batches of 10), He's uniform initialisation."""
    key = jax.random.key(seed)
    sizes = [train[0].shape[1], 128, 128, 128, 1]
    layers: Layers = []
    for before, after in pairwise(sizes):
        key, own = jax.random.split(key)
        bound = (6 / before) ** 0.5
        layers.append(
            (jax.random.uniform(own, (before, after), minval=-bound, maxval=bound), jnp.zeros(after))
        )
    x, y = _images(*train)
    errors: tuple[list[float], list[float]] = ([], [])
    for _ in range(epochs):
        key, own = jax.random.split(key)
        layers = _epoch(layers, x, y, jax.random.permutation(own, len(x)))
        for found, data in zip(errors, (train, test), strict=True):
            inputs, labels = _images(*data)
            found.append(float(jnp.mean((_logits(layers, inputs) > 0) != (labels > 0.5))))
    return errors


def _images(x: np.ndarray, y: np.ndarray) -> tuple[jax.Array, jax.Array]:
    return jnp.asarray(2.0 * x - 1, jnp.float32), jnp.asarray(y, jnp.float32)


def _logits(layers: Layers, x: jax.Array) -> jax.Array:
    for w, b in layers[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = layers[-1]
    return (x @ w + b)[:, 0]


def _cross_entropy(layers: Layers, x: jax.Array, y: jax.Array) -> jax.Array:
    z = _logits(layers, x)
    return jnp.mean(jax.nn.softplus(z) - y * z)


@jax.jit
def _epoch(layers: Layers, x: jax.Array, y: jax.Array, order: jax.Array) -> Layers:
    def step(layers: Layers, batch: jax.Array) -> tuple[Layers, None]:
        slopes = jax.grad(_cross_entropy)(layers, x[batch], y[batch])
        return jax.tree.map(lambda w, g: w - 0.1 * g, layers, slopes), None

    return jax.lax.scan(step, layers, order.reshape(-1, 10))[0]
