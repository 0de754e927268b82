"""Networks against circuits from the graph alone: those that are compiled are proved, and of forged ones,
which are run on all inputs, those are believed that are right."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._sources import source_to_json
from tapegrad.circuits.library import ready
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.circuits.sampler import random_circuit
from tapegrad.networks.saving import arrays_of, to_json
from tapegrad_check.core.stateless import Proved, prove
from tapegrad_check.folder import CheckError, NotProved
from tapegrad_check.graph import graph_of
from tapegrad_check.sources import Circuit as CheckersCircuit
from tapegrad_check.sources import model_of

FORMS: list[dict[str, Any]] = [
    {},
    {"skips": False},
    {"form": "paper"},
    {"correction": "quarters"},
    {"correction": "none"},
    {"form": "paper", "dtype": "float64"},
]
Saved = tuple[dict[str, Any], dict[str, np.ndarray]]


def saved(circuit: Circuit, **options: Any) -> Saved:
    network = compile(circuit, "relu", **options).net.network
    return json.loads(json.dumps(to_json(network))), {n: np.array(a) for n, a in arrays_of(network).items()}


def model(circuit: Circuit) -> CheckersCircuit:
    found = model_of(*source_to_json(circuit))
    assert isinstance(found, CheckersCircuit)
    return found


def proved(own: Saved, circuit: Circuit) -> Proved:
    return prove(graph_of(*own), model(circuit))


def outputs(own: Saved, bits: np.ndarray) -> np.ndarray:
    """What the network gives, sum by sum in the order of the arrays and in the other."""
    data, arrays = own
    part = {name: arrays[array] for name, array in data["nodes"][0]["arrays"].items()}
    both = []
    for order in (1, -1):
        slots = np.zeros((data["nodes"][0]["settings"]["slots"], len(bits)), part["values"].dtype)
        slots[: bits.shape[1]] = bits.T
        for first, last in zip(part["bounds"], part["bounds"][1:], strict=False):
            made = []
            for row in range(first, last):
                entries = range(part["starts"][row], part["starts"][row + 1])[::order]
                total = np.full(len(bits), part["biases"][row])
                for entry in entries:
                    total = total + part["values"][entry] * slots[part["columns"][entry]]
                made.append(np.maximum(total, 0) if part["relu"][row] else total)
            for row, value in zip(range(first, last), made, strict=True):
                slots[part["to"][row]] = value
        both.append(slots[part["out"]] * arrays["constant_1.value"] + arrays["constant_3.value"])
    return np.array(both)


def every_input(circuit: Circuit) -> tuple[np.ndarray, np.ndarray]:
    count = len(circuit.inputs)
    bits = np.arange(1 << count)[:, None] >> np.arange(count) & 1
    return bits, circuit.wire_values(bits.astype(bool))[circuit.output_wires]


@pytest.mark.parametrize("options", FORMS, ids=str)
@pytest.mark.parametrize(
    "name", ["adder4", "multiplier4", "divider4", "popcount8", "majority5", "interrupts9"]
)
def test_compiled_networks_are_proved(name: str, options: dict[str, Any]) -> None:
    found = proved(saved(ready(name), **options), ready(name))
    assert found.exact == (found.off == found.bits == 0) == ("paper" not in options.values())
    assert found.off < found.bits < 1e-5 or found.exact


@pytest.mark.parametrize("seed", range(20))
def test_random_circuits(seed: int) -> None:
    circuit = random_circuit(seed, inputs=5, size=40, outputs=4, kinds=tuple(Gate))
    other = random_circuit(seed + 100, inputs=5, size=40, outputs=4, kinds=tuple(Gate))
    same = np.array_equal(every_input(circuit)[1], every_input(other)[1])
    own = saved(circuit, **FORMS[seed % len(FORMS)])
    assert proved(own, circuit)
    if not same:
        with pytest.raises(CheckError, match="differs from the source"):
            proved(own, other)


@pytest.mark.parametrize("options", FORMS, ids=str)
def test_forged_networks(options: dict[str, Any]) -> None:
    """One number changed at random: believed is what is right on every input, in either order of sums."""
    circuit = ready("adder3")
    bits, right = every_input(circuit)
    genuine = saved(circuit, **options)
    random, ends = np.random.default_rng(len(str(options))), Counter[bool]()
    names = [f"units.{part}" for part in ("values", "biases", "columns", "to", "relu", "out")]
    for _ in range(150):
        data, arrays = json.loads(json.dumps(genuine[0])), {n: a.copy() for n, a in genuine[1].items()}
        name = str(random.choice([*names, "constant_1.value", "constant_3.value"]))
        array = arrays[name]
        place = tuple(int(random.integers(size)) for size in array.shape)
        if array.dtype.kind == "f":
            array[place] = random.choice(
                [-array[place], array[place] + 1, array[place] - 1, 2 * array[place]]
            )
            array[place] *= random.choice([1, 1, 2.0**24, 1 + 2.0**-20])
        elif name == "units.relu":
            array[place] ^= 1
        else:
            array[place] += random.choice([-2, -1, 1, 2])
        try:
            graph = graph_of(data, arrays)
        except CheckError:
            continue
        try:
            believed = bool(prove(graph, model(circuit)))
        except (CheckError, NotProved):
            believed = False
        with np.errstate(all="ignore"):
            good = bool((np.abs(outputs((data, arrays), bits) - right) < 0.25).all())
        assert good == believed, (name, place)
        ends[good] += 1
    assert min(ends.values()) > 2, ends


def test_what_is_asked_of_the_ports() -> None:
    circuit = ready("adder3")
    data, arrays = saved(circuit)
    data["columns"] = {name: list(reversed(own)) for name, own in data["columns"].items() if name != "bits"}
    with pytest.raises(CheckError, match="outputs have other names"):
        prove(graph_of(data, arrays), model(circuit))
    data, arrays = saved(circuit)
    arrays["first"] = np.zeros((1, 1), np.float32)
    data["state"]["more"] = {"shape": [1, 1], "dtype": "float32", "first": "first", "next": "more"}
    with pytest.raises(CheckError, match="other ports"):
        prove(graph_of(data, arrays), model(circuit))
    data, arrays = saved(circuit)
    data["nodes"].append({"name": "more", "operation": "add", "reads": ["bits", "bits"]})
    with pytest.raises(CheckError, match="nothing reads the node 'more'"):
        prove(graph_of(data, arrays), model(circuit))
    data, arrays = saved(circuit)
    data["nodes"].insert(0, {"name": "root", "operation": "sqrt", "reads": ["bits"]})
    data["nodes"][1]["reads"] = ["root"]
    with pytest.raises(NotProved, match="does not follow 'sqrt'"):
        prove(graph_of(data, arrays), model(circuit))
    data, arrays = saved(circuit)
    data["outputs"]["more"] = data["outputs"]["outputs"]
    with pytest.raises(CheckError, match="other ports"):
        prove(graph_of(data, arrays), model(circuit))
