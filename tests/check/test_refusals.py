"""A bad net for every condition of the checkers of machines: each is refused for the reason that it has."""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from tapegrad._sources import read, source_to_json
from tapegrad.machines.model import TuringMachine
from tapegrad.machines.sampler import random_grid_machine
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE
from tapegrad_check.sources import GridMachine, GridRule, Machine, Rule, model_of
from tapegrad_check.targets import tape, transformer
from tests.check.altering import (
    RULES,
    Change,
    Channels,
    Net,
    add,
    channels,
    claims,
    config,
    constants,
    machine,
    net_of,
    put,
    retype,
    settings,
)

NETS: dict[str, dict[str, Any]] = {
    "tape": {"cells": 16},
    "simplex": {"inputs": [[], ["1"]]},
    "transformer": {"form": "paper", "steps": 4},
    "transformer thirds": {"steps": 4, "correction": "thirds"},
    "transformer softmax": {"form": "paper", "steps": 4, "attention": "softmax"},
    "rcnn": {"margin": 3},
    "rcnn ternary": {"margin": 3, "form": "paper"},
}


@cache
def genuine(name: str) -> Net:
    """A net of the busy beaver with two states, which needs every part of a net."""
    return net_of(read("1RB1LB_1LA1RZ"), name.split()[0], NETS[name])


@cache
def deciding() -> Net:
    """A net with verdicts."""
    return net_of(read("palindrome"), "transformer", {"form": "paper", "steps": 4})


@pytest.mark.parametrize("name", NETS)
def test_genuine_nets_pass(name: str) -> None:
    assert genuine(name).verdict(name.split()[0]) == COMPUTES_SOURCE


@pytest.mark.parametrize("symbols", [2, 4, 5])
@pytest.mark.parametrize("options", [{}, {"form": "paper"}], ids=["channels", "ternary"])
def test_filters_for_more_symbols_pass_and_no_others(options: dict[str, Any], symbols: int) -> None:
    net = net_of(random_grid_machine(symbols, states=2, symbols=symbols), "rcnn", options)
    assert net.verdict("rcnn") == COMPUTES_SOURCE
    other_rule(net)
    with pytest.raises(CheckError, match="rules are not those of the source"):
        net.verdict("rcnn")


def other_rule(net: Net) -> None:
    assert isinstance(net.source, Machine | GridMachine)
    rules: dict[Any, Any] = dict(net.source.rules)
    case, rule = next(iter(rules.items()))
    state = net.source.states[1] if rule.state == net.source.states[0] else net.source.states[0]
    net.machine(rules=rules | {case: replace(rule, state=state)})


def fewer_rules(net: Net) -> None:
    assert isinstance(net.source, Machine | GridMachine)
    net.machine(rules=dict(list(net.source.rules.items())[:-1]))


def more_rules(net: Net) -> None:
    assert isinstance(net.source, Machine | GridMachine)
    last, blank = net.source.states[-1], net.source.blank
    if isinstance(net.source, Machine):
        net.machine(rules={**net.source.rules, (last, (blank,)): Rule((blank,), (1,), last)})
    else:
        net.machine(rules={**net.source.rules, (last, blank): GridRule(blank, "up", last)})


def renamed(kind: str) -> Change:
    def change(net: Net) -> None:
        names = net.config[kind]
        net.config[kind] = [names[0], *names[:0:-1]] if len(names) > 2 else names[::-1]

    return change


def not_a_machine(net: Net) -> None:
    net.source = model_of(*source_to_json(read("parity4")))


