"""A bad net for every condition of the checker of circuits, and for every bound one on either side: what is
just inside is refused for another reason, or not at all."""

import copy
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tapegrad._sources import source_to_json
from tapegrad.circuits.model import Gate
from tapegrad.circuits.sampler import random_circuit
from tapegrad.learners import parity
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE
from tapegrad_check.sources import Circuit, model_of
from tests.check.altering import (
    Change,
    Net,
    add,
    both,
    claims,
    config,
    cut,
    net_of,
    put,
    put_all,
    retype,
    without,
)

CIRCUIT = random_circuit(3, inputs=4, size=20, outputs=3, kinds=tuple(Gate))
NETS: dict[str, dict[str, Any]] = {
    "relu": {"form": "paper"},
    "relu quarters": {"correction": "quarters"},
    "relu none": {"correction": "none"},
}


@cache
def genuine(name: str) -> Net:
    return net_of(CIRCUIT, "relu", NETS[name])


@pytest.mark.parametrize("name", NETS)
def test_genuine_nets_pass(name: str) -> None:
    assert genuine(name).verdict("relu") == COMPUTES_SOURCE


def circuit(**changes: Any) -> Change:
    def change(net: Net) -> None:
        assert isinstance(net.source, Circuit)
        net.source = replace(net.source, **changes)

    return change


def _no_circuit(net: Net) -> None:
    net.source = model_of(*source_to_json(parity(2)))


def _layers(place: int, more: int) -> Change:
    return add("units.layers", place, more)


def _range(kind: str, place: int, more: float) -> Change:
    """Another end of the range that a certificate gives for a kind of gate."""

    def change(net: Net) -> None:
        net.claims["pre_activations"][kind] = list(net.claims["pre_activations"][kind])
        net.claims["pre_activations"][kind][place] += more

    return change


def _times(claim: str, factor: float) -> Change:
    return lambda net: net.claims.update({claim: net.claims[claim] * factor})


RELU: list[tuple[str, Change]] = [
    ("other entries", config(extra=1)),
    ("arrays are others", without("gates.wires")),
    ("arrays are others", lambda net: net.arrays.update(extra=np.zeros(1))),
    ("precision is unknown", config(dtype="float16")),
    ("precision is unknown", config(dtype=["float32"])),
    ("correction is unknown", config(correction="fifths")),
    ("correction is unknown", config(correction=["none"])),
    ("inputs are not texts", config(inputs=[1])),
    ("outputs are not texts", config(outputs=[1])),
    ("'units.inputs' is missing or not", retype("units.inputs", np.int64)),
    ("'units.layers' is missing or not", retype("units.layers", np.int32)),
    ("'gates.kinds' is missing or not", retype("gates.kinds", np.int32)),
    ("'gates.wires' is missing or not", retype("gates.wires", np.int64)),
    ("'units.weights' is missing or not", retype("units.weights", np.float64)),
    ("'units.biases' is missing or not", retype("units.biases", np.float64)),
    ("two numbers for each unit", cut("units.weights")),
    ("two numbers for each unit", cut("units.inputs")),
    ("'units.biases' is not a list", lambda net: net.arrays.update(_column(net, "units.biases"))),
    ("'gates.left' is not a list", lambda net: net.arrays.update(_column(net, "gates.left"))),
    ("too large or too small", put("units.weights", (0, 0), 2.0**20 + 1)),
    ("differ in their weights", put("units.weights", (0, 0), 2.0**20)),
    ("too large or too small", put("units.biases", 0, 2.0**-21)),
    ("differ in their weights", put("units.biases", 0, 2.0**-20)),
    ("not one entry for each gate", cut("gates.left")),
    ("not one entry for each gate", cut("gates.wires")),
    ("does not fit the correction", cut("units.layers")),
    ("does not fit the correction", put_all("units.layers", [0, 55])),
    ("do not follow one another", _layers(0, 1)),
    ("do not follow one another", _layers(-1, 1)),
    ("do not follow one another", put("units.layers", 1, 50)),
    ("depth is another", config(circuit_layers=4)),
    ("depth is another", config(relu_layers=4)),
    ("one unit for each gate", _layers(1, 1)),
    ("those of the last layer", config(outputs=["y0", "y1"])),
    ("those of the last layer", _layers(-2, 1)),
    ("correction does not fit", _layers(3, 1)),
    ("correction does not fit", both(_layers(3, -2), _layers(4, -2))),
    ("correction does not fit", _layers(4, 1)),
    ("reads outside the layer before", put("units.inputs", (0, 0), -1)),
    ("reads outside the layer before", put("units.inputs", (0, 0), 4)),
    ("not read the operands", put("units.inputs", (0, 0), 3)),
    ("reads outside the layer before", put("units.inputs", (0, 1), 4)),
    ("the width is not", config(padded_width=5)),
    ("the width is not", config(padded_width=(1 << 31) + 1)),
    ("no known kind", put("gates.kinds", 0, 5)),
    ("read by no other", add("units.inputs", (16, 0), 1)),
    ("not read the operands", add("gates.left", 0, 1)),
    ("not read the operands", lambda net: net.add("gates.right", _first(net, 9), 1)),
    ("ID differ in their weights", add("units.biases", 0, 1)),
    ("weights of XOR are wrong", add("units.biases", 21, 1)),
    ("weights of AND are wrong", add("gates.kinds", 5, 2)),
    ("not read its own gate", add("units.inputs", (10, 0), 1)),
    ("corrections differ", add("units.biases", 10, 1)),
    *(
        ("not s relu", lambda net, unit=unit, side=side: _every_weight(net, unit, side))
        for unit, side in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 1))
    ),
    ("correction is not that of", lambda net: _every_weight(net, 2, None)),
    ("correction is not that of", lambda net: _every_correction(net, 2, -1.0)),
    ("correction is not that of", lambda net: _every_correction(net, 5, 0.0)),
    ("not that of 'thirds'", lambda net: _every_correction(net, 2, np.nextafter(np.float32(-1 / 3), 0))),
    ("not that of 'thirds'", lambda net: _every_correction(net, 5, np.nextafter(np.float32(-2 / 3), 0))),
    ("not 2 z - 1", put("units.biases", -1, 0)),
    ("not 2 z - 1", put("units.inputs", (-1, 0), 0)),
    ("not 2 z - 1", put("units.weights", (-1, 0), 1)),
    ("that of a circuit", _no_circuit),
    ("other names", circuit(inputs=("a", "b", "c", "d"))),
    ("other names", circuit(outputs=("a", "b", "c"))),
    ("wire that the circuit does not have", put("gates.wires", 0, -1)),
    ("wire that the circuit does not have", lambda net: net.put("gates.wires", 0, _wires(net))),
    ("not the one that the circuit has", lambda net: net.put("gates.wires", 0, _wires(net) - 1)),
    ("reads outside the layer before", add("gates.left", 3, 1)),
    ("the circuit's outputs", lambda net: _other_outputs(net)),
    ("other claims", claims(extra=1)),
    ("other claims", claims(statement="it works")),
    ("smaller radius", claims(radius=None)),
    ("smaller radius", claims(radius=0)),
    ("smaller radius", _times("radius", 1 + 1e-9)),
    ("is negative", claims(allowance=-1)),
    ("is negative", claims(after_gates=-1)),
    ("is negative", claims(after_correction=-1)),
    ("another precision", _times("unit_roundoff", 2)),
    ("ranges for other gates", claims(pre_activations={})),
    ("not a finite number", claims(allowance="1/6")),
    ("XNOR can leave the range", _range("XNOR", 0, 1e-9)),
    ("XNOR can leave the range", _range("XNOR", 1, -1e-9)),
    ("gates can be .* off, more than", _times("after_gates", 1 - 1e-9)),
    (
        "further off than the allowance",
        lambda net: net.claims.update(allowance=net.claims["after_gates"] / 2),
    ),
    ("corrected values can be", _times("after_correction", 1 - 1e-9)),
    ("outside the radius", claims(allowance=1 / 3)),
    ("outputs can be further off", _times("at_outputs", 1 - 1e-9)),
    ("outputs can be further off", claims(at_outputs=1)),
    ("counts other gates", claims(gates={})),
]

