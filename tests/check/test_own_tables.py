"""Tables of instruction sets that a folder tells, proved for all that tapes can hold; and altered ones."""

import random
from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest

from tapegrad.lowering.program_machine import program_machine
from tapegrad.machines.model import TuringMachine
from tapegrad.programs.model import Program
from tapegrad.source import Rewriting
from tapegrad_check.folder import NotProved
from tapegrad_check.instructions import execution
from tapegrad_check.on_tapes import layout
from tapegrad_check.on_tapes.own import own_table
from tapegrad_check.passes import tables
from tapegrad_check.sources import Machine
from tapegrad_check.sources import Program as Checked
from tests.check.test_one_instruction import altered
from tests.check.test_programs_on_tapes import checked, seen, table_of
from tests.lowering.test_instruction_machine import random_states
from tests.programs.odd_cpu import Odd, Tiny, tiny
from tests.programs.test_instruction_sets import little_man
from tests.programs.toy_cpu import double

ODD = Program("odd", Odd(4), b"")
PROGRAMS = {"tiny": tiny, "odd": lambda: ODD, "toy": double}


@cache
def of(name: str) -> tuple[Checked, Rewriting, Machine]:
    """A program as the checker has it, its way to a machine, and the machine."""
    program = PROGRAMS[name]()
    way = program_machine(program)
    return checked(program), way, machine_of(way)


def machine_of(way: Rewriting) -> Machine:
    assert isinstance(way.after, TuringMachine)
    return table_of(way.after).machine


@pytest.mark.parametrize("name", ["tiny", "odd", pytest.param("toy", marks=pytest.mark.slow)])
def test_a_table_is_proved_to_be_the_instruction_set(name: str) -> None:
    source, _, machine = of(name)
    assert own_table(source, machine) >= 2


@pytest.mark.slow
def test_that_of_the_little_man_is_proved() -> None:
    module = little_man()
    program = module.assembled(module.MULTIPLY)
    assert own_table(checked(program), machine_of(program_machine(program))) == 8


def test_states_are_laid_out_and_executed_as_the_compiler_does() -> None:
    source, way, _ = of("odd")
    for state in random_states(ODD.machine, 30):
        configuration = way.encode(state)
        tapes = layout.laid_out(source, seen(ODD, state))
        ones = [{cell for cell, symbol in tape.items() if symbol == "1"} for tape in configuration.tapes]
        assert tapes == ones
        assert layout.shown(source, configuration.state, tapes) == seen(ODD, state)
        *_, after = islice(ODD.machine.run(state), 2)
        assert execution.stepped(source, seen(ODD, state)).state == seen(ODD, after)


def test_the_table_of_another_instruction_set_is_not_proved() -> None:
    """One gate of the recording is another."""
    source, _, machine = of("tiny")
    own = source.instruction
    assert own is not None
    gates = [gate for gate, kind in enumerate(own.circuit.kinds) if kind in OTHER_KIND]
    assert len(gates) > 10
    for gate in gates:
        kinds = own.arrays["kinds"].copy()
        kinds[gate] = OTHER_KIND[kinds[gate]]
        other = replace(own, arrays={**own.arrays, "kinds": kinds})
        with pytest.raises(NotProved):
            own_table(replace(source, instruction=other), machine)


OTHER_KIND = {8: 14, 14: 8, 6: 9, 9: 6}


def test_nor_is_that_of_one_with_another_output() -> None:
    """An address, a register, a bit that changes, a byte: each in turn a bit of pc."""
    source, _, machine = of("tiny")
    own = source.instruction
    assert own is not None
    for place, wire in enumerate(own.arrays["output_wires"].tolist()):
        wires = own.arrays["output_wires"].copy()
        wires[place] = int(wire == 0)
        other = replace(own, arrays={**own.arrays, "output_wires": wires})
        with pytest.raises(NotProved):
            own_table(replace(source, instruction=other), machine)


class Keeping(Tiny):
    """Does not write."""

    def instruction(self, registers):
        effect = yield from super().instruction(registers)
        return effect._replace(writes=[])


def test_a_table_that_writes_more_is_not_proved() -> None:
    _, _, machine = of("tiny")
    with pytest.raises(NotProved, match="should not be"):
        own_table(checked(Program("keeping", Keeping(4), b"")), machine)


def test_nor_is_one_that_goes_beyond_a_smaller_memory() -> None:
    _, _, machine = of("tiny")
    with pytest.raises(NotProved, match="does not look for the end of memory"):
        own_table(checked(Program("smaller", Tiny(2), b"")), machine)


def test_no_altered_table_is_proved() -> None:
    """Rules that random states of the tiny instruction set use, each altered in three ways."""
    source, _, machine = of("tiny")
    table = tables.Table(machine)
    for state in islice(tables._random_states(source, np.random.default_rng(3)), 40):
        tapes, heads = layout.laid_out(source, state), [0] * 4
        after = table.instruction(layout.FETCH, tapes, heads, 1 << 14)
        assert after.state is not None
        tables._same(source, after.state, tapes, heads, execution.stepped(source, state).state, "then")
    draw = random.Random(7)
    for number, code in draw.sample(sorted(table.used), 5):
        case = machine.states[number], tuple(str(code >> tape & 1) for tape in range(4))
        for _, rule in altered(machine.rules[case], machine.states, draw):
            other = replace(machine, rules={**machine.rules, case: rule})
            with pytest.raises(NotProved):
                own_table(source, other)


def test_a_table_that_is_not_proved_is_tried(monkeypatch) -> None:
    source, _, machine = of("tiny")
    monkeypatch.setattr(tables, "TIMES_OF_OTHERS", 3)
    table = tables.Table(machine)
    assert tables.followed(source, table, b"", 1 << 16) == tables.Run(4, True, True)
    assert tables._one_by_one(source, table) == 3
