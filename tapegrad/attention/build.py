"""From an attention program to a network of heads and gates, coordinate by coordinate.

The residual stream has a coordinate for every bit, and every layer adds to coordinates that are 0:

- a head is an attention that copies bits to raw coordinates, and two ReLU units for each that round it,
- a level of gates is a layer of ReLU units, one or two for each gate (`UNITS`); a gate has a coordinate,
- the last layer keeps the bits that the output names, and nothing else.

Where the latest step wins, a search for the digits of its number comes before the head that copies.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tapegrad.attention.analysis import ROUNDING, Scales, scales_for
from tapegrad.attention.program import AttentionProgram, Bit, Head, Map, Side, word
from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.networks.form import Coordinates, Dense, Key, Rows
from tapegrad.networks.heads import Attention, Block
from tapegrad.networks.heads_builder import HeadsBuilder
from tapegrad.networks.network import LAYERS, Network

Unit = tuple[int, int, int, int]
"""relu(u a + v b + w) times s, as u, v, w, s."""

UNITS: Mapping[Gate, tuple[tuple[Unit, ...], int]] = {
    Gate.AND: (((1, 1, -1, 1),), 0),
    Gate.NAND: (((1, 1, -1, -1),), 1),
    Gate.NOR: (((-1, -1, 1, 1),), 0),
    Gate.OR: (((-1, -1, 1, -1),), 1),
    Gate.XOR: (((1, -1, 0, 1), (-1, 1, 0, 1)), 0),
    Gate.XNOR: (((1, -1, 0, -1), (-1, 1, 0, -1)), 1),
    Gate.NOT: (((-1, 0, 1, 1),), 0),
    Gate.ID: (((1, 0, 0, 1),), 0),
    Gate.FALSE: ((), 0),
    Gate.TRUE: ((), 1),
}
"""Every gate as the sum of ReLU units of its operands a and b, and a constant."""
COUNTS, CONSTANTS, SHAPES = np.zeros(16, np.int64), np.zeros(16, np.float32), np.zeros((16, 2, 4), np.float32)
"""The same as arrays, by the number of the gate."""
for _gate, (_units, _constant) in UNITS.items():
    COUNTS[_gate], CONSTANTS[_gate] = len(_units), _constant
    SHAPES[_gate, : len(_units)] = np.array(_units, np.float32).reshape(-1, 4)

TIME = "step"
"""The group of coordinates that hold the number of the step."""


@dataclass(frozen=True)
class Stream(Coordinates):
    """The residual stream: its coordinates by name."""

    meanings: ClassVar[Mapping[str, str]] = {}

    listed: tuple[Key, ...]

    def keys(self) -> list[Key]:
        return list(self.listed)


@dataclass
class _Builder:
    """Coordinates of bits, and the layers so far."""

    scales: Scales
    writer: HeadsBuilder
    token: dict[Bit, int]
    at: dict[Bit, int] = field(default_factory=dict)
    used: int = 0
    """Coordinates that have a meaning by now."""

    def new(self, count: int) -> list[int]:
        """New coordinates, in the order of `groups_of`."""
        self.used += count
        return list(range(self.used - count, self.used))

    def head(self, head: Head) -> None:
        """The attentions of a head, each followed by rounding."""
        places = self.at if head.over == "steps" else self.token
        compared = [(_sign(ask, self.at), _sign(answer, places)) for ask, answer in head.compared]
        time = [self.at[bit] for bit in word(TIME, self.scales.time)]
        digits = range(len(self.scales.digits)) if head.over == "steps" else ()
        for number in digits[:-1]:
            digit = [time[bit] for bit in self.scales.digit(number)]
            purpose = f"{head.name}: digit {number + 1} of {len(digits)} of the step's number"
            found = self._attend(purpose, head.over, compared, digit, digit, None)
            signs = [[(place, 2.0, -1.0) for place in side] for side in (found, digit)]
            compared += zip(*signs, strict=True)
        last = [time[bit] for bit in self.scales.digit(digits[-1])] if digits else []
        copied = [places[there] for there, _ in head.copies]
        found = self._attend(head.name, head.over, compared, last, copied, head.found)
        self.at |= zip([here for _, here in head.copies] + [head.found], found, strict=True)

    def _attend(
        self,
        purpose: str,
        over: str,
        compared: Sequence[tuple["_Sign", "_Sign"]],
        digit: Sequence[int],
        copied: Sequence[int],
        found: Bit | None,
    ) -> list[int]:
        """One attention, and where what it copies stands once it is rounded; last whether a place fits."""
        whole = self.writer.width
        width = whole if over == "steps" else len(self.token)
        scale = 1 << len(digit)
        query, key, value = Rows(), Rows(), Rows(whole)
        for ask, answer in compared:
            query.add(*_row(ask, 1))
            key.add(*_row(answer, scale))
        query.add((), 1)
        key.add([(place, 1 << bit) for bit, place in enumerate(digit)])
        query.add((), 1)
        key.add(())
        null_key = np.zeros(len(key.bias), np.float32)
        null_key[-1] = scale * (len(compared) - 1)
        raw = self.new(len(copied) + (found is not None))
        for source, to in zip(copied, raw, strict=False):
            value.set(to, [(source, 1)])
        if found is not None:
            value.set(raw[-1], (), 1)
        attention = Attention(
            query.affine(whole, np.float32),
            key.affine(width, np.float32),
            value.affine(width, np.float32),
            null_key,
            np.zeros(whole, np.float32),
        )
        rounded = self.new(len(raw))
        cuts, sums = Rows(), Rows()
        for place in raw:
            low, high = cuts.add([(place, 1)], -ROUNDING.low), cuts.add([(place, 1)], -ROUNDING.high)
            sums.add([(low, ROUNDING.gain), (high, -ROUNDING.gain)])
        units = cuts.affine(whole, np.float32)
        feed = Dense(units, "relu"), Dense(sums.affine(len(units), np.float32), "linear")
        own = (attention, None) if over == "steps" else (None, attention)
        self.writer.block(Block(purpose, feed, *own, np.array(rounded)))
        return rounded

    def map(self, own: Map) -> None:
        """The gates of a circuit, level by level."""
        circuit = own.circuit
        inputs = np.array([self.at[bit] for bit in circuit.inputs], np.int64)
        places = np.concatenate([inputs, self.new(circuit.size)]).astype(np.int64)
        if circuit.size:
            self.writer.levels(*levels_of(circuit, places, self.writer.width), own.name)
        self.at |= zip(circuit.outputs, places[circuit.output_wires].tolist(), strict=True)


def levels_of(
    circuit: Circuit, places: NDArray[np.int64], width: int
) -> tuple[dict[str, NDArray[np.generic]], int]:
    """The arrays of a node `layers` that computes all gates of a circuit, whose wires have these places, and
    how many units a level has at most. Each level is two layers: the units, in slots from `width` on, and
    their sums."""
    first = len(circuit.inputs)
    levels = circuit.levels(constants=1)[first:]
    order = np.argsort(levels, kind="stable")
    _, level = np.unique(levels[order], return_inverse=True)
    kinds = circuit.kinds[order]
    counts = COUNTS[kinds]
    gate = np.repeat(np.arange(len(order)), counts)
    """Of each unit; those of a gate stand side by side."""
    shapes = SHAPES[kinds[gate], np.arange(len(gate)) - (np.cumsum(counts) - counts)[gate]]
    gates, units = (np.bincount(own, minlength=level[-1] + 1) for own in (level, level[gate]))
    unit_rows = np.arange(len(gate)) + (np.cumsum(gates) - gates)[level[gate]]
    gate_rows = np.arange(len(order)) + np.cumsum(units)[level]
    slots = np.arange(len(gate)) - (np.cumsum(units) - units)[level[gate]] + width
    left, right = (places[side[order][gate]] for side in (circuit.left, circuit.right))
    arity = ARITY[kinds[gate]]
    twice = (arity == 2) & (left == right)  # one entry, the sum of both
    weights = shapes[:, 0] + np.where(twice, shapes[:, 1], 0)
    both = (arity == 2) & ~twice
    rows = np.concatenate([unit_rows, unit_rows[both], gate_rows[gate]])
    columns = np.concatenate([left, right[both], slots])
    values = np.concatenate([weights, shapes[both, 1], shapes[:, 3]])
    in_order = np.argsort(rows, kind="stable")
    total = len(gate) + len(order)
    biases, to, relu = np.zeros(total, np.float32), np.zeros(total, np.int32), np.zeros(total, np.uint8)
    biases[unit_rows], biases[gate_rows] = shapes[:, 2], CONSTANTS[kinds]
    to[unit_rows], to[gate_rows] = slots, places[first + order]
    relu[unit_rows] = 1
    parts = (
        np.concatenate([[0], np.cumsum(np.stack([units, gates], 1))]),
        np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=total))]),
        columns[in_order].astype(np.int32),
        values[in_order].astype(np.float32),
        biases,
        to,
        relu,
        np.arange(width, dtype=np.int32),
    )
    return dict(zip(LAYERS, parts, strict=True)), int(units.max())


_Sign = tuple[int, float, float]
"""A bit as a sign, 2 x - 1: its coordinate, the weight and the bias; a constant has weight 0."""


def _sign(side: Side, at: Mapping[Bit, int]) -> _Sign:
    return (at[side], 2.0, -1.0) if isinstance(side, str) else (0, 0.0, 2.0 * side - 1.0)


def _row(sign: _Sign, scale: int) -> tuple[Iterable[tuple[int, float]], float]:
    place, weight, bias = sign
    return [(place, scale * weight)] if weight else [], scale * bias


def build(
    name: str, program: AttentionProgram, steps: int, temperature: float | None
) -> tuple[Network, Scales]:
    """One step of a program for so many steps, as a network, and the scales of its heads."""
    scales = scales_for(program, steps)
    token = [bit for own in program.token for bit in own.bits]
    stream = Stream(
        tuple((group, number) for group, count in groups_of(program, scales) for number in range(count))
    )
    start, time = np.zeros(stream.width, np.float32), stream.group(TIME)
    writer = HeadsBuilder(name, token, stream.names, start, time, temperature)
    builder = _Builder(scales, writer, {bit: place for place, bit in enumerate(token)})
    for own in program.carried:
        builder.at |= zip(own.bits, builder.new(own.width), strict=True)
    builder.at |= zip(word(TIME, scales.time), builder.new(scales.time), strict=True)
    for layer in program.layers:
        if isinstance(layer, Map):
            builder.map(layer)
        else:
            builder.head(layer)
    assert builder.used == stream.width
    last = Rows(stream.width)
    for bit, becomes in program.output.items():
        last.set(builder.at[bit], [(builder.at[becomes], 1)])
    own = Dense(last.affine(stream.width, np.float32), ROUNDING)
    writer.block(Block("what the next step starts from", (own,)))
    ends = Rows()
    ends.add([(builder.at[bit], 1.0) for bit in program.ends])
    return writer.network([Dense(ends.affine(stream.width, np.float32), "linear")]), scales


def groups_of(program: AttentionProgram, scales: Scales) -> Iterator[tuple[str, int]]:
    """The coordinates, group by group: carried bits, the step's number, for each head what it finds and that
    rounded, for each circuit its gates."""
    for own in program.carried:
        yield own.name, own.width
    yield TIME, scales.time
    for layer in program.layers:
        if isinstance(layer, Map):
            yield layer.name, layer.circuit.size
            continue
        for number, digit in enumerate(scales.digits[:-1] if layer.over == "steps" else (), 1):
            name = f"{layer.name}, digit {number}"
            yield f"raw {name}", digit
            yield name, digit
        yield f"raw {layer.name}", len(layer.gives)
        yield layer.name, len(layer.gives)
