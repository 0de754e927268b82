"""Rewritings of circuits into circuits."""

from collections.abc import Sequence

from tapegrad.circuits.builder import CircuitBuilder, Wire
from tapegrad.circuits.model import ARITY, Circuit, Gate


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
    for kind, *operands in rows:
        wires.append(build.gate(Gate(kind), *(wires[wire] for wire in operands[: ARITY[kind]])))
    return [wires[wire] for wire in circuit.output_wires.tolist()]
