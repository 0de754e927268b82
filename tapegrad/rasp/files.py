"""RASP programs as JSON, node by node."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from tapegrad.rasp.functions import from_json as value_of
from tapegrad.rasp.functions import to_json as written
from tapegrad.rasp.nodes import (
    Aggregate,
    Apply,
    Combine,
    Full,
    Indices,
    Node,
    Pairs,
    Select,
    Table,
    Tokens,
    Width,
)
from tapegrad.rasp.program import RaspProgram


def to_json(program: RaspProgram) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The program as JSON; it has no arrays."""
    return {
        "name": program.name,
        "vocabulary": [written(token) for token in program.vocabulary],
        "length": program.length,
        "causal": program.causal,
        "nodes": [_node(node) for node in program.nodes],
        "output": program.output,
        "names": {str(node): name for node, name in sorted(program.names.items())},
    }, {}


def _node(node: Node) -> list[Any]:
    if isinstance(node, Tokens | Indices):
        return [type(node).__name__.lower()]
    if isinstance(node, Full):
        return ["full", written(node.value)]
    if isinstance(node, Apply):
        function = node.function
        if isinstance(function, Table):
            entries = [
                [[written(own) for own in values], written(gives)] for values, gives in function.entries
            ]
            return ["table", entries, *node.arguments]
        return ["apply", function, *node.arguments]
    if isinstance(node, Select):
        if isinstance(node.predicate, Pairs):
            pairs = sorted(([written(own) for own in pair] for pair in node.predicate.listed), key=repr)
            return ["pairs", pairs, node.keys, node.queries]
        return ["select", node.predicate, node.keys, node.queries]
    if isinstance(node, Combine):
        return ["combine", node.sign, *node.arguments]
    if isinstance(node, Width):
        return ["width", node.selector]
    return ["mean" if node.mean else "move", written(node.default), node.selector, node.sequence]


def from_json(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> RaspProgram:
    """The program again."""
    return RaspProgram(
        nodes=tuple(_node_of(*own) for own in data["nodes"]),
        output=int(data["output"]),
        vocabulary=tuple(value_of(token) for token in data["vocabulary"]),
        length=int(data["length"]),
        causal=bool(data["causal"]),
        names={int(node): str(name) for node, name in data["names"].items()},
        name=str(data["name"]),
    )


def _node_of(kind: str, what: Any = None, *read: int) -> Node:
    if kind == "tokens":
        return Tokens()
    if kind == "indices":
        return Indices()
    if kind == "full":
        return Full(value_of(what))
    if kind == "table":
        entries = ((tuple(value_of(own) for own in values), value_of(gives)) for values, gives in what)
        return Apply(Table(tuple(entries)), tuple(read))
    if kind == "apply":
        return Apply(str(what), tuple(read))
    if kind == "pairs":
        keys, queries = read
        return Select(
            keys, queries, Pairs(frozenset((value_of(key), value_of(query)) for key, query in what))
        )
    if kind == "select":
        keys, queries = read
        return Select(keys, queries, str(what))
    if kind == "combine":
        return Combine(str(what), tuple(read))
    if kind == "width":
        return Width(int(what))
    selector, sequence = read
    return Aggregate(selector, sequence, value_of(what), {"mean": True, "move": False}[kind])
