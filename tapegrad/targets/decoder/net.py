"""A machine as a language model: the prompt is the input, and what greedy decoding adds to it is the run.

A step of the net is a record of tokens, which tells where the machine is, what it sees and what it does. A
run begins with the prompt and one record, so that the last token always says whether there is a next step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tapegrad._sources import source_from_json
from tapegrad._trees import static, tree
from tapegrad.attention.analysis import largest_score, softmax_error
from tapegrad.attention.language import MEAN, build, scales_for, temperature_for
from tapegrad.attention.rv32_tokens import RISC_V, Rv32Tokens
from tapegrad.attention.subleq_tokens import SUBLEQ, SubleqTokens
from tapegrad.attention.tape_tokens import TAPES, TapeTokens
from tapegrad.attention.tokens import END, TokenProgram
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.machines.model import TuringMachine
from tapegrad.networks.form import Affine
from tapegrad.networks.network import Network
from tapegrad.networks.texts import EMBEDDING, UNEMBEDDING, Head, Parts, Reading, Records, parts_of
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq
from tapegrad.source import State
from tapegrad.targets.decoder.fast import Fast, Tables, read_tables
from tapegrad.targets.net import SHORT_RUN, Net, bytes_of, part_of
from tapegrad.targets.target import Counts, Estimate


class Story(Protocol):
    """One that reads a run, record by record."""

    def read(self, record: Sequence[int], /) -> bool:
        """Whether it has come to the next step; a step may take several records."""
        ...

    def configuration(self) -> State: ...


class Words(Protocol):
    """A source as a token program, and how its states are told."""

    @property
    def about(self) -> str:
        """How to read a text, for the model card."""
        ...

    @cached_property
    def program(self) -> TokenProgram: ...

    @property
    def record(self) -> int: ...

    def prompt(self, first: Any, tokens: int, /) -> list[int]: ...

    def follow(self, first: Any, /) -> Story: ...

    def to_json(self) -> dict[str, Any]: ...


def words_of(data: Mapping[str, Any]) -> Words:
    """The source again, from its JSON."""
    if data["kind"] == SUBLEQ:
        return SubleqTokens(Subleq(int(data["ram"]), width=int(data["width"])), _digits(data["counted"]))
    if data["kind"] == RISC_V:
        return Rv32Tokens(RV32(int(data["ram"])), _digits(data["counted"]))
    machine = source_from_json(data["source"], {})
    if data["kind"] != TAPES or not isinstance(machine, TuringMachine):
        raise BrokenNet("the machine of the network has no tapes")
    return TapeTokens(machine, _digits(data["digits"]))


def _digits(number: Any) -> int:
    """A number of digits. Records have a token for each, so that a large one would take all memory."""
    if not 1 <= int(number) <= MOST_DIGITS:
        raise BrokenNet(f"a record cannot have {int(number):,} digits for one number")
    return int(number)


@dataclass(frozen=True)
class Generation:
    """A text, as far as it was written. One that was advanced is used up."""

    tokens: list[int]
    prompt: int
    """How many of them were given."""
    steps: int
    story: Story
    stray: float = 0.0
    """How far, at most, the best logit was from what it should be."""
    engine: Reading | Fast | None = None


@tree
class DecoderNet(Net[State, Generation]):
    """A causal transformer of a few layers."""

    target: ClassVar[str] = "decoder"
    engines: ClassVar[tuple[str, ...]] = ("reference", "fast")
    saves_network: ClassVar[bool] = True

    network: Network = static()  # pyright: ignore[reportIncompatibleVariableOverride]
    words: Words = static()
    tokens: int = static()
    """The horizon: most tokens of a text."""

    @classmethod
    def build(cls, words: Words, tokens: int) -> Self:
        """The net for texts of at most so many tokens."""
        return cls(build(words.program, tokens), words, tokens)

    # Running

    @property
    def names(self) -> tuple[str, ...]:
        """The names of coordinates."""
        return self.network.columns[EMBEDDING]

    @cached_property
    def parts(self) -> Parts:
        """Heads and units of the network."""
        return parts_of(self.network)

    @property
    def positions(self) -> Records:
        """What is known of positions."""
        own = self.parts.positions
        assert isinstance(own, Records)
        return own

    def given(self, carry: Generation) -> dict[str, NDArray[Any]]:
        return {"tokens": np.array(carry.tokens, np.int64)}

    def start(self, state: State) -> Generation:
        """The prompt, and the first record."""
        return self.begin(state, "reference")

    def begin(self, state: State, engine: str) -> Generation:
        """The same, and this engine reads the prompt: that of a program has thousands of tokens."""
        prompt = self.words.prompt(state, self.tokens)
        begun = Generation(prompt, len(prompt), -1, self.words.follow(state))
        return replace(self._advanced(begun, 1, self._running(engine)), engine=None)

    def step(self, carry: Generation) -> Generation:
        """One record, by the reference engine."""
        return self.advance(carry, 1)

    def advance(self, carry: Generation, steps: int, engine: str = "reference") -> Generation:
        """Records, until the machine has halted."""
        self.check_engine(engine)
        if steps < 1 or self.done(carry):
            return carry
        running = carry.engine or self._running(engine)
        if isinstance(running, Fast) != (engine == "fast"):
            raise InputError("this run was begun with another engine", advice="Start it again.")
        return self._advanced(carry, steps, running)

    def _advanced(self, carry: Generation, steps: int, running: "Reading | Fast") -> Generation:
        record = self.words.record
        carry = replace(carry, tokens=list(carry.tokens), engine=running)
        room, taken = (self.tokens - len(carry.tokens)) // record, 0
        while taken < steps and room and not self.done(carry):
            first = len(carry.tokens)
            carry = self._written(carry, first + record * min(steps - taken, room), running)
            for at in range(first, len(carry.tokens), record):
                taken += carry.story.read(carry.tokens[at : at + record])
            room = (self.tokens - len(carry.tokens)) // record
        if not taken and not self.done(
            carry
        ):  # there is no room for a record, or not for all that the next step takes
            raise Refused(
                f"the machine has not halted within {self.tokens:,} tokens, which is the horizon of this net",
                advice=f"Compile with a larger one, as in tokens={2 * self.tokens}.",
            )
        return replace(carry, steps=carry.steps + taken)

    def _written(self, carry: Generation, last: int, running: "Reading | Fast") -> Generation:
        """The text with more tokens, so many in all, or fewer if it ends."""
        if isinstance(running, Fast):
            return replace(carry, tokens=running.advance(carry.tokens, last))
        tokens, stray = carry.tokens, carry.stray
        signs = self.parts.unembedding
        ideal = float((signs.values != 0).sum() / len(signs))
        while len(tokens) < last and (len(tokens) == carry.prompt or tokens[-1] != END):
            logits = running.feed(tokens[running.count :])
            stray = float(np.maximum(stray, abs(float(logits.max()) - ideal)))  # NaN stays
            tokens.append(int(logits.argmax()))
        return replace(carry, stray=stray)

    def _running(self, engine: str) -> Reading | Fast:
        self.check_engine(engine)
        return Fast(self._tables) if engine == "fast" else Reading(self.network)

    @property
    def short_run(self) -> int:
        """A step is a record, and a token takes as long as there are weights."""
        return min(SHORT_RUN, 1 + LONG_BY_REFERENCE // (self.parameters * self.words.record))

    def room(self, state: State) -> int:
        """Records up to the horizon, the first of which begins the run; most steps take one."""
        records = (self.tokens - len(self.words.prompt(state, self.tokens))) // self.words.record - 1
        return self.words.steps_of(state, records) if isinstance(self.words, Rv32Tokens) else records

    @cached_property
    def _tables(self) -> Tables:
        return read_tables(self.network, self.tokens)

    def done(self, carry: Generation) -> bool:
        """Whether the last token ends the run."""
        return len(carry.tokens) > carry.prompt and carry.tokens[-1] == END

    def decode(self, carry: Generation) -> State:
        """What the records tell."""
        return carry.story.configuration()

    def deviation(self, carry: Generation) -> float:
        """How far the best logit was from the number of its signs, at most."""
        return carry.stray

    def text(self, carry: Generation) -> str:
        """The tokens in words, a record on each line."""
        shown = [self.words.program.tokens[number].word for number in carry.tokens]
        lines = [shown[:1]]
        lines += [
            shown[first : first + self.words.record] for first in range(1, len(shown), self.words.record)
        ]
        return "\n".join(" ".join(line) for line in lines)

    # Words for people

    def units(self) -> Iterator[str]:
        """Coordinates, heads, layers of units, and tokens."""
        yield from self.names
        for number, layer in enumerate(self.parts.layers):
            yield from (f"head {number}.{head}" for head in range(len(layer.heads)))
            yield f"units {number}"
        yield from (f"token {token.word}" for token in self.words.program.tokens)

    def explain(self, unit: str) -> str:
        """A coordinate by what sets it, a head by what it compares and copies, a token by its bits."""
        kind, _, rest = unit.partition(" ")
        layers, program = self.parts.layers, self.words.program
        if kind == "token" and rest in program.numbers:
            bits = ", ".join(sorted(program.tokens[program.numbers[rest]].bits))
            return f"{unit}: number {program.numbers[rest]}; bits that are 1: {bits or 'none'}"
        if part := part_of(unit, [len(layer.heads) for layer in layers]):
            layer, *head = layers[part[0]], *part[1:]
            if head:
                return f"{unit}: {self.described(layer.heads[head[0]])}"
            return f"{unit}: {len(layer.units)} ReLU units; the layer {layer.purpose}"
        if unit not in self.names:
            raise InputError(
                f"the net has no unit {unit!r}",
                advice="Try a coordinate such as 'slot[0]', 'head 0.0', 'units 1' or 'token <begin>'.",
            )
        return f"{unit}: {self._set_by(self.names.index(unit))}"

    def _set_by(self, coordinate: int) -> str:
        names, table = self.names, self.positions
        if coordinate < table.first:
            return "a bit of the token's embedding"
        if coordinate < table.first + table.width:
            group = names[coordinate].partition("[")[0]
            return "position embedding: " + {
                "record": "a bit of the number of this record",
                "before": "a bit of the number of the last record that is complete at the next token",
                "slot": "whether this is the slot of this token",
            }.get(group, "a bit")
        return self.explained.made(names[coordinate]) or "not used"

    def described(self, head: Head) -> str:
        """A head by what it asks, answers and copies."""
        names = self.names

        def listed(side: Affine) -> str:
            groups = (names[column].rpartition("[")[0] for column in side.columns.tolist())
            return ", ".join(dict.fromkeys(groups))

        return (
            f"{head.name}: asks with {listed(head.query)}; answers {listed(head.key)}; "
            f"copies {listed(head.value)}"
        )

    # Files

    @property
    def counts(self) -> Counts:
        """All weights are fixed."""
        return Counts(0, self.parameters, bytes_of(self.all_arrays().values()))

    @property
    def parameters(self) -> int:
        """Weights and biases that are not 0: indices of entries do not count, nor does the table of
        positions."""
        weights = [array for array in self.network.arrays.values() if array.dtype == np.float32]
        return sum(int(np.count_nonzero(array)) for array in weights)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """None beside those of the network."""
        return {}

    def config(self) -> dict[str, Any]:
        """The machine and the horizon."""
        return {"machine": self.words.to_json(), "tokens": self.tokens}

    @classmethod
    def from_saved(
        cls,
        config: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        network: Network | None = None,
    ) -> Self:
        """The net from its network."""
        words, tokens = words_of(config["machine"]), int(config["tokens"])
        if network is None:
            raise BrokenNet("the graph of the network is missing")
        parts, said = parts_of(network), [token.word for token in words.program.tokens]
        sizes = words.record, scales_for(words.program, tokens).time
        fits = (
            isinstance(parts.positions, Records)
            and (parts.positions.record, parts.positions.bits) == sizes
            and [len(parts.embedding), len(parts.unembedding)] == [len(said)] * 2
            and list(network.columns.get(UNEMBEDDING, ())) == said
            and len(network.columns.get(EMBEDDING, ())) == parts.width
            and len(parts.layers) > 1
        )
        if not fits:
            raise BrokenNet("the layers of the network are not those of its machine")
        return cls(network, words, tokens)

    def certificate(self) -> dict[str, Any]:
        """Why every token is right in single precision: see `tapegrad.attention.language`."""
        beta, program = temperature_for(self.tokens), self.words.program
        digits = scales_for(program, self.tokens).digits
        compared = max(len(head.compared) for head in program.recalls)
        return {
            "dtype": "float32",
            "tokens": self.tokens,
            "record": self.words.record,
            "layers": len(self.parts.layers),
            "largest_score": max(
                float(largest_score(compared + sum(digits[:number]), digit))
                for number, digit in enumerate(digits)
            ),
            "score_gap": 0.5,
            "mean_error": MEAN,
            "temperature": beta,
            "softmax_error": softmax_error(self.tokens, beta / 2),
            "logit_gap": LOGIT_GAP,
        }

    @classmethod
    def estimate(cls, words: Words, tokens: int) -> Estimate:
        """What it costs: the layers are laid out, which takes a fraction of a second, and counted."""
        net = cls.build(words, tokens)
        heads = [len(layer.heads) for layer in net.parts.layers]
        return Estimate(
            width=net.parts.width,
            depth=len(net.parts.layers),
            **asdict(net.counts),
            parameters=net.parameters,
            steps=None,
            precision="float32",
            notes=(
                f"{words.record} tokens a step; {heads[0]} heads gather them, {sum(heads[1:])} recall memory",
                f"exact for {tokens:,} tokens, prompt included; in a stock checkpoint the table of positions "
                "has a row for each",
            ),
        )


MOST_DIGITS = 6
"""Of a number in a record. It counts bytes that were read, or cells to either side, and there are fewer of
both than tokens: 2^23 at most, of which 16^6 is twice as many."""
LONG_BY_REFERENCE = 1 << 28
"""Tokens times weights. The reference engine takes a second for 10^8 of these."""
LOGIT_GAP = 1.0
"""By how much the right token's logit is above all others, at least: 2, less what a recalled bit is off."""
