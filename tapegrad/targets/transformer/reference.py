"""The reference engine: every attention computed as section 4.1 writes it, keys and values cached."""

from functools import partial
from itertools import groupby
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tapegrad.targets.transformer.layers import Attention, TransformerLayer

EXACT = lax.Precision.HIGHEST
"""Never TF32: scores are integers, and they stay integers."""


class Heads(NamedTuple):
    """One attention for each layer of a group, padded with zero rows to one shape. `W_V`, `b_V` and `V_0` are
    cut down to the coordinates where any of them is not 0, `to`: the rest would only add zeros."""

    W_Q: jax.Array
    b_Q: jax.Array
    W_K: jax.Array
    b_K: jax.Array
    W_V: jax.Array
    b_V: jax.Array
    K_0: jax.Array
    V_0: jax.Array
    to: jax.Array


class Group(NamedTuple):
    """Consecutive layers with the same modules, stacked so that one compiled loop runs them all."""

    W_1: jax.Array
    b_1: jax.Array
    decoder: Heads | None
    encoder: Heads | None


class Network(NamedTuple):
    """All that the compiled loop needs: weights, read-outs, and where time is written."""

    groups: tuple[Group, ...]
    thresholds: jax.Array
    time: jax.Array
    theta_halt: jax.Array


class Memory(NamedTuple):
    """Keys and values of the steps so far, for each group with self-attention: [layer, time, row]."""

    keys: tuple[jax.Array, ...]
    values: tuple[jax.Array, ...]


def stack(layers: tuple[TransformerLayer, ...], time: list[int], theta_halt: np.ndarray) -> Network:
    """The layers as a few stacks of arrays. Widths are padded to round numbers with coordinates that stay
    0, as the paper pads them, so that nets of similar size share compiled code."""
    width = _round_up(len(layers[0].feed_forward.b_1), 64)
    groups = []
    for _, run in groupby(layers, _modules):
        members = list(run)
        decoder = [layer.self_attention for layer in members if layer.self_attention is not None]
        encoder = [layer.encoder_attention for layer in members if layer.encoder_attention is not None]
        groups.append(
            Group(
                jnp.stack([_pad(layer.feed_forward.W_1, (width, width)) for layer in members]),
                jnp.stack([_pad(layer.feed_forward.b_1, (width,)) for layer in members]),
                _heads(decoder, width) if decoder else None,
                _heads(encoder, width) if encoder else None,
            )
        )
    feed = layers[0].feed_forward
    thresholds = jnp.array([feed.low, feed.high, feed.gain], jnp.float32)
    return Network(tuple(groups), thresholds, jnp.array(time), jnp.asarray(_pad(theta_halt, (width,))))


def empty_memory(network: Network, steps: int) -> Memory:
    """Room for steps 0 to `steps`."""
    heads = [group.decoder for group in network.groups if group.decoder is not None]
    room = _round_up(steps + 1, 64)
    keys = tuple(jnp.zeros((h.b_K.shape[0], room, h.b_K.shape[1]), jnp.float32) for h in heads)
    values = tuple(jnp.zeros((h.b_V.shape[0], room, h.b_V.shape[1]), jnp.float32) for h in heads)
    return Memory(keys, values)


@partial(jax.jit, static_argnames=("softmax",), donate_argnames=("memory",))
def advance(
    network: Network,
    encoder: jax.Array,
    given: jax.Array,
    memory: Memory,
    output: jax.Array,
    step: jax.Array,
    last: jax.Array,
    temperature: jax.Array,
    softmax: bool,
) -> tuple[Memory, jax.Array, jax.Array]:
    """Decoder steps from `step` on, until `last` or the halt. `output` is o_{step-1}, or h_0 for step 0.

    `encoder` holds the encoder's outputs; rows where `given` is False are padding and are never attended to.
    """

    def going(carry: tuple[Memory, jax.Array, jax.Array]) -> jax.Array:
        _, output, step = carry
        return (step <= last) & ~halted(network, output)

    def one(carry: tuple[Memory, jax.Array, jax.Array]) -> tuple[Memory, jax.Array, jax.Array]:
        memory, output, step = carry
        hidden = output.at[network.time].add((step >> jnp.arange(len(network.time))) & 1)  # + beta(i)
        keys, values, slot = list(memory.keys), list(memory.values), 0
        past = jnp.arange(keys[0].shape[1]) < step
        attend = partial(_attend, temperature=temperature, softmax=softmax)
        for group in network.groups:
            if group.decoder is None:
                hidden, _ = lax.scan(
                    partial(_plain_layer, network.thresholds), hidden, (group.W_1, group.b_1)
                )
                continue
            layer = partial(_attention_layer, network.thresholds, attend, encoder, given, past)
            hidden, (key, value) = lax.scan(layer, hidden, (group, keys[slot], values[slot]))
            keys[slot] = keys[slot].at[:, step].set(key)
            values[slot] = values[slot].at[:, step].set(value)
            slot += 1
        return Memory(tuple(keys), tuple(values)), hidden, step + 1

    return lax.while_loop(going, one, (memory, output, step))


