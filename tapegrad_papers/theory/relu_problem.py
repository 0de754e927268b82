"""A ReLU net on a batch of patterns as a function of its dense matrices."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import ArrayLike

from tapegrad._precision import in_double
from tapegrad.circuits.model import batch_of_bits
from tapegrad.errors import Refused
from tapegrad.networks.backends.jax import affine
from tapegrad.networks.form import Dense, Matrix
from tapegrad.targets.relu import ReluNet
from tapegrad.targets.relu.constants import relu_layers
from tapegrad_papers.theory.problem import Parameters, Problem, feed

LARGEST = 1 << 23
"""Most numbers, padding included, in a net that is attacked."""


@in_double
def relu_problem(net: ReluNet, bits: ArrayLike) -> Problem:
    """`F(x, theta)` of section 3 for every pattern: `W_d relu(... relu(W_0 x + b_0) ...) + b_d`."""
    width = max(len(net.input_names), int(np.diff(net.stack.bounds).max()), net.padded_width or 0)
    if (net.depth + 1) * width * width > LARGEST:
        raise Refused(
            f"{net.depth + 1} layers of width {width:,} are too many parameters to attack",
            advice="Try a smaller circuit.",
        )
    if not net.output_names:
        raise Refused("the net has no outputs, so no change can flip one")
    given = batch_of_bits(bits, net.input_names, "net")
    batch = jnp.asarray(np.pad(given.astype(float), ((0, 0), (0, width - given.shape[1]))))
    parameters, real = _stacked(net, width)
    each = relu_layers(net.correction)

    def outputs(p: Parameters, guide: float) -> Array:
        def circuit_layer(values: Array, matrices: tuple[Array, Array]) -> tuple[Array, None]:
            layers = tuple(Dense(Matrix(*pair), "relu") for pair in zip(*matrices, strict=True))
            return feed(layers, values, guide, 2), None

        grouped = jax.tree.map(lambda a: a[:-1].reshape(-1, each, *a.shape[1:]), (p["W"], p["b"]))
        values, _ = lax.scan(circuit_layer, batch.T, grouped)
        return affine(Matrix(p["W"][-1], p["b"][-1]), values).T[:, : len(net.output_names)]

    signs = jnp.sign(jax.jit(outputs)(parameters, 0.0))
    return Problem(
        parameters=parameters,
        real=real,
        margins=lambda p, guide: (signs * outputs(p, guide)).reshape(-1),
        bits=lambda p: outputs(p, 0.0) > 0,
        windows=_windows(net.depth + 1, each),
    )


def _stacked(net: ReluNet, width: int) -> tuple[Parameters, Parameters]:
    """All `W_i` and `b_i` in two arrays, and which of their entries there are."""
    shapes = {"W": (net.depth + 1, width, width), "b": (net.depth + 1, width)}
    found = {name: np.zeros(shape) for name, shape in shapes.items()}
    real = {name: np.zeros(shape) for name, shape in shapes.items()}
    for layer in range(net.depth + 1):
        weight, bias = net.dense_layer(layer)
        rows, columns = weight.shape
        found["W"][layer, :rows, :columns], found["b"][layer, :rows] = weight, bias
        real["W"][layer, :rows, :columns] = real["b"][layer, :rows] = 1
    return jax.tree.map(jnp.asarray, found), jax.tree.map(jnp.asarray, real)


def _windows(layers: int, each: int) -> tuple[Parameters, ...]:
    """The gates of a circuit layer with the corrections before and after them. A net without corrections
    has one window: everything."""
    number = np.arange(layers)
    first = range(0, layers, each) if each == 4 else [None]
    on = [(number >= f - 2) & (number < f + 4) if f is not None else number >= 0 for f in first]
    return tuple({"W": jnp.asarray(o[:, None, None], float), "b": jnp.asarray(o[:, None], float)} for o in on)
