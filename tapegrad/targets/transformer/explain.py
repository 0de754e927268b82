"""What a coordinate or a row of a layer does, in words."""

from collections.abc import Iterator

import numpy as np

from tapegrad.errors import InputError
from tapegrad.networks.form import Block, formula
from tapegrad.targets.transformer.build import Layout


def unit_names(layers: tuple[Block, ...], layout: Layout) -> Iterator[str]:
    """Coordinates, then layers, then the coordinates that each layer computes anew."""
    yield from layout.names
    for number in range(len(layers)):
        yield f"layer {number}"
    for number, layer in enumerate(layers):
        for coordinate in _computed(layer):
            yield f"layer {number}: {layout.names[coordinate]}"


def explain(layers: tuple[Block, ...], layout: Layout, unit: str) -> str:
    """The unit in words; a row of a layer also as its formula."""
    if unit in layout.names:
        return f"{unit}: {layout.meaning(layout.names.index(unit))}"
    head, _, name = unit.partition(": ")
    number = head.removeprefix("layer ")
    if head.startswith("layer ") and number.isdecimal() and int(number) < len(layers):
        layer = layers[int(number)]
        if not name:
            return f"layer {number}: {describe(layer)}"
        if name in layout.names:
            coordinate = layout.names.index(name)
            return f"layer {number} ({layer.purpose}): {name} = {row_formula(layer, layout, coordinate)}"
    raise InputError(
        f"the net has no unit {unit!r}",
        advice="Try a coordinate such as 'found', a layer such as 'layer 0', or 'layer 2: carry'.",
    )


def describe(layer: Block) -> str:
    """The purpose of a layer, and its modules."""
    modules = ["self-attention"] if layer.self_attention is not None else []
    modules += ["encoder-decoder attention"] if layer.encoder_attention is not None else []
    return f"{layer.purpose}: {', '.join([*modules, 'three ReLU layers'])}"


def row_formula(layer: Block, layout: Layout, coordinate: int) -> str:
    """A row of `W_1` and `b_1` as people write it."""
    first = layer.feed_forward[0].map.entries()
    terms = [(layout.names[source], weight) for source, weight in sorted(first.row(coordinate))]
    bias = float(first.bias[coordinate])
    return f"relu({formula(terms, bias)})" if terms or bias else "0"


def _computed(layer: Block) -> np.ndarray:
    """Rows that are neither cleared nor copied."""
    first = layer.feed_forward[0].map.entries()
    own = np.bincount(first.rows, (first.rows == first.columns) & (first.values == 1), len(first))
    copied = (own == 1) & (np.bincount(first.rows, minlength=len(first)) == 1) & (first.bias == 0)
    cleared = ~first.reads() & (first.bias == 0)
    return np.flatnonzero(~copied & ~cleared)
