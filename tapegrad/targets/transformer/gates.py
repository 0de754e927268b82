"""What the fast engine of transformers runs, read off the arrays of a decoder: gates, tables and look-ups.

What stands in a coordinate is followed through the layers of one step. A coordinate that nothing was added to
is 0. A row of dense layers is a function of few bits: a gate, whose table is found by computing the row for
all of them; or it is a sum of bits, rounded, which is their OR. Where it reads what a head has copied, which
is near a bit only, the row is computed for the worst cases too. A row that copies makes no gate.

A head compares bits of places with bits known here (`tapegrad.attention.analysis` has the scores). One that
looks at steps finds the latest that fits: it reads a table, by what was written at an address last. Heads
that compare the same bits of steps share one. A head that looks at tokens reads a table that is filled once.
The number of the latest step is searched for by heads that come before, and need not be computed:

- a head finds the next digit, which it copies from the latest of those that fit as far as is known;
- or it asks whether any step that fits so far has a 1 in the next bit: if the latest has a 0 there, no other
  has a 1, since it would have a larger number.

Whatever is of another form is refused; nothing is taken for granted.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from operator import mul
from typing import NamedTuple

import numpy as np

from tapegrad.attention.analysis import EXACT, ROUNDING
from tapegrad.attention.engines import ONE, Lists, read_scores, refuse, require
from tapegrad.errors import Refused
from tapegrad.networks.form import Affine
from tapegrad.networks.heads import Attention, Block, Decoder
from tapegrad.targets.transformer.mapping import WIDEST, merged
from tapegrad_check.arithmetic import exact, step_of

MOST_READ = 4
"""Bits that a row may depend on, if it is no OR."""
LONGEST_WORD = 63
"""Bits of an entry of a table, whose last bit says that there is one. Longer words lie in several tables."""
MOST_CELLS = 1 << 29
"""Entries of all tables; memory is used only for those visited."""

FAN_TYPES = np.uint64, np.uint32
"""Compiled code need not provide for negative indices then."""


class Gates(NamedTuple):
    """Wires are the coordinates that are carried or copied, then one for each gate, in an order in which
    gates come after what they read. Where lists have rows of (wire, bit), the wire must have that bit."""

    sources: int
    """How many wires are no gates."""
    tables: np.ndarray
    """For each gate: bit i is its value where the wires that it reads are the bits of i."""
    fan: Lists
    """For each wire the gates that read it: 8 times the number of the gate, plus which of its wires it is."""
    stages: np.ndarray
    """Rows of (first gate after, first write after, first head after): after these gates come those writes,
    then those heads. Gates after are numbered from the next multiple of 64 on; numbers in between have no
    gate."""
    heads: np.ndarray
    """The table that each reads."""
    asks: Lists
    """For each head the wires of the address it looks at, lowest bit first."""
    must: Lists
    """For each head rows of (wire, bit), or else nothing is found."""
    masks: np.ndarray
    """For each head the bits of an entry that it copies."""
    copies: np.ndarray
    """For each head the wires that the 64 bits of an entry go to. The last says that there is an entry."""
    cells: np.ndarray
    """For each table where its entries begin, and at last where they end."""
    written: np.ndarray
    """The tables that steps write to, in the order in which they do."""
    at: Lists
    """For each of these the wires of the address."""
    when: Lists
    """For each, rows of (wire, bit), or else nothing is written."""
    word: Lists
    """For each, the wires of the word."""
    hands: np.ndarray
    """Rows of (carried wire, wire that it takes its next value from)."""
    end: int
    """The wire that is 1 where the run has ended."""
    carried: np.ndarray
    """The coordinate of each carried wire."""


@dataclass
class Table:
    """Places that are told apart by an address: which bits of a place are the address, which must have which
    value, and which are copied. Bits are wires where places are steps, and columns of tokens otherwise."""

    own_steps: bool
    at: tuple[int, ...]
    must: tuple[tuple[int, bool], ...]
    address: tuple[int, ...]
    """The coordinates of the address."""
    gates: int
    """Gates before steps write to it."""
    sources: int
    word: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    """The coordinates of the word."""
    first: int = 0
    """The number of its first part."""

    def has(self, wire: int) -> bool:
        """Whether a bit is known when places are written."""
        return not self.own_steps or (wire < self.sources if wire >= 0 else -1 - wire < self.gates)

    def parts(self) -> Iterator[list[int]]:
        """The word, in as many parts as entries have room for; one of no bits if there is none."""
        for begin in range(0, len(self.word) or 1, LONGEST_WORD):
            yield self.word[begin : begin + LONGEST_WORD]


class Digit(NamedTuple):
    """A bit of the number of a step: of this one, or of the latest one for which these bits agree."""

    fits: tuple[tuple[int, int], ...] | None
    bit: int


Value = int | Digit
"""What stands in a coordinate: a wire, or a digit. Wires of gates are numbered -1, -2, ... until all sources
are known."""


class _Head(NamedTuple):
    table: Table
    part: int
    asks: list[int]
    must: list[tuple[int, bool]]
    copies: dict[int, int]
    """From bits of the entry to wires."""


@dataclass
class Reader:
    """The layers, one after the other."""

    decoder: Decoder
    steps: int
    stray: float
    """How far what a head copies can be from a bit."""
    values: dict[int, Value] = field(default_factory=dict)
    """Of each coordinate that is not 0 for sure."""
    near: set[int] = field(default_factory=set)
    """Coordinates that may be off by the stray."""
    gates: list[tuple[list[int], int]] = field(default_factory=list)
    """What each reads, as wires, and its table."""
    sources: int = 0
    constants: dict[int, bool] = field(default_factory=dict)
    """Wires of gates that read nothing, and their bits."""
    tables: list[Table] = field(default_factory=list)
    heads: list[_Head] = field(default_factory=list)
    stages: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Gates, sources, tables and heads before each."""
    shapes: dict[tuple[object, ...], int] = field(default_factory=dict)
    """The tables of rows."""

    def __post_init__(self) -> None:
        self.time = list(self.decoder.time)
        require(self.steps <= 1 << len(self.time))
        end = self.decoder.blocks[-1]
        require(end.adds_to is None)
        last = end.feed_forward[0].map.entries()
        self.carried = np.flatnonzero(last.reads() | (last.bias > 0) | (self.decoder.start != 0)).tolist()
        self.values = {coordinate: self._source() for coordinate in self.carried}
        require(not self.values.keys() & set(self.time))
        self.values |= {coordinate: Digit(None, bit) for bit, coordinate in enumerate(self.time)}
        for block in self.decoder.blocks:
            if (attention := block.self_attention) is not None:
                self._head(attention, True)
            if (attention := block.encoder_attention) is not None:
                self._head(attention, False)
            if block.adds_to is None:
                self._renew(block)
            else:
                self._add(block, np.asarray(block.adds_to).tolist())
        self.hands = [(own, self._wire(coordinate)) for own, coordinate in enumerate(self.carried)]
        require(self.values.keys() <= set(self.carried))
        self.end = self._any(self._ends())
        self.stages.append((len(self.gates), self.sources, len(self.tables), len(self.heads)))

    def _source(self) -> int:
        self.sources += 1
        return self.sources - 1

    def _gate(self, wires: list[int], table: int) -> int:
        self.gates.append((wires, table))
        return -len(self.gates)

    def _constant(self, bit: bool) -> int:
        """The wire that always has this bit."""
        found = next((wire for wire, own in self.constants.items() if own == bit), None)
        if found is None:
            found = self._gate([], int(bit))
            self.constants[found] = bit
        return found

    def _any(self, wires: Iterable[int]) -> int:
        """Whether one of these wires is 1."""
        left = list(dict.fromkeys(wires))
        while len(left) > 1:
            parts = (left[first : first + WIDEST] for first in range(0, len(left), WIDEST))
            left = [part[0] if len(part) == 1 else self._gate(part, _either(len(part))) for part in parts]
        return left[0] if left else self._constant(False)

    def _value(self, coordinate: int) -> Value:
        """Of a coordinate that is a bit, or of a constant."""
        require(coordinate not in self.near)
        found = None if coordinate == ONE else self.values.get(coordinate)
        return self._constant(coordinate == ONE) if found is None else found

    def _wire(self, coordinate: int) -> int:
        return _wire(self._value(coordinate))

    def _bit(self, coordinate: int) -> int:
        """Which bit of the number of this step it is."""
        value = self._value(coordinate)
        if not isinstance(value, Digit) or value.fits is not None:
            refuse()
        return value.bit

    # Heads

    def _head(self, attention: Attention, own_steps: bool) -> None:
        query, key, value = (side.entries() for side in (attention.query, attention.key, attention.value))
        pairs, digits = read_scores(query, key, np.asarray(attention.null_key))
        require(not np.asarray(attention.null_value).any())
        targets = attention.targets()
        require(not self.values.keys() & set(targets.tolist()))
        copied: dict[int, int] = {}
        flags = []
        for target, (columns, weights, bias) in zip(
            targets.tolist(), value.restricted(targets).by_row(), strict=True
        ):
            if columns:
                require(weights == [1] and bias == 0)
                copied[target] = columns[0]
            else:
                require(bias == 1)
                flags.append(target)
        coordinate: dict[int, int] = {}
        bits: list[tuple[int, int]] = []
        known: set[Digit] = set()
        asked: list[int] = []
        for ask, answer in pairs:
            here = self._value(ask)
            there = self._value(answer) if own_steps or answer < 0 else answer
            if isinstance(there, Digit):
                require(there.fits is None)
                if isinstance(here, Digit):
                    require(here.bit == there.bit)
                    known.add(here)
                else:
                    require(self.constants.get(here, False))
                    asked.append(there.bit)
            else:
                bits.append((_wire(here), there))
                coordinate[there] = answer
        fits = tuple(sorted(bits))
        if own_steps:
            digit = [self._bit(place) for place in digits]
            top = 1 + max([*(bit for _, bit in known), *asked, *digit], default=-1)
            rest = top - len(known)
            require(known == {Digit(fits, bit) for bit in range(rest, top)})
            # The bits from `top` on are 0 in every number of a step.
            require(not (known or asked or digit) or self.steps <= 1 << top)
            require(digit == [*range(rest - len(digit), rest)])
            if asked:
                require(asked == [rest - 1] and not digit and not copied and len(flags) == 1)
                self.values[flags[0]] = Digit(fits, rest - 1)
            elif 0 < len(digit) < rest:
                found = {target: self._bit(source) for target, source in copied.items()}
                require(sorted(found.values()) == digit and not flags)
                self.values |= {target: Digit(fits, bit) for target, bit in found.items()}
            else:
                # Without a digit it may copy nothing: of several steps that fit it would copy the mean.
                require(len(digit) == rest if known or digit else not copied)
                self._look_up(fits, coordinate, copied, flags, True)
        else:
            require(not digits)
            self._look_up(fits, coordinate, copied, flags, False)
        self.near.update(targets.tolist())

    def _look_up(
        self,
        fits: tuple[tuple[int, int], ...],
        coordinate: Mapping[int, int],
        copied: Mapping[int, int],
        flags: Sequence[int],
        own_steps: bool,
    ) -> None:
        """A head that reads a table, and where what it copies goes."""
        at, here, there = {}, [], []
        for ask, answer in fits:
            asks, answers = self.constants.get(ask), self.constants.get(answer)
            if answers is not None:
                require(asks in (None, answers))
                here += [(ask, answers)] if asks is None else []
            elif asks is not None:
                there.append((answer, asks))
            else:
                require(answer not in at)
                at[answer] = ask
        order = sorted(at, key=lambda answer: coordinate[answer])
        asks = [at[answer] for answer in order]
        of = own_steps, tuple(order), tuple(there), tuple(coordinate[answer] for answer in order)
        if own_steps:
            copied = {target: source for target, source in copied.items() if self._can_be_on(source)}
        wires = [self._wire(source) if own_steps else source for source in copied.values()]
        table = self._table(of, wires)
        copies: dict[int, dict[int, int]] = {}
        for wire, (target, source) in zip(wires, copied.items(), strict=True):
            if wire not in table.word:
                table.word.append(wire)
                table.places.append(source)
            part, bit = divmod(table.word.index(wire), LONGEST_WORD)
            own = copies.setdefault(part, {})
            require(bit not in own)
            self.values[target] = own[bit] = self._source()
        require(len(flags) <= 1)
        for target in flags:
            self.values[target] = copies.setdefault(0, {})[LONGEST_WORD] = self._source()
        self.heads += [_Head(table, part, asks, here, own) for part, own in copies.items()]

    def _can_be_on(self, coordinate: int) -> bool:
        require(coordinate not in self.near)
        return coordinate in self.values

    def _table(
        self,
        of: tuple[bool, tuple[int, ...], tuple[tuple[int, bool], ...], tuple[int, ...]],
        wires: Sequence[int],
    ) -> Table:
        """The table of these places whose word has room for these bits."""
        own_steps, at, must, address = of
        for table in self.tables:
            if (table.own_steps, table.at, table.must, table.address) == of and all(map(table.has, wires)):
                self._stage()
                return table
        self._stage([*at, *(wire for wire, _ in must), *wires] if own_steps else ())
        gates, sources, *_ = self.stages[-1]
        self.tables.append(Table(own_steps, at, must, address, gates, sources))
        return self.tables[-1]

    def _stage(self, wires: Iterable[int] = ()) -> None:
        """Begins a stage where gates were added, or these wires had no value yet when the last began."""
        gates, sources, *_ = self.stages[-1] if self.stages else (-1, 0)
        if gates != len(self.gates) or any(wire >= sources for wire in wires):
            self.stages.append((len(self.gates), self.sources, len(self.tables), len(self.heads)))

    # Rows

    def _renew(self, block: Block) -> None:
        """A new vector, of which each coordinate is rounded. Sums of bits are integers, so that it is 1 where
        the sum is, or more. What is near a bit is rounded to it where nothing else is added."""
        (layer,) = block.feed_forward
        if layer.activation != ROUNDING:
            raise Refused(
                "the fast engine needs the correction whose bits come out exactly",
                advice="Compile with correction=quarters, or run the reference engine.",
            )
        own = layer.map.entries()
        alone = (own.rows == own.columns) & (own.values == 1)
        copies = (
            (np.bincount(own.rows[alone], minlength=len(own)) == 1) & (own.largest() == 1) & (own.bias == 0)
        )
        kept = {coordinate: value for coordinate, value in self.values.items() if copies[coordinate]}
        rest = np.flatnonzero((own.reads() | (own.bias > 0)) & ~copies)
        self.values, self.near = kept | self._rounded(own, rest), set()

    def _rounded(self, own: Affine, rows: np.ndarray) -> dict[int, Value]:
        """What rounded rows of a map are, those that are always 0 left out. Sums of bits are integers, and
        are rounded to 1 from 1 on. What is near a bit is rounded to it where nothing else is added."""
        require(all(np.array_equal(part, np.rint(part)) for part in (own.values, own.bias)))
        require(bool((own.largest() <= EXACT).all()) and self.stray <= ROUNDING.radius)
        largest, own = own.largest()[rows].tolist(), own.restricted(rows)
        found: dict[int, Value] = {}
        for place, most, (columns, values, bias) in zip(rows.tolist(), largest, own.by_row(), strict=True):
            require(most <= 1 or not self.near.intersection(columns))
            terms = [
                (self.values[c], weight)
                for c, weight in zip(columns, values, strict=True)
                if c in self.values
            ]
            read, weights = [value for value, _ in terms], tuple(weight for _, weight in terms)
            if len(read) > MOST_READ:
                require(bias == 0 and min(weights) >= 1)
                found[place] = self._any(map(_wire, read))
                continue
            if (shape := (weights, bias)) not in self.shapes:
                rows_of = product((0, 1), repeat=len(weights))
                sums = [bias + sum(map(mul, bits, weights[::-1])) for bits in rows_of]
                self.shapes[shape] = sum(1 << row for row, total in enumerate(sums) if total >= 1)
            self._set(found, place, read, self.shapes[shape])
        return found

    def _add(self, block: Block, to: Sequence[int]) -> None:
        """Gates that are added to coordinates that are 0."""
        require([layer.activation for layer in block.feed_forward] == ["relu", "linear"])
        units, sums = (layer.map.entries() for layer in block.feed_forward)
        require(len(set(to)) == len(to) == len(sums) and not self.values.keys() & set(to))
        require(bool(np.isfinite(units.values).all()))  # even those of what is always 0
        hidden = units.by_row()
        new: dict[int, Value] = {}
        for place, (places, weights, bias) in zip(to, sums.by_row(), strict=True):
            columns = dict.fromkeys(column for unit in places for column in hidden[unit][0])
            read = [column for column in columns if column in self.values]
            slot = {column: number for number, column in enumerate(read)}
            near = tuple(column in self.near for column in read)
            parts = tuple(
                (
                    tuple(slot[column] for column in columns if column in slot),
                    tuple(w for w, column in zip(values, columns, strict=True) if column in slot),
                    own,
                )
                for columns, values, own in (hidden[unit] for unit in places)
            )
            shape = parts, tuple(weights), bias, near
            if shape not in self.shapes:
                require(len(read) <= MOST_READ)
                self.shapes[shape] = table_of(parts, weights, bias, near, self.stray)
            self._set(new, place, [self.values[column] for column in read], self.shapes[shape])
        self.values |= new

    def _set(self, values: dict[int, Value], place: int, read: Sequence[Value], table: int) -> None:
        """What stands in a coordinate that is this function of what was read; nothing where it is always
        0."""
        if table == 0:
            return
        if len(read) == 1 and table == 0b10:  # a copy
            values[place] = read[0]
        elif table == (1 << (1 << len(read))) - 1:
            values[place] = self._constant(True)
        else:
            values[place] = self._gate([*map(_wire, read)], table)

    def _ends(self) -> list[int]:
        """Wires of which one is 1 where the run has ended: a sum of bits, or of units that are bits."""
        *units, last = self.decoder.halting
        own = last.map.entries()
        require(last.activation == "linear" and bool((own.values == 1).all()) and not own.bias.any())
        values = self.values
        if units:
            (layer,) = units
            require(layer.activation == "relu")
            values = self._rounded(layer.map.entries(), np.unique(own.columns))
        return [_wire(values[column]) for column in own.columns.tolist() if column in values]


