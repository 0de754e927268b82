"""Many nets of one target, followed together: every state that they pass, as whole numbers.

Nets of like size have arrays of one shape once they are padded, so one compiled program, mapped over nets
and inputs, takes all their steps; states are then read off in NumPy, for all steps at once. A *mark* is a
state in whole numbers: the watch of a target reads marks off what a net has done, and writes them for the
states that an interpreter gives, from the names in the net alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad._optimise import OnSimplex, descend
from tapegrad._precision import in_double, with_promotion
from tapegrad.circuits.layered import LayerState
from tapegrad.learners import LearnerState
from tapegrad.machines.model import Configuration, GridConfiguration
from tapegrad.networks import jax as reference
from tapegrad.networks import numba as compiled
from tapegrad.source import State
from tapegrad.targets.descent.loss import (
    LEAST,
    LONE_INPUTS,
    LONE_LABELS,
    Arrays,
    ExtendedNetwork,
    NoPrimary,
    SquaredError,
    Weights,
    in_room,
)
from tapegrad.targets.emulator import fast as emulator_fast
from tapegrad.targets.emulator.loss import blocks_of, room, sgd_step_of
from tapegrad.targets.emulator.net import PracticalNet, input_rows
from tapegrad.targets.rcnn.encoding import COMPUTE, HEAD
from tapegrad.targets.rcnn.net import RcnnNet, layer_of
from tapegrad.targets.relu.build import relu_layers
from tapegrad.targets.relu.net import ReluNet
from tapegrad.targets.simplex import fast as simplex_fast
from tapegrad.targets.simplex.build import look_up
from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.tape import fast as tape_fast
from tapegrad.targets.tape.net import TapeNet
from tapegrad.targets.transformer import fast as transformer_fast
from tapegrad.targets.transformer.net import TransformerNet
from tapegrad.targets.transformer.program import Program, flatten, input_index

BATCHES = {"cpu": 16}
LARGE_BATCH = 128
"""Nets that go through a compiled program together: what a processor's cache likes, and an accelerator."""

Tree = Any
"""A pytree of NumPy arrays."""


class Seen(NamedTuple):
    """What a net did on one input: a row for each state."""

    marks: NDArray[np.int64]
    done: NDArray[np.bool_] | None
    """Whether it said that it has ended; None where the engine does not say."""
    deviation: NDArray[np.float64]


class Watch(ABC):
    """How the nets of one target are followed."""

    @abstractmethod
    def fast(self, net: Any, start: State, length: int) -> Seen:
        """What a net passes by the engine `fast`, which takes one step after the other."""

    def prepared(self, net: Any) -> Any:
        """The net as `fast` wants it, made once for all inputs."""
        return net

    @abstractmethod
    def marks(self, net: Any, states: Sequence[State]) -> NDArray[np.int64]:
        """The marks of these states."""


class Batched(Watch):
    """How they are followed many at once, by the reference engine."""

    double = True
    """Whether its numbers are of 64 bits."""

    @abstractmethod
    def parts(self, net: Any, starts: Sequence[State], length: int) -> tuple[Tree, list[Tree]]:
        """What the compiled program is given: of the net, and of each input."""

    @abstractmethod
    def trace(self, own: Tree, first: Tree, length: int) -> Tree:
        """The program: what one net passes in so many states, in JAX."""

    @abstractmethod
    def seen(self, net: Any, traced: Tree) -> Seen:
        """The marks of what it has passed."""


