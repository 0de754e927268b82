"""Growing a circuit gate by gate, with constant folding and structural hashing."""

from collections.abc import Sequence

import numpy as np

from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.errors import Refused, calling_line

Wire = int
"""A wire while the circuit grows: inputs are numbered -1, -2, ..., gates 0, 1, ..."""

_FALSE, _AND, _XOR, _OR = int(Gate.FALSE), int(Gate.AND), int(Gate.XOR), int(Gate.OR)
_NOR, _XNOR, _NOT, _NAND = int(Gate.NOR), int(Gate.XNOR), int(Gate.NOT), int(Gate.NAND)
_ID, _TRUE = int(Gate.ID), int(Gate.TRUE)
_SECOND, _NOT_SECOND = 0b1010, 0b0101  # the truth tables of b and of not b

# Where both operands are negations, the gate on the plain operands that does the same.
_WITHOUT_NEGATIONS = {_AND: _NOR, _NOR: _AND, _OR: _NAND, _NAND: _OR, _XOR: _XOR, _XNOR: _XNOR}
_ARITIES: list[int] = ARITY.tolist()


class CircuitBuilder:
    """Adds gates and gives each a wire. With `simplify` (the default) equal gates are shared and
    constants, double negations and repeated operands fold away; without it, gates stay as written.

        build = CircuitBuilder()
        a, b = build.input("a"), build.input("b")
        build.output("sum", build.xor(a, b))
        circuit = build.circuit()
    """

    def __init__(self, *, simplify: bool = True, most: int | None = None) -> None:
        self._simplify, self._most = simplify, most
        self._inputs: list[str] = []
        self._outputs: list[tuple[str, Wire]] = []
        self._gates: list[tuple[int, Wire, Wire]] = []
        self._known: dict[tuple[int, Wire, Wire], Wire] = {}
        self._constants: dict[Wire, bool] = {}
        self._negations: dict[Wire, Wire] = {}
        """Wires known to be each other's negation, both ways round."""
        self._inverted: dict[Wire, Wire] = {}
        """The operand of every NOT gate."""

    @property
    def size(self) -> int:
        """How many gates have been added."""
        return len(self._gates)

    def expect(self, gates: int, what: str) -> None:
        """Refuses so many more gates where the circuit would have more than it may, before they are added."""
        if self._most is not None and self.size + gates > self._most:
            raise Refused(
                f"{what} takes about {gates:,} gates, and a function has {self._most:,} at most"
                + (f", of which {self.size:,} are there already" if self.size > self._most // 100 else ""),
                where=calling_line(),
                advice="Use types of fewer bits: the gates grow with the square of their number.",
            )

    def input(self, name: str) -> Wire:
        """A new input."""
        self._inputs.append(name)
        return -len(self._inputs)

    def output(self, name: str, wire: Wire) -> None:
        """Names a wire as the next output."""
        self._outputs.append((name, wire))

    def constant(self, value: bool) -> Wire:
        """A wire that is always `value`."""
        wire = self._add(_TRUE if value else _FALSE, 0, 0)
        self._constants[wire] = bool(value)
        return wire

    def known(self, a: Wire) -> bool | None:
        """The value of a wire that is constant, None for any other."""
        return self._constants.get(a)

    def not_(self, a: Wire) -> Wire:
        """1 - a."""
        return self._negated(a) if self._simplify else self._add(_NOT, a, 0)

    def and_(self, a: Wire, b: Wire) -> Wire:
        """1 if both are 1."""
        return self._binary(_AND, a, b)

    def or_(self, a: Wire, b: Wire) -> Wire:
        """1 if one is 1."""
        return self._binary(_OR, a, b)

    def xor(self, a: Wire, b: Wire) -> Wire:
        """1 if they differ."""
        return self._binary(_XOR, a, b)

    def where(self, condition: Wire, a: Wire, b: Wire) -> Wire:
        """`a` if the condition is 1, else `b`: three gates, one where an operand is known."""
        if self._simplify:
            if a == b:
                return a
            if (known := self._constants.get(condition)) is not None:
                return a if known else b
            if a == condition or self._constants.get(a) is True:
                return self.or_(condition, b)
            if b == condition or self._constants.get(b) is False:
                return self.and_(condition, a)
            if self._constants.get(a) is False:
                return self.and_(self.not_(condition), b)
            if self._constants.get(b) is True:
                return self.or_(self.not_(condition), a)
        return self.xor(b, self.and_(condition, self.xor(a, b)))

    def gate(self, kind: Gate | int, a: Wire = 0, b: Wire = 0) -> Wire:
        """Any gate; the value of the returned wire is that gate's, whether or not a gate was added."""
        arity = _ARITIES[kind]
        if arity == 2:
            return self._binary(int(kind), a, b)
        if arity == 0:
            return self.constant(kind == _TRUE)
        if not self._simplify:
            return self._add(int(kind), a, 0)
        return a if kind == _ID else self._negated(a)

    def _binary(self, table: int, a: Wire, b: Wire) -> Wire:
        """A two-input gate. The hot path: nothing is known of the operands but, perhaps, the same gate."""
        if not self._simplify:
            return self._add(table, a, b)
        if a > b:  # every table here is symmetric
            a, b = b, a
        wire = self._known.get((table, a, b))
        if wire is not None:
            return wire
        constants, negations = self._constants, self._negations
        if a == b or a in constants or b in constants or negations.get(a) == b:
            return self._reduced(table, a, b)
        inverted = self._inverted
        if inverted and (a in inverted or b in inverted):
            return self._with_negations(table, a, b)
        return self._add(table, a, b)

    def _reduced(self, table: int, a: Wire, b: Wire) -> Wire:
        """Reduces the truth table by what is known of its operands: constants, equality, negation. What
        remains is a constant, an operand or its negation."""
        known_a, known_b = self._constants.get(a), self._constants.get(b)
        if known_a is not None:
            row = table >> 2 if known_a else table & 3
            table = row | row << 2
        if known_b is not None:
            column = (table >> 1 if known_b else table) & 0b0101
            table = column | column << 1
        if a == b:  # only the entries 00 and 11 can occur
            table = (_ID if table & 8 else 0) | (_NOT if table & 1 else 0)
        elif self._negations.get(a) == b:  # only the entries 01 and 10 can occur
            table = (_ID if table & 4 else 0) | (_NOT if table & 2 else 0)
        if table in (_FALSE, _TRUE):
            return self.constant(table == _TRUE)
        if table in (_ID, _NOT):
            return a if table == _ID else self._negated(a)
        return b if table == _SECOND else self._negated(b)

    def _with_negations(self, table: int, a: Wire, b: Wire) -> Wire:
        """Takes NOT gates out of the operands where a gate without them does the same."""
        plain_a, plain_b = self._inverted.get(a), self._inverted.get(b)
        if plain_a is not None and plain_b is not None:
            return self._binary(_WITHOUT_NEGATIONS[table], plain_a, plain_b)
        if table in (_XOR, _XNOR):
            flipped = _XNOR if table == _XOR else _XOR
            return self._binary(flipped, a if plain_a is None else plain_a, b if plain_b is None else plain_b)
        return self._add(table, a, b)

    def _negated(self, a: Wire) -> Wire:
        """NOT, without a gate of its own where a complementary gate can take the place of a two-input one."""
        if a in self._negations:
            return self._negations[a]
        if a in self._constants:
            return self.constant(not self._constants[a])
        table, left, right = self._gates[a] if a >= 0 else (_ID, 0, 0)
        if a >= 0 and _ARITIES[table] == 2:
            wire = self._add(table ^ 15, left, right)
        else:
            wire = self._add(_NOT, a, 0)
            self._inverted[wire] = a
        self._negations[a], self._negations[wire] = wire, a
        return wire

    def _add(self, table: int, a: Wire, b: Wire) -> Wire:
        key, wire = (table, a, b), len(self._gates)
        if self._simplify:
            wire = self._known.setdefault(key, wire)
        if wire == len(self._gates):
            self._gates.append(key)
        return wire

    def circuit(self, name: str = "circuit") -> Circuit:
        """The circuit grown so far. With `simplify`, gates that reach no output are left out."""
        inputs = len(self._inputs)
        if not self._gates:
            keep, gates = np.zeros(0, np.int64), np.zeros((0, 3), np.int64)
        else:
            keep = self._reaching() if self._simplify else np.arange(len(self._gates))
            gates = np.array(self._gates, np.int64)
        number = np.zeros(len(self._gates) + inputs, np.int64)  # gate g at g, input -1 - i at the end
        number[keep] = np.arange(inputs, inputs + len(keep))
        number[len(number) - inputs :] = np.arange(inputs)[::-1]
        kinds, left, right = gates[keep].T
        arity = ARITY[kinds]
        outputs = np.array([wire for _, wire in self._outputs], np.int64)
        return Circuit(
            inputs=tuple(self._inputs),
            outputs=tuple(name for name, _ in self._outputs),
            kinds=kinds.astype(np.uint8),
            left=np.where(arity >= 1, number[left] if len(number) else 0, 0).astype(np.int32),
            right=np.where(arity >= 2, number[right] if len(number) else 0, 0).astype(np.int32),
            output_wires=number[outputs].astype(np.int32),
            name=name,
        )

    def _reaching(self) -> np.ndarray:
        reached = bytearray(len(self._gates))
        for _, wire in self._outputs:
            if wire >= 0:
                reached[wire] = 1
        for gate in range(len(self._gates) - 1, -1, -1):
            if reached[gate]:
                table, a, b = self._gates[gate]
                arity = _ARITIES[table]
                if arity >= 1 and a >= 0:
                    reached[a] = 1
                if arity >= 2 and b >= 0:
                    reached[b] = 1
        return np.flatnonzero(np.frombuffer(reached, np.uint8))


# Rewritings of circuits into circuits.


def simplified(circuit: Circuit) -> Circuit:
    """The same function of the same inputs: equal gates shared, constants and double negations folded
    away, gates that reach no output left out. Gate by gate through a builder that does all this."""
    build = CircuitBuilder()
    outputs = copied(circuit, build, [build.input(name) for name in circuit.inputs])
    for name, wire in zip(circuit.outputs, outputs, strict=True):
        build.output(name, wire)
    return build.circuit(circuit.name)


def copied(circuit: Circuit, build: CircuitBuilder, inputs: Sequence[Wire]) -> list[Wire]:
    """The circuit's outputs, once its gates have been added to a circuit that grows, on these inputs."""
    wires = list(inputs)
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for kind, a, b in rows:
        arity = _ARITIES[kind]
        wires.append(build.gate(kind, wires[a] if arity else 0, wires[b] if arity == 2 else 0))
    return [wires[wire] for wire in circuit.output_wires.tolist()]
