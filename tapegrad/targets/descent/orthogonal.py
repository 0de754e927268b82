"""A unit vector orthogonal to the labels (Welper's appendix C)."""

import jax.numpy as jnp
from jax import Array

from tapegrad.targets.descent.numbers import Numbers


def orthogonal(z: Numbers, epsilon: Numbers) -> Array:
    """f_perp: the projection of v = e_1, or of w = e_2 where z is too nearly parallel to v, normalised.

    "Too nearly" is an angle under 45 degrees: then w is at 45 degrees or more, so whichever is taken keeps at
    least half of its squared length. Lengths are held above epsilon / 3, which |z|^2 >= epsilon never
    notices, and which keeps the value finite at z = 0, before the labels are read.
    """
    flat = z.reshape(-1)
    v, w = jnp.eye(2, flat.size, dtype=flat.dtype)
    length = jnp.maximum(flat @ flat, epsilon / 3)
    axis = jnp.where(2 * (flat @ v) ** 2 > length, w, v)
    projected = axis - (flat @ axis) / length * flat
    unit = projected / jnp.sqrt(jnp.maximum(projected @ projected, 1 / 4))
    return unit.reshape(z.shape)
