"""Language models as data: embeddings, heads that look back, units, and logits; and their values in NumPy.

This is what stock checkpoints of decoder-only transformers compute, without layer norms. The table of
positions is no array: its rows are the bits of the numbers of records, and slots, of which it is made again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int

from tapegrad.networks.form import Affine, Numbers, static, tree
from tapegrad.networks.numpy import quietly

CHUNK = 256
"""Tokens that are read at once."""
ENTRIES = 1 << 18
"""Entries of maps that are multiplied at once."""


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
        self._embedding, self._unembedding = (
            np.asarray(own.dense().weight) for own in (model.embedding, model.unembedding)
        )
        self._layers = [_Layer(layer) for layer in model.layers]

    @quietly
    def feed(self, tokens: list[int], watch: list[Seen] | None = None) -> Float32[np.ndarray, " tokens"]:
        """Reads at least one more token; the logits after the last. `watch` is filled with what heads look
        at there."""
        hidden = np.zeros((0, self.model.width), np.float32)
        table = self.model.positions
        for first in range(0, len(tokens), CHUNK):
            own = np.array(tokens[first : first + CHUNK])
            positions = self.count + np.arange(len(own))
            hidden = self._embedding[own]
            hidden[:, table.first : table.first + table.width] += table.rows(positions)
            for layer in self._layers:
                layer.read(hidden, positions, watch)
            self.count += len(own)
        return self._unembedding @ hidden[-1] + np.asarray(self.model.unembedding.bias)


class _Layer:
    """A layer at work. Its heads stand side by side, with rows of zeros where one has fewer than another."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.asks, self.answers, self.values = (
            _Entries(sides)
            for sides in zip(*((head.query, head.key, head.value) for head in layer.heads), strict=True)
        )
        self.keys, self.copied = (
            np.zeros((len(layer.heads), CHUNK, own.rows), np.float32) for own in (self.answers, self.values)
        )
        self.units, self.sums = _Entries([layer.units]), _Entries([layer.sums])

    def read(
        self,
        hidden: Float32[np.ndarray, "some width"],
        positions: Int[np.ndarray, " some"],
        watch: list[Seen] | None,
    ) -> None:
        """Takes note of these positions, and adds to what is known there."""
        query, key, value = (own.of(hidden) for own in (self.asks, self.answers, self.values))
        first, end = positions[0], positions[-1] + 1
        while end > self.keys.shape[1]:
            self.keys, self.copied = (np.concatenate([own, own], axis=1) for own in (self.keys, self.copied))
        self.keys[:, first:end], self.copied[:, first:end] = key, value
        scores = query @ self.keys[:, :end].transpose(0, 2, 1)
        scores[:, np.arange(end) > positions[:, None]] = -np.inf
        weights = softmax(scores)
        means = weights @ self.copied[:, :end]
        for head, own in zip(self.layer.heads, means, strict=True):
            hidden[:, np.asarray(head.to)] += own[:, : len(head.to)]
        if watch is not None:
            watch += map(Seen, (head.name for head in self.layer.heads), scores[:, -1], weights[:, -1])
        (units,) = self.units.of(hidden)
        (sums,) = self.sums.of(np.maximum(units, 0))
        hidden[:, np.asarray(self.layer.to)] += sums


def softmax(scores: Float32[np.ndarray, "... keys"]) -> Float32[np.ndarray, "... keys"]:
    """The weights of keys. The greatest score is subtracted first, as libraries do: exactness needs it."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


class _Entries:
    """Maps side by side, by their entries: of a million places, nets of programs use some thousands. Rows of
    zeros stand where one map has fewer than another."""

    def __init__(self, maps: Sequence[Affine]) -> None:
        self.maps, self.rows = len(maps), max(map(len, maps))
        rows = np.concatenate([own.rows + self.rows * number for number, own in enumerate(maps)])
        self.columns = np.concatenate([own.columns for own in maps])
        self.values = np.concatenate([own.values for own in maps])
        self.used, self.first = np.unique(rows, return_index=True)
        """Rows with entries, and where these begin."""
        self.bias = np.zeros((self.maps, self.rows), np.float32)
        for own, bias in zip(maps, self.bias, strict=True):
            bias[: len(own)] = own.bias

    def of(self, given: Float32[np.ndarray, "some width"]) -> Float32[np.ndarray, "maps some rows"]:
        """Their values at these vectors."""
        found = np.tile(self.bias.reshape(-1), (len(given), 1))
        at_once = max(1, ENTRIES // max(1, len(self.values)))
        for start in range(0, len(given) if len(self.used) else 0, at_once):
            own = slice(start, start + at_once)
            terms = given[own, self.columns] * self.values
            found[own, self.used] += np.add.reduceat(terms, self.first, axis=1)
        return found.reshape(len(given), self.maps, self.rows).transpose(1, 0, 2)
