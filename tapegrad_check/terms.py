"""Boolean terms in a normal form: what is built from equal parts in equal ways has equal numbers.

A term is twice the number of a node, plus 1 if it is negated; 0 is false, 1 is true. Negations move out of
operands and results, constants and equal operands fold away, operands are in order. So two circuits that
differ in such things alone have the same terms, and equal terms are equal functions.
"""

from collections.abc import Sequence

from tapegrad_check.sources import Circuit

AND, OR, XOR = 0b1000, 0b1110, 0b0110
FALSE, TRUE = 0, 1


class Terms:
    """All terms met so far."""

    def __init__(self, inputs: int) -> None:
        self.nodes = 1 + inputs
        self.inputs = [2 * (1 + i) for i in range(inputs)]
        self.known: dict[tuple[int, int, int], int] = {}

    def gate(self, table: int, a: int, b: int) -> int:
        """Bit 2x + y of the table is the value where a is x and b is y."""
        if a & 1:
            a, table = a ^ 1, table >> 2 | (table & 3) << 2
        if b & 1:
            b, table = b ^ 1, (table & 0b1010) >> 1 | (table & 0b0101) << 1
        if a > b:
            a, b, table = b, a, table & 0b1001 | (table & 2) << 1 | (table & 4) >> 1
        if a == FALSE:  # only the entries for x = 0 count
            return _of_one(table & 3, b)
        if a == b:
            return _of_one(table & 1 | table >> 2 & 2, a)
        if table in (0b0000, 0b1111, 0b1010, 0b0101):
            return _of_one(table & 3, b)
        if table in (0b1100, 0b0011):
            return _of_one(table & 1 | table >> 1 & 2, a)
        negated = int(table.bit_count() == 3 or table == 0b1001)
        key = (15 ^ table if negated else table, a, b)
        if key not in self.known:
            self.known[key] = 2 * self.nodes
            self.nodes += 1
        return self.known[key] ^ negated

    def outputs(self, circuit: Circuit, inputs: Sequence[int]) -> list[int]:
        """The outputs of a circuit on these terms."""
        wires = list(inputs)
        rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
        for kind, left, right in rows:  # a gate of fewer operands does not depend on the wires it names
            wires.append(self.gate(kind, wires[left], wires[right]) if wires else int(kind == 15))
        return [wires[wire] for wire in circuit.output_wires.tolist()]

    def choices(self, condition: int, a: int, b: int) -> set[int]:
        """Terms for "a if the condition holds, else b"; there are several ways to write that."""
        different = self.gate(XOR, a, b)
        found = {self.gate(XOR, b, self.gate(AND, condition, different))}
        if condition in (FALSE, TRUE) or a == b:
            found.add(a if condition == TRUE else b)
        if a in (condition, TRUE):
            found.add(self.gate(OR, condition, b))
        if b in (condition, FALSE):
            found.add(self.gate(AND, condition, a))
        if a == FALSE:
            found.add(self.gate(AND, condition ^ 1, b))
        if b == TRUE:
            found.add(self.gate(OR, condition ^ 1, a))
        return found


def _of_one(table: int, a: int) -> int:
    """Bit x of the table is the value where a is x."""
    return (FALSE, a ^ 1, a, TRUE)[table]
