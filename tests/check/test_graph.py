"""The checker's own reader of graphs: it reads what the compiler writes, and refuses what does not fit."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapegrad.networks.checking import check
from tapegrad.networks.saving import arrays_of, to_json
from tapegrad_check.folder import Arrays, CheckError
from tapegrad_check.graph import WIDEST, graph_of
from tests.networks.cases import CASES, network_of

Files = tuple[dict[str, Any], Arrays]


def files_of(name: str) -> Files:
    """The graph of a case as JSON and arrays, free to be altered."""
    network = network_of(name)
    arrays = {key: np.array(array) for key, array in arrays_of(network).items()}
    return json.loads(json.dumps(to_json(network))), arrays


@pytest.mark.parametrize("name", CASES)
def test_it_reads_what_the_compiler_writes(name: str) -> None:
    """With the same shapes, found by other code."""
    network = network_of(name)
    graph = graph_of(*files_of(name))
    assert [node.name for node in graph.nodes] == [node.name for node in network.nodes]
    shapes = check(network)
    assert {n: (own.sizes, own.dtype) for n, own in graph.shapes.items()} == {
        n: (own.sizes, own.dtype) for n, own in shapes.items()
    }


def node(data: dict[str, Any], operation: str) -> dict[str, Any]:
    """The first node of an operation."""
    return next(own for own in data["nodes"] if own["operation"] == operation)


def to(operation: str, part: str, place: int, value: float) -> Callable[[dict[str, Any], Arrays], None]:
    """Another number in an array of the first node of an operation."""

    def change(data: dict[str, Any], arrays: Arrays) -> None:
        arrays[node(data, operation)["arrays"][part]][place] = value

    return change


def whole_numbers(data: dict[str, Any], arrays: Arrays) -> None:
    name = node(data, "layers")["arrays"]["values"]
    arrays[name] = arrays[name].astype(np.int32)


FAULTS: dict[str, tuple[str, Callable[[dict[str, Any], Arrays], Any], str]] = {
    "an array that nothing uses": (
        "relu, compact",
        lambda data, arrays: arrays.update(extra=np.zeros(3, np.float32)),
        "no node .* has the array 'extra'",
    ),
    "an array that is missing": (
        "relu, compact",
        lambda data, arrays: arrays.pop(next(iter(arrays))),
        "is missing",
    ),
    "an unknown operation": (
        "relu, compact",
        lambda data, arrays: node(data, "layers").update(operation="eval"),
        "unknown operation 'eval'",
    ),
    "a node that reads what comes later": (
        "relu, compact",
        lambda data, arrays: data["nodes"].reverse(),
        "reads what is not before it",
    ),
    "two values of one name": (
        "relu, compact",
        lambda data, arrays: node(data, "layers").update(name="bits"),
        "a name that is taken",
    ),
    "a key that nobody reads": (
        "relu, compact",
        lambda data, arrays: node(data, "layers").update(comment="harmless"),
        "'comment' is missing or unknown",
    ),
    "a slot beyond the last": ("relu, compact", to("layers", "columns", 0, 1 << 30), "a slot it lacks"),
    "a slot written twice": (
        "relu, compact",
        lambda data, arrays: arrays[node(data, "layers")["arrays"]["to"]].fill(0),
        "writes a slot twice",
    ),
    "more slots than memory": (
        "relu, compact",
        lambda data, arrays: node(data, "layers")["settings"].update(slots=1 << 39),
        "many more slots than it ever fills",
    ),
    "a ReLU that is 2": ("relu, compact", to("layers", "relu", 0, 2), "whether a row has a ReLU"),
    "weights that are whole numbers": ("relu, compact", whole_numbers, "the wrong kind"),
    "an output that there is not": (
        "relu, compact",
        lambda data, arrays: data["outputs"].update(outputs="nothing"),
        "has no value 'nothing'",
    ),
    "names for other columns": (
        "relu, compact",
        lambda data, arrays: data["columns"].update(bits=["a", "b", "c", "d"]),
        "two lists of names|other columns than names",
    ),
    "a state that is handed on as something else": (
        "transformer, clock",
        lambda data, arrays: data["state"]["output"].update(next="step"),
        "handed on as something else",
    ),
    "a state that begins as something else": (
        "transformer, clock",
        lambda data, arrays: arrays.update(first_output=np.zeros((1, 2), np.float32)),
        "begins as something else",
    ),
    "more digits than memory": (
        "transformer, clock",
        lambda data, arrays: node(data, "digits")["settings"].update(count=WIDEST + 1),
        "makes too many columns",
    ),
    "a setting that is a text": (
        "transformer, clock",
        lambda data, arrays: node(data, "digits")["settings"].update(count="8"),
        "not a finite number",
    ),
    "a map with entries in another order": (
        "transformer, clock",
        lambda data, arrays: arrays.update(
            {(name := node(data, "affine")["arrays"]["rows"]): arrays[name][::-1].copy()}
        ),
        "row by row|outside its map",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_does_not_fit_is_refused(fault: str) -> None:
    case, change, reason = FAULTS[fault]
    data, arrays = files_of(case)
    graph_of(data, arrays)  # the genuine one is read
    change(data, arrays)
    with pytest.raises(CheckError, match=reason):
        graph_of(data, arrays)
