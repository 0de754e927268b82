"""What the fast engine runs, read off the compiled layers: the zeros and the identities left out.

All weights are integers and attention adds bits to zeros, so that every sum over bits is an integer, which
the correction turns into a bit. Hence a row of `W_1` that copies its own coordinate leaves it alone, and so
does a row that clears a coordinate which is 0 already.

What the self-attention layers ask is which step stood last at a place. Query and key compare bits as +-1, and
the null key scores one less than a full match and at least one more than anything else. So a layer asks
whether any step has exactly this code. The codes of all layers are one code, cut off at different bits: the
place, then the number of the step from its highest bit down. A layer knows the bits that the layers before it
have found, and may ask for a 1 in the next one.
"""

from collections.abc import Iterable, Sequence, Sized
from typing import NamedTuple

import numpy as np

from tapegrad.errors import Refused
from tapegrad.networks.form import Affine, Correction
from tapegrad.networks.heads import Attention, Block, Decoder
from tapegrad.networks.numpy import affine

INDEX = np.uint64
"""Of all that is used as an index: compiled code need not provide for negative ones then, twice as fast."""

NONE = -1
EXACT = Correction(0.25, 0.75)
LONGEST_PLACE = 28
"""Bits. The index has an entry for every place, though memory is used only for those visited."""


class Questions(NamedTuple):
    """The last four have an entry for each layer; -1 is none."""

    first: int
    """The first layer that asks."""
    last: int
    """The last, which copies the values of the step that fits; the others only say that there is one."""
    own_place: np.ndarray
    """The coordinates of the key that name the place of a step, lowest bit first."""
    asked_place: np.ndarray
    """Those of the query that name the place asked about."""
    barred: np.uint64
    """The coordinate that keeps a step from being found."""
    learns: np.ndarray
    """The coordinate of the bit that has become known since the last question."""
    asks: np.ndarray
    """1 to ask for a 1 in the next bit, 0 to ask only for the bits that are known."""
    open_bits: np.ndarray
    """How many of the lowest bits of the number the question leaves open."""
    answer: np.ndarray
    """The coordinate that becomes 1 if a step fits."""


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
    halt_bias: np.ndarray
    halt_starts: np.ndarray
    halt_from: np.ndarray
    halt_weight: np.ndarray
    """The units of which one is on where the decoder has ended, as rows."""
    low: np.float32
    high: np.float32
    gain: np.float32


def flatten(decoder: Decoder, steps: int) -> Program:
    """The program of a decoder, or a refusal if its layers are not of the form above."""
    layers, time = decoder.blocks, list(decoder.time)
    require(all(len(layer.feed_forward) == 1 for layer in layers))
    corrections = {layer.feed_forward[0].activation for layer in layers}
    if corrections != {EXACT}:
        raise Refused(
            "the fast engine needs the correction whose bits come out exactly",
            advice="Compile with correction=quarters, or run the reference engine.",
        )
    changing, on_at_start = _rows_that_matter(layers, np.asarray(decoder.start), time)
    rows = [[row for row in layer if len(row.sources) or row.bias > 0] for layer in changing]
    cleared = [[row.to for row in layer if not len(row.sources) and row.bias <= 0] for layer in changing]
    changed = [
        {row.to for row in own}.union(layer.attended()) for own, layer in zip(changing, layers, strict=True)
    ]
    questions = read_questions(layers, changed, time, steps)
    copy = layers[questions.last].self_attention
    assert copy is not None
    copied = copy.value.entries()
    require(bool((copied.values == 1).all()) and len(set(copied.rows.tolist())) == len(copied.rows))
    encoders = [n for n, layer in enumerate(layers) if layer.encoder_attention is not None]
    require(len(encoders) == 1)
    encoder = layers[encoders[0]].encoder_attention
    assert encoder is not None
    read, last_key = compared_bits(encoder), len(encoder.key) - 1
    require(NONE not in read.values() and not [*encoder.key.entries().row(last_key)])
    require(bool(encoder.key.bias[last_key] == 0))
    flat = [row for layer in rows for row in layer]
    halting = _halting_rows(decoder, on_at_start)
    return Program(
        row_starts=_starts(rows),
        row_to=coordinates(row.to for row in flat),
        row_bias=np.array([row.bias for row in flat], np.float32),
        **_terms("term", flat),
        cleared_starts=_starts(cleared),
        cleared=coordinates(to for layer in cleared for to in layer),
        questions=questions,
        copy_to=copied.rows.astype(INDEX),
        copy_from=copied.columns.astype(INDEX),
        encoder_layer=encoders[0],
        encoder_query=coordinates(read.values()),
        encoder_to=encoder.targets().astype(INDEX),
        time=coordinates(time),
        halt_bias=np.array([row.bias for row in halting], np.float32),
        **_terms("halt", halting),
        low=np.float32(EXACT.low),
        high=np.float32(EXACT.high),
        gain=np.float32(EXACT.gain),
    )


