"""The passes from a RASP program to a circuit, for a number of tokens, and from a circuit to a RASP program.

Inputs of the circuit are the numbers of tokens in binary, outputs a wire for each position and each value of
the output, and one that says whether values that differ were moved together, so that there is no output.

Where there are few inputs, the program is evaluated on all of them, by the tables of its functions and
predicates, and the circuit gate by gate. Where there are many, the formulas are written down a second time:

    sequence   for each position and value a wire; a token's is the AND of its bits
    function   a pair of values that gives v: AND of their wires; v is the OR of its pairs
    selector   for a pair of positions the OR of the pairs of values for which the predicate holds
    width      from position to position, for each count so far: stays, or goes up if the next is selected
    mean       the same for pairs of count and sum
    move       v is the OR over positions of (selected AND v there); the default is that there is none

The wires of a token are 1 for one value at most, and so are all others, by induction, unless values are
mixed: then two wires of a move are 1, and the last output with them. The saved circuit must give these very
formulas.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.fields import whole
from tapegrad_check.folder import NotProved, require
from tapegrad_check.passes.step import Step
from tapegrad_check.products import times
from tapegrad_check.sources import Circuit, Model
from tapegrad_check.sources.rasp import ONE, SELECTORS, Rasp, Value, result

FEW_INPUTS, FEW_VALUES = 1 << 16, 1 << 32
"""Inputs up to which all are tried, and values of wires on all of them."""
AT_ONCE = 1 << 12
NODES_PER_GATE, NODES_AT_LEAST = 8, 1 << 17

Hot = dict[Value, int]
"""A literal for each value."""


def _wires(before: Model, step: Step) -> Model:
    after = step.saved()
    require(isinstance(before, Rasp) and isinstance(after, Circuit), "only a program of RASP has tokens")
    assert isinstance(before, Rasp)
    assert isinstance(after, Circuit)
    count = whole(step.option("count"), "the number of tokens", 1, before.length)
    bits = max(1, (len(before.vocabulary) - 1).bit_length())
    values = len(before.values[before.output])
    inputs = tuple(f"token {place}[{bit}]" for place in range(count) for bit in range(bits))
    outputs = tuple(f"position {place}[{number}]" for place in range(count) for number in range(values))
    require(after.inputs == inputs, "the inputs of the circuit are not so many tokens")
    require(after.outputs == (*outputs, "mixed"), "the outputs of the circuit are not values")
    if not step.proves:
        return after
    many = len(before.vocabulary) ** count
    if many <= FEW_INPUTS and many * len(after.kinds) <= FEW_VALUES:
        _on_all_inputs(before, after, count, bits)
        step.statements.append(f"the circuit is the program on {count:,} tokens: on all {many:,} inputs")
        return after
    nodes = Nodes(NODES_AT_LEAST + NODES_PER_GATE * (len(inputs) + len(after.kinds)))
    literals = nodes.variables(len(inputs))
    wanted = _Formulas(before, count, nodes, literals).outputs()
    what = "the circuit is not the program"
    nodes.require_same(nodes.outputs(after, literals), wanted, what, after.outputs)
    step.statements.append(f"the circuit is the program on {count:,} tokens, formula by formula")
    return after


def _positions(before: Model, step: Step) -> Model:
    """A circuit as a program: its inputs are tokens, and at position j the program has output j, or 0."""
    after = step.saved()
    require(isinstance(before, Circuit) and isinstance(after, Rasp), "a circuit becomes no program of RASP")
    assert isinstance(before, Circuit)
    assert isinstance(after, Rasp)
    inputs, count = len(before.inputs), max(1, len(before.inputs), len(before.outputs))
    require(after.vocabulary == ("0", "1"), "the tokens of the program are not bits")
    require(after.length == count and not after.causal, "the program is for other words than inputs")
    values = after.values[after.output]
    require(all(type(value) is int and value in (0, 1) for value in values), "the outputs are not bits")
    if not step.proves:
        return after
    nodes = Nodes(NODES_AT_LEAST + NODES_PER_GATE * count * len(after.nodes))
    literals = nodes.variables(inputs)
    found = _Formulas(after, count, nodes, [*literals, *[FALSE] * (count - inputs)]).outputs()
    bits = [*nodes.outputs(before, literals), *[FALSE] * (count - len(before.outputs))]
    wanted = [bit if value else bit ^ 1 for bit in bits for value in values]
    nodes.require_same(found, [*wanted, FALSE], "the program does not have the circuit's outputs")
    step.statements.append(
        f"on {count:,} tokens the program has the circuit's outputs at its first {len(before.outputs):,} "
        "positions, formula by formula"
    )
    return after


PASSES = {"tokens as wires": _wires, "gates at every position": _positions}


# On all inputs


def _on_all_inputs(program: Rasp, circuit: Circuit, count: int, bits: int) -> None:
    for words in _all_words(len(program.vocabulary), count):
        rows = (words[:, :, None] >> np.arange(bits) & 1).reshape(len(words), -1).astype(bool)
        found = _evaluated(circuit, rows)
        right, mixed = evaluate(program, words)
        require(np.array_equal(found[:, -1], mixed), "the circuit mixes values where the program does not")
        shape = len(words), count, len(program.values[program.output])
        wanted = right[:, :, None] == np.arange(shape[2])
        same = found[:, :-1].reshape(shape)[~mixed] == wanted[~mixed]
        require(same.all(), "the circuit gives something else than the program")


def _all_words(tokens: int, count: int) -> Iterator[NDArray[np.int64]]:
    """All words of so many tokens, as numbers, some thousand at a time."""
    for first in range(0, tokens**count, AT_ONCE):
        own = np.arange(first, min(first + AT_ONCE, tokens**count))
        yield np.stack([own // tokens**place % tokens for place in range(count)], axis=1)


def _evaluated(circuit: Circuit, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The outputs for each row of inputs."""
    wires = list(np.packbits(rows.T, axis=1))
    for kind, left, right in zip(
        circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True
    ):
        found = np.zeros(-(-len(rows) // 8), np.uint8)
        if kind in (0, 15):  # its operands are 0, and there may be no wire 0
            wires.append(~found if kind else found)
            continue
        for case in range(4):
            if kind >> case & 1:
                a, b = wires[left], wires[right]
                found |= (a if case & 2 else ~a) & (b if case & 1 else ~b)
        wires.append(found)
    outputs = np.array([wires[wire] for wire in circuit.output_wires.tolist()])
    return np.unpackbits(outputs, axis=1, count=len(rows)).T.astype(bool)


def evaluate(program: Rasp, words: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For words of one length, whose tokens are numbers: the place of the output's value at each position
    among all that it can be; and for which words values are moved together that differ."""
    some, count = words.shape
    sees = np.tril(np.ones((count, count), bool)) if program.causal else np.ones((count, count), bool)
    mixed = np.zeros(some, bool)
    found: list[NDArray[Any]] = []
    for number, node in enumerate(program.nodes):
        inner = [found[own] for own in node.reads]
        program.work.spend(words.size * (count if node.kind in (*SELECTORS, "move", "mean", "width") else 1))
        if node.kind == "tokens":
            found.append(words)
        elif node.kind == "indices":
            found.append(np.broadcast_to(np.arange(count), words.shape))
        elif node.kind == "full":
            found.append(np.zeros_like(words))
        elif node.kind in ("apply", "table"):
            found.append(program.function(number)[tuple(inner)])
        elif node.kind in ("select", "pairs"):
            keys, queries = inner
            found.append(program.selected(number)[keys[:, None, :], queries[:, :, None]] & sees)
        elif node.kind == "combine":
            joined = ~inner[0] if node.what == "not" else (
                inner[0] & inner[1] if node.what == "and" else inner[0] | inner[1])  # fmt: skip
            found.append(joined & sees)
        elif node.kind == "width":
            found.append(inner[0].sum(axis=2))
        elif node.kind == "mean":
            found.append(_means(program, number, inner[0], inner[1]))
        else:
            own = np.array([program.places[number][value] for value in program.values[node.reads[1]]])
            there = np.broadcast_to(own[inner[1]][:, None, :], inner[0].shape)
            most = np.where(inner[0], there, -1).max(axis=2)
            least = np.where(inner[0], there, len(program.values[number])).min(axis=2)
            mixed |= ((most != least) & inner[0].any(axis=2)).any(axis=1)
            found.append(np.where(most < 0, program.places[number][node.what], most))
    return found[program.output], mixed


def _means(
    program: Rasp, number: int, rows: NDArray[np.bool_], values: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Sums in units of a common denominator, by counts."""
    node, places = program.nodes[number], program.places[number]
    exact = [Fraction(own) for own in program.values[node.reads[1]]]
    base = int(np.lcm.reduce([own.denominator for own in exact], dtype=object))
    whole_ones = [int(own * base) for own in exact]
    if max(map(abs, whole_ones)) >= 1 << 48:
        raise NotProved("a mean is of numbers that are too large")
    sums = times(rows.astype(np.int64), np.array(whole_ones)[values][:, :, None])
    pairs = np.stack([sums[:, :, 0], rows.sum(axis=2)], axis=-1)
    unique, which = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
    made = []
    for total, by in unique.tolist():
        mean = Fraction(total, base * by) if by else node.what
        made.append(places[mean])  # equal numbers are one key, whatever they are written as
    return np.array(made)[which.reshape(-1)].reshape(values.shape)


# Formula by formula


class _Formulas:
    """All nodes as literals, in order."""

    def __init__(self, program: Rasp, count: int, nodes: Nodes, inputs: list[int]) -> None:
        self.program, self.count, self.nodes = program, count, nodes
        bits = len(inputs) // count
        self.tokens = [inputs[place * bits : (place + 1) * bits] for place in range(count)]
        self.mixed = FALSE
        self.found: list[Any] = []
        self.known: dict[tuple[int, ...], Any] = {}
        """By a node and what it reads at a position: where that is the same object, so is what it gives."""

    def outputs(self) -> list[int]:
        """Those of the circuit, in its order."""
        program = self.program
        for number, node in enumerate(program.nodes):
            made = self._selector if node.kind in SELECTORS else self._sequence
            self.found.append(made(number))
        values = program.values[program.output]
        return [*(hot.get(v, FALSE) for hot in self.found[program.output] for v in values), self.mixed]

    def _sequence(self, number: int) -> list[Hot]:
        node, places = self.program.nodes[number], range(self.count)
        inner = [self.found[own] for own in node.reads]
        if node.kind == "tokens":
            return [self._token(place) for place in places]
        if node.kind == "indices":
            return [{place: TRUE} for place in places]
        if node.kind == "full":
            return [{node.what: TRUE}] * self.count
        if node.kind in ("apply", "table"):
            return [self._applied(number, [own[place] for own in inner]) for place in places]
        if node.kind == "width":
            ones: list[Hot] = [{0: TRUE}] * self.count
            return [{own: wire for (own, _), wire in self._totals(row, ones).items()} for row in inner[0]]
        if node.kind == "mean":
            return [self._mean(node.what, row, inner[1]) for row in inner[0]]
        return [self._moved(number, row, inner[1]) for row in inner[0]]

    def _joined(self, hot: dict[Any, int], value: Any, wire: int) -> None:
        self.program.work.spend(ONE)
        hot[value] = self.nodes.or_(hot[value], wire) if value in hot else wire

    def _token(self, place: int) -> Hot:
        hot: Hot = {}
        for number, token in enumerate(self.program.vocabulary):
            hot[token] = TRUE
            for bit, own in enumerate(self.tokens[place]):
                hot[token] = self.nodes.and_(hot[token], own if number >> bit & 1 else own ^ 1)
        return hot

    def _applied(self, number: int, arguments: list[Hot]) -> Hot:
        hot = self.known.setdefault((number, *map(id, arguments)), {})
        if hot:
            return hot
        for case in product(*(own.items() for own in arguments)):
            wire = TRUE
            for _, own in case:
                wire = self.nodes.and_(wire, own)
            self._joined(hot, result(self.program.nodes[number], *(value for value, _ in case)), wire)
        return hot

    def _totals(self, row: list[int], values: list[Hot]) -> dict[tuple[int, Any], int]:
        totals: dict[tuple[int, Any], int] = {(0, 0): TRUE}
        for chosen, hot in zip(row, values, strict=True):
            following: dict[tuple[int, Any], int] = {}
            for (count, total), wire in totals.items():
                self._joined(following, (count, total), self.nodes.and_(wire, chosen ^ 1))
                for value, own in hot.items():
                    both = self.nodes.and_(self.nodes.and_(wire, chosen), own)
                    self._joined(following, (count + 1, total + Fraction(value)), both)
            totals = {key: wire for key, wire in following.items() if wire != FALSE}
        return totals

    def _mean(self, default: Value, row: list[int], values: list[Hot]) -> Hot:
        hot: Hot = {}
        for (count, total), wire in self._totals(row, values).items():
            self._joined(hot, total / count if count else default, wire)
        return hot

    def _moved(self, number: int, row: list[int], values: list[Hot]) -> Hot:
        if (number, id(row)) not in self.known:
            hot: Hot = {}
            for chosen, own in zip(row, values, strict=True):
                for value, wire in own.items():
                    self._joined(hot, value, self.nodes.and_(chosen, wire))
            seen, twice = FALSE, list[int]()
            for wire in hot.values():
                twice.append(self.nodes.and_(seen, wire))
                seen = self.nodes.or_(seen, wire)
            self._joined(hot, self.program.nodes[number].what, seen ^ 1)
            self.known[number, id(row)] = hot, twice
        hot, twice = self.known[number, id(row)]
        for wire in twice:
            self.mixed = self.nodes.or_(self.mixed, wire)
        return hot

    def _selector(self, number: int) -> list[list[int]]:
        node, places = self.program.nodes[number], range(self.count)
        inner = [self.found[own] for own in node.reads]
        rows: list[list[int]] = []
        alike: dict[int, list[int]] = {}
        table = None if node.kind == "combine" else self.program.selected(number)
        for q in places:
            self.program.work.spend(ONE * self.count)
            if node.kind != "combine" and not self.program.causal:
                if (query := id(inner[1][q])) in alike:
                    rows.append(alike[query])
                    continue
                alike[query] = row = []
                rows.append(row)
            else:
                rows.append([])
            for k in places:
                if self.program.causal and k > q:
                    wire = FALSE
                elif table is not None:
                    wire = self._holds(number, table, inner[0][k], inner[1][q])
                elif node.what == "not":
                    wire = inner[0][q][k] ^ 1
                else:
                    join = self.nodes.and_ if node.what == "and" else self.nodes.or_
                    wire = join(inner[0][q][k], inner[1][q][k])
                rows[q].append(wire)
        return rows

    def _holds(self, number: int, table: NDArray[np.bool_], keys: Hot, queries: Hot) -> int:
        self.program.work.spend(ONE * len(keys) * len(queries) / 4)
        first, second = (self.program.places[own] for own in self.program.nodes[number].reads)
        found = FALSE
        for key, wire in keys.items():
            for query, other in queries.items():
                if table[first[key], second[query]]:
                    found = self.nodes.or_(found, self.nodes.and_(wire, other))
        return found
