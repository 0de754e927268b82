"""Layers and widths of the extended network, to set beside Corollaries 2.2 and 2.3.

Layers are counted as in section 5.5: a sum of squares, a product, a quotient or a ReLU with the linear map in
front of it is one layer; what does not depend on each other runs side by side.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """One layer: how many there are before it on the longest path to it, what it computes, how many units."""

    depth: int
    what: str
    units: int


def extra_layers(loss_layers: list[Layer], label_numbers: int) -> list[Layer]:
    """Everything around the primary network, in order. `loss_layers` compute l_TM and are 4 deep at most,
    which leaves them beside f_perp (5 layers, appendix C). The label switch depends on z alone until its
    last product, so its norm and cutoff run beside the rest."""
    perpendicular = ("choice of axis", "squared length of z", "division", "squared length", "normalisation")
    after = (
        ("f_TM = sqrt(2 l) f_perp(z)", label_numbers),
        ("squared length of f_TM", 1),
        ("halt switch: inner ReLU", 1),
        ("halt switch: outer ReLU", 1),
        ("halt switch: products", 2 * label_numbers),
        ("label switch: products", 2 * label_numbers),
    )
    layers = [
        *loss_layers,
        Layer(5, "square root of 2 l", 1),
        *(Layer(depth, f"f_perp: {what}", label_numbers) for depth, what in enumerate(perpendicular, 1)),
        Layer(1, "label switch: squared length of z", 1),
        Layer(2, "label switch: inner ReLU", 1),
        Layer(3, "label switch: outer ReLU", 1),
        *(Layer(depth, what, units) for depth, (what, units) in enumerate(after, 6)),
    ]
    return sorted(layers, key=lambda layer: layer.depth)


def widest(layers: list[Layer]) -> int:
    """Units of the widest layer, everything at the same depth taken together."""
    return max(
        sum(layer.units for layer in layers if layer.depth == depth)
        for depth in range(1, deepest(layers) + 1)
    )


def deepest(layers: list[Layer]) -> int:
    """Number of layers on the longest path."""
    return max(layer.depth for layer in layers)
