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

from tapegrad._trees import static, tree
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.form import Affine
from tapegrad.networks.language import Layer
from tapegrad.networks.network import Network, Node

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
    """The network of a model at work."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._nodes = {node.name: node for node in network.nodes}
        self._backend = NumPy(network)

    def hidden(
        self, tokens: list[int], watch: list[Looked] | None = None
    ) -> Float32[np.ndarray, "positions width"]:
        """The residual stream after the last layer, for the first token and those given."""
        hidden = np.zeros(0)
        for node, value in self._backend.values({"tokens": np.array([BEGIN, *tokens])}):
            if watch is not None and node.name.endswith(".shares"):
                layer, head, _ = node.name.split(".")
                watch.append(
                    Looked(int(layer.removeprefix("layer_")), int(head.removeprefix("head_")), value)
                )
            if node.name == self.network.outputs["hidden"]:
                hidden = value
        return hidden

    def logits(
        self, hidden: Float32[np.ndarray, "positions width"]
    ) -> Float32[np.ndarray, "positions values"]:
        """Products of the residual stream with the last rows."""
        return self._backend.affine(self._nodes["unembedding"], hidden)


class Blinded(NumPy):
    """A backend in which maps read 0 in the columns that are `unseen` by them."""

    def __init__(self, network: Network, unseen: Mapping[str, Int[np.ndarray, " some"]]) -> None:
        super().__init__(network)
        self.unseen = unseen

    def affine(self, node: Node, x: Float32[np.ndarray, "... width"]) -> Float32[np.ndarray, "... rows"]:
        if node.name in self.unseen:
            x = x.copy()
            x[..., self.unseen[node.name]] = 0
        return super().affine(node, x)
