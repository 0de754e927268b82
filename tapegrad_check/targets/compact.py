"""The independent checker of compact `relu` nets: units as truth tables, wires against the circuit.

A unit either holds a wire of the circuit, or its negation, or is a step on the way to one. All weights are
small whole numbers. So over the bits that a unit can be traced back to, at most six of them, its value
is a table of whole numbers, which is worked out case by case. For a unit that holds a wire the table must be
one of bits, and the one that the circuit's own gates give between these bits and that wire. Going through the
units in order, all wires that are held are then what they are said to be, and so are the outputs.

Which bits to trace a unit back to is a choice: what it reads may hold a wire, and be taken for a bit, or be
opened and traced further. A sum of two bits that are never 1 together is a bit only once they are opened.
There are a few ways to choose, and whichever gives a proof will do.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.arithmetic import SINGLE
from tapegrad_check.fields import array, number, whole
from tapegrad_check.folder import Arrays, Checked, require
from tapegrad_check.formulas.folded import Folded
from tapegrad_check.formulas.sweep import columns
from tapegrad_check.graph import Graph
from tapegrad_check.sources import Circuit, Model
from tapegrad_check.targets.layers import Wired, wired

ENTRIES = {"form", "skips"}
CLAIMS = {"statement", "units", "held", "largest_sum", "at_outputs"}
STATEMENT = (
    "for every input, every unit that holds a wire of the circuit has the wire's bit or its negation, every "
    "output is -1 or +1 as the circuit's bit is 0 or 1, and no sum exceeds largest_sum, so nothing is rounded"
)
ARRAYS = {"holds"}
LARGEST_WEIGHT = 127
WHOLE = 1 << SINGLE.digits
"""Up to here float32 has every whole number."""
LEAVES, FREE, CONE = 6, 4, 64
"""Bits that a unit is traced back to; others that its wire may depend on; and gates of the circuit between
them and the wire."""

WRONG = "a unit does not have the value of the wire that it holds"

Table = tuple[int, ...]
"""A value for each row: in row r, leaf i is bit i of r."""


def check(
    config: dict[str, Any], own: Arrays, certificate: dict[str, Any], source: Model | None, graph: Graph
) -> Checked:
    """What was re-derived, in sentences; `CheckError` names the first thing that does not hold."""
    require(config.keys() == ENTRIES and config["form"] == "compact", "the net is of no known form")
    require(own.keys() == ARRAYS, "arrays are others")
    net = wired(graph)
    _shape(net, config["skips"])
    holds = array(own, "holds", np.int32, (net.units,))
    circuit = None
    if source is not None:
        require(isinstance(source, Circuit), "a relu net is that of a circuit")
        assert isinstance(source, Circuit)
        named = (source.inputs, source.outputs) == (net.inputs, net.outputs)
        require(named, "inputs or outputs have other names than in the circuit")
        circuit = _Wires(source)
    proof = _Proof(net, holds, circuit)
    proof.units()
    proof.outputs(circuit)
    largest = proof.largest_sum()
    _claims(certificate, holds, largest)
    kept = "any earlier layer" if config["skips"] else "the layer before them"
    statements = [
        f"all {net.units:,} units read places that exist in {kept}",
        f"the truth tables of all {int((holds >= 0).sum()):,} units that hold a wire, worked "
        f"out from the weights over at most {LEAVES} bits each, have nothing but 0 and 1",
        f"no sum exceeds {largest:,}, all weights are whole numbers, and {net.dtype} has all of these: "
        "nothing is rounded, for any input",
    ]
    if circuit is not None:
        statements.append(
            "these tables are those of the circuit's own gates between the wires that are held, and each "
            "output is -1 or +1 as the circuit's is 0 or 1, by name"
        )
    return Checked(statements)


def _shape(net: Wired, skips: Any) -> None:
    """Small whole numbers, and layers of units that read what they may."""
    require(type(skips) is bool, "it is not said whether there are skip connections")
    require((np.diff(net.bounds[:-1]) > 0).all(), "a layer has no units")
    for numbers in (net.values, net.biases):
        small = (np.abs(numbers) <= LARGEST_WEIGHT) & (numbers == np.rint(numbers))
        require(small.all(), f"a weight or a bias is no whole number of at most {LARGEST_WEIGHT}")
    if not skips:
        inputs = len(net.inputs)
        earliest = net.of_entries(net.of_layers(np.concatenate([[0], inputs + net.bounds])[:-2]))
        require(
            (net.places >= earliest).all(), "a unit reads past the layer before it, without skip connections"
        )
    require((np.diff(net.starts[net.units :]) <= 1).all(), "an output reads more than one value")


def _claims(claims: dict[str, Any], holds: NDArray[np.int32], largest: int) -> None:
    require(claims.keys() == CLAIMS and claims["statement"] == STATEMENT, "the certificate has other claims")
    require(claims["units"] == len(holds), "the certificate counts other units")
    held = int((holds >= 0).sum())
    require(claims["held"] == held, "the certificate counts other units that hold a wire")
    claimed = whole(claims["largest_sum"], "the largest sum", 0, WHOLE)
    require(largest <= claimed, f"a sum can be {largest:,}, more than the certificate says")
    require(number(claims["at_outputs"], "the error of outputs") == 0, "outputs are exact")


class _Wires:
    """The circuit as formulas."""

    def __init__(self, circuit: Circuit) -> None:
        self.nodes = Folded()
        self.inputs = self.nodes.variables(len(circuit.inputs))
        self.literals = self.nodes.wires(circuit, self.inputs)
        self.outputs = [self.literals[wire] for wire in circuit.output_wires.tolist()]

    def held(self, holds: int) -> int:
        """The literal that a unit says it holds."""
        require(holds >> 1 < len(self.literals), "a unit holds a wire that the circuit does not have")
        return self.literals[holds >> 1] ^ holds & 1

    def between(self, root: int, leaves: Sequence[int]) -> tuple[int, int, int] | None:
        """The table of a literal over others, as the bits of a number; its rows; and in which of them all of
        these can have the values of the row: two that are the same node cannot differ. Nodes that depend on
        none of them, as far as one looks, are taken for more variables, in case the literal does not depend
        on these either. None if there are many of those."""
        ends = {leaf >> 1 for leaf in leaves} | {0}
        above = self._above(root >> 1, ends)
        cone: set[int] = set()
        free: list[int] = []
        waiting = [root >> 1]
        while waiting and len(free) <= FREE:
            node = waiting.pop()
            if node in ends or node in cone:
                continue
            if node in above:
                cone.add(node)
                waiting += (own >> 1 for own in self.nodes.operands[node] or ())
            else:
                ends.add(node)
                free.append(2 * node)
        if len(free) > FREE:
            return None
        variables = len(leaves) + len(free)
        every = (1 << (1 << variables)) - 1
        tables, possible = {0: 0}, every
        for leaf, column in zip((*leaves, *free), columns(variables), strict=True):
            column ^= every if leaf & 1 else 0
            possible &= ~(tables.setdefault(leaf >> 1, column) ^ column)
        for node in sorted(cone):
            operands = self.nodes.operands[node]
            assert operands is not None
            x, y = (tables[own >> 1] ^ (every if own & 1 else 0) for own in operands)
            tables[node] = x ^ y if self.nodes.is_xor[node] else x & y
        return tables[root >> 1] ^ (every if root & 1 else 0), 1 << variables, possible

    def occurs(self, leaves: Sequence[int], row: int) -> bool:
        """Whether these literals can have the values of a row: not if one of them depends on the others
        alone, and these would give it another."""
        for i, leaf in enumerate(leaves):
            others = [*leaves[:i], *leaves[i + 1 :]]
            between = self.between(leaf, others)
            if between is not None and between[1] == 1 << len(others):
                entry = row & ((1 << i) - 1) | row >> (i + 1) << i
                if between[2] >> entry & 1 and between[0] >> entry & 1 != row >> i & 1:
                    return False
        return True

    def _above(self, root: int, ends: set[int]) -> set[int]:
        """The nodes between the root and these, of those that are reached first from the root."""
        seen = {root} - ends
        level = list(seen)
        while level and len(seen) <= CONE:
            below = {own >> 1 for node in level for own in self.nodes.operands[node] or ()}
            level = list(below - seen - ends)
            seen.update(level)
        above: set[int] = set()
        for node in sorted(seen):
            if any(
                own >> 1 in above or (own > 1 and own >> 1 in ends) for own in self.nodes.operands[node] or ()
            ):
                above.add(node)
        return above


class _Traced(NamedTuple):
    """A unit over the bits that it is traced back to."""

    leaves: tuple[int, ...]
    table: Table


class _Proof:
    """What is known of the units so far, place by place."""

    def __init__(self, net: Wired, holds: NDArray[np.int32], circuit: _Wires | None) -> None:
        self.net, self.circuit, self.inputs = net, circuit, len(net.inputs)
        self.weights, self.biases = (part.astype(np.int64) for part in (net.values, net.biases))
        require((holds >= -1).all(), "a unit holds no wire and no negation of one")
        self.holds: list[int] = [*range(0, 2 * self.inputs, 2), *holds.tolist()]
        self.traced: dict[int, _Traced] = {}
        self.longer: dict[int, tuple[int, int]] = {}
        """Units that are not seen to be right from near by: the formula of each, and the wire it holds."""

    def units(self) -> None:
        """Every unit in order, but for those that pass on what they read, and say no more than that. What is
        left is proved at once, over the whole circuit: a formula is over wires that earlier units hold, so
        that all of these are right, in order, if each formula is its wire."""
        weights, biases, starts = self.weights.tolist(), self.biases.tolist(), self.net.starts.tolist()
        copies = self._copies()
        first = self._passed_on(copies)[self.net.places].tolist()
        for unit in np.flatnonzero(~copies).tolist():
            part = slice(starts[unit], starts[unit + 1])
            self._unit(self.inputs + unit, first[part], weights[part], biases[unit])
        if self.longer:
            assert self.circuit is not None
            found, wanted = zip(*self.longer.values(), strict=True)
            self.circuit.nodes.require_same(found, wanted, WRONG, [f"unit {unit}" for unit in self.longer])

    def _copies(self) -> NDArray[np.bool_]:
        """Units that are relu(x) of a place that holds the same, or like them nothing: no value is negative,
        so that this is x."""
        net, units = self.net, self.net.units
        one = (np.diff(net.starts[: units + 1]) == 1) & (self.biases[:units] == 0)
        at, holds = net.starts[:units][one], np.array(self.holds)
        same = holds[net.places[at]] == holds[self.inputs :][one]
        one[one] = (self.weights[at] == 1) & same
        return one

    def _passed_on(self, copies: NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each place the one that it has its value from: the first of a row of copies."""
        first = np.arange(len(self.holds))
        first[self.inputs :][copies] = self.net.places[self.net.starts[: self.net.units][copies]]
        while (first[first] != first).any():
            first = first[first]
        return first

    def _unit(self, place: int, reads: list[int], weights: list[int], bias: int) -> None:
        holds = self.holds[place]
        if holds < 0:
            found = self._over(self._opened(reads, ()), reads, weights, bias)
            require(found is not None, f"a unit depends on more than {LEAVES} bits")
            assert found is not None
            self.traced[place] = found
            return
        for opened in self._ways(reads):
            found = self._over(self._opened(reads, opened), reads, weights, bias)
            if found is not None and self._holds(found, holds):
                self.traced[place] = found
                return
        self._as_formula(place, reads, weights, bias)

    def _as_formula(self, place: int, reads: list[int], weights: list[int], bias: int) -> None:
        """A unit for the longer proof, over whatever makes its table one of bits."""
        found = self._over(self._opened(reads, ()), reads, weights, bias)
        if found is None or max(found.table) > 1:
            ways = [self._over(self._opened(reads, own), reads, weights, bias) for own in self._ways(reads)]
            found = next((own for own in ways if own is not None and max(own.table) <= 1), None)
        unit = place - self.inputs
        require(found is not None and self.circuit is not None, f"{WRONG}, at unit {unit}")
        assert found is not None
        assert self.circuit is not None
        own = [self.circuit.held(self.holds[leaf]) for leaf in found.leaves]
        literal = _formula(self.circuit.nodes, found.table, own)
        self.longer[unit] = literal, self.circuit.held(self.holds[place])
        self.traced[place] = found

    def _ways(self, reads: list[int]) -> Iterable[tuple[int, ...]]:
        """Which of the places read, that could be taken for bits, are opened: none; those that depend on
        nothing but others that are read; those that depend on something that others depend on; all."""
        yield ()
        could = [place for place in reads if self.holds[place] >= 0 and place in self.traced]
        within = set(self._opened(reads, ()))
        inner = tuple(place for place in could if within - {place} >= set(self.traced[place].leaves))
        yield from [inner] if inner else []
        overlapping = []
        for place in could:
            others = set(reads) - {place}
            below = {leaf for other in others if other in self.traced for leaf in self.traced[other].leaves}
            if (others | below) & set(self.traced[place].leaves):
                overlapping.append(place)
        if tuple(overlapping) not in ((), inner):
            yield tuple(overlapping)
        if len(could) > max(len(inner), len(overlapping)):
            yield tuple(could)

    def _opened(self, reads: list[int], opened: Sequence[int]) -> dict[int, _Traced]:
        """Each place that is read, over itself if it is taken for a bit, or over its own leaves."""
        closed = (0, 1)
        return {
            place: self.traced[place]
            if place in opened or self.holds[place] < 0
            else _Traced((place,), closed)
            for place in reads
        }

    def _over(
        self, known: dict[int, _Traced], reads: list[int], weights: list[int], bias: int
    ) -> _Traced | None:
        """relu of the weighted sum, row by row; None if there are too many leaves."""
        leaves = tuple(sorted({leaf for place in reads for leaf in known[place].leaves}))
        if len(leaves) > LEAVES:
            return None
        place_of = {leaf: i for i, leaf in enumerate(leaves)}
        terms = tuple(
            (weight, tuple(place_of[leaf] for leaf in known[place].leaves), known[place].table)
            for place, weight in zip(reads, weights, strict=True)
        )
        return _Traced(leaves, _table(len(leaves), terms, bias))

    def _holds(self, found: _Traced, holds: int) -> bool:
        """Whether a table is that of the wire, in all rows that can occur."""
        if self.circuit is None:
            return max(found.table) <= 1
        leaves = [self.circuit.held(self.holds[leaf]) for leaf in found.leaves]
        between = self.circuit.between(self.circuit.held(holds), leaves)
        if between is None:
            return False
        wanted, rows, possible = between
        own = len(found.table)
        wrong = [r for r in range(rows) if possible >> r & 1 and found.table[r % own] != wanted >> r & 1]
        return not wrong or not any(self.circuit.occurs(leaves, row % own) for row in wrong)

    def outputs(self, circuit: _Wires | None) -> None:
        """Each is 2 z - 1 or 1 - 2 z of a bit, or a constant."""
        found, net = [], self.net
        ends = zip(pairwise(net.starts[net.units :].tolist()), self.biases[net.units :].tolist(), strict=True)
        for (first, end), bias in ends:
            weight, place = (int(self.weights[first]), int(net.places[first])) if end > first else (0, 0)
            require(
                (weight, bias) in ((2, -1), (-2, 1), (0, -1), (0, 1)), "an output is not -1 and +1 of a bit"
            )
            require(weight == 0 or self.holds[place] >= 0, "an output reads what is no bit")
            if circuit is not None:
                literal = circuit.held(self.holds[place]) if weight else 0
                found.append(literal ^ (bias > 0))
        if circuit is not None:
            circuit.nodes.require_same(found, circuit.outputs, "the outputs are not those of the circuit")

    def largest_sum(self) -> int:
        """What no sum of a unit can exceed in magnitude, whatever the order in which it is added up."""
        most, units = np.ones(len(self.holds)), self.net.units
        for place, own in self.traced.items():
            if self.holds[place] < 0:
                most[place] = max(own.table)
        most = most[self._passed_on(self._copies())]
        ends = self.net.starts[: units + 1]
        terms = np.abs(self.weights[: ends[-1]]) * most[self.net.places[: ends[-1]]]
        sums = np.concatenate([[0], np.cumsum(terms)])
        own = np.diff(sums[ends]) + np.abs(self.biases[:units])
        return int(own.max(initial=1))


@cache
def _table(leaves: int, terms: tuple[tuple[int, tuple[int, ...], Table], ...], bias: int) -> Table:
    """The value in every row. Most units of a net are alike, so few are worked out."""
    found = []
    for row in range(1 << leaves):
        total = bias
        for weight, own, table in terms:
            total += weight * table[sum((row >> leaf & 1) << i for i, leaf in enumerate(own))]
        found.append(max(total, 0))
    return tuple(found)


def _formula(nodes: Folded, table: Table, leaves: Sequence[int]) -> int:
    """A table of bits over literals as a formula, case by case on the last of them."""
    if not leaves:
        return table[0]
    half = len(table) // 2
    low, high = (_formula(nodes, part, leaves[:-1]) for part in (table[:half], table[half:]))
    return nodes.xor(low, nodes.and_(leaves[-1], nodes.xor(low, high)))