def follow(
    watch: Watch, nets: Sequence[Any], starts: Sequence[Sequence[State]], length: int, engine: str
) -> list[list[Seen]]:
    """For each net and each of its first states (as many for all), what was seen."""
    if engine == "fast":
        ready = map(watch.prepared, nets)
        return [
            [watch.fast(net, start, length) for start in own] for net, own in zip(ready, starts, strict=True)
        ]
    assert isinstance(watch, Batched)
    found: list[list[Seen]] = [[] for _ in nets]
    together: dict[Any, list[tuple[int, Tree]]] = {}
    for number, (net, own) in enumerate(zip(nets, starts, strict=True)):
        arrays, inputs = watch.parts(net, own, length)
        pair = arrays, jax.tree.map(lambda *leaves: np.stack(leaves), *inputs)
        shapes = [(leaf.shape, leaf.dtype) for leaf in map(np.asarray, jax.tree.leaves(pair))]
        together.setdefault((jax.tree.structure(pair), str(shapes)), []).append((number, pair))
    size = BATCHES.get(jax.default_backend(), LARGE_BATCH)
    batches = [
        group[first : first + size] for group in together.values() for first in range(0, len(group), size)
    ]
    for group in batches:
        pairs = [pair for _, pair in group]
        pairs += pairs[-1:] * (size - len(pairs))  # one size of batches
        own, inputs = jax.tree.map(lambda *leaves: np.stack(leaves), *pairs)
        traced = jax.tree.map(np.asarray, _in_precision(watch.double)(_traced)(watch, own, inputs, length))
        for place, (number, _) in enumerate(group):
            for which in range(len(starts[number])):
                one = jax.tree.map(lambda leaf, at=(place, which): leaf[at], traced)
                found[number].append(watch.seen(nets[number], one))
    return found


def _in_precision(double: bool) -> Any:
    return in_double if double else with_promotion


@partial(jax.jit, static_argnames=("watch", "length"))
def _traced(watch: Batched, own: Tree, inputs: Tree, length: int) -> Tree:
    one = partial(watch.trace, length=length)
    return jax.vmap(jax.vmap(one, (None, 0)))(own, inputs)


class _Descent(Batched):
    """Training runs the machine. The first gradient step reads the labels; a state stands after it and after
    each further one."""

    def trace(self, own: Tree, first: Tree, length: int) -> Tree:
        machine, thresholds, vertices = own
        error = SquaredError(ExtendedNetwork(machine, NoPrimary(), thresholds), LONE_INPUTS, LONE_LABELS)
        rates = Weights._make((OnSimplex(vertices=vertices), 1.0, 1.0, 1.0))

        def step(weights: Weights, _: None) -> tuple[Weights, Tree]:
            value, gradient = jax.value_and_grad(error)(weights)
            return descend(error, weights, rates, gradient), (*self.shown(weights), value <= thresholds.low)

        weights = descend(error, first, rates, jax.grad(error)(first))
        return jax.lax.scan(step, weights, length=length)[1]

    def shown(self, weights: Weights) -> tuple[Arrays, ...]:
        """Vertex, deviation, and what the tapes show."""
        s, T, H, _ = weights
        off = jnp.abs(s - jnp.round(s)).max()
        if not H.size:
            return jnp.argmax(s), off
        off = jnp.maximum(off, jnp.abs(H - jnp.round(H)).max())
        return jnp.argmax(s), off, jnp.argmax(H, 0), T

    def own(self, net: TapeNet | SimplexNet) -> Tree:
        network = net.error.network
        machine = network.machine.in_room(net.cell_count, *self.sizes(net))
        return machine, network.thresholds, np.asarray(net.vertex_count)

    def sizes(self, net: Any) -> tuple[int, int]:
        """Room for vertices and edges."""
        return LEAST, LEAST


class _Simplex(_Descent):
    def parts(self, net: SimplexNet, starts: Sequence[State], length: int) -> tuple[Tree, list[Tree]]:
        carries = [net.start(start).weights for start in starts]
        return self.own(net), [Weights(in_room(w.s), w.T, w.H, np.asarray(w.z)) for w in carries]

    def seen(self, net: SimplexNet, traced: Tree) -> Seen:
        vertex, deviation, done = traced
        return Seen(vertex[:, None].astype(np.int64), done, deviation)

    def fast(self, net: SimplexNet, start: Configuration, length: int) -> Seen:
        arrays, low, vertex = net.arrays_for_fast, float(net.levels.low), look_up(net.table, start)
        vertices = [vertex]
        for _ in range(length - 1):
            vertices.append(simplex_fast.run(arrays, vertices[-1], low, 1)[0])
        marks = np.array(vertices)
        return Seen(marks[:, None], arrays.vertex_weight[marks] <= low, np.zeros(length))

    def marks(self, net: SimplexNet, states: Sequence[State]) -> NDArray[np.int64]:
        return np.array([[look_up(net.table, state)] for state in states])


