"""From an attention program to the layers of a decoder, coordinate by coordinate.

The residual stream has a coordinate for every bit, and every layer adds to coordinates that are 0:

- a head is an attention that copies bits to raw coordinates, and two ReLU units for each that round it,
- a level of gates is a layer of ReLU units, one or two for each gate (`UNITS`); a gate has a coordinate,
- the last layer keeps the bits that the output names, and nothing else.

Where the latest step wins, a search for the digits of its number comes before the head that copies.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tapegrad.attention.analysis import ROUNDING, Scales, scales_for
from tapegrad.attention.program import AttentionProgram, Bit, Head, Map, Side, word
from tapegrad.circuits.model import ARITY, Gate
from tapegrad.networks.form import Affine, Attention, Block, Coordinates, Decoder, Dense, Key, Rows

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
    """Coordinates of bits, and the layers so far. The width is known once all coordinates are."""

    scales: Scales
    width: int
    token: dict[Bit, int]
    at: dict[Bit, int] = field(default_factory=dict)
    keys: list[Key] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    def new(self, group: str, count: int) -> list[int]:
        """New coordinates."""
        first = len(self.keys)
        self.keys += [(group, number) for number in range(count)]
        return list(range(first, first + count))

    def head(self, head: Head) -> None:
        """The attentions of a head, each followed by rounding."""
        places = self.at if head.over == "steps" else self.token
        compared = [(_sign(ask, self.at), _sign(answer, places)) for ask, answer in head.compared]
        time = [self.at[bit] for bit in word(TIME, self.scales.time)]
        digits = range(len(self.scales.digits)) if head.over == "steps" else ()
        for number in digits[:-1]:
            digit = [time[bit] for bit in self.scales.digit(number)]
            purpose = f"{head.name}: digit {number + 1} of {len(digits)} of the step's number"
            found = self._attend(
                purpose, head.over, compared, digit, digit, f"{head.name}, digit {number + 1}", None
            )
            signs = [[(place, 2.0, -1.0) for place in side] for side in (found, digit)]
            compared += zip(*signs, strict=True)
        last = [time[bit] for bit in self.scales.digit(digits[-1])] if digits else []
        copied = [places[there] for there, _ in head.copies]
        found = self._attend(head.name, head.over, compared, last, copied, head.name, head.found)
        self.at |= zip([here for _, here in head.copies] + [head.found], found, strict=True)

    def _attend(
        self,
        purpose: str,
        over: str,
        compared: Sequence[tuple["_Sign", "_Sign"]],
        digit: Sequence[int],
        copied: Sequence[int],
        name: str,
        found: Bit | None,
    ) -> list[int]:
        """One attention, and where what it copies stands once it is rounded; last whether a place fits."""
        width = self.width if over == "steps" else len(self.token)
        scale = 1 << len(digit)
        query, key, value = Rows(), Rows(), Rows(self.width)
        for ask, answer in compared:
            query.add(*_row(ask, 1))
            key.add(*_row(answer, scale))
        query.add((), 1)
        key.add([(place, 1 << bit) for bit, place in enumerate(digit)])
        query.add((), 1)
        key.add(())
        null_key = np.zeros(len(key.bias), np.float32)
        null_key[-1] = scale * (len(compared) - 1)
        raw = self.new(f"raw {name}", len(copied) + (found is not None))
        for source, to in zip(copied, raw, strict=False):
            value.set(to, [(source, 1)])
        if found is not None:
            value.set(raw[-1], (), 1)
        attention = Attention(
            query.affine(self.width, np.float32),
            key.affine(width, np.float32),
            value.affine(width, np.float32),
            null_key,
            np.zeros(self.width, np.float32),
        )
        rounded = self.new(name, len(raw))
        cuts, sums = Rows(), Rows()
        for place in raw:
            low, high = cuts.add([(place, 1)], -ROUNDING.low), cuts.add([(place, 1)], -ROUNDING.high)
            sums.add([(low, ROUNDING.gain), (high, -ROUNDING.gain)])
        own = (attention, None) if over == "steps" else (None, attention)
        self.blocks.append(Block(purpose, _units(cuts, sums, self.width), *own, np.array(rounded)))
        return rounded

    def map(self, own: Map) -> None:
        """The gates of a circuit, level by level."""
        circuit = own.circuit
        places = [self.at[bit] for bit in circuit.inputs] + self.new(own.name, circuit.size)
        first = len(circuit.inputs)
        levels = circuit.levels(constants=1)[first:]
        kinds, left, right = circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist()
        order = np.argsort(levels, kind="stable")
        for level, gates in enumerate(np.split(order, np.flatnonzero(np.diff(levels[order])) + 1), 1):
            units, sums = Rows(), Rows()
            for gate in gates.tolist():
                kind = Gate(kinds[gate])
                operands = [places[wire] for wire in (left[gate], right[gate])[: ARITY[kind]]]
                terms, constant = UNITS[kind]
                made = [
                    (units.add([*zip(operands, weights, strict=False)], bias), float(sign))
                    for *weights, bias, sign in terms
                ]
                sums.add(made, constant)
            to = np.array([places[first + gate] for gate in gates.tolist()], np.int64)
            if len(gates):
                purpose = f"{own.name}, level {level}"
                self.blocks.append(Block(purpose, _units(units, sums, self.width), None, None, to))
        self.at |= zip(circuit.outputs, (places[wire] for wire in circuit.output_wires.tolist()), strict=True)


_Sign = tuple[int, float, float]
"""A bit as a sign, 2 x - 1: its coordinate, the weight and the bias; a constant has weight 0."""


def _sign(side: Side, at: Mapping[Bit, int]) -> _Sign:
    return (at[side], 2.0, -1.0) if isinstance(side, str) else (0, 0.0, 2.0 * side - 1.0)


def _row(sign: _Sign, scale: int) -> tuple[Iterable[tuple[int, float]], float]:
    place, weight, bias = sign
    return [(place, scale * weight)] if weight else [], scale * bias


def _units(units: Rows, sums: Rows, width: int) -> tuple[Dense, Dense]:
    first = units.affine(width, np.float32)
    return Dense(first, "relu"), Dense(sums.affine(len(first), np.float32), "linear")


def build(program: AttentionProgram, steps: int, temperature: float | None) -> tuple[Decoder, Stream, Scales]:
    """The decoder of a program for so many steps, its coordinates, and the scales of its heads."""
    scales = scales_for(program, steps)
    places = {bit: place for place, bit in enumerate(b for own in program.token for b in own.bits)}
    builder = _Builder(scales, width_of(program, scales), places)
    for own in program.carried:
        builder.at |= zip(own.bits, builder.new(own.name, own.width), strict=True)
    builder.at |= zip(word(TIME, scales.time), builder.new(TIME, scales.time), strict=True)
    for layer in program.layers:
        if isinstance(layer, Map):
            builder.map(layer)
        else:
            builder.head(layer)
    last = Rows(builder.width)
    for bit, becomes in program.output.items():
        last.set(builder.at[bit], [(builder.at[becomes], 1)])
    builder.blocks.append(
        Block("what the next step starts from", (Dense(last.affine(builder.width, np.float32), ROUNDING),))
    )
    ends = Affine.from_triples(
        [(0, builder.at[bit], 1.0) for bit in program.ends], (1, builder.width), np.zeros(1, np.float32)
    )
    halting = Affine(ends.rows, ends.columns, ends.values.astype(np.float32), ends.bias, ends.width)
    stream = Stream(tuple(builder.keys))
    assert stream.width == builder.width
    decoder = Decoder(
        tuple(builder.blocks),
        np.zeros(builder.width, np.float32),
        (Dense(halting, "linear"),),
        tuple(builder.at[bit] for bit in word(TIME, scales.time)),
        temperature,
    )
    return decoder, stream, scales


def width_of(program: AttentionProgram, scales: Scales) -> int:
    """Coordinates: carried bits, the step's number, two for each bit that a head finds, one for each gate."""
    count = sum(own.width for own in program.carried) + scales.time
    for layer in program.layers:
        if isinstance(layer, Map):
            count += layer.circuit.size
        else:
            count += 2 * len(layer.gives) + (2 * sum(scales.digits[:-1]) if layer.over == "steps" else 0)
    return count
