"""Stock classes with rotary positions, Llama and GPT-NeoX: layers in front find the places of tokens.

**Halves.** A rotation turns the query at position p by p theta, and the first token, at 0, is not turned.
Where a query is the constant (a, 0), the first token's key (-sin d, cos d) and all other keys are 0, the
first token scores a sin(p theta - d), and all others 0. So the head copies a 1 from the first token where
that is positive, and a 0 from others where it is negative. With records of R tokens, theta = pi / (R 2^i) and
d = (s + 1/2) theta, that is: whether (p - 1 - s) mod 2^(i+1) R is less than 2^i R. Units make the rows of the
table of positions of these. That they are these rows is not argued but computed, in whole numbers, for every
position up to the horizon.

**What rounding may take.** Let u = 2^-24 and N be the horizon. An angle is off by 8 u theta p at most, if the
library finds frequencies up to 6 u of theirs. Each p theta - d is an odd multiple of theta / 2, so at least
that far from where the sine is 0; the sine is concave there, so no more than 16 u N of the least score,
a sin(theta / 2), are lost by angles. Sines, cosines, weights and products take 8 u a 2^1/2 at most, and keys
of other tokens that are not quite 0, since norms find means up to 2^-20 (or gains, in Llama), take 2^-20 a
2^1/2. For the longest period sin(theta / 2) is 1.4 / N or more, since R 2^bits <= 2 N. All this must be half
of the least score or less; then a is large enough for softmax if, by the half that is left, it strays by no
more than 2^-10. Units cut sums of two halves, which are whole numbers up to 2^-8, at 3/8 and 5/8.

**The first record.** Up to its end no record is complete: the table has 0 for the number of the last one, and
here its bits are all 1. A prompt consists of records, so the tokens that follow there are given; and no key
depends on what heads find by that number. Both are all that matters, and the second is checked.

**Numbers that stay.** All other heads use numbers that are not rotated: GPT-NeoX rotates a part of each head;
in Llama the other pairs turn by 2^-100 a token, which changes a sum by less than 2^-70 and no number but 0.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tapegrad_check.folder import require
from tapegrad_check.graph import Graph
from tapegrad_check.maps import Map
from tapegrad_check.products import times
from tapegrad_check.targets.stock_nets import EPSILON, GAIN, Floats, Head, Layer, StockNet, Tensor, dense

UNIT, MEAN, STRAY = 2.0**-24, 2.0**-20, 2.0**-10
LOW, HIGH, SLOPE = 3 / 8, 5 / 8, 4.0
STILL = 2.0**100
AT_ONCE = 1 << 12
"""Positions for which places are computed at once."""

Rows = list[tuple[dict[int, float], float]]
"""Terms and bias."""


class Rotary(StockNet):
    """A class with rotary positions."""

    trusting = ", if the library finds angles, sines and cosines up to some units in the last place"

    def __init__(self, net: Mapping[str, Any], graph: Graph) -> None:
        super().__init__(net, graph)
        self.halves = [(0, shift) for shift in range(self.record)]
        self.halves += [(bit, shift) for shift in (0, self.record - 1) for bit in range(1, self.bits)]
        self.width += len(self.halves)
        lost = self.tokens * (16 * UNIT + (8 * UNIT + MEAN) * math.sqrt(2) / 1.4)
        require(lost <= 1 / 2, "rotations cannot tell so many positions apart")
        self._check_first_record()

    @property
    @abstractmethod
    def pairs(self) -> list[tuple[int, int]]:
        """For each period the two numbers of a head that are rotated by it."""

    @property
    def factor(self) -> float:
        """By which frequencies are divided."""
        return self.record / math.pi

    @property
    def layers(self) -> list[Layer]:
        return [*self._finding, *self.own]

    @cached_property
    def _finding(self) -> list[Layer]:
        """The layers that find places; units only in the last of them, when all halves are there."""
        heads = [self._half(*half, len(self.names) + at) for at, half in enumerate(self.halves)]
        groups = [heads[first : first + self.heads] for first in range(0, len(heads), self.heads)]
        none = Layer([], _map([], self.width), _map([], 0), [])
        units, sums, to = self._places()
        self._check_places(units, sums, to)
        last = Layer(groups[-1], units, sums, to)
        return [*(none._replace(heads=group) for group in groups[:-1]), last]

    def _half(self, bit: int, shift: int, to: int) -> Head:
        theta = math.pi / (self.record << bit)
        large = 1.0
        while 4 * self.tokens * math.exp(-large * math.sin(theta / 2) / 2) + 2.0**-23 > STRAY:
            large *= 2
        angle = theta * (shift + 0.5)
        query: Rows = [({}, large), ({}, 0.0)]
        key: Rows = [({0: -math.sin(angle)}, 0.0), ({0: math.cos(angle)}, 0.0)]
        sides = (_map(query, self.width), _map(key, self.width), _map([({0: 1.0}, 0.0)], self.width))
        return Head(sides, [to], self.pairs[bit])

    def _places(self) -> tuple[Map, Map, list[int]]:
        """Units that make rows of the table: bits of records are halves turned over, a slot is where two
        neighbours differ, but not the first token."""
        at = {half: len(self.names) + place for place, half in enumerate(self.halves)}
        units: Rows = []
        sums: Rows = []
        to: list[int] = []

        def cut(*sides: tuple[dict[int, float], float]) -> None:
            first = len(units)
            units.extend((terms, bias - where) for terms, bias in sides for where in (LOW, HIGH))
            sums.append(({first + n: SLOPE if n % 2 == 0 else -SLOPE for n in range(2 * len(sides))}, 0.0))

        for place, (name, number) in enumerate(self.names):
            if name in ("record", "before"):
                cut(({at[number, 0 if name == "record" else self.record - 1]: -1.0}, 1.0))
            elif name == "slot":
                # What comes after the last slot is the first one of the next record, turned over.
                ends = number == self.record - 1
                terms = {at[0, number]: 1.0, at[0, 0 if ends else number + 1]: 1.0 if ends else -1.0}
                turned = {column: -weight for column, weight in terms.items()}
                cut((terms | {0: -1.0}, -1.0 if ends else 0.0), (turned | {0: -1.0}, 1.0 if ends else 0.0))
            else:
                continue
            to.append(place)
        return _map(units, self.width), _map(sums, len(units)), to

    def _check_places(self, units: Map, sums: Map, to: Sequence[int]) -> None:
        """For every position, what the units make of halves is what the table has there."""
        weights, offsets, added = dense(units).T, np.array(units.bias), dense(sums).T
        before = [place for place, (name, _) in enumerate(self.names) if name == "before"]
        for first in range(0, self.tokens, AT_ONCE):
            numbers = np.arange(first, min(first + AT_ONCE, self.tokens))
            wanted = self.rows(numbers)
            wanted[:, before] += ((numbers > 0) & (numbers < self.record))[:, None]
            stream = np.zeros((len(numbers), self.width))
            stream[:, 0] = numbers == 0
            for place, (bit, shift) in enumerate(self.halves):
                half = self.record << bit
                early = (numbers - 1 - shift) % (2 * half) < half
                stream[:, len(self.names) + place] = early | (numbers == 0)
            found = times(np.maximum(times(stream, weights) + offsets, 0), added)
            require(bool((found == wanted[:, to]).all()), "rotations do not find the place of every token")

    def _check_first_record(self) -> None:
        """No key reads what was found by the number of the last record that is complete."""
        first, *others = self.own
        late = {
            at
            for head in first.heads
            if any(self.names[column][0] == "before" for column in head.sides[0].columns)
            for at in head.to
        }
        for number, place in enumerate(first.to):
            read = {column for unit in first.sums.row(number)[0] for column in first.units.row(unit)[0]}
            late |= {place} if read & late else set()
        read = {column for layer in others for head in layer.heads for column in head.sides[1].columns}
        require(not read & late, "a key depends on a record that is not complete")


class Llama(Rotary):
    """Llama: norms without means, gated units whose gates are 1, a frequency of its own for each pair."""

    title, architecture, copies = "Llama", "LlamaForCausalLM", 1

    @property
    def rotated(self) -> int:
        return 2 * self.bits

    @property
    def embedded(self) -> int:
        return math.ceil(self.width / self.heads) * self.heads

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(number, number + self.head // 2) for number in range(self.bits)]

    @property
    def free(self) -> Sequence[int]:
        still = range(self.bits, self.head // 2)
        return [*still, *(number + self.head // 2 for number in still)]

    def config(self) -> dict[str, Any]:
        turning = [self.factor * 2.0**bit for bit in range(self.bits)]
        factors = turning + [STILL] * (self.head // 2 - self.bits)
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

    def tensors(self) -> Iterator[Tensor]:
        yield from self.ends("model.embed_tokens.weight", "lm_head.weight")
        gain = np.full(self.embedded, GAIN)
        yield "model.norm.weight", gain
        for number, layer in enumerate(self.layers):
            name, own = f"model.layers.{number}", self.matrices(layer)
            yield f"{name}.input_layernorm.weight", gain
            yield f"{name}.post_attention_layernorm.weight", gain
            for part, side in enumerate("qkv"):
                matrix = own.sides[:, part].reshape(self.embedded, -1).T
                yield from _linear(f"{name}.self_attn.{side}_proj", matrix, own.sides_bias[part].reshape(-1))
            yield from _linear(f"{name}.self_attn.o_proj", own.out.T, np.zeros(self.embedded))
            yield from _linear(f"{name}.mlp.gate_proj", own.units.T, own.units_bias)
            ones = np.ones(self.inner)
            yield from _linear(f"{name}.mlp.up_proj", np.zeros((self.inner, self.embedded)), ones)
            yield from _linear(f"{name}.mlp.down_proj", own.sums.T, own.sums_bias)


class GptNeox(Rotary):
    """GPT-NeoX: layer norms, and rotation of a part of each head."""

    title, architecture, copies = "GPT-NeoX", "GPTNeoXForCausalLM", 2

    def __init__(self, net: Mapping[str, Any], graph: Graph) -> None:
        super().__init__(net, graph)
        self.heads = max(self.heads, -(-2 * self.width // self.head))

    @property
    def rotated(self) -> int:
        # Exponents of the base, which are i over half of this, must not be rounded: a power of two.
        return 2 << (self.bits - 1).bit_length()

    @property
    def embedded(self) -> int:
        return self.head * self.heads

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(number, number + self.rotated // 2) for number in range(self.bits)]

    @property
    def free(self) -> Sequence[int]:
        return range(self.rotated, self.head)

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

    def tensors(self) -> Iterator[Tensor]:
        yield from self.ends("gpt_neox.embed_in.weight", "embed_out.weight")
        yield from self.norm("gpt_neox.final_layer_norm")
        for number, layer in enumerate(self.layers):
            name, own = f"gpt_neox.layers.{number}", self.matrices(layer)
            yield from self.norm(f"{name}.input_layernorm")
            yield from self.norm(f"{name}.post_attention_layernorm")
            # Head by head: its queries, keys and values.
            sides = own.sides.transpose(2, 1, 3, 0).reshape(-1, self.embedded)
            bias = own.sides_bias.transpose(1, 0, 2).reshape(-1)
            yield from _linear(f"{name}.attention.query_key_value", sides, bias)
            yield from _linear(f"{name}.attention.dense", own.out.T, np.zeros(self.embedded))
            yield from _linear(f"{name}.mlp.dense_h_to_4h", own.units.T, own.units_bias)
            yield from _linear(f"{name}.mlp.dense_4h_to_h", own.sums.T, own.sums_bias)


def _linear(name: str, weight: Floats, bias: Floats) -> Iterator[Tensor]:
    yield f"{name}.weight", weight
    yield f"{name}.bias", bias


def _map(rows: Rows, width: int) -> Map:
    """Rows as a map, in single precision."""
    starts = np.cumsum([0, *(len(terms) for terms, _ in rows)]).tolist()
    columns = [column for terms, _ in rows for column in terms]
    values = [float(np.float32(value)) for terms, _ in rows for value in terms.values()]
    return Map(starts, columns, values, [bias for _, bias in rows], width)
