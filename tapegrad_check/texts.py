"""The graph of a net that reads a text, node by node: embeddings, positions, heads, units, logits.

Such a net is one and the same graph for given sizes. Here one walks along it from the first node to the last
and says of each what it must be: its name, its operation, what it reads and its settings. Arrays that are not
weights must be what makes heads stand side by side. What is left are the maps, the places that heads and
units add to, and names; whoever walks this far has seen everything that the net computes with.

Nets that read on have keys and values of tokens read so far as state, and records for positions: digits of
the number of the record and of the last one that is complete, and the slot, all 0 at the first position.
Others read all tokens at once, and of their positions as many coordinates are 1 as tokens come before.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.folder import require
from tapegrad_check.graph import Graph, Node
from tapegrad_check.maps import Map, map_of

SIDES = ("queries", "keys", "values")


class Head(NamedTuple):
    """What a head asks, answers and gives, and where that goes."""

    name: str
    query: Map
    key: Map
    value: Map
    to: list[int]


class Layer(NamedTuple):
    """Heads, units, sums of units, and where these go."""

    purpose: str
    heads: list[Head]
    units: Map
    sums: Map
    to: list[int]


class Text(NamedTuple):
    """All that there is to a net, but for what is the same in all of them."""

    coordinates: tuple[str, ...]
    words: tuple[str, ...]
    """What logits are called, if they are."""
    embedding: Map
    placed: list[int]
    """The coordinates of positions."""
    record: int
    """Tokens of a record; 0 in a net that does not read on."""
    layers: list[Layer]
    unembedding: Map

    @property
    def heads(self) -> list[Head]:
        """The heads of all layers."""
        return [head for layer in self.layers for head in layer.heads]

    @property
    def sides(self) -> list[list[Map]]:
        """What all heads ask, what they answer, and what they give."""
        heads = self.heads
        return [[own.query for own in heads], [own.key for own in heads], [own.value for own in heads]]

    def check_records(self, record: int, bits: int, first: int) -> None:
        """Whether what is known of positions are records of so many tokens, from a coordinate on."""
        require(self.record == record, "records have another number of tokens")
        wanted = list(range(first, first + 2 * bits + record))
        require(self.placed == wanted, "records have other bits, or stand elsewhere")


def text_of(graph: Graph, causal: bool) -> Text:
    """The parts of a net, whose heads look at no later positions if it is causal."""
    return _Walk(graph, causal).text()


class _Walk:
    """How far one has come."""

    def __init__(self, graph: Graph, causal: bool) -> None:
        self.graph, self.causal, self.at = graph, causal, 0
        self.reads_on = bool(graph.state)
        self.handed_on: dict[str, tuple[int, str]] = {}
        """For each state its columns, and what becomes of it."""

    def node(self, operation: str, *reads: str, name: str = "", about: str = "", **settings: float) -> Node:
        """The next node, which must be this one."""
        require(self.at < len(self.graph.nodes), "the graph ends before the text is read")
        own = self.graph.nodes[self.at]
        wanted = name or f"{operation}_{self.at}", operation, reads, settings
        same = (own.name, own.operation, own.reads, dict(own.settings)) == wanted
        require(same and about in (own.about, "*"), f"the node {own.name!r} is not what a text has there")
        self.at += 1
        return own

    def text(self) -> Text:
        graph = self.graph
        require(graph.name == "decoder", "the network has another name")
        require(graph.inputs.keys() == {"tokens"}, "the inputs are not the tokens of a text")
        port = graph.inputs["tokens"]
        given = port.sizes, port.dtype, port.columns, port.about
        require(given == (("tokens",), "int64", (), "numbers of tokens"), "tokens are something else")
        row, record = self._row()
        embedding = self.node("embed", "tokens", name="embedding")
        table = embedding.arrays["table"]
        require(table.dtype == np.float32, "the table of tokens is of another type")
        put = self.node("put", "embedding", row, name="placed")
        h, layers = put.name, list[Layer]()
        while self.at < len(graph.nodes) and graph.nodes[self.at].name != "unembedding":
            layers.append(self._layer(h, len(layers)))
            h = f"layer_{len(layers) - 1}"
        unembedding = self.node("affine", h, name="unembedding")
        require(self.at == len(graph.nodes), "the graph goes on after the logits")
        self._ends(h)
        coordinates = graph.names_of("embedding")
        require(len(coordinates) == table.shape[1], "coordinates have no names")
        named = {"embedding", "unembedding", *([] if self.reads_on else [h])}
        require(graph.columns.keys() <= named, "columns of other values have names")
        require(self.reads_on or graph.names_of(h) == coordinates, "coordinates have two names")
        return Text(
            coordinates,
            graph.names_of("unembedding"),
            _table(table),
            put.arrays["to"].tolist(),
            record,
            layers,
            map_of(unembedding.arrays, table.shape[1], "unembedding"),
        )

    def _row(self) -> tuple[str, int]:
        """What is known of positions, and how many tokens a record has."""
        first = min((name for name in self.graph.state if name.startswith("keys_")), default="", key=_number)
        if not first:
            nothing = self.node("constant", name="nothing").arrays["value"]
            require(nothing.shape == (0, 1) and nothing.dtype == np.float32, "positions begin elsewhere")
            first = "nothing"
        self.node("places", "tokens", first, name="places")
        less = self.node("constant", name="less_one").arrays["value"]
        require(less.dtype == np.int64 and less.tolist() == [-1], "positions are counted otherwise")
        at = self.node("add", "places", "less_one").name
        if not self.reads_on:
            return self.node("ladder", at, count=self._setting("count")).name, 0
        record, bits = self._setting("by"), self._setting("count", 5)
        own = self.node("quotient", at, by=record).name
        whole = self.node("quotient", "places", by=record).name
        complete = self.node("add", whole, "less_one").name
        rest = self.node("remainder", at, by=record).name
        slot = self.node("onehot", rest, count=record).name
        digits = [self.node("digits", number, count=bits).name for number in (own, complete)]
        both = self.node("join", *digits, axis=-1).name
        row = self.node("join", both, slot, axis=-1).name
        later = self.node("ladder", "places", count=1).name
        return self.node("multiply", row, later).name, record

    def _setting(self, name: str, ahead: int = 0) -> int:
        """A setting of the next node, or of one that comes after it."""
        own = self.graph.nodes[self.at + ahead : self.at + ahead + 1]
        require(own and name in own[0].settings, "positions are something else")
        return own[0].setting(name)

    def _layer(self, before: str, number: int) -> Layer:
        prefix, heads, h = f"layer_{number}", list[Head](), before
        if self.at < len(self.graph.nodes) and self.graph.nodes[self.at].name == f"{prefix}.queries":
            heads, h = self._heads(before, number), f"{prefix}.attended"
        width = _columns(self.graph, before)
        units = self.node("affine", h, name=f"{prefix}.units", about="*")
        active = self.node("relu", units.name).name
        sums = self.node("affine", active, name=f"{prefix}.sums")
        put = self.node("put", h, sums.name, name=prefix)
        own = map_of(units.arrays, width, "units")
        return Layer(
            units.about, heads, own, map_of(sums.arrays, len(own), "sums"), put.arrays["to"].tolist()
        )

    def _heads(self, h: str, number: int) -> list[Head]:
        """The heads of a layer, whose rows lie one after the other in one map for each side."""
        prefix, width = f"layer_{number}", _columns(self.graph, h)
        maps = [self.node("affine", h, name=f"{prefix}.{side}") for side in SIDES]
        rows = [own.name for own in maps]
        if self.reads_on:
            for side in (1, 2):
                name = f"{SIDES[side]}_{number}"
                rows[side] = self.node("join", name, rows[side], axis=-2).name
                self.handed_on[name] = len(maps[side].arrays["bias"]), rows[side]
        whole = [map_of(own.arrays, width, side) for own, side in zip(maps, SIDES, strict=True)]
        ends, found, means = [0, 0, 0], list[tuple[str, list[Map]]](), list[str]()
        while self.graph.nodes[self.at].name == f"{prefix}.head_{len(found)}.query":
            own = f"{prefix}.head_{len(found)}"
            taken, parts = [], list[Map]()
            for side, one in enumerate(("query", "key", "value")):
                take = self.node("take", rows[side], name=f"{own}.{one}")
                last = ends[side] + take.arrays["index"].size
                inside = np.array_equal(take.arrays["index"], range(ends[side], last))
                require(inside, "heads of a layer do not stand side by side")
                parts.append(whole[side].rows(ends[side], last))
                taken.append(take.name)
                ends[side] = last
            query, key, value = taken
            scores = self.node("product", query, key, name=f"{own}.scores", turned=1).name
            if self.causal:
                scores = self.node("later", scores).name
            shares = self.node("softmax", scores, name=f"{own}.shares", temperature=1.0).name
            mean = self.node("product", shares, value, name=f"{own}.mean", about="*", turned=0)
            found.append((mean.about, parts))
            means.append(mean.name)
        require(found and ends == [len(own) for own in whole], "a layer has rows that are of no head")
        joined = means[0]
        for mean in means[1:]:
            joined = self.node("join", joined, mean, axis=-1).name
        to = self.node("put", h, joined, name=f"{prefix}.attended").arrays["to"].tolist()
        heads, first = [], 0
        for name, (query, key, value) in found:
            heads.append(Head(name, query, key, value, to[first : first + len(value)]))
            first += len(value)
        return heads

    def _ends(self, h: str) -> None:
        """What is given back, and what is handed on."""
        wanted = {"logits": "unembedding"} | ({} if self.reads_on else {"hidden": h})
        require(dict(self.graph.outputs) == wanted, "the outputs are not those of a text")
        require(self.graph.state.keys() == self.handed_on.keys(), "other values are handed on")
        for name, (width, becomes) in self.handed_on.items():
            own, (side, number) = self.graph.state[name], name.split("_")
            about = f"{side} of tokens read so far, of all heads of layer {number} side by side"
            port = own.port.sizes, own.port.dtype, own.port.columns, own.port.about
            require(port == (("read", width), "float32", (), about), f"the state {name!r} is another")
            require(
                own.first.shape[0] == 0 and own.next == becomes, f"the state {name!r} is handed on wrongly"
            )


def _number(name: str) -> int:
    """Of a state of keys the layer."""
    rest = name.removeprefix("keys_")
    return int(rest) if rest.isascii() and rest.isdecimal() else -1


def _columns(graph: Graph, value: str) -> int:
    width = graph.shapes[value].width
    require(isinstance(width, int), "a vector has no width")
    return int(width)


def _table(table: NDArray[np.float32]) -> Map:
    """A table as a map: a row for each token."""
    rows, columns = np.nonzero(table)
    starts = np.searchsorted(rows, np.arange(len(table) + 1)).tolist()
    return Map(starts, columns.tolist(), table[rows, columns].tolist(), [0.0] * len(table), table.shape[1])


def named(coordinates: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """What coordinates are called."""
    return tuple(f"{group}[{number}]" for group, number in coordinates)
