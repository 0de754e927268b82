"""The constants of the three memories, and where they come from.

# The practical memory: how small the weight of a cell must be

One cell (`build_practical`): a weight w = +-w0 behind the constant, an amplified copy a w at two gates, and
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

# The exact memory: the paper's own network (Lemma 3)

The activation is x^p (with the sign of x) between -1 and 1, and 2 or -2 beyond 3/2; the paper has p = 3, and
Remark 9 p = 11/9. A path of M_s (Definition 6) has the weights w_t = p^((6-t)/2) s for t = 1 ... 6. Open, it
gives c = w_6 * prod_(t<6) w_t^(p^(6-t)) * 2^(p^5) to the output; its derivative in w_t is c p^(6-t)/w_t,
which is c w_t/s^2. At a wrong output, dL/d(total input) = 4p, so the rate s^2/(2 p c) turns every w_t into
-w_t.

# The noise-tolerant memory (Lemmas 4 to 6)

A component M' (Definition 7) has the path weights 3^(-t/2)/4, t = 0 ... 4; opened once, at label 1 they
double, at label -1 they are multiplied by -2. Then v_2 tells that it was written, and v_r with which label.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Self

from tapegrad.errors import Refused
from tapegrad.targets.emulator.numbers import Exact, Field

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
    w0 = u
    while not changes_vanish(w0, cells, precision) or drift(w0, cells, steps) > LARGEST_DRIFT:
        w0 /= 2
    if -math.log2(w0**2) + 2 > exponents:
        raise Refused(
            f"{steps:,} steps with {cells:,} bits of memory need weights beyond the range of {precision}",
            advice="Ask for fewer steps, or use float64.",
        )
    return Constants(w0, u)


@dataclass(frozen=True)
class ExactConstants:
    """s, the rate and all weights of M_s, for an exponent p and at least `cells` components."""

    field: Field

    @classmethod
    def of(cls, p: Fraction, cells: int) -> Self:
        """The paper's m0 = max(m, ceil(2^(-p^5) p^(-E) (2 p^(5/2))^S)): the smallest for which the largest
        total input, 2 w_1 = 2 p^(5/2) s, is below 1. For p = 3: ceil(2^-243 3^(-1641/2) (18 sqrt 3)^364)."""
        if not 1 < p <= 4:
            raise Refused(f"the exponent of the activation must be above 1 and at most 4, not {p}")
        s_power, p_power = _sums(p)
        with localcontext() as context:
            context.prec = 1000
            two, ratio = Decimal(2).ln(), (Decimal(p.numerator) / Decimal(p.denominator)).ln()
            log = (_decimal(s_power) - _decimal(p**5)) * two
            log += (_decimal(s_power) * Decimal(5) / 2 - _decimal(p_power)) * ratio
            bound = log.exp()
            least = int(bound.to_integral_value(rounding="ROUND_CEILING"))
        return cls(Field(p, max(cells, least)))

    @property
    def s(self) -> Exact:
        """From s^S 2^(p^5) p^E = 1/m0, with S = sum p^j and E = sum j p^j / 2, for j = 0 ... 5."""
        p = self.field.p
        s_power, p_power = _sums(p)
        return self.field.number(-(p**5) / s_power, -p_power / s_power, -1 / s_power)

    def path(self, t: int) -> Exact:
        """w_t = p^((6-t)/2) s."""
        return self.field.number(0, Fraction(6 - t, 2)) * self.s

    @property
    def rate(self) -> Exact:
        """s^2 / (2 p c) with c = 1/m0."""
        return self.s * self.s * self.field.number(-1, -1, 1)

    @property
    def first(self) -> Exact:
        """The output of v_1, by which the computation reads the bit: (2 w_1)^p."""
        return (self.path(1) * 2).power(self.field.p)

    @property
    def control(self) -> Exact:
        """Half of what v_4 gets from v_3, so that a control at 2 closes the path: 2^26 3^91 s^40 at p = 3."""
        value = self.first
        for t in (2, 3):
            value = (value * self.path(t)).power(self.field.p)
        return value * self.path(4) * Fraction(1, 2)


def _sums(p: Fraction) -> tuple[Fraction, Fraction]:
    return sum((p**j for j in range(6)), Fraction(0)), sum((j * p**j / 2 for j in range(6)), Fraction(0))


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


DIGITS = 80
"""Of the constants, and of decimal arithmetic: Lemma 4 speaks of noise of 2^-134 3^-11, about 10^-46."""


def power(two: int | Decimal, three: int | Decimal) -> Decimal:
    """2^two * 3^three, to DIGITS digits; exponents may be halves and thirds, given as decimals."""
    with localcontext(prec=DIGITS):
        return Decimal(2) ** Decimal(two) * Decimal(3) ** Decimal(three)


def third(numerator: int) -> Decimal:
    """numerator/3, to DIGITS digits."""
    with localcontext(prec=DIGITS):
        return Decimal(numerator) / 3


PATH = tuple(power(-2, Decimal(-t) / 2) for t in range(5))
"""3^(-t/2)/4, from v_t to v_(t+1)."""
READ = Decimal(128)
"""From v_1 to v_r."""
BEFORE, AFTER = power(-81, -9).copy_negate(), power(-41, -9).copy_negate()
"""From v_c and v_c', which close v_4 before and after it is written."""
RATE = power(third(716), 24)
LOW, HIGH = power(-21, Decimal("-1.5")), power(-15, Decimal("-1.5"))
"""What v_2 gives is below LOW until its component is written, and above HIGH from then on."""
DEAD_ZONES = {"decimal": power(-121, -9), "double": power(-82, -9)}
"""Up to which total input the activation is 0; it is x^3 from twice that on.

The paper has 2^-121 3^-9. In double precision that is too narrow: once a component is written, v_4 gets the
difference of two numbers near 2^-40 3^-9, the errors of some 40 roundings to 53 bits, about 2^-85 3^-9 (which
is why 53 bits are far more noise than Lemma 4 allows). When it is to be written, v_4 gets 2^-80 3^-9. So for
double precision the dead zone is 2^-82 3^-9, between the two.
"""

NOISE = {"decimal": power(-134, -11), "double": power(-85, -9)}
"""The largest sum of the noise on a weight: Lemma 4's bound, and, in double precision, what keeps v_4 within
a quarter of its dead zone, where the edge from a control at 2 is what noise disturbs most."""
