"""A transformer on one input as a function of all its matrices, weights shared by all decoder steps."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tapegrad.errors import InputError, Refused
from tapegrad.precision import in_double
from tapegrad.targets.transformer import TransformerNet
from tapegrad.targets.transformer.net import Decoding
from tapegrad.targets.transformer.weights import ATTENTION, KINDS
from tapegrad_papers.theory.problem import Parameters, Problem, corrected, relu

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
    sym1, pos1, states = (net.layout.group(group) for group in ("sym1", "pos1", "st"))
    symbols = jnp.asarray(start.tokens[:, sym1].argmax(axis=1), int)
    places = jnp.asarray(start.tokens - net.E.T[np.asarray(symbols)], float)
    numbers = np.arange(ended.steps)[:, None] >> np.arange(len(pos1)) & 1
    times = jnp.zeros((ended.steps, net.layout.width)).at[:, jnp.asarray(pos1)].set(numbers)

    def outputs(p: Parameters, guide: float) -> Array:
        return _decode(p, p["E"].T[symbols] + places, times, guide, net.temperature)

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
    names = ("W_1", "b_1", *CORRECTION) if corrections else ("W_1", "b_1")
    groups, real = [], []
    for _, run in groupby(
        net.layers, lambda layer: [getattr(layer, field) is None for field in KINDS.values()]
    ):
        matrices: dict[str, list[Any]] = {}
        for layer in run:
            for name in names:
                matrices.setdefault(name, []).append(getattr(layer.feed_forward, name))
            for short, field in KINDS.items():
                attention = getattr(layer, field)
                for name in ATTENTION if attention is not None else ():
                    matrices.setdefault(f"{short}.{name}", []).append(getattr(attention, name))
        groups.append({name: _stack(arrays) for name, arrays in matrices.items()})
        real.append({name: _stack([np.ones_like(a) for a in arrays]) for name, arrays in matrices.items()})
    own = {"h_0": net.h_0, "E": net.E, "theta_cls": net.theta_cls}
    parameters = {name: jnp.asarray(array, float) for name, array in own.items()}
    return {**parameters, "groups": groups}, {**jax.tree.map(jnp.ones_like, parameters), "groups": real}


def _stack(arrays: list[Any]) -> Array:
    shape = np.max([a.shape for a in arrays], axis=0)
    padded = [
        np.pad(a, [(0, want - have) for want, have in zip(shape, a.shape, strict=True)]) for a in arrays
    ]
    return jnp.asarray(np.stack(padded), float)


def _decode(p: Parameters, tokens: Array, times: Array, guide: float, temperature: float) -> Array:
    """All decoder outputs, one row for each step; temperature 0 stands for hard-max."""
    steps, width = times.shape
    remembering = [group["dec.b_K"].shape for group in p["groups"] if "dec.b_K" in group]
    memory = [(jnp.zeros((n, steps, rows)), jnp.zeros((n, steps, width))) for n, rows in remembering]

    def step(carry: Any, at: Any) -> Any:
        output, memory = carry
        number, time = at
        hidden, slot, memory = output + time, 0, list(memory)
        visible = jnp.arange(steps) <= number

        def plain(hidden: Array, layer: Any) -> Any:
            return _feed_forward(layer, hidden, guide), None

        def attending(hidden: Array, inputs: Any) -> Any:
            layer, (keys, values) = inputs
            keys = keys.at[number].set(layer["dec.W_K"] @ hidden + layer["dec.b_K"])
            values = values.at[number].set(layer["dec.W_V"] @ hidden + layer["dec.b_V"])
            hidden = hidden + _attended(layer, "dec", hidden, keys, values, visible, temperature)
            if "enc.W_Q" in layer:
                given_keys = tokens @ layer["enc.W_K"].T + layer["enc.b_K"]
                given_values = tokens @ layer["enc.W_V"].T + layer["enc.b_V"]
                everything = jnp.ones(len(tokens), bool)
                given = given_keys, given_values, everything
                hidden = hidden + _attended(layer, "enc", hidden, *given, temperature)
            return _feed_forward(layer, hidden, guide), (keys, values)

        for group in p["groups"]:
            if "dec.W_Q" in group:
                hidden, memory[slot] = lax.scan(attending, hidden, (group, memory[slot]))
                slot += 1
            else:
                hidden, _ = lax.scan(plain, hidden, group)
        return (hidden, memory), hidden

    _, outputs = lax.scan(step, (p["h_0"], memory), (jnp.arange(steps), times))
    return outputs


def _attended(
    layer: Mapping[str, Array],
    kind: str,
    hidden: Array,
    keys: Array,
    values: Array,
    visible: Array,
    temperature: float,
) -> Array:
    query = layer[f"{kind}.W_Q"] @ hidden + layer[f"{kind}.b_Q"]
    scores = jnp.append(jnp.where(visible, keys @ query, -jnp.inf), layer[f"{kind}.K_0"] @ query)
    best = (scores == scores.max()).astype(float)
    weights = jax.nn.softmax(temperature * scores) if temperature else best / best.sum()
    return weights @ jnp.concatenate([values, layer[f"{kind}.V_0"][None]])


def _feed_forward(layer: Mapping[str, Array], hidden: Array, guide: float) -> Array:
    computed = relu(layer["W_1"] @ hidden + layer["b_1"], guide)
    if "W_2" not in layer:
        return computed
    cut = jnp.maximum(layer["W_2"] @ computed + layer["b_2"], 0)
    return corrected(computed, jnp.maximum(layer["W_3"] @ cut + layer["b_3"], 0), guide)


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
