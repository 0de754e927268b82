"""A circuit computed again on typed bits, concrete or traced, as far as its inputs are known."""

from collections.abc import Iterable, Sequence

from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.circuits.reductions import concat
from tapegrad.circuits.types import Bit
from tapegrad.circuits.values import BitValue, IntValue

_OPPOSITE = {Gate.NAND: Gate.AND, Gate.NOR: Gate.OR, Gate.XNOR: Gate.XOR}


class Replay:
    """The wires of a circuit whose inputs come bit by bit, in order."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self._values: dict[int, BitValue] = {}
        self._inputs = iter(range(len(circuit.inputs)))
        rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
        self._waiting = list(enumerate(rows, len(circuit.inputs)))

    def know(self, bits: Iterable[BitValue]) -> None:
        """Takes the next inputs, and computes what is known by them."""
        values, waiting = self._values, []
        # zip would take an input more than there are bits if it came first
        values.update((wire, bit) for bit, wire in zip(bits, self._inputs, strict=False))
        for wire, (kind, left, right) in self._waiting:
            operands = (left, right)[: ARITY[kind]]
            if all(own in values for own in operands):
                values[wire] = _gate(Gate(kind), *(values[own] for own in operands))
            else:
                waiting.append((wire, (kind, left, right)))
        self._waiting = waiting

    def outputs(self, first: int, count: int) -> list[BitValue]:
        """So many outputs from one on; all must be known."""
        return [self._values[wire] for wire in self.circuit.output_wires[first : first + count].tolist()]

    def word(self, first: int, count: int) -> IntValue:
        """The same as a number, the lowest bit first."""
        return concat(*self.outputs(first, count))


def _gate(kind: Gate, *bits: BitValue) -> BitValue:
    if kind.arity == 0:
        return Bit(int(kind is Gate.TRUE))
    if kind.arity == 1:
        return ~bits[0] if kind is Gate.NOT else bits[0]
    a, b = bits
    plain = {Gate.AND: a & b, Gate.OR: a | b, Gate.XOR: a ^ b}
    return plain[kind] if kind in plain else ~plain[_OPPOSITE[kind]]


def replayed(circuit: Circuit, bits: Sequence[BitValue]) -> list[BitValue]:
    """All outputs of a circuit."""
    replay = Replay(circuit)
    replay.know(bits)
    return replay.outputs(0, len(circuit.outputs))
