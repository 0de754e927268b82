"""NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad._conformance.formats import Form
from tapegrad._conformance.runtimes.base import ArrayRuntime, Program, program_of, trained
from tapegrad._conformance.training import Training
from tapegrad.networks.backends.numpy import NumPy


class NumPyRuntime(ArrayRuntime, NumPy):
    """Plain arrays."""

    def __init__(self, form: Form, weights: Any = None) -> None:
        super().__init__(form.cast, weights)
        self.form = form

    def product_of(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        return np.matmul(x, y, dtype=np.int32) if x.dtype == np.int8 else x @ y

    def convolved(self, x: NDArray[Any], kernel: NDArray[Any]) -> NDArray[Any]:
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(x, ((1, 1), (1, 1), (0, 0))), (3, 3), (0, 1)
        )
        return self.product_of(windows.reshape(*x.shape[:2], -1), kernel.reshape(len(kernel), -1).T)

    def as_type(self, x: NDArray[Any], name: str) -> NDArray[Any]:
        return x.astype(name)


def prepare(form: Form, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run."""
    return program_of(NumPyRuntime(form), wanted)


def train(training: Training, level: str) -> dict[str, NDArray[Any]]:
    """By backpropagation written out."""
    form = training.form
    network, rate = form.cast, np.dtype(form.format).type(training.rate)

    def step(weights: dict[str, Any], row: NDArray[Any], label: Any) -> Any:
        values = {"row": row}
        values |= {node.name: value for node, value in NumPyRuntime(form, weights).values(values)}
        slopes, after = {name: np.zeros_like(value) for name, value in values.items()}, dict(weights)
        output = network.outputs["output"]
        slopes[output] += 2 * (values[output] - label)
        for node in reversed(network.nodes):
            slope, x = slopes[node.name], node.reads[0]
            if node.operation == "clip":
                slopes[x] += slope * (np.abs(values[node.name]) < node.number("high"))
            elif node.operation == "affine":
                rows, columns = network.array(node, "rows"), network.array(node, "columns")
                weight = weights[node.arrays["values"]]
                after[node.arrays["values"]] = weight - rate * (slope[0, rows] * values[x][0, columns])
                np.add.at(slopes[x][0], columns, weight * slope[0, rows])
            else:
                first, second = np.split(slope, [values[x].shape[-1]], axis=-1)
                slopes[x] += first
                slopes[node.reads[1]] += second
        return [values[name] for name in training.levels], after

    return trained(training, step)
