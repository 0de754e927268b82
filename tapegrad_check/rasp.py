"""Is a transformer this RASP program? Every head's score over all values, and every unit.

What is proved, half-layer by half-layer: each coordinate is what its meaning says, at every position and for
every input up to the length, in single precision; and the first position is 0 in all but one. A `bit` is the
value of one sequence, or of a few, in terms of labels; `raw` is a count as 1 / (1 + count), a mean, or a bit that
was copied; a `number` is a sum of bits. The sets of values are worked out from the program, and so is what is
selected; heads and units are evaluated for all values. Softmax and steps: what is selected weighs the same, what is
not weighs less than the smallest float, and a step rises between two multiples of a grid, where nothing rounds.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.attention import Map, maps_of
from tapegrad_check.folder import OWN_TABLE, Arrays, Checked, NotProved, require
from tapegrad_check.rasp_source import Rasp, rasp_of
from tapegrad_check.sources import Model, array, digest

START, WORD, MIXED = 0, 1, 2
UNIT = Fraction(1, 1 << 24)
BETA = 256.0
"""What a condition scores. exp(-128) is below the smallest float of single precision, which is above exp(-104)."""
MOST_WORK = 1 << 27
"""Cases of one table."""
FEW_CASES = 1 << 16
"""Up to so many, values are not drawn together."""

Key = tuple[int, ...]
"""Nodes whose values something depends on."""
Parts = dict[Key, NDArray[np.float64]]
"""A sum of functions of values, each as a table with an axis for each node."""
Row = tuple[dict[int, float], float]


class Step(NamedTuple):
    """Two units that rise from 0 to 1: what they read, times the gain; where they rise; the term at the start."""

    form: dict[int, float]
    low: Fraction
    high: Fraction
    start: float


def check(config: dict[str, Any], arrays: Arrays, claims: dict[str, Any], source: Model | None) -> Checked:
    """The statements that hold; `CheckError` says which does not."""
    machine = config["machine"]
    require(machine.keys() == {"kind", "source"}, "the program has other entries")
    data = machine["source"]
    require(data.get("kind") == "rasp program", "the net is of no program")
    program = rasp_of(data, {})
    require(source is None or digest(program) == digest(source), "the program is not the source")
    net = _Net(config, arrays, program)
    try:
        net.check()
    except NotProved as reason:
        return Checked([f"not everything was compared: {reason}"], OWN_TABLE)
    found = {
        "dtype": "float32",
        "length": program.length,
        "causal": program.causal,
        "layers": len(net.units),
        "heads": len(net.heads),
        "temperature": BETA,
        "steps": len(net.widths),
        "narrowest_step": float(min(net.widths)) if net.widths else None,
    }
    require(claims == found, "the certificate claims something else than what holds")
    most = max((len(own) for own in program.values), default=0)
    return Checked(
        [
            f"{len(program.nodes)} expressions have at most {most:,} values each, for every input of up to "
            f"{program.length:,} tokens",
            f"{len(net.heads)} heads select what the program selects, for all values of keys and queries; scores "
            f"differ by {BETA / 2:g} at least, so that what is not selected weighs nothing",
            f"{net.bits:,} coordinates are bits of values, set by units that were evaluated for all of them; "
            f"{len(net.widths):,} steps tell numbers apart without rounding",
            "values that differ are never moved together, or the net says so"
            if net.says_so
            else "no head moves two values at once",
            "the first position is 0 in all coordinates but one, in every layer",
        ]
    )


class _Net:
    """Arrays with the meanings of coordinates, and what is proved of them so far."""

    def __init__(self, config: dict[str, Any], arrays: Arrays, program: Rasp) -> None:
        self.program, self.values = program, program.values
        self.meanings = [tuple(own) for own in config["meanings"]]
        self.groups = [(tuple(nodes), [np.array(own, np.int64) for own in labels])
                       for nodes, labels in config["groups"]]  # fmt: skip
        self.heads: list[int] = config["heads"]
        self._in_bounds(config)
        self.units, self.sums = (maps_of(arrays, name) for name in ("units", "sums"))
        self.sides = [maps_of(arrays, name) for name in ("query", "key", "value")]
        (self.embedding,), (self.unembedding,) = (maps_of(arrays, n) for n in ("embedding", "unembedding"))
        self.counts = array(arrays, "heads", np.int32, (len(self.units),)).tolist()
        require(min(self.counts) >= 0 and sum(self.counts) == len(self.heads), "layers have other heads")
        require(all(len(side) == len(self.heads) for side in self.sides), "not every head has all its maps")
        for own in (*self.units, *(m for side in self.sides for m in side), self.embedding, self.unembedding):
            require(own.width == len(self.meanings), "a map has another width")
        for own in (*self.units, *self.sums, *(m for side in self.sides for m in side), self.embedding,
                    self.unembedding):  # fmt: skip
            require(not any(own.bias), "a map has a constant")
        self.adds_to = _split(array(arrays, "adds_to", np.int32, (sum(map(len, self.sums)),)), self.sums)
        self.heads_to = _split(array(arrays, "heads_to", np.int32, (sum(map(len, self.sides[2])),)), self.sides[2])
        self.known: set[int] = {START, WORD, MIXED}
        self.at_start: dict[int, float] = {START: 1.0}
        """What is not 0 at the first position."""
        self.bits = 0
        self.widths: list[Fraction] = []
        self.watched: set[int] = set()
        self.says_so = False
        self.numbers: dict[int, Parts] = {}
        self.quanta: dict[int, tuple[Fraction, Fraction]] = {}
        """Of numbers: what they are multiples of, and how large they can be."""
        self.off: dict[int, Fraction] = {}
        """Of means: how far the numbers of which they are the mean may be off."""
        self.chosen: dict[int, NDArray[np.int64]] = {}
        """Of nodes with many values those that stand for all, in what is being proved."""
        self._functions: dict[int, NDArray[np.int64]] = {}
        self._indicators: dict[int, NDArray[np.float64]] = {}

    def _in_bounds(self, config: dict[str, Any]) -> None:
        nodes = len(self.program.nodes)
        for own, labels in self.groups:
            require(len(own) == len(labels) > 0 and len(set(own)) == len(own), "a group is of no nodes")
            for node, label in zip(own, labels, strict=True):
                require(type(node) is int and 0 <= node < nodes, "a group is of no node")
                fits = label.shape == (len(self.values[node]),) and (label >= 0).all()
                require(fits and len(label), "a group has other labels")
        for place, meaning in enumerate(self.meanings):
            require(len(meaning) == 3 and all(type(own) is int for own in meaning[1:]), "a meaning is none")
            kind, first, second = meaning
            require((kind == "given") == (place <= MIXED), "a given coordinate is elsewhere")
            most = {"given": 1, "bit": len(self.groups), "raw": nodes, "number": nodes}.get(kind, 0)
            require(0 <= first < most and second >= 0, "a meaning is out of range")
        require(len(self.meanings) > MIXED, "coordinates are missing")
        require(len(config["coordinates"]) == len(self.meanings), "coordinates have other names")
        names = [tuple(own) for own in config["coordinates"]]
        fits = all(len(own) == 2 and isinstance(own[0], str) and type(own[1]) is int for own in names)
        require(fits and len(set(names)) == len(names), "coordinates have no names of their own")
        for node in self.heads:
            require(type(node) is int and 0 <= node < nodes, "a head is of no node")
            require(self.program.nodes[node].kind in ("width", "mean", "move"), "a head is of another node")
        purposes = config["purposes"]
        require(isinstance(purposes, list) and all(isinstance(own, str) for own in purposes), "purposes are none")

    def check(self) -> None:
        """Embedding, layer by layer heads and units, and the output."""
        self._embedding()
        head = 0
        for layer, count in enumerate(self.counts):
            made = [self._head(number) for number in range(head, head + count)]
            head += count
            for places in made:
                require(not self.known & set(places), "a head adds to what is set")
                self.known |= set(places)
            self._units(layer)
        self._watches()
        self._output()

    # What coordinates are

    def indicator(self, place: int) -> tuple[Key, NDArray[np.float64]]:
        """A bit as a table over the values of its nodes."""
        _, group, number = self.meanings[place]
        nodes, labels = self.groups[group]
        if place not in self._indicators:
            self._indicators[place] = (self._label(group) >= number).astype(np.float64)
        return nodes, self._indicators[place]

    def _label(self, group: int) -> NDArray[np.int64]:
        nodes, labels = self.groups[group]
        found = np.zeros((), np.int64)
        for own in labels:
            found = found[..., None] * (1 + own.max()) + own
        require(found.size <= MOST_WORK, "a group has too many cases")
        return found

    def parts(self, form: dict[int, float]) -> Parts:
        """A form over known bits and numbers, as functions of values."""
        found: Parts = {}
        by_group: dict[int, list[tuple[int, float]]] = {}
        for place, weight in form.items():
            require(place in self.known, "something is read before it is set")
            kind, group, number = self.meanings[place]
            if place == WORD:
                found[()] = found.get((), np.zeros(())) + weight
            elif kind == "bit":
                by_group.setdefault(group, []).append((number, weight))
            elif kind == "number":
                require(not self.chosen, "a number is read by what is no step")
                for key, own in self.numbers[place].items():
                    found[key] = found.get(key, 0.0) + weight * own
            else:
                require(False, "a raw coordinate is read before it is a bit")
        for group, terms in by_group.items():
            key, label = self.groups[group][0], self._label(group)
            rises = np.zeros(int(label.max()) + 1)
            for number, weight in terms:
                if number < len(rises):
                    rises[number] += weight
            table = np.cumsum(rises)[label]
            for axis, node in enumerate(key):
                if node in self.chosen:
                    table = np.take(table, self.chosen[node], axis)
            found[key] = found.get(key, 0.0) + table
        return found

    def exact(self, form: dict[int, float]) -> tuple[Fraction, Fraction]:
        """A sum with these weights is exact in whatever order it is taken: all terms are multiples of one power
        of two, and together not too large. Gives that power, and how large they are."""
        finest, total = Fraction(1 << 60), Fraction(0)
        for place, weight in form.items():
            own = Fraction(weight)
            quantum, most = self.quanta.get(place, (Fraction(1), Fraction(1)))
            bit = Fraction(own.numerator & -own.numerator, own.denominator)
            require(place not in self.quanta or abs(own) == bit, "a number is not times a power of two")
            finest, total = min(finest, bit * quantum), total + abs(own) * most
        require(total * UNIT <= finest, "a sum is rounded")
        return finest, total

    def places_of(self, node: int, keys: Sequence[int]) -> NDArray[np.int64] | None:
        """The place of a node's value as a table over the values of other nodes; None if it is no function of
        them."""
        shape = self._shape(tuple(keys))
        if np.prod(shape, dtype=float) > MOST_WORK:
            raise NotProved("there are too many cases")
        memo: dict[int, NDArray[np.int64] | None] = {}
        waiting = [node]
        while waiting:
            own = waiting[-1]
            if own in memo:
                waiting.pop()
                continue
            kind, reads = self.program.nodes[own].kind, self.program.nodes[own].reads
            if own in keys:
                axis = list(keys).index(own)
                own_places = self.chosen.get(own, np.arange(shape[axis]))
                memo[own] = own_places.reshape([-1 if n == axis else 1 for n in range(len(shape))])
            elif kind == "full":
                memo[own] = np.zeros([1] * len(shape), np.int64)
            elif kind not in ("apply", "table"):
                memo[own] = None
            elif missing := [read for read in reads if read not in memo]:
                waiting += missing
            else:
                inner = [memo[read] for read in reads]
                if any(place is None for place in inner):
                    memo[own] = None
                else:
                    if own not in self._functions:
                        self._functions[own] = self.program.function(own)
                    memo[own] = self._functions[own][tuple(inner)]  # type: ignore[index]
        return memo[node]

    def joint(self, parts: Parts) -> tuple[Key, NDArray[np.float64]]:
        """A sum of parts as one table."""
        nodes: Key = tuple(dict.fromkeys(node for key in parts for node in key))
        shape = self._shape(nodes)
        if np.prod(shape, dtype=float) > MOST_WORK:
            raise NotProved("there are too many cases")
        total = np.zeros(shape)
        for key, own in parts.items():
            total += self._spread(own, key, nodes)
        return nodes, total

    @staticmethod
    def _spread(table: NDArray[Any], key: Key, nodes: Key) -> NDArray[Any]:
        """A table over some nodes as one over more of them."""
        order = sorted(range(len(key)), key=lambda place: nodes.index(key[place]))
        shape = [table.shape[key.index(node)] if node in key else 1 for node in nodes]
        return np.transpose(table, order).reshape(shape) if key else np.asarray(table).reshape([1] * len(nodes))

    # Embedding

    def _embedding(self) -> None:
        kinds = {node.kind: number for number, node in enumerate(self.program.nodes)}
        require(len(self.embedding) == len(self.program.vocabulary) + 1, "there are other tokens")
        bits = {kind: [p for p, (what, group, _) in enumerate(self.meanings)
                       if what == "bit" and self.groups[group][0] == (kinds.get(kind),)]
                for kind in ("tokens", "indices")}  # fmt: skip
        require(_row(self.embedding, 0) == ({START: 1.0}, 0.0), "the first token has other bits")
        for number in range(len(self.program.vocabulary)):
            own = {WORD: 1.0} | {place: 1.0 for place in bits["tokens"] if self.indicator(place)[1][number]}
            require(_row(self.embedding, number + 1) == (own, 0.0), "a token has other bits")
        count = self.program.length - 1 if "indices" in kinds else 0
        places = bits["indices"]
        require(len(places) == count, "positions have other bits")
        require(not count or places == list(range(places[0], places[0] + count)), "positions are elsewhere")
        for number, place in enumerate(places):
            right = np.arange(self.program.length) > number
            require(np.array_equal(self.indicator(place)[1], right), "positions have other bits")
        self.known |= {*bits["tokens"], *places}
        self.bits += len(bits["tokens"]) + count

    # Heads

    def _head(self, number: int) -> list[int]:
        """A head selects what its node's selector selects, and brings what it should."""
        query, key, value = (side[number] for side in self.sides)
        node = self.program.nodes[self.heads[number]]
        require(len(query) == len(key) >= 1, "a head asks more than it answers")
        asks, answers = ([_row(own, row)[0] for row in range(len(own))] for own in (query, key))
        require(answers[-1] == {START: 1.0}, "the first position does not answer")
        require(asks[-1].keys() == {START, WORD}, "the first position is not asked for")
        require(not any(START in form for form in (*asks[:-1], *answers[:-1])), "the first position is compared")
        height, begin = asks[-1][START], asks[-1][WORD]
        count = height / BETA
        tables = self._components(asks[:-1], answers[:-1], count)
        require(count == int(count) >= len(tables) and count >= 1, "the first position scores something else")
        require(begin == (height if node.kind == "width" else height - BETA / 2), "the first position is off")
        for own in tables.values():
            require(np.isin(own, (0.0, BETA)).all(), "a score is neither all nor nothing")
        require(height <= 1 << 20, "scores are too large")
        self._selects(node.reads[0], tables, int(count))
        rows = [_row(value, row)[0] for row in range(len(value))]
        self._brings(self.heads[number], rows)
        to = self.heads_to[number]
        wanted = [("raw", self.heads[number], row) for row in range(len(rows))]
        require([self.meanings[place] for place in to] == wanted, "what a head brings goes elsewhere")
        if node.kind == "width":
            self.at_start[to[0]] = 1.0
        elif node.kind == "mean":
            self.at_start[to[0]] = rows[0].get(START, 0.0)
        elif not self._single(node.reads[0]):
            self.watched |= set(to)
        return to

    def _components(
        self, asks: list[dict[int, float]], answers: list[dict[int, float]], count: float
    ) -> dict[tuple[Key, Key], NDArray[np.float64]]:
        """Products of rows, added up for each pair of what they depend on. Where these are more than there are
        conditions, those that do not depend on one side go with others that agree with them in the rest."""
        rows: dict[tuple[Key, Key], tuple[list[Any], list[Any]]] = {}
        for ask, answer in zip(asks, answers, strict=True):
            self.exact(ask)
            self.exact(answer)
            if ask and answer:
                first, second = (self._one(self.parts(form)) for form in (answer, ask))
                left, right = rows.setdefault((first[0], second[0]), ([], []))
                left.append(first[1].reshape(-1))
                right.append(second[1].reshape(-1))
        found = {}
        for pair, (left, right) in rows.items():
            first, second = np.array(left), np.array(right)
            if first.shape[1] * second.shape[1] > MOST_WORK:
                raise NotProved("a head has too many cases")
            # Products of bits with the temperature: sums stay far below 2^53.
            found[pair] = first.T @ second
        while len(found) > count:
            lone, whole = next(
                (
                    (lone, whole)
                    for lone in sorted(found, key=lambda own: len(own[0] + own[1]))
                    for whole in found
                    if lone != whole and lone[0] in (whole[0], ()) and lone[1] in (whole[1], ())
                ),
                ((), ()),
            )
            require(whole, "a head has more conditions than it scores")
            found[whole] = found[whole] + found.pop(lone)  # type: ignore[index]
        return found

    def _shape(self, nodes: Key) -> list[int]:
        return [len(self.chosen.get(node, self.values[node])) for node in nodes]

    def _one(self, parts: Parts) -> tuple[Key, NDArray[np.float64]]:
        """A form that depends on one group of nodes, and a constant."""
        keys = [key for key in parts if key]
        require(len(keys) <= 1, "a row of a head depends on several sequences")
        constant = parts.get((), np.zeros(()))
        return (keys[0], parts[keys[0]] + constant) if keys else ((), constant)

    def _selects(
        self, selector: int, tables: dict[tuple[Key, Key], NDArray[np.float64]], count: int
    ) -> None:
        """A selector, compared with the scores for all values: condition by condition where each is about the
        sequences of one table, else all together."""
        if count == len(tables) and self._condition_by_condition(selector, tables):
            return
        sides: list[Key] = []
        for side in (0, 1):
            nodes: Key = tuple(dict.fromkeys(node for pair in tables for node in pair[side]))
            for leaf in self._leaves(selector):
                more = self._bases(self.program.nodes[leaf].reads[side], nodes)
                nodes = tuple(dict.fromkeys((*nodes, *more)))
            sides.append(nodes)
        keys, queries = sides
        if np.prod(self._shape((*keys, *queries)), dtype=float) > MOST_WORK:
            raise NotProved("a selector has too many cases")
        found = np.full(self._shape((*keys, *queries)), count == len(tables))
        for (first, second), own in tables.items():
            table = own.reshape(self._shape(first) + self._shape(second)) > 0
            axes = [list(keys).index(node) for node in first]
            axes += [len(keys) + list(queries).index(node) for node in second]
            shape = [1] * found.ndim
            for axis, size in zip(axes, table.shape, strict=True):
                shape[axis] = size
            order = sorted(range(len(axes)), key=lambda place: axes[place])
            found = found & np.transpose(table, order).reshape(shape)
        require(np.array_equal(found, self._holds(selector, keys, queries)), "a head selects something else")

    def _condition_by_condition(
        self, selector: int, tables: dict[tuple[Key, Key], NDArray[np.float64]]
    ) -> bool:
        """Whether every condition is about the sequences of one table, and the tables are what they say."""
        wanted: dict[tuple[Key, Key], list[tuple[int, bool]]] = {pair: [] for pair in tables}
        for part, negated in self._conjuncts(selector, False):
            pair = next((own for own in wanted if self._depends(part, *own)), None)
            if pair is None:
                return False
            wanted[pair].append((part, negated))
        for (keys, queries), parts in wanted.items():
            shape = self._shape((*keys, *queries))
            if np.prod(shape, dtype=float) > MOST_WORK:
                raise NotProved("a selector has too many cases")
            holds = np.ones(shape, bool)
            for part, negated in parts:
                holds &= self._holds(part, keys, queries) ^ negated
            if not np.array_equal(tables[keys, queries].reshape(shape) > 0, holds):
                return False
        return True

    def _conjuncts(self, selector: int, negated: bool) -> Iterator[tuple[int, bool]]:
        node = self.program.nodes[selector]
        if node.kind == "combine" and node.what == "not":
            yield from self._conjuncts(node.reads[0], not negated)
        elif node.kind == "combine" and node.what == ("or" if negated else "and"):
            yield from self._conjuncts(node.reads[0], negated)
            yield from self._conjuncts(node.reads[1], negated)
        else:
            yield selector, negated

    def _leaves(self, selector: int) -> Iterator[int]:
        node = self.program.nodes[selector]
        if node.kind != "combine":
            yield selector
        else:
            for read in node.reads:
                yield from self._leaves(read)

    def _depends(self, part: int, keys: Key, queries: Key) -> bool:
        """Whether a condition is about these sequences and no others. A side that is always the same may stand
        for any sequence."""
        for leaf in self._leaves(part):
            for node, side in zip(self.program.nodes[leaf].reads, (keys, queries), strict=True):
                if self.places_of(node, side) is None and not self._indifferent(leaf, side is keys):
                    return False
        return True

    def _indifferent(self, leaf: int, keys: bool) -> bool:
        """Whether what a Select selects does not depend on its keys, or its queries."""
        table = self.program.selected(leaf)
        table = table if keys else table.T
        return bool((table == table[:1]).all())

    def _holds(self, selector: int, keys: Key, queries: Key) -> NDArray[np.bool_]:
        """Whether a selector holds, over the values of sequences on both sides."""
        node = self.program.nodes[selector]
        if node.kind == "combine":
            inner = [self._holds(read, keys, queries) for read in node.reads]
            return ~inner[0] if node.what == "not" else (
                inner[0] & inner[1] if node.what == "and" else inner[0] | inner[1])  # fmt: skip
        table, places = self.program.selected(selector), []
        for read, side, axis in zip(node.reads, (keys, queries), (True, False), strict=True):
            found = self.places_of(read, side)
            if found is None:
                require(self._indifferent(selector, axis), "a head leaves out a sequence")
                found = np.zeros([1] * len(side), np.int64)
            places.append(found)
        first, second = places
        first = first.reshape(first.shape + (1,) * len(queries))
        second = second.reshape((1,) * len(keys) + second.shape)
        shape = [len(self.values[own]) for own in (*keys, *queries)]
        return np.broadcast_to(table[first, second], shape)

    def _single(self, selector: int) -> bool:
        """Whether no query selects two positions, since one condition allows for one index only."""
        index = next((n for n, node in enumerate(self.program.nodes) if node.kind == "indices"), None)
        for part, negated in self._conjuncts(selector, False):
            reads = [self.program.nodes[leaf].reads for leaf in self._leaves(part)]
            if index is None or any(self.places_of(key, (index,)) is None for key, _ in reads):
                continue
            queries = tuple(dict.fromkeys(query for _, query in reads))
            if (self._holds(part, (index,), queries) ^ negated).sum(axis=0).max(initial=0) <= 1:
                return True
        return False

    def _brings(self, number: int, rows: list[dict[int, float]]) -> None:
        """The values of a head: the first position for a count, numbers for a mean, bits for a move."""
        node = self.program.nodes[number]
        if node.kind == "width":
            require(rows == [{START: 1.0}], "a head counts something else")
            return
        sequence = node.reads[1]
        values = self.values[number]
        if node.kind == "mean":
            require(len(rows) == 1, "a mean is not one number")
            begin = rows[0].get(START, 0.0)
            form = {place: weight for place, weight in rows[0].items() if place != START}
            self.exact(form)
            nodes, found = self.joint(self.parts(form))
            least, none, top = self._scale(number)
            require((found >= 0).all() and begin >= 0, "a mean is of negative numbers")
            default = none if node.what is None else Fraction(node.what)
            off = abs(Fraction(begin) - (default - least))
            _, found, places = self._with(sequence, nodes, found)
            found, places = found.reshape(-1), places.reshape(-1)
            cases, first = np.unique(places, return_index=True)
            same = np.array_equal(found[first][np.searchsorted(cases, places)], found)
            require(same, "a number depends on something else")
            for place, own in zip(cases.tolist(), found[first].tolist(), strict=True):
                off = max(off, abs(Fraction(own) - (Fraction(self.values[sequence][place]) - least)))
            require(off <= top * UNIT, "a mean is of other numbers, or has another default")
            self.off[number] = 2 * off
            return
        require(len(rows) == len(values) - 1, "a head moves other bits")
        target = np.array([self.program.places[number][own] for own in self.values[sequence]])
        for row, form in enumerate(rows, 1):
            require(START not in form, "the first position has a value")
            self.exact(form)
            nodes, found = self.joint(self.parts(form))
            _, found, places = self._with(sequence, nodes, found)
            require(np.array_equal(found, target[places] >= row), "a head moves something else")

    def _with(
        self, node: int, nodes: Key, table: NDArray[np.float64]
    ) -> tuple[Key, NDArray[np.float64], NDArray[np.int64]]:
        """A table over the values of nodes, and the places of another node's value over the same. What that
        depends on besides may be anything: then both are over the values of that as well."""
        bases = self._bases(node, nodes)
        more = [own for own in bases if own not in nodes]
        if len(more) == len(bases) and np.prod(self._shape(tuple(more)), dtype=float) * table.size > MOST_WORK:
            more = [node]  # it has nothing to do with the table, and may be any of its values
        shape = (*table.shape, *self._shape(tuple(more)))
        if np.prod(shape, dtype=float) > MOST_WORK:
            raise NotProved("there are too many cases")
        table = np.broadcast_to(table.reshape(table.shape + (1,) * len(more)), shape)
        nodes = (*nodes, *more)
        places = self.places_of(node, nodes)
        assert places is not None
        return nodes, table, np.broadcast_to(places, shape)

    def _bases(self, node: int, nodes: Key) -> list[int]:
        """What a node is a function of: some of these, and others that are no functions."""
        found: dict[int, None] = {}
        waiting, seen = [node], {node}
        while waiting:
            own = waiting.pop()
            if own in nodes or self.program.nodes[own].kind not in ("apply", "table"):
                if self.program.nodes[own].kind != "full":
                    found[own] = None
                continue
            more = [read for read in self.program.nodes[own].reads if read not in seen]
            seen.update(more)
            waiting += more
        return list(found)

    def _scale(self, number: int) -> tuple[Fraction, Fraction, Fraction]:
        """Of a mean: the least value, what stands for None, and a power of two that it is not above."""
        exact = [Fraction(own) for own in self.values[number] if own is not None]
        none = max(exact) + 1
        most = none if None in self.values[number] else max(exact)
        return min(exact), none, _power(2 * max(most - min(exact), Fraction(1, 2)))

    # Units

    def _units(self, layer: int) -> None:
        """Every coordinate that a layer of units sets."""
        units, sums, places = self.units[layer], self.sums[layer], self.adds_to[layer]
        require(sums.width == len(units) and len(set(places)) == len(places), "units and sums do not fit")
        made: list[tuple[int, Parts | None]] = []
        rows = [_row(units, row)[0] for row in range(len(units))]
        for own in rows:
            require(own.keys() - {START} <= self.known, "a unit reads what is not set")
        for row, place in enumerate(places):
            terms = _row(sums, row)[0]
            if place == MIXED:
                self._mixed(rows, terms)
                continue
            require(place not in self.known, "a unit adds to what is set")
            if self.meanings[place][0] == "number":
                made.append((place, self._number(place, rows, terms)))
                continue
            require(self.meanings[place][0] == "bit", "a unit sets what is no bit")
            step = self._step(rows, terms)
            if step is not None:
                self._is_step(place, step)
            else:
                self._is_function(place, rows, terms)
            made.append((place, None))
        for place, parts in made:
            self.known.add(place)
            self.bits += parts is None
            if parts is not None:
                self.numbers[place] = parts

    def _step(self, rows: list[dict[int, float]], terms: dict[int, float]) -> Step | None:
        """Two units with the same terms but the constant, one added and one subtracted, 1 apart."""
        if sorted(terms.values()) != [-1.0, 1.0]:
            return None
        up, down = sorted(terms, key=lambda unit: -terms[unit])
        first, second = rows[up], rows[down]
        same = {place: weight for place, weight in first.items() if place not in (WORD, START)}
        if same != {p: w for p, w in second.items() if p not in (WORD, START)} or not same:
            return None
        if first.get(START, 0.0) != second.get(START, 0.0):
            return None
        low, high = (Fraction(-own.get(WORD, 0.0)) for own in (first, second))
        return Step(same, low, high, first.get(START, 0.0)) if high - low == 1 else None

    def _is_step(self, place: int, step: Step) -> None:
        """Where the coordinate is to be 0, what is read is at most where the step begins; where it is to be 1, at
        least where it ends; and nothing rounds."""
        (read, gain), *more = step.form.items()
        group, number = self.meanings[place][1:]
        kind, node = self.meanings[read][:2]
        start = step.start + sum(weight * self.at_start.get(own, 0.0) for own, weight in step.form.items())
        require(start <= 0, "a unit is on at the first position")
        if kind != "raw":
            self.exact({**step.form, WORD: float(max(abs(step.low), abs(step.high)))})
            found, labels = self._labelled(group, *self.joint(self.parts(step.form)))
            below = found[labels < number].max(initial=-np.inf)
            above = found[labels >= number].min(initial=np.inf)
            require(below <= step.low and above >= step.high, "a step is elsewhere")
            return
        require(not more, "a raw coordinate is added to others")
        low, high = step.low / Fraction(gain), step.high / Fraction(gain)
        require(gain > 0 and 2.0 ** round(np.log2(gain)) == gain, "a step has another slope than a power of two")
        row = self.meanings[read][2]
        own = self.program.nodes[node].kind
        require(self.groups[group][0] == (node,), "a step is of another sequence")
        labels = self._label(group)
        if own == "move":
            values = np.arange(len(self.values[node])) > row
            require(np.array_equal(labels >= number, values), "a bit is another one than was copied")
            centres, top, relative, absolute = [Fraction(int(bit)) for bit in values], Fraction(2), self._many, Fraction(0)
        elif own == "width":
            centres = [Fraction(1, 1 + count) for count in self.values[node]]
            top, relative, absolute = Fraction(1), 4 * UNIT, Fraction(0)
        else:
            least, none, top = self._scale(node)
            centres = [(none if v is None else Fraction(v)) - least for v in self.values[node]]
            relative, absolute = self._many, self.off[node]
        grid = top * UNIT
        require(low >= 0 and high <= top and low % grid == high % grid == 0, "a step is not on the grid")
        below = [c * (1 + relative) + absolute for c, label in zip(centres, labels, strict=True) if label < number]
        above = [c * (1 - relative) - absolute for c, label in zip(centres, labels, strict=True) if label >= number]
        require(max(below, default=low) <= low and min(above, default=high) >= high, "a step is elsewhere")
        if own != "move":
            self.widths.append(high - low)

    @property
    def _many(self) -> Fraction:
        """How far a sum of as many terms as there can be tokens may be off, relatively."""
        return (self.program.length + 8) * UNIT

    def _labelled(
        self, group: int, nodes: Key, table: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """A table over the values of nodes, and the labels of a group over the same."""
        own, labels = self.groups[group]
        found = np.zeros(table.shape, np.int64)
        for node, label in zip(own, labels, strict=True):
            nodes, table, places = self._with(node, nodes, table)
            found = np.broadcast_to(found.reshape(found.shape + (1,) * (table.ndim - found.ndim)), table.shape)
            found = found * (1 + int(label.max())) + label[places]
        return table, found

    def _is_function(self, place: int, rows: list[dict[int, float]], terms: dict[int, float]) -> None:
        """Units on bits: each is evaluated for all values, and their sum is the bit."""
        group, number = self.meanings[place][1:]
        require(all(weight == int(weight) for weight in terms.values()), "a sum of units is rounded")
        require(sum(abs(weight) for weight in terms.values()) < 1 << 20, "a sum of units is rounded")
        forms = {unit: rows[unit] for unit in terms}
        for form in forms.values():
            require(START not in form, "a unit is on at the first position")
            self.exact(form)
        self.chosen = self._representatives(group, [self.parts(form) for form in forms.values()])
        total: Parts = {}
        for unit, weight in terms.items():
            parts = self.parts(forms[unit])
            several = len([key for key in parts if key]) > 1
            key, found = self.joint(parts) if several else self._one(parts)
            total[key] = total.get(key, 0.0) + weight * np.maximum(found, 0.0)
        found, labels = self._labelled(group, *self.joint(total))
        require(np.array_equal(found, labels >= number), "units set something else than the bit")
        self.chosen = {}

    def _representatives(self, group: int, forms: list[Parts]) -> dict[int, NDArray[np.int64]]:
        """Where there are many cases: of the values of each node one for all that neither the units nor the
        functions between the node and the bit tell apart."""
        nodes: Key = tuple(dict.fromkeys(node for parts in forms for key in parts for node in key))
        bases = {own: None for node in self.groups[group][0] for own in self._bases(node, nodes)}
        every = tuple(dict.fromkeys((*nodes, *bases)))
        if np.prod(self._shape(every), dtype=float) <= FEW_CASES:
            return {}
        found: dict[int, NDArray[np.int64]] = {}
        between = {node: self._between(group, node, every) for node in every}
        for node in every:
            tables = [parts[key] for parts in forms for key in parts if node in key]
            if any(table.ndim != 1 for table in tables):
                continue
            functions = [self.places_of(own, (node,)) for own in between[node]]
            columns = [*tables, *(own.astype(np.float64) for own in functions if own is not None)]
            if columns and node not in between[node]:
                found[node] = np.unique(np.stack(columns), axis=1, return_index=True)[1]
        return found

    def _between(self, group: int, node: int, nodes: Key) -> list[int]:
        """The last functions of this node alone on the way to what a group is about."""
        found, waiting = [], list(self.groups[group][0])
        while waiting:
            own = waiting.pop()
            bases = self._bases(own, nodes)
            if bases == [node]:
                found.append(own)
            elif node in bases:
                waiting += self.program.nodes[own].reads
        return list(dict.fromkeys(found))

    def _number(self, own: int, rows: list[dict[int, float]], terms: dict[int, float]) -> Parts:
        """Units that hand on one bit each, with weights."""
        form: dict[int, float] = {}
        for unit, weight in terms.items():
            require(len(rows[unit]) == 1, "a number is of something else than bits")
            ((place, one),) = rows[unit].items()
            kind = self.meanings[place][0]
            require(one == 1.0 and (place == WORD or kind == "bit") and place not in form, "a number is of no bits")
            form[place] = weight
        self.quanta[own] = self.exact(form)
        return self.parts(form)

    def _mixed(self, rows: list[dict[int, float]], terms: dict[int, float]) -> None:
        """Two steps for each bit that was copied: up before 1/n, down after 1 - 1/n."""
        by_place: dict[int, list[int]] = {}
        for unit in terms:
            read = [place for place in rows[unit] if place not in (WORD, START)]
            require(len(read) == 1 and self.meanings[read[0]][0] == "raw", "what is watched is not copied")
            by_place.setdefault(read[0], []).append(unit)
        part = Fraction(1, max(2, self.program.length))
        for place, units in by_place.items():
            require(self.program.nodes[self.meanings[place][1]].kind == "move", "what is watched is not moved")
            ordered = sorted(units, key=lambda unit: -rows[unit].get(WORD, 0.0) / rows[unit][place])
            require(len(units) == 4, "what is watched is not watched by two steps")
            signs = [terms[unit] for unit in ordered]
            require(signs == [1.0, -1.0, -1.0, 1.0], "what is watched has other signs")
            edges = []
            for unit in ordered:
                gain = rows[unit][place]
                require(gain > 0 and 2.0 ** round(np.log2(gain)) == gain, "a step has another slope")
                require(rows[unit].get(START, 0.0) <= 0, "a unit is on at the first position")
                edges.append(Fraction(-rows[unit].get(WORD, 0.0)) / Fraction(gain))
                require(edges[-1] % (2 * UNIT) == 0, "a step is not on the grid")
            for first, second in ((0, 1), (2, 3)):
                wide = (edges[second] - edges[first]) * Fraction(rows[ordered[first]][place])
                same = rows[ordered[first]][place] == rows[ordered[second]][place]
                require(wide == 1 and same, "a step does not rise to 1")
            low, high = 1 - self._many, 1 + self._many
            require(0 <= edges[0] and edges[1] <= part * low, "a mixture of values goes unnoticed")
            require(edges[2] >= (1 - part) * high and edges[3] <= low, "a mixture of values goes unnoticed")
            self.watched.discard(place)
            self.says_so = True

    def _watches(self) -> None:
        require(not self.watched, "values that differ may be moved together, and nothing says so")

    # The output

    def _output(self) -> None:
        output = self.program.output
        rows = [_row(self.unembedding, row)[0] for row in range(len(self.unembedding))]
        if self.program.nodes[output].kind == "mean":
            places = [p for p, meaning in enumerate(self.meanings) if meaning == ("raw", output, 0)]
            require(len(places) == 1 and rows == [{places[0]: 1.0}], "another number is read")
            least, none, _ = self._scale(output)
            centres = sorted((none if v is None else Fraction(v)) - least for v in self.values[output])
            for low, high in zip(centres, centres[1:], strict=False):
                room = (low + high) * self._many + 2 * self.off[output]
                require(high - low > room, "numbers that are read cannot be told apart")
            return
        require(len(rows) == len(self.values[output]), "there are other outputs")
        for number, form in enumerate(rows):
            require(START not in form, "the first position is read")
            self.exact(form)
            nodes, found = self.joint(self.parts(form))
            _, found, places = self._with(output, nodes, found)
            require(np.array_equal(found, places == number), "the output is another one")


def _power(number: Fraction) -> Fraction:
    """The least power of two that is not below a number."""
    power = Fraction(1)
    while power < number:
        power *= 2
    while power / 2 >= number:
        power /= 2
    return power


def _row(own: Map, row: int) -> Row:
    columns, values, bias = own.row(row)
    require(len(set(columns)) == len(columns), "a row names a column twice")
    return dict(zip(columns, values, strict=True)), bias


def _split(flat: NDArray[np.int32], maps: Sequence[Map]) -> list[list[int]]:
    found, first = [], 0
    for own in maps:
        found.append(flat[first : first + len(own)].tolist())
        first += len(own)
    return found