class _Tape(_Descent):
    """A mark: the vertex, the rows of the heads, then every cell of every tape."""

    def sizes(self, net: TapeNet) -> tuple[int, int]:
        """Most nets with as many tapes share these."""
        return {1: (256, 512), 2: (512, 1024)}.get(net.tapes, (1024, 2048))

    def parts(self, net: TapeNet, starts: Sequence[State], length: int) -> tuple[Tree, list[Tree]]:
        carries, vertices = [net.start(start).weights for start in starts], self.sizes(net)[0]
        firsts = [
            Weights(in_room(w.s, least=vertices), in_room(w.T), in_room(w.H), np.asarray(w.z))
            for w in carries
        ]
        return self.own(net), firsts

    def seen(self, net: TapeNet, traced: Tree) -> Seen:
        vertex, deviation, heads, tapes, done = traced
        tapes = tapes[:, : net.cells]
        off = np.abs(np.abs(tapes) - 1).max(axis=(1, 2))
        return Seen(_joined(vertex[:, None], heads, tapes > 0), done, np.maximum(deviation, off))

    def fast(self, net: TapeNet, start: Configuration, length: int) -> Seen:
        weights = net.start(start).weights
        vertex, tapes, heads = int(np.argmax(weights.s)), np.array(weights.T), np.argmax(weights.H, axis=0)
        b, c, low = (float(n) for n in (net.constants.b, net.constants.c, net.constants.low))
        rows, done = [], []
        for _ in range(length):
            rows.append(_joined(np.array([vertex]), heads, tapes > 0))
            vertex, taken, *_ = tape_fast.run(net.arrays_for_fast, vertex, tapes, heads, 0, b, c, low, 1)
            done.append(taken == 0)
        return Seen(np.array(rows), np.array(done), np.zeros(length))

    def marks(self, net: TapeNet, states: Sequence[Configuration]) -> NDArray[np.int64]:
        tapes, first = net.tapes, net.first_cell
        numbers = {state: i << tapes for i, state in enumerate(net.states)}
        rows = np.zeros((len(states), 1 + tapes + net.cells * tapes), np.int64)
        marked = [
            (row, 1 + tapes + (cell - first) * tapes + tape)
            for row, state in enumerate(states)
            for tape, content in enumerate(state.tapes)
            for cell in content
        ]
        if marked:
            rows[tuple(zip(*marked, strict=True))] = 1
        rows[:, 1 : 1 + tapes] = np.array([state.heads for state in states]) - first
        for row, state in zip(rows, states, strict=True):
            pairs = enumerate(zip(state.tapes, state.heads, strict=True))
            row[0] = numbers[state.state] + sum((head in tape) << i for i, (tape, head) in pairs)
        return rows


class _Transformer(Batched):
    """A mark: state, head, the symbol under it, and what the step before has written and where. The whole
    tape is the input and these writes."""

    double = False

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
        named = [_one_hot(on[:, layout.group(group)]) for group in ("st", "sym1")]
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
        named = [_one_hot(on[:, layout.group(group)]) for group in ("st", "sym1")]
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


