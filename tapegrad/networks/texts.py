"""Transformers over a text: how their networks are written, and how their heads and units are read off again.

A *text* is tokens in order. Layers of heads and units add to a residual stream; positions are computed, not
looked up. A network of this form either reads on, token by token, with the keys and values of tokens read so
far as state (a language model); or it reads all tokens at once (a sequence), where attention may go both
ways.

A network is read as it would be written: what was read is written once more, and a network that differs from
that anywhere is refused. So nothing of it goes unread.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float32, Int
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet
from tapegrad.networks.backends.numba import Numba
from tapegrad.networks.builder import Builder, Value
from tapegrad.networks.form import Affine
from tapegrad.networks.network import MAP, Network, Node
from tapegrad.networks.saving import arrays_of, to_json

NAME = "decoder"
"""Of the networks."""
BEGIN = 0
"""The number of the first token of a sequence, which is none of the input."""
EMBEDDING, UNEMBEDDING = "embedding", "unembedding"
"""The values whose columns have names: coordinates, and the words of tokens."""
CHUNK = 256
"""Tokens that are read at once."""


@dataclass(frozen=True)
class Records:
    """A row for each position: bits of the number of its record; bits of the number of the last record that
    is complete once the next token is there; its slot, one-hot. The first row is 0, and so is the number of a
    record that there is not."""

    record: int
    """Tokens of a record."""
    bits: int
    first: int
    """The coordinate that they begin at."""

    @property
    def width(self) -> int:
        """How many coordinates they take."""
        return 2 * self.bits + self.record

    def rows(self, positions: Int[np.ndarray, " some"]) -> Float32[np.ndarray, "some width"]:
        """The rows of these positions."""
        own, slots = np.divmod(positions - 1, self.record)
        before = np.maximum(positions // self.record - 1, 0)
        bits = [number[:, None] >> np.arange(self.bits) & 1 for number in (own, before)]
        rows = np.concatenate([*bits, slots[:, None] == np.arange(self.record)], axis=1)
        return np.where(positions[:, None] > 0, rows, 0).astype(np.float32)


@dataclass(frozen=True)
class Ladder:
    """A row for each position: of so many coordinates as many are 1 as there are tokens of the input before
    it."""

    width: int
    first: int

    def rows(self, positions: Int[np.ndarray, " some"]) -> Float32[np.ndarray, "some width"]:
        """The rows of these positions."""
        return (np.arange(self.width) < positions[:, None] - 1).astype(np.float32)


class Head(NamedTuple):
    """Softmax of the products of its query with the keys of all positions that it may look at, its own
    included; what it adds are the means of values. Its temperature is part of the query."""

    name: str
    query: Affine
    key: Affine
    value: Affine
    to: NDArray[np.integer]
    """The coordinates that values are added to."""


class Layer(NamedTuple):
    """Heads side by side, then units that add to coordinates."""

    purpose: str
    heads: tuple[Head, ...]
    units: Affine
    sums: Affine
    to: NDArray[np.integer]


class Parts(NamedTuple):
    """What a network of a text consists of: embeddings of tokens (a row for each), positions, layers, and the
    rows that logits are products with. With records for positions it reads on."""

    embedding: Affine
    positions: Records | Ladder
    layers: tuple[Layer, ...]
    unembedding: Affine
    causal: bool
    """Whether no position looks at later ones."""

    @property
    def width(self) -> int:
        """Coordinates of the residual stream."""
        return self.embedding.width

    def table(self, positions: int) -> NDArray[np.float32]:
        """The rows of the first positions, in the whole stream."""
        made, own = np.zeros((positions, self.width), np.float32), self.positions
        made[:, own.first : own.first + own.width] = own.rows(np.arange(positions))
        return made


SIDES = ("keys", "values")
Past: TypeAlias = Mapping[str, Value]


def network_of(parts: Parts, name: str, coordinates: Sequence[str], words: Sequence[str] = ()) -> Network:
    """Tokens to logits after each. One that does not read on gives the residual stream as well."""
    graph, own = Builder(name), parts.positions
    tokens = graph.input("tokens", "tokens", dtype=np.int64, about="numbers of tokens")
    reads_on = isinstance(own, Records)
    past = [_past(graph, number, layer) if reads_on else {} for number, layer in enumerate(parts.layers)]
    before = next((side["keys"] for side in past if side), None)
    if before is None:
        before = graph.constant(np.zeros((0, 1), np.float32), "nothing")
    rows = _rows(graph, own, graph.node("places", tokens, before, name="places"))
    table = np.asarray(parts.embedding.dense().weight, np.float32)
    h = graph.columns(graph.node("embed", tokens, arrays={"table": table}, name=EMBEDDING), coordinates)
    h = graph.put(h, rows, own.first + np.arange(own.width), "placed")
    for number, (layer, seen) in enumerate(zip(parts.layers, past, strict=True)):
        if layer.heads:
            h = _attended(graph, h, number, layer, seen, parts.causal)
        units = graph.affine(h, _narrow(layer.units), f"layer_{number}.units", layer.purpose)
        sums = graph.affine(graph.node("relu", units), _narrow(layer.sums), f"layer_{number}.sums")
        h = graph.put(h, sums, layer.to, f"layer_{number}")
    logits = graph.affine(h, _narrow(parts.unembedding), UNEMBEDDING)
    graph.output("logits", graph.columns(logits, words))
    if not reads_on:
        graph.output("hidden", h)
    made = graph.network()
    # Every vector of the stream has the same names: they are said once, and where it is given back.
    named = {EMBEDDING, UNEMBEDDING, made.outputs.get("hidden")}
    return replace(made, columns={name: own for name, own in made.columns.items() if name in named})


def _past(graph: Builder, number: int, layer: Layer) -> Past:
    """The state of a layer: keys and values of the tokens that were read before."""
    if not layer.heads:
        return {}
    widths = [sum(map(len, side)) for side in zip(*((h.key, h.value) for h in layer.heads), strict=True)]
    return {
        side: graph.state(
            f"{side}_{number}",
            np.zeros((0, width), np.float32),
            "read",
            width,
            about=f"{side} of tokens read so far, of all heads of layer {number} side by side",
        )
        for side, width in zip(SIDES, widths, strict=True)
    }


def _rows(graph: Builder, own: Records | Ladder, places: Value) -> Value:
    """What is known of positions."""
    less_one = graph.constant(np.array([-1], np.int64), "less_one")
    if isinstance(own, Ladder):
        return graph.node("ladder", places + less_one, count=own.width)
    at = places + less_one
    record = graph.node("quotient", at, by=own.record)
    complete = graph.node("quotient", places, by=own.record) + less_one
    slot = graph.node("onehot", graph.node("remainder", at, by=own.record), count=own.record)
    bits = [graph.node("digits", number, count=own.bits) for number in (record, complete)]
    # The first position has a row of zeros.
    return graph.join(*bits, slot, axis=-1) * graph.node("ladder", places, count=1)


def _attended(graph: Builder, h: Value, number: int, layer: Layer, past: Past, causal: bool) -> Value:
    """The stream with what the heads of a layer bring: their maps are one map for each side."""
    prefix, means = f"layer_{number}", []
    sides = zip(*((head.query, head.key, head.value) for head in layer.heads), strict=True)
    maps = dict(zip(("queries", *SIDES), map(_stacked, sides), strict=True))
    all_of = {side: graph.affine(h, _narrow(own), f"{prefix}.{side}") for side, own in maps.items()}
    for side, before in past.items():
        all_of[side] = graph.join(before, all_of[side], axis=-2)
        graph.hand_on(f"{side}_{number}", all_of[side])
    at = dict.fromkeys(maps, 0)
    for place, head in enumerate(layer.heads):
        own, taken = f"{prefix}.head_{place}", list[Value]()
        for side, rows in zip(maps, (head.query, head.key, head.value), strict=True):
            taken.append(graph.take(all_of[side], at[side] + np.arange(len(rows)), f"{own}.{_one_of(side)}"))
            at[side] += len(rows)
        query, keys, values = taken
        means.append(graph.attend(query, keys, values, 1.0, causal=causal, name=own, about=head.name))
    to = np.concatenate([head.to for head in layer.heads])
    return graph.put(h, graph.join(*means, axis=-1), to, f"{prefix}.attended")


def _one_of(side: str) -> str:
    return {"queries": "query", "keys": "key", "values": "value"}[side]


def _stacked(maps: Sequence[Affine]) -> Affine:
    """Maps of one vector as one map, row after row."""
    firsts = np.cumsum([0, *map(len, maps)])[:-1].tolist()
    rows = [np.asarray(own.rows) + first for own, first in zip(maps, firsts, strict=True)]
    columns, values, bias = (
        np.concatenate([np.asarray(getattr(own, part)) for own in maps]) for part in MAP[1:]
    )
    return Affine(np.concatenate(rows), columns, values, bias, maps[0].width)


def _narrow(own: Affine) -> Affine:
    """The same with places in half the bytes."""
    rows, columns = (np.asarray(part).astype(np.int32) for part in (own.rows, own.columns))
    return Affine(rows, columns, own.values, own.bias, own.width)


# Reading


def parts_of(network: Network) -> Parts:
    """The parts of a network, which is refused where it is anything else than these, written."""
    try:
        parts = _parts(network)
        names, words = (network.columns.get(value, ()) for value in (EMBEDDING, UNEMBEDDING))
        again = network_of(parts, network.name, names, words)
    except (KeyError, IndexError, ValueError, TypeError, StopIteration) as error:
        raise BrokenNet("the network is not that of a text") from error
    found, wanted = arrays_of(network), arrays_of(again)
    same = to_json(network) == to_json(again) and found.keys() == wanted.keys()
    if not same or not all(_same(found[name], own) for name, own in wanted.items()):
        raise BrokenNet("the network has parts that are none of a text")
    return parts


def _same(found: NDArray[Any], wanted: NDArray[Any]) -> bool:
    return found.dtype.kind == wanted.dtype.kind and np.array_equal(found, wanted)


def _parts(network: Network) -> Parts:
    nodes = {node.name: node for node in network.nodes}
    reads_on, causal = bool(network.state), any(node.operation == "later" for node in network.nodes)
    table = network.array(nodes[EMBEDDING], "table")
    width = table.shape[1]
    embedding = Affine.of(table, np.zeros(len(table), np.float32))
    places = network.array(nodes["placed"], "to")
    first = int(places[0]) if len(places) else 0
    positions = Ladder(len(places), first)
    if reads_on:
        record = next(node.whole("by") for node in network.nodes if node.operation == "quotient")
        positions = Records(record, (len(places) - record) // 2, first)
    layers = []
    while f"layer_{len(layers)}" in nodes:
        layers.append(_layer(network, nodes, f"layer_{len(layers)}", width))
    unembedding = network.map(nodes[UNEMBEDDING], width)
    return Parts(embedding, positions, tuple(layers), unembedding, causal or reads_on)


def _layer(network: Network, nodes: Mapping[str, Node], prefix: str, width: int) -> Layer:
    heads, at = list[Head](), [0, 0, 0]
    while f"{prefix}.head_{len(heads)}.mean" in nodes:
        own = f"{prefix}.head_{len(heads)}"
        maps = list[Affine]()
        for number, side in enumerate(("queries", *SIDES)):
            count = len(network.array(nodes[f"{own}.{_one_of(side)}"], "index"))
            maps.append(_between(network, nodes[f"{prefix}.{side}"], width, at[number], count))
            at[number] += count
        to = network.array(nodes[f"{prefix}.attended"], "to")[at[2] - len(maps[2]) : at[2]]
        query, key, value = maps
        heads.append(Head(nodes[f"{own}.mean"].about, query, key, value, to))
    units, sums = nodes[f"{prefix}.units"], nodes[f"{prefix}.sums"]
    made = network.map(units, width)
    to = network.array(nodes[prefix], "to")
    return Layer(units.about, tuple(heads), made, network.map(sums, len(made)), to)


def _between(network: Network, node: Node, width: int, first: int, count: int) -> Affine:
    """So many rows of a map, from one on."""
    rows, columns, values, bias = (network.array(node, part) for part in MAP)
    own = slice(*np.searchsorted(rows, (first, first + count)))
    return Affine(rows[own] - first, columns[own], values[own], bias[first : first + count], width)


# At work


class Seen(NamedTuple):
    """What a head looked at: a row of scores and of weights for each position that was read."""

    head: str
    scores: NDArray[np.float32]
    weights: NDArray[np.float32]


def looks(values: Iterable[tuple[Node, NDArray[Any]]], network: Network) -> Iterator[Seen]:
    """What every head looks at, among the values of a network at work."""
    means = {node.reads[0]: node.about for node in network.nodes if node.operation == "product"}
    scores = np.zeros((1, 0), np.float32)
    for node, value in values:
        if node.operation == "softmax":
            yield Seen(means[node.name], scores, value)
        scores = value


class Reading:
    """A language model at work: it has read some tokens, and keeps keys and values."""

    def __init__(self, network: Network) -> None:
        self.count, self._backend, self._state = 0, Numba(network), network.first_state()
        self.values: dict[str, NDArray[Any]] = {}
        """All values of the tokens that were watched last."""

    def feed(self, tokens: list[int], watch: list[Seen] | None = None) -> Float32[np.ndarray, " tokens"]:
        """Reads at least one more token; the logits after the last. `watch` is filled with what heads look
        at there."""
        logits, network = np.zeros((1, 0), np.float32), self._backend.network
        for first in range(0, len(tokens), CHUNK):
            given = {"tokens": np.array(tokens[first : first + CHUNK])} | self._state
            found = dict[str, NDArray[Any]]()
            for head, scores, weights in looks(self._kept(given, found, watch is not None), network):
                if watch is not None:
                    watch.append(Seen(head, scores[-1].copy(), weights[-1].copy()))
            logits, self.values = found[network.outputs["logits"]], given | found
            self._state = {name: found[own.next] for name, own in network.state.items()}
            self.count += len(given["tokens"])
        return logits[-1]

    def _kept(
        self, given: dict[str, NDArray[Any]], found: dict[str, NDArray[Any]], all_of: bool
    ) -> Iterator[Any]:
        """All values, of which all or the results are kept."""
        for node, value in self._backend.values(given):
            if all_of or node.name in self._backend.network.results:
                found[node.name] = value
            yield node, value
