"""From a token program to a language model, and why it is exact in single precision.

**Coordinates** are bits. Those that a head copies arrive raw, near a bit, and are rounded by units to the bit
itself. The units of the last layer choose the next token, whose number is written in binary as signs. Logits
are products with the signs of all numbers: the right one is their count n, and any other at most n - 2.

**Scores.** A `Gather` compares the b bits of a record's number, as products of signs, and the slot, which
counts 2; or, where slots are `coded`, the m bits of the slot's number. A `Recall` compares n bits, as
products of signs times S, and adds a digit of the record's number, of d bits, S = 2^d. So the number of the
latest record that fits is found digit by digit, the highest first, with a layer for each; a digit that is
found is compared by those that follow, and the last head copies.

                         gather      coded              recall
    the token that fits  b + 2       b + m              S n + digit
    the first token      b + 1       b + m - 1          S (n - 1)
    any other            at most b   at most b + m - 2  at most S (n - 2) + digit, up to S (n - 1) - 1

So the best score is 1 above all that differ. Where several are best, they agree in the digit that is copied;
the last head finds one only, since of a record only one token answers. Queries are multiplied by a power of
two, the temperature beta.

**Layer norms**, where a stock model has them, are made the identity: every coordinate x is there twice, as x
and -x; epsilon is 2^60 and the gain 2^30. Mean squares up to 2^36 vanish in 2^60, whose root is 2^30. The
mean is 0, but libraries find it only up to rounding: say up to `MEAN` = 2^-20, and that is what they
subtract. Hence what heads and units read is off by that much, a sign by 2^-19, and the score of a recall by 4
S (n + 1) 2^-20. That is 1/16 at most, as S (n + 1) is at most `LARGEST` = 2^14; signs of slots count as
several (`weighed`). Sums of n terms below that are rounded by n 2^-10 at most, and n is below 128. A gather
that is coded compares at most 12 signs of at most 2^12 slots, which are off by 2^-8 each. So scores are off
by less than 1/4, and those that differ, differ by 1/2 still.

**Softmax.** The best weigh about 1 each, of N keys the others exp(-beta / 2) at most. What is copied is off
by `analysis.softmax_error(N, beta / 2)`, which is at most `STRAY` = 2^-10, plus `MEAN`.

**Rounding.** `4 relu(z - 3/8) - 4 relu(z - 5/8)` of any float z within 3/8 of a bit is that bit, without
rounding: near 1, z - 3/8 and z - 5/8 are multiples of 2^-24 below 1. So every layer hands on bits. Units of
cases have thresholds 1/2 from all values, and their terms are too few to come near that.

**Horizon.** Tokens are all that is carried on, and each is right if all before it are. What ends a run is the
table of positions, or the reach of a program's own numbers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tapegrad.attention.analysis import Scales, fewest_digits, softmax_error
from tapegrad.attention.build import Stream
from tapegrad.attention.program import Bit
from tapegrad.attention.tokens import BEGIN, Case, Gather, Recall, TokenProgram, TokenSide
from tapegrad.errors import Refused
from tapegrad.networks.form import Affine, Correction, Key, Rows
from tapegrad.networks.network import Network
from tapegrad.networks.texts import NAME, Head, Layer, Parts, Records, network_of

ROUNDING = Correction(3 / 8, 5 / 8)
STRAY = 2.0**-10
"""How far from a bit softmax may leave a copied one."""
MEAN = 2.0**-20
"""How far from 0 a layer norm may find the mean of numbers x and -x, of at most 1 each."""
LARGEST = 1 << 14
"""Largest scores."""
MOST_COMPARED = 128
"""Bits that a head compares are fewer."""
MOST_TERMS = 1 << 12
"""Of a unit; so many, each off by `MEAN`, are off by 1/256."""
LONGEST = 1 << 23
"""Most tokens: their table of positions alone takes gigabytes."""


def slot_bits(slots: int) -> int:
    """Of the number of a slot, where gathers compare that; at least two, so that the first token wins where
    nothing is asked for."""
    return max(2, (slots - 1).bit_length())


def _sign_of(number: int, bit: int) -> float:
    return 1.0 if number >> bit & 1 else -1.0


def slot_sign(slots: frozenset[int], count: int) -> tuple[dict[int, float], float]:
    """The sign that says whether this is one of these slots: weights of slots, and a bias. Of three ways to
    write it, the one whose weights have the least sum: a mean that is not quite 0 counts that often."""
    others = frozenset(range(count)) - slots
    ways: list[tuple[dict[int, float], float]] = [
        (dict.fromkeys(sorted(slots), 2.0), -1.0),
        (dict.fromkeys(sorted(others), -2.0), 1.0),
        ({slot: 1.0 if slot in slots else -1.0 for slot in range(count)}, 0.0),
    ]
    return min(ways, key=lambda way: abs(sum(way[0].values())))


def weighed(head: Recall, count: int) -> int:
    """How many pairs of bits are as unsure as what a recall compares, with so many slots. A sign of a bit is
    off by twice the mean, hence a pair by 4 times. One of slots is off by the sum of its weights, and by the
    rounding of so many terms, each 2^-24 at most, which is a sixteenth of the mean."""
    total = 0.0
    for side in (side for pair in head.compared for side in pair):
        if isinstance(side, frozenset):
            total += abs(sum(slot_sign(side, count)[0].values())) + count / 16
        else:
            total += 2
    return max(len(head.compared), math.ceil(total / 4))


def temperature_for(tokens: int) -> float:
    """The least power of two for which what heads copy is within `STRAY`."""
    beta = 1.0
    while softmax_error(tokens, beta / 2) > STRAY:
        beta *= 2
    return beta


def scales_for(program: TokenProgram, tokens: int) -> Scales:
    """The number of a record in as few digits as scores allow."""
    if not 2 <= tokens <= LONGEST:
        raise Refused(
            f"a horizon of {tokens:,} tokens cannot be built", advice=f"Ask for 2 to {LONGEST:,} tokens."
        )
    records = tokens // len(program.slots) + 1
    time = max(1, (records - 1).bit_length())
    compared = max((len(head.compared) for head in program.recalls), default=0)
    unsure = max((weighed(head, len(program.slots)) for head in program.recalls), default=0)
    few = compared + time < MOST_COMPARED and len(program.slots) <= MOST_TERMS
    if few and (digits := fewest_digits(time, unsure, LARGEST)):
        return Scales(records, digits)
    raise Refused(
        f"heads that compare {compared} bits have scores that are too large", advice="Ask for less."
    )


@dataclass
class _Builder:
    """Coordinates of bits, as they become known."""

    program: TokenProgram
    scales: Scales
    beta: float
    width: int = 0
    at: dict[Bit, int] = field(default_factory=dict)
    raw: dict[Bit, int] = field(default_factory=dict)
    keys: list[Key] = field(default_factory=list)

    def new(self, group: str, count: int) -> list[int]:
        """New coordinates."""
        first = len(self.keys)
        self.keys += [(group, number) for number in range(count)]
        return list(range(first, first + count))

    def name(self, bits: Sequence[Bit], prefix: str, found: dict[Bit, int]) -> None:
        """New coordinates for bits, by their own names."""
        for bit in bits:
            name, _, number = bit.removesuffix("]").rpartition("[")
            found[bit] = len(self.keys)
            self.keys.append((prefix + name, int(number)))

    def gather(self, head: Gather, begin: int) -> Head:
        """Bits of the record's number as signs, then slots, then the first token."""
        query, key = Rows(), Rows()
        asks = "before" if head.before else "record"
        for bit in range(self.scales.time):
            query.add([(self.at[f"{asks}[{bit}]"], 2 * self.beta)], -self.beta)
            key.add([(self.at[f"record[{bit}]"], 2), (begin, 1)], -1)
        slots = range(len(self.program.slots))
        if self.program.coded:
            codes = slot_bits(len(slots))
            for bit in range(codes):
                query.add((self.at[f"slot[{own}]"], self.beta * _sign_of(asked, bit))
                          for own, asked in head.slots.items())  # fmt: skip
                key.add((self.at[f"slot[{slot}]"], _sign_of(slot, bit)) for slot in slots)
            first = self.scales.time + codes - 1
        else:
            for slot in slots:
                asking = [own for own, asked in head.slots.items() if asked == slot]
                query.add([(self.at[f"slot[{own}]"], 2 * self.beta) for own in asking])
                key.add([(self.at[f"slot[{slot}]"], 1)])
            first = self.scales.time + 1
        query.add((), self.beta * first)
        key.add([(begin, 1)])
        return self._head(head.name, head.copies, query, key)

    def recall(self, head: Recall, number: int, begin: int) -> Head:
        """Bits as signs, those of the digits found among them, then a digit, then the first token."""
        query, key = Rows(), Rows()
        time, digit = range(self.scales.time), self.scales.digit(number)
        known = [bit for bit in time if bit >= digit.stop]
        last = number == len(self.scales.digits) - 1
        compared = [*head.compared, *((_found(head, bit), f"record[{bit}]") for bit in known)]
        scale = 1 << len(digit)
        for ask, answer in compared:
            (asked, bias), (answered, other) = self._sign(ask), self._sign(answer)
            query.add([(place, self.beta * weight) for place, weight in asked], self.beta * bias)
            shown = [(place, scale * weight) for place, weight in answered]
            first = [(begin, -scale * other)] if other else []
            key.add([*shown, *first], scale * other)
        query.add((), self.beta)
        key.add([(self.at[f"record[{bit}]"], 1 << place) for place, bit in enumerate(digit)])
        query.add((), self.beta)
        key.add([(begin, scale * (len(compared) - 1))])
        name = head.name if last else f"{head.name}: digit {number + 1} of its record"
        return self._head(name, head.copies if last else self.searched(head, number), query, key)

    def searched(self, head: Recall, number: int) -> list[tuple[Bit, Bit]]:
        """What is copied in a search for a digit: bits of the record's number."""
        return [(f"record[{bit}]", _found(head, bit)) for bit in self.scales.digit(number)]

    def _sign(self, side: TokenSide) -> tuple[list[tuple[int, float]], float]:
        if isinstance(side, frozenset):
            weights, bias = slot_sign(side, len(self.program.slots))
            return [(self.at[f"slot[{slot}]"], weight) for slot, weight in weights.items()], bias
        return ([(self.at[side], 2.0)], -1.0) if isinstance(side, str) else ([], 2.0 * side - 1)

    def _head(self, name: str, copies: Sequence[tuple[Bit, Bit]], query: Rows, key: Rows) -> Head:
        value, to = Rows(), []
        for there, here in copies:
            value.add([(self.at[there], 1)])
            to.append(self.raw[here])
        asks, answers, gives = (rows.affine(self.width, np.float32) for rows in (query, key, value))
        return Head(name, asks, answers, gives, np.array(to))

    def rounding(self, gathered: Sequence[Bit]) -> tuple[Affine, Affine, np.ndarray]:
        """Units that make bits of what was gathered."""
        units, sums = Rows(), Rows()
        for bit in gathered:
            cuts = [units.add([(self.raw[bit], 1)], -cut) for cut in (ROUNDING.low, ROUNDING.high)]
            sums.add(zip(cuts, (ROUNDING.gain, -ROUNDING.gain), strict=True))
        to = np.array([self.at[bit] for bit in gathered], np.int64)
        return units.affine(self.width, np.float32), sums.affine(len(units.bias), np.float32), to

    def cases(self, digits: Sequence[int]) -> tuple[Affine, Affine, np.ndarray]:
        """A unit for every case, which is 1/2 where it holds; two that round where a recalled bit is read."""
        units, sums = Rows(), Rows()
        chosen: list[list[tuple[int, float]]] = [[] for _ in digits]
        for case in self.program.cases:
            made = self._case(case, units)
            for digit, terms in enumerate(chosen):
                if case.token >> digit & 1:
                    terms += made
        for terms in chosen:
            sums.add(terms, -1)
        return (
            units.affine(self.width, np.float32),
            sums.affine(len(units.bias), np.float32),
            np.array(digits),
        )

    def _case(self, case: Case, units: Rows) -> list[tuple[int, float]]:
        """Numbers of units and their weights, which come to 2 where the case holds."""
        terms = [(self.at[f"slot[{slot}]"], 1.0) for slot in case.slots]
        raws = [bit for bit in case.holds if bit not in self.at]
        for bit, value in case.holds.items():
            sign = 1.0 if value else -1.0
            terms.append((self.raw[bit] if bit in raws else self.at[bit], sign))
        if len(terms) > MOST_TERMS:
            raise Refused("a rule looks at too many tokens", advice="Use a machine with fewer tapes.")
        most = 1 + sum(case.holds.values())
        if not raws:
            return [(units.add(terms, 0.5 - most), 4.0)]
        cuts = [units.add(terms, 1 - most - cut) for cut in (ROUNDING.low, ROUNDING.high)]
        return list(zip(cuts, (2 * ROUNDING.gain, -2 * ROUNDING.gain), strict=True))


