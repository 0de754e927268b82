"""What the fast engine of machines with memories runs, read off the arrays of a decoder: tables and look-ups.

Every coordinate that a layer adds to is shown to be 0 before, and to become a bit that depends on few bits: a
gate, whose table is found by computing the units for all of them. Where it depends on what softmax has
copied, which is near a bit only, the units are computed for the worst cases too.

A head that looks at steps compares bits of theirs with bits known here, and the latest that fits wins. So it
reads a table: by what was written at an address last. Heads that look at the same bits of steps share one. A
head that looks at tokens reads a table that is filled once. The digits of the number of a step, which heads
search for one after the other, need not be computed: all that they lead to is the latest step.

Whatever is of another form is refused; nothing is taken for granted.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from tapegrad.attention.analysis import EXACT, largest_score, softmax_error
from tapegrad.errors import Refused
from tapegrad.networks.form import Affine, Correction
from tapegrad.networks.heads import Attention, Block, Decoder
from tapegrad.targets.transformer.mapping import merged
from tapegrad_check.arithmetic import exact, step_of

MOST_READ = 4
"""Bits that a coordinate may depend on."""
LONGEST_WORD = 63
"""Bits of an entry of a table, whose last bit says that there is one. Longer words lie in several tables."""
MOST_CELLS = 1 << 29
"""Entries of all tables; memory is used only for those visited."""

FAN_TYPES = np.uint64, np.uint32
"""Compiled code need not provide for negative indices then."""
ZERO, ONE = -1, -2
"""Constants, in the place of a coordinate."""
Pair = tuple[int, int]
"""What a head compares, here and there."""


Row = tuple[list[int], list[float], float]
"""Columns and values of a row, and its bias."""


class Lists(NamedTuple):
    """Lists one after the other: items of list i from `starts[i]` to `starts[i + 1]`."""

    starts: np.ndarray
    items: np.ndarray


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
    """Rows of (first gate after, first head, head after): after these gates come those heads. Gates after are
    numbered from the next multiple of 64 on; numbers in between have no gate."""
    heads: np.ndarray
    """The table that each reads."""
    asks: Lists
    """For each head the wires of the address it looks at, lowest bit first."""
    must: Lists
    """For each head rows of (wire, bit), or else nothing is found."""
    copies: np.ndarray
    """For each head the wires that the 64 bits of an entry go to, -1 for none. The last says that there is an
    entry."""
    cells: np.ndarray
    """For each table where its entries begin, and at last where they end."""
    written: np.ndarray
    """The tables that steps write to."""
    at: Lists
    """For each of these the carried wires of the address."""
    when: Lists
    """For each, rows of (wire, bit), or else nothing is written."""
    word: Lists
    """For each, the carried wires of the word."""
    hands: np.ndarray
    """Rows of (carried wire, wire that it takes its next value from)."""
    ends: np.ndarray
    carried: np.ndarray
    """The coordinate of each carried wire."""


class Table(NamedTuple):
    """Places that are told apart by an address: which bits of a place are the address, which must have which
    value, and which are copied."""

    own_steps: bool
    at: tuple[int, ...]
    must: tuple[tuple[int, bool], ...]
    word: tuple[int, ...]


class _Head(NamedTuple):
    table: int
    asks: list[int]
    must: list[tuple[int, bool]]
    copies: list[int]
    found: int


@dataclass
class Reader:
    """The layers, one after the other."""

    decoder: Decoder
    steps: int
    stray: float
    """How far what a head copies can be from a bit."""
    wire: dict[int, int] = field(default_factory=dict)
    """Of each coordinate that is a bit, or near one."""
    gates: list[tuple[list[int], int]] = field(default_factory=list)
    """What each reads, as wires, and its table. Their wires are numbered -1, -2, ... until all sources are
    known."""
    near: set[int] = field(default_factory=set)
    digits: dict[int, tuple[tuple[Pair, ...], int]] = field(default_factory=dict)
    """Coordinates of digits of the latest step's number: what it was asked to fit, and which bit it is."""
    tables: dict[Table, int] = field(default_factory=dict)
    heads: list[_Head] = field(default_factory=list)
    stages: list[tuple[int, int, int]] = field(default_factory=list)
    sources: int = 0
    taken: set[int] = field(default_factory=set)
    """Coordinates that are not 0 for sure."""
    known: dict[tuple[object, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        *blocks, end = self.decoder.blocks
        self.time = list(self.decoder.time)
        require(self.steps <= 1 << len(self.time) <= EXACT)
        last = self._last(end)
        self.carried = sorted(last)
        self._take([*self.carried, *self.time])
        for coordinate in self.carried:
            self.wire[coordinate] = self._source()
        for block in blocks:
            for attention in block.attentions():
                self._head(attention, block.self_attention is not None)
            self._layer(block)
        self.stages.append((len(self.gates), len(self.heads), len(self.heads)))
        require(not self.digits.keys() & set(last.values()) and not self.near & set(last.values()))
        self.hands = [(self.wire[to], self.wire[source]) for to, source in last.items()]
        self.ends = self._ends()

    def _source(self) -> int:
        self.sources += 1
        return self.sources - 1

    def _last(self, block: Block) -> dict[int, int]:
        """From each carried coordinate to the one that it takes its next value from."""
        (layer,) = block.feed_forward
        own = layer.map.entries()
        require(isinstance(layer.activation, Correction) and layer.activation == Correction(0.25, 0.75))
        require(block.adds_to is None and not block.attentions() and not own.bias.any())
        require(bool((own.values == 1).all()) and len(set(own.rows.tolist())) == len(own.rows))
        return dict(zip(own.rows.tolist(), own.columns.tolist(), strict=True))

    def _ends(self) -> list[int]:
        (layer,) = self.decoder.halting
        own = layer.map.entries()
        require(layer.activation == "linear" and bool((own.values == 1).all()) and not own.bias.any())
        require(set(own.columns.tolist()) <= set(self.carried))
        return [self.wire[column] for column in own.columns.tolist()]

    def _take(self, places: Sequence[int]) -> None:
        """Coordinates that are 0 until now."""
        require(not self.taken.intersection(places) and len(set(places)) == len(places))
        self.taken.update(places)

    # Heads

    def _head(self, attention: Attention, own_steps: bool) -> None:
        query, key, value = (side.entries() for side in (attention.query, attention.key, attention.value))
        pairs, digit = self._compared(query, key, np.asarray(attention.null_key), own_steps)
        require(not np.asarray(attention.null_value).any())
        targets = attention.targets().tolist()
        self._take(targets)
        rest = len(self.time)
        if own_steps:
            known = [(ask, answer) for ask, answer in pairs if ask in self.digits]
            pairs = tuple(pair for pair in pairs if pair not in known)
            rest -= len(known)
            found = {self.digits[ask] for ask, _ in known}
            require(found == {(pairs, bit) for bit in range(rest, len(self.time))})
            require(all(self.time[self.digits[ask][1]] == answer for ask, answer in known))
            require(digit == list(range(rest - len(digit), rest)))
        copied: dict[int, int] = {}
        flags = []
        for target in targets:
            (*source,) = value.row(target)
            if source:
                require(len(source) == 1 and source[0][1] == 1 and value.bias[target] == 0)
                copied[target] = source[0][0]
            else:
                require(value.bias[target] == 1)
                flags.append(target)
        if own_steps and len(digit) < rest:  # a search that goes on
            require(sorted(copied.values()) == [self.time[bit] for bit in digit] and not flags)
            for target, source in copied.items():
                self.digits[target] = pairs, self.time.index(source)
        else:
            require(len(flags) <= 1)
            self._look_up(pairs, copied, flags, own_steps)

    def _compared(
        self, query: Affine, key: Affine, null: np.ndarray, own_steps: bool
    ) -> tuple[tuple[Pair, ...], list[int]]:
        """The bits that are compared, and the digit: see `tapegrad.attention.analysis` for the scores."""
        count = len(key) - 2
        places = [*key.row(count)]
        scale = float(1 << len(places))
        require(count >= 1 and len(query) == len(key) and [*key.row(count + 1)] == [] == [*query.row(count)])
        require([*query.row(count + 1)] == [] and query.bias[count:].tolist() == [1, 1])
        require(key.bias[count:].tolist() == [0, 0] and not null[:-1].any())
        require(null[-1] == scale * (count - 1) and largest_score(count, len(places)) <= EXACT)
        require([weight for _, weight in places] == [float(1 << bit) for bit in range(len(places))])
        require(own_steps or not places)
        digit = [self.time.index(column) if column in self.time else -1 for column, _ in places]
        pairs = tuple((_sign(query, row, 1.0), _sign(key, row, scale)) for row in range(count))
        return pairs, digit

    def _look_up(
        self, pairs: Sequence[Pair], copied: Mapping[int, int], flags: Sequence[int], own_steps: bool
    ) -> None:
        """A head that reads a table, and where what it copies goes."""
        at, must_here, must_there = {}, [], []
        for ask, answer in pairs:
            if ask < 0 and answer < 0:
                require(ask == answer)
            elif answer < 0:
                require(ask in self.wire and ask not in self.near)
                must_here.append((self.wire[ask], answer == ONE))
            elif ask < 0:
                must_there.append((answer, ask == ONE))
            else:
                require(ask in self.wire and ask not in self.near and answer not in at)
                at[answer] = self.wire[ask]
        word = sorted(set(copied.values()))
        parts = [tuple(word[i : i + LONGEST_WORD]) for i in range(0, len(word) or 1, LONGEST_WORD)]
        if own_steps:
            # Carried bits are the same throughout a step, so that its key and value are known at its start.
            require({*at, *(place for place, _ in must_there), *word} <= set(self.carried))
            require(len(parts) == 1)  # what steps have written is read off one table
        places = dict.fromkeys(word, -1)
        for target, source in copied.items():
            require(places[source] == -1)
            self.wire[target] = places[source] = self._source()
            self.near.add(target)
        for target in flags:
            self.wire[target] = self._source()
            self.near.add(target)
        found = self.wire[flags[0]] if flags else -1
        asks = [at[place] for place in sorted(at)]
        if not self.stages or self.stages[-1][0] != len(self.gates):
            self.stages.append((len(self.gates), len(self.heads), len(self.heads)))
        for part in parts:
            table = Table(own_steps, tuple(sorted(at)), tuple(sorted(must_there)), part)
            number = self.tables.setdefault(table, len(self.tables))
            self.heads.append(_Head(number, asks, must_here, [places[source] for source in part], found))
            found = -1
        self.stages[-1] = (*self.stages[-1][:2], len(self.heads))

    # Gates

    def _layer(self, block: Block) -> None:
        require([layer.activation for layer in block.feed_forward] == ["relu", "linear"])
        units, sums = (layer.map.entries() for layer in block.feed_forward)
        to = np.asarray(block.adds_to).tolist()
        require(len(to) == len(sums))
        self._take(to)
        hidden, own = _by_row(units), _by_row(sums)
        found = {place: self._gate(own[row], hidden) for row, place in enumerate(to)}
        for place, gate in found.items():
            if isinstance(gate, tuple):
                self.digits[place] = gate
            else:
                self.wire[place] = gate

    def _gate(
        self,
        row: tuple[list[int], list[float], float],
        hidden: Sequence[tuple[list[int], list[float], float]],
    ) -> int | tuple[tuple[Pair, ...], int]:
        """The wire of a new coordinate, or the digit that it holds."""
        places, weights, bias = row
        read = list(dict.fromkeys(column for unit in places for column in hidden[unit][0]))
        slot = {column: number for number, column in enumerate(read)}
        near = tuple(column in self.near or column in self.digits for column in read)
        units = tuple(
            (tuple(slot[column] for column in columns), tuple(values), own)
            for columns, values, own in (hidden[unit] for unit in places)
        )
        shape = units, tuple(weights), bias, near
        if shape not in self.known:
            require(len(read) <= MOST_READ)
            self.known[shape] = table_of(units, weights, bias, near, self.stray)
        table = self.known[shape]
        if len(read) == 1 and table == 0b10:  # a copy
            return self.digits[read[0]] if read[0] in self.digits else self.wire[read[0]]
        require(all(column in self.wire for column in read))
        self.gates.append(([self.wire[column] for column in read], table))
        return -len(self.gates)


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


def read_gates(decoder: Decoder, steps: int, keys: int) -> tuple[Gates, list[Table]]:
    """The decoder as gates, and its tables, or a refusal. It attends to at most so many keys at once."""
    stray = 0.0
    if decoder.temperature is not None:
        stray = softmax_error(keys, decoder.temperature)
        require(float(np.log2(decoder.temperature)).is_integer() and stray <= 1 / 8)
    reader = Reader(decoder, steps, stray)
    sources = reader.sources

    asked = [wire for head in reader.heads for wire in (*head.asks, *(own for own, _ in head.must))]
    gates = merged(reader.gates, [*asked, *(source for _, source in reader.hands)])
    places, stages, total = _numbered(gates, reader.stages)

    def number(wire: int) -> int:
        return wire if wire >= 0 else sources + places[-1 - wire]

    tables = np.zeros(total, np.uint64)
    readers: list[list[int]] = [[] for _ in range(sources + total)]
    for gate, (own, table) in gates.items():
        tables[places[gate]] = table
        for slot, wire in enumerate(own):
            readers[number(wire)].append(8 * places[gate] + slot)
    copies = np.full((len(reader.heads), LONGEST_WORD + 1), -1, np.int64)
    for row, head in zip(copies, reader.heads, strict=True):
        row[: len(head.copies)], row[LONGEST_WORD] = head.copies, head.found
    every = list(reader.tables)
    cells = np.cumsum([0, *(1 << len(table.at) for table in every)])
    if cells[-1] > MOST_CELLS:
        raise Refused(
            f"the fast engine would need tables of {cells[-1]:,} words",
            advice="Give the program less memory, or run the reference engine.",
        )
    written = [place for place, table in enumerate(every) if table.own_steps]
    heads, wire = reader.heads, reader.wire
    compiled = Gates(
        sources=sources,
        tables=tables,
        fan=Lists(*(own.astype(kind) for own, kind in zip(_lists(readers), FAN_TYPES, strict=True))),
        stages=np.array(stages, np.int64).reshape(-1, 3),
        heads=np.array([head.table for head in heads], np.int64),
        asks=_lists([[number(own) for own in head.asks] for head in heads]),
        must=_lists([[(number(own), bit) for own, bit in head.must] for head in heads], 2),
        copies=copies,
        cells=cells.astype(np.int64),
        written=np.array(written, np.int64),
        at=_lists([[wire[place] for place in every[own].at] for own in written]),
        when=_lists([[(wire[place], bit) for place, bit in every[own].must] for own in written], 2),
        word=_lists([[wire[place] for place in every[own].word] for own in written]),
        hands=np.array([(to, number(source)) for to, source in reader.hands], np.int64),
        ends=np.array(reader.ends, np.int64),
        carried=np.array(reader.carried, np.int64),
    )
    return compiled, every


def _numbered(
    gates: Iterable[int], stages: Sequence[tuple[int, int, int]]
) -> tuple[dict[int, int], list[tuple[int, ...]], int]:
    """A number for every gate, the stages in these numbers, and how many numbers there are."""
    waiting = list(gates)
    places: dict[int, int] = {}
    numbered, first = [], 0
    for end, *heads in stages:
        own = waiting[len(places) : bisect_left(waiting, end)]
        places |= zip(own, range(first, first + len(own)), strict=True)
        first += -(-len(own) // 64) * 64
        numbered.append((first, *heads))
    return places, numbered, first


def _lists(parts: Sequence[Sequence[object]], columns: int = 1) -> Lists:
    whole = np.array([item for part in parts for item in part], np.int64)
    starts = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return Lists(starts, whole.reshape((-1, columns) if columns > 1 else -1))


def _by_row(own: Affine) -> list[Row]:
    starts = np.searchsorted(own.rows, np.arange(len(own) + 1)).tolist()
    columns, values, bias = own.columns.tolist(), own.values.tolist(), own.bias.tolist()
    return [
        (columns[first:end], values[first:end], bias[row])
        for row, (first, end) in enumerate(pairwise(starts))
    ]


def _sign(side: Affine, row: int, scale: float) -> int:
    """The coordinate c of a row `scale (2 h[c] - 1)`, or a constant."""
    (*used,), bias = side.row(row), float(side.bias[row])
    if not used:
        require(abs(bias) == scale)
        return ONE if bias > 0 else ZERO
    require(len(used) == 1 and used[0][1] == 2 * scale and bias == -scale)
    return used[0][0]


def require(holds: bool) -> None:
    """Refuses arrays that were changed, where `fast` might differ from `reference`."""
    if not holds:
        raise Refused(
            "the layers are not gates and look-ups as compiled",
            advice="Weights were changed; run the reference engine.",
        )
