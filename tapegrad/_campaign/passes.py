"""The nets that run in their forward pass, as campaigns follow them: transformer, relu and rcnn."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad._campaign.watch import Batched, Seen, Tree, one_hot
from tapegrad.circuits.layered import LayerState
from tapegrad.machines.model import Configuration, GridConfiguration
from tapegrad.networks import jax as reference
from tapegrad.source import State
from tapegrad.targets.rcnn.encoding import COMPUTE, HEAD
from tapegrad.targets.rcnn.net import RcnnNet, layer_of
from tapegrad.targets.relu.build import relu_layers
from tapegrad.targets.relu.net import ReluNet
from tapegrad.targets.transformer import fast as transformer_fast
from tapegrad.targets.transformer.net import TransformerNet
from tapegrad.targets.transformer.program import Program, flatten, input_index


class Transformer(Batched):
    """A mark: state, head, the symbol under it, and what the step before has written and where. The whole
    tape is the input and these writes."""

    nets, double = TransformerNet, False

    def parts(self, net: TransformerNet, starts: Sequence[State], length: int) -> tuple[Tree, list[Tree]]:
        decoder, layout = net.decoder, net.layout
        multiple = 64 if layout.width <= 128 else 256
        width, most = reference.round_up(layout.width, multiple), reference.round_up(layout.steps + 1, 16)
        inputs = []
        for start in starts:
            carry = net.start(start)
            tokens = np.zeros((most, width), np.float32)
            tokens[: len(carry.cells), : layout.width] = carry.tokens
            given = np.arange(most) < len(carry.cells)
            inputs.append((tokens, given, np.pad(carry.output, (0, width - layout.width))))
        temperature = None if decoder.temperature is None else np.float32(decoder.temperature)
        return (reference.stacked(decoder, multiple), temperature), inputs

    def trace(self, own: Tree, first: Tree, length: int) -> Tree:
        (network, temperature), (tokens, given, output) = own, first

        def step(carry: Tree, number: jax.Array) -> tuple[Tree, Tree]:
            memory, output = carry
            memory, output = reference.decoder_step(
                network, tokens, given, memory, output, number, temperature
            )
            return (memory, output), (output, reference.chain(network.halting, output)[0] > 0.5)

        memory = reference.empty_memory(network, len(tokens))
        (memory, _), (outputs, done) = jax.lax.scan(step, (memory, output), jnp.arange(length))
        return outputs, done, memory.keys[-1][0, :length], memory.values[-1][0, :length]

    def seen(self, net: TransformerNet, traced: Tree) -> Seen:
        outputs, done, keys, values = traced
        layout, places = net.layout, 1 << np.arange(net.layout.position_bits)
        on = outputs[:, : layout.width] > 0.5
        named = [one_hot(on[:, layout.group(group)]) for group in ("st", "sym1")]
        written = (keys[:, : len(places)] > 0) @ places, values.argmax(1)
        return Seen(
            self._together(named[0], on[:, layout.group("pos2")] @ places, named[1], *written),
            done,
            np.abs(outputs - np.round(outputs)).max(1),
        )

    def prepared(self, net: TransformerNet) -> tuple[TransformerNet, Program]:
        return net, flatten(net.decoder, net.layout.steps)

    def fast(self, net: tuple[TransformerNet, Program], start: Configuration, length: int) -> Seen:
        own, program = net
        layout, carry = own.layout, own.start(start)
        attention = own.layers[program.encoder_layer].encoder_attention
        assert attention is not None
        codes, values = input_index(attention, carry.tokens)
        index, output = transformer_fast.empty_index(program), carry.output.copy()
        outputs, done = np.zeros((length, len(output)), np.float32), np.zeros(length, bool)
        for step in range(length):
            index, output, _ = transformer_fast.advance(program, codes, values, index, output, step, step)
            outputs[step], done[step] = output, transformer_fast.has_ended(program, output)
        slots = slice(1, length + 1)
        places, on = 1 << np.arange(layout.position_bits), outputs > 0.5
        named = [one_hot(on[:, layout.group(group)]) for group in ("st", "sym1")]
        written = index.place[slots].astype(np.int64), index.value[slots].argmax(1)
        marks = self._together(named[0], on[:, layout.group("pos2")] @ places, named[1], *written)
        return Seen(marks, done, np.abs(outputs - np.round(outputs)).max(1))

    def marks(self, net: TransformerNet, states: Sequence[Configuration]) -> NDArray[np.int64]:
        layout, origin = net.layout, states[0].heads[0] - net.layout.offset
        numbers = {state: i for i, state in enumerate(layout.states)}
        symbols = {symbol: i for i, symbol in enumerate(layout.symbols)}
        state = [numbers[one.state] for one in states]
        head = np.array([one.heads[0] - origin for one in states])
        under = [symbols[one.tapes[0].get(one.heads[0], net.blank)] for one in states]
        left = [symbols[after.tapes[0].get(before.heads[0], net.blank)] for before, after in pairwise(states)]
        return self._together(
            np.array(state), head, np.array(under), np.append(0, head[:-1]), np.append(0, left)
        )

    def _together(self, *columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first step writes nothing."""
        marks = np.stack(columns, 1).astype(np.int64)
        marks[0, 3:] = 0
        return marks


