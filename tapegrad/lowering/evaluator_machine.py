"""Circuit to machine, universal: one fixed machine with two tapes that reads the gate list from its tape.

Tape 0 holds the gates, in order, and is read once from left to right; tape 1 the values of the wires, the
inputs to the left of cell 0, each gate's value in the next cell on the right. A gate is written as

    its kind, a `<` for each cell from its own place to its farther operand, a `>` for each cell back to the
    nearer one

so the head on the values follows the arrows, takes both bits, runs on to the first blank cell and writes.
A gate whose farther operand is d wires back takes 2 d + 1 steps, and 1 + d + (d - distance of the other)
cells of tape 0. Outputs are copied to the end by identity gates.

Choose it when the table must not depend on the circuit (24 states, whatever is evaluated): a net
compiled from it runs every circuit, given as input. Choose `straight_line` for fewer steps: here an 8-bit
adder takes 1,479 (and 911 cells of tape 0), an 8 x 8 multiplier 40,633 (31,356).
"""

from functools import cache
from itertools import product

import numpy as np

from tapegrad.circuits.model import ARITY, Bits, Circuit, Gate
from tapegrad.errors import InputError
from tapegrad.lowering.rewriting import Rewriting
from tapegrad.machines.model import LEFT, RIGHT, STAY, Configuration, Rule, TuringMachine

SIGNS = {
    Gate.FALSE: "0",
    Gate.TRUE: "1",
    Gate.ID: "=",
    Gate.NOT: "~",
    Gate.AND: "&",
    Gate.OR: "|",
    Gate.XOR: "^",
    Gate.NAND: "A",
    Gate.NOR: "O",
    Gate.XNOR: "E",
}
"""How each kind of gate is written: the usual signs, and letters for the negated ones (E: equal)."""

BLANK, BITS = "_", "01"
START, DONE = "start", "done"


def evaluator_machine(circuit: Circuit) -> Rewriting:
    """The universal machine, with this circuit on its first tape."""
    machine = evaluator()
    gates = gate_list(circuit)
    inputs, outputs = len(circuit.inputs), len(circuit.outputs)

    def encode(bits: Bits) -> Configuration:
        if len(bits) != 1:
            raise InputError(f"a machine evaluates one row of bits at a time, not {len(bits)}")
        values = {i - inputs: BITS[bit] for i, bit in enumerate(circuit.start(bits)[0].astype(int))}
        return Configuration(START, (dict(enumerate(gates)), values), (0, 0))

    def decode(configuration: Configuration) -> Bits | None:
        first = {START: -inputs, DONE: circuit.size}.get(configuration.state)
        if first is None:
            return None
        count = inputs if configuration.state == START else outputs
        values = configuration.tapes[1]
        return np.array([[values[cell] == "1" for cell in range(first, first + count)]], bool)

    return Rewriting("evaluator machine", circuit, machine, encode, decode)


def gate_list(circuit: Circuit) -> str:
    """What stands on the first tape: the gates, then a copy of every output."""
    first = len(circuit.inputs)
    gates = [
        (Gate(kind), (left, right)[: ARITY[kind]])
        for kind, left, right in zip(
            circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True
        )
    ]
    gates += [(Gate.ID, (wire,)) for wire in circuit.output_wires.tolist()]
    words = []
    for wire, (kind, operands) in enumerate(gates, first):
        farther, nearer = (min(operands), max(operands)) if operands else (wire, wire)
        words.append(SIGNS[kind] + "<" * (wire - farther) + ">" * (nearer - farther))
    return "".join(words)


@cache
def evaluator() -> TuringMachine:
    """The machine itself. It begins at a gate's sign, on the first blank cell of the values; what it does
    next depends on its state:

        walk k        follow `<` to the farther operand of a gate of kind k
        back k x      follow `>` to the nearer one, the farther being x
        put r         run right to the first blank cell, write r, and go on with the next gate
    """
    rules: dict[tuple[str, tuple[str, ...]], Rule] = {}
    signs = {sign: kind for kind, sign in SIGNS.items()}
    ends = [*signs, BLANK]  # what follows the arrows: the next gate, or nothing

    def rule(state: str, read: str, value: str, write: str, moves: tuple[int, int], to: str) -> None:
        rules[state, (read, value)] = Rule((read, write), moves, to)

    def begin(sign: str) -> str:
        kind = signs.get(sign)
        if kind is None:
            return DONE
        return f"put {sign}" if kind.arity == 0 else f"walk {sign}"

    for sign in ends:
        rule(START, sign, BLANK, BLANK, (RIGHT, STAY), begin(sign))
        for bit in BITS:
            rule(f"put {bit}", sign, BLANK, bit, (RIGHT, RIGHT), begin(sign))
            for value in BITS:
                rule(f"put {bit}", sign, value, value, (STAY, RIGHT), f"put {bit}")
    for sign, kind in signs.items():
        if kind.arity == 0:
            continue
        for value in (*BITS, BLANK):
            rule(f"walk {sign}", "<", value, value, (RIGHT, LEFT), f"walk {sign}")
        for end, x in product(ends, BITS):  # one operand, or twice the same
            rule(f"walk {sign}", end, x, x, (STAY, RIGHT), f"put {_output(kind, x, x)}")
        for x, y in product(BITS, BITS) if kind.arity == 2 else ():
            rule(f"walk {sign}", ">", x, x, (RIGHT, RIGHT), f"back {sign} {x}")
            rule(f"back {sign} {x}", ">", y, y, (RIGHT, RIGHT), f"back {sign} {x}")
            for end in ends:
                rule(f"back {sign} {x}", end, y, y, (STAY, RIGHT), f"put {_output(kind, x, y)}")
    return TuringMachine(
        rules, START, BLANK, accept=frozenset({DONE}), name="circuit evaluator", alphabet=(BLANK, *BITS)
    )


def _output(kind: Gate, x: str, y: str) -> str:
    return BITS[int(kind) >> (2 * int(x) + int(y)) & 1]
