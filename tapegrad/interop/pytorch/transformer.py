"""The target `transformer` in PyTorch: one call decodes, step by step, with the paper's matrices."""

import numpy as np
import torch
from torch import Tensor, nn

from tapegrad.targets.transformer.layers import Attention, TransformerLayer
from tapegrad.targets.transformer.net import TransformerNet
from tapegrad.targets.transformer.weights import ATTENTION


class AttentionModule(nn.Module):
    """`h' + mean of v_j over the best scores`, or the softmax of the scores; with a null key and value."""

    W_Q: Tensor
    b_Q: Tensor
    W_K: Tensor
    b_K: Tensor
    W_V: Tensor
    b_V: Tensor
    K_0: Tensor
    V_0: Tensor

    def __init__(self, attention: Attention, temperature: float | None) -> None:
        super().__init__()
        for name in ATTENTION:
            self.register_parameter(name, nn.Parameter(_tensor(getattr(attention, name))))
        self.temperature = temperature

    def keys_and_values(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Of every row of h."""
        return h @ self.W_K.T + self.b_K, h @ self.W_V.T + self.b_V

    def forward(self, h: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        query = self.W_Q @ h + self.b_Q
        scores = torch.cat([(self.K_0 @ query)[None], keys @ query])
        if self.temperature is None:
            best = (scores == scores.max()).to(h.dtype)
            weights = best / best.sum()
        else:
            weights = torch.softmax(self.temperature * scores, 0)
        return h + weights @ torch.cat([self.V_0[None], values])


class LayerModule(nn.Module):
    """Self-attention, encoder-decoder attention, then a ReLU layer and the correction (Proposition 3.4)."""

    def __init__(self, layer: TransformerLayer, temperature: float | None) -> None:
        super().__init__()
        self.purpose = layer.purpose
        self.W_1 = nn.Parameter(_tensor(layer.feed_forward.W_1))
        self.b_1 = nn.Parameter(_tensor(layer.feed_forward.b_1))
        kinks = [layer.feed_forward.low, layer.feed_forward.high, layer.feed_forward.gain]
        self.low, self.high, self.gain = (float(np.float32(number)) for number in kinks)
        own, encoder = layer.self_attention, layer.encoder_attention
        self.self_attention = None if own is None else AttentionModule(own, temperature)
        self.encoder_attention = None if encoder is None else AttentionModule(encoder, temperature)

    def forward(self, h: Tensor, past: list[tuple[Tensor, Tensor]], tokens: Tensor) -> Tensor:
        """One decoder step; `past` holds key and value of earlier steps, and gets those of this one."""
        if self.self_attention is not None:
            past.append(self.self_attention.keys_and_values(h))
            keys, values = (torch.stack(column) for column in zip(*past, strict=True))
            h = self.self_attention(h, keys, values)
        if self.encoder_attention is not None:
            h = self.encoder_attention(h, *self.encoder_attention.keys_and_values(tokens))
        z = torch.relu(self.W_1 @ h + self.b_1)
        return torch.relu(self.gain * torch.relu(z - self.low) - self.gain * torch.relu(z - self.high))


class TransformerModule(nn.Module):
    """`module(tokens, steps)` gives the decoder's outputs o_0, ..., as rows, up to the halt: row i encodes
    the machine after its step i. `tokens` are the encoder's outputs: `torch.tensor(start.tokens)` where
    `start = net.start(...)`."""

    h_0: Tensor
    theta_cls: Tensor
    theta_halt: Tensor

    def __init__(self, net: TransformerNet) -> None:
        super().__init__()
        temperature = net.temperature if net.attention == "softmax" else None
        self.layers = nn.ModuleList(LayerModule(layer, temperature) for layer in net.layers)
        for name in ("h_0", "theta_cls", "theta_halt"):
            self.register_parameter(name, nn.Parameter(_tensor(getattr(net, name))))
        self.time = net.layout.group("pos1")
        self.coordinates = net.layout.names
        self.steps = net.layout.steps

    def forward(self, tokens: Tensor, steps: int | None = None) -> Tensor:
        most = self.steps if steps is None else min(steps, self.steps)
        past: list[list[tuple[Tensor, Tensor]]] = [[] for _ in self.layers]
        h, outputs = self.h_0, []
        for step in range(most + 1):
            time = torch.zeros_like(h)
            time[self.time] = (step >> torch.arange(len(self.time)) & 1).to(h)
            h = h + time
            for layer, own in zip(self.layers, past, strict=True):
                h = layer(h, own, tokens)
            outputs.append(h)
            if self.halted(h):
                break
        return torch.stack(outputs)

    def halted(self, output: Tensor) -> bool:
        """Whether a pair of state and symbol without an entry in the table is on."""
        first = self.layers[0]
        assert isinstance(first, LayerModule)
        return bool(self.theta_halt @ torch.relu(first.W_1 @ output + first.b_1) > 0.5)


def _tensor(array: np.ndarray) -> Tensor:
    return torch.tensor(np.asarray(array))
