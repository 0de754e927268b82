"""Algorithm 1 to the letter: a network whose weights are all drawn from U_s, and SGD on its memory.

It learns in the sense of the theorem: with a probability that is positive and, for every machine that does
anything, too small to be met. `success` says how small.
"""

import math
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad._precision import in_double
from tapegrad.errors import InputError
from tapegrad.targets.rcnn.encoding import PADDING
from tapegrad.targets.rcnn.exactness import initialisation_set
from tapegrad.targets.rcnn.predicting import distinct_points
from tapegrad.targets.rcnn.training import RATE

Matrix = NDArray[np.float64]


class RawNetwork(eqx.Module):
    """Definition 5 with dense matrices (biases as last columns): filter `V5 relu(V4 V3 relu(V2 V1 z))`, head
    `U1 relu(U2 z)`, and work cells on the right as in the paper."""

    V: tuple[Any, ...]
    U1: Any
    U2: Any
    layers: int = eqx.field(static=True)

    def __call__(self, memory: jax.Array, z: jax.Array) -> jax.Array:
        """The output on `z = [x, 1]`."""
        rows, columns = memory.shape
        grid = jnp.hstack([memory * z, jnp.ones((rows, self.layers))])
        grid = jax.lax.fori_loop(0, self.layers, lambda _, grid: self._layer(grid), grid)
        cells = grid[:, :columns].reshape(1, -1)
        return _affine(self.U1, jax.nn.relu(_affine(self.U2, cells))).sum()

    def _layer(self, grid: jax.Array) -> jax.Array:
        rows, columns = grid.shape
        padded = jnp.pad(grid, 1, constant_values=PADDING)
        patches = [padded[r : r + rows, c : c + columns].ravel() for r in range(3) for c in range(3)]
        hidden = jax.nn.relu(_affine(self.V[1], _affine(self.V[0], jnp.stack(patches))))
        hidden = jax.nn.relu(_affine(self.V[3], _affine(self.V[2], hidden)))
        return _affine(self.V[4], hidden).reshape(rows, columns)


def _affine(matrix: jax.Array, x: jax.Array) -> jax.Array:
    return matrix[:, :-1] @ x + matrix[:, -1:]


def draw_network(states: int, layers: int, rng: np.random.Generator, width: int | None = None) -> RawNetwork:
    """Every weight uniform in U_s; default widths `100 s` and 100, as in Algorithm 1."""
    values = initialisation_set(states)
    wide, head = width or 100 * states, width or 100
    shapes = [(wide, 10), (wide, wide + 1), (wide, wide + 1), (wide, wide + 1), (1, wide + 1)]
    V = tuple(rng.choice(values, shape) for shape in shapes)
    return RawNetwork(V, rng.choice(values, (1, head + 1)), rng.choice(values, (head, 2)), layers)


@in_double
def train(network: RawNetwork, X: NDArray[Any], y: NDArray[Any]) -> Matrix:
    """Algorithm 1: from memory 0, one step of SGD on the squared loss for each sample and one for the dummy
    sample. What overflows stays so: most random filters blow every number up."""
    samples = np.vstack([X, np.ones(X.shape[1])]).astype(float)
    labels = np.append(y, 1).astype(float)
    return np.asarray(
        _train(network, jnp.column_stack([samples, np.ones(len(samples))]), jnp.asarray(labels))
    )


@eqx.filter_jit
def _train(network: RawNetwork, Z: jax.Array, labels: jax.Array) -> jax.Array:
    def loss(memory: jax.Array, z: jax.Array, label: jax.Array) -> jax.Array:
        return (label - network(memory, z)) ** 2 / 2

    def step(memory: jax.Array, sample: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return memory - RATE * jax.grad(loss)(memory, *sample), None

    return jax.lax.scan(step, jnp.zeros(Z.shape), (Z, labels))[0]


@in_double
def predict(network: RawNetwork, memory: Matrix, X: NDArray[Any]) -> NDArray[np.int64]:
    """The signs of the outputs; 0 where the output is 0 or no number, which is no answer."""
    Z, which = distinct_points(X)
    signs = np.sign(_outputs(network, jnp.asarray(memory), jnp.asarray(Z, float)))
    return np.nan_to_num(signs, nan=0).astype(np.int64)[which]


@eqx.filter_jit
def _outputs(network: RawNetwork, memory: jax.Array, Z: jax.Array) -> jax.Array:
    return jax.vmap(network, (None, 0))(memory, Z)


@dataclass(frozen=True)
class RawChance:
    """Parameters, values for each, and the chance of one given setting, as a power of ten."""

    parameters: int
    values: int
    log10_probability: float


def success(states: int, width: int | None = None) -> RawChance:
    """The chance that one draw is a given filter: the theorem's `s^(-c s^2)` with its constants."""
    if states < 1:
        raise InputError("a machine has at least one state")
    values = len(initialisation_set(states))
    wide, head = width or 100 * states, width or 100
    parameters = 10 * wide + 3 * wide * (wide + 1) + wide + 1 + 3 * head + 1
    return RawChance(parameters, values, -parameters * math.log10(values))
