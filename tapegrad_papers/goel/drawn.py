"""Theorem 1's draw: one architecture and one set of weights for s states, a compiled filter put into them,
and the chance of drawing it.

Definition 5 has the filter `V5 relu(V4 V3 relu(V2 V1 z))` and the head `U1 relu(U2 z)`. The compiled filter
has its maps grouped otherwise (`W5 W4 relu(W3 W2 relu(W1 z))`), so V1 takes up the cells, V2 is W1, V3 is W2,
V4 is W3, and V5 is the product of W5 and W4: one number for each unit of the second ReLU, of which there are
O(s). Biases are the last columns. ReLUs of the first layer that are equal are merged. The grid has work cells
on all sides, as many as the learner asks for.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad._precision import in_double
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.learners.on_grid import Frame
from tapegrad.machines.model import GridMachine
from tapegrad.targets.rcnn.build import Filter, ternary_filter
from tapegrad.targets.rcnn.encoding import PADDING, Cells, clauses_of
from tapegrad.targets.rcnn.network import HEAD_KINKS, Rcnn
from tapegrad.targets.rcnn.predicting import distinct_points
from tapegrad.targets.rcnn.training import RATE, with_dummy
from tapegrad_papers.layers import EXACT

RECTIFIED = (1, 3)
"""The maps of the filter with a ReLU behind them."""
NAMES = ("V1", "V2", "V3", "V4", "V5", "U1", "U2")
HEAD_WIDTH = 100
Matrices = tuple[NDArray[np.float64], ...]


def rounding(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far apart two results for one weight can be. A kink is a sum of powers of 1/3 below 1, and off by
    about the precision; a slope is one over the distance of two kinks, and off by that times its square."""
    return 4 * np.finfo(np.float64).eps * np.maximum(1, weights**2)


def width_of(states: int) -> int:
    """Of the filter: the paper's `100 s`, but for one state, where that is too little."""
    return 100 * max(states, 2)


def shapes_of(states: int, width: int | None = None) -> list[tuple[int, int]]:
    """V1 to V5, U1 and U2, each with a column for the biases."""
    wide, head = width or width_of(states), width or HEAD_WIDTH
    return [(wide, 10), *[(wide, wide + 1)] * 3, (1, wide + 1), (1, head + 1), (head, 2)]


class RawNetwork(eqx.Module):
    """Definition 5 with dense matrices."""

    V: tuple[Any, ...]
    U1: Any
    U2: Any
    layers: int = eqx.field(static=True)
    frame: Frame = eqx.field(static=True)

    def __call__(self, memory: jax.Array, z: jax.Array) -> jax.Array:
        """The output. Only the grid between two layers is kept for the gradient; what lies inside a layer is
        computed again."""
        top, bottom, left, right = self.frame
        rows, columns = memory.shape
        first = jnp.pad(memory * z, ((top, bottom), (left, right)), constant_values=1.0)
        layer = jax.checkpoint(lambda grid: self._layer(grid))
        grid, _ = jax.lax.scan(lambda grid, _: (layer(grid), None), first, length=self.layers)
        main = grid[top : top + rows, left : left + columns].reshape(1, -1)
        return _applied(self.U1, jax.nn.relu(_applied(self.U2, main))).sum()

    def _layer(self, grid: jax.Array) -> jax.Array:
        rows, columns = grid.shape
        padded = jnp.pad(grid, 1, constant_values=PADDING)
        x = jnp.stack([padded[r : r + rows, c : c + columns].ravel() for r in range(3) for c in range(3)])
        for number, matrix in enumerate(self.V):
            x = _applied(matrix, x)
            x = jax.nn.relu(x) if number in RECTIFIED else x
        return x.reshape(rows, columns)


def _applied(matrix: jax.Array, x: jax.Array) -> jax.Array:
    """A x + b for columns, b being the last column of the matrix."""
    return jnp.matmul(matrix[:, :-1], x, precision=EXACT) + matrix[:, -1:]


def draw_raw_network(
    states: int,
    layers: int,
    rng: np.random.Generator,
    width: int | None = None,
    frame: Frame = Frame(),  # noqa: B008
) -> RawNetwork:
    """Algorithm 1's initialisation: every weight uniform in U_s."""
    *V, U1, U2 = (rng.choice(initialisation_set(states), shape) for shape in shapes_of(states, width))
    return RawNetwork(tuple(V), U1, U2, layers, frame)


def regrouped(filter: Filter) -> Matrices:
    """V1 to V5 of a compiled ternary filter, no larger than it needs."""
    relus, bumps, units, digits, place = (own.dense() for own in filter.maps)
    first = np.column_stack([np.asarray(relus.weight), np.asarray(relus.bias)])
    rounded = np.round(first, 14)
    _, kept, merged = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    answers = np.zeros((len(bumps.bias), len(kept)))
    np.add.at(answers.T, merged.reshape(-1), np.asarray(bumps.weight).T)
    value = np.asarray(place.weight) @ np.asarray(digits.weight)
    constant = np.asarray(place.weight) @ np.asarray(digits.bias) + np.asarray(place.bias)
    biases = np.zeros(9), first[kept, 9], bumps.bias, units.bias, constant
    weights = np.eye(9), first[kept, :9], answers, np.asarray(units.weight), value
    return tuple(np.column_stack(pair) for pair in zip(weights, biases, strict=True))


