"""Primary networks: f_theta as a function of all its weights in one row."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tapegrad.errors import InputError
from tapegrad.targets.descent.numbers import Numbers


class PrimaryNetwork(Protocol):
    """Any function of theta and a batch of inputs, that says how many weights it takes and how large its
    outputs can become (the stopping bound must lie above its loss)."""

    @property
    def weights(self) -> int:
        """Length of theta."""
        ...

    def __call__(self, theta: Numbers, x: Numbers) -> Array:
        """One row of outputs for each row of inputs."""
        ...

    def largest_output(self, x: NDArray[np.float64], largest_weight: float) -> float:
        """A bound of |f_theta(x)| for all weights up to this size."""
        ...


class MLP(eqx.Module):
    """Fully connected layers; theta holds, layer by layer, the matrix row by row (one row for each unit, its
    bias last). Activations: `relu` between layers, or `step` (1 for t >= 0) after every layer."""

    sizes: tuple[int, ...] = eqx.field(static=True)
    activation: str = eqx.field(static=True, default="relu")

    def __init__(self, sizes: Sequence[int], activation: str = "relu") -> None:
        if len(sizes) < 2 or min(sizes) < 1:
            raise InputError("a network has at least two sizes, each of at least 1", where=f"sizes {sizes}")
        if activation not in ("relu", "step"):
            raise InputError(f"there is no activation {activation!r}", advice="Choose relu or step.")
        self.sizes, self.activation = tuple(sizes), activation

    @property
    def weights(self) -> int:
        """All entries of all matrices."""
        return sum(rows * (columns + 1) for columns, rows in pairwise(self.sizes))

    def __call__(self, theta: Numbers, x: Numbers) -> Array:
        used = 0
        for layer, (columns, rows) in enumerate(pairwise(self.sizes), 1):
            matrix = theta[used : used + rows * (columns + 1)].reshape(rows, columns + 1)
            used += matrix.size
            x = x @ matrix[:, :-1].T + matrix[:, -1]
            if self.activation == "step":
                x = jnp.where(x >= 0, 1.0, 0.0)
            elif layer < len(self.sizes) - 1:
                x = jax.nn.relu(x)
        return x

    def largest_output(self, x: NDArray[np.float64], largest_weight: float) -> float:
        """Each layer multiplies by at most (fan-in + 1) times the largest weight."""
        if self.activation == "step":
            return 1.0
        size = float(np.abs(x).max(initial=1.0))
        for columns in self.sizes[:-1]:
            size = max(1.0, size * columns * largest_weight + largest_weight)
        return size


def linear(inputs: int, outputs: int = 1) -> MLP:
    """One layer, no activation: W x + b."""
    return MLP((inputs, outputs))


def perceptron(inputs: int, outputs: int = 1) -> MLP:
    """One layer of threshold units: 1 where w . x + b >= 0, else 0."""
    return MLP((inputs, outputs), "step")
