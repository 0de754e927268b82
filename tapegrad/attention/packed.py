"""The layers of a decoder as a few arrays, for files: entries of all maps of a kind, one after the other.

A file may hold anything, so that everything that is used as an index is checked when it is read.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.analysis import ROUNDING
from tapegrad.errors import BrokenNet
from tapegrad.networks.form import Affine, Attention, Block, Decoder, Dense

Arrays = dict[str, NDArray[Any]]

ATTENDS = ("nothing", "steps", "input")
"""What a block attends to, by the number that is saved."""
SIDES = ("query", "key", "value")


def packed(decoder: Decoder) -> Arrays:
    """All layers as arrays."""
    *blocks, end = decoder.blocks
    attentions = [attention for block in blocks for attention in block.attentions()]
    arrays = {
        "attends": np.array([_attends(block) for block in blocks], np.int8),
        "adds_to": _joined([np.asarray(block.adds_to) for block in blocks], np.int32),
        "null_key": _joined([np.asarray(attention.null_key) for attention in attentions], np.float32),
    }
    for number, name in enumerate(("units", "sums")):
        arrays |= _entries(name, [block.feed_forward[number].map.entries() for block in blocks])
    for side in SIDES:
        arrays |= _entries(side, [getattr(attention, side).entries() for attention in attentions])
    arrays |= _entries("last", [end.feed_forward[0].map.entries()])
    return arrays | _entries("ends", [decoder.halting[0].map.entries()])


def unpacked(
    arrays: Mapping[str, NDArray[Any]],
    purposes: Sequence[str],
    time: int,
    first: int,
    temperature: float | None,
) -> Decoder:
    """The decoder again; `time` bits of the step's number stand from coordinate `first` on."""
    units, sums, last, ends = (_maps(name, arrays) for name in ("units", "sums", "last", "ends"))
    query, key, value = (_maps(side, arrays) for side in SIDES)
    attends = arrays["attends"]
    _require(len(last) == len(ends) == 1 and len(ends[0]) == 1)
    width = len(last[0])
    _require(attends.ndim == 1 and len(units) == len(sums) == len(attends) == len(purposes) - 1)
    _require(np.isin(attends, range(len(ATTENDS))).all() and len(query) == (attends > 0).sum())
    _require(len(query) == len(key) == len(value) and all(own.width == width for own in (*query, *units)))
    _require(last[0].width == ends[0].width == width and 0 <= first <= first + time <= width)
    adds_to = _split(arrays["adds_to"].astype(np.int64), [len(own) for own in sums], width)
    null_keys = _split(arrays["null_key"].astype(np.float32), [len(own) for own in key], None)
    heads = iter(
        Attention(asks, answers, copies, null, np.zeros(width, np.float32))
        for asks, answers, copies, null in zip(query, key, value, null_keys, strict=True)
    )
    blocks = []
    for number, (own, out, to) in enumerate(zip(units, sums, adds_to, strict=True)):
        _require(out.width == len(own))
        attention = next(heads) if attends[number] else None
        if attention is not None:
            over = attention.key.width
            _require(len(attention.query) == len(attention.key) and len(attention.value) == width)
            _require(attention.value.width == over and (attends[number] == 2 or over == width))
        sides = (attention, None) if attends[number] == 1 else (None, attention)
        blocks.append(Block(purposes[number], (Dense(own, "relu"), Dense(out, "linear")), *sides, to))
    blocks.append(Block(purposes[-1], (Dense(last[0], ROUNDING),)))
    start, halting = np.zeros(width, np.float32), (Dense(ends[0], "linear"),)
    return Decoder(tuple(blocks), start, halting, tuple(range(first, first + time)), temperature)


def _attends(block: Block) -> int:
    if block.self_attention is not None:
        return ATTENDS.index("steps")
    return ATTENDS.index("nothing" if block.encoder_attention is None else "input")


def _entries(name: str, maps: Sequence[Affine]) -> Arrays:
    sizes = [(len(own), own.width, len(own.values)) for own in maps]
    return {
        f"{name}.sizes": np.array(sizes, np.int64).reshape(-1, 3),
        f"{name}.rows": _joined([own.rows for own in maps], np.int32),
        f"{name}.columns": _joined([own.columns for own in maps], np.int32),
        f"{name}.values": _joined([own.values for own in maps], np.float32),
        f"{name}.bias": _joined([own.bias for own in maps], np.float32),
    }


def _maps(name: str, arrays: Mapping[str, NDArray[Any]]) -> list[Affine]:
    sizes = arrays[f"{name}.sizes"]
    rows, columns = (arrays[f"{name}.{part}"].astype(np.int64) for part in ("rows", "columns"))
    values, bias = (arrays[f"{name}.{part}"].astype(np.float32) for part in ("values", "bias"))
    _require(sizes.ndim == 2 and sizes.shape[1] == 3 and sizes.dtype.kind == "i" and (sizes >= 0).all())
    counts, widths, entries = sizes.T
    parts = (
        _split(rows, entries, None), _split(columns, entries, None),
        _split(values, entries, None), _split(bias, counts, None),
    )  # fmt: skip
    maps = [
        Affine(own_rows, own_columns, own_values, own_bias, width)
        for own_rows, own_columns, own_values, own_bias, width in zip(*parts, widths.tolist(), strict=True)
    ]
    for own in maps:
        for places, end in ((own.rows, len(own)), (own.columns, own.width)):
            _require(((places >= 0) & (places < end)).all())
        _require((np.diff(own.rows) >= 0).all())
    return maps


def _split(array: NDArray[Any], counts: Sequence[int], below: int | None) -> list[NDArray[Any]]:
    """Consecutive parts of so many elements, which are all there is, and below a bound if there is one."""
    _require(array.ndim == 1 and len(array) == int(np.sum(counts)))
    _require(below is None or bool(((array >= 0) & (array < below)).all()))
    return np.split(array, np.cumsum(counts)[:-1]) if len(counts) else []


def _joined(arrays: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype)


def _require(holds: Any) -> None:
    if not holds:
        raise BrokenNet("the layers of the network do not fit together")
