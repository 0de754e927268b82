"""Theorem 4.1, layer by layer: the coordinates of a hidden vector, and the lemmas of appendix C as maps.

Decoder step i takes `o_{i-1} + beta(i)` and makes `o_i`, which encodes state, symbol under the head and head
position after step i of the machine. Step 0 is ours: it starts from a fixed vector (the paper's trainable
h_0), whose coordinate `start` stands for the first state, and only reads. The paper assumes that the first
symbol is known; a constant vector cannot know it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from tapegrad._trees import arrays_in
from tapegrad.machines.model import LEFT, RIGHT, TuringMachine
from tapegrad.networks.form import Affine, Coordinates, Correction, Dense, Key, Rows
from tapegrad.networks.heads import Attention, Block

CORRECTIONS = {"quarters": Correction(0.25, 0.75), "thirds": Correction(1 / 3, 2 / 3)}
"""`thirds` is the paper's; `quarters` is exact in binary floating point: for every float z within 1/4 of a
bit, `2 relu(z - 1/4) - 2 relu(z - 3/4)` *is* that bit, without rounding."""

MEANING = {
    "st": "the machine is in state {}",
    "sym1": "the symbol under the head is {}",
    "sym2": "this step writes {} (Lemma C.1)",
    "pos1": "bit {} of the number of this step",
    "pos2": "bit {} of the head's position before this step",
    "pos3": "bit {} of the head's position after this step (Lemma C.2)",
    "start": "this is step 0, which reads the first symbol and writes nothing",
    "borrow": "the head moves left, and the borrow has come up to this bit (Lemma C.2)",
    "carry": "the head moves right, and the carry has come up to this bit (Lemma C.2)",
    "stays1": "the bit just added was 1 and stays 1 (Lemma C.2)",
    "becomes1": "the bit just added was 0 and becomes 1 (Lemma C.2)",
    "scr1": "the last write at the head's new cell was {} (Claim C.6)",
    "scr2": "the input at the head's new cell is {} (Lemma C.7)",
    "scr3": "bit {} of the number of the last step that wrote at the head's new cell (Claim C.5)",
    "found": "some earlier step wrote at the head's new cell (Claim C.4)",
    "given": "the head's new cell is part of the input (Lemma C.7)",
    "bit": "scratch: the bit being searched for (Claim C.5), later: the cell is blank (Lemma C.8)",
    "pair": "state and symbol are {} (Lemma C.1)",
}
"""What each group of coordinates means, with the place of the paper that it comes from."""


@dataclass(frozen=True)
class Layout(Coordinates):
    """The coordinates of appendix C, in its groups: st, sym1, sym2, pos1, pos2, pos3, scr. Positions are
    cells of the tape shifted by `offset`, so that a head that starts at cell 0 can go `steps` cells either
    way: the paper's one-way tape becomes two-way for one more bit. Bits are numbered from the lowest."""

    meanings: ClassVar[Mapping[str, str]] = MEANING

    states: tuple[str, ...]
    symbols: tuple[str, ...]
    steps: int

    @classmethod
    def of(cls, machine: TuringMachine, steps: int) -> "Layout":
        """The layout for runs of at most `steps` steps."""
        return cls(machine.states, machine.alphabet, steps)

    @property
    def offset(self) -> int:
        """The position of cell 0."""
        return self.steps

    @property
    def position_bits(self) -> int:
        """w_pos: positions run from 0 to 2 T."""
        return (2 * self.steps).bit_length()

    @property
    def time_bits(self) -> int:
        """Time runs from 0 to T."""
        return self.steps.bit_length()

    def keys(self) -> list[Key]:
        """The coordinates in order; binary numbers have their lowest bit first."""
        positions, times = range(self.position_bits), range(self.time_bits)
        keys: list[Key] = [("st", state) for state in self.states]
        keys += [(group, symbol) for group in ("sym1", "sym2") for symbol in self.symbols]
        keys += [(group, bit) for group in ("pos1", "pos2", "pos3") for bit in positions]
        keys += [("start",), ("borrow",), ("carry",), ("stays1",), ("becomes1",)]
        keys += [(group, symbol) for group in ("scr1", "scr2") for symbol in self.symbols]
        keys += [("scr3", bit) for bit in times]
        keys += [("found",), ("given",), ("bit",)]
        keys += [("pair", state, symbol) for state in self.states for symbol in self.symbols]
        return keys