def halted(network: Network, output: jax.Array) -> jax.Array:
    """Whether a pair of state and symbol without an entry in the table is on: the pair layer, read out."""
    first = network.groups[0]
    pairs = jax.nn.relu(_dot(first.W_1[0], output) + first.b_1[0])
    return jnp.dot(network.theta_halt, pairs, precision=EXACT) > 0.5


def _plain_layer(thresholds: jax.Array, hidden: jax.Array, weights: tuple[jax.Array, jax.Array]):
    return _feed_forward(thresholds, *weights, hidden), None


def _attention_layer(thresholds, attend, encoder, given, past, hidden, inputs):
    group, keys, values = inputs
    own_key = _dot(group.decoder.W_K, hidden) + group.decoder.b_K
    own_value = _dot(group.decoder.W_V, hidden) + group.decoder.b_V
    everyone = jnp.concatenate([own_key[None], keys])
    attended = attend(
        group.decoder,
        hidden,
        everyone,
        jnp.concatenate([own_value[None], values]),
        jnp.concatenate([jnp.ones(1, bool), past]),
    )
    hidden = hidden.at[group.decoder.to].add(attended)
    if group.encoder is not None:
        keys_e = _dot(encoder, group.encoder.W_K.T) + group.encoder.b_K
        values_e = _dot(encoder, group.encoder.W_V.T) + group.encoder.b_V
        hidden = hidden.at[group.encoder.to].add(attend(group.encoder, hidden, keys_e, values_e, given))
    return _feed_forward(thresholds, group.W_1, group.b_1, hidden), (own_key, own_value)


def _attend(heads, hidden, keys, values, visible, temperature, softmax: bool) -> jax.Array:
    query = _dot(heads.W_Q, hidden) + heads.b_Q
    scores = jnp.where(visible, _dot(keys, query), -jnp.inf)
    scores = jnp.concatenate([jnp.dot(heads.K_0, query, precision=EXACT)[None], scores])
    values = jnp.concatenate([heads.V_0[None], values])
    if softmax:
        return _dot(jax.nn.softmax(temperature * scores), values)
    best = (scores == scores.max()).astype(jnp.float32)
    return _dot(best, values) / best.sum()


def _feed_forward(thresholds: jax.Array, W_1: jax.Array, b_1: jax.Array, hidden: jax.Array) -> jax.Array:
    low, high, gain = thresholds
    computed = jax.nn.relu(_dot(W_1, hidden) + b_1)
    return jax.nn.relu(gain * jax.nn.relu(computed - low) - gain * jax.nn.relu(computed - high))


def _dot(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.dot(a, b, precision=EXACT)


def _modules(layer: TransformerLayer) -> tuple[bool, bool]:
    return layer.self_attention is not None, layer.encoder_attention is not None


def _heads(attentions: list[Attention], width: int) -> Heads:
    rows = max(len(a.K_0) for a in attentions)
    used = np.flatnonzero(sum(np.abs(a.W_V).sum(1) + np.abs(a.b_V) + np.abs(a.V_0) for a in attentions))

    def stacked(name: str, *shape: int) -> jax.Array:
        return jnp.stack([_pad(getattr(a, name), shape) for a in attentions])

    def cut(name: str, *shape: int) -> jax.Array:
        return jnp.stack([_pad(getattr(a, name)[used], shape) for a in attentions])

    return Heads(
        stacked("W_Q", rows, width),
        stacked("b_Q", rows),
        stacked("W_K", rows, width),
        stacked("b_K", rows),
        cut("W_V", len(used), width),
        cut("b_V", len(used)),
        stacked("K_0", rows),
        cut("V_0", len(used)),
        jnp.broadcast_to(jnp.array(used), (len(attentions), len(used))),
    )


def _pad(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.pad(array, [(0, want - have) for want, have in zip(shape, array.shape, strict=True)])


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
