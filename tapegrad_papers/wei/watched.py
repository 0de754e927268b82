"""A decoder with any weights, in any precision, that tells what every attention looks at.

Nets are run by the backends of their networks. The paper's statements are about weights that were rounded,
moved or written out in another way, and about single layers: these are blocks, which are run here.
"""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from tapegrad.networks.backends.numpy import quietly
from tapegrad.networks.heads import Attention, Decoder
from tapegrad.networks.numpy import affine, chain

Vector = Float[np.ndarray, " width"]


class Look(NamedTuple):
    """One attention at one step. Scores, weights and values have the null key's first; then come the steps up
    to this one, or the tokens."""

    block: int
    kind: Literal["self", "encoder"]
    scores: Float[np.ndarray, " places"]
    weights: Float[np.ndarray, " places"]
    values: Float[np.ndarray, "places width"]


class Watched(NamedTuple):
    """One decoder step: what it started from, the vector after each block, and where its attentions
    looked."""

    start: Vector
    hidden: list[Vector]
    looks: list[Look]


class _Rows:
    """Rows of one array that grows: a step adds one, and looks at all of them."""

    def __init__(self, first: Vector) -> None:
        self._all, self._count = first[None], 1

    def append(self, row: Vector) -> None:
        if self._count == len(self._all):  # looks at earlier steps keep the old array
            self._all = np.concatenate([self._all, np.zeros_like(self._all)])
        self._all[self._count] = row
        self._count += 1

    @property
    def array(self) -> np.ndarray:
        return self._all[: self._count]


class WatchedDecoder:
    """Takes one decoder step after the other; `output` is the last one's. It computes in the precision of the
    tokens."""

    def __init__(self, decoder: Decoder, tokens: Float[np.ndarray, "cells width"]) -> None:
        self.decoder, self.tokens = decoder, tokens
        self.output: Vector = np.asarray(decoder.start).astype(tokens.dtype)
        self._past = [
            None if block.self_attention is None else _nulls(block.self_attention, tokens.dtype)
            for block in decoder.blocks
        ]
        self._steps = 0

    def step(self) -> Watched:
        """The next decoder step."""
        h, times = self.output.copy(), list(self.decoder.time)
        h[times] += self._steps >> np.arange(len(times)) & 1
        seen = Watched(h, [], [])
        for number, block in enumerate(self.decoder.blocks):
            if (attention := block.self_attention) is not None and (past := self._past[number]) is not None:
                keys, values = past
                keys.append(affine(attention.key, h))
                values.append(affine(attention.value, h))
                scores, weights, seen_values, h = self._attend(attention, h, keys, values)
                seen.looks.append(Look(number, "self", scores, weights, seen_values))
            if (attention := block.encoder_attention) is not None:
                keys, values = _nulls(attention, self.tokens.dtype)
                for key, value in zip(
                    *(affine(side, self.tokens.T).T for side in (attention.key, attention.value)), strict=True
                ):
                    keys.append(key)
                    values.append(value)
                scores, weights, seen_values, h = self._attend(attention, h, keys, values)
                seen.looks.append(Look(number, "encoder", scores, weights, seen_values))
            fed = chain(block.feed_forward, h).astype(self.tokens.dtype)
            if block.adds_to is None:
                h = fed
            else:
                h = h.copy()
                np.add.at(h, np.asarray(block.adds_to), fed)
            seen.hidden.append(h)
        self.output = h
        self._steps += 1
        return seen

    @quietly
    def _attend(
        self, attention: Attention, h: Vector, keys: _Rows, values: _Rows
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Vector]:
        """Scores, weights and values, and the vector with what was attended to."""
        scores = keys.array @ affine(attention.query, h)
        if self.decoder.temperature is None:
            shares = (scores == scores.max()).astype(h.dtype)
        else:
            shares = np.exp(self.decoder.temperature * (scores - scores.max()))
        weights = (shares / shares.sum()).astype(h.dtype)
        return scores, weights, values.array, h + weights @ values.array


def _nulls(attention: Attention, kind: np.dtype) -> tuple[_Rows, _Rows]:
    """Keys and values in the precision of what will be added, of the null key at first."""
    keys, values = np.asarray(attention.null_key), np.asarray(attention.null_value)
    return _Rows(keys.astype(np.result_type(keys, kind))), _Rows(values.astype(np.result_type(values, kind)))
