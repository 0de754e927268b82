"""Circuit to machine, the way the user chooses."""

from collections.abc import Callable
from functools import cache
from itertools import accumulate, product
from typing import Any

import numpy as np

from tapegrad.circuits.builder import simplified
from tapegrad.circuits.model import ARITY, Bits, Circuit, Gate
from tapegrad.errors import InputError, Refused
from tapegrad.lowering.schedule import (
    Moment,
    Operation,
    Place,
    Plan,
    Wire,
    quickest_plan,
    refuse_many_gates,
    wires_carried,
)
from tapegrad.machines.model import LEFT, RIGHT, STAY, Configuration, Rule, TuringMachine
from tapegrad.source import Rewriting

# Circuit to machine, specialised: the states are the program counter and the few wires in the control.
#
# The machine is oblivious: where the heads are depends on the time alone. It has two symbols, never stays,
# and never comes back to a state, which is what the targets trained by gradient descent need. Choose it for
# few steps: a gate costs the travel to operands that the control does not carry, which grows with the number
# of wires alive at a time and is often nothing. The price is a table that grows with the circuit: for each
# step as many states as the carried wires have values. So 4 wires are carried where the table stays small,
# and else as many as make steps times rules the least. Measured, with 4 wires carried (steps / states):
#
#                         1 tape            2 tapes          3 tapes
#     8-bit adder         17 / 48           8 / 16           6 / 18
#     ones of 15 bits     39 / 528          19 / 110         11 / 74
#     4 x 4 multiplier    182 / 2,886       49 / 603         28 / 326
#     8 x 8 multiplier    2,813 / 47,219    937 / 13,828     720 / 9,032
#
# For one machine, the same for every circuit, see `evaluator_machine`.


MOST_RULES = 1_000_000
FEW_RULES = 1 << 14
"""A table up to this size may have as many rules as it likes, if that saves steps."""
CARRIED = (4, 2, 1)
"""Wires in the control that are tried where none are asked for."""
DONE = "done"

Assignment = tuple[int, ...]
"""The bits of the wires in the control."""


def straight_line(circuit: Circuit, tapes: int = 1, carried: int | None = None) -> Rewriting:
    """The machine that evaluates this circuit. More tapes mean less travel and more rules; more wires
    carried in the control mean less travel and more states."""
    if tapes < 1 or (carried is not None and carried < 1):
        raise InputError("a straight-line machine has at least one tape and carries at least one wire")
    refuse_many_gates(circuit)
    _check_size(1 << min(tapes, 64), circuit.name)  # a rule for whatever the heads read, before any plan
    best, operations = _plan(simplified(circuit), tapes, carried)
    _check_size(best.steps << tapes, circuit.name)  # at least one state for each step
    machine = _machine(best, operations, tapes, circuit.name)
    return Rewriting(
        "straight-line machine",
        circuit,
        machine,
        lambda bits: _encode(circuit, machine, best.input_places, bits),
        _decoder(machine, best),
        relation=lambda: (_relation(best, operations), {}),
    )


def _plan(circuit: Circuit, tapes: int, carried: int | None) -> tuple[Plan, dict[Wire, Operation]]:
    """With so many wires carried, or with as many as suit the size of the table."""
    if carried is not None:
        return quickest_plan(circuit, tapes, carried)
    plans = []
    for wires in CARRIED:
        best, operations = quickest_plan(circuit, tapes, wires)
        held = wires_carried(_every_moment(best), operations)
        rules = sum(1 << len(own) for own in held) << tapes
        plans.append((rules * best.steps, best, operations))
        if rules <= FEW_RULES:
            return best, operations
    return min(plans, key=lambda found: found[0])[1:]


def _every_moment(best: Plan) -> list[Moment]:
    """Those in which nothing happens included."""
    nothing = Moment()
    return [best.moments.get(time, nothing) for time in range(best.steps)]


def _relation(best: Plan, operations: dict[Wire, Operation]) -> dict[str, Any]:
    """The plan: where the heads are at every time and in the end, the moments in which something happens,
    and where inputs and outputs lie."""
    return {
        "heads": [list(accumulate(_moves(visits, best.steps), initial=0)) for visits in best.visits],
        "moments": [[time, *moment.to_json(operations)] for time, moment in sorted(best.moments.items())],
        "inputs": [list(place) for place in best.input_places],
        "outputs": [list(place) for place in best.output_places],
    }


def _machine(best: Plan, operations: dict[Wire, Operation], tapes: int, name: str) -> TuringMachine:
    """One rule for each moment, bits in the control that can occur, and symbols under the heads."""
    moments = _every_moment(best)
    carried = wires_carried(moments, operations)
    moves = list(zip(*(_moves(visits, best.steps) for visits in best.visits), strict=True))
    rules: dict[tuple[str, tuple[str, ...]], Rule] = {}
    symbols = [(bits, tuple(map(str, bits))) for bits in product((0, 1), repeat=tapes)]
    possible: set[Assignment] = {()}
    for time, moment in enumerate(moments):
        following: set[Assignment] = set()
        for held in sorted(possible):
            state = _state(time, held)
            for read, names in symbols:
                values = dict(zip(carried[time], held, strict=True))
                values |= {wire: read[tape] for tape, wire in moment.reads.items()}
                for wire in moment.computes:
                    values[wire] = operations[wire].value(values)
                write = list(names)
                for tape, wire in moment.writes.items():
                    write[tape] = str(values[wire])
                after = tuple(values[wire] for wire in carried[time + 1])
                following.add(after)
                to = DONE if time == best.steps - 1 else _state(time + 1, after)
                rules[state, names] = Rule(tuple(write), moves[time], to)
        possible = following
        _check_size(len(rules), name)
    return TuringMachine(
        rules,
        start_state=_state(0, ()),
        blank="0",
        alphabet=("0", "1"),
        accept=frozenset({DONE}),
        name=f"{name} (straight-line)",
    )


