"""Causal RASP programs as stock GPT-2s, where that is right for every input.

A layer norm of GPT-2 subtracts the mean of the residual stream. Every coordinate x stands there as x and -x,
epsilon is 2^60 and the gain 2^30, so that what is left of a norm is x less that mean (see
`tapegrad.interop.stock`). The mean is 0, but libraries find it only up to `MEAN`: PyTorch updates a running
mean, which is rounded even where all numbers are 0 or 1. So whoever reads a coordinate sees it off by d =
`MEAN` and a rounding, while the stream itself stays as it is. From layer to layer:

- *A head* whose query selects one position: scores are off by E, the sum over rows of 256 times the error of
  the key and once that of the query. As long as 128 - 2 E > 104, all other positions weigh exp(-104), which
  is 0 in single precision, and the one weighs exactly 1. What arrives is off as far as what was read.
- *A bit that was copied* is made a bit again by two units that rise from a to b. If it is off by less than a
  and 1 - b, what comes out is 0, or b - a times the slope times `word`: off by d and roundings.
- *Other units* are off by at most the sum of their weights times the errors of what they read, and sums of
  units likewise. Errors of functions of functions grow, and the length with them.
- *Logits* are 0 and 1; the greatest is the right one if all are off by less than 1/2.

Where this bound does not hold, the program is refused, and the greatest length for which it does is named.
Counts and means are refused at every length. The steps that tell them apart are as wide as their values are
apart, but for the roundings of a net without norms; there is no room for an error of d.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.codes import MIXED, WORD
from tapegrad.attention.language import MEAN
from tapegrad.attention.steps import BETA, UNDERFLOW
from tapegrad.errors import Refused
from tapegrad.interop.stock import Gpt2, Weights
from tapegrad.networks.texts import Head
from tapegrad.rasp.nodes import Aggregate
from tapegrad.targets.decoder.sequences import SequenceNet

ROUNDING = 2.0**-23
"""Of single precision, relative, twice."""
READ = MEAN + ROUNDING
"""How far what is read may be off from what stands in the stream, for numbers up to 1."""
RIGHT = 0.5
"""Below this, the greatest logit is the right one."""
LOST = 2.0**30
"""The error of what may be anything: whatever depends on it is far from right."""
ADVICE = "Leave out --family: MobileBERT has no such norms. TransformerLens takes the net without norms too."


class SequenceGpt2(Gpt2):
    """A GPT-2 that labels every token."""

    architecture = "GPT2ForTokenClassification"

    def __init__(self, net: SequenceNet) -> None:
        require_bits(net)
        super().__init__(net.parts, net.program.length + 1)

    def sizes(self, words: int) -> dict[str, Any]:
        """The configuration, but for what all families have."""
        own = self.config()
        for name in ("eos_token_id", "bos_token_id", "pad_token_id", "vocab_size"):
            own.pop(name)
        return own | {"vocab_size": words, "classifier_dropout": 0.0}

    def tensors(self, words: int) -> Weights:
        """Every tensor by its name; there is a row for padding, which nothing reads."""
        found = self.weights() | self.positions()
        found["classifier.weight"] = found.pop("lm_head.weight")
        found["classifier.bias"] = np.zeros(len(found["classifier.weight"]), np.float32)
        embedding = found["transformer.wte.weight"]
        found["transformer.wte.weight"] = np.pad(embedding, ((0, words - len(embedding)), (0, 0)))
        return found


def require_bits(net: SequenceNet) -> None:
    """Refuses what the norms would spoil."""
    if not net.program.causal:
        raise Refused("a GPT-2 is causal, and this program is not", advice=ADVICE)
    for node in net.heads:
        own = net.program.nodes[node]
        if not isinstance(own, Aggregate) or own.mean:
            raise Refused(
                f"{net.program.title(node)!r} is a count or a mean, and steps that tell these apart leave "
                "no room for the rounded mean that GPT-2's layer norms subtract, at any length",
                advice=ADVICE,
            )
    if any(MIXED in np.asarray(layer.to).tolist() for layer in net.parts.layers):
        raise Refused(
            "a head may select several positions; what it brings is no bit then, and there is no bound for "
            "GPT-2's layer norms on it",
            advice=ADVICE,
        )
    if deviation(net) >= RIGHT:
        raise Refused(
            "GPT-2's layer norms subtract a mean that is rounded, and the errors of that may reach the "
            "output",
            advice=f"{_shorter(net)} {ADVICE}",
        )


def deviation(net: SequenceNet) -> float:
    """How far logits may be off from 0 and 1; very far where a head may look elsewhere."""
    error = np.zeros(net.parts.width)
    raw: set[int] = set()
    for layer in net.parts.layers:
        read, after = error + READ, error.copy()
        for head in layer.heads:
            after[np.asarray(head.to)] = _moved(head, read)
            raw |= set(np.asarray(head.to).tolist())
        read = after + READ
        units, sums = (np.asarray(own.dense().weight) for own in (layer.units, layer.sums))
        one = np.abs(units) @ read + ROUNDING * np.abs(units).sum(axis=1) * units.shape[1]
        for row, place in enumerate(np.asarray(layer.to).tolist()):
            used = np.flatnonzero(sums[row])
            copied = raw & set(np.flatnonzero(units[used].any(axis=0)).tolist())
            if copied:
                after[place] = _made_a_bit(units[used], copied.pop(), read)
            else:
                after[place] = np.abs(sums[row]) @ one + ROUNDING * np.abs(sums[row]).sum() * len(used)
        error = after
    last = np.abs(np.asarray(net.parts.unembedding.dense().weight))
    found = last @ (error + READ) + ROUNDING * last.sum(axis=1) * last.shape[1]
    return float(found.max(initial=0.0))


def _moved(head: Head, read: NDArray[np.float64]) -> NDArray[np.float64]:
    """The errors of what a head brings. Of the rows that are compared the last is that of the first
    position."""
    query, key, value = (np.abs(np.asarray(own.dense().weight)) for own in (head.query, head.key, head.value))
    asks, answers = query @ read, key @ read
    height = float(query[-1].max())
    sizes = np.full(len(asks), BETA)
    sizes[-1] = height
    off = sizes @ answers + asks.sum() + asks @ answers + ROUNDING * sizes.sum() * query.shape[1]
    if BETA / 2 - 2 * off <= UNDERFLOW:
        return np.full(len(value), LOST)
    return value @ read + ROUNDING * value.sum(axis=1) * value.shape[1]


def _made_a_bit(units: NDArray[np.floating], place: int, read: NDArray[np.float64]) -> float:
    """The error of two units that make a copied bit a bit again."""
    edges = -units[:, WORD] / units[:, place]
    others = np.abs(np.delete(units, place, axis=1)) @ np.delete(read, place) / units[:, place]
    room = min(float((edges - others).min()), 1 - float((edges + others).max()))
    return READ + ROUNDING * float(np.abs(units).sum()) if read[place] < room else LOST


def _shorter(net: SequenceNet) -> str:
    """The greatest length for which the bound holds, found by halving."""
    low, high = 0, net.program.length
    while high - low > 1:
        middle = (low + high) // 2
        right = deviation(SequenceNet.build(replace(net.program, length=middle))) < RIGHT
        low, high = (middle, high) if right else (low, middle)
    return f"A length of {low:,} will do." if low else "There is no length that will do."
