"""What runtimes have in common: the layers written once for all libraries whose arrays look like NumPy's."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.formats import INT8
from tapegrad._conformance.graph import Graph, Layer, walk
from tapegrad._conformance.training import CLIP, Training

Program = Callable[[Mapping[str, NDArray[Any]]], dict[str, NDArray[Any]]]
"""From inputs to the layers that are wanted."""


class Unsupported(Exception):
    """A runtime has no such layer, format or level; it says why."""


def dtype_of(name: str) -> Any:
    """The NumPy type of a format."""
    if name == "bfloat16":
        from ml_dtypes import bfloat16

        return np.dtype(bfloat16)
    return np.dtype(name)


def cast(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Floats in a format; whole numbers as they are."""
    return array.astype(dtype_of(name)) if array.dtype == np.float64 else array


class ArrayOperations(ABC):
    """The layers by operations that all array libraries have; what they call differently is abstract."""

    def __init__(self, name: str) -> None:
        self.format = name
        self._kept: dict[tuple[str, str], Any] = {}

    def array(self, layer: Layer, name: str) -> Any:
        """One of a layer's arrays, made once."""
        key = layer.name, name
        if key not in self._kept:
            self._kept[key] = self.constant(layer.arrays[name])
        return self._kept[key]

    def ready(self, graph: Graph) -> None:
        """Makes all arrays: what is compiled reads the library's own."""
        for layer in graph.layers:
            for name in layer.arrays:
                self.array(layer, name)

    @abstractmethod
    def constant(self, array: NDArray[Any]) -> Any:
        """An array of the library's own, floats in the format."""

    @abstractmethod
    def product(self, x: Any, y: Any) -> Any:
        """A product of matrices; of bytes in 32 bits."""

    @abstractmethod
    def relu(self, x: Any) -> Any:
        """max(x, 0)."""

    @abstractmethod
    def gathered(self, x: Any, inputs: Any) -> Any:
        """`x[:, inputs]`; bytes become whole numbers of 32 bits."""

    @abstractmethod
    def convolved(self, x: Any, kernel: Any, around: int) -> Any:
        """A convolution with zeros around."""

    @abstractmethod
    def below(self, first: Any, x: Any) -> Any:
        """Rows, then other rows."""

    @abstractmethod
    def to_bytes(self, x: Any) -> Any:
        """Whole numbers of 32 bits as bytes."""

    @abstractmethod
    def best(self, x: Any) -> Any:
        """1 where an entry is the greatest of its row, else 0."""

    def sums(self, x: Any) -> Any:
        """Over the last axis."""
        return x.sum(-1)

    def _after(self, layer: Layer, z: Any) -> Any:
        z = self.relu(z) if layer.relu else z
        return self.to_bytes(z) if self.format == INT8 else z

    def dense(self, layer: Layer, x: Any) -> Any:
        z = self.product(x, self.array(layer, "weight")) + self.array(layer, "bias")
        return self._after(layer, z)

    def sparse(self, layer: Layer, x: Any) -> Any:
        terms = self.gathered(x, self.array(layer, "inputs")) * self.array(layer, "weight")
        return self._after(layer, self.sums(terms) + self.array(layer, "bias"))

    def convolution(self, layer: Layer, x: Any) -> Any:
        z = self.convolved(x, self.array(layer, "kernel"), layer.weight.shape[-1] // 2)
        return self._after(layer, z + self.array(layer, "bias").reshape(-1, 1, 1))

    def join(self, layer: Layer, x: Any) -> Any:
        return self.below(self.array(layer, "first"), x)

    def scores(self, layer: Layer, x: Any, y: Any) -> Any:
        return self.product(x, y.T) + self.array(layer, "mask")

    def choose(self, layer: Layer, x: Any) -> Any:
        best = self.best(x)
        return best / self.sums(best)[:, None]

    def mix(self, layer: Layer, x: Any, y: Any, z: Any) -> Any:
        return self.product(x, y) + z


def wanted_values(
    graph: Graph, operations: Any, inputs: Mapping[str, Any], wanted: Sequence[str]
) -> list[Any]:
    """The values of the layers that are wanted."""
    kept = set(wanted)
    return [value for layer, value in walk(graph, operations, inputs) if layer.name in kept]


def values_of(levels: Any, weights: Sequence[Any], row: Any, below: Callable[[Any, Any], Any]) -> list[Any]:
    """Of a network that is trained, the values of every level; `levels` has pairs of the library's arrays."""
    v, found = row, []
    for (sources, into), own in zip(levels, weights, strict=True):
        value = (own * v[sources]) @ into
        value = value.clip(-CLIP, CLIP)
        found.append(value)
        v = below(v, value)
    return found


def trained(
    training: Training,
    step: Callable[[list[Any], NDArray[Any], float], tuple[list[Any], list[Any]]],
    weights: list[Any],
    to_numpy: Callable[[Any], NDArray[Any]] = np.asarray,
) -> dict[str, NDArray[Any]]:
    """All steps, by a function that takes one: from weights, input and label to the values and the new
    weights."""
    found: dict[str, NDArray[Any]] = {}
    for number, (row, label) in enumerate(zip(training.rows, training.labels, strict=True)):
        values, weights = step(weights, row, float(label))
        found |= dict(zip(training.names_of(number), map(to_numpy, [*values, *weights]), strict=True))
    return found
