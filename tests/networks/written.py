"""Nets of heads and gates with other blocks than they were built with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tapegrad.networks.builder import Builder, Layer
from tapegrad.networks.form import Affine, Matrix
from tapegrad.networks.heads import Block, Decoder
from tapegrad.networks.heads_builder import HeadsBuilder
from tapegrad.networks.network import Network
from tapegrad.targets.transformer.memory_net import MemoryNet
from tapegrad.targets.transformer.net import TransformerNet

Own = TypeVar("Own", MemoryNet, TransformerNet)


def with_decoder(net: Own, decoder: Decoder) -> Own:
    """The net, with these blocks in the place of its own."""
    own = net.network
    tokens, names = own.inputs["tokens"].columns, own.state["output"].port.columns
    return replace(net, network=written(own.name, tokens, names, decoder))


def with_blocks(net: Own, changes: Mapping[int, Mapping[str, Any]]) -> Own:
    """The net, with other parts in some of its blocks."""
    own = net.decoder
    blocks = (replace(block, **changes.get(number, {})) for number, block in enumerate(own.blocks))
    return with_decoder(net, replace(own, blocks=tuple(blocks)))


def with_map(net: Own, number: int, map: Affine | Matrix) -> Own:
    """The net, with another map in the first dense layer of a block."""
    first, *rest = net.decoder.blocks[number].feed_forward
    return with_blocks(net, {number: {"feed_forward": (replace(first, map=map), *rest)}})


def written(name: str, tokens: Sequence[str], names: Sequence[str], decoder: Decoder) -> Network:
    """The network of a decoder: what `heads.read` reads."""
    writer = HeadsBuilder(name, tokens, names, np.asarray(decoder.start), decoder.time, decoder.temperature)
    for purpose, run in groupby(decoder.blocks, _circuit):
        if not purpose:
            for block in run:
                writer.block(block)
            continue
        layers, most = [], 0
        for block in run:
            units, sums = (dense.map.entries() for dense in block.feed_forward)
            most = max(most, len(units))
            moved = Affine(sums.rows, sums.columns + writer.width, sums.values, sums.bias, 0)
            slots = writer.width + np.arange(len(units))
            layers += [Layer(units, slots, True), Layer(moved, np.asarray(block.adds_to), False)]
        graph = Builder("levels")
        x = graph.input("x", writer.width)
        graph.layers(x, layers, writer.width + most, np.arange(writer.width), name="levels")
        (node,) = graph._nodes
        writer.levels({part: graph._arrays[name] for part, name in node.arrays.items()}, most, purpose)
    return writer.network(decoder.halting)


def _circuit(block: Block) -> str:
    """The circuit whose gates a block has, if it has any."""
    purpose, mark, _ = block.purpose.rpartition(", level ")
    return purpose if mark else ""


def paper_arrays(net: TransformerNet) -> dict[str, NDArray[Any]]:
    """The paper's matrices under the paper's names, written out: `layer.<number>.ff.W_1`,
    `layer.<number>.dec.W_Q`, ...: an attention without arrays is the identity."""
    units, read_out = (dense.map.entries() for dense in net.decoder.halting)
    first = net.layers[0].feed_forward[0].map.entries()
    pairs = {tuple(first.row(row)): row for row in range(len(first)) if first.bias[row] == -1}
    theta_halt = np.zeros(net.layout.width, np.float32)
    for unit, weight in read_out.row(0):
        theta_halt[pairs[tuple(units.row(unit))]] = weight
    found = {"h_0": net.h_0, "E": net.E, "theta_cls": net.theta_cls, "theta_halt": theta_halt}
    for number, layer in enumerate(net.layers):
        name = f"layer.{number}"
        own = layer.feed_forward[0].map.dense()
        found |= {f"{name}.ff.W_1": np.asarray(own.weight), f"{name}.ff.b_1": np.asarray(own.bias)}
        for short, attention in (("dec", layer.self_attention), ("enc", layer.encoder_attention)):
            if attention is not None:
                sides = attention.query, attention.key, attention.value
                for letter, side in zip("QKV", sides, strict=True):
                    own = side.dense()
                    found[f"{name}.{short}.W_{letter}"] = np.asarray(own.weight)
                    found[f"{name}.{short}.b_{letter}"] = np.asarray(own.bias)
                found[f"{name}.{short}.K_0"] = np.asarray(attention.null_key)
                found[f"{name}.{short}.V_0"] = np.asarray(attention.null_value)
    return found