TAPE: list[tuple[str, Change]] = [
    ("ends with another loss", claims(final_loss=0.25)),
    ("arrays beside its network", lambda net: net.arrays.update(extra=np.zeros(1))),
    ("other entries", config(more=1)),
    ("two of the states", lambda net: config(states=["A"] * len(net.config["states"]))(net)),
    ("not two symbols", config(symbols=["0", "1", "2"])),
    ("number of cells", config(cells=1)),
    ("number of cells", config(cells=(1 << 22) + 1)),
    ("a size is out of range", config(cells=16.0)),
    ("does not fit the states", lambda net: net.config["states"].pop()),
    ("does not show the symbols", put("down", (0, 0), 1)),
    ("does not satisfy", constants(b=-12)),
    ("b is not a whole number", constants(b=1 << 17)),
    ("does not satisfy", lambda net: net.config["constants"].update(b=4)),  # 4^3 - 2 * 4 < 4 * 4^2
    ("c <= b|in the gap", lambda net: net.config["constants"].update(b=5)),
    ("c <= b", constants(c=-4000)),
    ("c <= b", lambda net: net.config["constants"].update(c=net.config["constants"]["b"] ** 3)),
    ("losses would be rounded", lambda net: net.config["constants"].update(c=(1 << 50) - (1 << 16) + 1)),
    ("the gap of", lambda net: net.config["constants"].update(c=(1 << 50) - (1 << 16))),
    ("the gap of", constants(low=1 << 14, high=1 << 14)),
    ("the gap of", constants(low=-(1 << 11), high=-(1 << 10))),
    ("is another", constants(high=1)),
    ("no whole number", lambda net: net.config["constants"].update(low=0.5)),
    ("weighs neither", put("vertex_weight", 0, 1.0)),
    ("a head stays", put("moves", (0, 0), 0)),
    ("neither -1 nor", put("written", (0, 0), 2)),
    ("a head moves at a vertex that halts", put("moves", (-1, 0), 1)),
    ("something is written at a vertex that halts", put("written", (-1, 0), -1)),
    ("columns that there are not", put("edge_to", 0, 10**6)),
    ("columns that there are not", lambda net: net.put("edge_to", 0, len(net.arrays["down"]))),
    ("columns that there are not", lambda net: net.put("edge_from", 0, len(net.arrays["down"]))),
    ("columns that there are not", put("edge_to", 0, -1)),
    ("columns that there are not", put("edge_from", 0, -1)),
    ("one edge for each combination", put("edge_from", 0, 1)),
    ("one state with all symbols", add("edge_to", 0, 2)),
    ("another weight than", add("edge_weight", 0, 1)),
    ("claims edges", claims(edges=1)),
    ("claims lead", claims(lead=1)),
    ("no machine", not_a_machine),
    ("states are not those of the source", renamed("states")),
    ("symbols are not those of the source", renamed("symbols")),
    ("number of tapes than the source", machine(tapes=2)),
    ("something else than its source", other_rule),
    ("something else than its source", more_rules),
    ("runs on where its source halts", fewer_rules),
    ("something else than its source", lambda net: net.put("moves", (0, 0), -net.arrays["moves"][0, 0])),
    ("something else than its source", lambda net: net.put("written", (0, 0), -net.arrays["written"][0, 0])),
]

