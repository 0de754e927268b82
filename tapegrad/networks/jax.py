"""Layers in JAX: the definition of what a network computes, and differentiable.

Values are columns: an array of shape (width, ...) holds a vector for each place of its other axes. Products
are never reduced to TF32: sums of integers stay integers.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import groupby
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from tapegrad.networks.form import (
    Activation,
    Affine,
    Attention,
    Block,
    Convolution,
    Decoder,
    Dense,
    Matrix,
    Numbers,
    Recurrence,
)

EXACT = lax.Precision.HIGHEST
FEW = 8
"""Coordinates that the attentions of a decoder add to are padded to a multiple of this."""
SMALLEST_ROOM = 64
FINE = 1024
"""Up to this width padding costs less than what is not arithmetic."""
AT_ONCE = 1 << 25
"""Numbers of the widest layer of a convolution by entries that are computed together, of 8 bytes each."""

Rectifier = Callable[[Array], Array]


def affine(own: Affine | Matrix, x: Float[Array, "columns ..."]) -> Float[Array, "rows ..."]:
    """`A x + b`."""
    if isinstance(own, Matrix):
        sums = jnp.tensordot(own.weight, x, 1, precision=EXACT)
    else:
        values = jnp.asarray(own.values)
        terms = _over(values, x) * x[own.columns]
        sums = jax.ops.segment_sum(terms, own.rows, len(own.bias), indices_are_sorted=True)
    return sums + _over(jnp.asarray(own.bias), sums)


def activate(activation: Activation, z: Array, relu: Rectifier = jax.nn.relu) -> Array:
    """The activation of what a map gave."""
    if activation == "linear":
        return z
    z = relu(z)
    if activation == "relu":
        return z
    low, high, gain = activation.low, activation.high, activation.gain
    return relu(gain * relu(z - low) - gain * relu(z - high))


def dense(layer: Dense, x: Float[Array, "columns ..."], relu: Rectifier = jax.nn.relu) -> Array:
    """One layer."""
    return activate(layer.activation, affine(layer.map, x), relu)


def chain(layers: tuple[Dense, ...], x: Float[Array, "columns ..."]) -> Array:
    """Layers one after the other."""
    return reduce(lambda values, layer: dense(layer, values), layers, x)


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


def patches(convolution: Convolution, grid: Float[Array, "channels rows columns"]) -> Array:
    """The neighbourhood of every cell as a column, channel by channel."""
    rows, columns = grid.shape[1:]
    padded = jnp.pad(grid, ((0, 0), (1, 1), (1, 1)), constant_values=convolution.padding)
    shifts = [padded[:, r : r + rows, c : c + columns] for r, c in convolution.corners()]
    return jnp.stack(shifts, 1).reshape(-1, rows * columns)


def convolve(
    convolution: Convolution, grid: Float[Array, "channels rows columns"], depth: int | None = None
) -> Float[Array, "units rows columns"]:
    """The layers, or the first `depth` of them, on the patch of every cell."""
    layers = convolution.layers[:depth]
    found = _in_blocks(lambda x: chain(layers, x), patches(convolution, grid), len(layers[0].map.bias))
    return found.reshape(-1, *grid.shape[1:])


def _in_blocks(function: Rectifier, x: Float[Array, "columns places"], widest: int) -> Array:
    """A function of columns, of as many at once as memory allows."""
    size, count = max(1, AT_ONCE // widest), x.shape[1]
    if count <= size:
        return function(x)
    blocks = jnp.pad(x, ((0, 0), (0, -count % size)), mode="edge").reshape(len(x), -1, size)
    found = lax.map(function, jnp.moveaxis(blocks, 1, 0))
    return jnp.moveaxis(found, 0, 1).reshape(found.shape[1], -1)[:, :count]


def first_grid(
    own: Recurrence, memory: Float[Array, "rows columns"], z: Float[Array, " columns"]
) -> Float[Array, "channels height width"]:
    """The grid before the first layer: row i is made of `W_i * z`, in its frame."""
    products = memory * z
    top, bottom, left, right = own.frame
    edges = (top, bottom), (left, right)
    cells = affine(own.direct, products[None])
    if own.units:
        cells = cells + chain(own.units, products[None])
    inside = np.pad(np.ones(products.shape, bool), edges)
    return jnp.where(inside, jnp.pad(cells, ((0, 0), *edges)), _over(jnp.asarray(own.around), cells))


def read_out(own: Recurrence, grid: Float[Array, "channels height width"]) -> Float[Array, ""]:
    """What the heads of the main grid add up to."""
    return chain(own.head, own.main(grid)).sum()


def recur(
    own: Recurrence, memory: Float[Array, "rows columns"], z: Float[Array, " columns"]
) -> Float[Array, ""]:
    """The output. Only the grid between two layers is kept for the gradient; what lies inside a layer is
    computed again."""
    layer = jax.checkpoint(lambda grid: convolve(own.convolution, grid))
    first = first_grid(own, memory, z)
    grid, _ = lax.scan(lambda grid, _: (layer(grid), None), first, length=own.layers)
    return read_out(own, grid)


# Decoders: consecutive blocks with the same modules are stacked, so that one compiled loop runs them all, and
# widths are padded to round numbers with coordinates that stay 0, so that nets of like size share programs.


class Group(NamedTuple):
    """Stacked blocks, all their arrays with a leading axis. The values of attentions may be cut down to the
    coordinates that any of them can add to, `self_to` and `encoder_to`: the rest would only add zeros."""

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


def stacked(decoder: Decoder, multiple: int = 64, cut: bool = True) -> StackedDecoder:
    """A decoder as a few stacks of NumPy matrices, its width padded to a multiple of this."""
    width = round_up(len(decoder.start), multiple)
    groups = []
    for _, run in groupby(decoder.blocks, _modules):
        members = list(run)
        columns, layers = width, []
        for number, layer in enumerate(members[0].feed_forward):
            maps = [block.feed_forward[number].map for block in members]
            whole = number == len(members[0].feed_forward) - 1 and members[0].adds_to is None
            rows = width if whole else max(map(len, maps))
            layers.append(Dense(_matrices(maps, rows, columns), layer.activation))
            columns = rows
        own, own_to = _heads([block.self_attention for block in members], width, cut)
        encoder, encoder_to = _heads([block.encoder_attention for block in members], width, cut)
        adds_to = None
        if members[0].adds_to is not None:  # padding adds 0 to coordinate 0
            adds_to = np.zeros((len(members), columns), np.int64)
            for places, block in zip(adds_to, members, strict=True):
                places[: len(block.feed_forward[-1].map)] = np.asarray(block.adds_to)
        block = Block("", tuple(layers), own, encoder, adds_to)
        groups.append(Group(block, own_to, encoder_to))
    halting, columns = [], width
    for layer in decoder.halting:
        rows = round_up(max(1, len(layer.map)), multiple)
        own = _matrices([layer.map], rows, columns)
        halting.append(Dense(Matrix(own.weight[0], own.bias[0]), layer.activation))
        columns = rows
    return StackedDecoder(tuple(groups), tuple(halting), np.array(decoder.time))


def empty_memory(network: StackedDecoder, room: int) -> Memory:
    """Room for so many steps."""
    heads = [g.block.self_attention for g in network.groups if g.block.self_attention is not None]
    sides = [[h.key.bias for h in heads], [h.value.bias for h in heads]]
    keys, values = (tuple(np.zeros((len(b), room, b.shape[1]), b.dtype) for b in side) for side in sides)
    return Memory(*jax.device_put((keys, values)))


@partial(jax.jit, donate_argnames=("memory",))
def advance(
    network: StackedDecoder,
    tokens: Float[Array, "cells width"],
    given: Bool[Array, " cells"],
    memory: Memory,
    output: Float[Array, " width"],
    step: Int[Array, ""],
    last: Int[Array, ""],
    temperature: Float[Array, ""] | None,
) -> tuple[Memory, Float[Array, " width"], Int[Array, ""]]:
    """Decoder steps from `step` on, until `last` or the halt. `output` is what the step before gave. Rows of
    the encoder's `tokens` that are not `given` are padding and are never attended to."""

    def going(carry: tuple[Memory, Array, Array]) -> Array:
        return (carry[2] <= last) & ~(chain(network.halting, carry[1])[0] > 0.5)

    def one(carry: tuple[Memory, Array, Array]) -> tuple[Memory, Array, Array]:
        memory, output, step = carry
        memory, output = decoder_step(network, tokens, given, memory, output, step, temperature)
        return memory, output, step + 1

    return lax.while_loop(going, one, (memory, output, step))


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


