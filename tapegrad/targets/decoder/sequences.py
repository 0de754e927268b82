"""A RASP program as a transformer: one pass over the tokens, and the output is read at every position.

A step of the net is the whole pass. Why its values are exact stands in `tapegrad.attention.steps`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray

from tapegrad._sources import source_from_json, source_to_json
from tapegrad._trees import static, tree
from tapegrad.attention.codes import MIXED, Group, Meaning
from tapegrad.attention.sequences import Built, build
from tapegrad.attention.steps import BETA, TooNear
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.network import Network
from tapegrad.networks.texts import BEGIN, EMBEDDING, Ladder, Parts, Seen, looks, parts_of
from tapegrad.rasp.functions import Value, shown
from tapegrad.rasp.nodes import Aggregate, Indices
from tapegrad.rasp.program import RaspProgram, State
from tapegrad.targets.net import Net, bytes_of, part_of
from tapegrad.targets.target import Counts, Estimate

KIND = "rasp"
"""How the config of a net names what it is of."""
MANY_LISTED = 8
"""Values, from which on a label names the others, if these are fewer."""


@dataclass(frozen=True)
class Pass:
    """The tokens, and once they have been read the residual stream and the logits at every position."""

    tokens: State
    steps: int = 0
    hidden: Float32[np.ndarray, "positions width"] | None = None
    logits: Float32[np.ndarray, "positions values"] | None = None


@tree
class SequenceNet(Net[State, Pass]):
    """A transformer of a few layers that reads a sequence once."""

    target: ClassVar[str] = "decoder"
    form: ClassVar[str] = "rasp"
    summary: ClassVar[str] = (
        "a transformer that reads its input once and gives the program's output at every position"
    )
    paper: ClassVar[str] = "RASP, Weiss, Goldberg and Yahav"
    saves_network: ClassVar[bool] = True

    network: Network = static()  # pyright: ignore[reportIncompatibleVariableOverride]
    program: RaspProgram = static()
    heads: tuple[int, ...] = static()
    """The node of each head."""
    groups: tuple[Group, ...] = static()
    meanings: tuple[Meaning, ...] = static()

    @classmethod
    def build(cls, program: RaspProgram) -> Self:
        """The net of a program; where a length is too great, the greatest that will do is named."""
        try:
            made = build(program)
        except TooNear as error:
            raise TooNear(error.name, error.gap, _advice(program)) from error
        return cls(made.network, program, made.heads, made.groups, made.meanings)

    # Running

    @property
    def names(self) -> tuple[str, ...]:
        """The names of coordinates."""
        return self.network.columns[EMBEDDING]

    @cached_property
    def parts(self) -> Parts:
        """Heads and units of the network."""
        return parts_of(self.network)

    def given(self, carry: Pass) -> dict[str, NDArray[Any]]:
        return {"tokens": np.array([BEGIN, *self.numbers(carry.tokens)], np.int64)}

    def start(self, state: State) -> Pass:
        """The tokens, not yet read."""
        return Pass(state)

    def step(self, carry: Pass) -> Pass:
        """The pass."""
        if self.done(carry):
            return carry
        outputs, _ = self._backend.run(self.given(carry))
        return Pass(carry.tokens, 1, outputs["hidden"], outputs["logits"])

    def numbers(self, tokens: Sequence[Value]) -> list[int]:
        """The numbers of tokens; that of the one at the beginning is 0."""
        known = {token: number for number, token in enumerate(self.program.vocabulary, 1)}
        return [known[token] for token in self.program.start(tokens)]

    @cached_property
    def _backend(self) -> NumPy:
        return NumPy(self.network)

    def watch(self, tokens: Sequence[Value]) -> list[Seen]:
        """Where every head looks."""
        return list(looks(self._backend.values(self.given(Pass(tuple(tokens)))), self.network))

    def decode(self, carry: Pass) -> State:
        """The output at every token."""
        if carry.hidden is None or carry.logits is None:
            return carry.tokens
        if (carry.hidden[:, MIXED] > 0.5).any():
            raise Refused(
                f"on this input {self.program.name!r} selects values that differ where values are moved, "
                f"in one of {', '.join(repr(self.program.title(node)) for node in self.moves())}",
                advice="If their mean is meant, make the aggregate numerical.",
            )
        logits = carry.logits[1:]
        values, centres = self.read
        if centres is None:
            return tuple(values[place] for place in logits.argmax(axis=1).tolist())
        nearest = np.abs(logits[:, :1].astype(np.float64) - centres).argmin(axis=1)
        return tuple(values[place] for place in nearest.tolist())

    def moves(self) -> list[int]:
        """The nodes that move values."""
        return [
            node for node, own in enumerate(self.program.nodes) if isinstance(own, Aggregate) and not own.mean
        ]

    @cached_property
    def read(self) -> tuple[tuple[Value, ...], NDArray[np.float64] | None]:
        """What logits stand for; or the numbers that one coordinate is near to, and what they stand for."""
        output = self.program.nodes[self.program.output]
        values = self.program.values[self.program.output]
        if not isinstance(output, Aggregate) or not output.mean:
            return values, None
        numbers = [Fraction(value) for value in values if value is not None]
        least, none = min(numbers), max(numbers) + 1
        return values, np.array([float((none if v is None else Fraction(v)) - least) for v in values])

    def done(self, carry: Pass) -> bool:
        """Whether the pass is over."""
        return carry.steps > 0

    def deviation(self, carry: Pass) -> float:
        """How far logits are from bits, or a number that is read from its centre."""
        if carry.logits is None or len(carry.tokens) == 0:
            return 0.0
        logits = carry.logits[1:].astype(np.float64)
        centres = self.read[1]
        if centres is None:
            return float(np.abs(logits - np.round(logits)).max())
        return float(np.abs(logits[:, :1] - centres).min(axis=1).max())

    # Words for people

    def units(self) -> Iterator[str]:
        """Coordinates, heads, and layers of units."""
        yield from self.names
        for number, layer in enumerate(self.parts.layers):
            yield from (f"head {number}.{head}" for head in range(len(layer.heads)))
            yield f"units {number}"

    def explain(self, unit: str) -> str:
        """A coordinate by what it says, a head by what it is of."""
        layers = self.parts.layers
        heads = [len(layer.heads) for layer in layers]
        if part := part_of(unit, heads):
            layer, *head = layers[part[0]], *part[1:]
            if head:
                return f"{unit}: {self._does(self.heads[sum(heads[: part[0]]) + head[0]])}"
            return f"{unit}: {len(layer.units)} ReLU units, for {layer.purpose}"
        if unit not in self.names:
            raise InputError(
                f"the net has no unit {unit!r}",
                advice="Try a coordinate such as 'word[0]', 'head 0.0' or 'units 0'.",
            )
        return f"{unit}: {self.meaning(self.names.index(unit))}"

    def _does(self, node: int) -> str:
        own, title = self.program.nodes[node], self.program.title(node)
        if not isinstance(own, Aggregate):
            return f"counts what {title!r} is the width of, as 1 / (1 + count)"
        return f"takes the mean that is {title!r}" if own.mean else f"moves values for {title!r}"

    def meaning(self, coordinate: int) -> str:
        """What a coordinate says."""
        kind, first, second = self.meanings[coordinate]
        if kind == "given":
            return ("1 at the first position", "1 at every token", "above 1/2 where moved values differ")[
                coordinate
            ]
        if kind == "raw":
            return f"part {second} of {self.program.title(first)!r}, as its head brings it"
        if kind == "number":
            return f"{self.program.title(first)!r} as a number, above its least value"
        (node, *others), labels = self.groups[first].nodes, self.groups[first].labels[0]
        if others:
            together = " and ".join(repr(self.program.title(own)) for own in (node, *others))
            return f"1 where {together} are the pair of classes {second} or a later one"
        values = self.program.values[node]
        chosen = [value for value, label in zip(values, labels, strict=True) if label >= second]
        return f"1 where {self.program.title(node)!r} is {_listed(chosen, values)}"

    # Files

    @property
    def counts(self) -> Counts:
        """All weights are fixed."""
        return Counts(0, self.parameters, bytes_of(self.all_arrays().values()))

    @property
    def parameters(self) -> int:
        """Weights that are not 0; the table of positions does not count."""
        weights = [array for array in self.network.arrays.values() if array.dtype == np.float32]
        return sum(int(np.count_nonzero(array)) for array in weights)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """None beside those of the network."""
        return {}

    def config(self) -> dict[str, Any]:
        """The program, and what every coordinate means."""
        return {
            "machine": {"kind": KIND, "source": source_to_json(self.program)[0]},
            "heads": list(self.heads),
            "groups": [[list(group.nodes), [list(own) for own in group.labels]] for group in self.groups],
            "meanings": [list(meaning) for meaning in self.meanings],
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
            raise BrokenNet("the graph of the network is missing")
        program = source_from_json(config["machine"]["source"], {})
        if config["machine"].get("kind") != KIND or not isinstance(program, RaspProgram):
            raise BrokenNet("the net is not that of a RASP program")
        heads = tuple(int(node) for node in config["heads"])
        meanings = tuple((str(kind), int(first), int(second)) for kind, first, second in config["meanings"])
        groups = tuple(
            Group(tuple(map(int, nodes)), tuple(tuple(map(int, own)) for own in labels))
            for nodes, labels in config["groups"]
        )
        require(all(0 <= node < len(program.nodes) for node in heads))
        require(all(0 <= n < len(program.nodes) for group in groups for n in group.nodes))
        for group in groups:
            require(len(group.nodes) == len(group.labels) > 0)
            for node, labels in zip(group.nodes, group.labels, strict=True):
                require(len(labels) == len(program.values[node]))
        for number, (kind, first, _) in enumerate(meanings):
            most = {"given": 1, "bit": len(groups)}.get(kind, len(program.nodes))
            require(kind in ("given", "bit", "raw", "number") and 0 <= first < most)
            require((kind == "given") == (number <= MIXED))
        parts, names = parts_of(network), network.columns.get(EMBEDDING, ())
        require(parts.width == len(names) == len(meanings) > MIXED)
        require(parts.positions == _positions(program, groups, meanings))
        require(len(parts.embedding) == len(program.vocabulary) + 1)
        require(len(heads) == sum(len(layer.heads) for layer in parts.layers) and len(parts.layers) > 0)
        require(parts.causal == program.causal or not heads)
        output = program.nodes[program.output]
        one = isinstance(output, Aggregate) and output.mean
        require(len(parts.unembedding) == (1 if one else len(program.values[program.output])))
        return cls(network, program, heads, groups, meanings)

    def certificate(self) -> dict[str, Any]:
        """Why every value is right in single precision: see `tapegrad.attention.steps`."""
        steps, narrow = narrowest(build(self.program))
        return {
            "dtype": "float32",
            "length": self.program.length,
            "causal": self.program.causal,
            "layers": len(self.parts.layers),
            "heads": len(self.heads),
            "temperature": BETA,
            "steps": steps,
            "narrowest_step": narrow,
        }

    @classmethod
    def estimate(cls, program: RaspProgram) -> Estimate:
        """What it costs: the layers are laid out, and counted."""
        net = cls.build(program)
        return Estimate(
            width=net.parts.width,
            depth=len(net.parts.layers),
            **asdict(net.counts),
            parameters=net.parameters,
            steps=1,
            precision="float32",
            notes=(
                f"{len(net.heads)} heads; exact for every input of up to {program.length:,} tokens",
                "causal attention" if program.causal else "attention to all positions",
            ),
        )


def _listed(chosen: Sequence[Value], values: Sequence[Value]) -> str:
    """Which values are meant, so that no others are: by the first and the last of whole numbers in a row, by
    all of them, or by those that are not meant, if these are fewer."""
    if len(chosen) > 2 and all(type(own) is int for own in chosen):
        low, high = min(chosen), max(chosen)
        if high - low == len(chosen) - 1:
            return f"from {low} to {high}"
    others = [value for value in values if value not in chosen]
    if len(chosen) > MANY_LISTED and len(others) < len(chosen):
        return "none of " + ", ".join(map(shown, others))
    return "one of " + ", ".join(map(shown, chosen))


def narrowest(made: Built) -> tuple[int, float | None]:
    """How many steps tell counts and means apart, and how wide the narrowest is."""
    wide = [scalar.step(place)[1] for _, scalar, place in made.steps if scalar.relative]
    return len(wide), float(min(wide)) if wide else None


def _advice(program: RaspProgram) -> str:
    """The greatest length that can be built, found by halving."""
    low, high = 0, program.length
    while high - low > 1:
        middle = (low + high) // 2
        shorter = RaspProgram(
            program.nodes,
            program.output,
            program.vocabulary,
            middle,
            program.causal,
            program.names,
            program.name,
        )
        try:
            build(shorter)
            low = middle
        except Refused:
            high = middle
    return f"A length of {low:,} will do." if low else "There is no length that will do."


def _positions(program: RaspProgram, groups: tuple[Group, ...], meanings: tuple[Meaning, ...]) -> Ladder:
    """Where the bits of indices stand: one after the other, as the first group of that node."""
    node = next((n for n, own in enumerate(program.nodes) if isinstance(own, Indices)), None)
    places = [
        place
        for place, (kind, group, _) in enumerate(meanings)
        if kind == "bit" and groups[group].nodes == (node,)
    ]
    count = program.length - 1 if node is not None else 0
    require(
        len(places) >= count and places[:count] == list(range(places[0], places[0] + count))
        if count
        else True
    )
    return Ladder(count, places[0] if count else 0)


def require(holds: bool) -> None:
    """Refuses a network that is not that of its program."""
    if not holds:
        raise BrokenNet("the layers of the network are not those of its program")
