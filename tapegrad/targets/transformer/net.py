"""The transformer of Theorem 4.1 as a net: decoder steps are its steps, decoder outputs its states."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tapegrad.errors import InputError, Refused
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.targets.net import Net
from tapegrad.targets.transformer import fast, reference
from tapegrad.targets.transformer.construction import CORRECTIONS, build_layers
from tapegrad.targets.transformer.exactness import claims, require_absorbed, temperature_for
from tapegrad.targets.transformer.explaining import explain, unit_names
from tapegrad.targets.transformer.layers import TransformerLayer
from tapegrad.targets.transformer.layout import Layout
from tapegrad.targets.transformer.program import Program, flatten, input_index
from tapegrad.targets.transformer.weights import layers_from_arrays, layers_to_arrays


@dataclass(frozen=True)
class Decoding:
    """A decoder at work. `output` is the decoder's last output; before step 0 it is h_0. `engine` holds what
    the engine in use keeps between steps; a decoding that was advanced is used up."""

    steps: int
    output: NDArray[np.float32]
    tokens: NDArray[np.float32]
    """The encoder's outputs, one row for each cell of the input."""
    cells: tuple[int, ...]
    """The cells of those tokens."""
    origin: int
    """The cell at which the head starts; the net counts positions from there."""
    engine: "_Reference | _Fast | None" = None


@dataclass(frozen=True)
class _Reference:
    network: reference.Network
    memory: reference.Memory
    tokens: Any
    given: Any


@dataclass(frozen=True)
class _Fast:
    program: Program
    index: fast.Index
    codes: NDArray[np.int64]
    values: NDArray[np.float32]


