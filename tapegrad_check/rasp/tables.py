"""What the coordinates of a RASP net are, as tables over the values of sequences.

A bit is a label of a value, or of a few values together, that is at least some number. Forms are sums of
bits, and so functions of values; where they depend on several sequences, these may have any values.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import SINGLE, exact
from tapegrad_check.folder import NotProved, require
from tapegrad_check.graph import Graph
from tapegrad_check.sources.rasp import ONE, Rasp
from tapegrad_check.texts import text_of

START, WORD, MIXED = 0, 1, 2
"""Coordinates: 1 at the first position alone; 1 at tokens; where values differ that are moved together."""
UNIT = Fraction(1, 1 << SINGLE.digits)
MOST_WORK = 1 << 27
"""Cases of one table."""

Key = tuple[int, ...]
"""Nodes whose values something depends on."""
Parts = dict[Key, NDArray[np.float64]]
"""A sum of functions of values, each as a table with an axis for each node."""


class Tables:
    """Arrays with the meanings of coordinates, and what is proved of them so far."""

    def __init__(self, config: dict[str, Any], graph: Graph, program: Rasp) -> None:
        program.work.allow(sum(own.nbytes for node in graph.nodes for own in node.arrays.values()))
        text = text_of(graph, program.causal)
        require(config.keys() == {"machine", "heads", "groups", "meanings"}, "the net has other entries")
        require(not text.record and not text.words, "the net reads on, and no program of RASP does")
        self.program, self.values = program, program.values
        self.meanings = [tuple(own) for own in config["meanings"]]
        self.groups = [(tuple(nodes), [np.array(own, np.int64) for own in labels])
                       for nodes, labels in config["groups"]]  # fmt: skip
        self.heads: list[int] = config["heads"]
        self.coordinates = text.coordinates
        self._in_bounds()
        self.units, self.sums = [own.units for own in text.layers], [own.sums for own in text.layers]
        self.sides, self.heads_to = text.sides, [head.to for head in text.heads]
        self.adds_to, self.placed = [own.to for own in text.layers], text.placed
        self.embedding, self.unembedding = text.embedding, text.unembedding
        self.counts = [len(layer.heads) for layer in text.layers]
        require(len(self.counts) > 0 and sum(self.counts) == len(self.heads), "layers have other heads")
        for own in (*self.units, *self.sums, *(m for side in self.sides for m in side), self.embedding,
                    self.unembedding):  # fmt: skip
            require(not any(own.bias), "a map has a constant")
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

    def _in_bounds(self) -> None:
        nodes = len(self.program.nodes)
        for own, labels in self.groups:
            require(len(own) == len(labels) > 0 and len(set(own)) == len(own), "a group is of no nodes")
            for node, label in zip(own, labels, strict=True):
                require(type(node) is int and 0 <= node < nodes, "a group is of no node")
                fits = (
                    label.shape == (len(self.values[node]),) and ((label >= 0) & (label < len(label))).all()
                )
                require(fits and len(label), "a group has other labels")
        for place, meaning in enumerate(self.meanings):
            require(len(meaning) == 3 and all(type(own) is int for own in meaning[1:]), "a meaning is none")
            kind, first, second = meaning
            require((kind == "given") == (place <= MIXED), "a given coordinate is elsewhere")
            most = {"given": 1, "bit": len(self.groups), "raw": nodes, "number": nodes}.get(kind, 0)
            require(0 <= first < most and second >= 0, "a meaning is out of range")
        require(len(self.meanings) > MIXED, "coordinates are missing")
        require(len(self.coordinates) == len(self.meanings), "not every coordinate has a meaning")
        for node in self.heads:
            require(type(node) is int and 0 <= node < nodes, "a head is of no node")
            require(self.program.nodes[node].kind in ("width", "mean", "move"), "a head is of another node")

    def indicator(self, place: int) -> tuple[Key, NDArray[np.float64]]:
        """A bit as a table over the values of its nodes."""
        _, group, number = self.meanings[place]
        nodes = self.groups[group][0]
        if place not in self._indicators:
            self._indicators[place] = (self._label(group) >= number).astype(np.float64)
        return nodes, self._indicators[place]

    def _label(self, group: int) -> NDArray[np.int64]:
        found, labels = np.zeros((), np.int64), self.groups[group][1]
        require(prod(map(len, labels)) <= MOST_WORK, "a group has too many cases")
        self._spend(2 * prod(map(len, labels)))
        for own in labels:
            found = found[..., None] * (1 + own.max()) + own
        return found

    def _spend(self, amount: float) -> None:
        self.program.work.spend(amount)

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
            self._spend(3 * label.size)
            for axis, node in enumerate(key):
                if node in self.chosen:
                    table = np.take(table, self.chosen[node], axis)
            found[key] = found.get(key, 0.0) + table
        return found

    def exact(self, form: dict[int, float]) -> tuple[Fraction, Fraction]:
        """A sum with these weights is exact in whatever order it is taken: all terms are multiples of one
        power of two, and together not too large. Gives that power, and how large they are."""
        finest, total = Fraction(1 << 60), Fraction(0)
        for place, weight in form.items():
            own = Fraction(weight)
            quantum, most = self.quanta.get(place, (Fraction(1), Fraction(1)))
            bit = Fraction(own.numerator & -own.numerator, own.denominator)
            require(place not in self.quanta or abs(own) == bit, "a number is not times a power of two")
            finest, total = min(finest, bit * quantum), total + abs(own) * most
        require(exact(total, finest), "a sum is rounded")
        return finest, total

    def places_of(self, node: int, keys: Sequence[int]) -> NDArray[np.int64] | None:
        """The place of a node's value as a table over the values of other nodes; None if it is no function of
        them."""
        shape = self._shape(tuple(keys))
        if prod(shape) > MOST_WORK:
            raise NotProved("there are too many cases")
        memo: dict[int, NDArray[np.int64] | None] = {}
        waiting = [node]
        while waiting:
            own = waiting[-1]
            if own in memo:
                waiting.pop()
                continue
            self._spend(ONE)
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
                    self._spend(4 * prod(shape))
                    memo[own] = self._functions[own][tuple(inner)]  # type: ignore[index]
        return memo[node]

    def joint(self, parts: Parts) -> tuple[Key, NDArray[np.float64]]:
        """A sum of parts as one table."""
        nodes: Key = tuple(dict.fromkeys(node for key in parts for node in key))
        shape = self._shape(nodes)
        if prod(shape) > MOST_WORK:
            raise NotProved("there are too many cases")
        self._spend((1 + len(parts)) * prod(shape))
        total = np.zeros(shape)
        for key, own in parts.items():
            total += self._spread(own, key, nodes)
        return nodes, total

    @staticmethod
    def _spread(table: NDArray[Any], key: Key, nodes: Key) -> NDArray[Any]:
        """A table over some nodes as one over more of them."""
        order = sorted(range(len(key)), key=lambda place: nodes.index(key[place]))
        shape = [table.shape[key.index(node)] if node in key else 1 for node in nodes]
        return (
            np.transpose(table, order).reshape(shape) if key else np.asarray(table).reshape([1] * len(nodes))
        )

    def _shape(self, nodes: Key) -> list[int]:
        return [len(self.chosen.get(node, self.values[node])) for node in nodes]

    def _one(self, parts: Parts) -> tuple[Key, NDArray[np.float64]]:
        """A form that depends on one group of nodes, and a constant."""
        keys = [key for key in parts if key]
        require(len(keys) <= 1, "a row of a head depends on several sequences")
        constant = parts.get((), np.zeros(()))
        return (keys[0], parts[keys[0]] + constant) if keys else ((), constant)

    def _with(
        self, node: int, nodes: Key, table: NDArray[np.float64]
    ) -> tuple[Key, NDArray[np.float64], NDArray[np.int64]]:
        """A table over the values of nodes, and the places of another node's value over the same. What that
        depends on besides may be anything: then both are over the values of that as well."""
        bases = self._bases(node, nodes)
        more = [own for own in bases if own not in nodes]
        if len(more) == len(bases) and prod(self._shape(tuple(more))) * table.size > MOST_WORK:
            more = [node]  # it has nothing to do with the table, and may be any of its values
        shape = (*table.shape, *self._shape(tuple(more)))
        if prod(shape) > MOST_WORK:
            raise NotProved("there are too many cases")
        self._spend(2 * prod(shape))
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
            self._spend(ONE)
            if own in nodes or self.program.nodes[own].kind not in ("apply", "table"):
                if self.program.nodes[own].kind != "full":
                    found[own] = None
                continue
            more = [read for read in self.program.nodes[own].reads if read not in seen]
            seen.update(more)
            waiting += more
        return list(found)

    def _labelled(
        self, group: int, nodes: Key, table: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """A table over the values of nodes, and the labels of a group over the same."""
        own, labels = self.groups[group]
        found = np.zeros(table.shape, np.int64)
        for node, label in zip(own, labels, strict=True):
            nodes, table, places = self._with(node, nodes, table)
            found = np.broadcast_to(
                found.reshape(found.shape + (1,) * (table.ndim - found.ndim)), table.shape
            )
            found = found * (1 + int(label.max())) + label[places]
        return table, found

    def _scale(self, number: int) -> tuple[Fraction, Fraction, Fraction]:
        """Of a mean: the least value, what stands for None, and a power of two that it is not above."""
        exact = [Fraction(own) for own in self.values[number] if own is not None]
        none = max(exact) + 1
        most = none if None in self.values[number] else max(exact)
        return min(exact), none, _power(2 * max(most - min(exact), Fraction(1, 2)))

    @property
    def _many(self) -> Fraction:
        """How far a sum of as many terms as there can be tokens may be off, relatively."""
        return (self.program.length + 8) * UNIT


def _power(number: Fraction) -> Fraction:
    """The least power of two that is not below a number."""
    power = Fraction(1)
    while power < number:
        power *= 2
    while power / 2 >= number:
        power /= 2
    return power
