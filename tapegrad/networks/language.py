"""Language models as data: embeddings, heads that look back, units, and logits; and their networks at work.

This is what stock checkpoints of decoder-only transformers compute, without layer norms. The table of
positions is no array: its rows are the bits of the numbers of records, and slots, of which it is made again.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int
from numpy.typing import NDArray

from tapegrad._trees import static, tree
from tapegrad.networks.backends.numba import Numba
from tapegrad.networks.form import Affine, Numbers
from tapegrad.networks.network import Network

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
    """The network of a language model at work: it has read some tokens, and keeps keys and values."""

    def __init__(self, network: Network) -> None:
        self.count, self._backend, self._state = 0, Numba(network), network.first_state()
        self._names = {node.name: node.about for node in network.nodes}

    def feed(self, tokens: list[int], watch: list[Seen] | None = None) -> Float32[np.ndarray, " tokens"]:
        """Reads at least one more token; the logits after the last. `watch` is filled with what heads look
        at there."""
        network, logits = self._backend.network, np.zeros((1, 0), np.float32)
        for first in range(0, len(tokens), CHUNK):
            own = np.array(tokens[first : first + CHUNK])
            found, scores = dict[str, NDArray[Any]](), np.zeros((1, 0), np.float32)
            for node, value in self._backend.values({"tokens": own} | self._state):
                if node.name in network.results:
                    found[node.name] = value
                if node.operation == "later":
                    scores = value
                if watch is not None and node.operation == "softmax":
                    head = node.name.removesuffix(".shares")
                    watch.append(Seen(self._names[f"{head}.keys"], scores[-1], value[-1]))
            logits = found[network.outputs["logits"]]
            self._state = {name: found[state.next] for name, state in network.state.items()}
            self.count += len(own)
        return logits[-1]
