"""Nets in disguise: how far what heads read, select and bring may be from what the plain net has.

Scores are products of the streams at two positions with one matrix, which is compared as a whole, so that the
inner basis of a head is nobody's concern. What a head adds is a mean, so that it is off by what it adds for
one position at most, and by how uneven weights are.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tapegrad_check.arithmetic import SINGLE, UP, Matrix, finite, product, rounding, step_of
from tapegrad_check.folder import Arrays, require
from tapegrad_check.graph import Graph
from tapegrad_check.maps import row_of
from tapegrad_check.products import times
from tapegrad_check.rasp.drift import Drift
from tapegrad_check.rasp.heads import BETA, FLOPS
from tapegrad_check.rasp.program import RaspNet
from tapegrad_check.rasp.tables import MIXED, START, WORD
from tapegrad_check.sources.rasp import Rasp

UNDERFLOW = 104.0
"""exp(-UNDERFLOW) is below every float of single precision."""
LEAST_GAP = 8.0
"""Between scores of what is selected and what is not, at least."""
LIBRARY = 16 * SINGLE.u
"""How far exponentials and quotients of libraries may be off, relatively."""

Form = dict[int, float]


class Added:
    """What heads of a layer add: how far it is off in terms of features, and by rounding in y; how large it
    is, how many terms it has, and of which power of two these are multiples."""

    def __init__(self, width: int) -> None:
        self.off, self.bound, self.size = (np.zeros(width) for _ in range(3))
        self.terms, self.step = np.zeros(width, np.int64), 1.0
        self.raw: list[Raw] = []


class Raw(NamedTuple):
    """A coordinate that a head brings, by its column: how large it can be, and how far it may be off."""

    column: int
    most: float
    relative: float
    absolute: float


@dataclass(frozen=True)
class Slots:
    """Where the parts of the plain net stand among heads and units."""

    heads: list[list[int]]
    units: list[list[int]]
    scales: list[Matrix]
    heat: list[float]
    """What scores of each layer are multiplied by."""
    erased: list[dict[int, int]]
    """For each layer the features that it erases, and the unit that does."""


class DisguisedHeads(RaspNet):
    """The plain net, with the weights that are given followed beside it, up to what heads add."""

    def __init__(
        self,
        config: dict[str, Any],
        plain: Graph,
        program: Rasp,
        weights: Arrays,
        directions: Matrix,
        slots: Slots,
    ) -> None:
        super().__init__(config, plain, program)
        self.weights = {name: np.asarray(own, np.float64) for name, own in weights.items()}
        self.slots, self.layer = slots, 0
        self.uneven: dict[int, float] = {}
        """Of watched coordinates: what a weight of those that are mixed is at least, times their number."""
        self.scores, self.bit, self.read_off, self.flag = 0.0, 0.0, 0.0, 0.0
        """The largest drift of scores, of bits, of what is read, and of the flag."""
        groups: dict[int, list[tuple[int, int]]] = {}
        for place, (kind, group, number) in enumerate(self.meanings):
            if kind == "bit":
                groups.setdefault(group, []).append((number, place))
        self.features = len(directions)
        ordered = [[place for _, place in sorted(own)] for own in groups.values()]
        # Inverses and products of matrices as large as the stream is wide: for every head, and every layer.
        large = 1 + len(self.heads) + any(slots.erased) * len(self.units)
        self._spend(10 * large * float(directions.shape[1]) ** 3 / FLOPS)
        self.drift = Drift(directions, self._there(), ordered)
        self.added = Added(directions.shape[1])

    def _there(self) -> list[int]:
        """The features that are there in this layer: all, if none is ever erased; else those set so far,
        those that its heads bring, and decoys."""
        if not any(self.slots.erased):
            return list(range(self.features))
        if self.layer == 0:
            self.alive = {START, WORD, MIXED, *range(len(self.meanings), self.features)}
            self.alive |= set(self.embedding.columns) | self.positions()
        first = sum(self.counts[: self.layer])
        if self.layer < len(self.counts):
            for number in range(first, first + self.counts[self.layer]):
                self.alive |= set(self.heads_to[number])
        return sorted(self.alive)

    def positions(self) -> set[int]:
        """The features that say where a position is."""
        index = next((n for n, node in enumerate(self.program.nodes) if node.kind == "indices"), None)
        return {
            place
            for place, (kind, group, _) in enumerate(self.meanings)
            if kind == "bit" and self.groups[group][0] == (index,)
        }

    def rows(self, forms: list[Form]) -> Matrix:
        """Rows of the plain net over the columns of features."""
        found = np.zeros((len(forms), len(self.drift.most)))
        for number, form in enumerate(forms):
            for place, weight in form.items():
                require(place in self.drift.place, "a feature is read that has been erased")
                found[number, self.drift.place[place]] = weight
        return found

    # Embeddings

    def _embedding(self) -> None:
        """Tokens and positions, as they are, beside what they should be."""
        super()._embedding()
        drift, tokens, positions = self.drift, self.weights["embed.W_E"], self.weights["pos_embed.W_pos"]
        for place in self.known - {MIXED}:
            drift.most[drift.place[place]] = 1.0
        ladder = sorted(self.positions())
        wanted = [self.rows([row_of(self.embedding, row)[0] for row in range(len(tokens))])]
        wanted.append(self.rows([dict.fromkeys(ladder[: max(0, p - 1)], 1.0) for p in range(len(positions))]))
        size = np.zeros(tokens.shape[1])
        for own, rows in zip((tokens, positions), wanted, strict=True):
            right, error = product(rows, drift.basis.T)
            drift.off += drift.in_features((own - right).T, error.T).max(axis=1)
            size += np.abs(own).max(axis=0)
        step = min(step_of(tokens), step_of(positions), drift.step)
        on_grid = not drift.off.any()
        drift.grid = step if on_grid else 0.0
        drift.adds(rounding(1, size, drift.grid))

    # Heads

    def _head(self, number: int) -> list[int]:
        """What the plain head brings, and how far the one that is given is off."""
        places = super()._head(number)
        drift, node = self.drift, self.program.nodes[self.heads[number]]
        first = sum(self.counts[: self.layer])
        slot = self.slots.heads[self.layer][number - first]
        query, key, value, out = self._sides(slot)
        asks, answers, rows = (
            self.rows([row_of(side[number], row)[0] for row in range(len(side[number]))])
            for side in self.sides
        )
        heat, length = self.slots.heat[self.layer], self.program.length
        off = self._score_drift(query, key, heat * asks, answers)
        gap = heat * BETA * (1.0 if node.kind == "width" else 0.5) - 2 * off
        name = f"a{self.layer}.h{slot}"
        require(gap >= LEAST_GAP, f"scores of head {name} may be off by {off:.2g}, which is too much")
        self.scores = max(self.scores, off)
        stray = 0.0 if gap >= UNDERFLOW else float(length * np.exp(-gap)) * UP
        uneven = (0.0 if off == 0.0 else float(np.expm1(2 * off)) * UP) + LIBRARY + stray
        # One position that is selected, or the first, weighs exp(0) / exp(0).
        copies = node.kind == "move" and stray == 0.0 and self._single(node.reads[0])
        self._brings_off(places, rows, value, out, copies)
        relative = uneven if node.kind != "move" else 0.0 if copies else length * SINGLE.u + LIBRARY + stray
        absolute = float(self.off.get(self.heads[number], 0))
        for place in places:
            most = float(max(self.brought(place)[0]))
            self.added.raw.append(Raw(drift.place[place], most, relative, absolute + stray * most))
            self.uneven[place] = float(np.exp(-2 * off)) * (1 - (length + 64) * SINGLE.u - stray) / UP
        return places

    def _sides(self, slot: int) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        query, key, value, out = (self.weights[f"blocks.{self.layer}.attn.W_{side}"] for side in "QKVO")
        return query[slot], key[slot], value[slot], out[slot]

    def _score_drift(self, query: Matrix, key: Matrix, asks: Matrix, answers: Matrix) -> float:
        """How far scores may be off. They are products of both streams with one matrix, which is compared;
        then what features are off by; then how they are rounded."""
        drift = self.drift
        found, error = product(
            np.ascontiguousarray(drift.basis.T), query, np.ascontiguousarray(key.T), drift.basis
        )
        wanted = times(asks.T, answers)  # bits times the temperature: exact
        most, whole = drift.most, drift.whole
        off = float(times(most, drift.largest(found - wanted) + times(error, most)))
        off += float(times(whole, drift.largest(found) + times(error, most)))
        off += float(times(whole, drift.largest(np.ascontiguousarray(found.T)) + times(error.T, most)))
        off += float(times(times(whole, np.abs(found) + error), whole))
        asked, answered = drift.magnitude(query), drift.magnitude(key)
        first, second = drift.rounding(query), drift.rounding(key)
        off += float(times(first, answered) + times(asked, second))
        step = drift.grid**2 * step_of(query) * step_of(key) if not (first.any() or second.any()) else 0.0
        off += float(rounding(query.shape[1], times(asked, answered), step))
        return off * UP

    def _brings_off(self, places: list[int], rows: Matrix, value: Matrix, out: Matrix, copies: bool) -> None:
        """How far what a head adds is off, as a mean of what it adds for each position."""
        drift, added = self.drift, self.added
        onto = np.ascontiguousarray(drift.basis[:, [drift.place[place] for place in places]])
        through = np.ascontiguousarray(out.T), np.ascontiguousarray(value.T), drift.basis
        (found, error), (right, more) = product(*through), product(onto, rows)
        apart, spare = drift.signed(found - right, error + more)
        added.off += drift.largest(apart) + times(spare, drift.most)
        added.off += times(drift.in_features(found, error), drift.whole)
        uneven, size = drift.rounding(value), drift.magnitude(value)
        # Where only the first position has a value, the others add zeros.
        one = not (uneven.any() or apart.any() or spare.any() or drift.whole.any())
        one = one and not np.delete(rows, drift.place[START], axis=1).any()
        terms = 0 if copies else 2 if one else self.program.length + 1
        added.bound += times(np.abs(out).T, uneven + terms * SINGLE.u * size)
        self._takes_room(out, size, drift.grid * step_of(value) * step_of(out) if copies else 0.0)

    def _takes_room(self, out: Matrix, size: Matrix, step: float) -> None:
        self.added.size += times(np.abs(out).T, size)
        self.added.terms += np.count_nonzero(out, axis=0)
        self.added.step = min(self.added.step, step)

    def _nothing_overflows(self) -> None:
        """Of all heads, decoys and those that write nothing included: an infinity times 0 is no number."""
        for slot in range(len(self.weights[f"blocks.{self.layer}.attn.W_Q"])):
            query, key, value, out = self._sides(slot)
            asked, answered, brought = (self.drift.total(side) for side in (query, key, value))
            scores = np.array([float(times(asked, answered))])
            for total in (asked, answered, brought, scores, times(np.abs(out).T, brought)):
                require(finite(total * UP).all(), f"numbers of head a{self.layer}.h{slot} may overflow")

    def _decoy_heads(self) -> None:
        """Heads that the plain net has not: what they add is off by all that it is."""
        for slot in range(len(self.weights[f"blocks.{self.layer}.attn.W_Q"])):
            if slot in self.slots.heads[self.layer]:
                continue
            _, _, value, out = self._sides(slot)
            if value.any() and out.any():
                size = self.drift.magnitude(value) * (1 + (self.program.length + 32) * SINGLE.u)
                self.added.off += times(self._directly(out), size)
                self._takes_room(out, size, 0.0)

    def _directly(self, out: Matrix) -> Matrix:
        """Rows that are added to y, in terms of features, at most."""
        columns = np.ascontiguousarray(out.T)
        return self.drift.in_features(columns, np.zeros_like(columns))

    def _attended(self) -> None:
        """All that heads of this layer add."""
        self._nothing_overflows()
        self._decoy_heads()
        drift, added = self.drift, self.added
        for own in added.raw:
            drift.most[own.column], drift.relative[own.column] = own.most, own.relative
            drift.off[own.column] += own.absolute
        # Weights are those of a mean: they add up to 1, but for rounding.
        total = 1 + (self.program.length + 32) * SINGLE.u
        drift.off = (drift.off + added.off * total) * UP
        self._settle(added.bound * total + rounding(added.terms, added.size, added.step))
        self.added = Added(len(drift.off))

    def _settle(self, lost: Matrix) -> None:
        """Rounding of what is added, and of the sum with what was there."""
        if self.drift.whole.any():
            self.drift.grid = 0.0
        self.drift.adds(lost)
        self.drift.adds(rounding(1, self.drift.size, self.drift.grid))
