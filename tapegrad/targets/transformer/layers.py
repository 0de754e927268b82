"""The modules of section 4.1, with the paper's matrices under the paper's names."""

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


class Attention(eqx.Module):
    """`Attn(h', (h_1, ..., h_i)) = h' + mean of v_j over the best scores`, with a null key and value.

    `Q(h) = W_Q h + b_Q`, `K(h) = W_K h + b_K`, `V(h) = W_V h + b_V`; score 0 is `Q(h') . K_0`.
    """

    W_Q: Array
    b_Q: Array
    W_K: Array
    b_K: Array
    W_V: Array
    b_V: Array
    K_0: Array
    V_0: Array

    @property
    def targets(self) -> NDArray[np.intp]:
        """The coordinates that it can add to."""
        return np.flatnonzero(self.W_V.any(1) | (self.b_V != 0) | (self.V_0 != 0))


class FeedForward(eqx.Module):
    """`phi(W_3 phi(W_2 phi(W_1 h + b_1) + b_2) + b_3)`: a layer that computes, then two that correct
    (Proposition 3.4). The correction `gain (relu(z - low) - relu(z - high))` with `gain = 1 / (high - low)`
    sends everything within `low` of a bit to that bit; it is the same for all coordinates, so only its three
    numbers are kept, and the matrices are made on request."""

    W_1: Array
    b_1: Array
    low: float
    high: float

    @property
    def gain(self) -> float:
        """Slope of the correction between its two kinks."""
        return 1 / (self.high - self.low)

    @property
    def W_2(self) -> Array:
        """Two copies of every coordinate."""
        one = np.eye(len(self.b_1), dtype=np.float32)
        return np.concatenate([one, one])

    @property
    def b_2(self) -> Array:
        """One copy minus the lower threshold, the other minus the higher."""
        width = len(self.b_1)
        return np.repeat(np.array([-self.low, -self.high], np.float32), width)

    @property
    def W_3(self) -> Array:
        """The difference of the two copies, times the gain."""
        one = np.eye(len(self.b_1), dtype=np.float32) * np.float32(self.gain)
        return np.concatenate([one, -one], axis=1)

    @property
    def b_3(self) -> Array:
        """No bias."""
        return np.zeros(len(self.b_1), np.float32)


class TransformerLayer(eqx.Module):
    """Decoder self-attention, then encoder-decoder attention, then three ReLU layers. An attention that is
    not needed is None: the paper gives it parameters 0, which makes it the identity."""

    purpose: str
    feed_forward: FeedForward
    self_attention: Attention | None = None
    encoder_attention: Attention | None = None

    @property
    def attended(self) -> NDArray[np.intp]:
        """The coordinates that its attentions can add to."""
        attentions = [a for a in (self.self_attention, self.encoder_attention) if a is not None]
        return np.concatenate([np.zeros(0, np.intp), *(a.targets for a in attentions)])

    def __str__(self) -> str:
        modules = ["three ReLU layers"]
        if self.encoder_attention is not None:
            modules.insert(0, "encoder-decoder attention")
        if self.self_attention is not None:
            modules.insert(0, "self-attention")
        return f"{self.purpose}: {', '.join(modules)}"


def parameter_norm(layer: TransformerLayer) -> float:
    """The sum of the absolute values of all parameters of a layer: its share of the norm in Theorem 4.1."""
    feed = layer.feed_forward
    width = len(feed.b_1)
    correction = 2 * width + width * (feed.low + feed.high) + 2 * width * feed.gain
    total = float(np.abs(feed.W_1).sum() + np.abs(feed.b_1).sum()) + correction
    for attention in (layer.self_attention, layer.encoder_attention):
        if attention is not None:
            total += sum(float(np.abs(matrix).sum()) for matrix in vars(attention).values())
    return total