def _found(head: Recall, bit: int) -> Bit:
    """A bit of the number of the latest record that fits."""
    return f"{head.name}: record[{bit}]"


def build(program: TokenProgram, tokens: int) -> Network:
    """The language model of a token program for so many tokens."""
    scales = scales_for(program, tokens)
    builder = _Builder(program, scales, temperature_for(tokens))
    gathered = [here for head in program.gathers for _, here in head.copies]
    recalled = [here for head in program.recalls for _, here in head.copies]
    searches = range(len(scales.digits) - 1)
    found = [
        [here for head in program.recalls for _, here in builder.searched(head, number)]
        for number in searches
    ]
    (begin,) = builder.new("begin", 1)
    for feature in program.features:
        builder.at |= zip(feature.bits, builder.new(feature.name, feature.width), strict=True)
    first = len(builder.keys)
    for name, count in (("record", scales.time), ("before", scales.time), ("slot", len(program.slots))):
        places = builder.new(name, count)
        builder.at |= {f"{name}[{number}]": place for number, place in enumerate(places)}
    for bits in (gathered, *found):
        builder.name(bits, "raw ", builder.raw)
        builder.name(bits, "", builder.at)
    builder.name(recalled, "raw ", builder.raw)
    digits = builder.new("next", (len(program.tokens) - 1).bit_length())
    builder.width = len(builder.keys)
    layers = [
        Layer(
            "gathers tokens of this record and of the last",
            tuple(builder.gather(head, begin) for head in program.gathers),
            *builder.rounding(gathered),
        )
    ]
    for number in searches:
        heads = tuple(builder.recall(head, number, begin) for head in program.recalls)
        purpose = f"finds digit {number + 1} of the number of the latest record that fits"
        layers.append(Layer(purpose, heads, *builder.rounding(found[number])))
    heads = tuple(builder.recall(head, len(searches), begin) for head in program.recalls)
    layers.append(
        Layer(
            "recalls the latest record that fits, and chooses the next token", heads, *builder.cases(digits)
        )
    )
    positions = Records(len(program.slots), scales.time, first)
    unembedding = Rows()
    for number in range(len(program.tokens)):
        unembedding.add((place, 1.0 if number >> bit & 1 else -1.0) for bit, place in enumerate(digits))
    parts = Parts(
        _embedding(program, builder.at, begin, builder.width),
        positions,
        tuple(layers),
        unembedding.affine(builder.width, np.float32),
        causal=True,
    )
    names = Stream(tuple(builder.keys)).names
    return network_of(parts, NAME, names, [token.word for token in program.tokens])


def _embedding(program: TokenProgram, at: Mapping[Bit, int], begin: int, width: int) -> Affine:
    rows = Rows()
    for number, token in enumerate(program.tokens):
        own = sorted(at[bit] for bit in token.bits)
        rows.add([(place, 1.0) for place in ([begin] if number == BEGIN else []) + own])
    return rows.affine(width, np.float32)
