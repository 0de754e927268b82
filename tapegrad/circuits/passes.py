"""Rewritings of circuits into circuits."""

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import ARITY, Circuit, Gate


def simplified(circuit: Circuit) -> Circuit:
    """The same function of the same inputs: equal gates shared, constants and double negations folded
    away, gates that reach no output left out. Gate by gate through a builder that does all this."""
    build = CircuitBuilder()
    wires = [build.input(name) for name in circuit.inputs]
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for kind, *operands in rows:
        wires.append(build.gate(Gate(kind), *(wires[wire] for wire in operands[: ARITY[kind]])))
    for name, wire in zip(circuit.outputs, circuit.output_wires.tolist(), strict=True):
        build.output(name, wires[wire])
    return build.circuit(circuit.name)
