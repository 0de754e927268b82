"""A net on given inputs as a function of all its parameters: what attacks and noise work on."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import ArrayLike

from tapegrad._precision import in_double
from tapegrad.circuits.model import batch_of_bits
from tapegrad.errors import InputError, Refused
from tapegrad.networks.form import Affine, Dense, Matrix
from tapegrad.networks.heads import Attention, Block
from tapegrad.targets.relu import ReluNet
from tapegrad.targets.relu.build import relu_layers
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.net import Decoding
from tapegrad_papers.layers import affine, dense
from tapegrad_papers.wei.residual import residual
from tapegrad_papers.wei.stacked import Group, Memory, StackedDecoder, decoder_step, empty_memory

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
    """Layers of which the first few compute and the rest correct. Residual ones compute more than comes out:
    the units behind carry what they read."""
    for layer in layers[:computing]:
        values = dense(layer, values, lambda z: relu(z, guide))
    before = values
    for layer in layers[computing:]:
        values = dense(layer, values, lambda z: relu(z, 0.0))
    return corrected(before[: len(values)], values, guide) if layers[computing:] else values


def corrected(before: Array, after: Array, guide: float) -> Array:
    """`after`; with a guide its derivative also has that of `before`, as if nothing had been corrected."""
    return after + guide * (before - jax.lax.stop_gradient(before))


# A ReLU net on a batch of patterns as a function of its dense matrices.


LARGEST = 1 << 23
"""Most numbers, padding included, in a net that is attacked."""


@in_double
def relu_problem(net: ReluNet, bits: ArrayLike) -> Problem:
    """`F(x, theta)` of section 3 for every pattern: `W_d relu(... relu(W_0 x + b_0) ...) + b_d`."""
    width = max(len(net.input_names), net.width, len(net.output_names))
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


# A transformer on one input as a function of all its matrices, weights shared by all decoder steps.


KINDS = {"dec": "self_attention", "enc": "encoder_attention"}
"""Attentions by the paper's names, as in `dec-attn` and `enc-attn`."""
SIDES = {"Q": "query", "K": "key", "V": "value"}
"""The paper's letters for the maps of an attention."""
MOST_STEPS = 512
"""Longest runs that are attacked."""
CORRECTION = ("W_2", "b_2", "W_3", "b_3")


@in_double
def transformer_problem(
    net: TransformerNet, start: Decoding, corrections: bool = True, residual_layers: bool = False
) -> Problem:
    """`theta_cls . o_n` of section 4.1, where n is the step at which the machine halts on this input (later
    steps change nothing). Where a machine neither accepts nor rejects, every state's `2 o - 1` instead.
    Without corrections a layer ends after its first ReLU."""
    written = Block.expanded if corrections else lambda layer: layer
    if residual_layers:
        written = lambda layer: residual(layer.expanded())  # noqa: E731
    ended = net.advance(start, net.layout.steps + 1, "fast")
    if not net.done(ended):
        raise InputError("the machine does not halt on this input within T steps")
    if ended.steps > MOST_STEPS:
        raise Refused(
            f"the run takes {ended.steps:,} steps, too many to attack", advice="Use a shorter input."
        )
    parameters, real = decoder_parameters(net, written)
    sym1, states = (net.layout.group(group) for group in ("sym1", "st"))
    symbols = jnp.asarray(start.tokens[:, sym1].argmax(axis=1), int)
    places = jnp.asarray(start.tokens - net.E.T[np.asarray(symbols)], float)

    def outputs(p: Parameters, guide: float) -> Array:
        tokens, decoder = p["E"].T[symbols] + places, net.decoder
        return _decode(p, tokens, decoder.time, ended.steps, guide, decoder.temperature, residual_layers)

    last = jnp.asarray(ended.output, float)
    verdict = float(parameters["theta_cls"] @ last)
    signs = jnp.sign(2 * last[jnp.asarray(states)] - 1)

    def margins(p: Parameters, guide: float) -> Array:
        end = outputs(p, guide)[-1]
        if verdict:
            return (np.sign(verdict) * (p["theta_cls"] @ end))[None]
        return signs * (2 * end[jnp.asarray(states)] - 1)

    return Problem(
        parameters=parameters,
        real=real,
        margins=margins,
        bits=lambda p: outputs(p, 0.0) > 0.5,
        windows=_decoder_windows(parameters)
        if corrections
        else (jax.tree.map(lambda _: jnp.ones(()), parameters),),
    )


