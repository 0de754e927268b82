"""A network as JSON and arrays, and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet
from tapegrad.networks.checking import check
from tapegrad.networks.network import Network, Node, Port, Setting, State, Training, Update

BODY = "/"
"""Between the name of a node and those of the arrays of its body."""
TYPES = "float32", "float64", "int64"
"""Of values from outside."""


def to_json(network: Network) -> dict[str, Any]:
    """The graph, which names its arrays. What columns of inputs and state are called is said there."""
    ports = {*network.inputs, *network.state}
    return {
        "name": network.name,
        "inputs": {name: _port_to_json(port) for name, port in network.inputs.items()},
        "state": {
            name: _port_to_json(own.port) | {"first": own.first, "next": own.next}
            for name, own in network.state.items()
        },
        "nodes": [_node_to_json(node) for node in network.nodes],
        "outputs": dict(network.outputs),
        **_unless_empty({"columns": {n: list(own) for n, own in network.columns.items() if n not in ports}}),
        **_unless_empty({"training": None if network.training is None else _rule_to_json(network.training)}),
    }


def arrays_of(network: Network) -> dict[str, NDArray[Any]]:
    """All arrays by name, those of a node's body after the name of the node."""
    found = dict(network.arrays)
    for node in network.nodes:
        if node.body is not None:
            found |= {f"{node.name}{BODY}{name}": own for name, own in arrays_of(node.body).items()}
    return found


def from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Network:
    """The network again, checked as one that was just built is; every array has a use."""
    try:
        network = _network(data, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise BrokenNet(
            f"the graph of the network is not as it must be: {type(error).__name__} {error}",
            where="network.json",
        ) from error
    check(network)
    if unused := arrays.keys() - arrays_of(network).keys():
        raise BrokenNet(f"no node of the network has the array {min(unused)!r}")
    return network


def same_network(one: Network, other: Network) -> bool:
    """Whether both have the same graph, and in every array the same bits."""
    ours, theirs = arrays_of(one), arrays_of(other)
    return (
        to_json(one) == to_json(other)
        and ours.keys() == theirs.keys()
        and all(_same(own, theirs[name]) for name, own in ours.items())
    )


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    alike = one.dtype == other.dtype and one.shape == other.shape
    return one is other or (alike and one.tobytes() == other.tobytes())


def _network(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Network:
    _require_keys(data, {"name", "inputs", "state", "nodes", "outputs"}, {"columns", "training"})
    state = {}
    for name, own in data["state"].items():
        rest = {key: own[key] for key in own.keys() - {"first", "next"}}
        state[_text(name)] = State(_port(rest), _text(own["first"]), _text(own["next"]))
    nodes = tuple(_node(own, arrays) for own in data["nodes"])
    used = {own.first for own in state.values()}.union(*(node.arrays.values() for node in nodes))
    inputs = {_text(name): _port(own) for name, own in data["inputs"].items()}
    ports = {**inputs, **{name: own.port for name, own in state.items()}}
    columns = {name: port.columns for name, port in ports.items() if port.columns}
    return Network(
        _text(data["name"]),
        inputs,
        state,
        nodes,
        _texts(data["outputs"]),
        {name: np.asarray(arrays[name]) for name in sorted(used)},
        columns | {name: tuple(map(_text, own)) for name, own in data.get("columns", {}).items()},
        _rule(data["training"]) if "training" in data else None,
    )


def _rule_to_json(rule: Training) -> dict[str, Any]:
    updates = {name: update._asdict() for name, update in rule.updates.items()}
    return {"loss": rule.loss, "updates": updates, "stop": rule.stop}


def _rule(data: Mapping[str, Any]) -> Training:
    _require_keys(data, {"loss", "updates", "stop"}, set())
    updates = {}
    for name, own in data["updates"].items():
        _require_keys(own, {"kind", "rate", "line_search"}, set())
        if type(own["line_search"]) is not bool:
            raise TypeError(f"{own['line_search']!r} is neither true nor false")
        updates[_text(name)] = Update(_text(own["kind"]), _number(own["rate"]), own["line_search"])
    stop = None if data["stop"] is None else _number(data["stop"])
    return Training(_text(data["loss"]), updates, stop)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _port_to_json(port: Port) -> dict[str, Any]:
    extra = _unless_empty({"columns": list(port.columns), "about": port.about})
    return {"shape": list(port.shape), "dtype": port.dtype, **extra}


def _port(data: Mapping[str, Any]) -> Port:
    _require_keys(data, {"shape", "dtype"}, {"columns", "about"})
    shape = tuple(size if isinstance(size, str) else _size(size) for size in data["shape"])
    columns = tuple(map(_text, data.get("columns", ())))
    if data["dtype"] not in TYPES:  # NumPy reads a type as Python reads an expression
        raise ValueError("values of a type that is not " + ", ".join(TYPES))
    return Port(shape, data["dtype"], columns, _text(data.get("about", "")))


def _node_to_json(node: Node) -> dict[str, Any]:
    settings = {
        name: list(value) if isinstance(value, tuple) else value for name, value in node.settings.items()
    }
    extra = {
        "reads": list(node.reads),
        "arrays": dict(node.arrays),
        "settings": settings,
        "about": node.about,
        "body": None if node.body is None else to_json(node.body),
    }
    return {"name": node.name, "operation": node.operation, **_unless_empty(extra)}


def _node(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Node:
    _require_keys(data, {"name", "operation"}, {"reads", "arrays", "settings", "about", "body"})
    name, body = _text(data["name"]), data.get("body")
    if body is not None:
        inner = f"{name}{BODY}"
        own = {key.removeprefix(inner): array for key, array in arrays.items() if key.startswith(inner)}
        body = _network(body, own)
    return Node(
        name,
        _text(data["operation"]),
        tuple(map(_text, data.get("reads", ()))),
        _texts(data.get("arrays", {})),
        {_text(key): _setting(value) for key, value in data.get("settings", {}).items()},
        _text(data.get("about", "")),
        body,
    )


def _setting(value: object) -> Setting:
    if isinstance(value, list):
        return tuple(map(_size, value))
    if isinstance(value, bool | int | float):
        return value
    raise TypeError(f"{value!r} is no setting")


def _size(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is no number from 0 on")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _texts(data: Mapping[str, Any]) -> dict[str, str]:
    return {_text(key): _text(value) for key, value in data.items()}


def _require_keys(data: Mapping[str, Any], needed: set[str], allowed: set[str]) -> None:
    if not needed <= data.keys() <= needed | allowed:
        strange = sorted(data.keys() ^ needed - allowed)
        raise ValueError(f"entries {', '.join(strange)} are missing or unknown")


def _unless_empty(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value not in ("", [], {}, None)}
