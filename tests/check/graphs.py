"""Every way to alter one thing in a graph: a node, its arrays, and what stands around the nodes."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegrad_check.folder import OF_NETWORK
from tests.check.altering import Net

OTHER = {
    "relu": "sqrt",
    "sqrt": "relu",
    "detach": "relu",
    "product": "add",
    "put": "product",
    "join": "add",
    "add": "multiply",
    "multiply": "divide",
    "divide": "add",
    "greater": "add",
}
"""Operations that read as many values."""
Altered = Iterator[tuple[Any, Net]]


def graph(net: Net) -> dict[str, Any]:
    assert net.network is not None
    return net.network


def altered_nodes(net: Net, of: slice = slice(None)) -> Altered:
    """Every node of these with another operation, name, reason, setting, or other values that it reads; and
    without it."""
    nodes = graph(net)["nodes"]
    for place, node in list(enumerate(nodes))[of]:

        def other(place: int = place, **changes: Any) -> Net:
            found = copy.copy(net)
            found.network = copy.deepcopy(net.network)
            graph(found)["nodes"][place].update(changes)
            return found

        what = node["name"], node["operation"]
        if node["operation"] in OTHER:
            yield (what, "operation"), other(operation=OTHER[node["operation"]], settings={})
        yield (what, "about"), other(about=node.get("about", "") + "?")
        for key, value in node.get("settings", {}).items():
            for changed in (value[::-1],) if isinstance(value, list) else (value + 1, 1 - value):
                if changed != value:
                    yield (what, key), other(settings={**node["settings"], key: changed})
        for at, read in enumerate(node.get("reads", ())):
            for before in nodes[max(0, place - 3) : place]:
                if before["name"] != read:
                    reads = list(node["reads"])
                    reads[at] = before["name"]
                    yield (what, "reads", before["name"]), other(reads=reads)
        found = other(name=f"{node['name']}'")
        text = json.dumps(found.network).replace(f'"{node["name"]}"', f'"{node["name"]}\'"')
        found.network = json.loads(text)
        yield (what, "name"), found
        gone = copy.copy(net)
        gone.network = copy.deepcopy(net.network)
        del graph(gone)["nodes"][place]
        yield (what, "gone"), gone
        more = copy.copy(net)
        more.network = copy.deepcopy(net.network)
        graph(more)["nodes"].insert(
            place + 1, {"name": "detach_999", "operation": "detach", "reads": [node["name"]]}
        )
        yield (what, "a reader more"), more


def altered_arrays(net: Net) -> Altered:
    """Every array with another number at either end, another type or shape, and without it; and one more."""
    for name, own in net.arrays.items():
        if not name.startswith(OF_NETWORK):
            continue
        changes = {"type": own.astype(np.float32 if own.dtype == np.float64 else np.int32), "axis": own[None]}
        for place in sorted({0, own.size - 1}) if own.size else ():
            changed = own.copy()
            changed.reshape(-1)[place] = changed.reshape(-1)[place - 1] + 1
            changes[str(place)] = changed
        if own.ndim:
            changes |= {"cut": own[:-1], "longer": np.concatenate([own, own[-1:]])}
        for what, array in changes.items():
            if np.array_equal(array, own) and array.dtype == own.dtype:
                continue
            yield (name, what), with_arrays(net, {**net.arrays, name: array})
        yield (name, "gone"), with_arrays(net, {n: a for n, a in net.arrays.items() if n != name})
    yield "one more", with_arrays(net, {**net.arrays, f"{OF_NETWORK}more": np.zeros(3)})


def with_arrays(net: Net, arrays: dict[str, np.ndarray]) -> Net:
    found = copy.copy(net)
    found.arrays = arrays
    return found


def altered_around(net: Net) -> Altered:
    """Another name, other inputs, outputs, state and names of columns, and another rule of training."""
    own = graph(net)

    def other(**changes: Any) -> tuple[Any, Net]:
        found = copy.copy(net)
        found.network = {**own, **changes}
        return changes, found

    yield other(name="loss")
    for name, port in own["inputs"].items():
        rest = {key: entry for key, entry in own["inputs"].items() if key != name}
        yield other(inputs=rest)
        yield other(inputs=own["inputs"] | {f"{name}'": port})
        shape = port["shape"]
        for key, value in (("shape", [*shape, 1]), ("shape", ["rows", *shape[1:]]), ("about", "")):
            yield other(inputs=own["inputs"] | {name: port | {key: value}})
        yield other(inputs=own["inputs"] | {name: port | {"dtype": "int64"}})
        if shape:
            columns = [f"{name} {i}" for i in range(shape[-1])]
            yield other(inputs=own["inputs"] | {name: port | {"columns": columns}})
            yield other(columns={name: columns})
    for name in own["outputs"]:
        yield other(outputs={key: value for key, value in own["outputs"].items() if key != name})
        for value in (own["nodes"][-3]["name"], own["nodes"][0]["name"]):
            if own["outputs"][name] != value:
                yield other(outputs=own["outputs"] | {name: value})
                yield other(outputs=own["outputs"] | {"more": value})
    first = {"shape": [1], "dtype": "float64", "first": "first", "next": own["nodes"][0]["name"]}
    yield other(state={"more": first})
    rule = own["training"]
    yield other(training=None)
    found = copy.copy(net)
    found.network = {key: value for key, value in own.items() if key != "training"}
    yield "no training", found
    for key in rule:
        yield other(training={name: value for name, value in rule.items() if name != key})
    yield other(training=rule | {"more": 1})
    yield other(training=rule | {"loss": "output"})
    for stop in (None, 0.0 if rule["stop"] is None else rule["stop"] + 1, "0"):
        if stop != rule["stop"]:
            yield other(training=rule | {"stop": stop})
    for name, update in rule["updates"].items():
        rest = {key: value for key, value in rule["updates"].items() if key != name}
        yield other(training=rule | {"updates": rest})
        changes: list[tuple[str, Any]] = [("rate", 2 * update["rate"]), ("rate", "1"), ("momentum", 0.5)]
        changes += [("kind", kind) for kind in ("gradient", "vertex", "newton") if kind != update["kind"]]
        changes += [("line_search", 1), ("line_search", not update["line_search"])]
        for key, value in changes:
            entry = update | {key: value}
            yield other(training=rule | {"updates": rule["updates"] | {name: entry}})
    for name in own["inputs"].keys() - rule["updates"].keys():
        entry = {"kind": "gradient", "rate": 1.0, "line_search": False}
        yield other(training=rule | {"updates": rule["updates"] | {name: entry}})
