"""A compiled net as a layer of somebody else's model, in PyTorch or in Equinox.

The layer takes numbers and takes those above 1/2 for 1, all others for 0. It gives 0 and 1, exactly what the
source gives for these bits. That is a step function, whose derivative is 0 or does not exist. What a model
can learn from is the *multilinear extension* of the circuit: the one function that is linear in each input
and agrees with the circuit on all bits. At a row of bits x its derivative is a difference that the net
computes itself,

    d out_j / d x_i  =  out_j(x with x_i = 1) - out_j(x with x_i = 0),

and the rounding before it is passed straight through. `gradient="flips"` gives this, for two forward passes
for each input; `gradient="none"` gives none. (Weights that are trained have the network's own gradient; the
outputs of the paper's form, which are 0 and 1 up to rounding, are rounded and that is passed straight through
as well.) Where x is drawn, each bit by itself with probability p_i, the
mean of this difference is the derivative of the expected output by p_i: the gradient is right on average.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tapegrad._compile import Compiled
from tapegrad.errors import InputError, Refused, described
from tapegrad.targets.relu import CompactNet, ReluNet

GRADIENTS = ("flips", "none")


def layer_net(compiled: Compiled, gradient: str) -> CompactNet | ReluNet:
    """The net of a layer; refused where there is none."""
    if gradient not in GRADIENTS:
        raise InputError(
            f"there is no gradient {gradient!r}", advice=f"Choose one of {', '.join(GRADIENTS)}."
        )
    if not isinstance(compiled, Compiled):
        raise InputError(
            f"a layer is made of a compiled net, and this is {described(compiled)}",
            advice='Compile it first, with tg.compile(source, "relu").',
        )
    if not isinstance(compiled.net, CompactNet | ReluNet):
        raise Refused(
            f"a net of target {compiled.target.name!r} takes steps of its own, and is no layer that "
            "maps bits to bits",
            advice='Compile for a layer with tg.compile(source, "relu").',
        )
    return compiled.net


def rows_of(x: Any, inputs: tuple[str, ...]) -> Any:
    """A row for each pattern; refused where the last axis has not a place for each input."""
    if x.ndim == 0 or x.shape[-1] != len(inputs):
        ends = inputs if len(inputs) < 3 else (inputs[0], "...", inputs[-1])
        raise InputError(
            f"the layer takes arrays of shape (..., {len(inputs)}), and was given {tuple(x.shape)}",
            advice=f"The last axis has a place for each bit, {' '.join(ends)}, the lowest of a number first.",
        )
    return x.reshape(-1, len(inputs))


class _Units(eqx.Module):
    """A compact net: units that read any earlier ones. All weights are whole numbers. Frozen, they are kept
    as such, which `eqx.filter_grad` passes over."""

    weights: Any
    biases: Any
    out_weights: Any
    out_biases: Any
    places: np.ndarray
    bounds: tuple[int, ...] = eqx.field(static=True)
    starts: tuple[int, ...] = eqx.field(static=True)
    rows: np.ndarray
    out_places: np.ndarray

    def __init__(self, net: CompactNet, trainable: bool) -> None:
        units, kind = net.own, net.dtype if trainable else np.dtype(np.int32)
        for name in ("weights", "biases", "out_weights", "out_biases"):
            setattr(self, name, jnp.asarray(getattr(units, name), kind))
        self.places, self.out_places = np.asarray(units.places), np.asarray(units.out_places)
        self.bounds, self.starts = tuple(units.bounds.tolist()), tuple(units.starts.tolist())
        self.rows = np.repeat(np.arange(len(units.biases)), units.counts)

    def __call__(self, x: Array) -> Array:
        values = x.T
        for begin, end in zip(self.bounds, self.bounds[1:], strict=False):
            own = slice(self.starts[begin], self.starts[end])
            terms = self.weights[own, None] * values[self.places[own]]
            sums = jax.ops.segment_sum(terms, self.rows[own] - begin, end - begin)
            values = jnp.concatenate([values, jax.nn.relu(sums + self.biases[begin:end, None])])
        return (self.out_weights[:, None] * values[self.out_places] + self.out_biases[:, None]).T


class _Layers(eqx.Module):
    """The paper's form: layer after layer. Frozen, the weights are kept as whole numbers that have the same
    bits, so that `eqx.filter_grad` passes over them as well."""

    weights: Any
    biases: Any
    inputs: np.ndarray
    bounds: tuple[int, ...] = eqx.field(static=True)
    kind: str = eqx.field(static=True)

    def __init__(self, net: ReluNet, trainable: bool) -> None:
        self.weights, self.biases = jnp.asarray(net.stack.weights), jnp.asarray(net.stack.biases)
        self.kind = self.weights.dtype.name
        if not trainable:
            same_bits = jnp.dtype(f"int{8 * self.weights.dtype.itemsize}")
            self.weights = jax.lax.bitcast_convert_type(self.weights, same_bits)
            self.biases = jax.lax.bitcast_convert_type(self.biases, same_bits)
        self.inputs, self.bounds = np.asarray(net.stack.inputs), tuple(net.stack.bounds.tolist())

    def __call__(self, x: Array) -> Array:
        weights, biases = self.weights, self.biases
        if weights.dtype.kind == "i":
            weights, biases = (jax.lax.bitcast_convert_type(own, self.kind) for own in (weights, biases))
        values = x.T
        for number, (begin, end) in enumerate(zip(self.bounds, self.bounds[1:], strict=False)):
            values = jax.nn.relu(values) if number else values
            read = values[self.inputs[begin:end]]
            values = (weights[begin:end, :, None] * read).sum(1) + biases[begin:end, None]
        return values.T


class EquinoxLayer(eqx.Module):
    """The net as an Equinox module: `layer(x)` for `x` of shape (..., inputs) gives (..., outputs)."""

    net: _Units | _Layers
    gradient: str = eqx.field(static=True)
    precision: str = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, compiled: Compiled, *, gradient: str = "flips", trainable: bool = False) -> None:
        net = layer_net(compiled, gradient)
        self.net = _Units(net, trainable) if isinstance(net, CompactNet) else _Layers(net, trainable)
        self.gradient, self.inputs = gradient, tuple(net.input_names)
        self.precision = net.dtype.name if isinstance(self.net, _Units) else self.net.kind

    def bits(self, x: Array) -> Array:
        """The net's outputs, 0 and 1, for rows of bits."""
        found = self.net(x)
        nothing = (found - jax.lax.stop_gradient(found)) / 2
        return (jax.lax.stop_gradient(found) > 0).astype(found.dtype) + nothing

    def __call__(self, x: Array) -> Array:
        rows = rows_of(x, self.inputs)
        hard = jax.lax.stop_gradient(rows > 0.5).astype(self.precision)
        found = self.bits(hard)
        if self.gradient == "flips":
            flat = flipped(jnp, hard)
            ones, zeros = (jax.lax.stop_gradient(self.bits(own)) for own in flat)
            slopes = (ones - zeros).reshape(*hard.shape, found.shape[-1])
            nothing = rows - jax.lax.stop_gradient(rows)
            found = found + jnp.einsum("bi,bio->bo", nothing.astype(found.dtype), slopes)
        return found.reshape(*x.shape[:-1], -1)


def flipped(library: Any, hard: Any) -> tuple[Any, Any]:
    """For every row and every input the row with this input 1, and with it 0, by PyTorch or by JAX."""
    one = library.eye(hard.shape[-1], dtype=hard.dtype)
    one = one.to(hard.device) if hasattr(one, "to") and hasattr(hard, "new_zeros") else one
    others = hard[:, None, :] * (1 - one)
    width = hard.shape[-1]
    return (others + one).reshape(-1, width), others.reshape(-1, width)
