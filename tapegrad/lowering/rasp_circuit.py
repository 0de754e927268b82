"""A RASP program on so many tokens as a circuit: for every position and every value of a sequence a wire.

Of the wires of a sequence at a position just one is 1. A selector is a wire for each pair of positions.
Counts go from position to position, one-hot, and so do pairs of count and sum for means. The last output says
whether values that differ were moved together; then the input is refused, as it is by every net.
"""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.errors import InputError, Refused
from tapegrad.rasp.functions import Value, plain
from tapegrad.rasp.nodes import (
    Aggregate,
    Apply,
    Combine,
    Full,
    Indices,
    Node,
    Select,
    Tokens,
    Width,
    truth_table,
)
from tapegrad.rasp.program import RaspProgram, State
from tapegrad.source import Inputs, Rewriting

MOST_GATES = 1 << 22
EVERY_INPUT, SAMPLED = 256, 32
"""Up to so many inputs a net is verified on all of them, else on some: each takes a run. What is proved is
proved of all."""
Hot = dict[Value, Wire]
"""A wire for each value that is possible."""


def suits(program: RaspProgram, first: State, steps: int) -> dict[str, Any]:
    """As many tokens as there are."""
    return {"count": len(first)}


def rasp_circuit(program: RaspProgram, count: int) -> Rewriting:
    """The circuit for inputs of just so many tokens."""
    if not isinstance(count, int) or not 1 <= count <= program.length:
        raise Refused(
            f"{program.name!r} takes 1 to {program.length:,} tokens, not {count}",
            advice="Give the number of tokens, as in --set count=4.",
        )
    growing = _Growing(program, count)
    circuit = growing.circuit()
    bits = growing.token_bits
    numbers = {token: number for number, token in enumerate(program.vocabulary)}
    values = program.values[program.output]

    def encode(state: State) -> NDArray[np.uint8]:
        if len(state) != count:
            raise InputError(
                f"the circuit is for {count} tokens, and {len(state)} were given",
                advice=f"Compile with count={len(state)}.",
            )
        row = [numbers[token] >> bit & 1 for token in state for bit in range(bits)]
        return np.array([row], np.uint8)

    def decode(state: NDArray[Any]) -> State:
        row = np.asarray(state)[0].astype(int)
        if len(row) == count * bits:
            places = row.reshape(count, bits) @ (1 << np.arange(bits))
            return tuple(program.vocabulary[place] for place in places.tolist())
        if row[-1]:
            raise Refused(f"on this input {program.name!r} selects values that differ where values are moved")
        return tuple(
            values[place] for place in row[: count * len(values)].reshape(count, -1).argmax(axis=1).tolist()
        )

    def default_inputs(random: np.random.Generator) -> tuple[Inputs, bool]:
        if len(program.vocabulary) ** count <= EVERY_INPUT:
            return ((word,) for word in product(program.vocabulary, repeat=count)), True
        places = random.integers(0, len(program.vocabulary), (SAMPLED, count)).tolist()
        return ((tuple(program.vocabulary[place] for place in word),) for word in places), False

    return Rewriting("tokens as wires", program, circuit, encode, decode, default_inputs=default_inputs)