SIMPLEX: list[tuple[str, Change]] = [
    ("unit is not a whole number", config(unit=0)),
    ("the steps is not", config(most_steps=-2)),
    ("a line search or there is none", config(line_search=1)),
    ("other entries", config(more=1)),
    ("ends with another loss", claims(final_loss=0.25)),
    ("first cell", config(first_cell=0.0)),
    ("first cell", config(first_cell=(1 << 31) + 1)),
    ("off its tape", config(first_cell=1 << 31)),
    ("first cell", config(first_cell=-(1 << 31) - 1)),
    ("off its tape", config(first_cell=-(1 << 31))),
    ("'cells' is not of type", retype("cells", np.int64)),
    ("no vertices", lambda net: net.arrays.update({n: a[:0] for n, a in net.arrays.items()})),
    ("'state' is not of type", retype("state", np.int64)),
    ("'heads' is not of type", retype("heads", np.int64)),
    (
        "other vertices than configurations",
        lambda net: net.arrays.update(
            {name: array[1:] for name, array in net.arrays.items() if name in ("state", "heads", "cells")}
        ),
    ),
    ("other arrays", lambda net: net.arrays.update(extra=np.zeros(1))),
    ("'state' is out of range", put("state", 0, 9)),
    ("'state' is out of range", lambda net: net.put("state", 0, len(net.config["states"]))),
    ("'state' is out of range", put("state", 0, -1)),
    ("'cells' is out of range", put("cells", (0, 0, 0), 9)),
    ("'cells' is out of range", put("cells", (0, 0, 0), 2)),
    ("columns that there are not", lambda net: net.put("edge_to", 0, len(net.arrays["state"]))),
    ("columns that there are not", put("edge_to", 0, -1)),
    ("back to where it begins", lambda net: net.put("edge_to", 0, net.arrays["edge_from"][0])),
    ("off its tape", put("heads", (0, 0), 99)),
    ("off its tape", lambda net: net.put("heads", (0, 0), net.config["first_cell"] - 1)),
    ("off its tape", lambda net: net.put("heads", (0, 0), _end(net) + 1)),
    ("one edge from every vertex", put("edge_from", 0, 3)),
    ("one edge from every vertex", put("edge_from", 1, 0)),
    ("not the mean", add("edge_to", 0, 1)),
    ("weight for each vertex", config(unit=1 << 48)),
    ("out of range", put("vertex_weight", 0, -(2.0**50))),
    ("not downhill", add("edge_weight", 0, 100)),
    ("not downhill", lambda net: net.put("edge_weight", 0, _weight_at(net, "edge_from"))),
    ("not downhill", lambda net: net.put("edge_weight", 0, _weight_at(net, "edge_to"))),
    ("not the mean", add("edge_weight", 0, 0.25)),
    ("B does not exceed", config(most_steps=0)),
    ("B does not exceed", lambda net: config(most_steps=net.config["most_steps"] - 1)(net)),
    ("claims steps", lambda net: config(most_steps=net.config["most_steps"] + 1)(net)),
    ("one unit, below", lambda net: [net.add(f"{kind}_weight", ..., 0.5) for kind in ("vertex", "edge")]),
    ("by more than one cell", lambda net: _far_away(net)),
    (
        "under no head",
        lambda net: net.put("cells", (_halted(net), 0, 0), 1 - net.arrays["cells"][_halted(net), 0, 0]),
    ),
    ("claims drop", claims(drop=1)),
    ("claims vertices", claims(vertices=1)),
    ("no machine", not_a_machine),
    ("states are not those of the source", renamed("states")),
    ("symbols are not those of the source", renamed("symbols")),
    ("number of tapes than the source", machine(tapes=2)),
    ("something else than its source", other_rule),
    ("something else than its source", fewer_rules),
]


def _end(net: Net) -> int:
    """The last cell."""
    return net.config["first_cell"] + net.arrays["cells"].shape[2] - 1


def _weight_at(net: Net, end: str) -> float:
    """Of the vertex at an end of the first edge."""
    return float(net.arrays["vertex_weight"][net.arrays[end][0]])


def _far_away(net: Net) -> None:
    """The head of a halted vertex at the end of the tape that is farther away."""
    vertex, first, cells = _halted(net), net.config["first_cell"], net.arrays["cells"].shape[2]
    before = net.arrays["heads"][net.arrays["edge_from"][net.arrays["edge_to"] == vertex][0], 0]
    ends = first, first + cells - 1
    net.put("heads", (vertex, 0), max(ends, key=lambda end: abs(end - before)))


def _halted(net: Net) -> int:
    """A vertex that halts, and that an edge leads to."""
    return int(np.setdiff1d(net.arrays["edge_to"], net.arrays["edge_from"])[0])


