"""A bad graph for every condition that the checker has for networks of target `relu`: all parts of it are
accounted for, in both forms."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import pytest

from tapegrad.circuits.library import ready
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE, OF_NETWORK
from tests.check.altering import Net, net_of

FORMS: dict[str, dict[str, Any]] = {
    "compact": {},
    "without skips": {"skips": False},
    "paper": {"form": "paper"},
    "no correction": {"correction": "none"},
}
Change = Callable[[Net, dict[str, Any]], Any]
"""Alters a net, and its graph, as JSON."""


@cache
def genuine(form: str) -> Net:
    return net_of(ready("multiplier3"), "relu", FORMS[form])


@pytest.mark.parametrize("form", FORMS)
def test_genuine_nets_pass(form: str) -> None:
    assert genuine(form).verdict("relu") == COMPUTES_SOURCE


def node(graph: dict[str, Any], number: int = 0) -> dict[str, Any]:
    return graph["nodes"][number]


def part(name: str) -> str:
    return f"{OF_NETWORK}units.{name}"


def to(name: str, place: Any, value: Any) -> Change:
    """Another number in an array of the layers."""
    return lambda net, graph: net.put(part(name), place, value)


def _slot_more(net: Net, graph: dict[str, Any]) -> None:
    node(graph)["settings"]["slots"] += 1


def _another_half(net: Net, graph: dict[str, Any]) -> None:
    net.arrays[f"{OF_NETWORK}constant_1.value"] = np.array(0.25, np.float32)


def _another_shape(net: Net, graph: dict[str, Any]) -> None:
    net.arrays[f"{OF_NETWORK}constant_3.value"] = np.array([0.5], np.float32)


def _another_node(net: Net, graph: dict[str, Any]) -> None:
    """The bits are cut off at 0 once more, which changes nothing."""
    graph["nodes"].append({"name": "more", "operation": "relu", "reads": [graph["outputs"]["outputs"]]})


def _another_output(net: Net, graph: dict[str, Any]) -> None:
    graph["outputs"]["signs"] = "units"


def _signs_as_outputs(net: Net, graph: dict[str, Any]) -> None:
    graph["columns"]["units"] = graph["columns"].pop(graph["outputs"]["outputs"])
    graph["outputs"]["outputs"] = "units"


def _signs_with_names(net: Net, graph: dict[str, Any]) -> None:
    graph["columns"]["units"] = graph["columns"][graph["outputs"]["outputs"]]


def _state(net: Net, graph: dict[str, Any]) -> None:
    """Bits of the step before, which nobody reads."""
    net.arrays[f"{OF_NETWORK}first"] = np.zeros((1, 1), np.float32)
    graph["state"]["before"] = {"shape": [1, 1], "dtype": "float32", "first": "first", "next": "before"}


def _another_input(net: Net, graph: dict[str, Any]) -> None:
    graph["inputs"]["more"] = deepcopy(graph["inputs"]["bits"])


def _twice_the_sum(net: Net, graph: dict[str, Any]) -> None:
    """Signs times signs: for -1 and +1 that is 1, and half of it and a half as well."""
    node(graph, 2)["reads"] = ["units", "units"]


def _unnamed(net: Net, graph: dict[str, Any]) -> None:
    del graph["columns"][graph["outputs"]["outputs"]]


def _wide(name: str) -> Change:
    """The numbers of an array in another type."""

    def change(net: Net, graph: dict[str, Any]) -> None:
        kind = {"int64": np.int32, "int32": np.int64, "uint8": np.int32}[net.arrays[part(name)].dtype.name]
        net.retype(part(name), kind)

    return change


def _exchanged(net: Net, graph: dict[str, Any]) -> None:
    """Two outputs change places, in what is read off the slots."""
    net.put(part("out"), [0, 1], net.arrays[part("out")][[1, 0]])


def _unwritten(net: Net, graph: dict[str, Any]) -> None:
    """The first unit reads a slot to which nothing has been written yet, and which is 0."""
    last = max(net.arrays[part("to")])
    assert last >= len(graph["inputs"]["bits"]["columns"])
    net.put(part("columns"), 0, last)
    if net.arrays[part("to")][0] == last:
        net.put(part("columns"), 0, last - 1)


def _overwritten(net: Net, graph: dict[str, Any]) -> None:
    """The outputs go over one another."""
    net.put(part("to"), -1, net.arrays[part("to")][-2])


BAD: dict[str, tuple[Change, str]] = {
    "another name": (lambda net, graph: graph.update(name="transformer"), "of another target"),
    "state": (_state, "takes steps"),
    "another input": (_another_input, "not one from bits to outputs"),
    "another output": (_another_output, "not one from bits to outputs"),
    "whole numbers for bits": (
        lambda net, graph: graph["inputs"]["bits"].update(dtype="int64"),
        "another type",
    ),
    "an unknown type": (lambda net, graph: graph["inputs"]["bits"].update(dtype="float16"), "are unknown"),
    "a batch": (lambda net, graph: graph["inputs"]["bits"]["shape"].insert(0, 2), "not rows of bits"),
    "patterns of another name": (
        lambda net, graph: graph["inputs"]["bits"]["shape"].__setitem__(0, "rows"),
        "not rows of bits",
    ),
    "words about bits": (
        lambda net, graph: graph["inputs"]["bits"].update(about="-1 or 1"),
        "not rows of bits",
    ),
    "words about units": (lambda net, graph: node(graph).update(about="a full adder"), "says what it is for"),
    "another node": (_another_node, "not one of layers alone"),
    "signs as outputs": (_signs_as_outputs, "an output has no name, or what is none has one"),
    "signs with names": (_signs_with_names, "an output has no name, or what is none has one"),
    "outputs without names": (_unnamed, "an output has no name, or what is none has one"),
    "a product of signs": (_twice_the_sum, "not those of the layers"),
    "another half": (_another_half, r"bits are not \(x \+ 1\) / 2"),
    "a half for each": (_another_shape, r"bits are not \(x \+ 1\) / 2"),
    **{
        f"{name} of another type": (_wide(name), f"{name} of the layers are not of type")
        for name in ("bounds", "starts", "columns", "to", "relu", "out")
    },
    "an output with a ReLU": (to("relu", -1, 1), "an output has one"),
    "a unit without": (to("relu", 0, 0), "a unit has no ReLU"),
    "outputs exchanged": (_exchanged, "not the rows of the last layer"),
    "a slot more": (_slot_more, "more slots than are ever written to"),
    "an entry of 0": (to("values", 0, 0), "an entry is 0"),
    "a slot that is not there": (to("columns", 0, 1 << 20), "a slot it lacks"),
    "a slot before the first": (to("columns", 0, -1), "a slot it lacks"),
    "an output that is not there": (to("out", 0, 1 << 20), "a slot it lacks"),
    "a slot that is not written yet": (_unwritten, "in no earlier layer|writes a slot in the layer"),
    "outputs over one another": (_overwritten, "writes a slot twice"),
    "an entry without a place": (
        lambda net, graph: net.arrays.update({part("values"): net.arrays[part("values")][:-1]}),
        "entries without a weight",
    ),
    "rows that do not follow": (to("starts", 1, 1 << 20), "do not follow"),
    "layers that do not follow": (to("bounds", 1, 1 << 20), "do not follow"),
    "an array that nothing uses": (
        lambda net, graph: net.arrays.update({f"{OF_NETWORK}more": np.zeros(1)}),
        "no node of",
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", BAD)
def test_bad_graphs(name: str, form: str) -> None:
    change, reason = BAD[name]
    net = deepcopy(genuine(form))
    assert net.network is not None
    change(net, net.network)
    with pytest.raises(CheckError, match=reason):
        net.verdict("relu")
