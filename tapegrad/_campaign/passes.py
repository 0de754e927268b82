"""The nets that run in their forward pass, as campaigns follow them: transformer, relu and rcnn."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tapegrad._campaign.watch import Seen, Stepped, one_hot
from tapegrad.circuits.layered import LayerState
from tapegrad.machines.model import Configuration, GridConfiguration
from tapegrad.targets.rcnn.encoding import COMPUTE, HEAD
from tapegrad.targets.rcnn.net import RcnnNet
from tapegrad.targets.relu.net import ReluNet
from tapegrad.targets.transformer.differences import Fast
from tapegrad.targets.transformer.net import WRITE, TransformerNet

NO_WRITE = np.array([-1]), np.array([-1])
"""Where no step writes, and what."""


class Transformer(Stepped):
    """A mark: state, head, the symbol under it, and what the step before has written and where. The whole
    tape is the input and these writes."""

    nets = TransformerNet

    def steps(self, net: TransformerNet, start: Configuration, length: int, engine: str) -> Seen:
        layout, carry = net.layout, net.start(start)
        at, word = map(layout.group, WRITE)
        outputs: list[NDArray[np.float32]] = []
        writes: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        while len(outputs) < length and not (outputs and net.done(carry)):
            carry = net.advance(carry, 1, engine)
            outputs.append(carry.output)
            if isinstance(carry.engine, Fast) and carry.steps > 1:
                place, bits = carry.engine.last_written(at, word)
                writes.append((place, bits.argmax(1)) if len(place) else NO_WRITE)
        found = np.array(outputs)
        on, places = found > 0.5, 1 << np.arange(layout.position_bits)
        named = [one_hot(on[:, layout.group(group)]) for group in ("st", "sym1")]
        # Step 0 writes nothing.
        every = [*map(np.concatenate, zip(*writes, strict=True))] if writes else net.writes(carry)
        written = (np.append(0, own) for own in every)
        done = np.arange(len(found)) == (len(found) - 1 if net.done(carry) else -1)
        marks = self._together(named[0], on[:, layout.group("pos2")] @ places, named[1], *written)
        return Seen(marks, done, np.abs(found - np.round(found)).max(1))

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


class Relu(Stepped):
    """A mark: the values of a circuit layer, pattern by pattern, 0 where it has fewer than `ROWS`."""

    nets, ROWS = ReluNet, 64

    def steps(self, net: ReluNet, start: LayerState, length: int, engine: str) -> Seen:
        carry, steps = net.start(start), net.circuit_layers
        bits, off = np.zeros((steps + 1, self.ROWS, len(start.bits)), np.int64), np.zeros(steps + 1)
        for step in range(steps + 1):
            own = net.decode(carry).bits.T
            if len(own) > self.ROWS:
                raise ValueError("too wide")
            bits[step, : len(own)], off[step] = own, net.deviation(carry)
            carry = net.advance(carry, 1, engine)
        return Seen(bits.reshape(steps + 1, -1), np.arange(steps + 1) == steps, off)

    def marks(self, net: ReluNet, states: Sequence[LayerState]) -> NDArray[np.int64]:
        found = np.zeros((len(states), self.ROWS, len(states[0].bits)), np.int64)
        for own, state in zip(found, states, strict=True):
            own[: state.bits.shape[1]] = state.bits.T
        return found.reshape(len(states), -1)


class Rcnn(Stepped):
    """A mark: the content of every cell."""

    nets = RcnnNet

    def steps(self, net: RcnnNet, start: GridConfiguration, length: int, engine: str) -> Seen:
        """By the engine `fast` a grid that does not change any more may be that of a machine that stays where
        it is, so that it does not say when it has ended."""
        numbers = self._numbers(net, start, start)
        if engine == "fast":
            rows = []
            for _ in range(length):
                rows.append(numbers.reshape(-1))
                numbers = net.roller.run(numbers, 1).numbers
            return Seen(np.array(rows), None, np.zeros(length))
        grid, seen = net.encoding.encode(numbers), []
        for _ in range(length):
            after, applies = net.layer(grid)
            seen.append((net.encoding.decode(grid).reshape(-1), not applies, net.encoding.deviation(grid)))
            grid = after
        marks, done, off = zip(*seen, strict=True)
        return Seen(np.array(marks), np.array(done), np.array(off))

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
