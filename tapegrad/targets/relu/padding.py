"""Padding to a given depth: identity layers behind the outputs (proof of Theorem 3.1)."""

import numpy as np

from tapegrad.circuits.layered import LayeredCircuit, LayerState
from tapegrad.circuits.model import Gate
from tapegrad.errors import Refused
from tapegrad.source import Rewriting
from tapegrad.targets.relu.corrections import relu_layers


def padded(circuit: LayeredCircuit, depth: int, correction: str) -> Rewriting:
    """The circuit with identity layers at its end, so that its net has `depth` ReLU layers. Each becomes
    an identity and a correction, as in the paper. The outputs are those of the very last layer."""
    each = relu_layers(correction)
    own = each * circuit.depth
    if depth < own or depth % each:
        raise Refused(
            f"the net cannot have {depth:,} ReLU layers: its circuit needs {own:,}, and layers are added "
            f"{each} at a time",
            advice=f"Choose {max(own, depth + -depth % each):,}.",
        )
    layers, outputs = depth // each - circuit.depth, len(circuit.outputs)
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
