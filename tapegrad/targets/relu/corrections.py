"""Correction layers: what stands between two circuit layers and takes values near a bit to that bit.

Proposition 3.4: `round(z) = 3 relu(z - 1/3) - 3 relu(z - 2/3)` is 0 below 1/3 and 1 above 2/3. In general
`s relu(z - low) - s relu(z - high)` with `s = 1 / (high - low)`, so a value less than
`min(low, 1 - high)` away from a bit is mended: that is the radius.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tapegrad.targets.relu.gadgets import Row


@dataclass(frozen=True)
class Correction:
    """`s relu(z - low) - s relu(z - high)`: two hidden units and one that takes their difference."""

    low: Fraction
    high: Fraction
    line: str

    def rows(self, dtype: str) -> tuple[tuple[Row, Row], Row]:
        """The hidden units and the unit that reads them, as numbers of this precision."""
        number = np.dtype(dtype).type
        slope = float(1 / (self.high - self.low))
        hidden = Row(1, 0, -float(number(self.low))), Row(1, 0, -float(number(self.high)))
        return hidden, Row(slope, -slope, 0)


CORRECTIONS: dict[str, Correction | None] = {
    "thirds": Correction(Fraction(1, 3), Fraction(2, 3), "Proposition 3.4"),
    "quarters": Correction(
        Fraction(1, 4), Fraction(3, 4), "Proposition 3.4 with quarters, which have no rounding error"
    ),
    "none": None,
}


def relu_layers(correction: str) -> int:
    """How many ReLU layers one circuit layer takes: two for the gates, two for the correction."""
    return 2 if CORRECTIONS[correction] is None else 4