def round_up(number: int, multiple: int) -> int:
    """The next multiple."""
    return -(-number // multiple) * multiple


def _modules(block: Block) -> tuple[bool, bool, bool, list[Activation]]:
    activations: list[Activation] = [layer.activation for layer in block.feed_forward]
    attends = block.self_attention is not None, block.encoder_attention is not None
    return *attends, block.adds_to is not None, activations


def padded(own: Affine | Matrix, rows: int, columns: int) -> Affine | Matrix:
    """The same map with room: rows and columns of zeros behind its own, and entries 0 in the last row up to
    the next eighth of a power of two."""
    more = rows - len(own)
    if isinstance(own, Matrix):
        weight = np.pad(own.weight, ((0, more), (0, columns - own.width)))
        return Matrix(weight, np.pad(own.bias, (0, more)))
    free = room(len(own.rows), fine=True) - len(own.rows)
    return Affine(
        np.pad(own.rows, (0, free), constant_values=rows - 1),
        np.pad(own.columns, (0, free)),
        np.pad(own.values, (0, free)),
        np.pad(own.bias, (0, more)),
        columns,
    )


def _matrices(maps: Sequence[Affine | Matrix], rows: int, columns: int) -> Matrix:
    """Maps stacked, each padded with zeros to this shape."""
    dtype = maps[0].bias.dtype
    weights, biases = np.zeros((len(maps), rows, columns), dtype), np.zeros((len(maps), rows), dtype)
    for number, own in enumerate(maps):
        written = own.dense()
        weights[number, : len(own), : own.width], biases[number, : len(own)] = written.weight, written.bias
    return Matrix(weights, biases)


def _heads(
    attentions: Sequence[Attention | None], width: int, cut: bool
) -> tuple[Attention | None, Int[np.ndarray, "blocks some"] | None]:
    """One attention for each block, padded with zero rows to one shape, and where each adds its values."""
    found = [attention for attention in attentions if attention is not None]
    if not found:
        return None, None
    rows = max(len(attention.key) for attention in found)
    to = np.unique(np.concatenate([a.targets() for a in found])) if cut else np.arange(width)
    query, key = (_matrices([getattr(a, side) for a in found], rows, width) for side in ("query", "key"))
    values = [a.value.entries().restricted(to) if cut else a.value for a in found]
    # Padding adds 0 to the last coordinate.
    places = np.pad(to, (0, round_up(len(to), FEW) - len(to)), constant_values=width - 1)
    value = _matrices(values, len(places), width)
    null_key = [np.pad(a.null_key, (0, rows - len(a.key))) for a in found]
    null_value = [
        np.pad(np.pad(a.null_value, (0, width - len(a.null_value)))[to], (0, len(places) - len(to)))
        for a in found
    ]
    attention = Attention(query, key, value, np.stack(null_key), np.stack(null_value))
    return attention, np.broadcast_to(places, (len(found), len(places)))


def room(width: int, fine: bool = False) -> int:
    """Rows that hold a layer of this width, padding included: the next power of two; or, where that would be
    much, the next eighth of one."""
    whole = max(SMALLEST_ROOM, 1 << (width - 1).bit_length())
    return round_up(width, whole >> 4) if fine and width > FINE else whole


def _over(vector: Array, values: Array | np.ndarray) -> Array:
    """A number for each row, to be added to or multiplied with the row's values."""
    return vector.reshape(-1, *[1] * (values.ndim - 1))