class TransformerNet(Net):
    """An encoder-decoder transformer whose step i is step i of a Turing machine (Theorem 4.1)."""

    target: ClassVar[str] = "transformer"
    engines: ClassVar[tuple[str, ...]] = ("reference", "fast")

    layers: tuple[TransformerLayer, ...]
    h_0: NDArray[np.float32]
    E: NDArray[np.float32]
    theta_cls: NDArray[np.float32]
    theta_halt: NDArray[np.float32]
    layout: Layout = eqx.field(static=True)
    rules: tuple[tuple[str, str, str, str, int], ...] = eqx.field(static=True)
    """The table that layer 1 holds: state, symbol, next state, symbol written, move."""
    start_state: str = eqx.field(static=True)
    blank: str = eqx.field(static=True)
    attention: str = eqx.field(static=True)
    temperature: float = eqx.field(static=True)

    @classmethod
    def build(cls, machine: TuringMachine, steps: int, attention: str, correction: str) -> Self:
        """The net for runs of at most `steps` steps."""
        layout = Layout.of(machine, steps)
        h_0 = np.zeros(layout.width, np.float32)
        h_0[layout.at("start")] = 1
        h_0[layout.group("pos2")] = _bits(layout.offset, layout.position_bits)
        E = np.zeros((layout.width, len(layout.symbols)), np.float32)
        E[layout.group("sym1")] = np.eye(len(layout.symbols))
        theta_cls, theta_halt = np.zeros((2, layout.width), np.float32)
        for states, side in ((machine.accept, 1), (machine.reject, -1)):
            theta_cls[[layout.at("st", state) for state in states]] = side
        for state in layout.states:
            for symbol in layout.symbols:
                if (state, (symbol,)) not in machine.rules:
                    theta_halt[layout.at("pair", state, symbol)] = 1
        return cls(
            layers=build_layers(machine, layout, correction),
            h_0=h_0,
            E=E,
            theta_cls=theta_cls,
            theta_halt=theta_halt,
            layout=layout,
            rules=tuple((q, a, r.state, r.write[0], r.moves[0]) for (q, (a,)), r in machine.rules.items()),
            start_state=machine.start_state,
            blank=machine.blank,
            attention=attention,
            temperature=temperature_for(steps, CORRECTIONS[correction][0]) if attention == "softmax" else 0.0,
        )

    def start(self, state: Configuration) -> Decoding:
        """The encoder's outputs for the cells from the first to the last that is not blank, and h_0."""
        if state.state != self.start_state:
            raise InputError(f"the net starts in state {self.start_state!r}, not in {state.state!r}")
        tape, origin = state.tapes[0], state.heads[0]
        cells = tuple(range(min(tape), max(tape) + 1)) if tape else ()
        steps = self.layout.steps
        if len(cells) > steps or any(abs(cell - origin) > steps for cell in (*cells[:1], *cells[-1:])):
            raise InputError(
                f"the input has {len(cells)} cells, but a net for T = {steps} steps reaches only {steps} "
                "cells either way from the head",
                advice=f"Compile with steps={max(len(cells), steps + 1)} or more.",
            )
        tokens = np.zeros((len(cells), self.layout.width), np.float32)
        for row, cell in enumerate(cells):
            tokens[row] = self.E[:, self.layout.symbols.index(tape.get(cell, self.blank))]
            position = cell - origin + self.layout.offset
            tokens[row, self.layout.group("pos1")] += _bits(position, self.layout.position_bits)
        return Decoding(0, self.h_0.copy(), tokens, cells, origin)

    def step(self, carry: Decoding) -> Decoding:
        """One decoder step, by the reference engine."""
        return self.advance(carry, 1)

    def advance(self, carry: Decoding, steps: int, engine: str = "reference") -> Decoding:
        """Decoder steps; the first, step 0, only reads the symbol under the head."""
        self.check_engine(engine)
        if steps < 1 or self.done(carry):
            return carry
        limit = self.layout.steps
        if carry.steps > limit:
            raise Refused(
                f"the machine has not halted after {limit} steps, for which this net was compiled",
                advice=f"Compile with a larger T, as in steps={2 * limit}.",
            )
        last = min(carry.steps + steps - 1, limit)
        return self._by_index(carry, last) if engine == "fast" else self._by_scan(carry, last)

    def _by_scan(self, carry: Decoding, last: int) -> Decoding:
        running = carry.engine or self._reference(carry)
        if not isinstance(running, _Reference):
            raise InputError("this run was begun with the fast engine", advice="Start it again.")
        width = running.network.theta_halt.shape[0]
        memory, output, step = reference.advance(
            running.network,
            running.tokens,
            running.given,
            running.memory,
            jnp.asarray(np.pad(carry.output, (0, width - len(carry.output)))),
            jnp.asarray(carry.steps),
            jnp.asarray(last),
            jnp.asarray(self.temperature, jnp.float32),
            self.attention == "softmax",
        )
        output = np.asarray(output)[: self.layout.width]
        return replace(carry, steps=int(step), output=output, engine=replace(running, memory=memory))

    def _by_index(self, carry: Decoding, last: int) -> Decoding:
        running = carry.engine or self._fast(carry)
        if not isinstance(running, _Fast):
            raise InputError("this run was begun with the reference engine", advice="Start it again.")
        index, output, step = fast.advance(
            running.program,
            running.codes,
            running.values,
            running.index,
            carry.output.copy(),
            carry.steps,
            last,
        )
        return replace(carry, steps=step, output=output, engine=replace(running, index=index))

    def _reference(self, carry: Decoding) -> _Reference:
        network = reference.stack(self.layers, self.layout.group("pos1"), self.theta_halt)
        width = network.theta_halt.shape[0]
        room = -(-max(len(carry.cells), 1) // 64) * 64  # padded, so that inputs of like length share code
        tokens = np.zeros((room, width), np.float32)
        tokens[: len(carry.cells), : self.layout.width] = carry.tokens
        memory = reference.empty_memory(network, self.layout.steps)
        return _Reference(network, memory, jnp.asarray(tokens), jnp.arange(room) < len(carry.cells))

    def _fast(self, carry: Decoding) -> _Fast:
        if self.attention == "softmax":
            require_absorbed(self.layers, self.layout.steps, self.temperature)
        program = flatten(
            self.layers, self.h_0, self.layout.group("pos1"), self.theta_halt, self.layout.steps
        )
        attention = self.layers[program.encoder_layer].encoder_attention
        assert attention is not None
        codes, values = input_index(attention, carry.tokens)
        return _Fast(program, fast.empty_index(program), codes, values)

    def decode(self, carry: Decoding) -> Configuration | None:
        """State, symbol and position from the decoder's output; the rest of the tape from the input and the
        writes that the decoder has cached for its own use."""
        if carry.steps == 0:
            return None
        layout, output = self.layout, carry.output
        head = _number(output[layout.group("pos2")]) - layout.offset + carry.origin
        tape = {
            cell: layout.symbols[int(token[layout.group("sym1")].argmax())]
            for cell, token in zip(carry.cells, carry.tokens, strict=True)
        }
        positions, symbols = self._writes(carry)
        for position, symbol in zip(positions.tolist(), symbols.tolist(), strict=True):
            tape[position - layout.offset + carry.origin] = layout.symbols[symbol]
        tape[head] = _one_hot(output[layout.group("sym1")], layout.symbols)
        written = {cell: symbol for cell, symbol in tape.items() if symbol != self.blank}
        return Configuration(_one_hot(output[layout.group("st")], layout.states), (written,), (head,))

    def _writes(self, carry: Decoding) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions and symbols written so far, in order: keys and values of the layer that copies."""
        if isinstance(carry.engine, _Fast):
            positions, values = fast.last_writes(carry.engine.index, carry.steps)
            return positions, values.argmax(1)
        assert carry.engine is not None
        bits = self.layout.position_bits
        weights = 1 << np.arange(bits, dtype=np.int64)
        keys = np.asarray(carry.engine.memory.keys[-1])[0, 1 : carry.steps, :bits]
        values = np.asarray(carry.engine.memory.values[-1])[0, 1 : carry.steps]
        return (keys > 0) @ weights, values.argmax(1)

    def done(self, carry: Decoding) -> bool:
        """Whether `theta_halt` reads a pair of state and symbol for which the table has no entry."""
        first = self.layers[0].feed_forward
        rows = np.flatnonzero(self.theta_halt)
        return bool((first.W_1[rows] @ carry.output + first.b_1[rows] > 0.5).any())

    def prediction(self, carry: Decoding) -> float:
        """theta_cls . o: 1 in accepting states, -1 in rejecting ones, 0 elsewhere."""
        return float(self.theta_cls @ carry.output)

    def deviation(self, carry: Decoding) -> float:
        """How far the decoder's output is from bits."""
        return float(np.abs(carry.output - np.round(carry.output)).max())

    def units(self) -> Iterator[str]:
        """Coordinates, layers, and coordinates of layers."""
        return unit_names(self.layers, self.layout)

    def explain(self, unit: str) -> str:
        """`pos2[3]`, `layer 5` or `layer 5: carry` in words."""
        return explain(self.layers, self.layout, unit)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The paper's matrices under the paper's names."""
        own = {"h_0": self.h_0, "E": self.E, "theta_cls": self.theta_cls, "theta_halt": self.theta_halt}
        return own | layers_to_arrays(self.layers)

    def config(self) -> dict[str, Any]:
        """Sizes and names."""
        feed = self.layers[0].feed_forward
        return {
            "states": list(self.layout.states),
            "symbols": list(self.layout.symbols),
            "steps": self.layout.steps,
            "rules": [list(rule) for rule in self.rules],
            "start_state": self.start_state,
            "blank": self.blank,
            "attention": self.attention,
            "temperature": self.temperature,
            "low": feed.low,
            "high": feed.high,
            "purposes": [layer.purpose for layer in self.layers],
            "coordinates": list(self.layout.names),
        }

    @classmethod
    def from_saved(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The net from its matrices."""
        layout = Layout(tuple(config["states"]), tuple(config["symbols"]), int(config["steps"]))
        return cls(
            layers=layers_from_arrays(config, arrays),
            h_0=arrays["h_0"],
            E=arrays["E"],
            theta_cls=arrays["theta_cls"],
            theta_halt=arrays["theta_halt"],
            layout=layout,
            rules=tuple((q, a, new, write, int(move)) for q, a, new, write, move in config["rules"]),
            start_state=config["start_state"],
            blank=config["blank"],
            attention=config["attention"],
            temperature=float(config["temperature"]),
        )

    def certificate(self) -> dict[str, Any]:
        """Why every step is exact in single precision."""
        return claims(self.layers, self.layout.steps, self.attention, self.temperature)


def _bits(number: int, count: int) -> NDArray[np.float32]:
    return (number >> np.arange(count) & 1).astype(np.float32)


def _number(bits: NDArray[np.float32]) -> int:
    return sum(1 << place for place, bit in enumerate(bits) if bit > 0.5)


def _one_hot(values: NDArray[np.float32], names: tuple[str, ...]) -> str:
    on = np.flatnonzero(values > 0.5)
    return names[on[0]] if len(on) == 1 else f"({len(on)} of {len(names)} are on)"
