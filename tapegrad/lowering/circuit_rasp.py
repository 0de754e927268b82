"""Circuit to RASP: a token for each input, and the gates at every position.

A head for each input brings its token to all positions, so that every position knows all inputs. Gates are
functions of two sequences, position by position. In the end position j keeps output j alone, and the others
are 0. So a transformer reads a row of bits and writes the outputs in a single pass.
"""

from collections.abc import Callable, Iterable
from itertools import product

import numpy as np

from tapegrad.circuits.builder import simplified
from tapegrad.circuits.model import ARITY, Bits, Circuit, Gate
from tapegrad.errors import InputError, Refused
from tapegrad.rasp.closing import Closing
from tapegrad.rasp.functions import Value
from tapegrad.rasp.nodes import Aggregate, Full, Indices, Select, Table, Tokens
from tapegrad.rasp.program import LONGEST, MOST_NODES, RaspProgram, State
from tapegrad.source import Rewriting

TOKENS = ("0", "1")
"""Inputs are words and outputs are numbers, so that one row is told from the other."""
BITS = (0, 1)


def circuit_rasp(circuit: Circuit) -> Rewriting:
    """The program that has the outputs at its first positions."""
    program = _program(simplified(circuit), circuit.name)
    inputs, outputs = len(circuit.inputs), len(circuit.outputs)

    def encode(bits: Bits) -> State:
        if len(bits) != 1:
            raise InputError(
                f"a program takes one row of bits, not {len(bits)}", advice="Give them one by one."
            )
        row = [TOKENS[bit] for bit in circuit.start(bits)[0].astype(int)]
        return tuple(row + [TOKENS[0]] * (program.length - inputs))

    def decode(state: State) -> Bits:
        row = [v == TOKENS[1] for v in state[:inputs]] if state[0] in TOKENS else state[:outputs]
        return np.array([row], bool)

    return Rewriting(
        "gates at every position", circuit, program, encode, decode, in_step=True, one_by_one=True
    )


def refuse_many_expressions(circuit: Circuit, name: str) -> None:
    """Refuses a circuit, without gates that are not needed, of which no program can be made."""
    length = max(1, len(circuit.inputs), len(circuit.outputs))
    expressions = circuit.size + 3 * len(circuit.inputs) + 2 * len(circuit.outputs) + 3
    if length > LONGEST or expressions > MOST_NODES:
        raise Refused(
            f"{name!r} would be a program of {expressions:,} expressions on {length:,} tokens, and the "
            f"limits are {MOST_NODES:,} and {LONGEST:,}",
            advice="Use the target relu, transformer or emulator, which take gates as they are.",
        )


def _program(circuit: Circuit, name: str) -> RaspProgram:
    refuse_many_expressions(circuit, name)
    length = max(1, len(circuit.inputs), len(circuit.outputs))
    made = Closing(TOKENS, length, causal=False)
    tokens, indices = made.add(Tokens()), made.add(Indices())
    wires = []
    for place, title in enumerate(circuit.inputs):
        selected = made.add(Select(indices, made.add(Full(place)), "=="))
        brought = made.add(Aggregate(selected, tokens, TOKENS[0], mean=False), f"input {title}")
        wires.append(made.apply(_table(TOKENS.index, TOKENS), (brought,)))
    rows = zip(circuit.kinds.tolist(), circuit.left.tolist(), circuit.right.tolist(), strict=True)
    for kind, *operands in rows:
        used = tuple(wires[wire] for wire in operands[: ARITY[kind]])
        wires.append(made.apply(_GATES[kind], used) if used else made.add(Full(int(kind == Gate.TRUE))))
    parts = [
        made.apply(
            _table(lambda at, bit, own=own: bit * (at == own), range(length), BITS), (indices, wires[w])
        )
        for own, w in enumerate(circuit.output_wires.tolist())
    ]
    while len(parts) > 1:  # two by two, so that few layers are added
        pairs = [made.apply(_GATES[Gate.OR], (a, b)) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return made.program(parts[0] if parts else made.add(Full(0)), name)


def _table(function: Callable[..., Value], *values: Iterable[Value]) -> Table:
    return Table(tuple((case, function(*case)) for case in product(*values)))


def _truth_table(kind: Gate) -> Table:
    def value(*bits: int) -> int:
        a, b = bits if len(bits) == 2 else (bits[0], 0)
        return int(kind) >> (2 * a + b) & 1

    return _table(value, *[BITS] * kind.arity)


_GATES = {int(kind): _truth_table(kind) for kind in Gate if kind.arity}
