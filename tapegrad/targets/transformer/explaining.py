"""What a coordinate or a row of a layer does, in words."""

from collections.abc import Iterator

import numpy as np

from tapegrad.errors import InputError
from tapegrad.targets.transformer.layers import TransformerLayer
from tapegrad.targets.transformer.layout import Layout


def unit_names(layers: tuple[TransformerLayer, ...], layout: Layout) -> Iterator[str]:
    """Coordinates, then layers, then the coordinates that each layer computes anew."""
    yield from layout.names
    for number in range(len(layers)):
        yield f"layer {number}"
    for number, layer in enumerate(layers):
        for coordinate in _computed(layer):
            yield f"layer {number}: {layout.names[coordinate]}"


def explain(layers: tuple[TransformerLayer, ...], layout: Layout, unit: str) -> str:
    """The unit in words; a row of a layer also as its formula."""
    if unit in layout.names:
        return f"{unit}: {layout.meaning(layout.names.index(unit))}"
    head, _, name = unit.partition(": ")
    number = head.removeprefix("layer ")
    if head.startswith("layer ") and number.isdecimal() and int(number) < len(layers):
        layer = layers[int(number)]
        if not name:
            return f"layer {number}: {layer}"
        if name in layout.names:
            coordinate = layout.names.index(name)
            return f"layer {number} ({layer.purpose}): {name} = {formula(layer, layout, coordinate)}"
    raise InputError(
        f"the net has no unit {unit!r}",
        advice="Try a coordinate such as 'found', a layer such as 'layer 0', or 'layer 2: carry'.",
    )


def formula(layer: TransformerLayer, layout: Layout, coordinate: int) -> str:
    """A row of `W_1` and `b_1` as people write it."""
    row, bias = layer.feed_forward.W_1[coordinate], float(layer.feed_forward.b_1[coordinate])
    terms = []
    for source in np.flatnonzero(row):
        weight = float(row[source])
        size = "" if abs(weight) == 1 else f"{abs(weight):g} "
        terms.append(f"{'-' if weight < 0 else '+'} {size}{layout.names[source]}")
    if bias:
        terms.append(f"{'-' if bias < 0 else '+'} {abs(bias):g}")
    shown = " ".join(terms if len(terms) <= 8 else [*terms[:7], f"+ ... ({len(terms)} terms)"])
    return f"relu({shown.removeprefix('+ ')})" if terms else "0"


def _computed(layer: TransformerLayer) -> np.ndarray:
    """Rows that are neither cleared nor copied."""
    W_1, b_1 = layer.feed_forward.W_1, layer.feed_forward.b_1
    copied = (np.eye(len(b_1), dtype=W_1.dtype) == W_1).all(1) & (b_1 == 0)
    cleared = ~W_1.any(1) & (b_1 == 0)
    return np.flatnonzero(~copied & ~cleared)
