"""How small the weight of a cell must be: the derivation of every constant of the practical network.

One cell (`practical.py`): a weight w = +-w0 behind the constant, an amplified copy a w at two gates, and
edges +u and -u from the gates to the output. An open gate is linear, a closed one flat. With `a w0 = 1/2`
and the rate `w0^2 / u`, a wrong output (dL/dout = +-4) moves the weight of a cell with an open gate by
`rate * 4 u a = 2 w0`: its sign flips. All constants are powers of two, so floating point computes this
without rounding.

**Errors do not grow.** Let the cells that are open differ from +-w0 by the vector d. The output is then off
by `u a s.d` (s: the signs of the gates), the next step moves d to `(I - (u/2) s s^T) d`, and with `u <= 1/M`
this does not lengthen d.

**Drift.** Every other weight is trained too. While |dL/dout| <= 5, in one step an edge to the output changes
by at most `10 rate`, and what it carries by `20 rate`; there are 6M + 1 of them. The two edges from the
computation to a gate change by at most `10 u rate` each, and move its input by `40 w0^2`; its amplified input
moves by less than `w0^2`. After t steps the output is off by at most `t w0^2 (20 (6M + 1)/u + 41)`, and the
product u a by a factor of at most `1 + 11 t w0^2/u^2`, so that the relative error of any cell after T steps
is at most

    drift = sqrt(M) T^2/2 w0^2 (20 (6M + 1)/u + 41 + 28/u^2).

**Rounding.** A change of less than half a unit in the last place is no change. The smallest weight beside the
cells is 3u/8, its unit is `u 2^(-1-p)` with p bits of precision; its change at a wrong output is `8 rate`.
Where `8 w0^2/u < u 2^(-2-p)`, no weight but those of the cells ever changes at all; all sums are then exact,
and the network is exact for any number of steps.
"""

import math
from dataclasses import dataclass

from tapegrad.errors import Refused

PRECISIONS = {"float64": (53, 1021), "float32": (24, 125)}
"""Bits of precision, and the largest size of an exponent that is surely in range."""

LARGEST_DRIFT = 1 / 8
"""A cell is read, and its gates stay linear, up to a relative error of 1/2; this leaves a margin."""


@dataclass(frozen=True)
class Constants:
    """Everything that the weights of a practical network are made of."""

    w0: float
    """Size of the weight that is a cell."""
    gate: float
    """u: size of the edges from a cell's gates to the output."""

    @property
    def gain(self) -> float:
        """a: from a cell to its gates, so that an open gate is at +-1/2."""
        return 1 / (2 * self.w0)

    @property
    def read(self) -> float:
        """From a cell to its flat copy: total input +-4, and a positive weight is read as 0."""
        return -4 / self.w0

    @property
    def rate(self) -> float:
        """The learning rate."""
        return self.w0**2 / self.gate


def gate_weight(cells: int) -> float:
    """u: the largest power of two that is at most 1/M."""
    return 2.0 ** -math.ceil(math.log2(max(cells, 1)))


def drift(w0: float, cells: int, steps: int) -> float:
    """Bound on the relative error of a cell after so many steps in exact arithmetic."""
    u = gate_weight(cells)
    growth = 20 * (6 * cells + 1) / u + 41 + 28 / u**2
    return math.sqrt(cells) * steps**2 / 2 * w0**2 * growth


def changes_vanish(w0: float, cells: int, precision: str) -> bool:
    """Whether in this precision no weight but those of the cells ever changes."""
    bits, _ = PRECISIONS[precision]
    u = gate_weight(cells)
    return 8 * w0**2 / u < u * 2.0 ** (-2 - bits)


def choose(cells: int, steps: int, precision: str) -> Constants:
    """The largest w0 at which every other change rounds away and which, over `steps` steps, would do even
    without rounding."""
    bits, exponents = PRECISIONS[precision]
    u = gate_weight(cells)
    if 32 / u > 2.0**bits:  # sums to the output consist of multiples of u/4 and stay below 8
        raise Refused(
            f"{cells:,} bits of memory are too many for {precision}",
            advice="Use float64, or a learner with less memory.",
        )
    w0 = u * 2.0 ** -((bits + 5) // 2 + 1)
    while not changes_vanish(w0, cells, precision) or drift(w0, cells, steps) > LARGEST_DRIFT:
        w0 /= 2
    if -math.log2(w0**2) + 2 > exponents:
        raise Refused(
            f"{steps:,} steps with {cells:,} bits of memory need weights beyond the range of {precision}",
            advice="Ask for fewer steps, or use float64.",
        )
    return Constants(w0, u)
