"""Language models as an ONNX graph: more tokens of a text to logits, with keys and values in and out.

The rows of the table of positions are computed from whole numbers, so that the graph has no horizon of its
own and no large table.
"""

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from tapegrad.networks.form import Affine, Matrix
from tapegrad.networks.language import LanguageModel, Layer, Positions
from tapegrad.networks.onnx import GraphWriter

LOWEST = np.float32(np.finfo(np.float32).min)


def add_language_model(graph: GraphWriter, model: LanguageModel) -> None:
    """Inputs `tokens` (so many), `past_keys` and `past_values` (a row for each token that was read); outputs
    `logits`, a row for each token, `keys` and `values`."""
    heads = [head for layer in model.layers for head in layer.heads]
    ends = {
        "keys": np.cumsum([0, *(len(head.key) for head in heads)]).tolist(),
        "values": np.cumsum([0, *(len(head.value) for head in heads)]).tolist(),
    }
    tokens = graph.input("tokens", np.int64, ["tokens"])
    old = {name: graph.input(f"past_{name}", np.float32, ["past", own[-1]]) for name, own in ends.items()}
    past = graph.add("Squeeze", graph.add("Shape", old["keys"], end=1))
    count = graph.add("Squeeze", graph.add("Shape", tokens))
    total = graph.add("Add", past, count)
    one = graph.constant(np.array(1, np.int64))
    positions = graph.add("Range", past, total, one)
    everything = graph.add("Range", graph.constant(np.array(0, np.int64)), total, one)
    own_place = graph.add("Unsqueeze", positions, graph.whole(1))
    later = graph.add("Greater", everything, own_place)
    table = graph.constant(np.asarray(model.embedding.dense().weight), "embedding")
    hidden = graph.add("Gather", table, tokens)
    hidden = graph.add("Add", hidden, _places(graph, model.positions, own_place, model.width))
    made: dict[str, list[str]] = {"keys": [], "values": []}
    first = 0
    for number, layer in enumerate(model.layers):
        spans = {name: own[first : first + len(layer.heads) + 1] for name, own in ends.items()}
        hidden = _layer(graph, layer, hidden, later, old, spans, made, f"layer_{number}")
        first += len(layer.heads)
    graph.output(
        "logits",
        graph.affine(model.unembedding, hidden, "unembedding"),
        np.float32,
        ["tokens", len(model.unembedding)],
    )
    for name, own in ends.items():
        new = graph.add("Concat", *made[name], axis=1)
        together = graph.add("Concat", old[name], new, axis=0)
        graph.output(name, together, np.float32, ["past and tokens", own[-1]])


def _places(graph: GraphWriter, table: Positions, positions: str, width: int) -> str:
    """Rows of the table of positions, in their coordinates."""

    def number(value: int) -> str:
        return graph.constant(np.array(value, np.int64))

    record, one = number(table.record), number(1)
    powers = graph.constant(1 << np.arange(table.bits))
    before_this = graph.add("Max", graph.add("Sub", positions, one), number(0))
    complete = graph.add("Sub", graph.add("Div", positions, record), one)
    numbers = graph.add("Div", before_this, record), graph.add("Max", complete, number(0))
    bits = [graph.add("Mod", graph.add("Div", own, powers), number(2)) for own in numbers]
    slot = graph.add("Mod", before_this, record)
    slots = graph.add("Equal", slot, graph.constant(np.arange(table.record)))
    rows = graph.add("Concat", *bits, graph.add("Cast", slots, to=TensorProto.INT64), axis=1)
    shown = graph.add("Cast", graph.add("Mul", rows, graph.add("Min", positions, one)), to=TensorProto.FLOAT)
    ends = graph.whole(0, table.first, 0, width - table.first - table.width)
    return graph.add("Pad", shown, ends)


def _layer(
    graph: GraphWriter,
    layer: Layer,
    hidden: str,
    later: str,
    old: dict[str, str],
    spans: dict[str, list[int]],
    made: dict[str, list[str]],
    name: str,
) -> str:
    """A layer; its new keys and values are added to `made`."""
    axis, found = graph.whole(1), hidden
    for place, head in enumerate(layer.heads):
        own, seen = f"{name}.head_{place}", []
        for kind, side in (("keys", head.key), ("values", head.value)):
            rows = graph.affine(side, hidden, f"{own}.{kind}")
            made[kind].append(rows)
            start, end = (graph.whole(edge) for edge in spans[kind][place : place + 2])
            past = graph.add("Slice", old[kind], start, end, axis)
            seen.append(graph.add("Concat", past, rows, axis=0))
        keys, values = seen
        query = graph.affine(head.query, hidden, f"{own}.query")
        scores = graph.add("MatMul", query, graph.add("Transpose", keys, perm=[1, 0]))
        shown = graph.add("Where", later, graph.constant(np.array(LOWEST)), scores)
        means = graph.add("MatMul", graph.add("Softmax", shown, axis=1), values)
        to = graph.constant(_spread(np.asarray(head.to), head.value.width), f"{own}.to")
        found = graph.add("Add", found, graph.add("MatMul", means, to))
    units = graph.add("Relu", graph.affine(layer.units, found, f"{name}.units"))
    sums = _to(layer.sums, np.asarray(layer.to), layer.units.width)
    return graph.add("Add", found, graph.affine(sums, units, f"{name}.sums"))


def _spread(to: NDArray[np.integer], width: int) -> NDArray[np.float32]:
    """The matrix that puts values at their coordinates."""
    matrix = np.zeros((len(to), width), np.float32)
    matrix[np.arange(len(to)), to] = 1
    return matrix


def _to(sums: Affine, to: NDArray[np.integer], width: int) -> Matrix:
    """Sums as a map to all coordinates."""
    matrix, own = _spread(to, width), sums.dense()
    return Matrix(matrix.T @ np.asarray(own.weight), np.asarray(own.bias) @ matrix)
