"""A bad graph for every condition on the walk through the layers of a step, each refused for its reason."""

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE, OF_NETWORK
from tests.check import of_heads
from tests.check.altering import Net, both, net_of
from tests.check.small_sources import two_tapes

Change = Callable[[Net], Any]


@cache
def genuine(name: str) -> Net:
    """Nets as their graphs."""
    if name == "paper":
        own = net_of(two_tapes("1"), "transformer", {"steps": 3, "form": "paper"})
        config, arrays, (network, more) = of_heads.put_together_as_in_the_paper(own.config, own.arrays)
        return Net(config, arrays | more, own.claims, own.source, network)
    options = {"steps": 3, "form": "practical", "attention": name}
    own = net_of(two_tapes("1"), "transformer", options)
    config, (network, arrays) = of_heads.put_together(own.config, own.arrays)
    return Net(config, arrays, own.claims, own.source, network)


@pytest.mark.parametrize("name", ["hardmax", "softmax", "paper"])
def test_genuine_graphs_pass(name: str) -> None:
    assert genuine(name).verdict("transformer") == COMPUTES_SOURCE


def graph(net: Net) -> dict[str, Any]:
    assert net.network is not None
    return net.network


def node(net: Net, name: str) -> dict[str, Any]:
    return next(own for own in graph(net)["nodes"] if own["name"] == name)


def reads(name: str, *values: str) -> Change:
    return lambda net: node(net, name).update(reads=list(values))


def settings(name: str, **own: Any) -> Change:
    return lambda net: node(net, name)["settings"].update(own)


def becomes(name: str, operation: str, *values: str, **own: Any) -> Change:
    """Another operation without arrays."""
    return lambda net: [
        node(net, name).pop("arrays", None),
        node(net, name).update(operation=operation, reads=list(values), settings=own),
    ]


def number(name: str, part: str, place: Any, value: Any) -> Change:
    return lambda net: net.put(f"{OF_NETWORK}{name}.{part}" if part else OF_NETWORK + name, place, value)


def array(name: str, own: Any) -> Change:
    """Another array of the same type."""

    def change(net: Net) -> None:
        full = OF_NETWORK + name
        net.arrays[full] = np.array(own, net.arrays[full].dtype)

    return change


def more(before: str, name: str, operation: str, *values: str, **own: Any) -> Change:
    """One node more, before another."""

    def change(net: Net) -> None:
        nodes = graph(net)["nodes"]
        made = {"name": name, "operation": operation, "reads": list(values), "settings": own}
        nodes.insert(nodes.index(node(net, before)), made)

    return change


def constant(before: str, name: str, value: Any) -> Change:
    """A constant more."""

    def change(net: Net) -> None:
        more(before, name, "constant")(net)
        node(net, name)["arrays"] = {"value": name}
        net.arrays[OF_NETWORK + name] = np.array(value)

    return change


def output(name: str, value: str) -> Change:
    return lambda net: graph(net)["outputs"].update({name: value})


def state(name: str, **own: Any) -> Change:
    return lambda net: graph(net)["state"][name].update(own)


