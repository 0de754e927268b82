"""Layers in compiled loops: the same arithmetic as in JAX, without what the compiler would add to it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from tapegrad._jit import njit
from tapegrad.networks.form import Dense

BLOCK = 64
"""Patterns that go through a stack together: a block stays in the processor's cache."""


class ColumnLayers(NamedTuple):
    """Maps one below the other, each as the entries of its columns. A map reads the places from `inputs[i]`
    on and writes those from `outputs[i]` on."""

    column_start: Int[np.ndarray, " columns"]
    rows: Int[np.ndarray, " entries"]
    values: Float[np.ndarray, " entries"]
    bias: Float[np.ndarray, " rows"]
    inputs: Int[np.ndarray, " maps"]
    outputs: Int[np.ndarray, " maps"]
    relu: Bool[np.ndarray, " layers"]


def column_layers(layers: Sequence[Dense]) -> ColumnLayers:
    """Dense layers in the form that `run_columns` reads."""
    maps = [layer.map.entries() for layer in layers]
    inputs = np.concatenate([[0], np.cumsum([own.width for own in maps])])
    columns = np.concatenate([start + own.columns for start, own in zip(inputs, maps, strict=False)])
    order = np.argsort(columns, kind="stable")
    return ColumnLayers(
        np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=inputs[-1]))]),
        np.concatenate([own.rows for own in maps])[order],
        np.concatenate([own.values for own in maps]).astype(np.float64)[order],
        np.concatenate([own.bias for own in maps]).astype(np.float64),
        inputs,
        np.concatenate([[0], np.cumsum([len(own) for own in maps])]),
        np.array([layer.activation == "relu" for layer in layers]),
    )


@njit(nogil=True)
def run_columns(layers, x, watched):  # pragma: no cover - compiled
    """The layers on one vector, what is 0 skipped; and whether one of the units `watched` of the last ReLU
    layer is above 1/2."""
    active = False
    for i in range(len(layers.relu)):
        after = layers.bias[layers.outputs[i] : layers.outputs[i + 1]].copy()
        for place in range(len(x)):
            if x[place] != 0:
                column = layers.inputs[i] + place
                for e in range(layers.column_start[column], layers.column_start[column + 1]):
                    after[layers.rows[e]] += layers.values[e] * x[place]
        if layers.relu[i]:
            after = np.maximum(after, 0.0)
            active = False  # the last ReLU decides
            for unit in watched:
                active |= unit < len(after) and after[unit] > 0.5
        x = after
    return x, active
