"""JAX, compiled or operation by operation, on the device that it has."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from tapegrad._conformance.graph import Graph
from tapegrad._conformance.runtimes.base import (
    ArrayOperations,
    Program,
    Unsupported,
    cast,
    trained,
    values_of,
    wanted_values,
)
from tapegrad._conformance.training import Training

TF32 = "tf32"
OPTIONS = {"highest": "highest", "default": None, TF32: "tensorfloat32", "eager": "highest"}
"""For each level what is asked of the products of float32 matrices."""


class JaxOperations(ArrayOperations):
    """Arrays of JAX."""

    def constant(self, array: NDArray[Any]) -> jax.Array:
        return jnp.asarray(cast(array, self.format))

    def product(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.matmul(x, y, preferred_element_type=jnp.int32 if x.dtype == jnp.int8 else None)

    def relu(self, x: jax.Array) -> jax.Array:
        return jax.nn.relu(x)

    def gathered(self, x: jax.Array, inputs: jax.Array) -> jax.Array:
        found = x[:, inputs]
        return found.astype(jnp.int32) if x.dtype == jnp.int8 else found

    def convolved(self, x: jax.Array, kernel: jax.Array, around: int) -> jax.Array:
        kind = jnp.int32 if x.dtype == jnp.int8 else None
        pads = [(around, around)] * 2
        return lax.conv_general_dilated(x, kernel, (1, 1), pads, preferred_element_type=kind)

    def below(self, first: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.concatenate([first, x])

    def to_bytes(self, x: jax.Array) -> jax.Array:
        return x.astype(jnp.int8)

    def best(self, x: jax.Array) -> jax.Array:
        return (x == x.max(-1, keepdims=True)).astype(x.dtype)


def _asked(level: str) -> Any:
    """The context of a level."""
    if level == TF32 and jax.default_backend() == "cpu":
        raise Unsupported("TF32 is a format of accelerators, and JAX has none here")
    own = OPTIONS[level]
    return nullcontext() if own is None else jax.default_matmul_precision(own)


def prepare(graph: Graph, name: str, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run."""
    jax.config.update("jax_enable_x64", name == "float64")
    _asked(level)
    operations = JaxOperations(name)
    operations.ready(graph)

    def run(given: dict[str, jax.Array]) -> list[jax.Array]:
        return wanted_values(graph, operations, given, wanted)

    compiled = run if level == "eager" else jax.jit(run)

    def program(inputs: Any) -> dict[str, NDArray[Any]]:
        with _asked(level):
            found = compiled({key: jnp.asarray(own) for key, own in inputs.items()})
        return dict(zip(wanted, map(np.asarray, found), strict=True))

    return program


def train(training: Training, level: str) -> dict[str, NDArray[Any]]:
    """By automatic differentiation."""
    jax.config.update("jax_enable_x64", training.format == "float64")
    kind = np.dtype(training.format)
    levels = [(jnp.asarray(own.sources), jnp.asarray(own.into.astype(kind))) for own in training.levels]

    def loss(weights: list[jax.Array], row: jax.Array, label: jax.Array) -> tuple[jax.Array, list[jax.Array]]:
        values = values_of(levels, weights, row, lambda v, w: jnp.concatenate([v, w]))
        return (values[-1][0] - label) ** 2, values

    def descend(weights: list[jax.Array], row: jax.Array, label: jax.Array) -> Any:
        slopes, values = jax.grad(loss, has_aux=True)(weights, row, label)
        rate = kind.type(training.rate)
        return values, [own - rate * slope for own, slope in zip(weights, slopes, strict=True)]

    compiled = descend if level == "eager" else jax.jit(descend)

    def step(weights: list[Any], row: NDArray[Any], label: float) -> tuple[list[Any], list[Any]]:
        with _asked(level):
            return compiled(weights, jnp.asarray(row.astype(kind)), jnp.asarray(kind.type(label)))

    return trained(training, step, [jnp.asarray(own.astype(kind)) for own in training.weights])
