"""The same functions learned by an ordinary network, 3 hidden layers of 128 ReLU units trained by SGD as in
section 6.1 of Abbe, Sandon, and by compiled networks."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from tapegrad import learners
from tapegrad._compile import compile
from tapegrad.learners import on_grid as grid_learners
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.predicting import predict
from tapegrad.targets.rcnn.training import memorise
from tapegrad_papers.abbe_sandon.descent import Layers, output, perceptrons

HIDDEN, BATCH = (128, 128, 128), 10


@dataclass(frozen=True)
class Errors:
    """Shares of wrong answers after each epoch: the mean of the shares for the two labels, so that guessing
    and always giving the same answer both score 1/2."""

    train_by_epoch: list[float]
    test_by_epoch: list[float]

    @property
    def train(self) -> float:
        """After the last epoch."""
        return self.train_by_epoch[-1]

    @property
    def test(self) -> float:
        """After the last epoch."""
        return self.test_by_epoch[-1]


def fit(
    train: tuple[ArrayLike, ArrayLike],
    test: tuple[ArrayLike, ArrayLike],
    *,
    epochs: int = 80,
    rate: float = 0.1,
    batch: int = BATCH,
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


MOST_LAYERS = 10_000_000


@dataclass(frozen=True)
class Learned:
    """How a trained network did on fresh inputs, and how many samples it was trained on."""

    samples: int
    accuracy: float


def practical(learner: learners.Learner, **options: Any) -> PracticalNet:
    """The practical network of a learner."""
    net = compile(learner, "emulator", **options).net
    assert isinstance(net, PracticalNet)
    return net


def until_done(
    learner: learners.Learner, x: ArrayLike, y: ArrayLike, seed: int
) -> tuple[PracticalNet, EmulatorCarry]:
    """Trains the practical network on the samples, one after the other, until it answers by itself."""
    net = practical(learner)
    carry = net.start(learner.start(x, y, seed))
    while carry.answer is None and not net.done(carry):
        carry = net.advance(carry, 1, "fast")
    return net, carry


def by_emulator(subset: np.ndarray, seed: int, tests: int = 200) -> Learned:
    """Plain SGD on the emulator of Gaussian elimination, until it answers by itself: about 2n samples."""
    n = len(subset)
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (8 * n + 40, n))
    net, carry = until_done(learners.parity(n), x, x @ subset % 2, seed)
    test = rng.integers(0, 2, (tests, n))
    said = net.outputs(carry, test, rng.integers(0, 2, tests)) > 0
    return Learned(carry.steps, float(np.mean(said == (test @ subset % 2 == 1))))


def by_rcnn(subset: np.ndarray, seed: int, tests: int = 8) -> Learned:
    """Plain SGD memorises n + 6 samples; the forward pass eliminates. All samples are in the grid, so their
    number is fixed in advance; six more than n span everything but once in 64 times."""
    n = len(subset)
    rng = np.random.default_rng(seed)
    X, test = rng.choice([-1, 1], (n + 6, n)), rng.choice([-1, 1], (tests, n))
    learner = grid_learners.parity()
    network = Rcnn.of(learner.machine, len(X), n, MOST_LAYERS, frame=learner.frame)
    *_, last = memorise(network, X.astype(float), _labels(X, subset).astype(float), engine="fast")
    found = predict(network, last.memory, test)
    return Learned(len(X), float(np.mean(found.labels == _labels(test, subset))))


def _labels(X: np.ndarray, subset: np.ndarray) -> np.ndarray:
    """The product of the features in the subset."""
    return np.where(subset, X, 1).prod(axis=1)


@dataclass(frozen=True)
class Images:
    """The same task for the ordinary network and for the compiled one."""

    side: int
    images: int
    perceptron: Errors
    emulator: Learned


def images(side: int = 13, count: int = 1000, epochs: int = 80, seed: int = 0) -> Images:
    """The paper's own settings; `count` images to train on and as many to test on, of side x side squares
    that are black with chance 1/2."""
    rng = np.random.default_rng(seed)
    n = side * side
    train, test = rng.integers(0, 2, (2, count, n))
    errors = fit((train, train.sum(axis=1) % 2), (test, test.sum(axis=1) % 2), epochs=epochs, seed=seed)
    return Images(side, count, errors, by_emulator(np.ones(n, int), seed))
