"""Nets of RASP programs as plain matrices, for readers who have NumPy and nothing of ours.

    x = embed[0, t1, t2, ...] + positions[:n + 1]
    for each layer:
        weights = softmax((x query) (x key)^T)      for every head; causal: no later positions
        x += the sum over heads of weights (x value) out
        x += relu(x units) sums
    logits = x unembed                              at every position but the first

Maps have no constants, and matrices stand on the right. Heads of a layer are one array; rows of 0 fill up
those that are smaller. What is proved is proved of what the file holds: the checker gets maps that are made
from these matrices again.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet
from tapegrad.networks.backends.numpy import quietly
from tapegrad.networks.form import Affine
from tapegrad.networks.network import Network
from tapegrad.networks.texts import NAME, Head, Layer, network_of
from tapegrad.targets.decoder.sequences import SequenceNet

Tensors = dict[str, NDArray[np.float32]]


def tensors_of(net: SequenceNet) -> Tensors:
    """Every matrix by its name."""
    model = net.parts
    found = {
        "embed": model.embedding.dense().weight,
        "positions": model.table(net.program.length + 1),
        "unembed": model.unembedding.dense().weight.T,
    }
    for number, layer in enumerate(model.layers):
        rows, values = _rows(layer)
        count, width = len(layer.heads), model.width
        query, key = np.zeros((2, count, width, rows))
        value, out = np.zeros((count, width, values)), np.zeros((count, values, width))
        for place, head in enumerate(layer.heads):
            query[place, :, : len(head.query)] = head.query.dense().weight.T
            key[place, :, : len(head.key)] = head.key.dense().weight.T
            value[place, :, : len(head.value)] = head.value.dense().weight.T
            out[place, np.arange(len(head.to)), np.asarray(head.to)] = 1
        sums = np.zeros((len(layer.units), width))
        sums[:, np.asarray(layer.to)] = layer.sums.dense().weight.T
        sides = {"query": query, "key": key, "value": value, "out": out}
        own = {**sides, "units": layer.units.dense().weight.T, "sums": sums}
        found |= {f"layers.{number}.{name}": matrix for name, matrix in own.items()}
    return {name: np.ascontiguousarray(matrix, np.float32) for name, matrix in found.items()}


def _rows(layer: Layer) -> tuple[int, int]:
    """The rows of the largest head: those that are compared, and those that it brings."""
    return (
        max((len(head.query) for head in layer.heads), default=1),
        max((len(head.value) for head in layer.heads), default=1),
    )


def network_from(tensors: Tensors, net: SequenceNet) -> Network:
    """What the checker reads, from these matrices; of the net only which rows are there. What has no place in
    a net of this form is refused."""
    model, layers = net.parts, []
    expected = {name: matrix.shape for name, matrix in tensors_of(net).items()}
    _require({name: matrix.shape for name, matrix in tensors.items()} == expected)
    _require(np.array_equal(tensors["positions"], model.table(net.program.length + 1)))
    for number, layer in enumerate(model.layers):
        own = {part: tensors[f"layers.{number}.{part}"] for part in PARTS}
        heads = []
        for place, head in enumerate(layer.heads):
            sides = {
                side: _map(own[side][place].T, len(getattr(head, side))) for side in ("query", "key", "value")
            }
            out = own["out"][place]
            to = out[: len(head.value)].argmax(axis=1)
            _require(np.array_equal(out, _ones(to, out.shape)))
            heads.append(Head(head.name, sides["query"], sides["key"], sides["value"], to))
        to = np.asarray(layer.to)
        others = np.setdiff1d(np.arange(model.width), to)
        _require(not own["sums"][:, others].any())
        units, sums = _map(own["units"].T, len(layer.units)), _map(own["sums"].T[to], len(to))
        layers.append(Layer(layer.purpose, tuple(heads), units, sums, to))
    embedding = _map(tensors["embed"], len(model.embedding))
    unembedding = _map(tensors["unembed"].T, len(model.unembedding))
    again = model._replace(embedding=embedding, layers=tuple(layers), unembedding=unembedding)
    return network_of(again, NAME, net.names)


PARTS = ("query", "key", "value", "out", "units", "sums")


def _map(matrix: NDArray[np.float32], rows: int) -> Affine:
    """The first rows as a map; the others must be 0."""
    _require(not matrix[rows:].any())
    where, columns = np.nonzero(matrix[:rows])
    return Affine(where, columns, matrix[where, columns], np.zeros(rows, np.float32), matrix.shape[1])


def _ones(to: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.float32]:
    found = np.zeros(shape, np.float32)
    found[np.arange(len(to)), to] = 1
    return found


def _require(holds: bool) -> None:
    if not holds:
        raise BrokenNet("the matrices are not those of the net")


@quietly
def logits(tensors: Tensors, causal: bool, words: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """The logits at all tokens, for words of one length whose tokens are numbered from 1 on."""
    x = tensors["embed"][np.array([[0, *word] for word in words])]
    x = x + tensors["positions"][: x.shape[1]]
    later = np.triu(np.full((x.shape[1],) * 2, -np.inf if causal else 0.0), 1).astype(np.float32)
    number = 0
    while f"layers.{number}.query" in tensors:
        query, key, value, out, units, sums = (tensors[f"layers.{number}.{part}"] for part in PARTS)
        asks, answers, values = (x[:, None] @ side for side in (query, key, value))
        scores = asks @ answers.swapaxes(-1, -2) + later
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        x = x + (weights @ values @ out).sum(axis=1)
        x = x + np.maximum(x @ units, 0) @ sums
        number += 1
    return np.asarray(x @ tensors["unembed"], np.float32)[:, 1:]
