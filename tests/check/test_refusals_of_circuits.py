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
from tapegrad.networks.wiring import Wiring
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE
from tapegrad_check.sources import Circuit, model_of
from tests.check.altering import (
    Change,
    Net,
    add,
    claims,
    config,
    cut,
    net_of,
    put,
    retype,
    rewire,
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


BOUNDS, STARTS, COLUMNS, VALUES, BIASES = (
    f"network.units.{part}" for part in ("bounds", "starts", "columns", "values", "biases")
)


def _first_entry(net: Net, unit: int) -> int:
    return int(net.arrays[STARTS][unit])


def weight(unit: int, value: float, side: int = 0) -> Change:
    """Another weight in a unit."""
    return lambda net: net.put(VALUES, _first_entry(net, unit) + side, np.float32(value))


def reads(unit: int, more: int) -> Change:
    """Another place that a unit reads, in the layer before."""
    return lambda net: net.add(COLUMNS, _first_entry(net, unit), more)


def again(layer: int, *names: str) -> Change:
    """The last unit of a layer once more, behind it; with names, where it is an output."""

    def twice(own: Wiring) -> Wiring:
        end = int(own.bounds[layer + 1])
        first, last = own.starts[end - 1 : end + 1].tolist()
        bounds, starts = own.bounds + (np.arange(len(own.bounds)) > layer), own.starts + last - first
        return own._replace(
            bounds=bounds,
            starts=np.concatenate([own.starts[: end + 1], starts[end:]]),
            places=np.insert(
                own.places + (own.places >= own.inputs + end), last, own.places[first:last].copy()
            ),
            values=np.insert(own.values, last, own.values[first:last]),
            biases=np.insert(own.biases, end, own.biases[end - 1]),
        )

    return lambda net: rewire(net, twice, *names)


def _gate_again(net: Net) -> None:
    """The last gate of the first layer once more, and said to be one."""
    again(1)(net)
    widths = np.diff(net.arrays[BOUNDS])
    for name in ("gates.kinds", "gates.wires"):
        net.arrays[name] = np.insert(net.arrays[name], widths[1] - 1, net.arrays[name][widths[1] - 2])


def _deeper_read(net: Net) -> None:
    """The first gate of the second layer reads an input, past the layer before."""

    def past(own: Wiring) -> Wiring:
        places = own.places.copy()
        places[own.starts[own.bounds[4]]] = 0
        return own._replace(places=places)

    rewire(net, past)


def _third_value(net: Net) -> None:
    """A unit reads the same value three times."""

    def more(own: Wiring) -> Wiring:
        return own._replace(
            starts=own.starts + 2 * (np.arange(len(own.starts)) > 0),
            places=np.insert(own.places, 0, [own.places[0]] * 2),
            values=np.insert(own.values, 0, [1.0, -1.0]),
        )

    rewire(net, more)


def _fewer_layers(net: Net) -> None:
    """Without the two layers before the last: the outputs read where these would read."""

    def cut_off(own: Wiring) -> Wiring:
        first, last = own.bounds[-4], own.bounds[-2]
        rows = np.r_[0:first, last : len(own.biases)]
        entries = np.r_[0 : own.starts[first], own.starts[last] : len(own.places)]
        places = own.places[entries] - np.where(entries >= own.starts[last], last - first, 0)
        return own._replace(
            bounds=np.append(own.bounds[:-3], own.bounds[-1] - (last - first)),
            starts=np.append(0, np.cumsum(np.diff(own.starts)[rows])),
            places=np.minimum(places, own.inputs + first - 1),
            values=own.values[entries],
            biases=own.biases[rows],
        )

    rewire(net, cut_off)


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
    ("correction is unknown", config(correction="fifths")),
    ("correction is unknown", config(correction=["none"])),
    ("'gates.kinds' is not of type", retype("gates.kinds", np.int32)),
    ("'gates.wires' is not of type", retype("gates.wires", np.int64)),
    ("too large or too small", weight(0, 2.0**20 + 1)),
    ("differ in their weights", weight(0, 2.0**20)),
    ("too large or too small", put(BIASES, 0, 2.0**-21)),
    ("differ in their weights", put(BIASES, 0, 2.0**-20)),
    ("'gates.kinds' has another shape", cut("gates.kinds")),
    ("'gates.wires' has another shape", cut("gates.wires")),
    ("'gates.wires' has another shape", lambda net: net.arrays.update(_column(net, "gates.wires"))),
    ("does not fit the correction", _fewer_layers),
    ("correction does not fit", again(1)),
    ("correction does not fit", _gate_again),
    ("correction does not fit", again(2)),
    ("correction does not fit", again(3)),
    ("those of the last layer", again(12, "y3")),
    ("read by no other", again(0)),
    ("reads outside the layer before", _deeper_read),
    ("more than two values", _third_value),
    ("not the one that the circuit has", reads(0, 1)),
    ("the width is not", config(padded_width=5)),
    ("the width is not", config(padded_width=(1 << 31) + 1)),
    ("no known kind", put("gates.kinds", 0, 5)),
    ("read by no other", reads(16, 1)),
    ("not read the operands", reads(3, 1)),
    ("ID differ in their weights", add(BIASES, 0, 1)),
    ("weights of XOR are wrong", add(BIASES, 21, 1)),
    ("weights of AND are wrong", add("gates.kinds", 5, 2)),
    ("not read its own gate", reads(10, 1)),
    ("corrections differ", add(BIASES, 10, 1)),
    *(
        ("not s relu", lambda net, unit=unit, side=side: _every_weight(net, unit, side))
        for unit, side in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 1))
    ),
    ("correction is not that of", lambda net: _every_weight(net, 2, None)),
    ("correction is not that of", lambda net: _every_correction(net, 2, -1.0)),
    ("correction is not that of", lambda net: _every_correction(net, 5, 0.0)),
    ("not that of 'thirds'", lambda net: _every_correction(net, 2, np.nextafter(np.float32(-1 / 3), 0))),
    ("not that of 'thirds'", lambda net: _every_correction(net, 5, np.nextafter(np.float32(-2 / 3), 0))),
    ("not 2 z - 1", put(BIASES, -1, 0)),
    ("not 2 z - 1", add(COLUMNS, -1, -1)),
    ("not 2 z - 1", put(VALUES, -1, 1)),
    ("that of a circuit", _no_circuit),
    ("other names", circuit(inputs=("a", "b", "c", "d"))),
    ("other names", circuit(outputs=("a", "b", "c"))),
    ("wire that the circuit does not have", put("gates.wires", 0, -1)),
    ("wire that the circuit does not have", lambda net: net.put("gates.wires", 0, _wires(net))),
    ("not the one that the circuit has", lambda net: net.put("gates.wires", 0, _wires(net) - 1)),
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


