"""What the fast engine runs: the same weights, with the zeros and the identities left out.

Two facts about the compiled matrices are used, and both are checked here, on the matrices:

1. A row of `W_1` that copies its own coordinate, followed by an exact correction, leaves a bit alone; so does
   a row that clears a coordinate which is 0 already.
2. Query and key compare bits as +-1, and the null key scores one less than a full match and at least one more
   than anything else. So hard-max attention is a question to an index: which steps have exactly this code?
"""

from typing import NamedTuple

import numpy as np

from tapegrad.errors import Refused
from tapegrad.nets.transformer.layers import Attention, TransformerLayer

LONGEST_CODE = 56
"""Codes are kept in 64-bit numbers, with the number of the layer in the lowest bits."""


class Program(NamedTuple):
    """All layers, flattened. `x[starts[l]:starts[l+1]]` belongs to layer `l`."""

    row_starts: np.ndarray
    row_to: np.ndarray
    row_bias: np.ndarray
    term_starts: np.ndarray
    term_from: np.ndarray
    term_weight: np.ndarray
    code_starts: np.ndarray
    """One entry for each compared bit of a layer's self-attention, in the order of the rows of `W_K`."""
    key_from: np.ndarray
    query_from: np.ndarray
    """The coordinate of the query's bit, or -1 for the constant 1."""
    barred: np.ndarray
    """For each layer the coordinate that keeps a step from being found, or -1 without self-attention."""
    copies: np.ndarray
    """Whether the layer's values depend on the step (`W_V` is not 0)."""
    constant_starts: np.ndarray
    constant_to: np.ndarray
    constant_value: np.ndarray
    copy_to: np.ndarray
    copy_from: np.ndarray
    encoder_layer: int
    encoder_query: np.ndarray
    encoder_to: np.ndarray
    time: np.ndarray
    halting_rows: np.ndarray
    """Rows of layer 0 that `theta_halt` reads."""
    low: np.float32
    high: np.float32
    gain: np.float32


def flatten(
    layers: tuple[TransformerLayer, ...], h_0: np.ndarray, time: list[int], theta_halt: np.ndarray
) -> Program:
    """The program of these layers, or a refusal if they are not of the form above."""
    feed = layers[0].feed_forward
    if feed.gain != 2 or feed.low != 0.25:
        raise Refused(
            "the fast engine needs the correction whose bits come out exactly",
            advice="Compile with correction=quarters, or run the reference engine.",
        )
    rows = _rows_that_matter(layers, np.flatnonzero(h_0), time)
    codes = [_code(layer.self_attention) for layer in layers]
    copying = [layer for layer, code in zip(layers, codes, strict=True) if code is not None and code.copies]
    encoders = [number for number, layer in enumerate(layers) if layer.encoder_attention is not None]
    if len(copying) != 1 or len(encoders) != 1:
        raise Refused("the fast engine expects one layer that copies writes and one that reads the input")
    copy_to, copy_from = _copied(copying[0].self_attention)
    encoder = layers[encoders[0]].encoder_attention
    assert encoder is not None
    flat = [row for layer in rows for row in layer]
    halting = set(np.flatnonzero(theta_halt).tolist())
    constants = [_constants(layer.self_attention) for layer in layers]
    return Program(
        row_starts=_starts(rows),
        row_to=np.array([row.to for row in flat], np.int32),
        row_bias=np.array([row.bias for row in flat], np.float32),
        term_starts=_starts([row.sources for row in flat]),
        term_from=_joined([row.sources for row in flat], np.int32),
        term_weight=_joined([row.weights for row in flat], np.float32),
        code_starts=_starts([[] if code is None else code.keys for code in codes]),
        key_from=_joined([[] if code is None else code.keys for code in codes], np.int32),
        query_from=_joined([[] if code is None else code.queries for code in codes], np.int32),
        barred=np.array([-1 if code is None else code.barred for code in codes], np.int32),
        copies=np.array([code is not None and code.copies for code in codes]),
        constant_starts=_starts([to for to, _ in constants]),
        constant_to=_joined([to for to, _ in constants], np.int32),
        constant_value=_joined([value for _, value in constants], np.float32),
        copy_to=copy_to,
        copy_from=copy_from,
        encoder_layer=encoders[0],
        encoder_query=np.array(_encoder_code(encoder), np.int32),
        encoder_to=encoder_values(encoder),
        time=np.array(time, np.int32),
        halting_rows=np.array([n for n, row in enumerate(rows[0]) if row.to in halting], np.int32),
        low=np.float32(feed.low),
        high=np.float32(feed.high),
        gain=np.float32(feed.gain),
    )


def encoder_values(attention: Attention) -> np.ndarray:
    """The coordinates that the encoder-decoder attention writes to."""
    return np.flatnonzero(np.abs(attention.W_V).sum(1) + np.abs(attention.b_V)).astype(np.int32)


