"""A network written as JSON and arrays, and read again."""

import copy
import json
from typing import Any

import numpy as np
import pytest

from tapegrad.errors import BrokenNet
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.network import Network
from tapegrad.networks.saving import arrays_of, from_json, to_json
from tests.networks.cases import CASES, given, network_of


def read_again(network: Network) -> Network:
    return from_json(json.loads(json.dumps(to_json(network))), arrays_of(network))


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_is_what_was_written(name: str) -> None:
    network = network_of(name)
    again = read_again(network)
    assert str(again) == str(network)
    assert to_json(again) == to_json(network)
    assert (again.inputs, again.state, again.outputs, again.columns) == (
        network.inputs,
        network.state,
        network.outputs,
        network.columns,
    )
    wanted, found = (NumPy(own).run(given(name)) for own in (network, again))
    for one, other in zip(wanted, found, strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[key], other[key]) for key in one)


SMALL = "relu, compact"


def small() -> tuple[dict[str, Any], dict[str, Any]]:
    network = network_of(SMALL)
    return copy.deepcopy(to_json(network)), arrays_of(network)


def test_an_array_that_nothing_uses_is_refused() -> None:
    data, arrays = small()
    with pytest.raises(BrokenNet, match="no node of the network has the array 'spare'"):
        from_json(data, arrays | {"spare": np.zeros(1)})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("nodes",), 3),
        (("nodes", 0, "operation"), "run"),
        (("nodes", 0, "operation"), "map"),
        (("nodes", 0, "reads"), ["nobody"]),
        (("nodes", 0, "reads"), [1]),
        (("nodes", 0, "extra"), 1),
        (("nodes", 0, "settings"), {"slots": "many"}),
        (("nodes", 0, "settings"), {"slots": [-1]}),
        (("nodes", 0, "settings"), {}),
        (("nodes", 0, "arrays"), {}),
        (("nodes", 0, "body"), {"name": "inside"}),
        (("nodes", 1, "name"), "units"),
        (("inputs", "bits", "shape"), ["patterns", -3]),
        (("inputs", "bits", "shape"), ["patterns", True]),
        (("inputs", "bits", "dtype"), "numbers"),
        (("inputs", "bits", "dtype"), "9" * 5000),
        (("inputs", "bits", "dtype"), "f4"),
        (("inputs", "bits", "dtype"), ["float32"]),
        (("inputs", "bits", "columns"), [1]),
        (("outputs", "outputs"), "nobody"),
        (("outputs",), []),
        (("name",), None),
        (("columns",), {"units": 3}),
    ],
)
def test_a_graph_that_is_no_network_is_refused(path: tuple[Any, ...], value: Any) -> None:
    data, arrays = small()
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(BrokenNet):
        from_json(data, arrays)


def test_what_is_missing_is_named() -> None:
    data, arrays = small()
    del data["outputs"]
    with pytest.raises(BrokenNet, match="outputs are missing or unknown"):
        from_json(data, arrays)


def test_bodies_in_bodies_without_end_are_refused() -> None:
    data, arrays = small()
    inner: dict[str, Any] = {"name": "x", "operation": "relu"}
    for _ in range(5000):
        inner = {"name": "x", "operation": "repeat", "body": data | {"nodes": [inner]}}
    data["nodes"] = [inner]
    with pytest.raises(BrokenNet):
        from_json(data, arrays)
