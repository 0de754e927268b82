"""The network of a question in rational arithmetic: no rounding at all, and no matrices."""

from collections.abc import Sequence
from fractions import Fraction

from tapegrad.networks.form import Dense


def exact_value(layers: Sequence[Dense], point: Sequence[Fraction]) -> Fraction:
    """Y at a point, in rational arithmetic: no rounding at all."""
    values = [Fraction(own) for own in point]
    for layer in layers:
        own = layer.map.entries()
        sums = [Fraction(float(bias)) for bias in own.bias]
        for row, column, value in zip(own.rows.tolist(), own.columns.tolist(), own.values, strict=True):
            sums[row] += Fraction(float(value)) * values[column]
        values = [max(total, Fraction(0)) for total in sums] if layer.activation == "relu" else sums
    return values[0]
