"""Stock classes with rotary positions: Llama and GPT-NeoX. They have no table of positions, so a few layers
in front compute its rows.

**Places from rotation.** A rotation turns queries and keys by p theta at position p, so that a score depends
on how far two tokens are apart; and how far it is to the first token is the position itself. Let a query be
the constant (a, 0) in a pair of numbers that is rotated by theta, the first token's key (-sin d, cos d), and
the key of every other token 0. Then the first token scores a sin(theta p - d), and all others 0: the head
finds the first token where that is positive, and copies a 1 from it, else a 0 from others. With records of R
tokens, theta = pi / (R 2^i) and d = theta (s + 1/2), it is 1 where (p - 1 - s) mod 2^(i+1) R is less than
2^i R: in the first half of its period. Call it half(i, s). So

    bit i of the number of this record                    is  1 - half(i, 0)
    bit i of the last one complete at the next token      is  1 - half(i, R - 1)
    being in slot s                                       is  |half(0, s) - half(0, s + 1)|,

where half(0, R) = 1 - half(0, 0). Units round these as they round all that heads copy. At the first token all
halves are 1, and units that find slots are shut there. (Up to the end of the first record, no record is
complete: bits are all 1 then and name a record that is not there, where the table has 0 and names one that
has no such slot yet. Either way the first token is found.)

**Frequencies.** Pair i is rotated by 1 / (b^i f): in GPT-NeoX b = 2 and f = R / pi (`linear`), in Llama b = 1
and f is given for each pair (`longrope`). All other heads use numbers that are not rotated. GPT-NeoX rotates
a part of each head; in Llama the other pairs turn by 2^-100 a token, so that no number changes in single
precision but a 0, by less than 2^-70.

**Exactness.** Take u = 2^-24. A frequency, found by a power, a quotient and a division, is off by 6 u at
most, where the power is off by 4 u; the factor by u, and the product with p by u: an angle is off by 8 u
theta p, which is a share 16 u p of theta / 2, half a token's turn. Every position is half a turn or more from
where the sine is 0, so that is the share of the least score, a sin(theta / 2), that is lost. Sines and
cosines, off by 4 u, weights and products cost 8 u of |sin d| + |cos d|, and a layer norm that finds means up
to `MEAN` lets other tokens answer with that much: together 2^1/2 (8 u + MEAN) a. The least score is least for
the highest bit, where it is sin(pi / (R 2^b)) a; and R 2^b is at most 2 N, for a horizon of N tokens, hence
the least score is 1.4 a / N or more. So a share of

    N (16 u + (8 u + MEAN) 2^1/2 / 1.4)

is lost at most. Horizons for which that is more than 1/2 are refused; a is such that softmax copies within
`STRAY` by the half that is left.

**Norms and gates of Llama.** Its norm subtracts no mean and divides by the root of 2^60 plus a mean square,
which is 2^30; by a gain of 2^30 it is the identity up to the rounding of `rsqrt`, say 4 u, within `MEAN`. Its
units are multiplied by gates, which are the constant 1 here, and `hidden_act` is ReLU.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.analysis import softmax_error
from tapegrad.attention.language import MEAN, ROUNDING, STRAY
from tapegrad.attention.tokens import BEGIN
from tapegrad.errors import Refused
from tapegrad.interop.stock import EPSILON, GAIN, Placed, Stock, Weights, norm_weights, singles
from tapegrad.networks.form import Rows
from tapegrad.networks.texts import Head, Layer, Parts, Records

HALF_ULP = 2.0**-24
HALF = "half: "
"""How the names of heads begin that find where in its period a position is."""
STILL = 2.0**100
"""What divides the frequencies of pairs that should not turn."""
Half = tuple[int, int]
"""The number i of a period and the shift s."""


def lost(tokens: int) -> float:
    """The share of the least score that rounding may take."""
    return tokens * (16 * HALF_ULP + (8 * HALF_ULP + MEAN) * math.sqrt(2) / 1.4)


class Rotary(Stock):
    """A class with rotary positions: layers that find places come before those of the net."""

    places = (
        "There is no table of positions: the first {finding} layers find the place of a token from how far "
        "the first one is rotated."
    )

    def __init__(self, parts: Parts, tokens: int) -> None:
        if lost(tokens) > 1 / 2:
            raise Refused(
                f"{tokens:,} tokens are too many to be told apart by rotations in single precision",
                advice="Compile with fewer, or use --family gpt2.",
            )
        assert isinstance(parts.positions, Records)
        self.table = table = parts.positions
        self.halves: list[Half] = [(0, shift) for shift in range(table.record)]
        self.halves += [(bit, shift) for shift in (0, table.record - 1) for bit in range(1, table.bits)]
        super().__init__(parts, tokens, parts.width + len(self.halves))

    @property
    @abstractmethod
    def pairs(self) -> NDArray[np.int64]:
        """For each period the two numbers of a head that are rotated by it."""

    @property
    @abstractmethod
    def free(self) -> NDArray[np.int64]:
        """The numbers of a head that are not rotated."""

    @property
    def factor(self) -> float:
        """By which frequencies are divided."""
        return self.table.record / math.pi

    @property
    def layers(self) -> Sequence[Placed]:
        return self._layers

    @cached_property
    def _layers(self) -> list[Placed]:
        finding = []
        for first in range(0, len(self.halves), self.heads):
            own = self.halves[first : first + self.heads]
            last = first + self.heads >= len(self.halves)
            units, sums, to = self._places() if last else (Rows(), Rows(), [])
            layer = Layer(
                "finds places from rotations",
                tuple(self._half(half, self.parts.width + first + at) for at, half in enumerate(own)),
                units.affine(self.width, np.float32),
                sums.affine(len(units.bias), np.float32),
                np.array(to, np.int64),
            )
            finding.append(Placed(layer, tuple(self.pairs[number] for number, _ in own)))
        return finding + [Placed(layer, (self.free,) * len(layer.heads)) for layer in self.parts.layers]

    @cached_property
    def _begin(self) -> int:
        """The coordinate that only the first token has."""
        embedding = self.parts.embedding.dense().weight
        return next(at for at in range(self.parts.width)
                    if np.flatnonzero(embedding[:, at]).tolist() == [BEGIN])  # fmt: skip

    def _half(self, half: Half, to: int) -> Head:
        number, shift = half
        record, width = self.table.record, self.parts.width
        theta = math.pi / (record << number)
        sharp = 1.0
        while softmax_error(self.tokens, sharp * math.sin(theta / 2) / 2) > STRAY:
            sharp *= 2
        delta = theta * (shift + 0.5)
        query, key, value = Rows(), Rows(), Rows()
        for constant, answer in ((sharp, -math.sin(delta)), (0.0, math.cos(delta))):
            query.add((), constant)
            key.add([(self._begin, answer)])
        value.add([(self._begin, 1)])
        asks, answers, gives = (rows.affine(width, np.float32) for rows in (query, key, value))
        name = f"{HALF}position less {shift + 1} modulo {2 * record << number} is below {record << number}"
        return Head(name, asks, answers, gives, np.array([to]))

    def _places(self) -> tuple[Rows, Rows, list[int]]:
        """Units that make the rows of a table of positions of halves."""
        table, units, sums, to = self.table, Rows(), Rows(), list[int]()
        at = {half: self.parts.width + place for place, half in enumerate(self.halves)}
        last = table.record - 1

        def rounded(terms: dict[int, float], bias: float) -> list[tuple[int, float]]:
            cuts = [units.add(terms.items(), bias - cut) for cut in (ROUNDING.low, ROUNDING.high)]
            return list(zip(cuts, (ROUNDING.gain, -ROUNDING.gain), strict=True))

        for group, shift in enumerate((0, last)):
            for bit in range(table.bits):
                sums.add(rounded({at[bit, shift]: -1.0}, 1.0))
                to.append(table.first + group * table.bits + bit)
        for slot in range(table.record):
            # The difference of neighbours; after the last comes the first, turned over.
            terms, bias = {at[0, slot]: 1.0}, 0.0
            if slot < last:
                terms[at[0, slot + 1]] = -1.0
            else:
                terms[at[0, 0]] = terms.get(at[0, 0], 0.0) + 1.0
                bias = -1.0
            found = []
            for sign in (1.0, -1.0):
                turned = {place: sign * weight for place, weight in terms.items()}
                found += rounded(turned | {self._begin: -1.0}, sign * bias)
            sums.add(found)
            to.append(table.first + 2 * table.bits + slot)
        return units, sums, to


class Llama(Rotary):
    """Llama: norms without means, gated units, a frequency of its own for each pair."""

    family = "llama"
    architecture = "LlamaForCausalLM"
    copies = 1

    @property
    def rotated(self) -> int:
        return 2 * self.table.bits

    @property
    def embedded(self) -> int:
        return -(-self.width // self.heads) * self.heads

    @property
    def pairs(self) -> NDArray[np.int64]:
        first = np.arange(self.rotated // 2)
        return np.stack([first, first + self.head // 2], axis=1)

    @property
    def free(self) -> NDArray[np.int64]:
        still = np.arange(self.rotated // 2, self.head // 2)
        return np.concatenate([still, still + self.head // 2])

    def config(self) -> dict[str, Any]:
        turning = [self.factor * 2.0**number for number in range(self.rotated // 2)]
        factors = turning + [STILL] * (self.head // 2 - len(turning))
        return self.common() | {
            "model_type": "llama",
            "max_position_embeddings": self.tokens,
            "hidden_size": self.embedded,
            "num_hidden_layers": len(self.layers),
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.heads,
            "head_dim": self.head,
            "intermediate_size": self.inner,
            "hidden_act": "relu",
            "rms_norm_eps": EPSILON,
            "attention_bias": True,
            "mlp_bias": True,
            "attention_dropout": 0.0,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 1.0,
                "short_factor": factors,
                "long_factor": factors,
                "original_max_position_embeddings": self.tokens,
                "factor": 1.0,
                "attention_factor": 1.0,
            },
        }

    def weights(self) -> Weights:
        found = self.ends("model.embed_tokens.weight", "lm_head.weight")
        gain = np.full(self.embedded, GAIN)
        found["model.norm.weight"] = gain
        for number, layer in enumerate(self.layers):
            name, own = f"model.layers.{number}", self.written(layer)
            for part, side in enumerate("qkv"):
                found[f"{name}.self_attn.{side}_proj.weight"] = (
                    own.sides[:, part].reshape(self.embedded, -1).T
                )
                found[f"{name}.self_attn.{side}_proj.bias"] = own.sides_bias[part].reshape(-1)
            found |= {
                f"{name}.self_attn.o_proj.weight": own.out.T,
                f"{name}.self_attn.o_proj.bias": np.zeros(self.embedded),
                f"{name}.mlp.gate_proj.weight": own.units.T,
                f"{name}.mlp.gate_proj.bias": own.units_bias,
                f"{name}.mlp.up_proj.weight": np.zeros((self.inner, self.embedded)),
                f"{name}.mlp.up_proj.bias": np.ones(self.inner),
                f"{name}.mlp.down_proj.weight": own.sums.T,
                f"{name}.mlp.down_proj.bias": own.sums_bias,
                f"{name}.input_layernorm.weight": gain,
                f"{name}.post_attention_layernorm.weight": gain,
            }
        return singles(found)


class GptNeox(Rotary):
    """GPT-NeoX: layer norms, and rotation of a part of each head."""

    family = "gpt-neox"
    architecture = "GPTNeoXForCausalLM"
    copies = 2

    def __init__(self, parts: Parts, tokens: int) -> None:
        super().__init__(parts, tokens)
        self.heads = max(self.heads, -(-2 * self.width // self.head))

    @property
    def rotated(self) -> int:
        # A power of two, so that exponents of the base are not rounded.
        return 2 << (self.table.bits - 1).bit_length()

    @property
    def embedded(self) -> int:
        return self.head * self.heads

    @property
    def pairs(self) -> NDArray[np.int64]:
        first = np.arange(self.table.bits)
        return np.stack([first, first + self.rotated // 2], axis=1)

    @property
    def free(self) -> NDArray[np.int64]:
        return np.arange(self.rotated, self.head)

    def config(self) -> dict[str, Any]:
        return self.common() | {
            "model_type": "gpt_neox",
            "max_position_embeddings": self.tokens,
            "hidden_size": self.embedded,
            "num_hidden_layers": len(self.layers),
            "num_attention_heads": self.heads,
            "intermediate_size": self.inner,
            "hidden_act": "relu",
            "layer_norm_eps": EPSILON,
            "use_parallel_residual": False,
            "attention_bias": True,
            "attention_dropout": 0.0,
            "hidden_dropout": 0.0,
            "rope_parameters": {
                "rope_type": "linear",
                "rope_theta": 2.0 ** (self.rotated // 2),
                "partial_rotary_factor": self.rotated / self.head,
                "factor": self.factor,
            },
        }

    def weights(self) -> Weights:
        found = self.ends("gpt_neox.embed_in.weight", "embed_out.weight")
        norms = ["gpt_neox.final_layer_norm"]
        for number, layer in enumerate(self.layers):
            name, own = f"gpt_neox.layers.{number}", self.written(layer)
            norms += [f"{name}.input_layernorm", f"{name}.post_attention_layernorm"]
            # Head by head: its queries, keys and values.
            sides = own.sides.transpose(2, 1, 3, 0).reshape(-1, self.embedded)
            found |= {
                f"{name}.attention.query_key_value.weight": sides,
                f"{name}.attention.query_key_value.bias": own.sides_bias.transpose(1, 0, 2).reshape(-1),
                f"{name}.attention.dense.weight": own.out.T,
                f"{name}.attention.dense.bias": np.zeros(self.embedded),
                f"{name}.mlp.dense_h_to_4h.weight": own.units.T,
                f"{name}.mlp.dense_h_to_4h.bias": own.units_bias,
                f"{name}.mlp.dense_4h_to_h.weight": own.sums.T,
                f"{name}.mlp.dense_4h_to_h.bias": own.sums_bias,
            }
        return singles(found | norm_weights(norms, self.embedded))