W = "layer.1.ff.W_1"
TRANSFORMER: list[tuple[str, Change]] = [
    ("unknown name or move", lambda net: net.config["rules"][0].__setitem__(4, 2)),
    ("unknown name or move", lambda net: net.config["rules"][0].__setitem__(4, True)),
    ("unknown name or move", lambda net: net.config["rules"][0].__setitem__(2, "?")),
    ("two rules for one case", lambda net: net.config["rules"].append(net.config["rules"][0])),
    ("start state or the blank", config(blank="?")),
    ("no one-tape machine", not_a_machine),
    ("no one-tape machine", machine(tapes=2)),
    ("states or symbols are not", renamed("states")),
    ("states or symbols are not", config(start_state="B")),
    ("rules are not those of the source", other_rule),
    ("rules are not those of the source", fewer_rules),
    ("number of steps", config(steps=0)),
    ("coordinates do not fit", config(steps=100)),
    ("more columns than names", lambda net: net.arrays.update(h_0=net.arrays["h_0"][:3])),
    ("not in their order", lambda net: config(coordinates=net.config["coordinates"][::-1])(net)),
    ("layers are not named", lambda net: config(purposes=net.config["purposes"][::-1])(net)),
    ("other arrays", lambda net: net.arrays.update(extra=np.zeros(1))),
    ("is not of type float32", retype("E", np.float64)),
    ("weights of another type", retype(W, np.float16)),
    ("layer 1 does not compute", add(W, (0, 0), 1)),
    ("layer 1 does not compute", put(W, (0, 0), np.nan)),
    ("b_1|layer 0", add("layer.0.ff.b_1", 0, 2.0**-140)),
    ("E is not as in", add("E", (0, 0), 1)),
    ("h_0 is not as in", add("h_0", 0, 1)),
    ("theta_halt is not as in", add("theta_halt", -1, 1)),
    ("theta_cls is not as in", add("theta_cls", 0, 1)),
    ("theta_cls is not as in", machine(accept=("A",))),
    ("unknown correction", config(low=0.2)),
    ("other claims", config(temperature=math.log(2 * 6 / 0.25))),
    ("other entries", config(attention="hardmax")),
    ("claims largest_score", claims(largest_score=1.0)),
    ("other claims", claims(faith=1.0)),
    ("claims exact_correction", claims(exact_correction=False)),
]

SOFTMAX: list[tuple[str, Change]] = [
    ("temperature is not the one derived", config(temperature=1.0)),
    ("temperature is not the one derived", config(temperature=1e38)),
    ("is not a finite number", config(temperature=float("inf"))),
]

RCNN: list[tuple[str, Change]] = [
    ("encoding is unknown", config(encoding="binary")),
    ("the margin", config(margin=0)),
    ("units lack names", config(names=[])),
    ("name of a unit", config(names={"units": [1]})),
    ("'rules' is not of type", retype("rules", np.int32)),
    ("number out of range", put("rules", (0, 0, 1), 5)),
    ("number out of range", put("rules", (0, 0, 0), -1)),
    ("no machine on a grid", not_a_machine),
    ("states are not those of the source", renamed("states")),
    ("symbols are not those of the source", renamed("symbols")),
    ("rules are not those of the source", other_rule),
    ("rules are not those of the source", more_rules),
    ("other arrays", lambda net: net.arrays.update(extra=np.zeros(1))),
    ("another number of channels", lambda net: _grid(net, net.arrays["network.first_grid"][1:])),
    ("wrong kind", retype("network.filter.1.values", np.int32)),
    ("of another type than it reads", retype("network.filter.1.values", np.float64)),
    ("is of another type", lambda net: _doubles(net)),
    ("begins as something else", put("network.first_grid", 0, 1.0)),
    ("outside its map", put("network.filter.0.columns", 0, 10**6)),
    ("no whole number", add("network.filter.0.values", 0, 0.5)),
    ("sums reach", channels(lambda own: own.kernel.__setitem__((0, 0, 1, 1), 2.0**24))),
    ("another claim", claims(largest_sum=1)),
    ("diagonal", lambda net: _diagonal(net)),
    ("too large for single", channels(lambda own: own.mix.__setitem__((0, 0), 2.0**24))),
    ("the filter gives", channels(lambda own: own.mix.__setitem__((0, 0), 1 - own.mix[0, 0]))),
    ("last map has a bias", add("network.filter.1.bias", 0, 1)),
    ("takes columns that there are not", put(RULES, 0, -1)),
    ("takes columns that there are not", put(RULES, 0, 10**6)),
    ("in several rows", lambda net: net.arrays.update({RULES: net.arrays[RULES][None]})),
    ("looks at other cells|running wrongly|neither on", put(RULES, 0, 0)),
    ("running wrongly", lambda net: net.arrays.update({RULES: net.arrays[RULES][1:]})),
    ("is not 1/2", put("network.half.value", (), 0.25)),
    ("is not the patches", settings("patches", padding=0.25)),
    ("is not the patches", settings("patches", cells=[0, 1, 2, 3, 4, 5, 6, 8, 7])),
    ("is not the transpose", settings("transpose", order=[2, 1, 0])),
    ("reads no grid|is not the", lambda net: _node(net, "relu").update(operation="sqrt")),
    ("is not the relu", lambda net: _node(net, "relu").update(reads=["patches"])),
    ("more than a filter", lambda net: _more(net)),
    ("says something else", lambda net: _graph(net)["outputs"].update(running="applies")),
    ("says something else", lambda net: _graph(net)["outputs"].update(more="running")),
    ("the network is no filter", lambda net: _renamed_grid(net)),
    ("any height", lambda net: _state(net).update(shape=[_state(net)["shape"][0], "rows", "rows"])),
    ("handed on as something else", lambda net: _state(net).update(next="cells")),
    ("has names", lambda net: _graph(net).update(columns={"filter.0.relu": _names(net)})),
    ("ends before", lambda net: (_graph(net)["nodes"].pop(), _state(net).update(next="filter.1"))),
]


