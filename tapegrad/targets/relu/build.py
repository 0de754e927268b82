"""From a layered circuit to its network, with two inputs to a unit; and circuits of a given depth."""

import numpy as np
from jaxtyping import Float, Int

from tapegrad.circuits.layered import LARGEST, LayeredCircuit, LayerState
from tapegrad.circuits.model import Gate
from tapegrad.errors import Refused
from tapegrad.networks.form import Stack
from tapegrad.source import Rewriting
from tapegrad.targets.relu.constants import (
    CORRECTIONS,
    HIDDEN_COUNT,
    HIDDEN_ROWS,
    OUT_ROWS,
    READ_OUT,
    Row,
    relu_layers,
)


def layer_sizes(circuit: LayeredCircuit, correction: str) -> Int[np.ndarray, " layers"]:
    """Units in every layer of the network: for each circuit layer the hidden units of its gates, the
    gates, twice as many units that cut at both thresholds, the corrected gates; at the end the outputs."""
    hidden = np.concatenate([[0], np.cumsum(HIDDEN_COUNT[circuit.kinds])])
    gates = np.diff(circuit.bounds)
    columns = [np.diff(hidden[circuit.bounds]), gates]
    if CORRECTIONS[correction] is not None:
        columns += [2 * gates, gates]
    return np.append(np.stack(columns, axis=1).reshape(-1), len(circuit.outputs))


def lay_out(circuit: LayeredCircuit, correction: str, dtype: str) -> Stack:
    """The network of a layered circuit (Lemma B.1 and Proposition 3.4, layer after layer)."""
    sizes = layer_sizes(circuit, correction)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    stack = Stack(
        np.zeros((bounds[-1], 2), np.int32),
        np.zeros((bounds[-1], 2), dtype),
        np.zeros(bounds[-1], dtype),
        bounds,
        len(circuit.inputs),
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
        _set(stack, at[has] + which, operands[has], HIDDEN_ROWS[circuit.kinds[has], which])
    at = bounds[per_layer * layer + 1] + place
    second = np.where(many == 2, hidden + 1, 0)
    _set(stack, at, np.stack([hidden, second], axis=1), OUT_ROWS[circuit.kinds])

    chosen = CORRECTIONS[correction]
    if chosen is not None:
        cuts, difference = chosen.rows(dtype)
        at = bounds[per_layer * layer + 2] + 2 * place
        for which, cut in enumerate(cuts):
            _set(stack, at + which, _one(place), cut)
        at = bounds[per_layer * layer + 3] + place
        _set(stack, at, np.stack([2 * place, 2 * place + 1], axis=1), difference)
    outputs = np.arange(len(circuit.outputs))
    _set(stack, bounds[-2] + outputs, _one(outputs), READ_OUT)
    return stack


def _one(place: Int[np.ndarray, " units"]) -> Int[np.ndarray, "units two"]:
    return np.stack([place, np.zeros_like(place)], axis=1)


def _set(
    stack: Stack,
    at: Int[np.ndarray, " units"],
    inputs: Int[np.ndarray, "units two"],
    rows: Row | Float[np.ndarray, "units three"],
) -> None:
    table = np.asarray(rows)
    stack.weights[at] = table[..., :2]
    stack.biases[at] = table[..., 2]
    stack.inputs[at] = np.where(stack.weights[at] != 0, inputs, 0)


def padded(circuit: LayeredCircuit, depth: int, correction: str) -> Rewriting:
    """The circuit with identity layers at its end, so that its net has `depth` ReLU layers (proof of
    Theorem 3.1). Each becomes an identity and a correction, as in the paper. The outputs are those of the
    very last layer."""
    each = relu_layers(correction)
    own = each * circuit.depth
    if depth < own or depth % each:
        raise Refused(
            f"the net cannot have {depth:,} ReLU layers: its circuit needs {own:,}, and layers are added "
            f"{each} at a time",
            advice=f"Choose {max(own, depth + -depth % each):,}.",
        )
    layers, outputs = depth // each - circuit.depth, len(circuit.outputs)
    if circuit.size + layers * max(1, outputs) > LARGEST:
        raise Refused(
            f"padded to {depth:,} ReLU layers, the circuit would have more than {LARGEST:,} gates",
            advice="Choose a smaller depth.",
        )
    last = circuit.layer(circuit.depth).wires
    after = LayeredCircuit(
        inputs=circuit.inputs,
        outputs=circuit.outputs,
        kinds=np.append(circuit.kinds, np.full(layers * outputs, Gate.ID, np.uint8)),
        left=np.append(circuit.left, np.tile(np.arange(outputs, dtype=np.int32), layers)),
        right=np.append(circuit.right, np.zeros(layers * outputs, np.int32)),
        wires=np.append(circuit.wires, np.tile(last, layers)),
        bounds=np.append(circuit.bounds, circuit.bounds[-1] + outputs * np.arange(1, layers + 1)),
        name=circuit.name,
    )

    def decode(state: LayerState) -> LayerState | None:
        if state.layer == after.depth:
            return LayerState(circuit.depth, state.bits)
        return state if state.layer < circuit.depth else None

    return Rewriting("identity layers", circuit, after, lambda state: state, decode)
