"""The nets that run while they are trained, as campaigns follow them: simplex, tape and emulator."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad._campaign.watch import Batched, Seen, Tree, joined
from tapegrad._optimise import NetworkLoss, OnSimplex, descend
from tapegrad.learners import LearnerState
from tapegrad.machines.model import Configuration
from tapegrad.networks.backends.jax import in_room as in_blocks
from tapegrad.source import State
from tapegrad.targets.descent.loss import LEAST, Numbers, Weights, in_room
from tapegrad.targets.emulator import fast as emulator_fast
from tapegrad.targets.emulator.net import PracticalNet, input_rows
from tapegrad.targets.emulator.reference import roomy, sgd_step
from tapegrad.targets.simplex import fast as simplex_fast
from tapegrad.targets.simplex.build import look_up
from tapegrad.targets.simplex.net import SimplexNet
from tapegrad.targets.tape import fast as tape_fast
from tapegrad.targets.tape.net import TapeNet


class Descent(Batched):
    """Training runs the machine. The first gradient step reads the labels; a state stands after it and after
    each further one."""

    def trace(self, own: Tree, first: Tree, length: int) -> Tree:
        error, low, vertices = own
        rates = dict.fromkeys(first, 1.0) | {"s": OnSimplex(vertices=vertices)}

        def step(weights: Tree, _: None) -> tuple[Tree, Tree]:
            value, gradient = jax.value_and_grad(error)(weights)
            return descend(error, weights, rates, gradient), (*self.shown(weights), value <= low)

        weights = descend(error, first, rates, jax.grad(error)(first))
        return jax.lax.scan(step, weights, length=length)[1]

    def shown(self, weights: Tree) -> tuple[jax.Array, ...]:
        """Vertex, deviation, and what the tapes show."""
        s = weights["s"]
        off = jnp.abs(s - jnp.round(s)).max()
        if "H" not in weights:
            return jnp.argmax(s), off
        H = weights["H"]
        off = jnp.maximum(off, jnp.abs(H - jnp.round(H)).max())
        return jnp.argmax(s), off, jnp.argmax(H, 0), weights["T"]

    def parts(
        self, net: TapeNet | SimplexNet, starts: Sequence[State], length: int
    ) -> tuple[Tree, list[Tree]]:
        error, (vertices, edges) = net.error, self.sizes(net)
        network = error.in_room(net.shapes, vertices, edges)
        own = NetworkLoss(network, error.data()), np.asarray(net.stop), np.asarray(net.vertex_count)
        firsts = []
        for start in starts:
            weights: Weights[Numbers] = net.start(start).weights  # type: ignore[arg-type]
            padded = weights._replace(
                s=in_room(weights.s, least=vertices), T=in_room(weights.T), H=in_room(weights.H)
            )
            firsts.append({name: np.asarray(getattr(padded, name)) for name in net.training.updates})
        return own, firsts

    def sizes(self, net: Any) -> tuple[int, int]:
        """Room for vertices and edges."""
        return LEAST, LEAST


class Simplex(Descent):
    nets = SimplexNet

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


class Tape(Descent):
    """A mark: the vertex, the rows of the heads, then every cell of every tape."""

    nets = TapeNet

    def sizes(self, net: TapeNet) -> tuple[int, int]:
        """Most nets with as many tapes share these."""
        return {1: (256, 512), 2: (512, 1024)}.get(net.tapes, (1024, 2048))

    def seen(self, net: TapeNet, traced: Tree) -> Seen:
        vertex, deviation, heads, tapes, done = traced
        tapes = tapes[:, : net.cells]
        off = np.abs(np.abs(tapes) - 1).max(axis=(1, 2))
        return Seen(joined(vertex[:, None], heads, tapes > 0), done, np.maximum(deviation, off))

    def fast(self, net: TapeNet, start: Configuration, length: int) -> Seen:
        weights = net.start(start).weights
        vertex, tapes, heads = int(np.argmax(weights.s)), np.array(weights.T), np.argmax(weights.H, axis=0)
        b, c, low = (float(n) for n in (net.constants.b, net.constants.c, net.constants.low))
        rows, done = [], []
        for _ in range(length):
            rows.append(joined(np.array([vertex]), heads, tapes > 0))
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


class Emulator(Batched):
    """A mark: the bits of the memory, then the answer: 2 while it learns."""

    nets = PracticalNet

    def parts(self, net: PracticalNet, starts: Sequence[State], length: int) -> tuple[Tree, list[Tree]]:
        rate, inputs = net.weights.dtype.type(net.constants.rate), []
        for start in starts:
            rows, labels = self._samples(start, length, net)
            given = {"weights": net.start(start).weights, "row": rows[0]}
            padded = roomy(given, net.graph.vertices)
            every = np.zeros((len(rows), len(padded["row"])), rows.dtype)
            every[:, : rows.shape[1]] = rows
            inputs.append((padded["weights"], every, labels))
        return (replace(in_blocks(net.network), training=None), rate), inputs

    def trace(self, own: Tree, first: Tree, length: int) -> Tree:
        (network, rate), (weights, rows, labels) = own, first

        def step(weights: jax.Array, sample: Tree) -> tuple[jax.Array, Tree]:
            given = {"weights": weights, "row": sample[0], "label": sample[1]}
            weights, outputs = sgd_step(network, given, {"weights": rate})
            return weights, (weights, outputs["output"], outputs["finished"])

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
        return Seen(joined(cells < 0, answer[:, None]), done, off)
