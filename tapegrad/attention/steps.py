"""Numbers in a residual stream, and the two units that make an exact bit of one: `[z >= c]`, without
rounding.

**Codes.** A sequence with values v_0, v_1, ..., v_m has m coordinates: the k-th is 1 where its value is v_k
or one further on. So every function of the value is a sum of these bits, and costs nothing but terms.

**Scalars.** What a head counts or averages arrives as a number z >= 0 in one coordinate, near the centre that
belongs to its value:

- a count w as 1 / (1 + w): the token at the beginning weighs as much as each of w selected ones, and is the
  only one with a value. All weigh exp(0) = 1 before they are divided by their sum, an integer below 2^24, so
  nothing rounds but the quotient: z is off by 4 u z at most (u = 2^-24; two roundings, doubled for libraries
  that multiply by a reciprocal).
- a mean of n values >= 0, or a bit that is copied: weights are off by 4 u each, relatively, and a sum of
  up to
  n products by (n + 1) u more, in whatever order it is taken. Hence (n + 8) u z.
- a sum of numbers that codes stand for: their weights are multiples of the grid below, and it is exact.

**Steps.** To tell the centres c < c' apart, two units `relu(g z - g a) - relu(g z - g b)` rise from 0 at a to
1 at b, where c + error <= a < b <= c' - error. On a grid of 2^-24 Z, where Z is a power of two and z <= Z,
take a and b as multiples of the grid and b - a a power of two; then g = 1 / (b - a) is one too. For every
float z with a <= z <= Z the difference z - a is a multiple of z's last place and not above z: it is a float.
So nothing rounds, and the step is the bit itself. Where no such a and b fit between two centres, single
precision cannot tell them apart, and the length is refused.

**Scores.** A selected key scores m beta for m conditions, any other (m - 1) beta at most, since codes are
bits and weights beta. The token at the beginning scores (m - 1/2) beta where a head copies, and m beta where
it counts. With beta / 2 >= 150 ln 2 what is not best weighs exp(-beta / 2) < 2^-149, which is 0, or too
little to be seen beside a 1. This holds at every length.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from tapegrad.errors import Refused
from tapegrad.rasp.functions import Value

ROUNDOFF = Fraction(1, 1 << 24)
"""Of single precision, relative."""
UNDERFLOW = 150 * math.log(2)
"""exp(-UNDERFLOW) is below every positive float."""
BETA = 2.0 ** math.ceil(math.log2(2 * UNDERFLOW))
"""The least power of two for which half a step of scores is beyond underflow."""

Form = dict[int, float]
"""A sum of coordinates with weights."""


@dataclass(frozen=True, eq=False)
class Scalar:
    """A number in the residual stream: the sum of some coordinates, and where it stands for which value."""

    node: int
    name: str
    form: Form
    centres: tuple[Fraction, ...]
    """In rising order."""
    values: tuple[Value, ...]
    """What each of them stands for."""
    top: Fraction
    """A power of two that it is never above."""
    relative: Fraction = Fraction(0)
    absolute: Fraction = Fraction(0)
    """How far from its centre it may be: relatively, and besides."""

    @property
    def grid(self) -> Fraction:
        """What steps begin and end at multiples of."""
        return self.top * ROUNDOFF

    def error(self, place: int) -> Fraction:
        """How far from a centre it may be."""
        return self.centres[place] * self.relative + self.absolute

    def step(self, place: int) -> tuple[Fraction, Fraction]:
        """Where the step between a centre and the one before it begins, and how wide it is."""
        grid = self.grid
        low = math.ceil((self.centres[place - 1] + self.error(place - 1)) / grid)
        high = math.floor((self.centres[place] - self.error(place)) / grid)
        if high <= low:
            raise TooNear(self.name, self.centres[place] - self.centres[place - 1])
        wide = 1 << (high - low).bit_length() - 1
        return (low + (high - low - wide) // 2) * grid, wide * grid


class TooNear(Refused):
    """Two values are too near each other."""

    def __init__(self, name: str, gap: Fraction, advice: str = "Ask for a shorter length.") -> None:
        super().__init__(
            f"values of {name!r} differ by as little as {float(gap):.2g}, which single precision cannot tell "
            "apart after a sum of so many",
            advice=advice,
        )
        self.name, self.gap = name, gap


def power_above(number: Fraction) -> Fraction:
    """The least power of two that is not below a positive number."""
    power = Fraction(1)
    while power < number:
        power *= 2
    while power / 2 >= number:
        power /= 2
    return power


def on_grid(number: Fraction, grid: Fraction) -> Fraction:
    """The nearest multiple."""
    return round(number / grid) * grid


def added(*parts: tuple[Form, float]) -> Form:
    """Forms, each times a number."""
    found: Form = {}
    for form, factor in parts:
        for place, weight in form.items():
            found[place] = found.get(place, 0.0) + factor * weight
    return {place: weight for place, weight in found.items() if weight}
