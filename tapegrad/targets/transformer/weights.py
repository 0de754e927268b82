"""Layers to arrays and back, for saving."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.targets.transformer.layers import Attention, FeedForward, TransformerLayer

ATTENTION = ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "K_0", "V_0")
KINDS = {"dec": "self_attention", "enc": "encoder_attention"}
"""Names as in the paper's `dec-attn` and `enc-attn`."""


def layers_to_arrays(layers: tuple[TransformerLayer, ...]) -> dict[str, NDArray[Any]]:
    """`layer.<number>.ff.W_1`, `layer.<number>.dec.W_Q`, ...: a missing attention is the identity."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, layer in enumerate(layers):
        arrays[f"layer.{number}.ff.W_1"] = layer.feed_forward.W_1
        arrays[f"layer.{number}.ff.b_1"] = layer.feed_forward.b_1
        for short, field in KINDS.items():
            attention = getattr(layer, field)
            if attention is not None:
                for name in ATTENTION:
                    arrays[f"layer.{number}.{short}.{name}"] = getattr(attention, name)
    return arrays


def layers_from_arrays(
    config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> tuple[TransformerLayer, ...]:
    """The layers again."""
    layers = []
    for number, purpose in enumerate(config["purposes"]):
        feed = FeedForward(
            np.asarray(arrays[f"layer.{number}.ff.W_1"]),
            np.asarray(arrays[f"layer.{number}.ff.b_1"]),
            float(config["low"]),
            float(config["high"]),
        )
        attentions = {
            field: Attention(*(np.asarray(arrays[f"layer.{number}.{short}.{name}"]) for name in ATTENTION))
            for short, field in KINDS.items()
            if f"layer.{number}.{short}.W_Q" in arrays
        }
        layers.append(TransformerLayer(purpose, feed, **attentions))
    return tuple(layers)
