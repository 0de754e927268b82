"""The two switches of section 5: one lets the labels in, the other lets the primary network out."""

import jax
import jax.numpy as jnp
from jax import Array

from tapegrad.targets.descent.numbers import Numbers

relu = jax.nn.relu


def cutoff(t: Numbers, start: Numbers, end: Numbers) -> Array:
    """1 up to `start`, 0 from `end` on, a line between: two ReLUs, one inside the other, so that both
    plateaus are exact in floating point and have derivative exactly 0. (Two ReLUs side by side, as in
    u - (u - 1), would leave a rounding error on the far plateau.)"""
    return relu(1 - relu((t - start) / (end - start)))


def label_switch(u: Numbers, z: Numbers, epsilon: Numbers) -> Array:
    """s_init of section 5.2: z while |z|^2 is small, u once |z|^2 >= epsilon. At z = 0 its gradient is the
    identity in z and 0 in u: the first step of training copies the labels into z and moves nothing else."""
    reading = cutoff(jnp.sum(z**2), epsilon / 3, 2 * epsilon / 3)
    return (1 - reading) * u + reading * z


def halt_switch(f: Numbers, u: Numbers, low: Numbers, high: Numbers) -> Array:
    """s_net of section 5.3, (27) and (28): u while |u|^2 > 2 high, f once |u|^2 < 2 low. The ramp keeps a
    quarter of the gap clear at both ends, the paper's delta."""
    delta = (high - low) / 2
    halted = cutoff(jnp.sum(u**2), 2 * low + delta, 2 * high - delta)
    return halted * f + (1 - halted) * u