class _Growing:
    """Wires of all nodes, in order."""

    def __init__(self, program: RaspProgram, count: int) -> None:
        self.program, self.count, self.build = program, count, CircuitBuilder()
        self.token_bits = max(1, (len(program.vocabulary) - 1).bit_length())
        self.false = self.build.constant(False)
        self.true = self.build.constant(True)
        self.inputs = [
            [self.build.input(f"token {place}[{bit}]") for bit in range(self.token_bits)]
            for place in range(count)
        ]
        self.mixed = self.false
        self.found: list[Any] = []

    def circuit(self) -> Any:
        """All nodes, then the outputs: for each position a wire for each value; then whether values are
        mixed."""
        program, build = self.program, self.build
        for node in program.nodes:
            self.found.append(
                self._selector(node) if isinstance(node, Select | Combine) else self._sequence(node)
            )
            if build.size > MOST_GATES:
                raise Refused("the circuit has too many gates", advice="Ask for fewer tokens.")
        for place, hot in enumerate(self.found[program.output]):
            for number, value in enumerate(program.values[program.output]):
                build.output(f"position {place}[{number}]", hot.get(value, self.false))
        outputs = self.count * len(program.values[program.output]) + 1
        build.output("mixed", self.mixed)
        if (
            outputs == self.count * self.token_bits
        ):  # so that inputs and outputs are told apart by their number
            raise Refused("inputs and outputs of the circuit have the same size", advice="Add a token.")
        return build.circuit(program.name)

    def _any(self, wires: list[Wire]) -> Wire:
        found = self.false
        for wire in wires:
            found = self.build.or_(found, wire)
        return found

    def _add(self, hot: dict[Any, Wire], value: Any, wire: Wire) -> None:
        hot[value] = self.build.or_(hot[value], wire) if value in hot else wire

    def _sequence(self, node: Node) -> list[Hot]:
        places = range(self.count)
        if isinstance(node, Tokens):
            return [self._token(place) for place in places]
        if isinstance(node, Indices):
            return [{place: self.true} for place in places]
        if isinstance(node, Full):
            return [{node.value: self.true} for _ in places]
        if isinstance(node, Apply):
            return [self._applied(node, place) for place in places]
        if isinstance(node, Width):
            rows = self.found[node.selector]
            return [
                {count: wire for (count, _), wire in self._totals(row, [{0: self.true}] * self.count).items()}
                for row in rows
            ]
        assert isinstance(node, Aggregate)
        rows, values = self.found[node.selector], self.found[node.sequence]
        gather = self._mean if node.mean else self._moved
        return [gather(node, row, values) for row in rows]

    def _token(self, place: int) -> Hot:
        hot: Hot = {}
        for number, token in enumerate(self.program.vocabulary):
            wire = self.true
            for bit, own in enumerate(self.inputs[place]):
                wire = self.build.and_(wire, own if number >> bit & 1 else self.build.not_(own))
            hot[token] = wire
        return hot

    def _applied(self, node: Apply, place: int) -> Hot:
        first, *rest = (self.found[own][place] for own in node.arguments)
        hot: Hot = {}
        for x, wire in first.items():
            if not rest:
                self._add(hot, node.at(x), wire)
            for y, other in rest[0].items() if rest else ():
                self._add(hot, node.at(x, y), self.build.and_(wire, other))
        return hot

    def _totals(self, row: list[Wire], values: list[dict[Any, Wire]]) -> dict[tuple[int, Any], Wire]:
        """For every count and sum of what is selected a wire."""
        totals: dict[tuple[int, Any], Wire] = {(0, 0): self.true}
        for chosen, hot in zip(row, values, strict=True):
            following: dict[tuple[int, Any], Wire] = {}
            for (count, total), wire in totals.items():
                self._add(following, (count, total), self.build.and_(wire, self.build.not_(chosen)))
                for value, own in hot.items():
                    both = self.build.and_(self.build.and_(wire, chosen), own)
                    self._add(following, (count + 1, total + Fraction(value)), both)
            totals = {key: wire for key, wire in following.items() if self.build.known(wire) is not False}
        return totals

    def _mean(self, node: Aggregate, row: list[Wire], values: list[Hot]) -> Hot:
        hot: Hot = {}
        for (count, total), wire in self._totals(row, values).items():
            self._add(hot, plain(total / count) if count else node.default, wire)
        return hot

    def _moved(self, node: Aggregate, row: list[Wire], values: list[Hot]) -> Hot:
        hot: Hot = {}
        for chosen, own in zip(row, values, strict=True):
            for value, wire in own.items():
                self._add(hot, value, self.build.and_(chosen, wire))
        seen = self.false
        for wire in hot.values():
            self.mixed = self.build.or_(self.mixed, self.build.and_(seen, wire))
            seen = self.build.or_(seen, wire)
        self._add(hot, node.default, self.build.not_(seen))
        return hot

    def _selector(self, node: Select | Combine) -> list[list[Wire]]:
        places = range(self.count)
        seen = [[self.false if self.program.causal and k > q else self.true for k in places] for q in places]
        if isinstance(node, Combine):
            inner = [self.found[own] for own in node.arguments]
            join = {"and": self.build.and_, "or": self.build.or_}.get(node.sign)
            return [
                [join(inner[0][q][k], inner[1][q][k]) if join
                 else self.build.and_(seen[q][k], self.build.not_(inner[0][q][k])) for k in places]
                for q in places
            ]  # fmt: skip
        keys, queries = self.found[node.keys], self.found[node.queries]
        all_keys, all_queries = (self.program.values[own] for own in (node.keys, node.queries))
        table = truth_table(node, all_keys, all_queries, self.program.name)
        rows, columns = (
            {value: number for number, value in enumerate(own)} for own in (all_keys, all_queries)
        )
        return [
            [
                self.build.and_(
                    seen[q][k],
                    self._any(
                        [
                            self.build.and_(wire, other)
                            for key, wire in keys[k].items()
                            for query, other in queries[q].items()
                            if table[rows[key], columns[query]]
                        ]
                    ),
                )
                for k in places
            ]
            for q in places
        ]
