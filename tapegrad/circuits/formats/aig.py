"""And-inverter graphs, the model behind AIGER: AND gates over literals, where a literal may be negated."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tapegrad.circuits.clocked.model import SequentialCircuit, with_latches
from tapegrad.circuits.model import ARITY, Circuit, Gate

Literals = NDArray[np.int64]
"""Variable v is the literal 2 v, its negation 2 v + 1; variable 0 is the constant 0."""


@dataclass(frozen=True)
class Aig:
    """Inputs are the variables 1, 2, ..., the last of them latches; then comes one variable for each AND, in
    an order in which every AND reads earlier variables only. The last outputs are what latches become."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    left: Literals
    right: Literals
    output_literals: Literals
    resets: tuple[int, ...] = ()
    """Of each latch: 0, 1, or ANY."""


def circuit_of(aig: Aig, name: str = "circuit") -> Circuit | SequentialCircuit:
    """One gate for each AND: AND of two plain operands, NOR of two negated ones, and for one of each an
    AND that reads a NOT. There is one NOT for a variable, after its own gate, and only where needed."""
    inputs, ands = len(aig.inputs), len(aig.left)
    both_negated = (aig.left & aig.right & 1).astype(bool)
    both_negated &= (aig.left > 1) & (aig.right > 1)  # constants are gates of their own
    left, right = aig.left - both_negated, aig.right - both_negated

    used = np.zeros(2 * (1 + inputs + ands), bool)
    for literals in (left, right, aig.output_literals):
        used[literals] = True
    # The wire of every literal. Gates stand in the order of literals, inputs and unused NOTs left out,
    # and the two literals of variable 0 are the constants.
    is_gate = used.copy()
    is_gate[2 : 2 + 2 * inputs : 2] = False
    is_gate[2 + 2 * inputs :: 2] = True
    wire = inputs + np.cumsum(is_gate) - 1
    wire[2 : 2 + 2 * inputs : 2] = np.arange(inputs)

    literal = np.flatnonzero(is_gate)
    kinds = np.where(literal & 1, Gate.NOT, Gate.AND).astype(np.uint8)
    first, second = wire[literal & ~1], np.zeros(len(literal), np.int64)
    plain = np.flatnonzero((literal >= 2 + 2 * inputs) & (literal & 1 == 0))
    kinds[plain[both_negated]] = Gate.NOR
    first[plain], second[plain] = wire[left], wire[right]
    constant = literal < 2
    kinds[constant] = np.where(literal[constant] == 1, Gate.TRUE, Gate.FALSE)
    first[constant] = 0
    logic = Circuit(
        inputs=aig.inputs,
        outputs=aig.outputs,
        kinds=kinds,
        left=first.astype(np.int32),
        right=second.astype(np.int32),
        output_wires=wire[aig.output_literals].astype(np.int32),
        name=name,
    )
    return with_latches(logic, aig.resets)


def aig_of(source: Circuit | SequentialCircuit) -> Aig:
    """The same circuit of ANDs alone: NOT, identity and constants take none, XOR and XNOR three."""
    circuit = source.logic if isinstance(source, SequentialCircuit) else source
    left: list[int] = []
    right: list[int] = []
    variables = 1 + len(circuit.inputs)

    def and_(a: int, b: int) -> int:
        left.append(max(a, b))
        right.append(min(a, b))
        return 2 * (variables + len(left) - 1)

    literal = [2 * number + 2 for number in range(len(circuit.inputs))]
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for kind, i, j in rows:
        arity = ARITY[kind]
        a, b = literal[i] if arity else 0, literal[j] if arity == 2 else 0
        if arity == 0:
            literal.append(int(kind == Gate.TRUE))
        elif arity == 1:
            literal.append(a ^ (kind == Gate.NOT))
        elif kind in (Gate.XOR, Gate.XNOR):
            neither, both = and_(a ^ 1, b ^ 1), and_(a, b)
            literal.append(and_(neither ^ 1, both ^ 1) ^ (kind == Gate.XNOR))
        else:  # by De Morgan, OR and NOR are ANDs of negated operands
            flip = kind in (Gate.OR, Gate.NOR)
            literal.append(and_(a ^ flip, b ^ flip) ^ (kind in (Gate.OR, Gate.NAND)))
    return Aig(
        inputs=circuit.inputs,
        outputs=circuit.outputs,
        left=np.array(left, np.int64),
        right=np.array(right, np.int64),
        output_literals=np.array([literal[wire] for wire in circuit.output_wires.tolist()], np.int64),
        resets=source.resets if isinstance(source, SequentialCircuit) else (),
    )
