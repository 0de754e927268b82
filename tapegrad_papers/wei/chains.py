"""The blocks of a ReLU net: the gates of a circuit layer compute, two more layers correct."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import Refused
from tapegrad.networks.form import Affine as Map
from tapegrad.networks.form import Matrix
from tapegrad.networks.heads import Attention, Block
from tapegrad.targets.relu import ReluNet
from tapegrad.targets.relu.build import relu_layers
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.build import Layout
from tapegrad.targets.transformer.exactness import correction_of, require_absorbed, stray_weight
from tapegrad_papers.wei.blocks import Affine, Chain, Correction, ReadOut, TwoLayers, with_one


def relu_chain(net: ReluNet) -> Chain:
    """Appendix B in the terms of appendix D. f_0 is the input itself, which has no parameters. A layer of n
    bits has norm at most sqrt(n)."""
    each = relu_layers(net.correction)
    norms = [math.sqrt(net.layer_width(step)) for step in range(net.circuit_layers + 1)]
    blocks = [
        TwoLayers(
            f"circuit layer {step + 1}",
            relu_affine(net, each * step),
            relu_affine(net, each * step + 1),
            norms[step],
        )
        for step in range(net.circuit_layers)
    ]
    read_out = ReadOut("read-out", relu_affine(net, net.depth), norms[-1])
    return Chain(
        blocks=(*blocks, read_out),
        correction=_correction(net) if net.correction != "none" else None,
        first_parameters=False,
        rounds=1,
        final_norm=math.sqrt(len(net.output_names)),
    )


def relu_affine(net: ReluNet, layer: int) -> Affine:
    """`W_i` and `b_i` of the net."""
    return Affine.measured(net.wiring.layer(layer))


def _correction(net: ReluNet) -> Correction:
    """All circuit layers have the same; the widest stands for all, and its own numbers are read."""
    each = relu_layers(net.correction)
    step = max(range(net.circuit_layers), key=lambda step: net.layer_width(step + 1))
    cuts, difference = relu_affine(net, each * step + 2), relu_affine(net, each * step + 3)
    thresholds = np.unique(-cuts.bias)
    return Correction(cuts, difference, float(thresholds[0]), float(thresholds[-1]))


# How far attention scores are apart, and how much they move: when the attended positions stay the same.


@dataclass(frozen=True)
class Gaps:
    """Over all hidden vectors of bits: by how much a full match beats any other key, and by how much the
    null key is beaten by a full match and beats the rest, whichever is less."""

    keys: float
    null: float


def score_gaps(attention: Attention) -> Gaps:
    """Read off the matrices. Every row of query and key depends on one bit, so that a row has at most two
    values on either side. The best product of a row must be the same for both values of the query: then
    the best score is a constant S, and a key with any row that is not best is below it by that row's gap."""
    queries, keys = _row_values(attention.query), _row_values(attention.key)
    best, gap, null = 0.0, np.inf, 0.0
    for query, key, null_key in zip(queries, keys, attention.null_key, strict=True):
        products = [sorted({q * k for k in key}, reverse=True) for q in query]
        if len({p[0] for p in products}) > 1 or (null_key != 0 and len(query) > 1):
            raise Refused("the scores of this attention have no gap that its matrices show")
        best += products[0][0]
        null += query[0] * float(null_key)
        gap = min([gap, *(p[0] - p[1] for p in products if len(p) > 1)])
    return Gaps(float(gap), float(min(best - null, null - (best - gap))))


