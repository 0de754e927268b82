"""Number formats, and the networks that turn numbers into bits and back (Welper's appendix B).

Both directions use sums, products and the Heaviside step only. With `continuous` the step becomes the ramp
psi_epsilon of the paper, two ReLUs, with epsilon the smallest distance that the format allows at that place,
so that the result is the same on every number of the format. Bits are in order, least significant first.
"""

from typing import Protocol

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.targets.descent.loss import Arrays, Scalar, cutoff


class NumberFormat(Protocol):
    """A finite set of numbers, each a row of bits."""

    @property
    def width(self) -> int:
        """Bits of a number."""
        ...

    @property
    def largest(self) -> float:
        """The largest absolute value."""
        ...

    @property
    def smallest(self) -> float:
        """The smallest absolute value above 0."""
        ...

    def quantise(self, numbers: Float[Arrays, "*n"]) -> Float[Array, "*n bits"]:
        """The bits of numbers of the format, along a new last axis."""
        ...

    def dequantise(self, bits: Float[Arrays, "*n bits"]) -> Float[Array, "*n"]:
        """The numbers that rows of bits stand for."""
        ...


def step(
    t: Float[Arrays, "*n"], epsilon: Scalar | Float[Arrays, " last"], continuous: bool
) -> Float[Array, "*n"]:
    """1 for t >= 0; 0 for t < 0, or with `continuous` for t <= -epsilon, and a line between."""
    if continuous:
        return 1 - cutoff(t + epsilon, 0.0, epsilon)
    return jnp.where(t >= 0, 1.0, 0.0)


def binary_digits(number: Float[Arrays, "*n"], width: int, continuous: bool) -> Float[Array, "*n {width}"]:
    """The digits of whole numbers below 2^width: from the top down, subtract what fits (two layers each)."""
    digits = []
    for place in reversed(range(width)):
        digit = step(number - 2**place, 1.0, continuous)
        number = number - digit * 2**place
        digits.append(digit)
    return jnp.stack(digits[::-1], axis=-1)


MOST_BITS = 32
"""Of a fixed-point number."""


class FixedPoint(eqx.Module):
    """Two's complement: `width` bits, `fraction` of them after the point."""

    width: int = eqx.field(static=True)
    fraction: int = eqx.field(static=True, default=0)
    continuous: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
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

    def quantise(self, numbers: Float[Arrays, "*n"]) -> Float[Array, "*n bits"]:
        """Shifted by half the range the numbers are whole and not negative; the top bit is then inverted."""
        shifted = numbers * 2**self.fraction + 2 ** (self.width - 1)
        digits = binary_digits(shifted, self.width, self.continuous)
        return jnp.concatenate([digits[..., :-1], 1 - digits[..., -1:]], axis=-1)

    def dequantise(self, bits: Float[Arrays, "*n bits"]) -> Float[Array, "*n"]:
        """One linear layer."""
        places = np.array([*(2.0**i for i in range(self.width - 1)), -(2.0 ** (self.width - 1))])
        return bits @ places / 2**self.fraction


class FloatingPoint(eqx.Module):
    """Sign, `exponent` bits and `mantissa` bits, with numbers below the smallest exponent as usual; there are
    no infinities: every pattern is a number. In order: mantissa, exponent, sign."""

    exponent: int = eqx.field(static=True)
    mantissa: int = eqx.field(static=True)
    continuous: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
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

    def quantise(self, numbers: Float[Arrays, "*n"]) -> Float[Array, "*n bits"]:
        """The paper's loop over the exponents, unrolled: one step for each power of two says how many of
        them fit; the mantissa is the number scaled by the last that does."""
        size = jnp.abs(numbers)
        negative = 1 - step(numbers, self._unit(1) / 2, self.continuous)
        units = np.array([self._unit(stored) for stored in range(2**self.exponent)])
        powers = units * 2**self.mantissa
        fits = step(size[..., None] - powers[1:], units[:-1], self.continuous)
        stored = jnp.sum(fits, axis=-1)
        ones = jnp.ones_like(fits[..., :1])
        last = jnp.concatenate([ones, fits], -1) - jnp.concatenate([fits, 0 * ones], -1)
        scaled = jnp.sum(last * (size[..., None] / units), axis=-1)
        digits = binary_digits(scaled - fits[..., 0] * 2**self.mantissa, self.mantissa, self.continuous)
        exponent = binary_digits(stored, self.exponent, self.continuous)
        return jnp.concatenate([digits, exponent, negative[..., None]], axis=-1)

    def dequantise(self, bits: Float[Arrays, "*n bits"]) -> Float[Array, "*n"]:
        """Powers of two by products: 2^e is the product of 1 + b_j (2^(2^j) - 1)."""
        mantissa, exponent, sign = jnp.split(bits, [self.mantissa, self.mantissa + self.exponent], axis=-1)
        factors = np.array([2.0 ** (2**j) - 1 for j in range(self.exponent)])
        power = jnp.prod(1 + exponent * factors, axis=-1)
        hidden = 1 - jnp.prod(1 - exponent, axis=-1)
        whole = mantissa @ (2.0 ** np.arange(self.mantissa)) + hidden * 2**self.mantissa
        return (1 - 2 * sign[..., 0]) * whole * power * (2 - hidden) * self._unit(0) / 2

    def _unit(self, stored: int) -> float:
        """The distance between neighbouring numbers with this stored exponent; 0 and 1 share theirs."""
        return 2.0 ** (max(stored, 1) - self.bias - self.mantissa)


@eqx.filter_jit
def _round_trip(form: NumberFormat, numbers: Array | NDArray[np.float64]) -> Array:
    return form.dequantise(form.quantise(jnp.asarray(numbers)))


def require_in_format(form: NumberFormat, numbers: NDArray[np.float64], what: str) -> None:
    """Refuses numbers that the format does not have, and says which and what the nearest would be."""
    if not np.isfinite(numbers).all():
        raise InputError(f"{what} hold a value that is not a finite number")
    kept = np.asarray(_round_trip(form, np.clip(numbers, -form.largest, form.largest)))
    if not np.array_equal(kept, numbers):
        place = tuple(int(i) for i in np.argwhere(kept != numbers)[0])
        raise InputError(
            f"{what} hold {numbers[place]:g}, which the format {form} does not have",
            where=f"entry {place}",
            advice="Round the data first, or choose a format with more bits.",
        )
