"""The transformer of Theorem 4.1 as a net: decoder steps are its steps, decoder outputs its states."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray

from tapegrad._trees import static, tree
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.networks.explaining import Explained
from tapegrad.networks.form import Affine, Dense, formula
from tapegrad.networks.heads import Block, Decoder, Reading, read
from tapegrad.networks.heads_builder import HeadsBuilder
from tapegrad.networks.network import Network
from tapegrad.networks.numpy import chain
from tapegrad.networks.steps import Running, Steps
from tapegrad.targets.net import Net, bytes_of
from tapegrad.targets.target import Counts
from tapegrad.targets.transformer.build import CORRECTIONS, Layout, build_layers
from tapegrad.targets.transformer.differences import Fast
from tapegrad.targets.transformer.exactness import claims, correction_of, require_absorbed, temperature_for
from tapegrad.targets.transformer.gates import Gates, Table, read_gates

WRITE = "pos2", "sym2"
"""The coordinates that say where a step writes, and what."""


@dataclass(frozen=True)
class Decoding:
    """A decoder at work. `output` is the decoder's last output; before step 0 it is h_0. `engine` holds what
    the engine in use keeps between steps; a decoding that was advanced is used up."""

    steps: int
    output: Float32[np.ndarray, " width"]
    tokens: Float32[np.ndarray, "cells width"]
    """The encoder's outputs, one row for each cell of the input."""
    cells: tuple[int, ...]
    """The cells of those tokens."""
    origin: int
    """The cell at which the head starts; the net counts positions from there."""
    engine: "Running | Fast | None" = None


