"""The forms that targets build, as networks."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.networks.builder import Builder, Layer, Value
from tapegrad.networks.form import Affine, Block, Decoder, Dense
from tapegrad.networks.language import LanguageModel
from tapegrad.networks.language import Layer as Heads
from tapegrad.networks.network import Network
from tapegrad.networks.sequences import SequenceModel


def of_decoder(name: str, decoder: Decoder, coordinates: Sequence[str], token: Sequence[str]) -> Network:
    """One step of a decoder: the vector of the step before, the number of the step, and the keys and values
    of the steps so far go in and out. A null key and value are those of a place before the first step, or
    before the first token."""
    graph, width = Builder(name), len(decoder.start)
    given = graph.input(
        "tokens", "tokens", len(token), columns=token, about="one row for each place of the input"
    )
    own = [block.self_attention for block in decoder.blocks if block.self_attention is not None]
    h = graph.state(
        "output",
        np.asarray(decoder.start, np.float32)[None],
        1,
        width,
        columns=coordinates,
        about="what the step before gave",
    )
    step = graph.state("step", np.zeros(1, np.int64), 1, about="the number of this step")
    targets = [attention.targets() for attention in own]
    nulls = {
        "keys": [np.asarray(a.null_key) for a in own],
        "values": [np.asarray(a.null_value)[to] for a, to in zip(own, targets, strict=True)],
    }
    past = {
        side: graph.state(
            side,
            np.concatenate([np.zeros(0, np.float32), *rows]).astype(np.float32)[None],
            "places",
            sum(map(len, rows)),
            about=f"{side} of the steps so far, of all heads side by side; the first place is the null one",
        )
        for side, rows in nulls.items()
    }
    ends = {side: np.cumsum([0, *map(len, rows)]) for side, rows in nulls.items()}
    made: dict[str, list[Value]] = {"keys": [], "values": []}
    if decoder.time:
        h = graph.put(h, graph.node("digits", step, count=len(decoder.time), name="time"), decoder.time)
    blocks = list(enumerate(decoder.blocks))
    filled = _filled(decoder)
    for gates, run in groupby(blocks, lambda pair: _is_gates(pair[1])):
        if gates:
            h = _gates(graph, h, [block for _, block in run], filled)
            continue
        for number, block in run:
            prefix = f"block_{number}"
            if (attention := block.self_attention) is not None:
                to = targets[len(made["keys"])]
                seen = []
                for side, row in (
                    ("keys", graph.affine(h, attention.key, f"{prefix}.key", block.purpose)),
                    ("values", graph.affine(h, attention.value.entries().restricted(to), f"{prefix}.value")),
                ):
                    first, last = ends[side][len(made[side]) :][:2]
                    seen.append(graph.join(graph.take(past[side], np.arange(first, last)), row, axis=-2))
                    made[side].append(row)
                query = graph.affine(h, attention.query, f"{prefix}.query")
                keys, values = seen
                mean = graph.attend(query, keys, values, decoder.temperature, name=prefix)
                h = graph.put(h, mean, to)
            if (attention := block.encoder_attention) is not None:
                to = attention.targets()
                value = attention.value.entries().restricted(to)
                sides = (
                    ("key", attention.key, np.asarray(attention.null_key)),
                    ("value", value, np.asarray(attention.null_value)[to]),
                )
                seen = [
                    graph.join(
                        graph.constant(null.astype(np.float32)[None]),
                        graph.affine(given, side, f"{prefix}.token_{part}", block.purpose),
                        axis=-2,
                    )
                    for part, side, null in sides
                ]
                query = graph.affine(h, attention.query, f"{prefix}.token_query")
                keys, values = seen
                mean = graph.attend(query, keys, values, decoder.temperature, name=f"{prefix}.token")
                h = graph.put(h, mean, to)
            filled[block.attended()] = True
            h = _feed(graph, h, block, prefix)
            filled[slice(None) if block.adds_to is None else np.asarray(block.adds_to)] = True
    graph.hand_on("output", h)
    graph.hand_on("step", step + graph.constant(np.ones(1, np.int64)))
    for side, rows in made.items():
        row = graph.join(*rows, axis=-1) if rows else graph.constant(np.zeros((1, 0), np.float32))
        graph.hand_on(side, graph.join(past[side], row, axis=-2))
    graph.output("output", graph.columns(h, coordinates))
    graph.output("halted", graph.dense(h, decoder.halting, "halting") > 0.5)
    return graph.network()


def _is_gates(block: Block) -> bool:
    """Whether a block has units and sums only, that are put where nothing was."""
    kinds = [layer.activation for layer in block.feed_forward]
    return not block.attentions() and block.adds_to is not None and kinds == ["relu", "linear"]


def _filled(decoder: Decoder) -> NDArray[np.bool_]:
    """Coordinates that may hold something when a step begins: what the last block hands on, and the time."""
    filled = np.asarray(decoder.start) != 0
    last = decoder.blocks[-1]
    if last.adds_to is None:
        own = last.feed_forward[-1].map.entries()
        filled |= own.reads() | (np.asarray(own.bias) != 0)
    else:
        filled[:] = True
    filled[list(decoder.time)] = True
    return filled


def _feed(graph: Builder, h: Value, block: Block, name: str) -> Value:
    """The dense layers of a block. Where they give a new vector of which most is 0, only the rest is made."""
    if block.adds_to is not None:
        return graph.put(
            h, graph.dense(h, block.feed_forward, name, block.purpose), np.asarray(block.adds_to)
        )
    (*_, last) = block.feed_forward
    own = last.map.entries()
    rows = np.flatnonzero(own.reads() | (np.asarray(own.bias) != 0))
    if len(block.feed_forward) > 1 or 2 * len(rows) > len(own):
        return graph.dense(h, block.feed_forward, name, block.purpose)
    made = graph.dense(h, [Dense(own.restricted(rows), last.activation)], name, block.purpose)
    return graph.put(graph.constant(np.zeros((1, len(own)), np.float32)), made, rows)


def _gates(graph: Builder, h: Value, blocks: Sequence[Block], filled: NDArray[np.bool_]) -> Value:
    """Levels of gates as one node: their units have slots of their own, and are forgotten after the sums. A
    sum that goes where something may stand reads that as well."""
    layers, most, width = [], 0, len(filled)
    for block in blocks:
        units, sums = (layer.map.entries() for layer in block.feed_forward)
        most, to = max(most, len(units)), np.asarray(block.adds_to)
        kept = np.flatnonzero(filled[to])
        filled[to] = True
        rows = np.concatenate([sums.rows, kept])
        order = np.argsort(rows, kind="stable")
        added = Affine(
            rows[order],
            np.concatenate([width + sums.columns, to[kept]])[order],
            np.concatenate([sums.values, np.ones(len(kept), sums.values.dtype)])[order],
            sums.bias,
            width + len(units),
        )
        layers += [Layer(units, width + np.arange(len(units)), True), Layer(added, to, False)]
    purposes = [block.purpose for block in blocks]
    about = purposes[0] if len(purposes) == 1 else f"{purposes[0]} to {purposes[-1]}"
    return graph.layers(h, layers, width + most, np.arange(width), about=about)


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