def _graph(net: Net) -> dict[str, Any]:
    assert net.network is not None
    return net.network


def _node(net: Net, operation: str) -> dict[str, Any]:
    return next(own for own in _graph(net)["nodes"] if own["operation"] == operation)


def _state(net: Net) -> dict[str, Any]:
    return _graph(net)["state"]["grid"]


def _names(net: Net) -> list[str]:
    return [f"unit {number}" for number in range(len(net.arrays["network.filter.0.bias"]))]


def _grid(net: Net, first: np.ndarray) -> None:
    net.arrays["network.first_grid"] = first
    _state(net)["shape"][0] = len(first)
    net.arrays["network.filter.0.columns"] = net.arrays["network.filter.0.columns"] % (9 * len(first))


def _doubles(net: Net) -> None:
    """The same filter in double precision."""
    for name, array in net.arrays.items():
        if array.dtype == np.float32:
            net.retype(name, np.float64)
    _state(net)["dtype"] = "float64"


def _diagonal(net: Net) -> None:
    own = Channels(net)
    own.kernel[0, 0, 0, 0] = 1
    own.write()
    net.claims["largest_sum"] = own.largest


def _more(net: Net) -> None:
    """A node that nothing reads."""
    _graph(net)["nodes"].append({"name": "more", "operation": "relu", "reads": ["next"]})


def _renamed_grid(net: Net) -> None:
    own = _graph(net)
    own["state"]["plane"] = own["state"].pop("grid")
    own["nodes"][0]["reads"] = ["plane"]


