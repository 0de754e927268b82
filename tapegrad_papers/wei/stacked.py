"""Decoders in JAX whose consecutive blocks with the same modules are stacked, so that one compiled loop runs
them all: a function of every parameter, which attacks differentiate."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from tapegrad.networks.form import Dense, Numbers
from tapegrad.networks.heads import Attention, Block
from tapegrad_papers.layers import EXACT, affine, chain


class Group(NamedTuple):
    """Stacked blocks, all their arrays with a leading axis, and the coordinates that their attentions add
    to."""

    block: Block
    self_to: Int[Numbers, "blocks some"] | None
    encoder_to: Int[Numbers, "blocks few"] | None


class StackedDecoder(NamedTuple):
    """All that the compiled loop needs."""

    groups: tuple[Group, ...]
    halting: tuple[Dense, ...]
    time: Int[Numbers, " bits"]


class Memory(NamedTuple):
    """Keys and values of the steps so far, for each group with self-attention: [block, time, row]."""

    keys: tuple[Array, ...]
    values: tuple[Array, ...]


Feed = Callable[[tuple[Dense, ...], Array], Array]


def attend(
    attention: Attention,
    hidden: Float[Array, " width"],
    keys: Float[Array, "places rows"],
    values: Float[Array, "places targets"],
    visible: Bool[Array, " places"],
    temperature: Float[Array, ""] | float | None,
) -> Float[Array, " targets"]:
    """What an attention adds: the mean of the values with the best scores, or of all by softmax."""
    query = affine(attention.query, hidden)
    scores = jnp.where(visible, jnp.dot(keys, query, precision=EXACT), -jnp.inf)
    null = jnp.dot(attention.null_key, query, precision=EXACT)
    scores = jnp.concatenate([null[None], scores])
    values = jnp.concatenate([attention.null_value[None], values])
    if temperature is not None:
        return jnp.dot(jax.nn.softmax(temperature * scores), values, precision=EXACT)
    best = (scores == scores.max()).astype(values.dtype)
    return jnp.dot(best, values, precision=EXACT) / best.sum()


def empty_memory(network: StackedDecoder, room: int) -> Memory:
    """Room for so many steps."""
    heads = [g.block.self_attention for g in network.groups if g.block.self_attention is not None]
    sides = [[h.key.bias for h in heads], [h.value.bias for h in heads]]
    keys, values = (tuple(np.zeros((len(b), room, b.shape[1]), b.dtype) for b in side) for side in sides)
    return Memory(*jax.device_put((keys, values)))


def decoder_step(
    network: StackedDecoder,
    tokens: Float[Array, "cells width"],
    given: Bool[Array, " cells"],
    memory: Memory,
    output: Float[Array, " width"],
    step: Int[Array, ""],
    temperature: Float[Array, ""] | float | None,
    feed: Feed = chain,
) -> tuple[Memory, Float[Array, " width"]]:
    """One step; `feed` evaluates the dense layers of a block."""
    hidden = output.at[network.time].add((step >> jnp.arange(len(network.time))) & 1)
    keys, values, slot = list(memory.keys), list(memory.values), 0

    def block(hidden: Array, inputs: tuple[Group, tuple[Array, ...]]) -> tuple[Array, tuple[Array, ...]]:
        group, past = inputs
        own, encoder, kept = group.block.self_attention, group.block.encoder_attention, ()
        if own is not None:
            kept = affine(own.key, hidden), affine(own.value, hidden)
            all_keys, all_values = (
                jnp.concatenate([new[None], old]) for new, old in zip(kept, past, strict=True)
            )
            visible = jnp.concatenate([jnp.ones(1, bool), jnp.arange(len(all_keys) - 1) < step])
            added = attend(own, hidden, all_keys, all_values, visible, temperature)
            hidden = hidden.at[group.self_to].add(added)
        if encoder is not None:
            token_keys, token_values = affine(encoder.key, tokens.T).T, affine(encoder.value, tokens.T).T
            added = attend(encoder, hidden, token_keys, token_values, given, temperature)
            hidden = hidden.at[group.encoder_to].add(added)
        fed = feed(group.block.feed_forward, hidden)
        adds_to = group.block.adds_to
        return fed if adds_to is None else hidden.at[adds_to].add(fed), kept

    for group in network.groups:
        if group.block.self_attention is None:
            hidden, _ = lax.scan(block, hidden, (group, ()))
            continue
        hidden, (key, value) = lax.scan(block, hidden, (group, (keys[slot], values[slot])))
        keys[slot] = keys[slot].at[:, step].set(key)
        values[slot] = values[slot].at[:, step].set(value)
        slot += 1
    return Memory(tuple(keys), tuple(values)), hidden
