"""Section 4.1 once more, in plain NumPy: a decoder that tells what every attention looks at."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad.targets.transformer.layers import Attention, FeedForward
from tapegrad.targets.transformer.net import Decoding, TransformerNet

Array = NDArray[np.float32]


class Attended(NamedTuple):
    """The weights of all attentions in one decoder step."""

    past: dict[int, Array]
    """For each layer with self-attention: on the null key, then on steps 0, 1, ..., up to this one."""
    given: Array
    """Of the encoder-decoder attention: on the null key, then on the cells of the input."""


class WatchedDecoder:
    """Takes one decoder step after the other; `output` is the last one's."""

    def __init__(self, net: TransformerNet, start: Decoding) -> None:
        self.net, self.tokens, self.output = net, start.tokens, start.output
        self._steps = 0
        self._past: dict[int, tuple[list[Array], list[Array]]] = {}

    def step(self) -> Attended:
        """The next decoder step."""
        hidden = self.output.copy()
        times = self.net.layout.group("pos1")
        hidden[times] += (self._steps >> np.arange(len(times)) & 1).astype(np.float32)
        past, given = {}, np.zeros(1, np.float32)
        for number, layer in enumerate(self.net.layers):
            if (attention := layer.self_attention) is not None:
                keys, values = self._past.setdefault(number, ([], []))
                keys.append(attention.W_K @ hidden + attention.b_K)
                values.append(attention.W_V @ hidden + attention.b_V)
                past[number], hidden = self._attend(attention, hidden, keys, values)
            if (attention := layer.encoder_attention) is not None:
                keys = list(self.tokens @ attention.W_K.T + attention.b_K)
                values = list(self.tokens @ attention.W_V.T + attention.b_V)
                given, hidden = self._attend(attention, hidden, keys, values)
            hidden = _feed_forward(layer.feed_forward, hidden)
        self.output = hidden
        self._steps += 1
        return Attended(past, given)

    def _attend(
        self, attention: Attention, hidden: Array, keys: list[Array], values: list[Array]
    ) -> tuple[Array, Array]:
        query = attention.W_Q @ hidden + attention.b_Q
        scores = np.stack([attention.K_0, *keys]) @ query
        if self.net.attention == "softmax":
            weights = np.exp(self.net.temperature * (scores - scores.max()))
        else:
            weights = (scores == scores.max()).astype(np.float32)
        weights = (weights / weights.sum()).astype(np.float32)
        return weights, hidden + weights @ np.stack([attention.V_0, *values])


def _feed_forward(feed: FeedForward, hidden: Array) -> Array:
    computed = np.maximum(feed.W_1 @ hidden + feed.b_1, 0)
    cut = np.maximum(computed - feed.low, 0) - np.maximum(computed - feed.high, 0)
    return np.maximum(feed.gain * cut, 0).astype(np.float32)
