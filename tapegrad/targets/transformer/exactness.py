"""Why the transformer is exact in single precision, from its own matrices, and how sharp softmax must be."""

import math
from typing import Any

import numpy as np

from tapegrad.errors import Refused
from tapegrad.targets.transformer.layers import Attention, TransformerLayer

UNIT_ROUNDOFF = 2.0**-24
"""Of IEEE single precision."""


def temperature_for(steps: int, radius: float) -> float:
    """How much softmax must magnify scores to stay within half the correction's radius of hard-max.

    The best scores beat all others by 1, and at most N = T + 2 keys are compared, so the weight that goes
    astray is at most N exp(-beta), and values lie in [0, 1]: beta = ln(2 N / radius). The other half of the
    radius is for rounding, which is at most 2 N u.
    """
    keys = steps + 2
    if 2 * keys * UNIT_ROUNDOFF > radius / 2:
        raise Refused(
            f"softmax over {keys:,} keys is not exact in single precision",
            advice="Use hard-max attention, or fewer steps.",
        )
    return math.log(2 * keys / radius)


def require_absorbed(layers: tuple[TransformerLayer, ...], steps: int, temperature: float) -> None:
    """Refuses softmax whose outputs might differ from those of hard-max. At the temperature derived above,
    what an attention adds to a coordinate is off by at most the radius. Rows that read such a coordinate copy
    it, so that the correction returns the bit that hard-max gives; no query reads it before that."""
    absorbed = temperature >= temperature_for(steps, layers[0].feed_forward.low)
    for layer in layers:
        soft, encoder = layer.attended, layer.encoder_attention
        W_1, b_1 = layer.feed_forward.W_1, layer.feed_forward.b_1
        sizes = np.abs(W_1).sum(1) + np.abs(b_1)
        absorbed &= bool((sizes[W_1[:, soft].any(1)] <= 1).all())
        absorbed &= encoder is None or not encoder.W_Q[:, soft].any()
    if not absorbed:
        raise Refused(
            "the corrections do not absorb how far softmax is from hard-max here",
            advice="The net was changed; run the reference engine.",
        )


def stray_weight(steps: int, temperature: float, gap: float = 1.0) -> float:
    """At most this much of a softmax attention's weight is not on the best scores."""
    return (steps + 2) * math.exp(-temperature * gap)


def claims(
    layers: tuple[TransformerLayer, ...], steps: int, attention: str, temperature: float
) -> dict[str, Any]:
    """For hidden vectors of bits: every pre-activation and score is an integer far below 2^24, hence exact;
    every attention has a gap of 1 between a full match, the null key and the rest."""
    feeds = [layer.feed_forward for layer in layers]
    attentions = [
        a for layer in layers for a in (layer.self_attention, layer.encoder_attention) if a is not None
    ]
    feed = feeds[0]
    result: dict[str, Any] = {
        "dtype": "float32",
        "steps": steps,
        "layers": len(layers),
        "largest_preactivation": max(float((np.abs(f.W_1).sum(1) + np.abs(f.b_1)).max()) for f in feeds),
        "largest_score": max(largest_score(a) for a in attentions),
        "score_gap": 1.0,
        "correction": {"low": feed.low, "high": feed.high, "radius": feed.low},
        "exact_correction": feed.low == 0.25 and feed.high == 0.75,
        "attention": attention,
    }
    if attention == "softmax":
        result["temperature"] = temperature
        result["softmax_error"] = stray_weight(steps, temperature)
        result["rounding_error"] = 2 * (steps + 2) * UNIT_ROUNDOFF
    return result


def largest_score(attention: Attention) -> float:
    """No score can be larger, for hidden vectors of bits."""
    queries = np.abs(attention.W_Q).sum(1) + np.abs(attention.b_Q)
    keys = np.maximum(np.abs(attention.W_K).sum(1) + np.abs(attention.b_K), np.abs(attention.K_0))
    return float(queries @ keys)