def decoder_parameters(
    net: TransformerNet, written: Callable[[Block], Block] = Block.expanded
) -> tuple[Parameters, Parameters]:
    """h_0, E, theta_cls and the layers, as they are written out, in groups of neighbours with the same
    modules, each matrix stacked; and which entries are real: rows of queries and keys are padded to
    the most in the group."""
    groups, real = [], []
    for _, run in groupby(
        net.layers, lambda layer: [getattr(layer, field) is None for field in KINDS.values()]
    ):
        matrices: dict[str, list[Any]] = {}
        for layer in run:
            for name, array in _matrices(written(layer)):
                matrices.setdefault(name, []).append(array)
        groups.append({name: _stack(arrays) for name, arrays in matrices.items()})
        real.append({name: _stack([np.ones_like(a) for a in arrays]) for name, arrays in matrices.items()})
    own = {"h_0": net.h_0, "E": net.E, "theta_cls": net.theta_cls}
    parameters = {name: jnp.asarray(array, float) for name, array in own.items()}
    return {**parameters, "groups": groups}, {**jax.tree.map(jnp.ones_like, parameters), "groups": real}


def _matrices(layer: Block) -> Iterator[tuple[str, np.ndarray]]:
    """The matrices of a block under the paper's names."""

    def both(name: str, letter: str, own: Affine | Matrix) -> Iterator[tuple[str, np.ndarray]]:
        written = own.dense()
        yield f"{name}W_{letter}", np.asarray(written.weight)
        yield f"{name}b_{letter}", np.asarray(written.bias)

    for number, own in enumerate(layer.feed_forward, 1):
        yield from both("", str(number), own.map)
    for kind, field in KINDS.items():
        if (attention := getattr(layer, field)) is not None:
            for letter, side in SIDES.items():
                yield from both(f"{kind}.", letter, getattr(attention, side))
            yield f"{kind}.K_0", attention.null_key
            yield f"{kind}.V_0", attention.null_value


def _stack(arrays: list[Any]) -> Array:
    shape = np.max([a.shape for a in arrays], axis=0)
    padded = [
        np.pad(a, [(0, want - have) for want, have in zip(shape, a.shape, strict=True)]) for a in arrays
    ]
    return jnp.asarray(np.stack(padded), float)


def _decode(
    p: Parameters,
    tokens: Array,
    time: tuple[int, ...],
    steps: int,
    guide: float,
    temperature: float | None,
    residual_layers: bool,
) -> Array:
    """All decoder outputs, one row for each step, by the reference backend."""
    network = StackedDecoder(
        tuple(_group(group, residual_layers) for group in p["groups"]), (), jnp.array(time)
    )
    given = jnp.ones(len(tokens), bool)

    def step(carry: tuple[Memory, Array], number: Array) -> tuple[tuple[Memory, Array], Array]:
        memory, output = carry
        carry = decoder_step(
            network, tokens, given, memory, output, number, temperature, lambda f, h: feed(f, h, guide, 1)
        )
        return carry, carry[1]

    start = empty_memory(network, steps), p["h_0"]
    return lax.scan(step, start, jnp.arange(steps))[1]


def _group(matrices: Mapping[str, Array], residual_layers: bool) -> Group:
    """Stacked blocks from matrices under the paper's names."""

    def own(name: str, letter: str) -> Matrix:
        return Matrix(matrices[f"{name}W_{letter}"], matrices[f"{name}b_{letter}"])

    def attention(kind: str) -> Attention | None:
        if f"{kind}.W_Q" not in matrices:
            return None
        query, key, value = (own(f"{kind}.", letter) for letter in SIDES)
        return Attention(query, key, value, matrices[f"{kind}.K_0"], matrices[f"{kind}.V_0"])

    last = "linear" if residual_layers else "relu"
    layers = tuple(Dense(own("", n), last if n == "3" else "relu") for n in "123" if f"W_{n}" in matrices)
    count, _, width = matrices["W_1"].shape
    to = jnp.broadcast_to(jnp.arange(width), (count, width))
    adds_to = to if residual_layers else None
    return Group(Block("", layers, attention("dec"), attention("enc"), adds_to), to, to)


def _decoder_windows(parameters: Parameters) -> tuple[Parameters, ...]:
    """Each layer with the correction of the layer before it; the read-out with the last correction; h_0
    with the first layer, and E with the layer that looks at the input."""
    groups = parameters["groups"]
    starts = np.cumsum([0, *(len(group["b_1"]) for group in groups)])
    looks = [start for group, start in zip(groups, starts, strict=False) if "enc.W_Q" in group]

    def window(number: int) -> Parameters:
        on = [
            {
                name: _for_each_layer(start + np.arange(len(array)), number, name in CORRECTION, array.ndim)
                for name, array in group.items()
            }
            for group, start in zip(groups, starts, strict=False)
        ]
        own = {"h_0": number == 0, "E": number in looks, "theta_cls": number == starts[-1]}
        return {**{name: jnp.asarray(float(value)) for name, value in own.items()}, "groups": on}

    return tuple(window(number) for number in range(int(starts[-1]) + 1))


def _for_each_layer(layers: np.ndarray, number: int, correction: bool, dimensions: int) -> Array:
    on = (layers == number) | (correction & (layers == number - 1))
    return jnp.asarray(on.reshape(-1, *[1] * (dimensions - 1)), float)
