"""Circuit to machine, specialised: the states are the program counter and the few wires in the control.

The machine is oblivious: where the heads are depends on the time alone. It has two symbols, never stays, and
never comes back to a state, which is what the targets trained by gradient descent need. Choose it for few
steps: a gate costs the travel to operands that the control does not carry, which grows with the number of
wires alive at a time and is often nothing. The price is a table that grows with the circuit: for each step
as many states as the carried wires have values. Measured, with 4 wires carried (steps / states):

                        1 tape            2 tapes          3 tapes
    8-bit adder         17 / 48           8 / 16           6 / 18
    ones of 15 bits     39 / 528          19 / 110         11 / 74
    4 x 4 multiplier    182 / 2,886       49 / 603         28 / 326
    8 x 8 multiplier    2,813 / 47,219    937 / 13,828     720 / 9,032

For one machine, the same for every circuit, see `evaluator_machine`.
"""

from collections.abc import Callable
from itertools import product

import numpy as np

from tapegrad.circuits.model import Bits, Circuit
from tapegrad.circuits.passes import simplified
from tapegrad.errors import InputError, Refused
from tapegrad.lowering.operations import quickest_plan, wires_carried
from tapegrad.lowering.rewriting import Rewriting
from tapegrad.lowering.schedule import Moment, Operation, Place, Plan, Wire
from tapegrad.machines.model import LEFT, RIGHT, Configuration, Rule, TuringMachine

MOST_RULES = 1_000_000
DONE = "done"

Assignment = tuple[int, ...]
"""The bits of the wires in the control."""


def straight_line(circuit: Circuit, tapes: int = 1, carried: int = 4) -> Rewriting:
    """The machine that evaluates this circuit. More tapes mean less travel and more rules; more wires
    carried in the control mean less travel and more states."""
    if tapes < 1 or carried < 1:
        raise InputError("a straight-line machine has at least one tape and carries at least one wire")
    best, operations = quickest_plan(simplified(circuit), tapes, carried)
    _check_size(best.steps << tapes, circuit.name)  # at least one state for each step
    machine = _machine(best, operations, tapes, circuit.name)
    return Rewriting(
        "straight-line machine",
        circuit,
        machine,
        lambda bits: _encode(circuit, machine, best.input_places, bits),
        _decoder(machine, best),
    )


def _machine(best: Plan, operations: dict[Wire, Operation], tapes: int, name: str) -> TuringMachine:
    """One rule for each moment, bits in the control that can occur, and symbols under the heads."""
    nothing = Moment()
    moments = [best.moments.get(time, nothing) for time in range(best.steps)]
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
