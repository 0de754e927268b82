"""Nothing of the loss of a net that is trained is left out: whatever is altered in it is refused."""

import re
from functools import cache
from typing import Any

import pytest

import tapegrad as tg
from tapegrad_check import CheckError
from tapegrad_check.targets.emulator import PROVED
from tests.check.altering import Net, graph_arrays, net_of
from tests.check.graphs import Altered, altered_around, altered_arrays, altered_nodes, graph
from tests.check.test_refusals_of_trained import TESTED
from tests.check.test_refusals_of_trained import genuine as trained

SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "simplex": ("1RB1LB_1LA1RZ", {"inputs": [[]]}),
    "tape": ("1RB1LB_1LA1RZ", {"cells": 8}),
    "emulator": ("learn-parity2", {}),
    "emulator, noise-tolerant": ("learn-parity2", {"form": "noise-tolerant", "samples": 2}),
}
NAMES = [*SOURCES, "extended"]
FREE = {("network.data_cells.to", "0"), ("network.result_cells.index", "0")}
"""Of an extended network: that bit of the data, or of theta, lies elsewhere, in a place where a 0 is as well;
and where bits lie is part of what was trained."""


@cache
def genuine(name: str) -> Net:
    """A net as it is saved."""
    if name == "extended":
        return trained()
    (source, options), target = SOURCES[name], name.split(",")[0]
    made = tg.compile(source, target, **options)
    network, arrays = graph_arrays(made.net.network)
    own = net_of(tg.read(source), target, options)
    return Net(made.net.config(), made.net.arrays() | arrays, own.claims, own.source, network)


def none_passes(name: str, altered: Altered) -> None:
    target = name.split(",")[0]
    every = list(altered)
    assert len(every) > 20
    for what, net in every:
        try:
            net.verdict(target)
        except CheckError:
            continue
        assert what in FREE, what


@pytest.mark.parametrize("name", NAMES)
def test_no_node_can_be_altered(name: str) -> None:
    own = genuine(name)
    assert own.verdict(name.split(",")[0]).startswith((PROVED, TESTED))
    # What stands behind in an extended network are the nodes of `tape`; of those before a quarter will do.
    none_passes(name, altered_nodes(own, slice(0, 72, 4) if name == "extended" else slice(None)))


@pytest.mark.parametrize("name", NAMES)
def test_no_array_can_be_altered(name: str) -> None:
    none_passes(name, altered_arrays(genuine(name)))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_around_the_nodes_can_be_altered(name: str) -> None:
    own = genuine(name)
    none_passes(
        name,
        (
            (what, net)
            for what, net in altered_around(own)
            # The one thing that a forger may choose, since the verdict says so: a step of which length.
            if name != "simplex" or not _line_search(net)
        ),
    )


def _line_search(net: Net) -> bool:
    rule = graph(net).get("training") or {}
    search = rule.get("updates", {}).get("s", {}).get("line_search")
    return search is True


def test_where_a_graph_differs_is_said() -> None:
    for what, other in altered_nodes(genuine("simplex")):
        if what[1] == "about":
            (name, operation), _ = what
            with pytest.raises(CheckError, match=rf"'{re.escape(name)}' is not the {operation}"):
                other.verdict("simplex")
