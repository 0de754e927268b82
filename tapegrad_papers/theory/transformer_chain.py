"""The blocks of a transformer: both attentions and the first ReLU layer compute, the other two correct."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tapegrad.networks.form import Attention, Block
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.build import Layout
from tapegrad.targets.transformer.exactness import correction_of, require_absorbed, stray_weight
from tapegrad_papers.theory.affine import Affine, with_one
from tapegrad_papers.theory.blocks import Chain, Correction, ReadOut
from tapegrad_papers.theory.score_gap import Scores, score_gaps

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
    return Chain((*blocks, read_out), _correction(net, softness), True, layout.steps + 1, 1.0)


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


def _correction(net: TransformerNet, softness: float) -> Correction:
    """The same in every layer."""
    own = correction_of(net.layers)
    cuts, difference = (Affine.measured(layer.map) for layer in own.layers(net.layout.width))
    return Correction(cuts, difference, own.low, own.high, softness)