class _Emulator(Batched):
    """A mark: the bits of the memory, then the answer: 2 while it learns."""

    def parts(self, net: PracticalNet, starts: Sequence[State], length: int) -> tuple[Tree, list[Tree]]:
        graph, kind = net.graph, net.weights.dtype
        own = blocks_of(graph), kind.type(net.constants.rate), np.asarray(net.finished)
        inputs = []
        for start in starts:
            rows, labels = self._samples(start, length, net)
            padded = np.zeros((len(rows), room(graph.vertices)), kind)
            padded[:, : rows.shape[1]] = rows
            weights = np.zeros(room(graph.edges), kind)
            weights[: graph.edges] = net.start(start).weights
            inputs.append((weights, padded, labels))
        return jax.tree.map(np.asarray, own), inputs

    def trace(self, own: Tree, first: Tree, length: int) -> Tree:
        (blocks, rate, finished), (weights, rows, labels) = own, first

        def step(weights: jax.Array, sample: Tree) -> tuple[jax.Array, Tree]:
            weights, every = sgd_step_of(weights, blocks, *sample, rate)
            return weights, (weights, every[blocks.output], every[finished])

        return weights, jax.lax.scan(step, weights, (rows, labels))[1]

    def seen(self, net: PracticalNet, traced: Tree) -> Seen:
        first, (weights, output, finished) = traced
        return self._read(net, np.concatenate([first[None], weights]), output, finished)

    def fast(self, net: PracticalNet, start: LearnerState, length: int) -> Seen:
        rows, labels = self._samples(start, length, net)
        weights, found = [net.start(start).weights], []
        for row, label in zip(rows, labels, strict=True):
            after, output, finished, *_ = emulator_fast.train(
                net.graph, weights[-1], row[None], label[None], net.constants.rate, net.finished
            )
            weights.append(after)
            found.append((output[0], finished[0]))
        return self._read(net, np.array(weights), *np.array(found).T)

    def marks(self, net: PracticalNet, states: Sequence[LearnerState]) -> NDArray[np.int64]:
        return np.array([[*state.memory, 2 if state.answer is None else state.answer] for state in states])

    def _samples(
        self, start: LearnerState, length: int, net: PracticalNet
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        kind, samples = net.weights.dtype, start.samples
        rows = input_rows(samples, 0, length - 1).astype(kind)
        return rows, (2 * samples.y[: length - 1].astype(np.int8) - 1).astype(kind)

    def _read(self, net: PracticalNet, weights: Any, output: Any, finished: Any) -> Seen:
        cells = weights[:, net.cells]
        answer = np.append(2, np.where(finished > 0, output > 0, 2))
        off = np.abs(np.abs(cells) / net.constants.w0 - 1).max(axis=1, initial=0)
        off[1:] = np.maximum(off[1:], np.where(output == 0, 0, np.abs(np.abs(output) - 1)))
        done = np.arange(len(cells)) == len(cells) - 1
        return Seen(_joined(cells < 0, answer[:, None]), done, off)


class _Relu(Batched):
    """A mark: the values of a circuit layer, pattern by pattern, 0 where it has fewer than `ROWS`."""

    ROWS = 64

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
            values = reference.run_layers(*arrays, values, bounds, heights, False)
            return values, values

        values = jnp.concatenate([first[None], jax.lax.scan(step, first, layers)[1]])
        read_out = jax.vmap(lambda v: reference.run_layers(*arrays, v, last, (self.ROWS,), True))
        return values, read_out(values)

    def seen(self, net: ReluNet, traced: Tree) -> Seen:
        values, read_out = (part[: net.circuit_layers + 1] for part in traced)
        return self._read(net, list(values), read_out[-1])

    def fast(self, net: ReluNet, start: LayerState, length: int) -> Seen:
        each, values = relu_layers(net.correction), [start.bits.T.astype(net.dtype)]
        for step in range(net.circuit_layers):
            values.append(compiled.run_stack(net.stack, values[-1], step * each, (step + 1) * each))
        read_out = compiled.run_stack(net.stack, values[-1], net.depth, net.depth + 1)
        return self._read(net, values, read_out)

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


class _Rcnn(Batched):
    """A mark: the content of every cell."""

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

BATCHED: dict[str, Batched] = {
    "simplex": _Simplex(),
    "tape": _Tape(),
    "transformer": _Transformer(),
    "emulator": _Emulator(),
    "relu": _Relu(),
    "rcnn": _Rcnn(),
}


def _joined(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """Columns side by side, what stands in a grid row by row."""
    if columns[0].ndim == 1:
        return np.concatenate([column.reshape(-1) for column in columns]).astype(np.int64)
    flat = [column.reshape(len(column), -1).astype(np.int64) for column in columns]
    return np.concatenate(flat, axis=1)


def _one_hot(on: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each row the place of its one, or -1 where there is not just one."""
    return np.where(on.sum(1) == 1, on.argmax(1), -1)
