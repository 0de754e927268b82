"""Reachability: is there a tape on which a Turing machine is in state q after T steps, without having left
the window?

Random machines of four states and two symbols are unrolled for T steps. A machine's interpreter is run on
every tape of the window, at most 2^6, so that the states after T steps are known. A state that is among them
makes a question with a witness: the rarest, if there are several. One that is not, but that the machine is in
at some other time, makes one without.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from tapegrad._draws import Draws
from tapegrad._vnn.question import Question, point
from tapegrad.circuits import words
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import ARITY, Circuit
from tapegrad.errors import Refused
from tapegrad.lowering.configurations import ConfigurationWires, window_of
from tapegrad.machines.model import Configuration, TuringMachine
from tapegrad.machines.sampler import random_machine

SMALLEST, LARGEST = 3, 20_000
FEWEST, MOST = 3, 6
"""Cells of a window: short runs have few."""
SEEDS = 1 << 30
MACHINES = 300
"""So many are tried."""


def question(size: int, satisfiable: bool, draws: Draws) -> Question:
    """`size` steps."""
    cells = min(MOST, FEWEST + size // 4)
    for _ in range(MACHINES):
        machine = random_machine(draws.one_below(SEEDS), stay=False)
        code = ConfigurationWires(machine, window_of(machine, cells))
        ends, seen = Counter[str](), set[str]()
        tapes = dict[str, list[int]]()
        for number in range(1 << cells):
            bits = [number >> place & 1 for place in range(cells)]
            last = None
            for last in run(machine, code, bits, size):
                if last is not None:
                    seen.add(last)
            if last is not None:
                ends[last] += 1
                tapes.setdefault(last, bits)
        asked = sorted(ends, key=lambda own: (ends[own], own)) if satisfiable else sorted(seen - set(ends))
        if not asked or len(ends) < 2:
            continue
        state = asked[0]
        asked_circuit = circuit(code, state, size)
        gates = int((ARITY[asked_circuit.kinds] == 2).sum())
        if gates >= size:  # else what is asked folds to little or nothing
            break
    else:
        raise Refused(f"none of {MACHINES} machines has a state to ask for after {size} steps")
    about = {"machine": machine.name, "state": state, "steps": size, "cells": cells}
    if satisfiable:
        why = f"{ends[state]} of {1 << cells} tapes lead there, and one is kept"
        return Question(asked_circuit, point(tapes[state]), why, about)
    return Question(asked_circuit, None, f"none of {1 << cells} tapes leads there", about)


def run(
    machine: TuringMachine, code: ConfigurationWires, bits: list[int], steps: int
) -> Iterator[str | None]:
    """The state before every step and after the last, and None once the head has left the window. A machine
    that has halted stays where it is."""
    cells = [cell for (cell,) in code.window]
    tape = {cell: machine.alphabet[bit] for cell, bit in zip(cells, bits, strict=True) if bit}
    first, state = Configuration(machine.start_state, (tape,), (0,)), machine.start_state
    taken = 0
    for taken, now in enumerate(islice(machine.run(first), steps + 1)):  # noqa: B007
        state = now.state
        if now.heads[0] not in cells:
            yield None
            return
        yield state
    if taken < steps:
        yield state


def circuit(code: ConfigurationWires, state: str, steps: int) -> Circuit:
    """1 where the machine is in the state after so many steps, and its head in the window."""
    build = CircuitBuilder()
    wires = code.start(build)
    for _ in range(steps):
        wires = code.step(build, wires)
    inside = words.any_of(build, list(wires.heads[0].values()))
    build.output("there", build.and_(inside, wires.states[state]))
    return build.circuit(f"{code.machine.name} in {state} after {steps} steps")
