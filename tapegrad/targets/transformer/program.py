"""What the fast engine runs: the same weights, with the zeros and the identities left out.

All weights are integers and attention adds bits to zeros, so that every sum over bits is an integer, which
the correction turns into a bit. Hence a row of `W_1` that copies its own coordinate leaves it alone, and so
does a row that clears a coordinate which is 0 already. What the attention asks is read off in `questions`.
"""

from collections.abc import Sequence, Sized
from typing import NamedTuple

import numpy as np

from tapegrad.errors import Refused
from tapegrad.targets.transformer.layers import Attention, FeedForward, TransformerLayer
from tapegrad.targets.transformer.questions import (
    INDEX,
    NONE,
    Questions,
    compared_bits,
    coordinates,
    read_questions,
    require,
)


class Program(NamedTuple):
    """All layers, flattened. `x[starts[l]:starts[l+1]]` belongs to layer `l`."""

    row_starts: np.ndarray
    row_to: np.ndarray
    row_bias: np.ndarray
    term_starts: np.ndarray
    term_from: np.ndarray
    term_weight: np.ndarray
    cleared_starts: np.ndarray
    cleared: np.ndarray
    """The coordinates that a layer sets to 0 whatever they were."""
    questions: Questions
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
    layers: tuple[TransformerLayer, ...], h_0: np.ndarray, time: list[int], theta_halt: np.ndarray, steps: int
) -> Program:
    """The program of these layers, or a refusal if they are not of the form above."""
    feed = layers[0].feed_forward
    if feed.gain != 2 or feed.low != 0.25:
        raise Refused(
            "the fast engine needs the correction whose bits come out exactly",
            advice="Compile with correction=quarters, or run the reference engine.",
        )
    changing = _rows_that_matter(layers, h_0, time)
    rows = [[row for row in layer if len(row.sources) or row.bias > 0] for layer in changing]
    cleared = [[row.to for row in layer if not len(row.sources) and row.bias <= 0] for layer in changing]
    changed = [
        {row.to for row in own}.union(layer.attended) for own, layer in zip(changing, layers, strict=True)
    ]
    questions = read_questions(layers, changed, time, steps)
    copy = layers[questions.last].self_attention
    assert copy is not None
    copy_to, copy_from = np.nonzero(copy.W_V)
    require(bool((copy.W_V[copy_to, copy_from] == 1).all()) and len(set(copy_to)) == len(copy_to))
    encoders = [n for n, layer in enumerate(layers) if layer.encoder_attention is not None]
    require(len(encoders) == 1)
    encoder = layers[encoders[0]].encoder_attention
    assert encoder is not None
    read = compared_bits(encoder)
    require(NONE not in read.values() and not encoder.W_K[-1].any() and encoder.b_K[-1] == 0)
    flat = [row for layer in rows for row in layer]
    halting = set(np.flatnonzero(theta_halt).tolist())
    return Program(
        row_starts=_starts(rows),
        row_to=coordinates(row.to for row in flat),
        row_bias=np.array([row.bias for row in flat], np.float32),
        term_starts=_starts([row.sources for row in flat]),
        term_from=np.concatenate([row.sources for row in flat]).astype(INDEX),
        term_weight=np.concatenate([row.weights for row in flat]),
        cleared_starts=_starts(cleared),
        cleared=coordinates(to for layer in cleared for to in layer),
        questions=questions,
        copy_to=copy_to.astype(INDEX),
        copy_from=copy_from.astype(INDEX),
        encoder_layer=encoders[0],
        encoder_query=coordinates(read.values()),
        encoder_to=encoder.targets.astype(INDEX),
        time=coordinates(time),
        halting_rows=coordinates(n for n, row in enumerate(rows[0]) if row.to in halting),
        low=np.float32(feed.low),
        high=np.float32(feed.high),
        gain=np.float32(feed.gain),
    )


def input_index(attention: Attention, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The codes of all tokens of the input in rising order, with their values: the key of a token, lowest bit
    first, is its code."""
    keys = (tokens @ attention.W_K[:-1].T + attention.b_K[:-1] > 0).astype(np.int64)
    codes = keys @ (1 << np.arange(keys.shape[1], dtype=np.int64))
    values = (tokens @ attention.W_V.T + attention.b_V)[:, attention.targets].astype(np.float32)
    require(bool(np.isin(tokens, (0, 1)).all() and np.isin(values, (0, 1)).all()))
    require(len(np.unique(codes)) == len(codes))
    order = np.argsort(codes)
    return codes[order], values[order]


class _Row(NamedTuple):
    to: int
    bias: float
    sources: np.ndarray
    weights: np.ndarray


def _rows_that_matter(
    layers: tuple[TransformerLayer, ...], h_0: np.ndarray, time: list[int]
) -> list[list[_Row]]:
    """For each layer the rows that can change a coordinate. Rows that copy do not, nor do rows that set to 0
    what is 0 already: which coordinates can be on is followed through the layers until nothing is added.
    The number of the step is gone in the end, so that the next one is not added to it."""
    feeds, attended = [layer.feed_forward for layer in layers], [layer.attended for layer in layers]
    require(all(np.array_equal(x, np.rint(x)) for feed in feeds for x in (feed.W_1, feed.b_1)))
    require(bool(np.isin(h_0, (0, 1)).all()) and all(len(set(to)) == len(to) for to in attended))
    on_at_start = h_0 != 0
    while True:
        on, rows = on_at_start.copy(), []
        on[time] = True
        for feed, to in zip(feeds, attended, strict=True):
            require(not on[to].any())
            on[to] = True
            after = feed.W_1[:, on].any(1) | (feed.b_1 > 0)
            copied = (np.diag(feed.W_1) == 1) & (np.abs(feed.W_1).sum(1) == 1) & (feed.b_1 == 0)
            rows.append([_row(feed, int(r)) for r in np.flatnonzero((on | after) & ~copied)])
            on = after
        if not (on & ~on_at_start).any():
            require(not on_at_start[time].any())
            return rows
        on_at_start |= on


def _row(feed: FeedForward, row: int) -> _Row:
    sources = np.flatnonzero(feed.W_1[row])
    return _Row(row, float(feed.b_1[row]), sources, feed.W_1[row, sources])


def _starts(parts: Sequence[Sized]) -> np.ndarray:
    return np.cumsum([0, *map(len, parts)]).astype(INDEX)
