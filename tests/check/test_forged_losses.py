"""Nothing of the loss of a net that is trained is left out: whatever is altered in it is refused."""

import re
from functools import cache
from typing import Any

import pytest

import tapegrad as tg
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE
from tests.check.altering import Net, graph_arrays, net_of
from tests.check.graphs import Altered, altered_around, altered_arrays, altered_nodes, graph

SOURCES: dict[str, tuple[str, dict[str, Any]]] = {
    "simplex": ("1RB1LB_1LA1RZ", {"inputs": [[]]}),
    "tape": ("1RB1LB_1LA1RZ", {"cells": 8}),
}


@cache
def genuine(target: str) -> Net:
    """A net as it is saved."""
    source, options = SOURCES[target]
    made = tg.compile(source, target, **options)
    network, arrays = graph_arrays(made.net.network)
    own = net_of(tg.read(source), target, options)
    return Net(made.net.config(), made.net.arrays() | arrays, own.claims, own.source, network)


def none_passes(target: str, altered: Altered) -> None:
    every = list(altered)
    assert len(every) > 20
    for what, net in every:
        try:
            net.verdict(target)
        except CheckError:
            continue
        raise AssertionError(what)


@pytest.mark.parametrize("target", SOURCES)
def test_no_node_can_be_altered(target: str) -> None:
    assert genuine(target).verdict(target) == COMPUTES_SOURCE
    none_passes(target, altered_nodes(genuine(target)))


@pytest.mark.parametrize("target", SOURCES)
def test_no_array_can_be_altered(target: str) -> None:
    none_passes(target, altered_arrays(genuine(target)))


@pytest.mark.parametrize("target", SOURCES)
def test_nothing_around_the_nodes_can_be_altered(target: str) -> None:
    own = genuine(target)
    none_passes(
        target,
        (
            (what, net)
            for what, net in altered_around(own)
            # The one thing that a forger may choose, since the verdict says so: a step of which length.
            if target != "simplex" or not _line_search(net)
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
