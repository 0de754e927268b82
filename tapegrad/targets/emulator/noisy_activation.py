"""The activation f* of section 4.2, for decimals and for JAX: 0, then x^3, then 2."""

from decimal import Decimal

import jax.numpy as jnp
from jax import Array


def in_decimals(x: Decimal, dead: Decimal) -> tuple[Decimal, Decimal]:
    """Value and derivative. Where the paper leaves f* open, smooth and nondecreasing pieces: between the dead
    zone and twice that, x^3 times 3 u^2 - 2 u^3; between 1 and 3/2, a cubic."""
    size = abs(x)
    sign = 1 if x > 0 else -1
    if size <= dead:
        return Decimal(0), Decimal(0)
    if size >= Decimal("1.5"):
        return Decimal(2 * sign), Decimal(0)
    if size > 1:
        u = 2 * (size - 1)
        return sign * (1 + u * (3 - u * u) / 2), 3 - 3 * u * u
    if size >= 2 * dead:
        return x**3, 3 * x**2
    u = (size - dead) / dead
    blend, slope = u * u * (3 - 2 * u), 6 * u * (1 - u) / dead
    return x**3 * blend, 3 * x**2 * blend + sign * x**3 * slope


def in_jax(x: Array, dead: float) -> Array:
    """The same; its derivative comes from automatic differentiation."""
    size = jnp.abs(x)
    u = jnp.clip((size - dead) / dead, 0.0, 1.0)
    cubed = jnp.where(size >= 2 * dead, x**3, x**3 * u * u * (3 - 2 * u))
    v = jnp.clip(2 * (size - 1), 0.0, 1.0)
    upper = jnp.sign(x) * jnp.where(size >= 1.5, 2.0, 1 + v * (3 - v * v) / 2)
    return jnp.where(size <= dead, 0.0, jnp.where(size <= 1, cubed, upper))
