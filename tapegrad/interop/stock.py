"""A network of a text as weights of stock classes: what all have in common, and GPT-2. NumPy is enough.

Layer norms subtract means, so every coordinate x of the residual stream stands there twice, as x and -x; they
are made the identity by an epsilon of 2^60 and a gain of 2^30 (why that is exact:
`tapegrad.attention.language`). Heads have a size that is a power of 4: its root, by which scores are divided,
is a power of two and is part of the queries. Biases of heads and units are those of the classes; logits have
none.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.tokens import BEGIN, END
from tapegrad.errors import Refused
from tapegrad.networks.form import Affine
from tapegrad.networks.texts import Layer, Parts

EPSILON, GAIN = 2.0**60, 2.0**30
LEAST_HEAD = 16
LARGEST = 8 << 30
"""Most bytes of a table of positions."""

Floats = NDArray[np.floating]
Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Placed:
    """A layer, and for each of its heads which numbers of queries and keys it uses."""

    layer: Layer
    numbers: tuple[NDArray[np.int64], ...]


@dataclass(frozen=True)
class Written:
    """A layer written out, as matrices from the right: queries, keys and values (stream, 3, heads, size) with
    their biases, what becomes of values, units, and what becomes of them."""

    sides: Floats
    sides_bias: Floats
    out: Floats
    units: Floats
    units_bias: Floats
    sums: Floats
    sums_bias: Floats


class Stock(ABC):
    """The sizes of a stock model that holds a network for texts of so many tokens, and its weights."""

    family: ClassVar[str]
    """As the command line has it."""
    architecture: ClassVar[str]
    copies: ClassVar[int]
    """How often a coordinate stands in the stream: 2 where layer norms subtract means."""
    places: ClassVar[str]
    """How positions come in, for the model card."""

    def __init__(self, parts: Parts, tokens: int, coordinates: int) -> None:
        self.parts, self.tokens, self.width = parts, tokens, coordinates
        layers = parts.layers
        heads = [head for layer in layers for head in layer.heads]
        compared = max((len(head.key) for head in heads), default=1)
        copied = max((len(head.value) for head in heads), default=1)
        self.head = LEAST_HEAD
        while self.head < max(compared + self.rotated, copied):
            self.head *= 4
        self.heads = max(len(layer.heads) for layer in layers)

    @property
    @abstractmethod
    def embedded(self) -> int:
        """The width of the residual stream."""

    @property
    @abstractmethod
    def rotated(self) -> int:
        """How many numbers of a head are rotated."""

    @property
    @abstractmethod
    def layers(self) -> Sequence[Placed]:
        """The layers from first to last."""

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """What the class takes."""

    @abstractmethod
    def weights(self) -> Weights:
        """Every tensor by its name in the checkpoint, but for a table of positions."""

    def positions(self) -> Weights:
        """The table of positions, where the class has one."""
        return {}

    @property
    def inner(self) -> int:
        """Units of a layer."""
        return max(len(own.layer.units) for own in self.layers)

    def written(self, own: Placed) -> Written:
        """A layer as matrices, with zeros where it has fewer heads or units than another."""
        sides, bias = (np.zeros((*first, 3, self.heads, self.head)) for first in ((self.embedded,), ()))
        out = np.zeros((self.heads, self.head, self.width))
        for place, (head, numbers) in enumerate(zip(own.layer.heads, own.numbers, strict=True)):
            for part, side in enumerate((head.query, head.key, head.value)):
                scale = float(np.sqrt(self.head)) if part == 0 else 1.0
                to = numbers[: len(side)] if part < 2 else np.arange(len(side))
                sides[:, part, place, to] = scale * self.read(side)
                bias[part, place, to] = scale * np.asarray(side.bias)
            out[place, np.arange(len(head.to)), np.asarray(head.to)] = 1
        layer = own.layer
        sums, sums_bias = np.zeros((self.inner, self.width)), np.zeros(self.width)
        sums[: len(layer.units), np.asarray(layer.to)] = layer.sums.dense().weight.T
        sums_bias[np.asarray(layer.to)] = layer.sums.bias
        return Written(
            sides,
            bias,
            self.spread(out.reshape(-1, self.width)),
            padded(self.read(layer.units), 1, self.inner),
            padded(np.asarray(layer.units.bias), 0, self.inner),
            self.spread(sums),
            self.spread(sums_bias),
        )

    def read(self, own: Affine) -> Floats:
        """A map as a matrix from the residual stream, of which it reads the first copy."""
        return padded(np.asarray(own.dense().weight).T, 0, self.embedded)

    def spread(self, rows: Floats) -> Floats:
        """Rows of coordinates as rows of the residual stream: x, then -x if there are two, then nothing."""
        wide = padded(rows, -1, self.width)
        copies = [wide, -wide][: self.copies]
        return padded(np.concatenate(copies, axis=-1), -1, self.embedded)

    def common(self) -> dict[str, Any]:
        """What every configuration has."""
        return {
            "architectures": [self.architecture],
            "vocab_size": len(self.parts.embedding),
            "tie_word_embeddings": False,
            "dtype": "float32",
            "bos_token_id": BEGIN,
            "eos_token_id": END,
            "pad_token_id": END,
        }

    def ends(self, embedding: str, unembedding: str) -> dict[str, Floats]:
        """Embeddings of tokens, and what logits are products with."""
        parts = self.parts
        return {
            embedding: self.spread(np.asarray(parts.embedding.dense().weight)),
            unembedding: self.read(parts.unembedding).T,
        }


class Gpt2(Stock):
    """A GPT-2, whose table of positions has a row for each token of the horizon."""

    family = "gpt2"
    architecture = "GPT2LMHeadModel"
    copies = 2
    places = "The place of a token comes from the table of positions, which has a row for each."

    def __init__(self, parts: Parts, tokens: int) -> None:
        super().__init__(parts, tokens, parts.width)
        self.heads = max(self.heads, -(-2 * self.width // self.head))
        if 4 * tokens * self.embedded > LARGEST:
            raise Refused(
                f"the table of positions would take {4 * tokens * self.embedded / 2**30:.1f} GiB",
                advice="Compile with fewer tokens.",
            )

    @property
    def embedded(self) -> int:
        return self.head * self.heads

    @property
    def rotated(self) -> int:
        return 0

    @property
    def layers(self) -> Sequence[Placed]:
        numbers = np.arange(self.head)
        return [Placed(layer, (numbers,) * len(layer.heads)) for layer in self.parts.layers]

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

    def positions(self) -> Weights:
        return singles({"transformer.wpe.weight": self.spread(self.parts.table(self.tokens))})

    def weights(self) -> Weights:
        found = self.ends("transformer.wte.weight", "lm_head.weight")
        norms = ["transformer.ln_f"]
        for number, layer in enumerate(self.layers):
            name, own = f"transformer.h.{number}", self.written(layer)
            norms += [f"{name}.ln_1", f"{name}.ln_2"]
            found |= {
                f"{name}.attn.c_attn.weight": own.sides.reshape(self.embedded, -1),
                f"{name}.attn.c_attn.bias": own.sides_bias.reshape(-1),
                f"{name}.attn.c_proj.weight": own.out,
                f"{name}.attn.c_proj.bias": np.zeros(self.embedded),
                f"{name}.mlp.c_fc.weight": own.units,
                f"{name}.mlp.c_fc.bias": own.units_bias,
                f"{name}.mlp.c_proj.weight": own.sums,
                f"{name}.mlp.c_proj.bias": own.sums_bias,
            }
        return singles(found | norm_weights(norms, self.embedded))


def norm_weights(names: Sequence[str], width: int) -> dict[str, Floats]:
    """Layer norms that are the identity."""
    gains: dict[str, Floats] = {f"{name}.weight": np.full(width, GAIN) for name in names}
    return gains | {f"{name}.bias": np.zeros(width) for name in names}


def singles(found: Mapping[str, Floats]) -> Weights:
    """In single precision."""
    return {name: np.ascontiguousarray(array, np.float32) for name, array in found.items()}


def padded(array: Floats, axis: int, size: int) -> Floats:
    """With zeros at the end of an axis, so that it has this size."""
    room = [(0, 0)] * array.ndim
    room[axis] = 0, size - array.shape[axis]
    return np.pad(array, room)