def _check_size(rules: int, name: str) -> None:
    if rules > MOST_RULES:
        raise Refused(
            f"a straight-line machine for {name!r} needs more than {MOST_RULES:,} rules",
            advice="Carry fewer wires, or choose the evaluator machine, whose table is the same for all.",
        )


def _state(time: int, bits: Assignment) -> str:
    return f"{time}:{''.join(map(str, bits))}" if bits else str(time)


def _moves(visits: list[tuple[int, int]], steps: int) -> list[int]:
    """A head's moves: a detour of two for every two steps to spare, then straight to the next visit."""
    moves: list[int] = []
    for (time, cell), (next_time, next_cell) in zip(visits, [*visits[1:], (steps, None)], strict=True):
        distance = 0 if next_cell is None else next_cell - cell
        spare = next_time - time - abs(distance)
        moves += ([RIGHT, LEFT] * spare)[:spare]
        moves += [RIGHT if distance > 0 else LEFT] * abs(distance)
    return moves


def _encode(circuit: Circuit, machine: TuringMachine, places: list[Place], bits: Bits) -> Configuration:
    """The start configuration for one row of input bits."""
    if len(bits) != 1:
        raise InputError(f"a machine evaluates one row of bits at a time, not {len(bits)}")
    tapes: list[dict[int, str]] = [{} for _ in range(machine.tapes)]
    for (tape, cell), bit in zip(places, circuit.start(bits)[0], strict=True):
        if bit:
            tapes[tape][cell] = "1"
    return Configuration(machine.start_state, tuple(tapes), (0,) * machine.tapes)


def _decoder(machine: TuringMachine, best: Plan) -> Callable[[Configuration], Bits | None]:
    places = {machine.start_state: best.input_places, DONE: best.output_places}

    def decode(configuration: Configuration) -> Bits | None:
        if configuration.state not in places:
            return None
        cells = places[configuration.state]
        return np.array([[configuration.tapes[tape].get(cell) == "1" for tape, cell in cells]], bool)

    return decode


# Circuit to machine, universal: one fixed machine with two tapes that reads the gate list from its tape.
#
# Tape 0 holds the gates, in order, and is read once from left to right; tape 1 the values of the wires, the
# inputs to the left of cell 0, each gate's value in the next cell on the right. A gate is written as
#
#     its kind, a `<` for each cell from its own place to its farther operand, a `>` for each cell back to the
#     nearer one
#
# so the head on the values follows the arrows, takes both bits, runs on to the first blank cell and writes.
# A gate whose farther operand is d wires back takes 2 d + 1 steps, and 1 + d + (d - distance of the other)
# cells of tape 0. Outputs are copied to the end by identity gates.
#
# Choose it when the table must not depend on the circuit (24 states, whatever is evaluated): a net
# compiled from it runs every circuit, given as input. Choose `straight_line` for fewer steps: here an 8-bit
# adder takes 1,479 (and 911 cells of tape 0), an 8 x 8 multiplier 40,633 (31,356).


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
START = "start"


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


DATA_END = "<"
"""Where the data end and the gates begin, on the first tape of `data_evaluator`: no gate begins so."""


@cache
def data_evaluator() -> TuringMachine:
    """The machine for inputs that lie on the first tape, which it does not write on: from cell 1 on the
    inputs, `DATA_END`, and then the gates. It copies the inputs to the same cells of the second tape."""
    machine = evaluator()
    rules = dict(machine.rules)
    rules["ahead", (BLANK, BLANK)] = Rule((BLANK, BLANK), (RIGHT, RIGHT), "copy")
    rules["copy", (DATA_END, BLANK)] = Rule((DATA_END, BLANK), (RIGHT, STAY), START)
    for bit in BITS:
        rules["copy", (bit, BLANK)] = Rule((bit, bit), (RIGHT, RIGHT), "copy")
    return TuringMachine(
        rules, "ahead", BLANK, accept=machine.accept, name=machine.name, alphabet=machine.alphabet
    )


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
        rules,
        START,
        BLANK,
        accept=frozenset({DONE}),
        name="circuit evaluator",
        alphabet=(BLANK, *BITS),
    )


def _output(kind: Gate, x: str, y: str) -> str:
    return BITS[int(kind) >> (2 * int(x) + int(y)) & 1]


def circuit_machine(circuit: Circuit, machine: str = "straight-line", **options: Any) -> Rewriting:
    """`straight-line` (few steps, a table made for this circuit; options `tapes`, `carried`) or `evaluator`
    (one fixed table, the circuit on its tape)."""
    if machine == "straight-line":
        return straight_line(circuit, **options)
    if machine == "evaluator" and not options:
        return evaluator_machine(circuit)
    raise Refused(
        f"there is no way {machine!r} {'with these options ' if options else ''}from a circuit to a machine",
        advice="Choose straight-line (options tapes, carried) or evaluator.",
    )