class Relu(Batched):
    """A mark: the values of a circuit layer, pattern by pattern, 0 where it has fewer than `ROWS`."""

    nets, ROWS = ReluNet, 64

    def parts(self, net: ReluNet, starts: Sequence[State], length: int) -> tuple[Tree, list[Tree]]:
        stack, each = net.stack, relu_layers(net.correction)
        if max(net.layer_width(step) for step in range(net.circuit_layers + 1)) > self.ROWS:
            raise ValueError("too wide")
        arrays = [np.asarray(array) for array in (stack.inputs, stack.weights, stack.biases)]
        more = reference.room(max(512, len(arrays[2])), fine=True) - len(arrays[2])
        arrays = [np.pad(array, ((0, more), *[(0, 0)] * (array.ndim - 1))) for array in arrays]
        ends = [stack.bounds[each * i : each * i + each + 1] for i in range(net.circuit_layers)]
        ends += ends[-1:] * (length - 1 - len(ends))
        inputs = []
        for start in starts:
            values = np.zeros((self.ROWS, len(start.bits)), net.dtype)
            values[: start.bits.shape[1]] = start.bits.T
            inputs.append(values)
        return (arrays, np.array(ends[: length - 1]), np.asarray(stack.bounds[-2:])), inputs

    def trace(self, own: Tree, first: Tree, length: int) -> Tree:
        arrays, layers, last = own

        def step(values: jax.Array, bounds: jax.Array) -> tuple[jax.Array, jax.Array]:
            heights = tuple(self.ROWS * (2 - i % 2) for i in range(layers.shape[1] - 1))
            values = _run_layers(arrays, values, bounds, heights, False)
            return values, values

        values = jnp.concatenate([first[None], jax.lax.scan(step, first, layers)[1]])
        read_out = jax.vmap(lambda v: _run_layers(arrays, v, last, (self.ROWS,), True))
        return values, read_out(values)

    def seen(self, net: ReluNet, traced: Tree) -> Seen:
        values, read_out = (part[: net.circuit_layers + 1] for part in traced)
        return self._read(net, list(values), read_out[-1])

    def fast(self, net: ReluNet, start: LayerState, length: int) -> Seen:
        carry = net.start(start)
        values = [net.values(carry)]
        for _ in range(net.circuit_layers):
            carry = net.advance(carry, 1, "fast")
            values.append(net.values(carry))
        assert carry.signs is not None
        return self._read(net, values, carry.signs)

    def marks(self, net: ReluNet, states: Sequence[LayerState]) -> NDArray[np.int64]:
        found = np.zeros((len(states), self.ROWS, len(states[0].bits)), np.int64)
        for own, state in zip(found, states, strict=True):
            own[: state.bits.shape[1]] = state.bits.T
        return found.reshape(len(states), -1)

    def _read(self, net: ReluNet, values: list[NDArray[Any]], read_out: NDArray[Any]) -> Seen:
        steps, count = net.circuit_layers, len(net.output_names)
        bits = np.zeros((steps + 1, self.ROWS, values[0].shape[1]), np.int64)
        off = np.zeros(steps + 1)
        for step, own in enumerate(values):
            own = own[: net.layer_width(step)]
            bits[step, : len(own)] = own > 0.5
            off[step] = np.abs(own - (own > 0.5)).max(initial=0)
        bits[-1] = 0
        bits[-1, :count] = read_out[:count] > 0
        off[-1] = max(off[-1], np.abs(np.abs(read_out[:count]) - 1).max(initial=0))
        return Seen(bits.reshape(steps + 1, -1), np.arange(steps + 1) == steps, off)


