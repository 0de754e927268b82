"""The forms that targets build, as networks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.networks.builder import Builder, Value
from tapegrad.networks.form import Affine
from tapegrad.networks.language import LanguageModel
from tapegrad.networks.language import Layer as Heads
from tapegrad.networks.network import Network
from tapegrad.networks.sequences import SequenceModel


def of_language(name: str, model: LanguageModel, coordinates: Sequence[str], words: Sequence[str]) -> Network:
    """Tokens of a text to logits. Keys and values of tokens that were read before are state, a row for
    each."""
    graph = Builder(name)
    tokens = _text(graph)
    heads = [head for layer in model.layers for head in layer.heads]
    past = {}
    for side, widths in (
        ("keys", [len(own.key) for own in heads]),
        ("values", [len(own.value) for own in heads]),
    ):
        nothing, about = np.zeros((0, sum(widths)), np.float32), f"{side} of tokens read so far, head by head"
        past[side] = graph.state(side, nothing, "read", sum(widths), about=about)
    table, places = model.positions, graph.node("places", tokens, past["keys"], name="places")
    own = graph.node("quotient", _less_one(graph, places), by=table.record)
    complete = _less_one(graph, graph.node("quotient", places, by=table.record))
    slot = graph.node("remainder", _less_one(graph, places), by=table.record)
    rows = [graph.node("digits", number, count=table.bits) for number in (own, complete)]
    row = graph.join(*rows, graph.node("onehot", slot, count=table.record), axis=-1)
    # The first place has a row of zeros.
    row = row * graph.node("ladder", places, count=1)
    h = graph.node("embed", tokens, arrays={"table": _table(model.embedding)}, name="embedding")
    h = graph.columns(h, coordinates)
    h = graph.put(h, row, table.first + np.arange(table.width))
    made: dict[str, list[Value]] = {"keys": [], "values": []}
    at = {"keys": 0, "values": 0}
    for number, layer in enumerate(model.layers):
        before = h
        for head_number, head in enumerate(layer.heads):
            prefix, seen = f"layer_{number}.head_{head_number}", []
            for side, map_ in (("keys", head.key), ("values", head.value)):
                new = graph.affine(before, map_, f"{prefix}.{side}", head.name)
                old = graph.take(past[side], at[side] + np.arange(len(map_)))
                seen.append(graph.join(old, new, axis=-2))
                made[side].append(new)
                at[side] += len(map_)
            query = graph.affine(before, head.query, f"{prefix}.query")
            keys, values = seen
            mean = graph.attend(query, keys, values, 1.0, causal=True, name=prefix)
            h = graph.put(h, mean, np.asarray(head.to))
        h = _fed(graph, h, layer, f"layer_{number}")
    for side, news in made.items():
        graph.hand_on(side, graph.join(past[side], graph.join(*news, axis=-1), axis=-2))
    graph.output("logits", graph.columns(graph.affine(h, model.unembedding, "unembedding"), words))
    return graph.network()


def of_sequence(name: str, model: SequenceModel, coordinates: Sequence[str]) -> Network:
    """All tokens of a text, that at the beginning first, to logits; the residual stream after the last layer
    is an output as well."""
    graph = Builder(name)
    tokens = _text(graph)
    before = graph.constant(np.zeros((0, 1), np.float32))
    places = graph.node("places", tokens, before, name="places")
    table = model.positions
    h = graph.node("embed", tokens, arrays={"table": _table(model.embedding)}, name="embedding")
    h = graph.columns(h, coordinates)
    row = graph.node("ladder", _less_one(graph, places), count=table.count)
    h = graph.put(h, row, table.first + np.arange(table.count))
    for number, layer in enumerate(model.layers):
        before = h
        for head_number, head in enumerate(layer.heads):
            prefix = f"layer_{number}.head_{head_number}"
            query, key, value = (
                graph.affine(before, own, f"{prefix}.{side}", head.name)
                for side, own in (("query", head.query), ("key", head.key), ("value", head.value))
            )
            mean = graph.attend(query, key, value, 1.0, causal=model.causal, name=prefix)
            h = graph.put(h, mean, np.asarray(head.to))
        h = _fed(graph, h, layer, f"layer_{number}")
    graph.output("logits", graph.affine(h, model.unembedding, "unembedding"))
    graph.output("hidden", graph.columns(h, coordinates))
    return graph.network()


def _text(graph: Builder) -> Value:
    return graph.input("tokens", "tokens", dtype=np.int64, about="numbers of tokens")


def _less_one(graph: Builder, number: Value) -> Value:
    return number + graph.constant(np.array(-1, np.int64))


def _table(embedding: Affine) -> NDArray[Any]:
    return np.asarray(embedding.dense().weight, np.float32)


def _fed(graph: Builder, h: Value, layer: Heads, name: str) -> Value:
    """Units that add to coordinates."""
    units = graph.node("relu", graph.affine(h, layer.units, f"{name}.units", layer.purpose))
    return graph.put(h, graph.affine(units, layer.sums, f"{name}.sums"), np.asarray(layer.to))