WITHOUT_CORRECTION: list[tuple[str, Change]] = [
    ("smaller radius", claims(radius=0.25)),
    ("can leave the range", claims(after_correction=1e-9)),
]


def _column(net: Net, name: str) -> dict[str, np.ndarray]:
    return {name: net.arrays[name][:, None]}


def _first(net: Net, kind: int) -> int:
    """The first gate of a kind."""
    return int(np.flatnonzero(net.arrays["gates.kinds"] == kind)[0])


def _wires(net: Net) -> int:
    assert isinstance(net.source, Circuit)
    return len(net.source.inputs) + len(net.source.kinds)


def _every_correction(net: Net, place: int, value: float) -> None:
    """Another bias in the first (2) or second (5) unit of all corrections alike."""
    bounds = net.arrays["units.layers"]
    for layer in range(2, len(bounds) - 2, 4):
        at = np.arange(bounds[layer] + (place == 5), bounds[layer + 1], 2)
        net.put("units.biases", at, np.float32(value))


def _every_weight(net: Net, unit: int, side: int | None) -> None:
    """One more on a side, or twice as much on both, of the first cut (0), the second (1) or the difference
    (2) of all corrections alike."""
    bounds = net.arrays["units.layers"]
    for layer in range(2, len(bounds) - 2, 4):
        cuts, out = (
            np.arange(bounds[layer], bounds[layer + 1]),
            np.arange(bounds[layer + 1], bounds[layer + 2]),
        )
        at = out if unit == 2 else cuts[unit::2]
        if side is None:
            net.put("units.weights", at, 2 * net.arrays["units.weights"][at])
        else:
            net.add("units.weights", (at, side), np.float32(1))


def _other_outputs(net: Net) -> None:
    assert isinstance(net.source, Circuit)
    circuit(output_wires=net.source.output_wires[::-1])(net)


@pytest.mark.parametrize(
    ("name", "reason", "change"),
    [*(("relu", *case) for case in RELU), *(("relu none", *case) for case in WITHOUT_CORRECTION)],
    ids=[f"relu: {reason}" for reason, _ in (*RELU, *WITHOUT_CORRECTION)],
)
def test_a_bad_net_is_refused_for_its_reason(name: str, reason: str, change: Change) -> None:
    net = copy.deepcopy(genuine(name))
    change(net)
    with pytest.raises(CheckError, match=reason):
        net.verdict("relu")