def head_matrices() -> Matrices:
    """U1 and U2: the paper's `f_head` as four ReLUs."""
    kinks, slopes = np.array(HEAD_KINKS).T
    return np.append(slopes, -1.0)[None], np.column_stack([np.ones(len(kinks)), -kinks])


def idle_machine(states: int) -> GridMachine:
    """A learner that halts at once, with this many states."""
    names = tuple(f"q{i}" for i in range(states))
    return GridMachine({}, names[0], name="idle", alphabet=("+", "-"), states=names)


@lru_cache(maxsize=64)
def initialisation_set(states: int) -> NDArray[np.float64]:
    """U_s: every weight that a learner with this many states can have in the architecture, head included. It
    depends on s alone, as the questions about a cell and the contents that can be written do (a machine that
    halts everywhere writes every symbol with every state); which of them are used where, zeros decide. Values
    that differ by rounding are one."""
    if states < 1:
        raise InputError("a machine has at least one state")
    compiled, _ = ternary_filter(Cells(3, states), clauses_of(idle_machine(states)))
    parts = [part.ravel() for part in (*regrouped(compiled), *head_matrices())]
    found = np.unique(np.concatenate([[0.0, 1.0], *parts]))
    sizes = np.unique(np.abs(found))
    sizes = sizes[np.append(True, np.diff(sizes) > rounding(sizes[1:]))]
    both = np.concatenate([-sizes[1:][::-1], sizes])
    used = both[np.unique(_nearest(both, found))]
    used.setflags(write=False)
    return used


def _nearest(values: NDArray[np.float64], sought: NDArray[np.float64]) -> NDArray[np.int64]:
    """The places in an ordered list of the values nearest to those sought."""
    after = np.clip(np.searchsorted(values, sought), 1, len(values) - 1)
    return after - (sought - values[after - 1] < values[after] - sought)


def in_architecture(network: Rcnn) -> list[NDArray[np.float64]]:
    """V1 to V5, U1 and U2 of a compiled ternary network, no larger than it needs, every weight one of U_s.
    Refused where they do not fit."""
    states = len(network.states)
    allowed = initialisation_set(states)
    matrices = []
    own = *regrouped(network.filter), *head_matrices()
    for name, small, shape in zip(NAMES, own, shapes_of(states), strict=True):
        rows, columns = small.shape
        if rows > shape[0] or columns > shape[1]:
            raise Refused(
                f"{name} has {rows} x {columns} weights, and the architecture {shape[0]} x {shape[1]}"
            )
        found = allowed[_nearest(allowed, small)]
        strange = small[np.abs(found - small) > rounding(small)]
        if len(strange):
            raise BrokenNet(f"{name} has the weight {strange[0]:.12g}, which is not in U_s for s = {states}")
        matrices.append(found)
    return matrices


def embedded(network: Rcnn) -> RawNetwork:
    """The network of the architecture that a compiled ternary network is, with 0 where it has no unit."""
    matrices = []
    for found, shape in zip(in_architecture(network), shapes_of(len(network.states)), strict=True):
        rows, columns = found.shape
        full = np.zeros(shape)
        full[:rows, : columns - 1], full[:rows, -1] = found[:, :-1], found[:, -1]
        matrices.append(full)
    *V, U1, U2 = matrices
    return RawNetwork(tuple(V), U1, U2, network.layers, network.frame)


@in_double
def train_raw(network: RawNetwork, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Algorithm 1: from memory 0, one step of SGD on the squared loss for each sample and one for the dummy
    sample. What overflows stays so: most random filters blow every number up."""
    Z, labels = with_dummy(X.astype(float), y.astype(float))
    return np.asarray(_train(network, jnp.asarray(Z), jnp.asarray(labels), jnp.asarray(RATE)))


@eqx.filter_jit
def _train(network: RawNetwork, Z: jax.Array, labels: jax.Array, rate: jax.Array) -> jax.Array:
    def loss(memory: jax.Array, z: jax.Array, label: jax.Array) -> jax.Array:
        return (label - network(memory, z)) ** 2 / 2

    def step(memory: jax.Array, sample: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return memory - rate * jax.grad(loss)(memory, *sample), None

    return jax.lax.scan(step, jnp.zeros(Z.shape), (Z, labels))[0]


@in_double
def predict_raw(network: RawNetwork, memory: NDArray[np.float64], X: NDArray[Any]) -> NDArray[np.int64]:
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

    states: int
    parameters: int
    values: int
    log10_probability: float

    @property
    def constant(self) -> float:
        """The c2 with which the chance is `s^(-c2 s^2)`; there is none for one state."""
        return -self.log10_probability / (self.states**2 * math.log10(self.states))


def success(states: int, width: int | None = None) -> RawChance:
    """The chance that one draw is a given filter and head: the theorem's `s^(-c2 s^2)` with its constants."""
    values = len(initialisation_set(states))
    parameters = sum(rows * columns for rows, columns in shapes_of(states, width))
    return RawChance(states, parameters, values, -parameters * math.log10(values))
