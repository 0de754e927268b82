"""In words: which gate a unit serves, what it computes, and which line of the paper it comes from."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tapegrad.circuits.model import Gate
from tapegrad.errors import InputError
from tapegrad.networks.form import formula
from tapegrad.targets.relu.constants import CORRECTIONS, GADGETS, HIDDEN_COUNT, relu_layers

if TYPE_CHECKING:
    from tapegrad.targets.relu.net import ReluNet


def unit_names(net: "ReluNet") -> Iterator[str]:
    """Every unit as LAYER.UNIT."""
    for layer in range(net.stack.layers):
        yield from (f"{layer}.{unit}" for unit in range(net.stack.size(layer)))


def explain(net: "ReluNet", unit: str) -> str:
    """A sentence or two about one unit."""
    layer, row = _place(net, unit)
    here = int(net.stack.bounds[layer]) + row
    if layer < net.depth and row >= net.stack.size(layer):
        return f"Unit {row} of ReLU layer {layer}: padding, all weights zero (Lemma B.1)."
    computed = _formula(net, here)
    if layer == net.depth:
        return (
            f"Output {net.output_names[row]!r}: {computed}, which takes the bits 0 and 1 to -1 and +1 "
            "(proof of Theorem 3.1)."
        )
    step, part = divmod(layer, relu_layers(net.correction))
    place = _gate_of(net, step, part, row)
    said = (
        f"Unit {row} of ReLU layer {layer}: relu({computed}).",
        _role(net, part, row),
        f"It serves {_gate(net, step, place)}.",
    )
    return " ".join(said)


def _place(net: "ReluNet", unit: str) -> tuple[int, int]:
    layer, dot, row = unit.partition(".")
    if not (dot and layer.isdecimal() and row.isdecimal() and len(unit) < 40):
        raise InputError(f"{unit[:40]!r} does not name a unit", advice="Write LAYER.UNIT, as in 0.3.")
    place = int(layer), int(row)
    if place[0] <= net.depth:
        size = net.stack.size(place[0])
        if place[0] < net.depth:
            size = net.padded_width or size
        if place[1] < size:
            return place
    raise InputError(f"the net has no unit {unit!r}", advice=f"Its layers are 0 to {net.depth}.")


def _formula(net: "ReluNet", unit: int) -> str:
    """The unit's own weights and bias, as stored: `x[3] + x[5] - 1`."""
    pairs = zip(net.stack.inputs[unit].tolist(), net.stack.weights[unit].tolist(), strict=True)
    terms = [(f"x[{place}]", weight) for place, weight in pairs if weight]
    return formula(terms, float(net.stack.biases[unit]))


def _gates_before(net: "ReluNet", step: int) -> int:
    """Gates in the circuit layers before this one (counting from 0)."""
    return sum(net.layer_width(i) for i in range(1, step + 1))


def _gate_of(net: "ReluNet", step: int, part: int, row: int) -> int:
    """The place of the gate that a unit serves, in its circuit layer."""
    if part == 0:
        first = _gates_before(net, step)
        kinds = net.gates.kinds[first : first + net.layer_width(step + 1)]
        return int(np.searchsorted(np.cumsum(HIDDEN_COUNT[kinds]), row, side="right"))
    return row // 2 if part == 2 else row


def _role(net: "ReluNet", part: int, row: int) -> str:
    if part == 0:
        return "It is a hidden unit of a gate, W1 of Lemma B.1."
    if part == 1:
        return "It gives the value of a gate, W2 of Lemma B.1."
    correction = CORRECTIONS[net.correction]
    assert correction is not None
    if part == 2:
        threshold = correction.high if row % 2 else correction.low
        return f"It cuts at the threshold {threshold} of the correction ({correction.line})."
    return f"It gives the corrected value ({correction.line})."


def _gate(net: "ReluNet", step: int, place: int) -> str:
    gate = _gates_before(net, step) + place
    kind = Gate(int(net.gates.kinds[gate]))
    operands = [int(net.gates.left[gate]), int(net.gates.right[gate])][: kind.arity]
    reads = f" of {' and '.join(map(str, operands))} in the layer before" if operands else ""
    return (
        f"gate {place} of circuit layer {step + 1}, {kind.name}{reads}, which holds wire "
        f"{int(net.gates.wires[gate])} of the circuit: {GADGETS[kind].formula} ({GADGETS[kind].line})"
    )
