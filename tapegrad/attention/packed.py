"""Decoders as a few arrays, for files: entries of all maps of a kind, one after the
other.

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
        "adds_to": joined([np.asarray(block.adds_to) for block in blocks], np.int32),
        "null_key": joined([np.asarray(attention.null_key) for attention in attentions], np.float32),
    }
    for number, name in enumerate(("units", "sums")):
        arrays |= entries(name, [block.feed_forward[number].map.entries() for block in blocks])
    for side in SIDES:
        arrays |= entries(side, [getattr(attention, side).entries() for attention in attentions])
    arrays |= entries("last", [end.feed_forward[0].map.entries()])
    return arrays | entries("ends", [decoder.halting[0].map.entries()])


def unpacked(
    arrays: Mapping[str, NDArray[Any]],
    purposes: Sequence[str],
    time: int,
    first: int,
    temperature: float | None,
) -> Decoder:
    """The decoder again; `time` bits of the step's number stand from coordinate `first` on."""
    units, sums, last, ends = (maps_of(name, arrays) for name in ("units", "sums", "last", "ends"))
    query, key, value = (maps_of(side, arrays) for side in SIDES)
    attends = arrays["attends"]
    require(len(last) == len(ends) == 1 and len(ends[0]) == 1)
    width = len(last[0])
    require(attends.ndim == 1 and len(units) == len(sums) == len(attends) == len(purposes) - 1)
    require(np.isin(attends, range(len(ATTENDS))).all() and len(query) == (attends > 0).sum())
    require(len(query) == len(key) == len(value) and all(own.width == width for own in (*query, *units)))
    require(last[0].width == ends[0].width == width and 0 <= first <= first + time <= width)
    adds_to = split(arrays["adds_to"].astype(np.int64), [len(own) for own in sums], width)
    null_keys = split(arrays["null_key"].astype(np.float32), [len(own) for own in key], None)
    heads = iter(
        Attention(asks, answers, copies, null, np.zeros(width, np.float32))
        for asks, answers, copies, null in zip(query, key, value, null_keys, strict=True)
    )
    blocks = []
    for number, (own, out, to) in enumerate(zip(units, sums, adds_to, strict=True)):
        require(out.width == len(own))
        attention = next(heads) if attends[number] else None
        if attention is not None:
            over = attention.key.width
            require(len(attention.query) == len(attention.key) and len(attention.value) == width)
            require(attention.value.width == over and (attends[number] == 2 or over == width))
        sides = (attention, None) if attends[number] == 1 else (None, attention)
        blocks.append(Block(purposes[number], (Dense(own, "relu"), Dense(out, "linear")), *sides, to))
    blocks.append(Block(purposes[-1], (Dense(last[0], ROUNDING),)))
    start, halting = np.zeros(width, np.float32), (Dense(ends[0], "linear"),)
    return Decoder(tuple(blocks), start, halting, tuple(range(first, first + time)), temperature)


def _attends(block: Block) -> int:
    if block.self_attention is not None:
        return ATTENDS.index("steps")
    return ATTENDS.index("nothing" if block.encoder_attention is None else "input")


def entries(name: str, maps: Sequence[Affine]) -> Arrays:
    """Maps of a kind as arrays."""
    sizes = [(len(own), own.width, len(own.values)) for own in maps]
    return {
        f"{name}.sizes": np.array(sizes, np.int64).reshape(-1, 3),
        f"{name}.rows": joined([own.rows for own in maps], np.int32),
        f"{name}.columns": joined([own.columns for own in maps], np.int32),
        f"{name}.values": joined([own.values for own in maps], np.float32),
        f"{name}.bias": joined([own.bias for own in maps], np.float32),
    }


def maps_of(name: str, arrays: Mapping[str, NDArray[Any]]) -> list[Affine]:
    """The maps of a kind again."""
    sizes = arrays[f"{name}.sizes"]
    rows, columns = (arrays[f"{name}.{part}"].astype(np.int64) for part in ("rows", "columns"))
    values, bias = (arrays[f"{name}.{part}"].astype(np.float32) for part in ("values", "bias"))
    require(sizes.ndim == 2 and sizes.shape[1] == 3 and sizes.dtype.kind == "i" and (sizes >= 0).all())
    counts, widths, entries = sizes.T
    parts = (
        split(rows, entries, None), split(columns, entries, None),
        split(values, entries, None), split(bias, counts, None),
    )  # fmt: skip
    maps = [
        Affine(own_rows, own_columns, own_values, own_bias, width)
        for own_rows, own_columns, own_values, own_bias, width in zip(*parts, widths.tolist(), strict=True)
    ]
    require(all(own.fits() for own in maps))
    return maps


def split(array: NDArray[Any], counts: Sequence[int], below: int | None) -> list[NDArray[Any]]:
    """Consecutive parts of so many elements, which are all there is, and below a bound if there is one."""
    require(array.ndim == 1 and len(array) == int(np.sum(counts)))
    require(below is None or bool(((array >= 0) & (array < below)).all()))
    return np.split(array, np.cumsum(counts)[:-1]) if len(counts) else []


def joined(arrays: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    """One after the other."""
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype)


def require(holds: Any) -> None:
    """Refuses arrays that are not those of one network."""
    if not holds:
        raise BrokenNet("the layers of the network do not fit together")