def input_index(attention: Attention, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The codes of all tokens of the input in rising order, with their values: the key of a token, lowest bit
    first, is its code."""
    keys = (affine(attention.key, tokens.T)[:-1].T > 0).astype(np.int64)
    codes = keys @ (1 << np.arange(keys.shape[1], dtype=np.int64))
    values = affine(attention.value, tokens.T)[attention.targets()].T.astype(np.float32)
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
    layers: tuple[Block, ...], h_0: np.ndarray, time: list[int]
) -> tuple[list[list[_Row]], np.ndarray]:
    """For each layer the rows that can change a coordinate, and the coordinates that can be on at the start
    of a step. Rows that copy change none, nor do rows that set to 0 what is 0 already: which coordinates can
    be on is followed through the layers until nothing is added. The number of the step is gone in the end, so
    that the next one is not added to it."""
    feeds = [layer.feed_forward[0].map.entries() for layer in layers]
    attended = [layer.attended() for layer in layers]
    require(all(np.array_equal(x, np.rint(x)) for feed in feeds for x in (feed.values, feed.bias)))
    require(bool(np.isin(h_0, (0, 1)).all()) and all(len(set(to)) == len(to) for to in attended))
    copied = [_copied(feed) for feed in feeds]
    on_at_start = h_0 != 0
    while True:
        on, matter = on_at_start.copy(), []
        on[time] = True
        for feed, to, same in zip(feeds, attended, copied, strict=True):
            require(not on[to].any())
            on[to] = True
            after = feed.bias > 0
            after[feed.rows[on[feed.columns]]] = True
            matter.append(np.flatnonzero((on | after) & ~same))
            on = after
        if not (on & ~on_at_start).any():
            require(not on_at_start[time].any())
            return [_rows(feed, own) for feed, own in zip(feeds, matter, strict=True)], on_at_start
        on_at_start |= on


def _copied(feed: Affine) -> np.ndarray:
    """For each row whether it is its own coordinate, unchanged."""
    own = np.bincount(feed.rows[(feed.rows == feed.columns) & (feed.values == 1)], minlength=len(feed))
    return (own == 1) & (feed.largest() == 1) & (feed.bias == 0)


def _halting_rows(decoder: Decoder, on: np.ndarray) -> list[_Row]:
    """The units that say that the decoder has ended, those that no coordinate in use turns on left out."""
    require([layer.activation for layer in decoder.halting] == ["relu", "linear"])
    units, read_out = (layer.map.entries() for layer in decoder.halting)
    require(bool((read_out.values == 1).all() and (read_out.bias == 0).all() and len(read_out) == 1))
    require(all(np.array_equal(x, np.rint(x)) for x in (units.values, units.bias)))
    rows = _rows(units, np.sort(read_out.columns))
    return [row for row in rows if row.bias > 0 or on[row.sources].any()]


def _rows(feed: Affine, numbers: np.ndarray) -> list[_Row]:
    """These rows of a map, the terms of each in the order of their columns."""
    order = np.lexsort((feed.columns, feed.rows))
    columns, values = feed.columns[order], feed.values[order]
    starts, ends = (np.searchsorted(feed.rows, numbers, side).tolist() for side in ("left", "right"))
    return [
        _Row(number, bias, columns[start:end], values[start:end])
        for number, bias, start, end in zip(
            numbers.tolist(), feed.bias[numbers].tolist(), starts, ends, strict=True
        )
    ]


def _terms(name: str, rows: list[_Row]) -> dict[str, np.ndarray]:
    empty = np.zeros(0)
    return {
        f"{name}_starts": _starts([row.sources for row in rows]),
        f"{name}_from": np.concatenate([empty, *(row.sources for row in rows)]).astype(INDEX),
        f"{name}_weight": np.concatenate([empty, *(row.weights for row in rows)]).astype(np.float32),
    }


def _starts(parts: Sequence[Sized]) -> np.ndarray:
    return np.cumsum([0, *map(len, parts)]).astype(INDEX)


def read_questions(
    layers: Sequence[Block], changed: list[set[int]], time: list[int], steps: int
) -> Questions:
    """The questions of these layers, or a refusal if they are not of the form above. `changed` holds the
    coordinates that each layer can change: none that a later question relies on may be among them. `time`
    holds the number of the step, lowest bit first, which is at most `steps`."""
    codes = {n: _code(layer.self_attention) for n, layer in enumerate(layers) if layer.self_attention}
    require(len(codes) > 0)
    first, last = min(codes), max(codes)
    place, barred = codes[first].asked, codes[first].barred
    if len(place) > LONGEST_PLACE:
        raise Refused(
            f"the fast engine has no room for places of {len(place)} bits",
            advice=f"Compile for fewer than 2^{LONGEST_PLACE - 1} steps, or run the reference engine.",
        )
    number = time[: len(codes[last].asked) - len(place)][::-1]
    require(steps < 1 << len(number))
    learns, asks, open_bits, answer = np.full((4, len(layers)), NONE)
    known: list[int] = []
    settled = {*time}
    for n in range(last + 1):
        if code := codes.get(n):
            compared = number[: len(code.asked) - len(place)]
            require(code.asked == place | {key: code.asked.get(key) for key in compared})
            require(code.barred == barred and (code.answer == NONE) == (n == last))
            bits = [code.asked[key] for key in compared]
            asks[n] = bits[-1:] == [NONE]
            found = bits[:-1] if asks[n] else bits
            new = found[len(known) :]
            require(known + new == found and len(new) <= 1)
            known, learns[n], answer[n] = found, (*new, NONE)[0], code.answer
            open_bits[n] = len(number) - len(bits)
            settled |= {barred, *place, *place.values(), *new}
        require(n == last or not changed[n] & settled)
    require(NONE not in settled and asks[last] == 0)
    own, asked = coordinates(place), coordinates(place.values())
    return Questions(first, last, own, asked, INDEX(barred), learns, asks, open_bits, answer)


class _Code(NamedTuple):
    asked: dict[int, int]
    """From each coordinate of the key to that of the query it must equal, or -1 for the constant 1."""
    barred: int
    answer: int


def _code(attention: Attention) -> _Code:
    key, value = attention.key.entries(), attention.value.entries()
    barred, constants = [*key.row(len(key) - 1)], np.flatnonzero(value.bias)
    require(len(barred) == 1 and barred[0][1] == -2 and key.bias[-1] == 0)
    require(value.bias[constants].tolist() == ([] if value.values.any() else [1]))
    return _Code(compared_bits(attention), barred[0][0], int((*constants, NONE)[0]))


def compared_bits(attention: Attention) -> dict[int, int]:
    """Which bit of the query each bit of the key is compared with. The null key stands alone in the last row,
    one below a full match; its value is 0."""
    last = len(attention.key) - 1
    key, query = attention.key.entries(), attention.query.entries()
    null_key, null_value = np.asarray(attention.null_key), np.asarray(attention.null_value)
    keys, queries = (_bits(side, last) for side in (key, query))
    require(NONE not in keys and len(set(keys)) == len(keys))
    require(not [*query.row(last)] and query.bias[last] == 1)
    require(null_key[last] == len(keys) - 1 and not null_key[:-1].any() and not null_value.any())
    return dict(zip(keys, queries, strict=True))


def require(holds: bool) -> None:
    """Refuses matrices that were changed, where `fast` might differ from `reference`."""
    if not holds:
        raise Refused(
            "the layers do not search for the last write as compiled",
            advice="Weights were changed; run the reference engine.",
        )


def coordinates(numbers: Iterable[int]) -> np.ndarray:
    """Coordinates of the hidden vector, to be used as indices."""
    return np.array([*numbers], INDEX)


def _bits(side: Affine, count: int) -> list[int]:
    """The coordinates c of the first rows, each `2 h[c] - 1`, or -1 for the constant 1."""
    among = side.rows < count
    rows, columns = side.rows[among], side.columns[among]
    read = np.bincount(rows, minlength=count)
    require(bool((read <= 1).all() and (side.values[among] == 2).all()))
    require(bool((side.bias[:count] == np.where(read, -1, 1)).all()))
    found = np.full(count, NONE)
    found[rows] = columns
    return found.tolist()