def _wires(net: Net) -> int:
    assert isinstance(net.source, Circuit)
    return len(net.source.inputs) + len(net.source.kinds)


def _every_correction(net: Net, place: int, value: float) -> None:
    """Another bias in the first (2) or second (5) unit of all corrections alike."""
    bounds = net.arrays[BOUNDS]
    for layer in range(2, len(bounds) - 2, 4):
        at = np.arange(bounds[layer] + (place == 5), bounds[layer + 1], 2)
        net.put(BIASES, at, np.float32(value))


def _every_weight(net: Net, unit: int, side: int | None) -> None:
    """One more on a side, or twice as much on both, of the first cut (0), the second (1) or the difference
    (2) of all corrections alike. A cut has one side, and gets another."""

    def more(own: Wiring) -> Wiring:
        layer = np.repeat(np.arange(own.layers), np.diff(own.bounds))
        place = np.arange(len(layer)) - own.bounds[layer]
        corrects = layer < own.layers - 1
        cuts = corrects & (layer % 4 == 2) & (place % 2 == unit)
        rows = np.flatnonzero(corrects & (layer % 4 == 3) if unit == 2 else cuts)
        values = own.values.copy()
        if side is None:
            values[own.starts[rows]] *= 2
            values[own.starts[rows] + 1] *= 2
        elif unit == 2 or side == 0:
            values[own.starts[rows] + side] += 1
        else:
            ends, before = own.starts[rows + 1], own.inputs + own.bounds[layer[rows] - 1]
            return own._replace(
                starts=own.starts + np.append(0, np.cumsum(np.isin(np.arange(len(layer)), rows))),
                places=np.insert(own.places, ends, before),
                values=np.insert(own.values, ends, 1.0),
            )
        return own._replace(values=values)

    rewire(net, more)


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