class _FirstLayer:
    """`W_1` and `b_1`, written row by row. Rows not named are 0, which clears the coordinate."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self.rows = layout, Rows(layout.width)

    def keep(self, coordinates: Iterable[int]) -> "_FirstLayer":
        """Copies these coordinates."""
        for c in coordinates:
            self.rows.set(c, [(c, 1)])
        return self

    def set(self, to: int, plus: Iterable[int] = (), minus: Iterable[int] = (), bias: float = 0) -> None:
        """Coordinate `to` becomes relu(sum of plus - sum of minus + bias)."""
        self.rows.set(to, [*((c, 1) for c in plus), *((c, -1) for c in minus)], bias)

    def block(
        self,
        purpose: str,
        correction: Correction,
        self_attention: Attention | None = None,
        encoder_attention: Attention | None = None,
    ) -> Block:
        """The layer: `phi(W_3 phi(W_2 phi(W_1 h + b_1) + b_2) + b_3)` after the attentions, where the last
        two maps correct (Proposition 3.4)."""
        first = Dense(self.rows.affine(self.layout.width, np.float32), correction)
        return Block(purpose, (first,), self_attention, encoder_attention)


def build_layers(machine: TuringMachine, layout: Layout, correction: Correction) -> tuple[Block, ...]:
    """All layers of one decoder step."""
    pairs, *search = _layers_of_all_machines(layout, correction)
    return (
        pairs,
        _transition(machine, layout, correction),
        *search,
        _collect(machine, layout, correction),
    )


@lru_cache(maxsize=32)
def _layers_of_all_machines(layout: Layout, correction: Correction) -> tuple[Block, ...]:
    """The layers that know of no table and no blank: machines with the same states and symbols share them,
    and nobody can write to their arrays."""
    layers = (
        _pairs(layout, correction),
        *(_add_bit(layout, bit, correction) for bit in range(layout.position_bits + 1)),
        _exists(layout, correction),
        *(_search(layout, bit, correction) for bit in reversed(range(layout.time_bits))),
        _look_up(layout, correction),
        _choose(layout, correction),
    )
    for array in arrays_in(layers):
        array.flags.writeable = False
    return layers


def _pairs(layout: Layout, correction: Correction) -> Block:
    """Lemma C.1, first half: `pair = relu(st + sym1 - 1)`, an AND of two one-hot bits."""
    first = _FirstLayer(layout)
    first.keep(layout.group("pos1", "pos2", "start"))
    for state in layout.states:
        for symbol in layout.symbols:
            both = [layout.at("st", state), layout.at("sym1", symbol)]
            first.set(layout.at("pair", state, symbol), both, bias=-1)
    return first.block("pair up state and symbol", correction)


def _transition(machine: TuringMachine, layout: Layout, correction: Correction) -> Block:
    """Lemma C.1, second half: the columns of `W_1` are the machine's table. Where it has no entry the
    machine has halted: it keeps state and symbol and stays."""
    first = _FirstLayer(layout)
    first.keep(layout.group("pos1", "pos2", "start"))
    sources: defaultdict[int, list[int]] = defaultdict(list)
    sources[layout.at("st", machine.start_state)].append(layout.at("start"))
    for state in layout.states:
        for symbol in layout.symbols:
            column = layout.at("pair", state, symbol)
            rule = machine.rules.get((state, (symbol,)))
            new, write, move = (rule.state, rule.write[0], rule.moves[0]) if rule else (state, symbol, 0)
            sources[layout.at("st", new)].append(column)
            sources[layout.at("sym2", write)].append(column)
            if move:
                sources[layout.at({LEFT: "borrow", RIGHT: "carry"}[move])].append(column)
    for to, columns in sources.items():
        first.set(to, columns)
    return first.block("apply the machine's table", correction)


def _add_bit(layout: Layout, bit: int, correction: Correction) -> Block:
    """Lemma C.2. A bit x with an incoming borrow b or carry c (never both) becomes `x xor (b + c)`: the sum
    of `stays1 = relu(x - b - c)` and `becomes1 = relu(b + c - x)`, which the next layer adds up. The borrow
    goes on as `relu(b - x)`, the carry as `relu(x + c - 1)`. One sweep does both; the paper takes two."""
    first = _FirstLayer(layout)
    old, new = layout.group("pos2"), layout.group("pos3")
    first.keep(layout.group("st", "sym2", "pos1", "pos2", "pos3", "start"))
    borrow, carry, stays1, becomes1 = (layout.at(n) for n in ("borrow", "carry", "stays1", "becomes1"))
    if bit > 0:
        first.set(new[bit - 1], [stays1, becomes1])
    if bit < layout.position_bits:
        first.set(stays1, [old[bit]], [borrow, carry])
        first.set(becomes1, [borrow, carry], [old[bit]])
        first.set(borrow, [borrow], [old[bit]])
        first.set(carry, [old[bit], carry], bias=-1)
        return first.block(f"bit {bit} of the head's move", correction)
    return first.block("last bit of the head's move", correction)


def _exists(layout: Layout, correction: Correction) -> Block:
    """Claim C.4: `found` if some step wrote where the head is now."""
    attention = _self_attention(layout, [], None, _value(layout, None, layout.at("found")))
    return _pass_on(layout).block("was the cell written before?", correction, attention)


def _search(layout: Layout, bit: int, correction: Correction) -> Block:
    """Claim C.5: with the bits above known, is this bit of the last writing step a 1? Any step that wrote
    here, agrees in the bits above and has a 1 here says yes; the larger number wins, so yes means 1."""
    known = list(range(bit + 1, layout.time_bits))
    attention = _self_attention(layout, known, bit, _value(layout, None, layout.at("bit")))
    first = _pass_on(layout)
    first.set(layout.group("scr3")[bit], [layout.at("bit")])
    return first.block(f"bit {bit} of the search for the last write", correction, attention)


def _look_up(layout: Layout, correction: Correction) -> Block:
    """Claim C.6 and Lemma C.7: copy what the step found wrote, and the input at this cell."""
    copy = _value(layout, ("sym2", "scr1"))
    attention = _self_attention(layout, list(range(layout.time_bits)), None, copy)
    first = _pass_on(layout)
    for c in layout.group("scr3"):
        first.set(c)
    purpose = "copy the last write, and the input, at this cell"
    return first.block(purpose, correction, attention, _encoder_attention(layout))


def _choose(layout: Layout, correction: Correction) -> Block:
    """Lemma C.8: the input counts only where nothing was written, the blank only where there is neither."""
    first = _FirstLayer(layout)
    found, given = layout.at("found"), layout.at("given")
    first.keep(layout.group("st", "pos3", "scr1"))
    for symbol in layout.symbols:
        first.set(layout.at("scr2", symbol), [layout.at("scr2", symbol)], [found])
    first.set(layout.at("bit"), (), [found, given], bias=1)
    return first.block("written, given or blank?", correction)


def _collect(machine: TuringMachine, layout: Layout, correction: Correction) -> Block:
    """Lemma C.8, end: (C.16), the encoding that the next step starts from."""
    first = _FirstLayer(layout)
    first.keep(layout.group("st"))
    for symbol in layout.symbols:
        found = [layout.at("scr1", symbol), layout.at("scr2", symbol)]
        if symbol == machine.blank:
            found.append(layout.at("bit"))
        first.set(layout.at("sym1", symbol), found)
    for old, new in zip(layout.group("pos2"), layout.group("pos3"), strict=True):
        first.set(old, [new])
    return first.block("the new symbol and position", correction)


def _pass_on(layout: Layout) -> _FirstLayer:
    """What the search carries along: everything but the pairs and its own scratch bit."""
    dropped = set(layout.group("pair", "bit"))
    return _FirstLayer(layout).keep(c for c in range(layout.width) if c not in dropped)


def _self_attention(layout: Layout, known: list[int], asked: int | None, value: Affine) -> Attention:
    """Finds the steps t that wrote at the head's new position, whose number has the `known` bits as found so
    far and a 1 in the bit `asked`. Query and key compare bits as +-1, so a step that fits scores the number
    of bits compared, any other at most 2 less; the null key scores 1 less than a fit. Step 0, which wrote
    nothing, loses 2."""
    number, found = layout.group("pos1"), layout.group("scr3")
    compared = list(zip(layout.group("pos3"), layout.group("pos2"), strict=True))
    compared += [(found[bit], number[bit]) for bit in known]
    asks_for_one = [] if asked is None else [number[asked]]
    return _attention(layout.width, compared, asks_for_one, [(layout.at("start"), -2)], value)


def _encoder_attention(layout: Layout) -> Attention:
    """Lemma C.7: the token of the input whose position is the head's."""
    compared = list(zip(layout.group("pos3"), layout.group("pos1"), strict=True))
    value = _value(layout, ("sym1", "scr2"), layout.at("given"))
    return _attention(layout.width, compared, [], [], value)


