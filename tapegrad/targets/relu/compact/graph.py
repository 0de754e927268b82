"""A circuit as ANDs and XORs over signed wires: constants folded away, equal gates shared, dead ones out.

A literal is twice the number of a node, plus one if it is negated. Node 0 is the constant 0, then come the
inputs, then the gates. A unit of the network can read a value negated at no cost (the weight changes its sign
and the bias takes it up), so negations need no gates here, and NOT, NAND, OR, NOR and XNOR none of their own.

Each node is the value of some wire of the circuit, or its negation: no rule makes a node that is not the
result for the wire at hand. So everything in the network can be named after a wire.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from tapegrad.circuits.model import Circuit

FALSE, TRUE = 0, 1


class Graph(NamedTuple):
    """Nodes in an order in which operands come first; those of inputs and of the constant are 0."""

    inputs: int
    left: Int[np.ndarray, " nodes"]
    right: Int[np.ndarray, " nodes"]
    is_xor: Bool[np.ndarray, " nodes"]
    holds: Int[np.ndarray, " nodes"]
    """The wire of the circuit that a node is, as a literal: twice the wire, plus one if it is negated."""
    outputs: Int[np.ndarray, " outputs"]
    """Literals."""


def graph_of(circuit: Circuit) -> Graph:
    """The circuit, gate by gate, without what reaches no output."""
    growing = _Growing(len(circuit.inputs))
    wires = list(range(2, 2 * len(circuit.inputs) + 2, 2))
    holds = [0, *range(0, 2 * len(circuit.inputs), 2)]
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    needed = circuit.needed()[len(circuit.inputs) :].tolist()
    for (kind, left, right), wanted in zip(rows, needed, strict=True):
        made = wanted and kind not in (0, 15)
        found = growing.gate(kind, wires[left], wires[right]) if made else kind & 1
        if found >> 1 == len(holds):
            holds.append(2 * len(wires) + (found & 1))
        wires.append(found)
    outputs = np.array([wires[wire] for wire in circuit.output_wires.tolist()], np.int64)
    return _needed(growing, holds, outputs)


class _Growing:
    """Nodes so far."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.left, self.right = [0] * (inputs + 1), [0] * (inputs + 1)
        self.is_xor = [False] * (inputs + 1)
        self._known: dict[tuple[int, int, bool], int] = {}

    def gate(self, kind: int, a: int, b: int) -> int:
        """The gate with this truth table, bit 2a + b."""
        if kind in (0b1100, 0b0011):
            return a ^ (kind & 1)
        if kind in (0b0110, 0b1001):
            return self.xor(a, b) ^ (kind & 1)
        if kind.bit_count() == 1:  # AND, NOR
            return self.and_(a ^ (kind & 1), b ^ (kind & 1))
        return self.and_(a ^ (kind == 0b1110), b ^ (kind == 0b1110)) ^ 1  # OR, NAND

    def and_(self, a: int, b: int) -> int:
        """1 if both are 1, by what their operands say if that is simpler."""
        if a > b:
            a, b = b, a
        if a <= TRUE or a >> 1 == b >> 1:
            return (FALSE, b)[a] if a <= TRUE else (FALSE if a != b else a)
        for one, other in ((a, b), (b, a)):
            if (found := self._inside(one, other)) is not None:
                return found
        if (found := self._both(a, b)) is not None:
            return found
        return self._shared(a, b, False)

    def _inside(self, one: int, other: int) -> int | None:
        """one AND other, where `one` is an operand of `other` or the negation of one."""
        node = other >> 1
        if node <= self.inputs:
            return None
        c, d = self.left[node], self.right[node]
        if self.is_xor[node]:
            if one >> 1 not in (c >> 1, d >> 1):
                return None
            # x and (x xor y): where x is 1, that is not y.
            rest = (d if one >> 1 == c >> 1 else c) ^ (other & 1)
            return self.and_(one, rest ^ 1 ^ (one & 1))
        if other & 1 == 0:
            if one in (c, d):
                return other
            return FALSE if one ^ 1 in (c, d) else None
        if one ^ 1 in (c, d):
            return one
        if one == c:
            return self.and_(one, d ^ 1)
        return self.and_(one, c ^ 1) if one == d else None

    def _both(self, a: int, b: int) -> int | None:
        """a AND b, where both are ANDs or negations of ANDs: a contradiction, or a XOR in disguise."""
        x, y = a >> 1, b >> 1
        if x <= self.inputs or y <= self.inputs or self.is_xor[x] or self.is_xor[y] or (a ^ b) & 1:
            return None
        p, q, r, s = self.left[x], self.right[x], self.left[y], self.right[y]
        opposite = {p ^ 1, q ^ 1} & {r, s}
        if a & 1:  # not (p and q), and not (not p and not q)
            return self.xor(p, q) if len(opposite) == 2 else None
        return FALSE if opposite else None

    def xor(self, a: int, b: int) -> int:
        """1 if they differ."""
        negated = (a ^ b) & 1
        a, b = sorted((a & ~1, b & ~1))
        if a == b:
            return negated
        if a == FALSE:
            return b ^ negated
        for one, other in ((a, b), (b, a)):
            if self.is_xor[other >> 1] and one in (self.left[other >> 1], self.right[other >> 1]):
                inner = self.left[other >> 1], self.right[other >> 1]
                return (inner[0] if inner[1] == one else inner[1]) ^ negated
        return self._shared(a, b, True) ^ negated

    def _shared(self, a: int, b: int, is_xor: bool) -> int:
        number = self._known.setdefault((a, b, is_xor), len(self.left))
        if number == len(self.left):
            self.left.append(a)
            self.right.append(b)
            self.is_xor.append(is_xor)
        return 2 * number


def _needed(growing: _Growing, holds: list[int], outputs: Int[np.ndarray, " outputs"]) -> Graph:
    """Without the nodes that reach no output any more."""
    first = growing.inputs + 1
    needed = bytearray(len(growing.left))
    for literal in outputs.tolist():
        needed[literal >> 1] = 1
    for node in range(len(needed) - 1, first - 1, -1):
        if needed[node]:
            needed[growing.left[node] >> 1] = needed[growing.right[node] >> 1] = 1
    needed[:first] = b"\1" * first
    keep = np.flatnonzero(np.frombuffer(needed, bool))
    number = np.zeros(len(needed), np.int64)
    number[keep] = np.arange(len(keep))
    left, right = (np.array(side, np.int64)[keep] for side in (growing.left, growing.right))
    return Graph(
        growing.inputs,
        (2 * number[left >> 1] + left % 2).astype(np.int32),
        (2 * number[right >> 1] + right % 2).astype(np.int32),
        np.array(growing.is_xor, bool)[keep],
        np.array(holds, np.int64)[keep].astype(np.int32),
        2 * number[outputs >> 1] + outputs % 2,
    )