TERNARY: list[tuple[str, Change]] = [
    ("outside its map", put("network.filter.1.columns", 0, -1)),
    (
        "row by row",
        lambda net: net.put("network.filter.2.rows", slice(None), net.arrays["network.filter.2.rows"][::-1]),
    ),
    ("two entries at one place", lambda net: _repeat(net, "network.filter.3")),
    ("is not the patches", settings("patches", padding=0.0)),
    ("other arrays", lambda net: net.arrays.update(extra=np.zeros(1))),
    ("of another type than it reads", retype("network.filter.0.bias", np.float32)),
    ("does not read one cell with weight 1", add("network.filter.0.values", 0, 1e-9)),
    ("too near", lambda net: net.put("network.filter.0.bias", 0, 0.0)),
    ("not answered by 0 or 1", add("network.filter.1.values", 0, 0.01)),
    ("rounded too much", put("network.filter.1.values", 0, 1e15)),
    ("too large", put("network.filter.4.values", 0, 1e300)),
    ("makes other claims", claims(encoding="channels")),
    ("claims kink_margin", claims(kink_margin=0.5)),
    ("claims bump_rounding", claims(bump_rounding=0.6)),
    (
        "asks about two cells",
        lambda net: net.put("network.filter.0.columns", 0, 5 - net.arrays["network.filter.0.columns"][0]),
    ),
    ("have a bias", add("network.filter.3.bias", 0, 1)),
    ("have a bias", add("network.filter.4.bias", 0, 1)),
    ("not answered by 0 or 1", lambda net: net.put("network.filter.0.bias", 0, -100.0)),
    ("the filter gives", add("network.filter.4.values", 0, 0.01)),
]


def _repeat(net: Net, name: str) -> None:
    """The first entry once more."""
    for part in ("rows", "columns", "values"):
        array = net.arrays[f"{name}.{part}"]
        net.arrays[f"{name}.{part}"] = np.concatenate([array[:1], array])


ALL = {
    "tape": TAPE,
    "simplex": SIMPLEX,
    "transformer": TRANSFORMER,
    "transformer softmax": SOFTMAX,
    "rcnn": RCNN,
    "rcnn ternary": TERNARY,
}


@pytest.mark.parametrize(
    ("name", "reason", "change"),
    [(name, *case) for name, cases in ALL.items() for case in cases],
    ids=[f"{name}: {reason}" for name, cases in ALL.items() for reason, _ in cases],
)
def test_a_bad_net_is_refused_for_its_reason(name: str, reason: str, change: Change) -> None:
    net = copy.deepcopy(genuine(name))
    change(net)
    with pytest.raises(CheckError, match=reason):
        net.verdict(name.split()[0])


@pytest.mark.parametrize(
    "change",
    [
        lambda theta: -theta,
        lambda theta: 0 * theta,
        lambda theta: 2 * theta,
        lambda theta: np.where(theta > 0, theta, 0),
        lambda theta: np.where(theta < 0, theta, 0),
        lambda theta: np.abs(theta),
        lambda theta: np.roll(theta, 1),
        lambda theta: theta * (1 + 2.0**-23),
    ],
    ids=["negated", "nothing", "twice", "accepts", "rejects", "accepts all", "moved", "last bit"],
)
def test_a_verdict_that_is_read_off_wrongly_is_refused(change: Callable[[np.ndarray], np.ndarray]) -> None:
    """theta_cls of a machine that accepts and rejects; the busy beaver's is 0."""
    net = copy.deepcopy(deciding())
    theta = net.arrays["theta_cls"]
    assert set(theta.tolist()) == {-1.0, 0.0, 1.0}
    net.arrays["theta_cls"] = change(theta).astype(theta.dtype)
    with pytest.raises(CheckError, match="theta_cls is not as in"):
        net.verdict("transformer")


@pytest.mark.parametrize(
    "other", [{"accept": (), "reject": ()}, {"accept": ("reject",), "reject": ("accept",)}]
)
def test_verdicts_other_than_the_sources_are_refused(other: dict[str, Any]) -> None:
    net = copy.deepcopy(deciding())
    assert net.verdict("transformer") == COMPUTES_SOURCE
    machine(**other)(net)
    with pytest.raises(CheckError, match="theta_cls is not as in"):
        net.verdict("transformer")


@pytest.mark.parametrize("cells", [2, 1 << 22])
def test_a_tape_may_have_as_many_cells(cells: int) -> None:
    net = copy.deepcopy(genuine("tape"))
    net.config["cells"] = cells
    assert net.verdict("tape") == COMPUTES_SOURCE


