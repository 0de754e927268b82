"""The fast engine of transformers: wires are carried from step to step, and follow what changes.

A gate is looked at where a wire that it reads has changed, in an order in which each is looked at once in a
step. Heads read tables. What a step costs depends on what changes in it, and neither on how many steps there
were nor on how much memory there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32
from numba.cpython.unsafe.numbers import trailing_zeros
from numpy.typing import NDArray

from tapegrad._jit import njit
from tapegrad.attention.engines import require
from tapegrad.targets.transformer.gates import LONGEST_WORD, Gates, Table

FOUND = np.uint64(1 << 63)
"""The bit of an entry which says that there is one."""
ROOM = 1 << 12


@dataclass
class Fast:
    """A run: what wires carry, what tables hold, and which entries steps have written."""

    gates: Gates
    tables: list[Table]
    values: NDArray[np.uint8]
    rows: NDArray[np.uint8]
    """For each gate the bits of the wires that it reads (which is the row of its table), then its value."""
    changed: NDArray[np.uint64]
    """The gates whose value is not that of their row yet, a bit for each, and perhaps some others."""
    seen: NDArray[np.uint64]
    """For each head the entry that it has found last."""
    cells: NDArray[np.uint64]
    entries: NDArray[np.int64]
    """Numbers of the entries that steps have written, each once."""
    latest: NDArray[np.int64]
    """For each table that steps write to the entry that the last step has written, or -1."""
    count: int = 0

    @classmethod
    def begin(
        cls,
        gates: Gates,
        tables: list[Table],
        tokens: Float32[np.ndarray, "words coordinates"],
        output: Float32[np.ndarray, " width"],
    ) -> "Fast":
        """Before the first step: all gates are to be looked at."""
        require(bool(np.isin(tokens, (0, 1)).all() and np.isin(output, (0, 1)).all()))
        require(not np.delete(output, gates.carried).any())
        values = np.zeros(gates.sources + len(gates.tables), np.uint8)
        values[: len(gates.carried)] = output[gates.carried]
        rows = np.zeros(len(gates.tables), np.uint8)
        fan = gates.fan.items[np.repeat(values == 1, np.diff(gates.fan.starts).astype(np.int64))]
        np.bitwise_or.at(rows, fan >> 3, (1 << (fan & 7)).astype(np.uint8))
        wrong = (gates.tables >> rows.astype(np.uint64) & np.uint64(1)).astype(bool)
        changed = np.packbits(wrong, bitorder="little").view(np.uint64)
        cells = np.zeros(gates.cells[-1], np.uint64)
        for table in tables:
            if not table.own_steps:
                _fill(cells, gates.cells[table.first :], table, tokens)
        seen = np.zeros(len(gates.heads), np.uint64)
        entries, latest = np.zeros(ROOM, np.int64), np.full(len(gates.written), -1)
        return cls(gates, tables, values, rows, changed, seen, cells, entries, latest)

    def advance(self, step: int, last: int) -> int:
        """Steps from number `step` on, up to number `last` or the end; the number of the next."""
        while True:
            step, self.count, ended = _steps(
                self.gates,
                self.values,
                self.rows,
                self.changed,
                self.seen,
                self.cells,
                self.entries,
                self.latest,
                self.count,
                step,
                last,
            )
            if ended or step > last:
                return step
            self.entries = np.concatenate([self.entries, np.zeros_like(self.entries)])

    def output(self, width: int) -> Float32[np.ndarray, " width"]:
        """What the decoder has put out."""
        output = np.zeros(width, np.float32)
        output[self.gates.carried] = self.values[: len(self.gates.carried)]
        return output

    def written(self, at: Sequence[int], word: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Addresses in the table that is written by these coordinates, and a row of bits for each."""
        return self._content(at, word, self.entries[: self.count])

    def last_written(
        self, at: Sequence[int], word: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The same of what the last step has written."""
        return self._content(at, word, self.latest)

    def _content(
        self, at: Sequence[int], word: Sequence[int], entries: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        found = [
            table
            for table in self.tables
            if table.own_steps and table.places
            if {*table.places} <= {*word} and {*table.address} <= {*at}
        ]
        if not found:
            return np.zeros(0, np.int64), np.zeros((0, len(word)), bool)
        # Heads that ask for some addresses only have tables of their own.
        table = max(found, key=lambda table: (len(table.at), -len(table.must)))
        begins = self.gates.cells[table.first :]
        own = entries[(entries >= begins[0]) & (entries < begins[1])] - begins[0]
        addresses, bits = np.zeros(len(own), np.int64), np.zeros((len(own), len(word)), bool)
        for bit, place in enumerate(table.address):
            addresses |= (own >> bit & 1) << [*at].index(place)
        for number, place in enumerate(table.places):
            part, bit = divmod(number, LONGEST_WORD)
            bits[:, [*word].index(place)] = self.cells[begins[part] + own] >> np.uint64(bit) & np.uint64(1)
        return addresses, bits


def _fill(cells: NDArray[np.uint64], begins: NDArray[np.int64], table: Table, tokens: np.ndarray) -> None:
    """The entries of a table of tokens, part by part."""
    fits = np.ones(len(tokens), bool)
    for place, bit in table.must:
        fits &= tokens[:, place] == bit
    own = tokens[fits].astype(np.uint64)
    at, *parts = (
        own[:, list(places)] @ (np.uint64(1) << np.arange(len(places), dtype=np.uint64))
        for places in (table.at, *table.parts())
    )
    require(len(np.unique(at)) == len(at))
    for begin, word in zip(begins, parts, strict=False):
        cells[begin + at.astype(np.int64)] = word.astype(np.uint64) | FOUND


@njit(_nrt=False, inline="always")
def _flip(values, rows, tables, fan_starts, fan, changed, wire):
    """Changes a wire, and the rows of the gates that read it. Those that have another value there are looked
    at when their turn comes."""
    values[wire] ^= np.uint8(1)
    for place in range(fan_starts[wire], fan_starts[wire + np.uint64(1)]):
        gate = np.uint64(fan[place] >> np.uint32(3))
        row = np.uint64(rows[gate]) ^ np.uint64(1) << np.uint64(fan[place] & np.uint32(7))
        rows[gate] = np.uint8(row)
        # A shift is by the lowest six bits: the row. The bit above it is the value.
        wrong = (tables[gate] >> (row & np.uint64(63)) ^ row >> np.uint64(6)) & np.uint64(1)
        changed[gate >> np.uint64(6)] |= wrong << (gate & np.uint64(63))


@njit(_nrt=False, inline="always")
def _gathered(values, wires, first, end):
    """The number whose bits, lowest first, these wires carry."""
    number = np.uint64(0)
    for place in range(first, end):
        number |= np.uint64(values[wires[place]]) << np.uint64(place - first)
    return number


@njit(_nrt=False, inline="always")
def _agree(values, pairs, first, end):
    """Whether all these wires have the bits that they must have."""
    agree = True
    for place in range(first, end):
        agree &= values[pairs[place, 0]] == pairs[place, 1]
    return agree


@njit()
def _steps(gates, values, rows, changed, seen, cells, entries, latest, count, step, last):
    """Steps while there is room for entries; the number of the next, how many entries there are, and whether
    the run has ended."""
    # Arrays are taken out of the tuple once: to hand it on costs more than what is done with it.
    sources, tables, stages, heads = gates.sources, gates.tables, gates.stages, gates.heads
    (fan_starts, fan), (asks_starts, asks), (must_starts, must) = gates.fan, gates.asks, gates.must
    (at_starts, at), (when_starts, when), (word_starts, word) = gates.at, gates.when, gates.word
    masks, copies, begin, written, hands = gates.masks, gates.copies, gates.cells, gates.written, gates.hands
    new = np.zeros(len(hands), np.uint8)
    ended = False
    while step <= last and count + len(written) <= len(entries) and not ended:
        word_of, own, head = 0, 0, 0
        for stage in range(len(stages)):
            # Stages begin at whole words, so that all gates of a word belong to one.
            for place in range(word_of, stages[stage, 0] >> 6):
                while changed[place] != 0:
                    gate = (place << 6) + np.int64(trailing_zeros(changed[place]))  # pyright: ignore[reportCallIssue]
                    changed[place] &= changed[place] - np.uint64(1)
                    row = np.uint64(rows[gate])
                    if (tables[gate] >> (row & np.uint64(63)) ^ row >> np.uint64(6)) & np.uint64(1):
                        rows[gate] ^= np.uint8(64)
                        _flip(values, rows, tables, fan_starts, fan, changed, np.uint64(sources + gate))
            word_of = stages[stage, 0] >> 6
            while own < stages[stage, 1]:
                latest[own] = -1
                if _agree(values, when, when_starts[own], when_starts[own + 1]):
                    address = _gathered(values, at, at_starts[own], at_starts[own + 1])
                    entry = begin[written[own]] + np.int64(address)
                    if cells[entry] == 0:
                        entries[count] = entry
                        count += 1
                    cells[entry] = FOUND | _gathered(values, word, word_starts[own], word_starts[own + 1])
                    latest[own] = entry
                own += 1
            while head < stages[stage, 2]:
                found = np.uint64(0)
                if _agree(values, must, must_starts[head], must_starts[head + 1]):
                    address = _gathered(values, asks, asks_starts[head], asks_starts[head + 1])
                    found = cells[begin[heads[head]] + np.int64(address)] & masks[head]
                different = found ^ seen[head]
                seen[head] = found
                while different != 0:
                    bit = np.int64(trailing_zeros(different))  # pyright: ignore[reportCallIssue]
                    different &= different - np.uint64(1)
                    _flip(values, rows, tables, fan_starts, fan, changed, copies[head, bit])
                head += 1
        ended = values[gates.end] != 0
        for place in range(len(hands)):
            new[place] = values[hands[place, 1]]
        for place in range(len(hands)):
            if new[place] != values[hands[place, 0]]:
                _flip(values, rows, tables, fan_starts, fan, changed, np.uint64(hands[place, 0]))
        step += 1
    return step, count, ended
