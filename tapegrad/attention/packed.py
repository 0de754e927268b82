"""Language models as a few arrays, for files: entries of all maps of a kind, one after the
other.

A file may hold anything, so that everything that is used as an index is checked when it is read.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import BrokenNet
from tapegrad.networks.form import Affine
from tapegrad.networks.language import LanguageModel, Layer, LookBack, Positions

Arrays = dict[str, NDArray[Any]]

SIDES = ("query", "key", "value")


def packed_model(model: LanguageModel) -> Arrays:
    """All layers of a language model as arrays."""
    heads = [head for layer in model.layers for head in layer.heads]
    arrays = {
        "heads": np.array([len(layer.heads) for layer in model.layers], np.int32),
        "heads_to": joined([np.asarray(head.to) for head in heads], np.int32),
        "adds_to": joined([np.asarray(layer.to) for layer in model.layers], np.int32),
    }
    for side in SIDES:
        arrays |= entries(side, [getattr(head, side) for head in heads])
    for part in ("units", "sums"):
        arrays |= entries(part, [getattr(layer, part) for layer in model.layers])
    return arrays | entries("embedding", [model.embedding]) | entries("unembedding", [model.unembedding])


def unpacked_model(
    arrays: Mapping[str, NDArray[Any]],
    purposes: Sequence[str],
    names: Sequence[str],
    positions: Positions,
) -> LanguageModel:
    """The language model again, with names for its layers and its heads."""
    query, key, value = (maps_of(side, arrays) for side in SIDES)
    units, sums, embeddings, unembeddings = (
        maps_of(part, arrays) for part in ("units", "sums", "embedding", "unembedding")
    )
    require(len(embeddings) == len(unembeddings) == 1)
    (embedding,), (unembedding,) = embeddings, unembeddings
    width, counts = embedding.width, arrays["heads"]
    require(counts.ndim == 1 and counts.dtype.kind == "i" and (counts >= 0).all())
    require(len(query) == len(key) == len(value) == len(names) == counts.sum())
    require(len(units) == len(sums) == len(counts) == len(purposes))
    require(all(own.width == width for own in (*query, *key, *value, *units, unembedding)))
    require(len(unembedding) == len(embedding) and not embedding.bias.any())
    require(all(len(asks) == len(answers) for asks, answers in zip(query, key, strict=True)))
    require(all(out.width == len(own) for own, out in zip(units, sums, strict=True)))
    require(min(positions.first, positions.bits, positions.record) >= 0)
    require(positions.record >= 1 and positions.first + positions.width <= width)
    heads_to = split(arrays["heads_to"].astype(np.int64), [len(own) for own in value], width)
    adds_to = split(arrays["adds_to"].astype(np.int64), [len(own) for own in sums], width)
    heads = iter([LookBack(*parts) for parts in zip(names, query, key, value, heads_to, strict=True)])
    layers = tuple(
        Layer(purpose, tuple(next(heads) for _ in range(count)), own, out, to)
        for purpose, count, own, out, to in zip(purposes, counts.tolist(), units, sums, adds_to, strict=True)
    )
    return LanguageModel(embedding, positions, layers, unembedding)


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
