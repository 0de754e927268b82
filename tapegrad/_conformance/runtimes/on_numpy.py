"""NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.graph import Graph, patches
from tapegrad._conformance.runtimes.base import (
    ArrayOperations,
    Program,
    cast,
    trained,
    values_of,
    wanted_values,
)
from tapegrad._conformance.training import Training


class NumpyOperations(ArrayOperations):
    """Plain arrays."""

    def constant(self, array: NDArray[Any]) -> NDArray[Any]:
        return cast(array, self.format)

    def product(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        return np.matmul(x, y, dtype=np.int32) if x.dtype == np.int8 else x @ y

    def relu(self, x: NDArray[Any]) -> NDArray[Any]:
        return np.maximum(x, x.dtype.type(0))

    def gathered(self, x: NDArray[Any], inputs: NDArray[Any]) -> NDArray[Any]:
        found = x[:, inputs]
        return found.astype(np.int32) if x.dtype == np.int8 else found

    def convolved(self, x: NDArray[Any], kernel: NDArray[Any], around: int) -> NDArray[Any]:
        flat = kernel.reshape(len(kernel), -1).T
        return self.product(patches(x, 2 * around + 1), flat).transpose(0, 3, 1, 2)

    def below(self, first: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([first, x])

    def to_bytes(self, x: NDArray[Any]) -> NDArray[Any]:
        return x.astype(np.int8)

    def best(self, x: NDArray[Any]) -> NDArray[Any]:
        return (x == x.max(-1, keepdims=True)).astype(x.dtype)


def prepare(graph: Graph, name: str, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run."""
    operations = NumpyOperations(name)
    return lambda inputs: dict(zip(wanted, wanted_values(graph, operations, inputs, wanted), strict=True))


def train(training: Training, level: str) -> dict[str, NDArray[Any]]:
    """By backpropagation written out."""
    kind = np.dtype(training.format)
    levels = [(own.sources, own.into.astype(kind)) for own in training.levels]
    begins = np.cumsum([training.rows.shape[1], *(own.into.shape[1] for own in training.levels)])

    def step(weights: list[Any], row: NDArray[Any], label: float) -> tuple[list[Any], list[Any]]:
        given = row.astype(kind)
        values = values_of(levels, weights, given, lambda v, w: np.concatenate([v, w]))
        every = np.concatenate([given, *values])
        slopes, after = np.zeros_like(every), []
        slopes[-1] = 2 * (every[-1] - kind.type(label))
        for (sources, into), own, value, begin in reversed(
            list(zip(levels, weights, values, begins[:-1], strict=True))
        ):
            here = slopes[begin : begin + len(value)] * (np.abs(value) < 2)
            each = into @ here
            after.append(own - kind.type(training.rate) * (each * every[sources]))
            np.add.at(slopes, sources, each * own)
        return values, after[::-1]

    return trained(training, step, [own.astype(kind) for own in training.weights])
