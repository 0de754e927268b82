"""Nothing of the graph of a text is left out: whatever is altered in it is refused."""

import copy
from functools import cache
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.errors import BrokenNet
from tapegrad.networks.saving import from_json
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE, OF_NETWORK
from tapegrad_check.graph import graph_of
from tapegrad_check.texts import text_of
from tests.check.altering import Net, net_of
from tests.check.graphs import altered_nodes, graph
from tests.check.small_sources import COUNT, SORT

SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "a machine": ("increment", {"tokens": 50_000}),
    "a program": ("subleq 8 4\n0 0 0", {"tokens": 400}),
    "RASP": (SORT, {}),
    "RASP, counting": (COUNT, {}),
}


@cache
def genuine(name: str) -> Net:
    source, options = SOURCES[name]
    return net_of(tg.read(source), "decoder", options)


def is_refused(net: Net, what: object, causal: bool, whole: bool = False) -> None:
    """By the checker's reader of texts, or by the whole checker: what the reader gives it is bound there."""
    arrays = {name.removeprefix(OF_NETWORK): own for name, own in net.arrays.items()}
    try:
        if whole:
            net.verdict("decoder")
        else:
            text_of(graph_of(graph(net), arrays), causal)
    except CheckError:
        return
    raise AssertionError(what)


@pytest.mark.parametrize("name", SOURCES)
def test_no_node_can_be_altered(name: str) -> None:
    net = genuine(name)
    assert net.verdict("decoder") == COMPUTES_SOURCE
    for what, other in altered_nodes(net):
        # What heads and layers are called is given back.
        if what[1] != "about" or not what[0][0].endswith((".mean", ".units")):
            is_refused(other, what, not name.startswith("RASP"))


@pytest.mark.parametrize("name", SOURCES)
def test_no_array_of_places_can_be_altered(name: str) -> None:
    """Those of weights are altered elsewhere, number by number."""
    net = genuine(name)
    for of, own in net.arrays.items():
        if own.dtype.kind not in "iu" or of.endswith((".rows", ".columns", ".to")):
            continue
        for change in (own + 1, own[::-1], own[:-1], np.append(own, own[-1:])):
            if not np.array_equal(change, own):
                other = copy.copy(net)
                other.arrays = net.arrays | {of: change}
                is_refused(other, of, not name.startswith("RASP"))


@pytest.mark.parametrize("name", ["a machine", "RASP"])
def test_no_place_that_is_added_to_can_be_altered(name: str) -> None:
    net = genuine(name)
    for of, own in net.arrays.items():
        for place in (0, len(own) - 1) if of.endswith(".to") and len(own) else ():
            other = copy.copy(net)
            other.arrays = net.arrays | {of: own.copy()}
            other.arrays[of][place] = (own[place] + 1) % own.max()
            is_refused(other, of, True, whole=True)


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_around_the_nodes_can_be_altered(name: str) -> None:
    net = genuine(name)
    own = graph(net)

    def refused(**changes: Any) -> None:
        other = copy.copy(net)
        other.network = {**own, **changes}
        is_refused(other, changes, not name.startswith("RASP"), whole="columns" in changes)

    refused(name="text")
    refused(inputs={})
    tokens = own["inputs"]["tokens"]
    for key, value in (("shape", ["words"]), ("dtype", "uint8"), ("about", "")):
        refused(inputs={"tokens": tokens | {key: value}})
    refused(inputs=own["inputs"] | {"more": tokens})
    refused(outputs={})
    refused(outputs=own["outputs"] | {"more": "embedding"})
    refused(outputs=own["outputs"] | {"logits": "embedding"})
    refused(columns={})
    some = {"layer_0": own["columns"]["embedding"]}
    refused(columns={**own["columns"], **some, "placed": own["columns"]["embedding"]})
    for value, names in own["columns"].items():
        refused(columns=own["columns"] | {value: names[::-1]})
    for state, entry in own["state"].items():
        refused(state={key: each for key, each in own["state"].items() if key != state})
        for key, value in (("about", ""), ("next", "embedding"), ("shape", ["rows", entry["shape"][1]])):
            refused(state=own["state"] | {state: entry | {key: value}})


def test_arrays_beside_the_graph_are_refused() -> None:
    for name in ("more", f"{OF_NETWORK}more"):
        other = copy.copy(genuine("a machine"))
        other.arrays = other.arrays | {name: np.zeros(3)}
        is_refused(other, name, True, whole=True)


@pytest.mark.parametrize("name", SOURCES)
def test_the_loader_refuses_other_graphs_too(name: str) -> None:
    """Where nodes are others; what the checker binds to the source besides, reasons and names, it takes."""
    from tapegrad.networks.texts import parts_of

    for what, other in altered_nodes(genuine(name)):
        if what[1] not in ("about", "name"):
            arrays = {key.removeprefix(OF_NETWORK): own for key, own in other.arrays.items()}
            try:
                parts_of(from_json(graph(other), arrays))
            except BrokenNet:
                continue
            raise AssertionError(what)
