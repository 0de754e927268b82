"""The node of layers: rows that read slots. Those of a layer that are alike are worked out together.

Most rows of a deep network pass a bit on, or mend it: they read at most two numbers, each of which depends on
at most one bit and one deviation. Such rows are of few *shapes*: their weights, bias and ReLU; the forms that
they read; and whether two bits, or two deviations, are the same, or in which order they stand. What a row of
a shape makes is worked out once, as a `Rule`. All others are worked out one by one.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import Format
from tapegrad_check.core.places import BIT, NEGATED, ONE, ZERO, Form, Numbers, Place
from tapegrad_check.graph import Node

FEWEST = 48
"""Rows of a layer for which it is worth looking for those that are alike."""
MOST_KINDS, MOST_SHAPES = 1 << 12, 1 << 30
"""So that the number of a shape has less than 64 bits."""
NOTHING = -1
"""Instead of a literal, where nothing is said of a row."""
NONE, FIRST, SECOND, OWN = range(4)
"""Where a row has its bit or its deviation from: what it reads first, or second; or it is a new one."""
BITS = ZERO, ONE, BIT, NEGATED
"""Forms of bits; the first two depend on none."""
AS_TABLES = {(0, 0): ZERO, (1, 0): ONE, (0, 1): ZERO, (3, 1): ONE, (2, 1): BIT, (1, 1): NEGATED}
"""Which of these has a truth table over so many literals."""


class Kind(NamedTuple):
    """A form over at most one bit and one deviation, and how large that is at most."""

    form: Form
    sizes: tuple[float, ...]


class Rule(NamedTuple):
    """What rows of a shape make."""

    kind: int
    leaf: int
    deviation: int
    off: float
    """How far what it makes is off from a bit, if it is one."""


class Layers:
    """All rows of a node, for what it reads."""

    def __init__(
        self,
        numbers: Numbers,
        node: Node,
        format: Format,
        given: Sequence[Place],
        said: NDArray[np.int64] | None,
    ) -> None:
        self.numbers, self.format = numbers, format
        self.starts, self.columns, self.weights, self.biases, self.rectified = (
            node.arrays[part] for part in ("starts", "columns", "values", "biases", "relu")
        )
        rows, self.slots = len(self.biases), node.setting("slots")
        self.said = np.full(rows, NOTHING) if said is None else said
        """The literal that each row is said to be. Nothing follows from that but where to look, and what to
        compare."""
        self.unequal: list[tuple[int, Place]] = []
        """Rows that are not seen to be the literals that they are said to be."""
        self.kinds: list[Kind] = []
        self.bit_of: list[int] = []
        """For each kind which of the `BITS` it is, or -1."""
        self._numbered: dict[Kind, int] = {}
        self._rules: dict[int, Rule | None] = {}
        # A slot that is never written to is 0, and so is one more, for what a row does not read.
        self.kind = np.full(self.slots + 1, self._number(ZERO, ()), np.int64)
        self.leaf, self.deviation = np.zeros((2, self.slots + 1), np.int64)
        self.places = np.full(self.slots + 1, None, object)
        """Places, of slots that are no kind, and of others if they are known."""
        for slot, place in enumerate(given):
            self._put(slot, place)
        shapes = self._shapes() if (np.diff(node.arrays["bounds"]) >= FEWEST).any() else None
        for first, last in pairwise(node.arrays["bounds"].tolist()):
            self._layer(first, last, node.arrays["to"][first:last].astype(np.int64), shapes)

    # Slots

    def place(self, slot: int) -> Place:
        """What a slot holds."""
        found = self.places[slot]
        if found is None:
            form = self.kinds[self.kind[slot]].form
            leaves = (int(self.leaf[slot]),) if len(form.values) > 1 else ()
            deviations = (int(self.deviation[slot]),) if form.factors else ()
            found = self.places[slot] = Place(form, leaves, deviations)
        return found

    def _put(self, slot: int, place: Place) -> None:
        self.places[slot], self.kind[slot] = place, -1
        if len(place.leaves) < 2 and len(place.deviations) < 2:
            self.kind[slot] = self._number(place.form, self.numbers.sizes_of(place))
            self.leaf[slot] = place.leaves[0] if place.leaves else 0
            self.deviation[slot] = place.deviations[0] if place.deviations else 0

    def _number(self, form: Form, sizes: tuple[float, ...]) -> int:
        """The number of a kind; -1 if there are too many."""
        kind = Kind(form, sizes)
        if kind not in self._numbered and len(self.kinds) < MOST_KINDS:
            self._numbered[kind] = len(self.kinds)
            self.kinds.append(kind)
            is_bit = not self.numbers.as_bit(form, sizes).odd
            alike = [own for own, bit in enumerate(BITS) if np.array_equal(bit.values, form.values)]
            self.bit_of.append(alike[0] if is_bit and alike else -1)
        return self._numbered.get(kind, -1)

    # Rows

    def _layer(self, first: int, last: int, to: NDArray[np.int64], shapes: NDArray[np.int64] | None) -> None:
        alone, alike = np.arange(first, last), None
        if shapes is not None and last - first >= FEWEST:
            alike = self._alike(first, last, shapes)
            alone = first + np.flatnonzero(~alike.known)
        made = [self._row(row) for row in alone.tolist()]
        if alike is not None:
            slots = to[alike.known]
            self.kind[slots], self.leaf[slots], self.deviation[slots] = (
                alike.kind,
                alike.leaf,
                alike.deviation,
            )
            self.places[slots] = None
        for row, place in zip(alone.tolist(), made, strict=True):
            self._put(to[row - first], place)
        self._compare(first, last, to)

    def _compare(self, first: int, last: int, to: NDArray[np.int64]) -> None:
        """Rows with what they are said to be."""
        said = self.said[first:last]
        bit = np.append(self.bit_of, -1)[self.kind[to]]
        literal = np.where(bit < 2, bit, self.leaf[to] ^ (bit == 3))
        for row in np.flatnonzero((said != NOTHING) & (literal != said)).tolist():
            self.unequal.append((first + row, self.place(int(to[row]))))

    def _row(self, row: int) -> Place:
        part = slice(self.starts[row], self.starts[row + 1])
        read = [self.place(column) for column in self.columns[part].tolist()]
        weights, bias = self.weights[part].tolist(), float(self.biases[row])
        sum = self.numbers.sum(weights, read, bias, self.format, bool(self.rectified[row]))
        said = int(self.said[row])
        return self.numbers.closed(sum, None if said == NOTHING else said)

    # Rows that are alike

    def _shapes(self) -> NDArray[np.int64] | None:
        """For each row a number for its weights, bias and ReLU, if it reads at most two slots; else -1."""
        weights, biases = np.unique(self.weights), np.unique(self.biases)
        if len(weights) ** 2 * len(biases) * 6 > MOST_SHAPES:
            return None
        counts, begin = np.diff(self.starts), self.starts[:-1]
        shape = counts * 2 + self.rectified
        for place in (0, 1):
            there = counts > place
            shape *= len(weights)
            shape[there] += np.searchsorted(weights, self.weights[begin[there] + place])
        shape = shape * len(biases) + np.searchsorted(biases, self.biases)
        return np.where(counts <= 2, shape, -1)

    class _Alike(NamedTuple):
        known: NDArray[np.bool_]
        """Whether there is a rule for a row."""
        kind: NDArray[np.int64]
        leaf: NDArray[np.int64]
        deviation: NDArray[np.int64]

    def _alike(self, first: int, last: int, shapes: NDArray[np.int64]) -> _Alike:
        starts, shape = self.starts[first : last + 1], shapes[first:last]
        counts = np.diff(starts)
        reads = np.full((2, last - first), self.slots)
        for place in (0, 1):
            there = counts > place
            reads[place, there] = self.columns[starts[:-1][there] + place]
        kind, leaf, deviation = self.kind[reads], self.leaf[reads], self.deviation[reads]
        known = (shape >= 0) & (kind >= 0).all(axis=0)
        order = 3 * np.sign(leaf[0] - leaf[1]) + np.sign(deviation[0] - deviation[1]) + 4
        full = ((shape * MOST_KINDS + kind[0]) * MOST_KINDS + kind[1]) * 9 + order
        keys, sample, which = np.unique(full[known], return_index=True, return_inverse=True)
        rows = np.flatnonzero(known)
        for key, row in zip(keys.tolist(), rows[sample].tolist(), strict=True):
            if key not in self._rules:
                self._rules[key] = self._rule(first + row, reads[: counts[row], row].tolist())
        rules = [self._rules[key] for key in keys.tolist()]
        ruled = np.array([rule is not None for rule in rules], bool)[which]
        known[rows[~ruled]] = False
        rows, which = rows[ruled], which[ruled]
        if not len(rows):
            return self._Alike(known, *np.zeros((3, 0), np.int64))
        none = Rule(0, NONE, NONE, 0.0)
        columns = zip(*(rule or none for rule in rules), strict=True)
        made_kind, from_leaf, from_deviation, off = (np.array(own)[which] for own in columns)
        new = np.flatnonzero(from_deviation == OWN)
        zeros = np.zeros(len(rows), np.int64)
        made_deviation = np.choose(from_deviation, [zeros, *deviation[:, rows], zeros])
        made_deviation[new] = len(self.numbers.sizes) + np.arange(len(new))
        self.numbers.sizes.frombytes(off[new].tobytes())
        return self._Alike(known, made_kind, np.choose(from_leaf, [zeros, *leaf[:, rows]]), made_deviation)

    def _rule(self, row: int, reads: list[int]) -> Rule | None:
        """What a row makes, if that is over one bit and one deviation at most."""
        read = [self.place(slot) for slot in reads]
        weights = self.weights[self.starts[row] : self.starts[row + 1]].tolist()
        numbers, rectified = self.numbers, bool(self.rectified[row])
        sum = numbers.sum(weights, read, float(self.biases[row]), self.format, rectified)
        form, leaves, deviations = sum
        if len(leaves) > 1 or len(deviations) > 1:
            return None
        sizes = numbers.sizes_of(sum)
        found = numbers.as_bit(form, sizes)
        from_leaf = from_deviation = NONE
        for at, place in enumerate(read, FIRST):
            from_leaf = at if place.leaves else from_leaf
            from_deviation = at if place.deviations else from_deviation
        if found.odd:
            kind = self._number(form, sizes)
        else:
            bit = AS_TABLES[found.table, len(leaves)]
            own = (found.off,) if found.off else ()
            kind = self._number(numbers.bit_form(bit, found.off), own)
            from_leaf = NONE if bit in (ZERO, ONE) else from_leaf
            from_deviation = OWN if own else NONE
        return None if kind < 0 else Rule(kind, from_leaf, from_deviation, found.off)
