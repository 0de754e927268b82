"""Algorithm 1 and Corollary 2 to the letter: filters with weights drawn from U_s, restarts, a validation set.

It works in the sense of the theorem: with a probability that is positive and, for every machine that does
anything, too small to be met. `success` says how small.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.nets.rcnn.ternary import PADDING
from tapegrad.nets.rcnn.weights import initialisation_set

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class RawNetwork:
    """Definition 5 with dense matrices (biases as last columns): filter `V5 relu(V4 V3 relu(V2 V1 z))`, head
    `U1 relu(U2 z)`, and work cells on the right as in the paper."""

    V: tuple[Matrix, Matrix, Matrix, Matrix, Matrix]
    U1: Matrix
    U2: Matrix
    layers: int

    def grid_output(self, data: Matrix) -> float:
        """The output on a memory layer's grid."""
        rows, columns = data.shape
        grid = np.hstack([data, np.ones((rows, self.layers))])
        with np.errstate(all="ignore"):
            for _ in range(self.layers):
                grid = self._layer(grid)
            cells = grid[:, :columns].reshape(1, -1)
            hidden = np.maximum(_affine(self.U2, cells), 0)
            return float(_affine(self.U1, hidden).sum())

    def _layer(self, grid: Matrix) -> Matrix:
        rows, columns = grid.shape
        padded = np.pad(grid, 1, constant_values=PADDING)
        patches = [padded[r : r + rows, c : c + columns].ravel() for r in range(3) for c in range(3)]
        hidden = np.maximum(_affine(self.V[1], _affine(self.V[0], np.stack(patches))), 0)
        hidden = np.maximum(_affine(self.V[3], _affine(self.V[2], hidden)), 0)
        return _affine(self.V[4], hidden).reshape(rows, columns)


def _affine(matrix: Matrix, x: Matrix) -> Matrix:
    return matrix[:, :-1] @ x + matrix[:, -1:]


def draw_network(states: int, layers: int, rng: np.random.Generator, width: int | None = None) -> RawNetwork:
    """Every weight uniform in U_s; widths `100 s` and 100 as in Algorithm 1 unless told."""
    values = initialisation_set(states)
    wide, head = width or 100 * states, width or 100
    shapes = [(wide, 10), (wide, wide + 1), (wide, wide + 1), (wide, wide + 1), (1, wide + 1)]
    V = tuple(rng.choice(values, shape) for shape in shapes)
    return RawNetwork(V, rng.choice(values, (1, head + 1)), rng.choice(values, (head, 2)), layers)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RawChance:
    """Parameters, values for each, and the chance of one given setting, as a power of ten."""

    parameters: int
    values: int
    log10_probability: float


def success(states: int, width: int | None = None) -> RawChance:
    """The chance that one draw is a given filter: the theorem's `s^(-c s^2)`, with numbers."""
    if states < 1:
        raise InputError("a machine has at least one state")
    values = len(initialisation_set(states))
    wide, head = width or 100 * states, width or 100
    parameters = 10 * wide + 3 * wide * (wide + 1) + wide + 1 + 3 * head + 1
    return RawChance(parameters, values, -parameters * math.log10(values))