def encoder_keys(attention: Attention, tokens: np.ndarray) -> np.ndarray:
    """The code of every token of the input: its key, row by row, as bits of a number."""
    bits = (tokens @ attention.W_K[:-1].T + attention.b_K[:-1] > 0).astype(np.int64)
    return bits @ (1 << np.arange(bits.shape[1], dtype=np.int64)[::-1])


class _Row(NamedTuple):
    to: int
    bias: float
    sources: np.ndarray
    weights: np.ndarray


def _rows_that_matter(
    layers: tuple[TransformerLayer, ...], first: np.ndarray, time: list[int]
) -> list[list[_Row]]:
    """For each layer the rows that can change a coordinate. Rows that copy do not, nor do rows that set to 0
    what is 0 already: which coordinates can be on is followed through the layers until nothing is added."""
    width = len(layers[0].feed_forward.b_1)
    on_at_start = np.zeros(width, bool)
    on_at_start[first] = on_at_start[time] = True
    while True:
        on, rows = on_at_start.copy(), []
        for layer in layers:
            for attention in (layer.self_attention, layer.encoder_attention):
                if attention is not None:
                    on |= attention.W_V.any(1) | (attention.b_V != 0)
            W_1, b_1 = layer.feed_forward.W_1, layer.feed_forward.b_1
            after = (W_1[:, on] != 0).any(1) | (b_1 > 0)
            copied = (np.eye(width, dtype=W_1.dtype) == W_1).all(1) & (b_1 == 0)
            rows.append([_row(W_1, b_1, int(r)) for r in np.flatnonzero((on | after) & ~copied)])
            on = after
        if not (on & ~on_at_start).any():
            return rows
        on_at_start |= on


def _row(W_1: np.ndarray, b_1: np.ndarray, row: int) -> _Row:
    sources = np.flatnonzero(W_1[row])
    return _Row(row, float(b_1[row]), sources, W_1[row, sources])


class _Code(NamedTuple):
    keys: list[int]
    queries: list[int]
    barred: int
    copies: bool


def _code(attention: Attention | None) -> _Code | None:
    """Which bits a self-attention compares."""
    if attention is None:
        return None
    keys = [_bit(attention.W_K[row], attention.b_K[row]) for row in range(len(attention.K_0) - 1)]
    queries = [_bit(attention.W_Q[row], attention.b_Q[row]) for row in range(len(attention.K_0) - 1)]
    barred = np.flatnonzero(attention.W_K[-1])
    _require(len(barred) == 1 and attention.W_K[-1, barred[0]] == -2 and attention.b_K[-1] == 0)
    _require_null(attention, len(keys))
    _require(-1 not in keys and len(keys) <= LONGEST_CODE)
    return _Code(keys, queries, int(barred[0]), bool(attention.W_V.any()))


def _encoder_code(attention: Attention) -> list[int]:
    keys = [_bit(attention.W_K[row], attention.b_K[row]) for row in range(len(attention.K_0) - 1)]
    _require(-1 not in keys and not attention.W_K[-1].any() and attention.b_K[-1] == 0)
    _require_null(attention, len(keys))
    return [_bit(attention.W_Q[row], attention.b_Q[row]) for row in range(len(keys))]


def _require_null(attention: Attention, compared: int) -> None:
    """The null key stands alone in the last row, one below a full match; its value is 0."""
    _require(not attention.W_Q[-1].any() and attention.b_Q[-1] == 1)
    _require(attention.K_0[-1] == compared - 1 and not attention.K_0[:-1].any() and not attention.V_0.any())


def _bit(weights: np.ndarray, bias: float) -> int:
    """The coordinate c of a row `2 h[c] - 1`, or -1 for the constant 1."""
    used = np.flatnonzero(weights)
    if len(used) == 0:
        _require(bias == 1)
        return -1
    _require(len(used) == 1 and weights[used[0]] == 2 and bias == -1)
    return int(used[0])


def _copied(attention: Attention | None) -> tuple[np.ndarray, np.ndarray]:
    assert attention is not None
    to, source = np.nonzero(attention.W_V)
    _require(bool((attention.W_V[to, source] == 1).all()) and not attention.b_V.any())
    return to.astype(np.int32), source.astype(np.int32)


def _constants(attention: Attention | None) -> tuple[np.ndarray, np.ndarray]:
    if attention is None:
        return np.zeros(0, np.int32), np.zeros(0, np.float32)
    to = np.flatnonzero(attention.b_V)
    return to, attention.b_V[to]


def _require(holds: bool) -> None:
    if not holds:
        raise Refused(
            "an attention layer does not compare binary codes as compiled",
            advice="Its weights were changed; run the reference engine.",
        )


def _starts(parts: list) -> np.ndarray:
    return np.cumsum([0, *(len(part) for part in parts)]).astype(np.int64)


def _joined(parts: list, dtype: type) -> np.ndarray:
    return np.concatenate([np.asarray(part, dtype) for part in parts]) if parts else np.zeros(0, dtype)
