"""Number formats, and the networks that turn numbers into bits and back (Welper's appendix B).

Both directions use sums, products and the Heaviside step only. With `continuous` the step becomes the ramp
psi_epsilon of the paper, two ReLUs, with epsilon the smallest distance that the format allows at that place,
so that the result is the same on every number of the format. Bits are in order, least significant first.
"""

from dataclasses import dataclass
from functools import reduce
from operator import mul

import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.networks.backends.numpy import applied
from tapegrad.networks.builder import Value
from tapegrad.targets.descent.loss import Constant, cutoff


def step(t: Value, epsilon: Constant, continuous: bool) -> Value:
    """1 for t >= 0; 0 for t < 0, or with `continuous` for t <= -epsilon, and a line between."""
    if continuous:
        return 1 - cutoff(t + epsilon, 0.0, epsilon)
    return 1 - (t < 0)


def binary_digits(number: Value, width: int, continuous: bool) -> Value:
    """The digits of whole numbers below 2^width: from the top down, subtract what fits (two layers each)."""
    digits = []
    for place in reversed(range(width)):
        digit = step(number - 2**place, 1.0, continuous)
        number = number - digit * 2**place
        digits.append(digit)
    return beside(*digits[::-1])


def beside(*columns: Value) -> Value:
    """Matrices side by side."""
    return columns[0].builder.join(*columns, axis=-1)


def columns_of(matrix: Value, count: int) -> list[Value]:
    """Its columns, one by one."""
    return [matrix.builder.take(matrix, [column]) for column in range(count)]


MOST_BITS = 32
"""Of a fixed-point number."""


@dataclass(frozen=True)
class FixedPoint:
    """Two's complement: `width` bits, `fraction` of them after the point."""

    width: int
    fraction: int = 0
    continuous: bool = False

    def __post_init__(self) -> None:
        if not (1 <= self.width <= MOST_BITS and 0 <= self.fraction <= MOST_BITS):
            raise Refused("a fixed-point format has 1 to 32 bits, and up to 32 of them after the point")

    @property
    def largest(self) -> float:
        """2^(width - 1 - fraction), which is the absolute value of the smallest number."""
        return 2.0 ** (self.width - 1 - self.fraction)

    @property
    def smallest(self) -> float:
        """One unit of the last place."""
        return 2.0**-self.fraction

    def quantise(self, numbers: Value) -> Value:
        """Shifted by half the range the numbers are whole and not negative; the top bit is then inverted."""
        shifted = numbers * 2**self.fraction + 2 ** (self.width - 1)
        digits = binary_digits(shifted, self.width, self.continuous)
        top = np.eye(self.width)[-1]
        return digits * (1 - 2 * top) + top

    def dequantise(self, bits: Value) -> Value:
        """One linear layer."""
        places = [*(2.0**i for i in range(self.width - 1)), -(2.0 ** (self.width - 1))]
        return bits @ np.array(places)[:, None] / 2**self.fraction


@dataclass(frozen=True)
class FloatingPoint:
    """Sign, `exponent` bits and `mantissa` bits, with numbers below the smallest exponent as usual; there are
    no infinities: every pattern is a number. In order: mantissa, exponent, sign."""

    exponent: int
    mantissa: int
    continuous: bool = False

    def __post_init__(self) -> None:
        if not (1 <= self.exponent <= 8 and 1 <= self.mantissa <= 23):
            raise Refused("a floating-point format has 1 to 8 bits of exponent and 1 to 23 of mantissa")

    @property
    def width(self) -> int:
        """All bits of a number."""
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        """What is subtracted from the exponent as it is stored."""
        return 2 ** (self.exponent - 1) - 1

    @property
    def largest(self) -> float:
        """All bits but the sign set."""
        top = 2**self.exponent - 1 - self.bias
        return (2.0 - 2.0**-self.mantissa) * 2.0**top

    @property
    def smallest(self) -> float:
        """The last bit of the mantissa, with exponent 0."""
        return self._unit(0)

    def quantise(self, numbers: Value) -> Value:
        """The paper's loop over the exponents, unrolled: one step for each power of two says how many of
        them fit; the mantissa is the number scaled by the last that does."""
        size = numbers.relu() + (-numbers).relu()
        negative = 1 - step(numbers, self._unit(1) / 2, self.continuous)
        units = np.array([self._unit(stored) for stored in range(2**self.exponent)])
        powers = units * 2**self.mantissa
        fits = step(size - powers[1:], units[:-1], self.continuous)
        stored = fits @ np.ones((len(units) - 1, 1))
        # of each exponent whether it is the last that fits: the first one always does
        last = fits @ np.eye(len(units) - 1, len(units), 1) + np.eye(len(units))[0]
        last = last - fits @ np.eye(len(units) - 1, len(units))
        scaled = (last * (size / units)) @ np.ones((len(units), 1))
        (first, *_) = columns_of(fits, 1)
        digits = binary_digits(scaled - first * 2**self.mantissa, self.mantissa, self.continuous)
        return beside(digits, binary_digits(stored, self.exponent, self.continuous), negative)

    def dequantise(self, bits: Value) -> Value:
        """Powers of two by products: 2^e is the product of 1 + b_j (2^(2^j) - 1)."""
        every = columns_of(bits, self.width)
        exponent, sign = every[self.mantissa : -1], every[-1]
        power = reduce(mul, (1 + bit * (2.0 ** (2**j) - 1) for j, bit in enumerate(exponent)))
        hidden = 1 - reduce(mul, (1 - bit for bit in exponent))
        places = np.append(2.0 ** np.arange(self.mantissa), np.zeros(1 + self.exponent))
        whole = bits @ places[:, None] + hidden * 2**self.mantissa
        return (1 - 2 * sign) * whole * power * (2 - hidden) * self._unit(0) / 2

    def _unit(self, stored: int) -> float:
        """The distance between neighbouring numbers with this stored exponent; 0 and 1 share theirs."""
        return 2.0 ** (max(stored, 1) - self.bias - self.mantissa)


NumberFormat = FixedPoint | FloatingPoint
"""A finite set of numbers, each a row of bits."""


def bits_of(form: NumberFormat, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The bits of numbers of the format, a row for each."""
    return applied(form.quantise, numbers.reshape(-1, 1))


def require_in_format(form: NumberFormat, numbers: NDArray[np.float64], what: str) -> None:
    """Refuses numbers that the format does not have, and says which and what the nearest would be."""
    if not np.isfinite(numbers).all():
        raise InputError(f"{what} hold a value that is not a finite number")
    column = np.clip(numbers, -form.largest, form.largest).reshape(-1, 1)
    kept = applied(lambda x: form.dequantise(form.quantise(x)), column).reshape(numbers.shape)
    if not np.array_equal(kept, numbers):
        place = tuple(int(i) for i in np.argwhere(kept != numbers)[0])
        raise InputError(
            f"{what} hold {numbers[place]:g}, which the format {form} does not have",
            where=f"entry {place}",
            advice="Round the data first, or choose a format with more bits.",
        )