Unit = tuple[tuple[int, ...], tuple[float, ...], float]
"""Which inputs it reads, with which weights, and its bias."""


def table_of(
    units: Sequence[Unit], weights: Sequence[float], bias: float, near: Sequence[bool], stray: float
) -> int:
    """The table of `sum of weights * relu(units) + bias` on bits. Inputs that are `near` bits may be off by
    `stray`: no unit may change its side in between, and the sum must be the same at all ends, so that it is
    the same for all values in between. Nothing may be rounded in single precision, on bits."""
    sizes = [sum(map(abs, own)) + abs(b) for _, own, b in units]
    steps = [float(step_of([*own, b])) for _, own, b in units]
    terms = [*zip(weights, sizes, steps, strict=True), (bias, 1.0, 1.0)]
    total = sum(abs(weight) * size for weight, size, _ in terms)
    least = min(float(step_of([weight])) * step for weight, _, step in terms)
    require(all(exact(own, step) for own, step in zip(sizes, steps, strict=True)) and exact(total, least))
    table = 0
    off = [(-stray, stray) if is_near and stray else (0.0,) for is_near in near]
    for index in range(1 << len(near)):
        values, on = set(), []
        for shift in product(*off):
            inputs = [(index >> i & 1) + by for i, by in enumerate(shift)]
            z = [b + sum(w * inputs[i] for i, w in zip(read, own, strict=True)) for read, own, b in units]
            on.append([value > 0 for value in z])
            values.add(bias + sum(w * max(0.0, value) for w, value in zip(weights, z, strict=True)))
        require(all(sides == on[0] for sides in on))
        (*found,) = {round(value, 9) for value in values}
        require(found in ([0.0], [1.0]))
        table |= int(found[0]) << index
    return table


