"""What the tensors and settings of a stock checkpoint must be, if it is a saved net of target `decoder`.

Layer norms subtract means, so each coordinate x of the certified net stands twice in the residual stream, as
x and -x; where norms subtract none, once. Gains of 2^30 and an epsilon of 2^60 make norms the identity. Heads
have a size that is a power of 4, by whose root scores are divided, and queries are larger by that root.
Everything else is 0. Here is what all classes have in common, and GPT-2; those with rotary positions are in
`stock_rotary`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.fields import whole
from tapegrad_check.graph import Graph
from tapegrad_check.maps import Map
from tapegrad_check.texts import text_of

EPSILON, GAIN = 2.0**60, 2.0**30
LEAST_HEAD = 16
END, BEGIN = 0, 1

Floats = NDArray[np.float64]
Tensor = tuple[str, Floats]


class Head(NamedTuple):
    """What a head asks, answers and gives, where that goes, and which numbers of queries and keys it uses."""

    sides: tuple[Map, Map, Map]
    to: Sequence[int]
    numbers: Sequence[int]


class Layer(NamedTuple):
    """Heads, units, sums of units, and where these go."""

    heads: list[Head]
    units: Map
    sums: Map
    to: Sequence[int]


class Matrices(NamedTuple):
    """A layer written out, as matrices from the right: queries, keys and values (stream, 3, heads, size) with
    biases, where values go, units, and where these go."""

    sides: Floats
    sides_bias: Floats
    out: Floats
    units: Floats
    units_bias: Floats
    sums: Floats
    sums_bias: Floats


class StockNet(ABC):
    """The sizes of a model that holds a saved net, and what is in it."""

    title: ClassVar[str]
    architecture: ClassVar[str]
    copies: ClassVar[int]
    """How often a coordinate stands in the stream."""
    table: ClassVar[str | None] = None
    """The tensor with a row for every position, if there is one."""
    trusting: ClassVar[str] = ""
    """What has to be believed of the library, for this class in particular."""

    def __init__(self, net: Mapping[str, Any], graph: Graph) -> None:
        text = text_of(graph, causal=True)
        self.tokens = whole(net["tokens"], "the horizon", 2, 1 << 23)
        parted = (name.removesuffix("]").rpartition("[") for name in text.coordinates)
        self.names = [(group, int(number)) for group, _, number in parted]
        self.record = sum(name == "slot" for name, _ in self.names)
        self.bits = sum(name == "record" for name, _ in self.names)
        self.width = len(self.names)
        """Coordinates in the residual stream, each counted once."""
        self.embedding, self.unembedding = text.embedding, text.unembedding
        self.head = LEAST_HEAD
        compared, copied = (max(map(len, side)) for side in text.sides[1:])
        while self.head < max(compared + self.rotated, copied):
            self.head *= 4
        self.heads = max(len(own.heads) for own in text.layers)
        self.own = [
            Layer(
                [Head((one.query, one.key, one.value), one.to, self.free) for one in own.heads],
                own.units,
                own.sums,
                own.to,
            )
            for own in text.layers
        ]

    @property
    def rotated(self) -> int:
        """How many numbers of a head are rotated."""
        return 0

    @property
    @abstractmethod
    def free(self) -> Sequence[int]:
        """The numbers of a head that are not."""

    @property
    @abstractmethod
    def embedded(self) -> int:
        """The width of the residual stream."""

    @property
    @abstractmethod
    def layers(self) -> list[Layer]:
        """From first to last."""

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """What the class is told."""

    @abstractmethod
    def tensors(self) -> Iterator[Tensor]:
        """Every tensor but the table of positions, one after the other."""

    @cached_property
    def inner(self) -> int:
        """Units of a layer."""
        return max(len(layer.units) for layer in self.layers)

    def common(self) -> dict[str, Any]:
        """What every class is told."""
        return {
            "architectures": [self.architecture],
            "vocab_size": len(self.embedding),
            "tie_word_embeddings": False,
            "dtype": "float32",
            "bos_token_id": BEGIN,
            "eos_token_id": END,
            "pad_token_id": END,
        }

    def ends(self, embedding: str, unembedding: str) -> Iterator[Tensor]:
        """Embeddings of tokens, and what logits are products with."""
        yield embedding, self.spread(dense(self.embedding))
        yield unembedding, self.read(self.unembedding).T

    def matrices(self, layer: Layer) -> Matrices:
        """A layer, with zeros where it has fewer heads or units than another."""
        sides = np.zeros((self.embedded, 3, self.heads, self.head))
        bias = np.zeros((3, self.heads, self.head))
        out = np.zeros((self.heads, self.head, self.width))
        for place, head in enumerate(layer.heads):
            for part, side in enumerate(head.sides):
                scale = float(np.sqrt(self.head)) if part == 0 else 1.0
                numbers = list(head.numbers if part < 2 else range(self.head))[: len(side)]
                sides[:, part, place, numbers] = scale * self.read(side)
                bias[part, place, numbers] = scale * np.array(side.bias)
            out[place, np.arange(len(head.to)), head.to] = 1
        sums, sums_bias = np.zeros((self.inner, self.width)), np.zeros(self.width)
        for number, place in enumerate(layer.to):
            columns, values, offset = layer.sums.row(number)
            sums[columns, place] = values
            sums_bias[place] = offset
        return Matrices(
            sides,
            bias,
            self.spread(out.reshape(-1, self.width)),
            wide(self.read(layer.units), self.inner),
            wide(np.array(layer.units.bias), self.inner),
            self.spread(sums),
            self.spread(sums_bias),
        )

    def read(self, own: Map) -> Floats:
        """A map from the first copy of the coordinates."""
        return wide(dense(own), self.embedded).T

    def spread(self, rows: Floats) -> Floats:
        """Rows of coordinates as rows of the stream: x, -x where there are two copies, then nothing."""
        full = wide(rows, self.width)
        return wide(np.concatenate([full, -full][: self.copies], axis=-1), self.embedded)

    def norm(self, name: str) -> Iterator[Tensor]:
        """A layer norm that is the identity."""
        yield f"{name}.weight", np.full(self.embedded, GAIN)
        yield f"{name}.bias", np.zeros(self.embedded)

    def rows(self, numbers: NDArray[np.int64]) -> Floats:
        """What is known of positions: the record, the last one that is complete once the next token is there,
        the slot; nothing for the first token."""
        known = {"record": (numbers - 1) // self.record, "before": np.maximum(numbers // self.record - 1, 0)}
        rows = np.zeros((len(numbers), len(self.names)))
        for place, (name, bit) in enumerate(self.names):
            if name == "slot":
                rows[:, place] = (numbers - 1) % self.record == bit
            elif name in known:
                rows[:, place] = known[name] >> bit & 1
        rows[numbers == 0] = 0
        return rows


class Gpt2(StockNet):
    """A GPT-2, whose table of positions has a row for each token of the horizon."""

    title, architecture, copies = "GPT-2", "GPT2LMHeadModel", 2
    table = "transformer.wpe.weight"

    def __init__(self, net: Mapping[str, Any], graph: Graph) -> None:
        super().__init__(net, graph)
        self.heads = max(self.heads, -(-2 * self.width // self.head))

    @property
    def free(self) -> Sequence[int]:
        return range(self.head)

    @property
    def embedded(self) -> int:
        return self.head * self.heads

    @property
    def layers(self) -> list[Layer]:
        return self.own

    def config(self) -> dict[str, Any]:
        return self.common() | {
            "model_type": "gpt2",
            "n_positions": self.tokens,
            "n_embd": self.embedded,
            "n_layer": len(self.layers),
            "n_head": self.heads,
            "n_inner": self.inner,
            "activation_function": "relu",
            "layer_norm_epsilon": EPSILON,
            "scale_attn_weights": True,
            "attn_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "resid_pdrop": 0.0,
        }

    def tensors(self) -> Iterator[Tensor]:
        yield from self.ends("transformer.wte.weight", "lm_head.weight")
        yield from self.norm("transformer.ln_f")
        for number, layer in enumerate(self.layers):
            name, own = f"transformer.h.{number}", self.matrices(layer)
            yield from self.norm(f"{name}.ln_1")
            yield from self.norm(f"{name}.ln_2")
            yield f"{name}.attn.c_attn.weight", own.sides.reshape(self.embedded, -1)
            yield f"{name}.attn.c_attn.bias", own.sides_bias.reshape(-1)
            yield f"{name}.attn.c_proj.weight", own.out
            yield f"{name}.attn.c_proj.bias", np.zeros(self.embedded)
            yield f"{name}.mlp.c_fc.weight", own.units
            yield f"{name}.mlp.c_fc.bias", own.units_bias
            yield f"{name}.mlp.c_proj.weight", own.sums
            yield f"{name}.mlp.c_proj.bias", own.sums_bias


def dense(own: Map) -> Floats:
    """A map as a matrix, a row for each of its rows."""
    rows = np.zeros((len(own), own.width))
    for number in range(len(own)):
        columns, values, _ = own.row(number)
        rows[number, columns] = values
    return rows


def wide(rows: Floats, size: int) -> Floats:
    """With zeros at the end of every row."""
    return np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, size - rows.shape[-1])])
