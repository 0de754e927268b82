"""Noisy gradient descent (Abbe, Sandon, section 5): how it moves a network, and what it cannot exceed.

Each step is W <- W - E G(W(X), F(X)) + Z, with noise Z of standard deviation sigma on every weight, and G the
gradient of a sample times the rate, cut off at the overflow range. The accuracy after T steps exceeds 1/2 by
at most the total variation between the weights trained on F and those trained on random labels, and that is
bounded by the junk flow, JF_T = sum over t of (E |G_(t-1)(W(X), Y)|^2)^(1/2), W trained on random labels Y.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import log2, sqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from tapegrad.errors import InputError
from tapegrad_papers.abbe_sandon.cross_predictability import all_bits

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
    """The trained networks; for every network and step the mean over samples of |G|^2, rate included."""

    networks: Layers
    square_norms: NDArray[np.float32]


def perceptrons(sizes: list[int], count: int, seed: int) -> Layers:
    """`count` networks, by He's uniform initialisation, biases 0."""
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


@dataclass(frozen=True)
class JunkFlow:
    """The flow, its share in every step, and the standard deviation of single runs."""

    total: float
    steps: NDArray[np.float64]
    spread: float


def both_labels(x: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Every input twice, with the labels 1 and -1: the mean over these is that over random labels."""
    return np.repeat(x, 2, axis=0), np.tile(np.array([1, -1], np.float32), len(x))


def junk_flow(descent: Descent, networks: Layers, x: NDArray[np.float32], seed: int = 0) -> JunkFlow:
    """Trains the networks on random labels; the mean over them, each with noise of its own, stands for the
    expectation over the noise."""
    inputs, labels = both_labels(x)
    runs = len(networks[0][0])
    norms = train(descent, networks, inputs, np.tile(labels, (runs, 1)), seed).square_norms
    steps = np.sqrt(norms.mean(axis=0, dtype=np.float64))
    return JunkFlow(float(steps.sum()), steps, float(np.sqrt(norms).sum(axis=1).std()))


class ParityDescent(NamedTuple):
    """Noisy descent on parities: the accuracy of every run on all inputs, the junk flow, and the weights."""

    accuracies: NDArray[np.float64]
    flow: float
    weights: int


def on_parities(
    descent: Descent, subsets: ArrayLike, hidden: int, seeds: tuple[int, int, int]
) -> ParityDescent:
    """One run for the parity of each subset, with a network and noise of its own, following the mean gradient
    over all inputs. The seeds are those of the networks, of the junk flow and of the noise."""
    chosen = np.asarray(subsets)
    runs, n = chosen.shape
    bits = all_bits(n)
    x = (2 * bits - 1).astype(np.float32)
    labels = 1 - 2 * (chosen @ bits.T % 2)
    networks = perceptrons([n, hidden, 1], runs, seeds[0])
    # Each input twice, as for random labels: the mean is the same, and one compiled program serves both.
    trained = train(descent, networks, both_labels(x)[0], np.repeat(labels, 2, axis=1), seeds[2])
    flow = junk_flow(descent, networks, x, seeds[1]).total
    return ParityDescent(accuracies(trained.networks, x, labels), flow, weights_of(networks))


def theorem_3(junk_flow: float, noise: float, cross_predictability: float) -> float:
    """1/2 + JF / sigma * CP_m^(1/4). (The proof gives half of the excess: Pinsker's 1/(2 sigma) in (24)
    becomes 1/sigma in (37).)"""
    _check_noise(noise)
    return 0.5 + junk_flow / noise * cross_predictability**0.25


def corollary_2(
    largest: float, noise: float, weights: int, steps: int, samples: int | None, infinite: float
) -> float:
    """1/2 + A / sigma * sqrt(E) T (1/m + (1 - 1/m) CP)^(1/4), from |G| <= A for each of E weights; no
    number of samples means that the gradient is the expectation over all inputs."""
    _check_noise(noise)
    share = 1 / samples if samples else 0.0
    return theorem_3(largest * sqrt(weights) * steps, noise, share + (1 - share) * infinite)


def theorem_6_bound(junk_flow: float, noise: float, n: int) -> float:
    """1/2 + JF / (2 sigma) * 2^(-n/2), for parities of n bits and gradients over all inputs: Lemma 7 in the
    place of (26) to (33) gives the square root of CP = 2^-n in the place of its fourth root."""
    _check_noise(noise)
    return 0.5 + junk_flow / (2 * noise) * 2 ** (-n / 2)


def theorem_6_excess(n: int, weights: int) -> float:
    """log2 of the excess over 1/2 with all parameters at the limits that Theorem 6 allows: T, rate and range
    2^(n/10), variance 2^(-n/10). JF <= T * rate * range * sqrt(E), so it is sqrt(E)/2 * 2^(-3n/20)."""
    flow = 3 * n / 10 + log2(weights) / 2
    return flow + n / 20 - 1 - n / 2


def theorem_6_from(weights: Callable[[int], int], most: int = 100_000) -> int:
    """The "sufficiently large n": from which on descent on a network of `weights(n)` weights stays below
    1/2 + 2^(-n/10). Found by trying; `weights` must be a polynomial."""
    last = max((n for n in range(1, most) if theorem_6_excess(n, weights(n)) > -n / 10), default=0)
    if last == most - 1:
        raise InputError(f"the network is too large for the bound at every n below {most:,}")
    return last + 1


def _check_noise(noise: float) -> None:
    if not noise > 0:
        raise InputError("the bounds are for descent with noise; its standard deviation must be positive")
