"""A machine with memories as a decoder: a step of the one is a step of the other, whatever the program.

The weights are the machine. The program, its data and its input are tokens, one for each word that is not 0;
the registers before the first step are the vector that the decoder starts from. So one net runs every program
that fits its sizes and its number of steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray

from tapegrad._trees import static, tree
from tapegrad.attention.analysis import largest_score, scales_for, softmax_error, temperature_for
from tapegrad.attention.build import TIME, Stream, build
from tapegrad.attention.clocked import ClockPorts
from tapegrad.attention.engines import require
from tapegrad.attention.memory import Bank, Layout, layout_of, memory_program
from tapegrad.attention.sources import Ports, Words, ports_of
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.networks.builder import Builder
from tapegrad.networks.explaining import Explained
from tapegrad.networks.form import Affine
from tapegrad.networks.heads import Attention, Block, Decoder, Reading, read
from tapegrad.networks.network import Network
from tapegrad.networks.numpy import chain
from tapegrad.networks.steps import Running, Steps
from tapegrad.source import State
from tapegrad.targets.net import Net, bytes_of
from tapegrad.targets.target import Counts, Estimate
from tapegrad.targets.transformer.differences import Fast
from tapegrad.targets.transformer.gates import Gates, Table, read_gates

LONG_BY_REFERENCE = 400_000_000
"""Parameters times steps, beyond which the reference engine takes ten seconds and more."""


SIDES = "keys", "values"
"""The state of the network that heads look at."""


class Write(NamedTuple):
    """A write that has been decoded."""

    bank: Bank
    address: int
    word: int


@dataclass(frozen=True)
class Decoding:
    """A decoder at work: its last output, the tokens of its input, and what the engine in use keeps. One that
    was advanced is used up."""

    steps: int
    output: Float32[np.ndarray, " width"]
    tokens: Float32[np.ndarray, "words coordinates"]
    first: State
    memories: dict[str, Words]
    """What the memories hold, as far as it was decoded: the input at first, then the writes that are read
    off what the engine keeps."""
    engine: "_Reference | Fast | None" = None


@dataclass
class _Reference:
    running: Running
    seen: int = 0
    """Steps whose writes have been decoded."""


@tree
class MemoryNet(Net[State, Decoding]):
    """A decoder-only stack of layers with attention to an input: one instruction for each of its steps."""

    target: ClassVar[str] = "transformer"
    form: ClassVar[str] = "memory"
    summary: ClassVar[str] = (
        "a decoder step is an instruction, a cycle or a step of the source; attention finds what it reads"
    )
    paper: ClassVar[str] = "after Wei, Chen, Ma, section 4"
    engines: ClassVar[tuple[str, ...]] = ("reference", "fast")

    saves_network: ClassVar[bool] = True

    network: Network = static()  # pyright: ignore[reportIncompatibleVariableOverride]
    """One step of the decoder."""
    layout: Layout = static()
    machine: Ports = static()
    horizon: int = static()
    """The most steps that it can take."""

    @classmethod
    def build(cls, machine: Ports, name: str, steps: int, attention: str) -> Self:
        """The net for runs of at most `steps` steps."""
        layout, program = layout_of(machine), memory_program(machine, name)
        temperature = temperature_for(most_keys(layout, steps)) if attention == "softmax" else None
        network, _ = build(cls.target, program, steps, temperature)
        return cls(network, layout, machine, steps)

    @classmethod
    def estimate(cls, machine: Ports, name: str, steps: int) -> Estimate:
        """What it costs: the layers are laid out, which takes a second at most, and counted."""
        net = cls.build(machine, name, steps, "hardmax")
        heads = sum(len(block.attentions()) for block in net.decoder.blocks)
        rounds = len(scales_for(memory_program(machine, name), steps).digits)
        return Estimate(
            width=net.stream.width,
            depth=len(net.decoder.blocks),
            **asdict(net.counts),
            parameters=net.parameters,
            steps=steps,
            precision="float32",
            notes=(
                f"{heads} heads, in {rounds} round(s) for the number of the latest step",
                "every weight is kept by its place, and there are as many as gates and heads need",
            ),
        )

    @property
    def counts(self) -> Counts:
        """All weights are fixed."""
        return Counts(0, self.parameters, bytes_of(self.network.arrays.values()))

    @property
    def parameters(self) -> int:
        """Weights and biases that are not 0: indices of entries do not count."""
        weights = [array for array in self.network.arrays.values() if array.dtype == np.float32]
        return sum(int(np.count_nonzero(array)) for array in weights)

    # Running

    @cached_property
    def reading(self) -> Reading:
        """Its heads and gates, and where in the network they stand."""
        return read(self.network)

    @property
    def decoder(self) -> Decoder:
        """Its heads and gates."""
        return self.reading.decoder

    @cached_property
    def explained(self) -> Explained:
        return Explained(self.network, dict.fromkeys(self.reading.vectors, self.stream.names))

    @cached_property
    def stream(self) -> Stream:
        """The coordinates by name."""
        parts = (name.rpartition("[") for name in self.network.state["output"].port.columns)
        return Stream(tuple((group, int(number.removesuffix("]"))) for group, _, number in parts))

    def one_step(self) -> Network | None:
        """Of a circuit without state its one step, from `bits` to `outputs`, as a network without state; None
        of any other source. The one token holds the bits, and one that says that the trace ends."""
        if not isinstance(self.machine, ClockPorts) or self.machine.source.latches:
            return None
        logic, token = self.machine.source.logic, [own.width for own in self.layout.token]
        word = sum(token[:-1])
        last, places = word, word + 1 + np.arange(len(logic.inputs))
        graph = Builder(self.target)
        bits = graph.input("bits", "patterns", len(places), columns=logic.inputs, about="0 or 1")
        row = np.zeros((1, sum(token)), np.float32)
        row[0, last] = 1
        tokens = graph.put(graph.constant(row), bits, places)
        tokens = graph.take(tokens, np.arange(sum(token))[None])
        found = graph.step(self.network, {"tokens": tokens})["output"]
        outputs = graph.take(found, self.stream.group("outputs"))
        flat = graph.node("transpose", outputs, order=(0, 2, 1)).total()
        graph.output("outputs", graph.columns(flat, logic.outputs))
        return graph.network()

    def given(self, carry: Decoding) -> dict[str, NDArray[Any]]:
        return {"tokens": carry.tokens, "output": carry.output[None]}

    def start(self, state: State) -> Decoding:
        """The words of all memories as tokens, and the registers as the first vector."""
        registers, memories = self.machine.contents(state)
        output = np.zeros(self.stream.width, np.float32)
        for name, of in self.layout.registers.items():
            output[self.stream.group(name)] = _bits(registers[name], of.width)
        token = self.layout.token
        tokens = [
            np.concatenate([_bits(number, own.width) for number, own in zip(parts, token, strict=True)])
            for bank in self.layout.banks
            for at, word in bank.of(memories[bank.memory])
            for parts in [(bank.number, at, word)]
            if word and 0 <= at < bank.words
        ]
        shape = -1, sum(own.width for own in token)
        kept = {name: words.copy() for name, words in memories.items()}
        return Decoding(0, output, np.array(tokens, np.float32).reshape(shape), state, kept)

    def room(self, state: State) -> int:
        """T steps, from any state."""
        return self.horizon

    def step(self, carry: Decoding) -> Decoding:
        """One decoder step, by the reference engine."""
        return self.advance(carry, 1)

    def engine_for(self, carry: Decoding, steps: int) -> str:
        ahead = min(steps, self.horizon - carry.steps)
        return "fast" if ahead * self.parameters > LONG_BY_REFERENCE else "reference"

    def advance(self, carry: Decoding, steps: int, engine: str = "reference") -> Decoding:
        """Decoder steps, until the machine has stopped."""
        self.check_engine(engine)
        if steps < 1 or self.done(carry):
            return carry
        limit = self.horizon
        if carry.steps >= limit:
            raise Refused(
                f"the machine has not stopped after {limit:,} steps, for which this net was compiled",
                advice=f"Compile with a larger T, as in steps={2 * limit}.",
            )
        last = min(carry.steps + steps, limit) - 1
        running = carry.engine or (self._fast(carry) if engine == "fast" else self._reference(carry))
        if isinstance(running, Fast) != (engine == "fast"):
            raise InputError("this run was begun with another engine", advice="Start it again.")
        if isinstance(running, Fast):
            taken = running.advance(carry.steps, last)
            return replace(carry, steps=taken, output=running.output(self.stream.width), engine=running)
        output, taken, reading = self._steps.to_the_halt(running.running, carry.steps, last)
        return replace(carry, steps=taken, output=output, engine=replace(running, running=reading))

    @cached_property
    def _steps(self) -> Steps:
        return Steps(self.network)

    def _reference(self, carry: Decoding) -> _Reference:
        return _Reference(self._steps.begin(self.given(carry)))

    def _fast(self, carry: Decoding) -> Fast:
        return Fast.begin(*self._gates, carry.tokens, carry.output)

    @cached_property
    def _gates(self) -> tuple[Gates, list[Table]]:
        return read_gates(self.decoder, self.horizon, self._stray)

    @property
    def _stray(self) -> float:
        """How far a bit that a head copies can be from the bit."""
        if (temperature := self.decoder.temperature) is None:
            return 0.0
        stray = softmax_error(self._keys, temperature)
        require(float(np.log2(temperature)).is_integer() and stray <= 1 / 8)
        return stray

    @property
    def _keys(self) -> int:
        """Most keys that a head looks at, the null key among them."""
        return most_keys(self.layout, self.horizon)

    def done(self, carry: Decoding) -> bool:
        """Whether a bit that says so is 1."""
        return bool(chain(self.decoder.halting, carry.output)[0] > 0.5)

    def decode(self, carry: Decoding) -> State:
        """Registers from the decoder's output; memories from the tokens and the writes that the decoder has
        cached for its own use, the last of which stands in its output."""
        if (running := carry.engine) is not None:
            kept_writes = (
                self._in_tables(running) if isinstance(running, Fast) else self._cached(running, carry.steps)
            )
            for write in (*kept_writes, *self._pending(carry.output)):
                place = write.address if write.bank.side is None else 2 * write.address + write.bank.side
                carry.memories[write.bank.memory][place] = write.word
        registers = {name: _number(carry.output[self.stream.group(name)]) for name in self.layout.registers}
        kept = {name: words.copy() for name, words in carry.memories.items()}
        return self.machine.state(registers, kept, carry.first)

    def _pending(self, output: Float32[np.ndarray, " width"]) -> Iterator[Write]:
        for bank in self.layout.banks:
            if bank.written:
                on, at, word = (_number(output[self.stream.group(own.name)]) for own in bank.write)
                if on:
                    yield Write(bank, at, word)

    def _cached(self, running: _Reference, steps: int) -> Iterator[Write]:
        """Writes of the steps not seen so far, from keys and values of a head that looks for them."""
        for bank, rows, columns in self._write_heads:
            # The first row is the null key's.
            keys, values = (running.running.state[side][1 + running.seen : 1 + steps] for side in SIDES)
            keys, values = keys[:, rows] > 0, values[:, columns] > 0.5
            for place in np.flatnonzero(keys[:, 0]):
                yield Write(bank, _number(keys[place, 1:]), _number(values[place]))
        running.seen = steps

    def _in_tables(self, running: Fast) -> Iterator[Write]:
        """The latest write to every address."""
        for bank in self.layout.banks:
            if bank.written:
                _, at, word = (self.stream.group(own.name) for own in bank.write)
                addresses, bits = running.written(at, word)
                contents = bits @ (np.uint64(1) << np.arange(bank.width, dtype=np.uint64))
                for address, content in zip(addresses.tolist(), contents.tolist(), strict=True):
                    yield Write(bank, address, content)

    @cached_property
    def _write_heads(self) -> list[tuple[Bank, NDArray[np.intp], NDArray[np.intp]]]:
        """For each bank that is written, where the cache of a head that looks there holds the flag and the
        address (as keys) and the word (as values)."""
        heads = [own for block in self.decoder.blocks if (own := block.self_attention) is not None]
        first_key = np.cumsum([0, *(len(head.key) for head in heads)])
        first_value = np.cumsum([0, *(len(head.targets()) for head in heads)])
        found = []
        for bank in self.layout.banks:
            if not bank.written:
                continue
            on, at, word = (self.stream.group(own.name) for own in bank.write)
            for number, head in enumerate(heads):
                key, value = head.key.entries(), head.value.entries()
                if {*word} <= {*value.columns} and {*on, *at} <= {*key.columns}:
                    rows = [key.rows[key.columns == place][0] for place in (*on, *at)]
                    to = [value.rows[value.columns == place][0] for place in word]
                    columns = np.searchsorted(head.targets(), to)
                    found.append((bank, first_key[number] + np.array(rows), first_value[number] + columns))
                    break
        return found

    def deviation(self, carry: Decoding) -> float:
        """How far the decoder's output is from bits."""
        return float(np.abs(carry.output - np.round(carry.output)).max())

    # Words for people

    def units(self) -> Iterator[str]:
        """Coordinates, then layers."""
        yield from self.stream.names
        for number in range(len(self.decoder.blocks)):
            yield f"layer {number}"

    def explain(self, unit: str) -> str:
        """A coordinate by what sets it, a layer by its purpose and what it compares and copies."""
        head, _, number = unit.rpartition("layer ")
        if not head and number.isdecimal() and int(number) < len(self.decoder.blocks):
            return f"{unit}: {self._described(self.decoder.blocks[int(number)])}"
        if unit not in self.stream.names:
            raise InputError(
                f"the net has no unit {unit!r}",
                advice="Try a coordinate such as 'pc[2]', or a layer such as 'layer 0'.",
            )
        coordinate, group = self.stream.names.index(unit), unit.rpartition("[")[0]
        made = self.explained.made(unit)
        if group == TIME:
            return f"{unit}: a bit of the number of this step"
        if coordinate in self.decoder.blocks[-1].feed_forward[0].map.entries().rows:
            made = f"carried from step to step: a bit of {group}; {made}"
        return f"{unit}: {made or 'not used'}"

    def _described(self, block: Block) -> str:
        if not block.attentions():
            return f"{block.purpose}: {len(block.feed_forward[0].map)} ReLU units"
        attention = block.attentions()[0]
        over = "the latest step" if block.self_attention is not None else "the token"
        places = self.stream.names if block.self_attention is not None else self._token_names
        pairs = _pairs(attention, self.stream.names, places)
        return f"{block.purpose}: attention to {over} where {', '.join(pairs)}"

    @cached_property
    def _token_names(self) -> list[str]:
        return [bit for own in self.layout.token for bit in own.bits]

    # Files

    def arrays(self) -> dict[str, NDArray[Any]]:
        """None but those of the network."""
        return {}

    def config(self) -> dict[str, Any]:
        """The machine, and how its memories stand among the coordinates."""
        return {
            "form": "memory",
            "machine": self.machine.to_json(),
            "banks": [asdict(bank) for bank in self.layout.banks],
            "steps": self.horizon,
        }

    @classmethod
    def from_saved(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        network: Network | None = None,
    ) -> Self:
        """The net from its network."""
        if network is None:
            raise BrokenNet("the folder has no network", advice="Compile and save the net again.")
        if "tokens" not in network.inputs:
            raise BrokenNet("the network does not consist of heads and gates: it takes no tokens")
        machine, columns = ports_of(config["machine"]), network.inputs["tokens"].columns
        layout = Layout(dict(machine.registers), tuple(Bank(**bank) for bank in config["banks"]))
        if any(max(bank.address, bank.width) > len(columns) for bank in layout.banks):
            raise BrokenNet("a memory of the network has more bits than its tokens")
        net = cls(network, layout, machine, int(config["steps"]))
        carried = {own.name: own.width for own in layout.carried}
        token = tuple(bit for own in layout.token for bit in own.bits)
        time = net.decoder.time
        fits = (
            all(len(net.stream.group(name)) == width for name, width in carried.items())
            and columns == token
            and list(time) == net.stream.group(TIME)
            and 1 <= net.horizon <= 1 << len(time)
        )
        if not fits:
            raise BrokenNet("the layers of the network are not those of its machine")
        return net

    def certificate(self) -> dict[str, Any]:
        """Why every step is exact in single precision: see `tapegrad.attention.analysis`."""
        heads = [attention for block in self.decoder.blocks for attention in block.attentions()]
        claims: dict[str, Any] = {
            "dtype": "float32",
            "steps": self.horizon,
            "layers": len(self.decoder.blocks),
            "largest_score": max(_largest_score(head) for head in heads),
            "score_gap": 1.0,
            "attention": "hardmax" if self.decoder.temperature is None else "softmax",
        }
        if self.decoder.temperature is not None:
            claims["temperature"] = self.decoder.temperature
            claims["softmax_error"] = softmax_error(self._keys, self.decoder.temperature)
        return claims


def most_keys(layout: Layout, steps: int) -> int:
    """Steps or tokens, and the null key."""
    return 1 + max(steps, sum(bank.words for bank in layout.banks))


def _pairs(attention: Attention, here: Sequence[str], there: Sequence[str]) -> Iterator[str]:
    """What a head compares, row by row; the last two rows are the digit and the null key."""
    query, key = attention.query.entries(), attention.key.entries()
    for row in range(len(query) - 2):
        sides = []
        for own, names in ((query, here), (key, there)):
            columns = [column for column, _ in own.row(row)]
            sides.append(names[columns[0]] if columns else str(int(own.bias[row] > 0)))
        yield " = ".join(sides)


def _largest_score(attention: Attention) -> float:
    """No score can be larger, for vectors of bits: signs compared, the digit, and the null key."""
    key: Affine = attention.key.entries()
    compared = len(key) - 2
    digit = int(np.count_nonzero(key.rows == compared))
    return float(largest_score(compared, digit))


def _bits(number: int, count: int) -> NDArray[np.float32]:
    return np.array([number >> bit & 1 for bit in range(count)], np.float32)


def _number(bits: NDArray[Any]) -> int:
    return sum(1 << place for place in np.flatnonzero(np.asarray(bits) > 0.5).tolist())