def _row_values(side: Map | Matrix) -> list[list[float]]:
    own = side.entries()
    if (np.bincount(own.rows) > 1).any():
        raise Refused("a row of this attention reads more than one bit")
    ends = np.bincount(own.rows, own.values, len(own)) + own.bias
    return [sorted({float(low), float(high)}) for low, high in zip(own.bias, ends, strict=True)]


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of one attention under noise."""

    query: Affine
    key: Affine
    K_0: NDArray[np.float64]
    gaps: Gaps

    @classmethod
    def of(cls, attention: Attention, leeway: float | None = None) -> "Scores":
        """From the paper's matrices. `leeway`, where given, is how far scores may move against each other;
        hard-max lets them move as far as their gaps."""
        return cls(
            Affine.measured(attention.query),
            Affine.measured(attention.key),
            np.asarray(attention.null_key, np.float64),
            score_gaps(attention) if leeway is None else Gaps(leeway, leeway),
        )

    @cached_property
    def _null_slope(self) -> float:
        """`|W_Q^T K_0|`: how much the null score changes with the hidden vector that asks."""
        share = self.query.values * self.K_0[self.query.rows]
        return float(np.linalg.norm(np.bincount(self.query.columns, share))) if len(share) else 0.0

    def stay(self, s: float, asks: tuple[float, float], answers: tuple[float, float]) -> bool:
        """Whether the same positions win, for noise s in each matrix and pairs (norm, error) of the vector
        that asks and of those that answer.

        With q = W_Q h + b_Q and k likewise, `dq = s |(h, 1)| + (|W_Q| + s) d`, and a score moves by at most
        `|q| dk + |k| dq + dq dk`, the null score by `|q| s + |K_0| s |(h', 1)| + |W_Q^T K_0| d + s dq`.
        """
        (norm, error), (norm_k, error_k) = asks, answers
        dq = s * with_one(norm) + (self.query.norm + s) * error
        dk = s * with_one(norm_k) + (self.key.norm + s) * error_k
        q, k, k_0 = self.query.on_bits, self.key.on_bits, float(np.linalg.norm(self.K_0))
        score = q * dk + k * dq + dq * dk
        null = q * s + k_0 * s * with_one(norm + error) + self._null_slope * error + s * dq
        return 2 * score < self.gaps.keys and score + null < self.gaps.null


# The blocks of a transformer: both attentions and the first ReLU layer compute, the other two correct.


ONE_HOT = ("st", "sym1", "sym2", "scr1", "scr2", "pair")
"""Groups of coordinates of which at most one is on."""
SPREAD = 1.5
"""How many times as large noise may make the weight that goes astray in softmax. At the derived temperature
that weight takes half of the correction's radius, so any number between 1 and 2 would do."""


@dataclass(frozen=True)
class TransformerBlock:
    """`relu(W_1 h2 + b_1)` with `h2 = h1 + encoder value` and `h1 = h + decoder value`.

    While the same positions win, an attended value errs by `s_V |(h, 1)| + (|W_V| + s) d`: positions that
    tie have equal values. An attention that the net leaves out has parameters 0 in the paper; noise can
    make it attend anywhere, but all its values are 0, so the same formula holds with W_V = 0. The encoder's
    outputs err by the noise s_E of the embeddings E, which are counted to this block's parameters.

    With softmax the weights add up to 1 whatever the noise, so the errors of all values together are no
    larger. What is left is the weight on values that are not the best: see `_softness`.
    """

    purpose: str
    first: Affine
    decoder_value: Affine
    encoder_value: Affine
    decoder_scores: Scores | None
    encoder_scores: Scores | None
    input_norm: float
    inner_norm: float
    token_norm: float

    def _noise(self, slope: float, s: float) -> float:
        attended = with_one(self.input_norm), with_one(self.token_norm + s), self.encoder_value.norm + s
        return math.hypot(with_one(self.inner_norm), slope * math.hypot(*attended))

    def _widening(self, s: float) -> float:
        return 1 + self.decoder_value.norm + s

    def noise(self, s: float) -> float:
        return self._noise(self.first.norm + s, s)

    def gain(self, s: float) -> float:
        return (self.first.norm + s) * self._widening(s)

    def entry_noise(self, s: float) -> float:
        return self._noise(self.first.largest_row + s, s)

    def entry_gain(self, s: float) -> float:
        return (self.first.largest_row + s) * self._widening(s)

    def reach(self, s: float) -> float:
        """The largest error of hidden vectors that leaves the attended positions alone, by bisection."""
        if self.decoder_scores is None and self.encoder_scores is None:
            return math.inf
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if self._stay(s, middle) else (low, middle)
        return low

    def _stay(self, s: float, error: float) -> bool:
        own = self.input_norm, error
        after = self.inner_norm, self._widening(s) * error + s * with_one(self.input_norm)
        tokens = self.token_norm, s
        return (self.decoder_scores is None or self.decoder_scores.stay(s, own, own)) and (
            self.encoder_scores is None or self.encoder_scores.stay(s, after, tokens)
        )


