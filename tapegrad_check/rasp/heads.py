"""Heads of a RASP net: they select what the program selects, for all values of keys and queries."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import exact
from tapegrad_check.folder import NotProved, require
from tapegrad_check.maps import row_of
from tapegrad_check.products import times
from tapegrad_check.rasp.tables import MOST_WORK, START, UNIT, WORD, Key, Tables
from tapegrad_check.sources.rasp import ONE

BETA = 256.0
"""What a condition scores. exp(-128) is below the smallest float of single precision, which is above
exp(-104)."""

FLOPS = 64
"""Products that a library works out in the time that a number of a table takes."""
FEW_TABLES = 8
"""Up to so many, ways to draw them together are looked for."""
Scores = dict[tuple[Key, Key], NDArray[np.float64]]
"""What is scored for all values of keys and of queries, by the sequences that it depends on."""


class Heads(Tables):
    """What heads select and bring."""

    def _head(self, number: int) -> list[int]:
        """A head selects what its node's selector selects, and brings what it should."""
        query, key, value = (side[number] for side in self.sides)
        node = self.program.nodes[self.heads[number]]
        require(len(query) == len(key) >= 1, "a head asks more than it answers")
        asks, answers = ([row_of(own, row)[0] for row in range(len(own))] for own in (query, key))
        require(answers[-1] == {START: 1.0}, "the first position does not answer")
        require(asks[-1].keys() == {START, WORD}, "the first position is not asked for")
        require(
            not any(START in form for form in (*asks[:-1], *answers[:-1])), "the first position is compared"
        )
        height, begin = asks[-1][START], asks[-1][WORD]
        count = height / BETA
        tables = self._components(asks, answers)
        require(count == int(count) >= 1, "the first position scores something else")
        require(begin == (height if node.kind == "width" else height - BETA / 2), "the first position is off")
        require(height <= 1 << 20, "scores are too large")
        for own in tables.values():
            fits = (own >= 0).all() and own.max() <= height and not (own % BETA).any()
            require(fits, "a score is neither all nor nothing")
        self._selects(node.reads[0], tables, int(count))
        rows = [row_of(value, row)[0] for row in range(len(value))]
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

    def _components(self, asks: list[dict[int, float]], answers: list[dict[int, float]]) -> Scores:
        """Products of rows, added up for each pair of what they depend on."""
        rows: dict[tuple[Key, Key], tuple[list[Any], list[Any]]] = {}
        finest, most = Fraction(1 << 60), Fraction(0)
        for ask, answer in zip(asks, answers, strict=True):
            (step, size), (other, more) = self.exact(ask), self.exact(answer)
            finest, most = min(finest, step * other), most + size * more
            if ask and answer and START not in answer:
                first, second = (self._one(self.parts(form)) for form in (answer, ask))
                left, right = rows.setdefault((first[0], second[0]), ([], []))
                left.append(first[1].reshape(-1))
                right.append(second[1].reshape(-1))
        require(exact(most, finest), "scores are rounded")
        found = {}
        for pair, (left, right) in rows.items():
            first, second = np.array(left), np.array(right)
            if first.shape[1] * second.shape[1] > MOST_WORK:
                raise NotProved("a head has too many cases")
            self._spend((1 + len(left) / FLOPS) * first.shape[1] * second.shape[1])
            found[pair] = times(first.T, second)
        return found

    def _selects(self, selector: int, tables: Scores, count: int) -> None:
        """A selector, compared with the scores for all values: condition by condition where each is about the
        sequences of one table; else all together, and then what is selected scores as much as all conditions,
        and anything else less by one of them."""
        drawn = _drawn_together(tables, count, self._spend)
        if drawn is not None and self._condition_by_condition(selector, drawn):
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
        self._spend((1 + len(tables)) * prod(self._shape((*keys, *queries))))
        total = np.zeros(self._shape((*keys, *queries)), np.int32)
        for (first, second), own in tables.items():
            table = (own / BETA).astype(np.int32).reshape(self._shape(first) + self._shape(second))
            axes = [list(keys).index(node) for node in first]
            axes += [len(keys) + list(queries).index(node) for node in second]
            shape = [1] * total.ndim
            for axis, size in zip(axes, table.shape, strict=True):
                shape[axis] = size
            order = sorted(range(len(axes)), key=lambda place: axes[place])
            total += np.transpose(table, order).reshape(shape)
        require(total.max(initial=0) <= count, "a score is above that of the first position")
        holds = self._holds(selector, keys, queries)
        require(np.array_equal(total == count, holds), "a head selects something else")

    def _condition_by_condition(self, selector: int, tables: Scores) -> bool:
        """Whether every condition is about the sequences of one table, and the tables are what they say."""
        wanted: dict[tuple[Key, Key], list[tuple[int, bool]]] = {pair: [] for pair in tables}
        for part, negated in self._conjuncts(selector, False):
            pair = next((own for own in wanted if self._depends(part, *own)), None)
            if pair is None:
                return False
            wanted[pair].append((part, negated))
        for (keys, queries), parts in wanted.items():
            shape = self._shape((*keys, *queries))
            holds = np.ones(shape, bool)
            for part, negated in parts:
                holds &= self._holds(part, keys, queries) ^ negated
            if not np.array_equal(tables[keys, queries].reshape(shape) > 0, holds):
                return False
        return True

    def _conjuncts(self, selector: int, negated: bool) -> Iterator[tuple[int, bool]]:
        node = self.program.nodes[selector]
        self._spend(ONE)
        if node.kind == "combine" and node.what == "not":
            yield from self._conjuncts(node.reads[0], not negated)
        elif node.kind == "combine" and node.what == ("or" if negated else "and"):
            yield from self._conjuncts(node.reads[0], negated)
            yield from self._conjuncts(node.reads[1], negated)
        else:
            yield selector, negated

    def _leaves(self, selector: int) -> Iterator[int]:
        node = self.program.nodes[selector]
        self._spend(ONE)
        if node.kind != "combine":
            yield selector
        else:
            for read in node.reads:
                yield from self._leaves(read)

    def _depends(self, part: int, keys: Key, queries: Key) -> bool:
        """Whether a condition is about these sequences and no others. A side that is always the same may
        stand for any sequence."""
        for leaf in self._leaves(part):
            key, query = self.program.nodes[leaf].reads
            for node, side, of_keys in ((key, keys, True), (query, queries, False)):
                if self.places_of(node, side) is None and not self._indifferent(leaf, of_keys):
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
        self._spend(ONE + prod(self._shape((*keys, *queries))))
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


def _drawn_together(found: Scores, count: int, spend: Callable[[float], None]) -> Scores | None:
    """A table for each condition, if they can be told apart: those that do not depend on one side go with one
    that agrees with them in the rest, and with which no score is above that of a condition."""
    spend(ONE + sum(own.size for own in found.values()))
    if any(own.max(initial=0.0) > BETA for own in found.values()) or not count <= len(found) <= FEW_TABLES:
        return None
    if len(found) == count:
        return found
    for lone in sorted(found, key=lambda own: len(own[0] + own[1])):
        for whole in found:
            if lone != whole and lone[0] in (whole[0], ()) and lone[1] in (whole[1], ()):
                rest = {pair: own for pair, own in found.items() if pair != lone}
                drawn = _drawn_together(rest | {whole: found[whole] + found[lone]}, count, spend)
                if drawn is not None:
                    return drawn
    return None
