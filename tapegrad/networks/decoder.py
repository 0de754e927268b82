"""A decoder in compiled loops, by the entries of its maps: every unit and every score, nothing left out.

Compiled programs have thousands of layers of few units each, whose matrices would be nearly all zeros. Here a
map is its entries, row by row, and all maps of one kind lie in one array. Sums are in single precision, in
the order of the entries.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from tapegrad._jit import njit
from tapegrad.errors import Refused
from tapegrad.networks.form import Affine, Attention, Block, Correction, Decoder

NONE, STEPS, TOKENS = -1, 0, 1
"""What a block attends to."""


class Maps(NamedTuple):
    """Maps one after the other: rows of map m from `starts[m]` on, entries of row r from `terms[r]` on."""

    starts: Int[np.ndarray, " maps"]
    terms: Int[np.ndarray, " rows"]
    columns: Int[np.ndarray, " entries"]
    values: Float[np.ndarray, " entries"]
    bias: Float[np.ndarray, " rows"]


class Flat(NamedTuple):
    """A decoder. The values of an attention are those of the rows `to` of its map, which add to there."""

    units: Maps
    sums: Maps
    adds_to: Int[np.ndarray, " rows"]
    over: Int[np.ndarray, " blocks"]
    head: Int[np.ndarray, " blocks"]
    """Which attention a block has."""
    query: Maps
    key: Maps
    value: Maps
    to: Int[np.ndarray, " rows"]
    null_key: Float[np.ndarray, " rows"]
    null_value: Float[np.ndarray, " rows"]
    last: Maps
    last_to: Int[np.ndarray, " rows"]
    ends: Maps
    time: Int[np.ndarray, " bits"]
    temperature: np.float32
    """0 for hard-max."""
    low: np.float32
    high: np.float32
    gain: np.float32


class Cache(NamedTuple):
    """Keys and values of every attention at the steps so far, or at the tokens."""

    keys: Float[np.ndarray, "places rows"]
    values: Float[np.ndarray, "places rows"]


def flatten(decoder: Decoder) -> Flat:
    """The decoder, if its layers are of the form that this is for: units and sums that are added to some
    coordinates, and one layer at the end that takes the place of all."""
    *blocks, end = decoder.blocks
    last = end.feed_forward[0]
    shaped = all(block.adds_to is not None and len(block.feed_forward) == 2 for block in blocks)
    if not shaped or end.attentions() or not isinstance(last.activation, Correction):
        raise Refused("the decoder is not of the form that is run by its entries")
    attentions = [(block, attention) for block in blocks for attention in block.attentions()]
    heads = np.cumsum([0, *(len(block.attentions()) for block in blocks)])[:-1]
    values = [_restricted(attention) for _, attention in attentions]
    rows = np.unique(last.map.entries().rows)
    return Flat(
        units=_maps([block.feed_forward[0].map.entries() for block in blocks]),
        sums=_maps([block.feed_forward[1].map.entries() for block in blocks]),
        adds_to=_joined([np.asarray(block.adds_to) for block in blocks], np.int64),
        over=np.array([_over(block) for block in blocks], np.int64),
        head=heads.astype(np.int64),
        query=_maps([attention.query.entries() for _, attention in attentions]),
        key=_maps([attention.key.entries() for _, attention in attentions]),
        value=_maps(values),
        to=_joined([attention.targets() for _, attention in attentions], np.int64),
        null_key=_joined([np.asarray(attention.null_key) for _, attention in attentions], np.float32),
        null_value=_joined(
            [np.asarray(attention.null_value)[attention.targets()] for _, attention in attentions],
            np.float32,
        ),
        last=_maps([last.map.entries().restricted(rows)]),
        last_to=rows.astype(np.int64),
        ends=_maps([layer.map.entries() for layer in decoder.halting]),
        time=np.array(decoder.time, np.int64),
        temperature=np.float32(decoder.temperature or 0.0),
        low=np.float32(last.activation.low),
        high=np.float32(last.activation.high),
        gain=np.float32(last.activation.gain),
    )


def _over(block: Block) -> int:
    if block.self_attention is not None:
        return STEPS
    return NONE if block.encoder_attention is None else TOKENS


def _restricted(attention: Attention) -> Affine:
    return attention.value.entries().restricted(attention.targets())


def _maps(affines: Sequence[Affine]) -> Maps:
    counts = [np.bincount(own.rows, minlength=len(own)) for own in affines]
    return Maps(
        np.cumsum([0, *(len(own) for own in affines)]).astype(np.int64),
        np.concatenate([[0], np.cumsum(_joined(counts, np.int64))]).astype(np.int64),
        _joined([own.columns for own in affines], np.int64),
        _joined([own.values for own in affines], np.float32),
        _joined([own.bias for own in affines], np.float32),
    )


def _joined(arrays: Sequence[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype)


def of_tokens(flat: Flat, tokens: Float[np.ndarray, "words coordinates"]) -> Cache:
    """Keys and values of the tokens, for the attentions that look at them."""
    cache = empty_cache(flat, len(tokens))
    for block in np.flatnonzero(flat.over == TOKENS):
        for place, token in enumerate(tokens.astype(np.float32)):
            _remember(flat, cache, token, flat.head[block], place)
    return cache


def empty_cache(flat: Flat, room: int) -> Cache:
    """Room for so many places."""
    return Cache(
        np.zeros((room, len(flat.key.bias)), np.float32), np.zeros((room, len(flat.value.bias)), np.float32)
    )


def advance(
    flat: Flat, given: Cache, past: Cache, output: Float[np.ndarray, " width"], step: int, last: int
) -> tuple[Cache, Float[np.ndarray, " width"], int]:
    """Decoder steps from number `step` on, up to number `last` or the end; the cache grows as it must."""
    while True:
        output, step, ended = _steps(flat, given, past, output, step, last)
        if ended or step > last:
            return past, output, step
        room = min(max(64, 2 * len(past.keys)), last + 1)
        more = empty_cache(flat, room - len(past.keys))
        past = Cache(*(np.concatenate(pair) for pair in zip(past, more, strict=True)))


def has_ended(decoder: Decoder, output: Float[np.ndarray, " width"]) -> bool:
    """Whether the one output of the halting layer is above 1/2."""
    own = decoder.halting[0].map.entries()
    return bool((own.values * output[own.columns]).sum() + own.bias[0] > 0.5)


@njit()
def _row(maps, row, x):
    """One row of a map."""
    total = np.float32(0)
    for term in range(maps.terms[row], maps.terms[row + 1]):
        total += maps.values[term] * x[maps.columns[term]]
    return total + maps.bias[row]


@njit()
def _remember(flat, cache, x, head, place):
    """Key and value of an attention at a place."""
    for row in range(flat.key.starts[head], flat.key.starts[head + 1]):
        cache.keys[place, row] = _row(flat.key, row, x)
    for row in range(flat.value.starts[head], flat.value.starts[head + 1]):
        cache.values[place, row] = _row(flat.value, row, x)


@njit()
def _attend(flat, cache, places, head, hidden, query, scores):
    """Adds the mean of the values with the best scores, or of all by softmax."""
    first, end = flat.query.starts[head], flat.query.starts[head + 1]
    null = np.float32(0)
    for row in range(first, end):
        query[row - first] = _row(flat.query, row, hidden)
        null += flat.null_key[row] * query[row - first]
    best = null
    for place in range(places):
        score = np.float32(0)
        for row in range(first, end):
            score += cache.keys[place, row] * query[row - first]
        scores[place] = score
        best = max(best, score)
    begin, stop = flat.value.starts[head], flat.value.starts[head + 1]
    weight = _weight(null, best, flat.temperature)
    total = weight
    sums = weight * flat.null_value[begin:stop]
    for place in range(places):
        weight = _weight(scores[place], best, flat.temperature)
        if weight != 0:
            total += weight
            for row in range(begin, stop):
                sums[row - begin] += weight * cache.values[place, row]
    for row in range(begin, stop):
        hidden[flat.to[row]] += sums[row - begin] / total


@njit()
def _weight(score, best, temperature):
    if temperature == 0:
        return np.float32(1) if score == best else np.float32(0)
    return np.exp(temperature * (score - best))


@njit()
def _steps(flat, given, past, output, step, last):
    """Steps while there is room; the last output, the number of the next step, and whether the run ended."""
    widest = 0
    for block in range(len(flat.over)):
        widest = max(widest, flat.units.starts[block + 1] - flat.units.starts[block])
    units = np.zeros(widest, np.float32)
    query = np.zeros(len(flat.query.bias), np.float32)
    scores = np.zeros(max(len(past.keys), len(given.keys)), np.float32)
    nothing = np.float32(0)
    hidden, output = output.copy(), output.copy()
    ended = _row(flat.ends, 0, output) > 0.5
    while step <= last and step < len(past.keys) and not ended:
        hidden[:] = output
        for bit in range(len(flat.time)):
            hidden[flat.time[bit]] += np.float32(step >> bit & 1)
        for block in range(len(flat.over)):
            head = flat.head[block]
            if flat.over[block] == STEPS:
                _remember(flat, past, hidden, head, step)
                _attend(flat, past, step + 1, head, hidden, query, scores)
            elif flat.over[block] == TOKENS:
                _attend(flat, given, len(given.keys), head, hidden, query, scores)
            first = flat.units.starts[block]
            for row in range(first, flat.units.starts[block + 1]):
                units[row - first] = max(_row(flat.units, row, hidden), nothing)
            for row in range(flat.sums.starts[block], flat.sums.starts[block + 1]):
                hidden[flat.adds_to[row]] += _row(flat.sums, row, units)
        output[:] = nothing
        for row in range(len(flat.last_to)):
            z = max(_row(flat.last, row, hidden), nothing)
            z = flat.gain * max(z - flat.low, nothing) - flat.gain * max(z - flat.high, nothing)
            output[flat.last_to[row]] = max(z, nothing)
        step += 1
        ended = _row(flat.ends, 0, output) > 0.5
    return output, step, ended