def transformer_chain(net: TransformerNet) -> Chain:
    """Appendix C in the terms of appendix D: T + 1 decoder steps, the same layers each time."""
    layout = net.layout
    softness, leeway = _softness(net) if net.attention == "softmax" else (0.0, None)
    token_norm = _norm(layout, [*layout.group("sym1"), *layout.group("pos1")], layout.position_bits)
    alive = set(_alive(net.layers[-1])) | set(layout.group("pos1", "start"))
    blocks = []
    for layer in net.layers:
        inner = alive | set(layer.attended().tolist())
        blocks.append(
            TransformerBlock(
                layer.purpose,
                Affine.measured(layer.feed_forward[0].map),
                _value(layer.self_attention),
                _value(layer.encoder_attention),
                None if layer.self_attention is None else Scores.of(layer.self_attention, leeway),
                None if layer.encoder_attention is None else Scores.of(layer.encoder_attention, leeway),
                _norm(layout, alive, layout.time_bits),
                _norm(layout, inner, layout.time_bits),
                token_norm,
            )
        )
        alive = set(_alive(layer))
    theta_cls = Affine.of(net.theta_cls[None], np.zeros(1))
    read_out = ReadOut("theta_cls", theta_cls, _norm(layout, alive, layout.time_bits))
    return Chain((*blocks, read_out), _decoder_correction(net, softness), True, layout.steps + 1, 1.0)


def _softness(net: TransformerNet) -> tuple[float, float]:
    """How far softmax may be from the bits of hard-max, and how far scores may move for that.

    Scores that move by m against each other make the weight that goes astray `exp(beta m)` times as large:
    with m = ln(SPREAD) / beta, at most `SPREAD N exp(-beta gap)`. Values are bits and the rows that read them
    copy, so that no coordinate is further off; the sum of values with the softmax weights is between bits,
    so that no norm is larger. The correction keeps what is left of its radius for noise.
    """
    require_absorbed(net.layers, net.layout.steps, net.temperature)
    attentions = [a for layer in net.layers for a in layer.attentions()]
    gap = min(min(gaps.keys, gaps.null) for gaps in map(score_gaps, attentions))
    stray = SPREAD * stray_weight(net.layout.steps, net.temperature, gap)
    return stray, math.log(SPREAD) / net.temperature


def _value(attention: Attention | None) -> Affine:
    if attention is None:
        return Affine.of(np.zeros((1, 1)), np.zeros(1))
    return Affine.measured(attention.value)


def _alive(layer: Block) -> list[int]:
    """The coordinates that the layer does not clear."""
    return np.flatnonzero(layer.feed_forward[0].map.entries().largest()).tolist()


def _norm(layout: Layout, coordinates: Iterable[int], number_bits: int) -> float:
    """The norm of a hidden vector whose ones are among these. `number_bits` bits of pos1 are in use."""
    coordinates = set(coordinates)
    groups = {group: coordinates & set(layout.group(group)) for group in ONE_HOT}
    single = sum(1 for group in groups.values() if group)
    pos1 = coordinates & set(layout.group("pos1"))
    rest = coordinates - pos1 - set().union(*groups.values())
    return math.sqrt(single + min(len(pos1), number_bits) + len(rest))


def _decoder_correction(net: TransformerNet, softness: float) -> Correction:
    """The same in every layer."""
    own = correction_of(net.layers)
    cuts, difference = (Affine.measured(layer.map) for layer in own.layers(net.layout.width))
    return Correction(cuts, difference, own.low, own.high, softness)
