"""Transformers that read a sequence in one pass, as data; and their values in NumPy, in single precision.

Layers are those of `tapegrad.networks.language`. Attention is causal or to all positions. The first position
is that of a token of its own, number 0, which is no part of the input. Positions are not an array: the first
so many coordinates of their block are 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int
from scipy.sparse import csr_array

from tapegrad.networks.form import Affine, static, tree
from tapegrad.networks.language import Layer, softmax
from tapegrad.networks.numpy import quietly

BEGIN = 0
"""The number of the first token."""


@dataclass(frozen=True)
class Ladder:
    """The table of positions: at the token of index i the first i of so many coordinates are 1."""

    first: int
    count: int

    def rows(self, tokens: int) -> Float32[np.ndarray, "positions count"]:
        """A row for the first token, then for each of the input."""
        index = np.arange(-1, tokens)[:, None]
        return (np.arange(self.count) < index).astype(np.float32)


@tree
class SequenceModel:
    """Embeddings of tokens (a row for each), positions, layers, and rows that logits are products with."""

    embedding: Affine
    positions: Ladder = static()
    layers: tuple[Layer, ...]
    unembedding: Affine
    causal: bool = static()

    @property
    def width(self) -> int:
        """Coordinates of the residual stream."""
        return self.embedding.width


class Looked(NamedTuple):
    """Where a head looked: a row of weights for each position."""

    layer: int
    head: int
    weights: Float32[np.ndarray, "positions positions"]


class Evaluator:
    """A model at work: its maps are made ready once."""

    def __init__(self, model: SequenceModel) -> None:
        self.model = model
        self._embedding = model.embedding.dense().weight
        self._layers = [
            (
                [tuple(_sparse(side) for side in (head.query, head.key, head.value)) for head in layer.heads],
                _sparse(layer.units),
                _sparse(layer.sums),
            )
            for layer in model.layers
        ]
        self._unembedding = _sparse(model.unembedding)

    @quietly
    def hidden(
        self,
        tokens: list[int],
        watch: list[Looked] | None = None,
        unseen: Mapping[str, Int[np.ndarray, " some"]] | None = None,
    ) -> Float32[np.ndarray, "positions width"]:
        """The residual stream after the last layer, for the first token and those given. A side of a head
        such as `a0.h1<q>`, or a layer of units such as `m0`, reads 0 in the coordinates that are `unseen` by
        it."""
        own, table = np.array([BEGIN, *tokens]), self.model.positions
        hidden = np.asarray(self._embedding[own], np.float32)
        hidden[:, table.first : table.first + table.count] += table.rows(len(tokens))
        later = np.triu(np.ones((len(own), len(own)), bool), 1) if self.model.causal else None
        for number, (layer, (heads, units, sums)) in enumerate(
            zip(self.model.layers, self._layers, strict=True)
        ):
            given = hidden.copy()
            for place, (head, (query, key, value)) in enumerate(zip(layer.heads, heads, strict=True)):
                asks, answers, values = (
                    _blinded(given, unseen, f"a{number}.h{place}<{side}>") for side in "qkv"
                )
                scores = _applied(query, head.query, asks) @ _applied(key, head.key, answers).T
                if later is not None:
                    scores[later] = -np.inf
                weights = softmax(scores)
                hidden[:, np.asarray(head.to)] += weights @ _applied(value, head.value, values)
                if watch is not None:
                    watch.append(Looked(number, place, weights))
            active = np.maximum(_applied(units, layer.units, _blinded(hidden, unseen, f"m{number}")), 0)
            hidden[:, np.asarray(layer.to)] += _applied(sums, layer.sums, active)
        return hidden

    def logits(
        self, hidden: Float32[np.ndarray, "positions width"]
    ) -> Float32[np.ndarray, "positions values"]:
        """Products of the residual stream with the last rows."""
        return _applied(self._unembedding, self.model.unembedding, hidden)


def _blinded(
    hidden: Float32[np.ndarray, "some width"],
    unseen: Mapping[str, Int[np.ndarray, " few"]] | None,
    reader: str,
) -> Float32[np.ndarray, "some width"]:
    if not unseen or reader not in unseen:
        return hidden
    made = hidden.copy()
    made[:, unseen[reader]] = 0
    return made


def _sparse(own: Affine) -> csr_array:
    return csr_array(
        (np.asarray(own.values, np.float32), (own.rows, own.columns)), shape=(len(own), own.width)
    )


def _applied(
    weight: csr_array, own: Affine, vectors: Float32[np.ndarray, "some width"]
) -> Float32[np.ndarray, "some rows"]:
    return np.ascontiguousarray((weight @ vectors.T).T + np.asarray(own.bias, np.float32))
