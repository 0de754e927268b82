"""A transformer on one input as a function of all its matrices, weights shared by all decoder steps."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tapegrad._precision import in_double
from tapegrad.errors import InputError, Refused
from tapegrad.networks.backends.jax import Group, Memory, StackedDecoder, decoder_step, empty_memory
from tapegrad.networks.form import Affine, Attention, Block, Dense, Matrix
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.net import KINDS, SIDES, Decoding
from tapegrad_papers.theory.problem import Parameters, Problem, feed

MOST_STEPS = 512
"""Longest runs that are attacked."""
CORRECTION = ("W_2", "b_2", "W_3", "b_3")


@in_double
def transformer_problem(net: TransformerNet, start: Decoding, corrections: bool = True) -> Problem:
    """`theta_cls . o_n` of section 4.1, where n is the step at which the machine halts on this input (later
    steps change nothing). Where a machine neither accepts nor rejects, every state's `2 o - 1` instead.
    Without corrections a layer ends after its first ReLU."""
    ended = net.advance(start, net.layout.steps + 1, "fast")
    if not net.done(ended):
        raise InputError("the machine does not halt on this input within T steps")
    if ended.steps > MOST_STEPS:
        raise Refused(
            f"the run takes {ended.steps:,} steps, too many to attack", advice="Use a shorter input."
        )
    parameters, real = _parameters(net, corrections)
    sym1, states = (net.layout.group(group) for group in ("sym1", "st"))
    symbols = jnp.asarray(start.tokens[:, sym1].argmax(axis=1), int)
    places = jnp.asarray(start.tokens - net.E.T[np.asarray(symbols)], float)

    def outputs(p: Parameters, guide: float) -> Array:
        tokens, decoder = p["E"].T[symbols] + places, net.decoder
        return _decode(p, tokens, decoder.time, ended.steps, guide, decoder.temperature)

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
        windows=_windows(parameters) if corrections else (jax.tree.map(lambda _: jnp.ones(()), parameters),),
    )


def _parameters(net: TransformerNet, corrections: bool) -> tuple[Parameters, Parameters]:
    """h_0, E, theta_cls and the layers in groups of neighbours with the same modules, each matrix stacked;
    and which entries are real: rows of queries and keys are padded to the most in the group."""
    groups, real = [], []
    for _, run in groupby(
        net.layers, lambda layer: [getattr(layer, field) is None for field in KINDS.values()]
    ):
        matrices: dict[str, list[Any]] = {}
        for layer in run:
            for name, array in _matrices(layer.expanded() if corrections else layer):
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

    for number, dense in enumerate(layer.feed_forward, 1):
        yield from both("", str(number), dense.map)
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
    p: Parameters, tokens: Array, time: tuple[int, ...], steps: int, guide: float, temperature: float | None
) -> Array:
    """All decoder outputs, one row for each step, by the reference backend."""
    network = StackedDecoder(tuple(_group(group) for group in p["groups"]), (), jnp.array(time))
    given = jnp.ones(len(tokens), bool)

    def step(carry: tuple[Memory, Array], number: Array) -> tuple[tuple[Memory, Array], Array]:
        memory, output = carry
        carry = decoder_step(
            network, tokens, given, memory, output, number, temperature, lambda f, h: feed(f, h, guide, 1)
        )
        return carry, carry[1]

    start = empty_memory(network, steps), p["h_0"]
    return lax.scan(step, start, jnp.arange(steps))[1]


def _group(matrices: Mapping[str, Array]) -> Group:
    """Stacked blocks from matrices under the paper's names."""

    def own(name: str, letter: str) -> Matrix:
        return Matrix(matrices[f"{name}W_{letter}"], matrices[f"{name}b_{letter}"])

    def attention(kind: str) -> Attention | None:
        if f"{kind}.W_Q" not in matrices:
            return None
        query, key, value = (own(f"{kind}.", letter) for letter in SIDES)
        return Attention(query, key, value, matrices[f"{kind}.K_0"], matrices[f"{kind}.V_0"])

    layers = tuple(Dense(own("", n), "relu") for n in "123" if f"W_{n}" in matrices)
    to = jnp.broadcast_to(jnp.arange(matrices["b_1"].shape[1]), matrices["b_1"].shape)
    return Group(Block("", layers, attention("dec"), attention("enc")), to, to)


def _windows(parameters: Parameters) -> tuple[Parameters, ...]:
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