def _attention(
    width: int,
    compared: list[tuple[int, int]],
    ones: list[int],
    barred: list[tuple[int, float]],
    value: Affine,
) -> Attention:
    """Compares bits of query and key, and these `ones` of the key with 1. In the last row stand the null key
    and what bars a key from winning."""
    query, key = Rows(), Rows()
    for asks, answers in compared:
        query.add([(asks, 2)], -1)
        key.add([(answers, 2)], -1)
    for answers in ones:
        query.add((), 1)
        key.add([(answers, 2)], -1)
    query.add((), 1)
    key.add(barred)
    null_key = np.zeros(len(key.bias), np.float32)
    null_key[-1] = len(null_key) - 2
    maps = query.affine(width, np.float32), key.affine(width, np.float32), value
    return Attention(*maps, null_key, np.zeros(width, np.float32))


def _value(layout: Layout, copy: tuple[str, str] | None, constant: int | None = None) -> Affine:
    """Copies one group of symbols to another, and says 1 at a coordinate."""
    rows = Rows(layout.width)
    if copy is not None:
        for symbol in layout.symbols:
            rows.set(layout.at(copy[1], symbol), [(layout.at(copy[0], symbol), 1)])
    if constant is not None:
        rows.set(constant, (), 1)
    return rows.affine(layout.width, np.float32)
