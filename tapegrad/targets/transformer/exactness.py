"""Why the transformer is exact in single precision, from its own matrices, and how sharp softmax must be."""

import math
from typing import Any

import numpy as np

from tapegrad.errors import Refused
from tapegrad.networks.form import Correction, Dense
from tapegrad.networks.heads import Attention, Block

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


def require_absorbed(layers: tuple[Block, ...], steps: int, temperature: float) -> None:
    """Refuses softmax whose outputs might differ from those of hard-max. At the temperature derived above,
    what an attention adds to a coordinate is off by at most the radius. Rows that read such a coordinate copy
    it, so that the correction returns the bit that hard-max gives; no query reads it before that."""
    absorbed = temperature >= temperature_for(steps, correction_of(layers).low)
    for layer in layers:
        soft, encoder = layer.attended(), layer.encoder_attention
        first = layer.feed_forward[0].map.entries()
        read = first.rows[np.isin(first.columns, soft)]
        absorbed &= bool((first.largest()[read] <= 1).all())
        absorbed &= encoder is None or not np.isin(encoder.query.entries().columns, soft).any()
    if not absorbed:
        raise Refused(
            "the corrections do not absorb how far softmax is from hard-max here",
            advice="The net was changed; run the reference engine.",
        )


def stray_weight(steps: int, temperature: float, gap: float = 1.0) -> float:
    """At most this much of a softmax attention's weight is not on the best scores."""
    return (steps + 2) * math.exp(-temperature * gap)


def claims(layers: tuple[Block, ...], steps: int, temperature: float | None) -> dict[str, Any]:
    """For hidden vectors of bits: every pre-activation and score is an integer far below 2^24, hence exact;
    every attention has a gap of 1 between a full match, the null key and the rest."""
    attentions = [a for layer in layers for a in layer.attentions()]
    correction = correction_of(layers)
    result: dict[str, Any] = {
        "dtype": "float32",
        "steps": steps,
        "layers": len(layers),
        "largest_preactivation": max(
            float(layer.feed_forward[0].map.entries().largest().max()) for layer in layers
        ),
        "largest_score": max(largest_score(a) for a in attentions),
        "score_gap": 1.0,
        "correction": {"low": correction.low, "high": correction.high, "radius": correction.low},
        "exact_correction": correction == Correction(0.25, 0.75),
        "attention": "hardmax" if temperature is None else "softmax",
    }
    if temperature is not None:
        result["temperature"] = temperature
        result["softmax_error"] = stray_weight(steps, temperature)
        result["rounding_error"] = 2 * (steps + 2) * UNIT_ROUNDOFF
    return result


def largest_score(attention: Attention) -> float:
    """No score can be larger, for hidden vectors of bits."""
    queries = attention.query.entries().largest()
    keys = np.maximum(attention.key.entries().largest(), np.abs(attention.null_key))
    return float(queries @ keys)


def correction_of(layers: tuple[Block, ...]) -> Correction:
    """The correction, which is the same in every layer."""
    found = layers[0].feed_forward[0].activation
    assert isinstance(found, Correction)
    return found


def parameter_norm(layer: Block) -> float:
    """The sum of the absolute values of all parameters of a layer, those of the correction included: its
    share of the norm in Theorem 4.1."""
    parts: list[Dense | Attention] = [*layer.expanded().feed_forward, *layer.attentions()]
    return sum(one_norm(part) for part in parts)


def one_norm(*modules: Attention | Dense | None) -> float:
    """The sum of the absolute values of all entries; a correction that is an activation has none."""
    total = 0.0
    for module in modules:
        if isinstance(module, Dense):
            total += float(module.map.entries().largest().sum())
        elif module is not None:
            maps = (module.query, module.key, module.value)
            total += sum(float(own.entries().largest().sum()) for own in maps)
            total += float(np.abs(module.null_key).sum() + np.abs(module.null_value).sum())
    return total
