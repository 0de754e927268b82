"""Language models as data: embeddings, heads that look back, units, and logits; and their values in NumPy.

This is what stock checkpoints of decoder-only transformers compute, without layer norms. The table of
positions is no array: its rows are the bits of the numbers of records, and slots, of which it is made again.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int
from numpy.typing import NDArray

from tapegrad.networks.form import Affine, Dense, Numbers, static, tree
from tapegrad.networks.numpy import affine, chain

CHUNK = 256
"""Tokens that are read at once."""


@dataclass(frozen=True)
class Positions:
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


@tree
class LookBack:
    """A head: softmax of the products of its query with the keys of all positions so far, its own included;
    what it adds are the means of values. Its temperature is part of the query."""

    name: str = static()
    query: Affine
    key: Affine
    value: Affine
    to: Int[Numbers, " rows"]
    """The coordinates that values are added to."""


@tree
class Layer:
    """Heads side by side, then units that add to coordinates."""

    purpose: str = static()
    heads: tuple[LookBack, ...]
    units: Affine
    sums: Affine
    to: Int[Numbers, " rows"]


@tree
class LanguageModel:
    """Embeddings of tokens (a row for each), layers, and the rows that logits are products with."""

    embedding: Affine
    positions: Positions = static()
    layers: tuple[Layer, ...]
    unembedding: Affine

    @property
    def width(self) -> int:
        """Coordinates of the residual stream."""
        return self.embedding.width


class Seen(NamedTuple):
    """What a head looked at, at one position."""

    head: str
    scores: Float32[np.ndarray, " places"]
    weights: Float32[np.ndarray, " places"]


class Reading:
    """A language model at work, in single precision: it has read some tokens, and keeps keys and values."""

    def __init__(self, model: LanguageModel) -> None:
        self.model, self.count = model, 0
        self._past = [
            [(_Rows(len(head.key)), _Rows(len(head.value))) for head in layer.heads] for layer in model.layers
        ]

    @cached_property
    def _embedding(self) -> Float32[np.ndarray, "tokens width"]:
        return np.asarray(self.model.embedding.dense().weight)

    def feed(self, tokens: list[int], watch: list[Seen] | None = None) -> Float32[np.ndarray, " tokens"]:
        """Reads at least one more token; the logits after the last. `watch` is filled with what heads look
        at there."""
        hidden = np.zeros((0, self.model.width), np.float32)
        for first in range(0, len(tokens), CHUNK):
            hidden = self._layers(np.array(tokens[first : first + CHUNK]), watch)
        return affine(self.model.unembedding, hidden[-1])

    def _layers(
        self, tokens: Int[np.ndarray, " some"], watch: list[Seen] | None
    ) -> Float32[np.ndarray, "some width"]:
        positions = self.count + np.arange(len(tokens))
        table = self.model.positions
        hidden = self._embedding[tokens]
        hidden[:, table.first : table.first + table.width] += table.rows(positions)
        for layer, caches in zip(self.model.layers, self._past, strict=True):
            added = np.zeros_like(hidden)
            for head, (keys, values) in zip(layer.heads, caches, strict=True):
                query, key, value = (affine(side, hidden.T).T for side in (head.query, head.key, head.value))
                keys.add(key)
                values.add(value)
                scores = query @ keys.all.T
                scores[np.arange(len(values.all)) > positions[:, None]] = -np.inf
                weights = np.exp(scores - scores.max(axis=1, keepdims=True))
                weights /= weights.sum(axis=1, keepdims=True)
                added[:, np.asarray(head.to)] += weights @ values.all
                if watch is not None:
                    watch.append(Seen(head.name, scores[-1], weights[-1]))
            hidden += added
            fed = chain((Dense(layer.units, "relu"), Dense(layer.sums, "linear")), hidden.T).T
            hidden[:, np.asarray(layer.to)] += fed
        self.count += len(tokens)
        return hidden


class _Rows:
    """A matrix that rows are added to."""

    def __init__(self, width: int) -> None:
        self._rows, self._count = np.zeros((CHUNK, width), np.float32), 0

    @property
    def all(self) -> NDArray[np.float32]:
        """The rows so far."""
        return self._rows[: self._count]

    def add(self, rows: Float[np.ndarray, "some width"]) -> None:
        """More rows."""
        while self._count + len(rows) > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self._count : self._count + len(rows)] = rows
        self._count += len(rows)
