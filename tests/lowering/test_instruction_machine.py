"""Instruction sets of one's own on the tapes of a Turing machine, against their functions."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._compile import compile_for
from tapegrad.circuits import UInt
from tapegrad.errors import Refused, SourceError
from tapegrad.lowering import instruction_machine as lowering
from tapegrad.lowering.program_machine import program_machine
from tapegrad.machines.model import TuringMachine
from tapegrad.programs import instruction_sets
from tapegrad.programs.model import Effect, Machine, Memory, Program, ProgramState
from tapegrad.source import Rewriting
from tests.lowering.test_program_machine import Stepper
from tests.programs.odd_cpu import Odd, Tiny, tiny
from tests.programs.test_instruction_sets import little_man, random_toys
from tests.programs.toy_cpu import Toy, double


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """What is registered in a test is forgotten after it."""
    monkeypatch.setattr(instruction_sets, "_registered", {"toy": Toy, "odd": Odd, "tiny": Tiny})


def random_states(machine: Machine, count: int) -> Iterator[ProgramState]:
    """All registers and memories at random."""
    random = np.random.default_rng(0)

    def draw(width: int) -> int:
        return int(random.integers(0, 1 << width))

    for _ in range(count):
        further = {
            name: tuple(draw(of.width) for _ in range(of.words)) if isinstance(of, Memory) else draw(of.width)
            for name, of in machine.extra.items()
        }
        given = random.bytes(int(random.integers(4)))
        yield ProgramState(
            pc=draw(machine.counter.width),
            memory=random.bytes(machine.ram),
            registers=tuple(draw(machine.word) for _ in machine.first),
            input=given,
            taken=int(random.integers(len(given) + 1)),
            extra=further,
        )


def on_tapes(program: Program) -> tuple[Rewriting, Stepper]:
    way = program_machine(program)
    assert isinstance(way.after, TuringMachine)
    return way, Stepper(way.after)


def test_a_program_of_the_toy_does_after_every_instruction_what_its_function_does() -> None:
    program = double()
    way, stepper = on_tapes(program)
    *states, last = program.run(program.start(b"ab"))
    assert way.decode(way.encode(states[0])) == states[0]
    for before, expected in pairwise([*states, last]):
        found, _ = stepper.after(way, before)
        assert found is not None
        assert (found, found.output) == (expected, expected.output)
    assert last.trap == "end"


@pytest.mark.slow
def test_the_little_man_multiplies_on_tapes() -> None:
    module = little_man()
    program = module.assembled(module.MULTIPLY)
    way, stepper = on_tapes(program)
    for before, expected in pairwise(islice(program.run(program.start(bytes([6, 7]))), 16)):
        assert stepper.after(way, before)[0] == expected


def test_random_states_of_the_toy() -> None:
    machine = Toy(64)
    way, stepper = on_tapes(Program("toy", machine, b""))
    for _, state in random_toys(40, 1):
        before = replace(state, output=b"", written=0)
        *_, expected = islice(machine.run(before), 2)
        assert stepper.after(way, before)[0] == expected


def test_random_states_of_an_odd_instruction_set() -> None:
    """Exchanged registers, two words at once, words beyond the ends of all memories."""
    machine = Odd(4)
    way, stepper = on_tapes(Program("odd", machine, b""))
    traps = set()
    for before in random_states(machine, 80):
        *_, expected = islice(machine.run(before), 2)
        assert stepper.after(way, before)[0] == expected
        traps.add(expected.trap)
    assert traps == {"", "end", "read"}


@pytest.mark.parametrize("target", ["tape", "simplex"])
def test_a_tiny_instruction_set_is_trained_saved_and_checked(target: str, tmp_path) -> None:
    net = compile_for(tiny(), target, (b"",), 100_000)
    assert tg.verify(net, [(b"",)], engine="fast", steps=100_000, every=200).agreed
    tg.save(net, tmp_path / "net")
    loaded = tg.load(tmp_path / "net")
    assert loaded(b"") == "\x01\ufffd\x01"
    report = tg.check(tmp_path / "net")
    assert report.code == 0
    told = (
        "one instruction of the table is one of tiny" if target == "tape" else "between 4 pairs of vertices"
    )
    assert any(told in line for line in report.statements)
    assert any("the instruction set 'tiny' is what the folder says" in line for line in report.statements)


def test_a_table_that_would_be_too_large_is_refused_with_its_size(monkeypatch) -> None:
    monkeypatch.setattr(lowering, "MOST_STATES", 100)
    with pytest.raises(Refused, match=r"some \d{3} states, for \d+ gates of an instruction on 3 words of 9"):
        compile_for(Program("small", Tiny(3), b""), "tape", (b"",), 100)


class Named(Tiny):
    """Stops in a state that every table has."""

    kind = "named"
    traps = ("next instruction",)

    def instruction(self, registers):
        yield ()
        return Effect({"trap": UInt(1)(1)}, [])


def test_what_stops_a_program_has_a_name_of_its_own() -> None:
    with pytest.raises(SourceError, match="is called 'next instruction'"):
        program_machine(Program("named", Named(4), b""))
