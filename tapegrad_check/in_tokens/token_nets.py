"""What a language model for records of many tokens computes, read off its weights: heads, and cases.

Such a net has tokens whose bits are those of their numbers. Its first layer gathers: in every slot a head
looks at one slot of this record, or of the last one that is complete. The heads of the other layers recall:
they find the latest record in which certain bits are equal, digit by digit of its number. Its last units are
cases: bits that must be so, and what is then added to the number of the next token.

Every row of every head and every unit must be one of these forms, and nothing else may be there; scores, the
temperature and the error of softmax are worked out. So in each position up to the horizon the net computes
what is read here, exactly. What it means is for the page of an instruction set to say.

The bounds: a sign of a bit is off by twice the mean that a layer norm may find, 2^-20; one of slots by the
sum of its weights times that, and by a sixteenth of it for each slot, the rounding of the sum. A recall's
scores are off by 1/4 at most if S times all that, over both sides of what it compares, is at most 2^-4, where
S is the scale.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tapegrad_check.fields import texts, whole
from tapegrad_check.folder import require
from tapegrad_check.graph import Graph
from tapegrad_check.maps import row_of
from tapegrad_check.texts import Text, named, text_of

LOW, HIGH = 3 / 8, 5 / 8
"""Where bits are cut; a slope of 4 between."""
STRAY, LARGEST, MOST_COMPARED, MOST_TERMS, MOST_RECALLED = 2.0**-10, 1 << 14, 128, 1 << 12, 8
BEGIN = 1
"""The number of the first token, which has no bits."""


class Source(NamedTuple):
    """Where a bit comes from: of the token in a slot of this record or the last, or of a token that a head
    has recalled."""

    where: str
    what: int
    """The slot, or the number of the head."""
    bit: int


Side = Source | int
"""A bit, or a constant."""


class Case(NamedTuple):
    """In these slots, where bits are so, this is added to the number of the next token."""

    slots: frozenset[int]
    holds: Mapping[int, int]
    """From coordinates to what they must be."""
    number: int


@dataclass(frozen=True)
class Gather:
    """A head of the first layer."""

    looks: Mapping[int, int]
    before: bool


class Pair(NamedTuple):
    """What a recall compares: coordinates, or signs by slot."""

    ask: int | tuple[int, ...]
    answer: int | tuple[int, ...]


class TokenNet:
    """A net, read. `record` is the number of slots, `count` that of tokens."""

    def __init__(self, config: dict[str, Any], graph: Graph, record: int, count: int) -> None:
        self.horizon = whole(config["tokens"], "the horizon", 2, 1 << 23)
        self.record, self.count, self.width = record, count, (count - 1).bit_length()
        self.bits = max(1, (self.horizon // record).bit_length())
        require(record <= MOST_TERMS, "a record has too many tokens")
        text = text_of(graph, causal=True)
        require(len(text.layers) >= 2, "the net has other layers")
        self.sides = text.sides
        self.names = texts([head.name for head in text.heads], "the heads")
        self.layers, self.sums = [own.units for own in text.layers], [own.sums for own in text.layers]
        self.embedding, self.unembedding, self.words = text.embedding, text.unembedding, text.words
        self.coordinates = [("begin", 0), *(("token", bit) for bit in range(self.width))]
        self.first = len(self.coordinates)
        for name, size in (("record", self.bits), ("before", self.bits), ("slot", record)):
            self.coordinates += [(name, number) for number in range(size)]
        self.own = range(self.first, self.first + self.bits)
        self.earlier = range(self.own.stop, self.own.stop + self.bits)
        self.slots = range(self.earlier.stop, self.earlier.stop + record)
        self.known: dict[int, tuple[int, int]] = {}
        """For coordinates of bits that were gathered or recalled: the head, and which bit of its token."""
        self.heads_to = [head.to for head in text.heads]
        self.adds_to = [own.to for own in text.layers]
        text.check_records(record, self.bits, self.first)
        self.beta = 1.0
        while self.stray > STRAY:
            self.beta *= 2
        self._read(text, [len(own.heads) for own in text.layers])

    @property
    def stray(self) -> float:
        """How far from a bit softmax leaves what it copies."""
        return 4 * self.horizon * math.exp(-self.beta / 2) + 2.0**-23

    def _read(self, text: Text, counts: list[int]) -> None:
        """Everything, in the order of coordinates."""
        self._check_embedding()
        gathers, recalls = counts[0], counts[-1]
        require(all(count == recalls for count in counts[1:]), "searches have other heads")
        self.gathers: dict[int, Gather] = {head: self._gather(head) for head in range(gathers)}
        gathered = [(head, bit) for head in self.gathers for bit in self._copied(head)]
        copied = [(f"{self.names[head]}: token", bit) for head, bit in gathered]
        self._rounded(0, copied, gathered, list(self.gathers))
        self.recalls: list[list[Pair]] = []
        self.digits: list[int] = []
        found: list[dict[int, int]] = [{} for _ in range(recalls)]
        head, rest = gathers, self.bits
        for layer in range(1, len(counts)):
            last, own = layer == len(counts) - 1, range(head, head + recalls)
            read = [self._recall(one, found[one - head]) for one in own]
            require(len({digit for _, digit in read}) == 1, "heads find digits of different sizes")
            digit = read[0][1]
            pairs = [one for one, _ in read]
            require(not self.recalls or pairs == self.recalls, "rounds of a search look for different things")
            self.recalls = pairs
            self.digits.append(digit)
            require(digit == rest if last else 0 < digit < rest, "the search does not find a record's number")
            if last:
                break
            bits = range(rest - digit, rest)
            wanted = [self.own[bit] for bit in bits]
            for one in own:
                require(self._columns(one) == wanted, "a search copies something else")
                name = self.names[one].removesuffix(f": digit {layer} of its record")
                require(
                    name + f": digit {layer} of its record" == self.names[one], "a search has another name"
                )
                require(name == self.names[one - head + sum(counts[:-1])], "a search has another name")
            names = [
                (f"{self.names[one - head + sum(counts[:-1])]}: record", bit) for one in own for bit in bits
            ]
            first = len(self.coordinates) + len(names)
            self._rounded(layer, names, [], list(own))
            for place, (number, bit) in enumerate((number, bit) for number in range(recalls) for bit in bits):
                found[number][self.own[bit]] = first + place
            rest -= digit
            head += recalls
        for one in range(head, head + recalls):
            for place, bit in enumerate(self._copied(one)):
                at = len(self.coordinates)
                require(self.heads_to[one][place] == at, "what a head copies goes elsewhere")
                self.known[at] = one, bit
                self.coordinates.append((f"raw {self.names[one]}: token", bit))
        self.recalling = range(head, head + recalls)
        next_bits = list(range(len(self.coordinates), len(self.coordinates) + self.width))
        self.coordinates += [("next", bit) for bit in range(self.width)]
        require(text.coordinates == named(self.coordinates), "coordinates have other names")
        require([own.purpose for own in text.layers] == purposes(len(counts)), "layers have other purposes")
        self._check_logits(next_bits)
        self.cases = self._cases()

    def _check_embedding(self) -> None:
        require(len(self.embedding) == len(self.unembedding) == self.count, "there are other tokens")
        for number in range(self.count):
            bits = [1 + bit for bit in range(self.width) if number >> bit & 1] if number != BEGIN else [0]
            require(
                row_of(self.embedding, number) == (dict.fromkeys(bits, 1.0), 0.0), "a token has other bits"
            )

    def _columns(self, head: int) -> list[int]:
        """What a head copies."""
        rows = [row_of(self.sides[2][head], row) for row in range(len(self.sides[2][head]))]
        require(
            all(bias == 0 and list(terms.values()) == [1.0] for terms, bias in rows), "a head does not copy"
        )
        return [next(iter(terms)) for terms, _ in rows]

    def _copied(self, head: int) -> list[int]:
        """Bits of tokens that a head copies."""
        columns = self._columns(head)
        require(len(set(columns)) == len(columns), "a head copies a bit twice")
        require(all(1 <= at <= self.width for at in columns), "a head copies something else than tokens")
        return [at - 1 for at in columns]

    def _gather(self, head: int) -> Gather:
        """Which slot a head looks at, in every slot: it compares the number of the record and that of the
        slot."""
        query, key, beta = self.sides[0][head], self.sides[1][head], self.beta
        codes = max(2, (self.record - 1).bit_length())
        require(len(query) == len(key) == self.bits + codes + 1, "a head compares something else")
        before = row_of(query, 0) == ({self.earlier[0]: 2 * beta}, -beta)
        for bit, at in enumerate(self.earlier if before else self.own):
            require(row_of(query, bit) == ({at: 2 * beta}, -beta), "a head asks for another record")
            require(
                row_of(key, bit) == ({self.own[bit]: 2.0, 0: 1.0}, -1.0), "a head answers with another record"
            )
        asking = row_of(query, self.bits)[0].keys()
        looks = {at - self.slots[0]: 0 for at in asking if at in self.slots}
        require(len(looks) == len(asking), "a head asks for something else than slots")
        for bit in range(codes):
            signs = {at: 1.0 if slot >> bit & 1 else -1.0 for slot, at in enumerate(self.slots)}
            require(row_of(key, self.bits + bit) == (signs, 0.0), "a head answers with another slot")
            terms, bias = row_of(query, self.bits + bit)
            require(terms.keys() == asking and bias == 0, "a head asks for another slot")
            for at, weight in terms.items():
                require(abs(weight) == beta, "a head asks for another slot")
                looks[at - self.slots[0]] |= (weight > 0) << bit
        require(
            all(slot < self.record for slot in looks.values()), "a head asks for a slot that there is not"
        )
        ends = ({}, beta * (self.bits + codes - 1)), ({0: 1.0}, 0.0)
        require(
            (row_of(query, len(query) - 1), row_of(key, len(key) - 1)) == ends, "a head has no first token"
        )
        return Gather(looks, before)

    def _rounded(
        self, layer: int, names: list[tuple[str, int]], sources: list[tuple[int, int]], heads: Sequence[int]
    ) -> None:
        """What heads copy arrives raw, and units cut it to bits."""
        raw = range(len(self.coordinates), len(self.coordinates) + len(names))
        bits = range(raw.stop, raw.stop + len(names))
        self.coordinates += [(f"raw {name}", bit) for name, bit in names] + names
        require(
            [at for head in heads for at in self.heads_to[head]] == list(raw),
            "what heads copy goes elsewhere",
        )
        require(self.adds_to[layer] == list(bits), "a bit goes elsewhere")
        units, sums = self.layers[layer], self.sums[layer]
        require(len(units) == 2 * len(names) == 2 * len(sums), "there are other units that round")
        for place, at in enumerate(raw):
            for side, cut in enumerate((LOW, HIGH)):
                require(row_of(units, 2 * place + side) == ({at: 1.0}, -cut), "a bit is cut elsewhere")
            expected = {2 * place: 4.0, 2 * place + 1: -4.0}, 0.0
            require(row_of(sums, place) == expected, "a bit is not rounded")
        self.known |= dict(zip(bits, sources, strict=False))

    def _recall(self, head: int, found: Mapping[int, int]) -> tuple[list[Pair], int]:
        """What a head compares, and the bits of the digit that it finds."""
        query, key, beta = self.sides[0][head], self.sides[1][head], self.beta
        require(len(query) == len(key) >= 3, "a head compares nothing")
        compared, rest = len(query) - 2, self.bits - len(found)
        terms, bias = row_of(key, compared)
        digit = len(terms)
        require(digit <= rest, "a digit is too large")
        weights = {self.own[rest - digit + bit]: float(1 << bit) for bit in range(digit)}
        scale = 1 << digit
        require((terms, bias) == (weights, 0.0), "a head does not prefer the latest")
        require(
            row_of(key, compared + 1) == ({0: float(scale * (compared - 1))}, 0.0),
            "a head has no first token",
        )
        require(
            all(row_of(query, row) == ({}, beta) for row in (compared, compared + 1)),
            "a head is not as sharp",
        )
        pairs, searched, unsure = [], {}, 0.0
        for row in range(compared):
            (asks, ask_bias), (answers, answer_bias) = row_of(query, row), row_of(key, row)
            require(answers.pop(0, 0.0) == -answer_bias, "the first token answers")
            answer, own = self._side(answers, answer_bias, scale)
            if isinstance(answer, int) and answer in self.own:
                require(
                    len(asks) == 1 and list(asks.values()) == [2 * beta] and ask_bias == -beta,
                    "a search is lost",
                )
                searched[answer] = next(iter(asks))
                unsure += 4
                continue
            ask, other = self._side(asks, ask_bias, beta)
            unsure += own + other
            pairs.append(Pair(ask, answer))
        require(searched == dict(found), "a search does not go on")
        units = max(compared, math.ceil(unsure / 4)) + 1
        require(compared < MOST_COMPARED and units * scale <= LARGEST, "scores are too large")
        return pairs, digit

    def _side(
        self, terms: Mapping[int, float], bias: float, scale: float
    ) -> tuple[int | tuple[int, ...], float]:
        """The bit whose sign, times a scale, this is; and by how many means it is off."""
        if terms.keys() <= set(self.slots):
            signs = [bias + terms.get(at, 0.0) for at in self.slots]
            require(all(abs(sign) == scale for sign in signs), "a head compares no sign")
            off = abs(sum(terms.values())) / scale + self.record / 16 if terms else 2
            return tuple(int(sign > 0) for sign in signs), off
        require(len(terms) == 1, "a head compares several bits at once")
        ((at, weight),) = terms.items()
        require(weight == 2 * scale and bias == -scale, "a head compares no sign")
        require(1 <= at <= self.width or at in self.known or at in self.own, "a head compares no bit")
        return at, 2

    def _check_logits(self, next_bits: list[int]) -> None:
        require(self.adds_to[-1] == next_bits, "nothing is chosen")
        for number in range(self.count):
            signs = {at: 1.0 if number >> bit & 1 else -1.0 for bit, at in enumerate(next_bits)}
            require(row_of(self.unembedding, number) == (signs, 0.0), "a token has other logits")

    def _cases(self) -> list[Case]:
        """The units of the last layer: each is 1/2 where its bits are so, and off by 1/2 otherwise; two
        together where a bit is read raw, cut between."""
        units, sums = self.layers[-1], self.sums[-1]
        rows = [row_of(units, unit) for unit in range(len(units))]
        outputs: list[dict[int, float]] = [{} for _ in rows]
        for bit in range(self.width):
            terms, bias = row_of(sums, bit)
            require(bias == -1, "a choice has another offset")
            for unit, weight in terms.items():
                outputs[unit][bit] = weight
        cases, unit = [], 0
        while unit < len(rows):
            terms, bias = rows[unit]
            require(len(terms) <= MOST_TERMS, "a unit reads too much")
            slots = frozenset(at - self.slots[0] for at in terms if at in self.slots)
            holds = {at: weight for at, weight in terms.items() if at not in self.slots}
            require(all(terms[self.slots[slot]] == 1 for slot in slots), "a unit is for no slot")
            require(
                all(abs(weight) == 1 and at in self.known for at, weight in holds.items()),
                "a unit is no case",
            )
            most = 1 + sum(weight > 0 for weight in holds.values())
            raw = sum(self.known[at][0] in self.recalling for at in holds)
            if raw:
                require(raw <= MOST_RECALLED and unit + 1 < len(rows), "a unit reads too many raw bits")
                require(
                    (bias, rows[unit + 1]) == (1 - most - LOW, (terms, 1 - most - HIGH)),
                    "a bit is not rounded",
                )
                weight = 8.0
                opposite = {bit: -own for bit, own in outputs[unit].items()}
                require(outputs[unit + 1] == opposite, "a recalled bit is not rounded")
            else:
                require(bias == 0.5 - most, "a unit is not sure whether it is on")
                weight = 4.0
            require(set(outputs[unit].values()) <= {weight}, "a unit adds something else")
            number = sum(1 << bit for bit in outputs[unit])
            cases.append(Case(slots, {at: int(own > 0) for at, own in holds.items()}, number))
            unit += 2 if raw else 1
        return cases

    # What bits are, in a slot

    def source(self, at: int, slot: int) -> Side:
        """Where a bit comes from, as seen in a slot; 0 where its head looks at the first token."""
        if 1 <= at <= self.width:
            return Source("this", slot, at - 1)
        head, bit = self.known[at]
        if head in self.recalling:
            return Source("recalled", head - self.recalling[0], bit)
        gather = self.gathers[head]
        if slot not in gather.looks:
            return 0
        looked = gather.looks[slot]
        if not gather.before:
            # A slot that is still to come in this record is not there yet.
            return Source("this", looked, bit) if looked <= slot else 0
        # The last record that is complete once the next token is there: for the last slot its own.
        return Source("this" if slot == self.record - 1 else "last", looked, bit)

    def side(self, own: int | tuple[int, ...], slot: int) -> Side:
        """One side of what a recall compares, in a slot."""
        return own[slot] if isinstance(own, tuple) else self.source(own, slot)

    def answers(self, recall: int, asking: int) -> dict[int, frozenset[tuple[Side, Side]]]:
        """For a recall in a slot: the slots whose tokens can be found, each with what must be equal, here and
        there."""
        found = {}
        for slot in range(self.record):
            pairs = [
                (self.side(pair.ask, asking), self.side(pair.answer, slot)) for pair in self.recalls[recall]
            ]
            constant = [(a, b) for a, b in pairs if isinstance(a, int) and isinstance(b, int)]
            if all(a == b for a, b in constant):
                found[slot] = frozenset(pair for pair in pairs if pair not in constant)
        return found

    def largest(self) -> int:
        """The largest score."""
        compared = max(len(pairs) for pairs in self.recalls)
        return max((compared + sum(self.digits[:n]) + 1) << digit for n, digit in enumerate(self.digits))


def purposes(layers: int) -> list[str]:
    """What each layer is for, as a net of tokens has to say."""
    searches = [
        f"finds digit {number + 1} of the number of the latest record that fits"
        for number in range(layers - 2)
    ]
    return [
        "gathers tokens of this record and of the last",
        *searches,
        "recalls the latest record that fits, and chooses the next token",
    ]
