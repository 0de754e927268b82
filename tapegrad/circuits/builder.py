"""Growing a circuit gate by gate, with constant folding and structural hashing."""

import numpy as np

from tapegrad.circuits.model import Circuit, Gate

Wire = int
"""A wire while the circuit grows: inputs are numbered -1, -2, ..., gates 0, 1, ..."""


class CircuitBuilder:
    """Adds gates and gives each a wire. With `simplify` (the default) equal gates are shared and
    constants, double negations and repeated operands fold away; without it, gates stay as written.

        build = CircuitBuilder()
        a, b = build.input("a"), build.input("b")
        build.output("sum", build.xor(a, b))
        circuit = build.circuit()
    """

    def __init__(self, *, simplify: bool = True) -> None:
        self._simplify = simplify
        self._inputs: list[str] = []
        self._outputs: list[tuple[str, Wire]] = []
        self._gates: list[tuple[Gate, Wire, Wire]] = []
        self._known: dict[tuple[Gate, Wire, Wire], Wire] = {}

    def input(self, name: str) -> Wire:
        """A new input."""
        self._inputs.append(name)
        return -len(self._inputs)

    def output(self, name: str, wire: Wire) -> None:
        """Names a wire as the next output."""
        self._outputs.append((name, wire))

    def constant(self, value: bool) -> Wire:
        """A wire that is always `value`."""
        return self._add(Gate.TRUE if value else Gate.FALSE, 0, 0)

    def not_(self, a: Wire) -> Wire:
        """1 - a."""
        return self.gate(Gate.NOT, a)

    def and_(self, a: Wire, b: Wire) -> Wire:
        """1 if both are 1."""
        return self.gate(Gate.AND, a, b)

    def or_(self, a: Wire, b: Wire) -> Wire:
        """1 if one is 1."""
        return self.gate(Gate.OR, a, b)

    def xor(self, a: Wire, b: Wire) -> Wire:
        """1 if they differ."""
        return self.gate(Gate.XOR, a, b)

    def where(self, condition: Wire, a: Wire, b: Wire) -> Wire:
        """`a` if the condition is 1, else `b`."""
        if self._simplify and a == b:
            return a
        return self.xor(b, self.and_(condition, self.xor(a, b)))

    def gate(self, kind: Gate, a: Wire = 0, b: Wire = 0) -> Wire:
        """Any gate; the value of the returned wire is that gate's, whether or not a gate was added."""
        if not self._simplify:
            return self._add(kind, a, b)
        return self._folded(kind, a, b)

    def _folded(self, kind: Gate, a: Wire, b: Wire) -> Wire:
        """Reduces the truth table of the gate by what is known of its operands: constants, negations and
        equality. What remains is a constant, an operand, its negation, or a two-input gate in a normal
        form (operands positive and in order where the table allows)."""
        if kind.arity == 0:
            return self._add(kind, 0, 0)
        if kind.arity == 1:
            b = a
        table = int(kind)
        known_a, known_b = self._constant_of(a), self._constant_of(b)
        if known_a is not None:
            table = table >> 2 if known_a else table & 3
            table |= table << 2
            table &= 15
        if known_b is not None:
            pick = (table >> 1 if known_b else table) & 0b0101
            table = pick | pick << 1
        if a == b:  # only the entries 00 and 11 can occur
            table = (0b1100 if table & 8 else 0) | (0b0011 if table & 1 else 0)
        inverse = self._gates[a] if a >= 0 else None
        other = self._gates[b] if b >= 0 else None
        if (inverse and inverse[0] is Gate.NOT and inverse[1] == b) or (
            other and other[0] is Gate.NOT and other[1] == a
        ):  # b = not a: only the entries 01 and 10 can occur
            table = (0b1100 if table & 4 else 0) | (0b0011 if table & 2 else 0)
        if table in (0b0000, 0b1111):
            return self._add(Gate(table), 0, 0)
        if table == 0b1100:
            return a
        if table == 0b1010:
            return b
        if table == 0b0011:
            return self._negated(a)
        if table == 0b0101:
            return self._negated(b)
        if a > b:
            a, b = b, a
        return self._add(Gate(table), a, b)

    def _negated(self, a: Wire) -> Wire:
        if a >= 0 and self._gates[a][0] is Gate.NOT:
            return self._gates[a][1]
        return self._add(Gate.NOT, a, 0)

    def _constant_of(self, a: Wire) -> bool | None:
        if a < 0:
            return None
        kind = self._gates[a][0]
        return (kind is Gate.TRUE) if kind.arity == 0 else None

    def _add(self, kind: Gate, a: Wire, b: Wire) -> Wire:
        key = (kind, a, b)
        if self._simplify and key in self._known:
            return self._known[key]
        self._gates.append(key)
        self._known[key] = len(self._gates) - 1
        return len(self._gates) - 1

    def circuit(self, name: str = "circuit") -> Circuit:
        """The circuit grown so far. With `simplify`, gates that reach no output are left out."""
        keep = self._reaching() if self._simplify else range(len(self._gates))
        number = {-1 - i: i for i in range(len(self._inputs))}
        for new, gate in enumerate(keep):
            number[gate] = len(self._inputs) + new
        kept = [self._gates[gate] for gate in keep]
        return Circuit(
            inputs=tuple(self._inputs),
            outputs=tuple(name for name, _ in self._outputs),
            kinds=np.array([kind for kind, _, _ in kept], np.uint8),
            left=np.array([number[a] if k.arity >= 1 else 0 for k, a, _ in kept], np.int32),
            right=np.array([number[b] if k.arity >= 2 else 0 for k, _, b in kept], np.int32),
            output_wires=np.array([number[wire] for _, wire in self._outputs], np.int32),
            name=name,
        )

    def _reaching(self) -> list[int]:
        reached = bytearray(len(self._gates))
        for _, wire in self._outputs:
            if wire >= 0:
                reached[wire] = 1
        for gate in range(len(self._gates) - 1, -1, -1):
            if reached[gate]:
                kind, a, b = self._gates[gate]
                if kind.arity >= 1 and a >= 0:
                    reached[a] = 1
                if kind.arity >= 2 and b >= 0:
                    reached[b] = 1
        return [gate for gate, seen in enumerate(reached) if seen]