def read_gates(decoder: Decoder, steps: int, stray: float) -> tuple[Gates, list[Table]]:
    """The decoder as gates, and its tables, or a refusal. What a head copies is off by at most the stray."""
    reader = Reader(decoder, steps, stray)
    sources, every, heads = reader.sources, reader.tables, reader.heads
    parts = [(table, part) for table in every for part in table.parts()]
    firsts = np.cumsum([0, *(sum(1 for _ in table.parts()) for table in every)]).tolist()
    for table, first in zip(every, firsts, strict=False):
        table.first = first
    cells = np.cumsum([0, *(1 << len(table.at) for table, _ in parts)])
    if cells[-1] > MOST_CELLS:
        longest = max(len(table.at) for table in every)
        raise Refused(
            f"the fast engine would need tables of {cells[-1]:,} words, for addresses of {longest} bits",
            advice="Compile for less memory or fewer steps, or run the reference engine.",
        )
    written = [number for number, (table, _) in enumerate(parts) if table.own_steps]
    own = [parts[number] for number in written]

    needed = [wire for head in heads for wire in (*head.asks, *(wire for wire, _ in head.must))]
    needed += [wire for table, part in own for wire in (*table.at, *(wire for wire, _ in table.must), *part)]
    gates = merged(reader.gates, [*needed, *(wire for _, wire in reader.hands), reader.end])
    # Of the tables before a stage, how many parts are written.
    before = [sum(1 for number in written if number < first) for first in firsts]
    stages = [(gates, before[tables], heads) for gates, _, tables, heads in reader.stages]
    places, stages, total = _numbered(gates, stages)

    def number(wire: int) -> int:
        return wire if wire >= 0 else sources + places[-1 - wire]

    def numbers(parts: Iterable[Iterable[int]]) -> Lists:
        return Lists.of([number(wire) for wire in part] for part in parts)

    def bits(parts: Iterable[Iterable[tuple[int, bool]]]) -> Lists:
        return Lists.of(([(number(wire), bit) for wire, bit in part] for part in parts), 2)

    tables = np.zeros(total, np.uint64)
    readers: list[list[int]] = [[] for _ in range(sources + total)]
    for gate, (reads, table) in gates.items():
        tables[places[gate]] = table
        for slot, wire in enumerate(reads):
            readers[number(wire)].append(8 * places[gate] + slot)
    copies = np.zeros((len(heads), LONGEST_WORD + 1), np.uint64)
    masks = np.zeros(len(heads), np.uint64)
    for place, head in enumerate(heads):
        copies[place, list(head.copies)] = list(head.copies.values())
        masks[place] = sum(1 << bit for bit in head.copies)
    compiled = Gates(
        sources=sources,
        tables=tables,
        fan=Lists(*(part.astype(kind) for part, kind in zip(Lists.of(readers), FAN_TYPES, strict=True))),
        stages=np.array(stages, np.int64).reshape(-1, 3),
        heads=np.array([head.table.first + head.part for head in heads], np.int64),
        asks=numbers(head.asks for head in heads),
        must=bits(head.must for head in heads),
        masks=masks,
        copies=copies,
        cells=cells.astype(np.int64),
        written=np.array(written, np.int64),
        at=numbers(table.at for table, _ in own),
        when=bits(table.must for table, _ in own),
        word=numbers(part for _, part in own),
        hands=np.array([(to, number(wire)) for to, wire in reader.hands], np.int64).reshape(-1, 2),
        end=number(reader.end),
        carried=np.array(reader.carried, np.int64),
    )
    return compiled, every


def _numbered(
    gates: Iterable[int], stages: Sequence[tuple[int, int, int]]
) -> tuple[dict[int, int], list[tuple[int, int, int]], int]:
    """A number for every gate, the stages in these numbers, and how many numbers there are."""
    waiting = list(gates)
    places: dict[int, int] = {}
    numbered, first = [], 0
    for (end, *_), (_, writes, heads) in zip(stages, (*stages[1:], stages[-1]), strict=True):
        own = waiting[len(places) : bisect_left(waiting, end)]
        places |= zip(own, range(first, first + len(own)), strict=True)
        first += -(-len(own) // 64) * 64
        numbered.append((first, writes, heads))
    return places, numbered, first


def _either(count: int) -> int:
    """The table of an OR."""
    return (1 << (1 << count)) - 2


def _wire(value: Value) -> int:
    if isinstance(value, Digit):
        refuse()
    return value