HEAD, TOKEN = "block_5", "block_4.token"
CASES: list[tuple[str, Change]] = [
    ("given something else than tokens", lambda net: graph(net)["inputs"].update(
        spare={"shape": [1], "dtype": "float32"})),
    ("hands on something else", lambda net: graph(net)["state"].update(
        spare=graph(net)["state"]["step"])),
    ("other outputs than a step", output("spare", "put_1")),
    ("other names than coordinates", lambda net: graph(net)["columns"].update(
        put_17=[f"other[{i}]" for i in range(len(graph(net)["columns"]["put_71"]))])),
    ("coordinates lack names", lambda net: graph(net)["state"]["output"].pop("columns")),
    ("first vector is something else", number("first_output", "", (0, 3), 1)),
    ("digits are of another number", both(more("time", "twice", "add", "step", "step"),
                                          reads("time", "twice"))),
    ("two digits stand at one place", number("put_1", "to", 0, 25)),
    ("step's number stand elsewhere", array("put_1.to", [25, 24])),
    ("has no part in a step", more("greater_80", "spare", "relu", "put_71")),
    ("has no part in a step", constant("greater_80", "spare", [1.0])),
    ("is read by other layers than one", both(more("greater_80", "spare", "affine", "put_13"),
        lambda net: node(net, "spare").update(arrays=node(net, "block_4.0")["arrays"]))),
    ("goes on in two ways", both(more("greater_80", "spare", "put", "put_13", "block_4.1"),
        lambda net: node(net, "spare").update(arrays=node(net, "put_17")["arrays"]))),
    # heads
    ("shares' is relu and should be hardmax", becomes(f"{HEAD}.shares", "relu", f"{HEAD}.scores")),
    ("heads have different temperatures", becomes(f"{HEAD}.shares", "softmax", f"{HEAD}.scores",
                                                  temperature=16.0)),
    ("a query is made of another vector", reads(f"{HEAD}.query", "output")),
    ("a key or a value is made of another vector", reads(f"{HEAD}.key", "output")),
    ("a key or a value is made of another vector", reads(f"{HEAD}.value", "output")),
    ("looks at what is no place", both(reads(f"{TOKEN}_key", "later"), more(
        "constant_4", "later", "relu", "tokens"), lambda net: graph(net)["nodes"].sort(
        key=lambda own: own["name"] not in ("time", "put_1", "layers_2", "later")))),
    ("a head looks at what another has kept", array("take_19.index", [6, 7, 8, 9, 10, 11])),
    ("a head looks at what another has kept", array("take_22.index", [1, 0])),
    ("what a head finds is not put to places in order", lambda net: array(
        "put_28.to", net.arrays[f"{OF_NETWORK}put_28.to"][::-1])(net)),
    ("the null place has a value", number("first_values", "", (0, 0), 1)),
    ("the null place has a value", number("constant_7", "value", (0, 0), 1)),
    ("the null key is off", number("first_keys", "", (0, 0), 1)),
    ("more null places than one", both(array("constant_4.value", np.zeros((2, 6))),
                                       lambda net: array("constant_7.value", np.zeros(
        (2, net.arrays[f"{OF_NETWORK}constant_7.value"].shape[1])))(net))),
    # gates, and what corrects
    ("stands in two places", reads("put_17", "put_13", "block_4.token.mean")),
    ("there is no relu", becomes("block_4.0.relu", "sqrt", "block_4.0")),
    ("unknown correction", number("block_15.1", "bias", 0, -0.5)),
    ("unknown correction", number("block_15.2", "values", 0, 4.0)),
    ("begins with something else than zeros", number("constant_70", "value", (0, 3), 1.0)),
    ("read by other layers than one", reads("put_71", "put_62", "block_15.2.relu")),
    ("writes a slot", number("layers_2", "to", 0, 94)),
    ("writes a slot twice", number("layers_2", "to", 1, 79)),
    ("units and sums do not take turns", number("layers_2", "relu", 0, 0)),
    ("give something else than a vector", number("layers_2", "out", 0, 1)),
    ("writes a slot|not there for it", number("layers_2", "columns", 0, 94)),
    # the end
    ("runs end at another number|ends at another number", number("constant_79", "value", (), 0.25)),
    ("the output is not what is handed on", output("output", "put_62")),
    ("is something else than|multiplies|should be greater", output("halted", "halting.0")),
    ("not counted from 0", number("constant_72", "value", 0, 2)),
    ("not counted from 0", number("first_step", "", 0, 1)),
    ("the end is read off something else|given where", reads("halting.0", "output")),
    ("keys are kept for other heads", reads("join_74", "block_7.key", "block_5.key")),
    ("values are kept for other heads", reads("join_76", "block_7.value", "block_5.value")),
    ("keys are not kept in order", reads("join_75", "join_74", "keys")),
    ("given where it should be made", state("keys", next="keys")),
    ("stands in two places|are kept for", reads("join_74", "block_5.key", "block_5.key")),
    ("arrays beside its network", lambda net: net.arrays.update(spare=np.zeros(1))),
]  # fmt: skip
PAPER: list[tuple[str, Change]] = [
    ("tokens have other coordinates", lambda net: graph(net)["inputs"]["tokens"]["columns"].reverse()),
    ("other entries", lambda net: net.config.update(attention="hardmax")),
    ("the number of a step is added elsewhere", lambda net: array(
        "put_1.to", net.arrays[f"{OF_NETWORK}put_1.to"][::-1])(net)),
    ("layers are not named", lambda net: node(net, "block_0.0").update(about="something")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "reason", "change"),
    [*(("hardmax", *case) for case in CASES), *(("paper", *case) for case in PAPER)],
)
def test_a_bad_graph_is_refused_for_its_reason(name: str, reason: str, change: Change) -> None:
    net = copy.deepcopy(genuine(name))
    change(net)
    with pytest.raises(CheckError, match=reason):
        net.verdict("transformer")