def test_a_simplex_of_another_unit_falls_by_three_of_them() -> None:
    net = copy.deepcopy(genuine("simplex"))
    before = net.config["unit"]
    net.config["unit"] = 2 * before
    for name in ("vertex_weight", "edge_weight"):
        net.arrays[name] = 2 * net.arrays[name]
    with pytest.raises(CheckError, match="claims drop"):
        net.verdict("simplex")
    net.claims["drop"] = 6 * before
    assert net.verdict("simplex") == COMPUTES_SOURCE


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("tape", {"cells": 8}),
        ("simplex", {"inputs": [[]]}),
        ("transformer", {"form": "paper", "steps": 1}),
        ("rcnn", {}),
    ],
)
def test_a_machine_that_halts_at_once_is_one(target: str, options: dict[str, Any]) -> None:
    """One state, no rule, one vertex where vertices are configurations."""
    net = net_of(TuringMachine({}, "a", blank="0", alphabet=("0", "1")), target, options)
    assert net.verdict(target) == COMPUTES_SOURCE


def test_the_intended_successor_leads_by_what_it_should() -> None:
    """With slopes 4 and 2: on a tape where the symbol stays by 4 b, where it changes by 16 b^2 - 4 b; against
    all other vertices, if k of d symbols change, by 4 (b^3 + b (d - k)) - 2 (b^3 + b d)."""
    for tapes, b in product(range(1, 7), range(2, 8)):
        wanted = min(4 * b, 16 * b**2 - 4 * b, 2 * b**3 - 2 * b * tapes)
        if wanted > 0:
            assert tape._lead(tapes, b, 4, 2) == wanted
        else:
            with pytest.raises(CheckError, match="would be steeper"):
                tape._lead(tapes, b, 4, 2)
    assert tape._lead(2, 9, 4, -3) == 4 * 9  # other vertices count for 0 at least
    assert tape._slopes() == (4, 2)


def test_a_row_that_differs_is_named() -> None:
    for row, name in ((3, "W_1"), (39, "b_1")):
        net = copy.deepcopy(genuine("transformer"))
        net.add(f"layer.2.ff.{name}", (row, 0) if name == "W_1" else row, 1)
        with pytest.raises(CheckError) as refused:
            net.verdict("transformer")
        wanted = f"layer 2 does not compute {net.config['coordinates'][row]} as in appendix C"
        assert (refused.value.what, refused.value.where) == (wanted, name)


def test_claims_are_compared_as_doubles_that_were_rounded() -> None:
    net = copy.deepcopy(genuine("transformer softmax"))
    for factor, close in ((1 + 1e-12, True), (1 + 1e-6, False)):
        for name in ("temperature", "softmax_error", "rounding_error"):
            own = copy.deepcopy(net)
            own.claims[name] *= factor
            if close:
                assert own.verdict("transformer") == COMPUTES_SOURCE
            else:
                with pytest.raises(CheckError, match=f"claims {name}"):
                    own.verdict("transformer")


def test_sums_of_corrected_bits_stay_within_the_radius() -> None:
    """(32 + width) times the largest sum are to be below 2^24 / 3 = 5,592,405.3."""
    thirds = transformer._Kind(4, None, 1 / 3, 2 / 3)
    assert "stay within 1/3" in transformer._correction(thirds, 1000, 5560)
    with pytest.raises(CheckError, match="errors reach the radius"):
        transformer._correction(thirds, 1000, 5561)


@pytest.mark.parametrize("low", [1 / 4, 1 / 3])
def test_softmax_leaves_room_for_as_many_keys_as_it_should(low: float) -> None:
    """Half of the radius is for what strays, and the rest for 2^-23 for each key: 2^22 low of them."""
    for keys, enough in ((int(low * 2**22) - 4, True), (int(low * 2**22) + 4, False)):
        temperature = math.log(2 * keys / low)
        told = transformer._Kind(keys - 2, temperature, low, 1 - low)
        if enough:
            assert "strays at most" in transformer._attention(told)
        else:
            with pytest.raises(CheckError, match="reach the radius"):
                transformer._attention(told)
