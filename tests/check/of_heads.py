"""Graphs of heads and gates as lists of maps, free to be altered, and as graphs again, whatever was done.

A map of each kind stands after the other: `units` and `sums` of layers, `query`, `key` and `value` of heads,
the `last` layer, the `ends`. `attends` says for each layer whether its head looks at steps (1) or tokens (2).
The paper's layers are matrices under the paper's names.
"""

import json
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.analysis import ROUNDING
from tapegrad.attention.packed import SIDES, entries, joined
from tapegrad.networks.form import Affine, Correction, Dense
from tapegrad.networks.heads import Attention, Block, Decoder
from tapegrad.networks.saving import arrays_of, to_json
from tapegrad.targets.transformer.memory_net import MemoryNet
from tapegrad.targets.transformer.net import TransformerNet
from tapegrad_check.folder import OF_NETWORK
from tests.networks.written import paper_arrays, written

Arrays = dict[str, NDArray[Any]]
Graph = tuple[dict[str, Any], Arrays]


def taken_apart(net: MemoryNet) -> tuple[dict[str, Any], Arrays]:
    """What the net's config is called with all that its graph says besides, and its maps."""
    decoder = net.decoder
    *blocks, end = decoder.blocks
    attentions = [attention for block in blocks for attention in block.attentions()]
    kinds = [2 if block.encoder_attention else int(block.self_attention is not None) for block in blocks]
    arrays = {
        "attends": np.array(kinds, np.int8),
        "adds_to": joined([np.asarray(block.adds_to) for block in blocks], np.int32),
        "null_key": joined([np.asarray(attention.null_key) for attention in attentions], np.float32),
    }
    for number, name in enumerate(("units", "sums")):
        arrays |= entries(name, [block.feed_forward[number].map.entries() for block in blocks])
    for side in SIDES:
        arrays |= entries(side, [getattr(attention, side).entries() for attention in attentions])
    arrays |= entries("last", [end.feed_forward[0].map.entries()])
    arrays |= entries("ends", [decoder.halting[0].map.entries()])
    said = {
        "temperature": decoder.temperature or 0.0,
        "coordinates": [list(key) for key in net.stream.listed],
        "purposes": [block.purpose for block in decoder.blocks],
        "token": list(net.network.inputs["tokens"].columns),
    }
    return net.config() | said, arrays


def put_together(config: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Graph]:
    """The config of a net, and its graph, of what `taken_apart` gives."""
    own = dict(config)
    coordinates, purposes, token, temperature = (
        own.pop(name) for name in ("coordinates", "purposes", "token", "temperature")
    )
    names = [f"{group}[{number}]" for group, number in coordinates]
    units, sums, (last,), (ends,) = (_maps(name, arrays) for name in ("units", "sums", "last", "ends"))
    heads = list(zip(*(_maps(side, arrays) for side in SIDES), strict=True))
    nulls = iter(np.split(arrays["null_key"], np.cumsum([len(key) for _, key, _ in heads])[:-1]))
    nothing = np.zeros(len(names), np.float32)
    found = iter([Attention(query, key, value, next(nulls), nothing) for query, key, value in heads])
    to = np.split(arrays["adds_to"].astype(np.int64), np.cumsum([len(own) for own in sums])[:-1])
    blocks = []
    for number, kind in enumerate(arrays["attends"].tolist()):
        head = next(found) if kind else None
        feed = Dense(units[number], "relu"), Dense(sums[number], "linear")
        own_steps, tokens = (head, None) if kind == 1 else (None, head)
        blocks.append(Block(purposes[number], feed, own_steps, tokens, to[number]))
    blocks.append(Block(purposes[-1], (Dense(last, ROUNDING),)))
    time = tuple(place for place, (group, _) in enumerate(coordinates) if group == "step")
    start = np.zeros(len(names), np.float32)
    decoder = Decoder(tuple(blocks), start, (Dense(ends, "linear"),), time, temperature or None)
    return own, _graph("transformer", token, names, decoder)


def of_the_paper(net: TransformerNet) -> tuple[dict[str, Any], Arrays]:
    """The same for the paper's layers."""
    correction = net.layers[0].feed_forward[0].activation
    assert isinstance(correction, Correction)
    said = {
        "temperature": net.temperature,
        "low": correction.low,
        "high": correction.high,
        "purposes": [layer.purpose for layer in net.layers],
        "coordinates": list(net.layout.names),
    }
    return net.config() | said, paper_arrays(net)


def put_together_as_in_the_paper(
    config: dict[str, Any], arrays: Arrays
) -> tuple[dict[str, Any], Arrays, Graph]:
    own = dict(config)
    names, purposes, temperature, low, high = (
        own.pop(name) for name in ("coordinates", "purposes", "temperature", "low", "high")
    )

    def map_of(where: str, letter: str) -> Affine:
        return Affine.of(arrays[f"{where}.W_{letter}"], arrays[f"{where}.b_{letter}"])

    def attention(where: str) -> Attention | None:
        if f"{where}.W_Q" not in arrays:
            return None
        query, key, value = (map_of(where, letter) for letter in "QKV")
        return Attention(query, key, value, arrays[f"{where}.K_0"], arrays[f"{where}.V_0"])

    blocks = tuple(
        Block(
            purpose,
            (Dense(map_of(f"layer.{number}.ff", "1"), Correction(low, high)),),
            attention(f"layer.{number}.dec"),
            attention(f"layer.{number}.enc"),
        )
        for number, purpose in enumerate(purposes)
    )
    theta = arrays["theta_halt"]
    pairs = np.flatnonzero(theta)
    halting = (
        Dense(blocks[0].feed_forward[0].map.entries().restricted(pairs), "relu"),
        Dense(Affine.of(theta[None, pairs], np.zeros(1, np.float32)), "linear"),
    )
    time = tuple(place for place, name in enumerate(names) if name.startswith("pos1["))
    decoder = Decoder(blocks, arrays["h_0"], halting, time, temperature or None)
    rest = {
        name: own
        for name, own in arrays.items()
        if not name.startswith("layer.") and name not in ("h_0", "theta_halt")
    }
    return own, rest, _graph("transformer", names, names, decoder)


def _graph(name: str, token: Sequence[str], names: Sequence[str], decoder: Decoder) -> Graph:
    with patch("tapegrad.networks.builder.check"):  # what does not fit is for the checker to find
        network = written(name, token, names, decoder)
    arrays = {OF_NETWORK + key: np.array(own) for key, own in arrays_of(network).items()}
    return json.loads(json.dumps(to_json(network))), arrays


def _maps(name: str, arrays: Arrays) -> list[Affine]:
    """Maps of a kind, whose entries may lie anywhere."""
    found, entry, row = [], 0, 0
    for count, width, size in arrays[f"{name}.sizes"].tolist():
        own, rows = slice(entry, entry + size), slice(row, row + count)
        parts = (arrays[f"{name}.{part}"][own] for part in ("rows", "columns", "values"))
        rows_, columns, values = parts
        bias = arrays[f"{name}.bias"][rows]
        found.append(Affine(rows_.astype(np.int64), columns.astype(np.int64), values, bias, width))
        entry, row = entry + size, row + count
    return found