@tree
class TransformerNet(Net[Configuration, Decoding]):
    """An encoder-decoder transformer whose step i is step i of a Turing machine (Theorem 4.1)."""

    target: ClassVar[str] = "transformer"
    engines: ClassVar[tuple[str, ...]] = ("reference", "fast")

    saves_network: ClassVar[bool] = True

    E: Float32[np.ndarray, "width symbols"]
    theta_cls: Float32[np.ndarray, " width"]
    network: Network = static()  # pyright: ignore[reportIncompatibleVariableOverride]
    """One step of the decoder."""
    layout: Layout = static()
    rules: tuple[tuple[str, str, str, str, int], ...] = static()
    """The table that layer 1 holds: state, symbol, next state, symbol written, move."""
    start_state: str = static()
    blank: str = static()

    @classmethod
    def build(cls, machine: TuringMachine, steps: int, attention: str, correction: str) -> Self:
        """The net for runs of at most `steps` steps. It ends where `theta_halt` reads a pair of state and
        symbol for which the table has no entry, off the first layer before its correction."""
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
        temperature = temperature_for(steps, CORRECTIONS[correction].low) if attention == "softmax" else None
        names, layers = layout.names, build_layers(machine, layout, CORRECTIONS[correction])
        writer = HeadsBuilder(cls.target, names, names, h_0, layout.group("pos1"), temperature)
        for layer in layers:
            writer.block(layer)
        halting = np.flatnonzero(theta_halt)
        pairs = Dense(layers[0].feed_forward[0].map.entries().restricted(halting), "relu")
        read_out = Dense(Affine.of(theta_halt[None, halting], np.zeros(1, np.float32)), "linear")
        return cls(
            E=E,
            theta_cls=theta_cls,
            network=writer.network((pairs, read_out)),
            layout=layout,
            rules=tuple((q, a, r.state, r.write[0], r.moves[0]) for (q, (a,)), r in machine.rules.items()),
            start_state=machine.start_state,
            blank=machine.blank,
        )

    @cached_property
    def reading(self) -> Reading:
        """Its heads and dense layers, and where in the network they stand."""
        return read(self.network)

    @property
    def decoder(self) -> Decoder:
        """Its heads and dense layers."""
        return self.reading.decoder

    @cached_property
    def explained(self) -> Explained:
        return Explained(self.network, dict.fromkeys(self.reading.vectors, self.layout.names))

    @property
    def layers(self) -> tuple[Block, ...]:
        """The layers of appendix C."""
        return self.decoder.blocks

    @property
    def temperature(self) -> float:
        """By how much softmax magnifies scores; 0 for hard-max."""
        return self.decoder.temperature or 0.0

    @property
    def attention(self) -> str:
        """What gives shares to places."""
        return "softmax" if self.temperature else "hardmax"

    @property
    def h_0(self) -> NDArray[np.floating]:
        """What step 0 starts from."""
        return np.asarray(self.decoder.start)

    def given(self, carry: Decoding) -> dict[str, NDArray[Any]]:
        return {"tokens": carry.tokens}

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

    def room(self, state: Configuration) -> int:
        """T steps, and step 0."""
        return self.layout.steps + 1

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
        return self._by_index(carry, last) if engine == "fast" else self._by_steps(carry, last)

    def _by_steps(self, carry: Decoding, last: int) -> Decoding:
        running = carry.engine or self._steps.begin(self.given(carry))
        if not isinstance(running, Running):
            raise InputError("this run was begun with the fast engine", advice="Start it again.")
        output, taken, running = self._steps.to_the_halt(running, carry.steps, last)
        return replace(carry, steps=taken, output=output, engine=running)

    @cached_property
    def _steps(self) -> Steps:
        return Steps(self.network)

    def _by_index(self, carry: Decoding, last: int) -> Decoding:
        running = carry.engine or self._fast(carry)
        if not isinstance(running, Fast):
            raise InputError("this run was begun with the reference engine", advice="Start it again.")
        taken = running.advance(carry.steps, last)
        return replace(carry, steps=taken, output=running.output(self.layout.width), engine=running)

    def _fast(self, carry: Decoding) -> Fast:
        return Fast.begin(*self._gates, carry.tokens, carry.output)

    @cached_property
    def _gates(self) -> tuple[Gates, list[Table]]:
        stray = 0.0
        if (temperature := self.decoder.temperature) is not None:
            require_absorbed(self.layers, self.layout.steps, temperature)
            stray = correction_of(self.layers).radius
        return read_gates(self.decoder, self.layout.steps + 1, stray)

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
        positions, symbols = self.writes(carry)
        for position, symbol in zip(positions.tolist(), symbols.tolist(), strict=True):
            tape[position - layout.offset + carry.origin] = layout.symbols[symbol]
        tape[head] = _one_hot(output[layout.group("sym1")], layout.symbols)
        written = {cell: symbol for cell, symbol in tape.items() if symbol != self.blank}
        return Configuration(_one_hot(output[layout.group("st")], layout.states), (written,), (head,))

    def writes(self, carry: Decoding) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions and symbols written so far, in order: keys and values of the layer that copies."""
        if isinstance(carry.engine, Fast):
            positions, values = carry.engine.written(*map(self.layout.group, WRITE))
            return positions, values.argmax(1)
        assert carry.engine is not None
        bits = self.layout.position_bits
        weights = 1 << np.arange(bits, dtype=np.int64)
        copying = [own for layer in self.layers if (own := layer.self_attention) is not None][-1]
        # Of all heads side by side the last; the first row is the null key's.
        state, rows = carry.engine.state, slice(2, carry.steps + 1)
        keys = state["keys"][rows, -len(copying.key) :][:, :bits]
        values = state["values"][rows, -len(copying.targets()) :]
        return (keys > 0) @ weights, values.argmax(1)

    def done(self, carry: Decoding) -> bool:
        """Whether `theta_halt` reads a pair of state and symbol for which the table has no entry."""
        return bool(chain(self.decoder.halting, carry.output)[0] > 0.5)

    def prediction(self, carry: Decoding) -> float:
        """theta_cls . o: 1 in accepting states, -1 in rejecting ones, 0 elsewhere."""
        return float(self.theta_cls @ carry.output)

    def deviation(self, carry: Decoding) -> float:
        """How far the decoder's output is from bits."""
        return float(np.abs(carry.output - np.round(carry.output)).max())

    def units(self) -> Iterator[str]:
        """Coordinates, then layers, then the coordinates that each layer computes anew."""
        yield from self.layout.names
        for number in range(len(self.layers)):
            yield f"layer {number}"
        for number, layer in enumerate(self.layers):
            for coordinate in _computed(layer):
                yield f"layer {number}: {self.layout.names[coordinate]}"

    def explain(self, unit: str) -> str:
        """`pos2[3]`, `layer 5` or `layer 5: carry` in words; a row of a layer also as its formula."""
        if unit in self.layout.names:
            return f"{unit}: {self.layout.meaning(self.layout.names.index(unit))}"
        head, _, name = unit.partition(": ")
        number = head.removeprefix("layer ")
        if head.startswith("layer ") and number.isdecimal() and int(number) < len(self.layers):
            layer = self.layers[int(number)]
            if not name:
                return f"layer {number}: {describe(layer)}"
            if name in self.layout.names:
                row = row_formula(layer, self.layout, self.layout.names.index(name))
                return f"layer {number} ({layer.purpose}): {name} = {row}"
        raise InputError(
            f"the net has no unit {unit!r}",
            advice="Try a coordinate such as 'found', a layer such as 'layer 0', or 'layer 2: carry'.",
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Those beside the network: the embedding of symbols, and the read-out of the verdict."""
        return {"E": self.E, "theta_cls": self.theta_cls}

    @property
    def parameters(self) -> int:
        """How many numbers the paper's matrices have, written out: `W_1` and `b_1` of each layer, and of each
        attention `W_Q`, `W_K`, `W_V`, their biases, `K_0` and `V_0`; `h_0`, `theta_cls`, `theta_halt`,
        `E`."""
        width = self.layout.width
        rows = [len(attention.query) for layer in self.layers for attention in layer.attentions()]
        attentions = sum(2 * r * (width + 1) + width * (width + 2) + r for r in rows)
        return len(self.layers) * width * (width + 1) + attentions + 3 * width + self.E.size

    @property
    def counts(self) -> Counts:
        """All weights are fixed."""
        return Counts(0, self.parameters, bytes_of(self.all_arrays().values()))

    def config(self) -> dict[str, Any]:
        """The table, and what its states and symbols are called."""
        return {
            "states": list(self.layout.states),
            "symbols": list(self.layout.symbols),
            "steps": self.layout.steps,
            "rules": [list(rule) for rule in self.rules],
            "start_state": self.start_state,
            "blank": self.blank,
        }

    @classmethod
    def from_saved(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        network: Network | None = None,
    ) -> Self:
        """The net from its network and its table."""
        if network is None:
            raise BrokenNet("the folder has no network", advice="Compile and save the net again.")
        layout = Layout(tuple(config["states"]), tuple(config["symbols"]), int(config["steps"]))
        net = cls(
            E=arrays["E"],
            theta_cls=arrays["theta_cls"],
            network=network,
            layout=layout,
            rules=tuple((q, a, new, write, int(move)) for q, a, new, write, move in config["rules"]),
            start_state=config["start_state"],
            blank=config["blank"],
        )
        fits = (
            list(net.decoder.time) == layout.group("pos1")
            and network.inputs["tokens"].columns == network.state["output"].port.columns == layout.names
            and net.E.shape == (layout.width, len(layout.symbols))
            and net.theta_cls.shape == (layout.width,)
        )
        if not fits:
            raise BrokenNet("the layers of the network are not those of its machine")
        return net

    def certificate(self) -> dict[str, Any]:
        """Why every step is exact in single precision."""
        return claims(self.layers, self.layout.steps, self.decoder.temperature)


def _bits(number: int, count: int) -> NDArray[np.float32]:
    return (number >> np.arange(count) & 1).astype(np.float32)


def _number(bits: NDArray[np.float32]) -> int:
    return sum(1 << place for place, bit in enumerate(bits) if bit > 0.5)


def _one_hot(values: NDArray[np.float32], names: tuple[str, ...]) -> str:
    on = np.flatnonzero(values > 0.5)
    return names[on[0]] if len(on) == 1 else f"({len(on)} of {len(names)} are on)"


# What a row of a layer does, in words.


def describe(layer: Block) -> str:
    """The purpose of a layer, and its modules."""
    modules = ["self-attention"] if layer.self_attention is not None else []
    modules += ["encoder-decoder attention"] if layer.encoder_attention is not None else []
    return f"{layer.purpose}: {', '.join([*modules, 'three ReLU layers'])}"


def row_formula(layer: Block, layout: Layout, coordinate: int) -> str:
    """A row of `W_1` and `b_1` as people write it."""
    first = layer.feed_forward[0].map.entries()
    terms = [(layout.names[source], weight) for source, weight in sorted(first.row(coordinate))]
    bias = float(first.bias[coordinate])
    return f"relu({formula(terms, bias)})" if terms or bias else "0"


def _computed(layer: Block) -> np.ndarray:
    """Rows that are neither cleared nor copied."""
    first = layer.feed_forward[0].map.entries()
    own = np.bincount(first.rows, (first.rows == first.columns) & (first.values == 1), len(first))
    copied = (own == 1) & (np.bincount(first.rows, minlength=len(first)) == 1) & (first.bias == 0)
    cleared = ~first.reads() & (first.bias == 0)
    return np.flatnonzero(~copied & ~cleared)
