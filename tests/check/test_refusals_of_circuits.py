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


RELU: list[tuple[str, Change]] = [
    ("other entries", config(extra=1)),
    ("arrays are others", without("gates.wires")),
    ("arrays are others", lambda net: net.arrays.update(extra=np.zeros(1))),
    ("correction is unknown", config(correction="fifths")),
    ("correction is unknown", config(correction=["none"])),
    ("'gates.kinds' is not of type", retype("gates.kinds", np.int32)),
    ("'gates.wires' is not of type", retype("gates.wires", np.int64)),
    ("'gates.kinds' has another shape", cut("gates.kinds")),
    ("'gates.wires' has another shape", cut("gates.wires")),
    ("'gates.wires' has another shape", lambda net: net.arrays.update(_column(net, "gates.wires"))),
    ("does not fit the correction", _fewer_layers),
    ("correction does not fit", again(1)),
    ("correction does not fit", _gate_again),
    ("correction does not fit", again(2)),
    ("correction does not fit", again(3)),
    ("outputs have other names", again(12, "y3")),
    ("reads outside the layer before", _deeper_read),
    ("not the one that the circuit has", reads(0, 1)),
    ("the width is not", config(padded_width=5)),
    ("the width is not", config(padded_width=(1 << 31) + 1)),
    ("no known kind", put("gates.kinds", 0, 5)),
    ("held by unit '16' differs", reads(16, 1)),
    ("held by unit '6' differs", reads(3, 1)),
    ("is no bit", add(BIASES, 0, 1)),
    ("held by unit '26' differs", add(BIASES, 21, 1)),
    ("not the one that the circuit has", add("gates.kinds", 5, 2)),
    ("the unit '17' is no bit", reads(10, 1)),
    ("correction is not that of 'thirds'", add(BIASES, 10, 1)),
    *(
        ("is no bit|held by unit", lambda net, unit=unit, side=side: _every_weight(net, unit, side))
        for unit, side in ((0, 0), (1, 0), (2, None), (2, 1))
    ),
    ("not that of 'thirds'", lambda net: _every_correction(net, 2, -1.0)),
    ("not that of 'thirds'", lambda net: _every_correction(net, 5, 0.0)),
    ("not that of 'thirds'", lambda net: _every_correction(net, 2, np.nextafter(np.float32(-1 / 3), 0))),
    ("not that of 'thirds'", lambda net: _every_correction(net, 5, np.nextafter(np.float32(-2 / 3), 0))),
    ("the output 'y2' is no bit", put(BIASES, -1, 0)),
    ("the output 'y2' differs", add(COLUMNS, -1, -1)),
    ("the output 'y2' is no bit", put(VALUES, -1, 1)),
    ("that of a circuit", _no_circuit),
    ("other names", circuit(inputs=("a", "b", "c", "d"))),
    ("other names", circuit(outputs=("a", "b", "c"))),
    ("wire that the circuit does not have", put("gates.wires", 0, -1)),
    ("wire that the circuit does not have", lambda net: net.put("gates.wires", 0, _wires(net))),
    ("not the one that the circuit has", lambda net: net.put("gates.wires", 0, _wires(net) - 1)),
    ("the output 'y0' differs", lambda net: _other_outputs(net)),
    ("other claims", claims(extra=1)),
    ("other claims", claims(statement="it works")),
    ("not a finite number", claims(largest_sum=None)),
    ("largest_sum can be 3.0000", claims(largest_sum=3)),
    ("after_gates can be", claims(after_gates=1e-6)),
    ("at_outputs can be", claims(at_outputs=1e-6)),
    ("other gates", claims(gates={})),
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
    ("reason", "change"),
    RELU,
    ids=[reason for reason, _ in RELU],
)
def test_a_bad_net_is_refused_for_its_reason(reason: str, change: Change) -> None:
    net = copy.deepcopy(genuine("relu"))
    change(net)
    with pytest.raises(CheckError, match=reason):
        net.verdict("relu")
