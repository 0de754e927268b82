"""A decoder step in plain NumPy, module by module, which also tells what every attention looked at."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.nets.transformer.layers import Attention, FeedForward
from tapegrad.nets.transformer.net import Decoding, TransformerNet

Array = NDArray[np.float32]


class Pattern(NamedTuple):
    """The weights of one attention in one step: on the null key first, then on steps 0, 1, ..., i."""

    layer: int
    purpose: str
    weights: Array


def attention_patterns(net: TransformerNet, start: Decoding, steps: int) -> list[list[Pattern]]:
    """For each of the first decoder steps, what every self-attention attends to, until the net is done."""
    past: list[list[Array]] = [[] for _ in net.layers]
    output, patterns = start.output, []
    for step in range(steps):
        hidden = output.copy()
        hidden[net.layout.group("pos1")] += step >> np.arange(net.layout.position_bits) & 1
        seen = []
        for number, layer in enumerate(net.layers):
            past[number].append(hidden)
            if layer.self_attention is not None:
                added, weights = _attend(net, layer.self_attention, hidden, past[number])
                seen.append(Pattern(number, layer.purpose, weights))
                hidden = hidden + added
            if layer.encoder_attention is not None:
                hidden = hidden + _attend(net, layer.encoder_attention, hidden, list(start.tokens))[0]
            hidden = _feed_forward(layer.feed_forward, hidden)
        output = hidden
        patterns.append(seen)
        if net.done(Decoding(step + 1, output, start.tokens, start.cells, start.origin)):
            break
    return patterns


def _attend(
    net: TransformerNet, attention: Attention, hidden: Array, others: list[Array]
) -> tuple[Array, Array]:
    query = attention.W_Q @ hidden + attention.b_Q
    keys = [attention.K_0, *(attention.W_K @ other + attention.b_K for other in others)]
    values = [attention.V_0, *(attention.W_V @ other + attention.b_V for other in others)]
    scores = np.array([query @ key for key in keys])
    if net.attention == "softmax":
        weights = np.exp(net.temperature * (scores - scores.max()))
    else:
        weights = (scores == scores.max()).astype(np.float32)
    weights = weights / weights.sum()
    return weights @ np.array(values), weights


def _feed_forward(feed: FeedForward, hidden: Array) -> Array:
    for weight, bias in ((feed.W_1, feed.b_1), (feed.W_2, feed.b_2), (feed.W_3, feed.b_3)):
        hidden = np.maximum(weight @ hidden + bias, 0)
    return hidden
