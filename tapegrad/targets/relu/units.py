"""The whole network in flat arrays: every unit of every layer, one after the other, two inputs each."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.layered import LayeredCircuit
from tapegrad.errors import BrokenNet
from tapegrad.targets.relu.corrections import CORRECTIONS, relu_layers
from tapegrad.targets.relu.gadgets import HIDDEN_COUNT, HIDDEN_ROWS, OUT_ROWS, READ_OUT, Row


class Units(NamedTuple):
    """Unit u is `relu(weights[u, 0] * x[inputs[u, 0]] + weights[u, 1] * x[inputs[u, 1]] + biases[u])`
    where x is the layer before; units of layer i stand from `bounds[i]` to `bounds[i + 1]`. The last
    layer is linear. An input that is not used is 0 and has weight 0."""

    inputs: NDArray[np.int32]
    weights: NDArray[np.floating]
    biases: NDArray[np.floating]
    bounds: NDArray[np.int64]


def layer_sizes(circuit: LayeredCircuit, correction: str) -> NDArray[np.int64]:
    """Units in every layer of the network: for each circuit layer the hidden units of its gates, the
    gates, twice as many units that cut at both thresholds, the corrected gates; at the end the outputs."""
    hidden = np.concatenate([[0], np.cumsum(HIDDEN_COUNT[circuit.kinds])])
    gates = np.diff(circuit.bounds)
    columns = [np.diff(hidden[circuit.bounds]), gates]
    if CORRECTIONS[correction] is not None:
        columns += [2 * gates, gates]
    return np.append(np.stack(columns, axis=1).reshape(-1), len(circuit.outputs))


def lay_out(circuit: LayeredCircuit, correction: str, dtype: str) -> Units:
    """The network of a layered circuit (Lemma B.1 and Proposition 3.4, layer after layer)."""
    sizes = layer_sizes(circuit, correction)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    units = Units(
        np.zeros((bounds[-1], 2), np.int32),
        np.zeros((bounds[-1], 2), dtype),
        np.zeros(bounds[-1], dtype),
        bounds,
    )
    per_layer = relu_layers(correction)
    # For each gate: where its circuit layer starts, its place there, the place of its first hidden unit.
    layer = np.repeat(np.arange(circuit.depth), np.diff(circuit.bounds))
    place = np.arange(circuit.size) - circuit.bounds[layer]
    many = HIDDEN_COUNT[circuit.kinds]
    before = np.cumsum(many) - many
    hidden = before - before[circuit.bounds[layer]]
    operands = np.stack([circuit.left, circuit.right], axis=1)

    at = bounds[per_layer * layer] + hidden
    for which in (0, 1):
        has = many > which
        _set(units, at[has] + which, operands[has], HIDDEN_ROWS[circuit.kinds[has], which])
    at = bounds[per_layer * layer + 1] + place
    second = np.where(many == 2, hidden + 1, 0)
    _set(units, at, np.stack([hidden, second], axis=1), OUT_ROWS[circuit.kinds])

    chosen = CORRECTIONS[correction]
    if chosen is not None:
        cuts, difference = chosen.rows(dtype)
        at = bounds[per_layer * layer + 2] + 2 * place
        for which, cut in enumerate(cuts):
            _set(units, at + which, _one(place), cut)
        at = bounds[per_layer * layer + 3] + place
        _set(units, at, np.stack([2 * place, 2 * place + 1], axis=1), difference)
    outputs = np.arange(len(circuit.outputs))
    _set(units, bounds[-2] + outputs, _one(outputs), READ_OUT)
    return units


def _one(place: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.stack([place, np.zeros_like(place)], axis=1)


def _set(
    units: Units, at: NDArray[np.int64], inputs: NDArray[np.integer], rows: Row | NDArray[np.floating]
) -> None:
    table = np.asarray(rows)
    units.weights[at] = table[..., :2]
    units.biases[at] = table[..., 2]
    units.inputs[at] = np.where(units.weights[at] != 0, inputs, 0)


def check_places(units: Units, inputs: int) -> None:
    """Every input of every unit exists in the layer before: engines rely on it."""
    bounds = units.bounds
    total = len(units.biases)
    if (
        bounds.ndim != 1
        or len(bounds) < 2
        or bounds[0] != 0
        or bounds[-1] != total
        or (np.diff(bounds) < 0).any()
    ):
        raise BrokenNet("the layers of the network do not follow one another")
    if units.inputs.shape != (total, 2) or units.weights.shape != (total, 2):
        raise BrokenNet("not every unit has two inputs with weights")
    sizes = np.diff(bounds)
    # A layer of constants may follow an empty one; its units then name place 0 with weight 0.
    room = np.maximum(np.append(inputs, sizes[:-1]), 1)
    if ((units.inputs < 0) | (units.inputs >= np.repeat(room, sizes)[:, None])).any():
        raise BrokenNet("a unit reads from outside the layer before it")