class Rcnn(Batched):
    """A mark: the content of every cell."""

    nets = RcnnNet

    def parts(self, net: RcnnNet, starts: Sequence[State], length: int) -> tuple[Tree, list[Tree]]:
        own = net.filter.in_room(units=64, channels=16)
        inputs = []
        for start in starts:
            grid = net.encoding.encode(self._numbers(net, start, start))
            channels = [(0, own.channels - len(grid)), (0, 0), (0, 0)]
            inputs.append(np.pad(grid, channels))
        return own, inputs

    def trace(self, own: Tree, first: Tree, length: int) -> Tree:
        def step(grid: jax.Array, _: None) -> tuple[jax.Array, Tree]:
            after, running = layer_of(own, grid, *grid.shape[1:])
            return after, (grid, ~running)

        return jax.lax.scan(step, first, length=length)[1]

    def seen(self, net: RcnnNet, traced: Tree) -> Seen:
        grids, done = traced
        grids = grids[:, : net.filter.channels]
        numbers = np.array([net.encoding.decode(grid) for grid in grids])
        off = np.array([net.encoding.deviation(grid) for grid in grids])
        return Seen(numbers.reshape(len(grids), -1), done, off)

    def fast(self, net: RcnnNet, start: GridConfiguration, length: int) -> Seen:
        """A grid that does not change any more may be that of a machine that stays where it is."""
        numbers, rows = self._numbers(net, start, start), []
        for _ in range(length):
            rows.append(numbers.reshape(-1))
            numbers = net.roller.run(numbers, 1).numbers
        return Seen(np.array(rows), None, np.zeros(length))

    def marks(self, net: RcnnNet, states: Sequence[GridConfiguration]) -> NDArray[np.int64]:
        return np.array([self._numbers(net, state, states[0]).reshape(-1) for state in states])

    def _numbers(self, net: RcnnNet, state: GridConfiguration, first: GridConfiguration) -> NDArray[np.int64]:
        """The contents around the marks that there were at first."""
        marked, cells = np.array([*first.cells, first.head]), net.encoding.cells
        corner = marked.min(axis=0) - net.margin
        shape = marked.max(axis=0) + net.margin + 1 - corner
        # Inputs of one net share a shape; so do nets, if their margins leave room for the longest input.
        shape = np.maximum(shape, 2 * net.margin + LONGEST)
        numbers = np.full(shape, cells.number(False, 0, COMPUTE))
        for cell, symbol in state.cells.items():
            numbers[tuple(cell - corner)] = cells.number(False, net.symbols.index(symbol), COMPUTE)
        under = net.symbols.index(state.cells.get(state.head, net.symbols[0]))
        place = tuple(np.array(state.head) - corner)
        numbers[place] = cells.number(False, under, HEAD + net.states.index(state.state))
        return numbers


LONGEST = 3
"""Rows and columns of an input on the grid, at most."""


def _run_layers(
    arrays: Sequence[Tree], values: Tree, bounds: Tree, heights: Sequence[int], linear: bool
) -> Tree:
    """Layers of units, whose bounds are data, so that a program is compiled once for all nets; a ReLU follows
    each, but the last where that is `linear`."""
    inputs, weights, biases = arrays
    for i, height in enumerate(heights):
        place = jnp.arange(height)
        unit, real = bounds[i] + place, place < bounds[i + 1] - bounds[i]
        reads = inputs.at[unit].get(mode="clip")
        own = jnp.where(real[:, None], weights.at[unit].get(mode="clip"), 0)
        bias = jnp.where(real, biases.at[unit].get(mode="clip"), 0)
        terms = [own[:, k, None] * values.at[reads[:, k]].get(mode="clip") for k in range(own.shape[1])]
        values = sum(terms[1:], terms[0]) + bias[:, None]
        values = values if linear and i == len(heights) - 1 else jax.nn.relu(values)
    return values
