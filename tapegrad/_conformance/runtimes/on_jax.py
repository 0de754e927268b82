"""JAX, compiled or operation by operation, on the device that it has."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from numpy.typing import NDArray

from tapegrad._conformance.formats import Form
from tapegrad._conformance.runtimes.base import ArrayRuntime, Program, Unsupported, program_of, trained
from tapegrad._conformance.training import Training
from tapegrad.networks.backends.jax import Jax

TF32 = "tf32"
OPTIONS = {"highest": "highest", "default": None, TF32: "tensorfloat32", "eager": "highest"}
"""For each level what is asked of the products of float32 matrices."""


class JaxRuntime(ArrayRuntime, Jax):
    """Arrays of JAX. Products are asked for as the level says, not as the backend would."""

    def __init__(self, form: Form, weights: Any = None) -> None:
        super().__init__(form.cast, weights)
        self.form = form

    def constant_of(self, array: NDArray[Any]) -> NDArray[Any]:
        """Made an array of JAX by what reads it: one made while a function is traced does not outlive it."""
        return array

    def product_of(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.matmul(x, y, preferred_element_type=jnp.int32 if x.dtype == jnp.int8 else None)

    def convolved(self, x: jax.Array, kernel: NDArray[Any]) -> jax.Array:
        kind = jnp.int32 if x.dtype == jnp.int8 else None
        own, pads = jnp.asarray(kernel), [(1, 1)] * 2
        grid = lax.conv_general_dilated(
            x.transpose(2, 0, 1)[None], own, (1, 1), pads, preferred_element_type=kind
        )
        return grid[0].transpose(1, 2, 0)

    def as_type(self, x: jax.Array, name: str) -> jax.Array:
        return x.astype(name)


def _asked(level: str) -> Any:
    """The context of a level."""
    if level == TF32 and jax.default_backend() == "cpu":
        raise Unsupported("TF32 is a format of accelerators, and JAX has none here")
    own = OPTIONS[level]
    return nullcontext() if own is None else jax.default_matmul_precision(own)


def _compiled(level: str) -> Any:
    return (lambda run: run) if level == "eager" else jax.jit


def prepare(form: Form, level: str, wanted: Sequence[str]) -> Program:
    """The network, ready to run."""
    jax.config.update("jax_enable_x64", form.format == "float64")
    _asked(level)
    program = program_of(JaxRuntime(form), wanted, jnp.asarray, compiled=_compiled(level))

    def asked(inputs: Any) -> dict[str, NDArray[Any]]:
        with _asked(level):
            return program(inputs)

    return asked


def train(training: Training, level: str) -> dict[str, NDArray[Any]]:
    """By automatic differentiation."""
    form = training.form
    jax.config.update("jax_enable_x64", form.format == "float64")

    def loss(weights: dict[str, jax.Array], row: jax.Array, label: jax.Array) -> tuple[jax.Array, Any]:
        values = JaxRuntime(form, weights).wanted({"row": row}, training.levels)
        return (values[-1][0, 0] - label) ** 2, values

    def descend(weights: dict[str, jax.Array], row: jax.Array, label: jax.Array) -> Any:
        slopes, values = jax.grad(loss, has_aux=True)(weights, row, label)
        rate = label.dtype.type(training.rate)
        return values, {name: own - rate * slopes[name] for name, own in weights.items()}

    with _asked(level):
        return trained(training, _compiled(level)(descend), jnp.asarray)
