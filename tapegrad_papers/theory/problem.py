"""A net on given inputs as a function of all its parameters: what attacks and noise work on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tapegrad.networks.backends.jax import dense
from tapegrad.networks.form import Dense

Parameters = Any
"""A pytree of ordinary matrices, zeros included, in stacks of layers."""

LEAK = 0.2
"""Slope of a ReLU that is off, in the slopes that guide an attack."""


@dataclass(frozen=True, eq=False)
class Problem:
    """`margins(parameters, guide)` are the outputs with the sign that makes them positive as long as the
    predictions are right. `guide` is 0 or 1: at 1 the values are the same, but their derivatives pass through
    corrections and ReLUs that are off, where the true ones vanish. They only tell an attack where to look."""

    parameters: Parameters
    real: Parameters
    """1 for every parameter; 0 for padding, with which layers are brought to one shape to compile quickly."""
    margins: Callable[[Parameters, float], Array]
    bits: Callable[[Parameters], Array]
    """Everything that is decoded from the net, as bits."""
    windows: tuple[Parameters, ...]
    """Parts of the net, as pytrees of 0 and 1 for each layer: neighbours with nothing corrected in between.
    Noise spread over more than one part is corrected in each, and wasted."""


def relu(z: Array, guide: float) -> Array:
    """`max(z, 0)`; with a guide its derivative is never 0."""
    off = LEAK * jnp.minimum(z, 0)
    return jnp.maximum(z, 0) + guide * (off - jax.lax.stop_gradient(off))


def feed(layers: tuple[Dense, ...], values: Array, guide: float, computing: int) -> Array:
    """Layers of which the first few compute and the rest correct."""
    for layer in layers[:computing]:
        values = dense(layer, values, lambda z: relu(z, guide))
    before = values
    for layer in layers[computing:]:
        values = dense(layer, values, lambda z: relu(z, 0.0))
    return corrected(before, values, guide) if layers[computing:] else values


def corrected(before: Array, after: Array, guide: float) -> Array:
    """`after`; with a guide its derivative also has that of `before`, as if nothing had been corrected."""
    return after + guide * (before - jax.lax.stop_gradient(before))
