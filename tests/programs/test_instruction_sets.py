"""Instruction sets of one's own: twelve instructions that nothing in the package knows, and a machine that
people know, from one function each through every target that takes any."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.programs import instruction_sets
from tapegrad.programs.model import Effect, Machine, Memory, Program, ProgramState, Read, Write
from tapegrad.programs.recording import Recorded, Recording, machine_of, record
from tapegrad_check import check as checked
from tapegrad_check.folder import CheckError
from tests.check.forging import Saved
from tests.programs.toy_cpu import Toy, double, letter

TARGETS = ("transformer", "emulator", "relu")
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """What is registered in a test is forgotten after it."""
    monkeypatch.setattr(instruction_sets, "_registered", {"toy": Toy})


@cache
def little_man() -> ModuleType:
    """The example."""
    spec = importlib.util.spec_from_file_location("little_man", ROOT / "examples" / "little_man.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["little_man"] = module
    spec.loader.exec_module(module)
    return module


# The function, the recording of it, and the interpreter


def random_toys(count: int, seed: int) -> Iterator[tuple[Toy, ProgramState]]:
    """States in which the next instruction is mostly one that there is."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        machine = Toy(64, input=4, output=int(random.choice([1, 4])))
        memory = bytearray(random.integers(0, 64, 64, np.uint8).tolist())
        pc = int(random.integers(0, 70))
        if pc < 64:
            memory[pc] = int(random.integers(0, 13))
        written = int(random.integers(0, 3))
        state = ProgramState(
            pc,
            bytes(memory),
            input=bytes(random.integers(0, 3, 3, np.uint8).tolist()),
            taken=int(random.integers(0, 4)),
            output=bytes(range(written)),
            written=written,
            extra={
                "a": int(random.choice([0, 7, 255])),
                "sp": int(random.integers(0, 8)),
                "stack": tuple(random.integers(0, 64, 8).tolist()),
            },
        )
        yield machine, state


def by_hand(state: ProgramState) -> ProgramState:
    """The toy's manual, in plain Python."""
    ram, extra = bytearray(state.memory), dict[str, Any](state.extra)
    a, sp, stack = int(extra["a"]), int(extra["sp"]), list[int](extra["stack"])

    def at(address: int) -> int:
        return ram[address] if address < len(ram) else 0

    op, operand = at(state.pc), at((state.pc + 1) % 256)
    pc, trap, taken, output = (state.pc + 2) % 256, "", state.taken, state.output
    match op:
        case 0:
            pc, trap = state.pc, "end"
        case 1:
            a = at(operand)
        case 2 if operand < len(ram):
            ram[operand] = a
        case 3:
            a = (a + at(operand)) % 256
        case 4:
            a = (a - at(operand)) % 256
        case 5:
            a = operand
        case 6:
            pc = operand
        case 7:
            pc = operand if a == 0 else pc
        case 8 if taken < len(state.input):
            a, taken = state.input[taken], taken + 1
        case 9:
            output += bytes([a])
        case 10:
            stack[sp], sp, pc = pc, (sp + 1) % 8, operand
        case 11:
            sp = (sp - 1) % 8
            pc = stack[sp]
        case 2 | 8:
            pass
        case _:
            pc, trap = state.pc, "no such instruction"
    extra = {"a": a, "sp": sp, "stack": tuple(stack)}
    written = state.written + len(output) - len(state.output)
    return replace(
        state, pc=pc, memory=bytes(ram), trap=trap, taken=taken, output=output, written=written, extra=extra
    )


def test_interpreter_step_and_recording_do_what_the_manual_says():
    seen = set()
    for machine, state in random_toys(200, 1):
        wanted = by_hand(state)
        seen.add((machine.contents(state).memories["ram"] + [0] * 8)[state.pc])
        _, found = islice(machine.run(state), 2)
        assert found == wanted
        assert found.output == wanted.output
        assert machine.state(machine.after(machine.contents(state))) == wanted
        again = machine_of(record(machine))(machine.ram, machine.input, machine.output)
        assert isinstance(again, Recorded)
        assert again.state(again.after(again.contents(state))) == wanted
    assert seen >= set(range(13))


def test_a_recording_is_the_same_again_from_its_json_and_from_its_own_gates():
    recording = record(Toy(64))
    again = Recording.of_json("toy", 64, recording.form.to_json(), recording.arrays())
    assert again == recording
    assert record(machine_of(again)(64)) == recording
    assert machine_of(again) is machine_of(recording)
    assert record(Toy(32)) != recording


# Through the targets


@cache
def folder(target: str) -> Path:
    """The toy's program, as a net in a folder."""
    options = {"relu": {"instructions": 3, "input": 1, "output": 1}, "emulator": {"steps": 30, "input": 2}}
    program = letter() if target == "relu" else double()
    net = tg.compile(program, target, **options.get(target, {"steps": 30}))
    found = Path(mkdtemp(prefix="toy")) / target
    tg.save(net, found)
    return found


def machine_loaded(where: Path) -> Machine:
    source = tg.load(where).source
    assert isinstance(source, Program)
    return source.machine


@pytest.mark.parametrize("target", TARGETS)
def test_a_toy_through_save_load_run_verify_and_check_where_nobody_has_its_function(target, monkeypatch):
    where, word, printed = (folder(target), *(("", "A") if target == "relu" else ("ab", "aabb")))
    report = tg.check(where)
    assert report.code == 0
    assert any("the instruction set 'toy' is what the folder says" in line for line in report.statements)
    assert isinstance(machine_loaded(where), Toy)
    monkeypatch.setattr(instruction_sets, "_registered", {})
    net = tg.load(where)
    assert isinstance(machine_loaded(where), Recorded)
    assert net(word) == printed
    assert tg.verify(net, [(word.encode(),)]).agreed


def test_the_little_man_multiplies():
    module = little_man()
    tg.register(module.LittleMan)
    program = module.assembled(module.MULTIPLY, "multiply")
    *_, last = program.run(program.start(bytes([6, 7])))
    assert last.output == bytes([42])
    net = tg.compile(program, "transformer", steps=80)
    assert net(bytes([6, 7])) == "*"


def test_other_targets_refuse_with_a_reason():
    for target in ("decoder", "rcnn"):
        with pytest.raises(tg.TapegradError, match="'toy' do not become networks of the target " + target):
            tg.compile(double(), target)


# Who forges one


def test_a_folder_whose_instruction_set_is_another_is_refused(tmp_path):
    """A gate of the recording changed, with all sums renewed: the net takes other steps."""
    refused = 0
    for target in ("transformer", "emulator"):
        saved = Saved.of(folder(target))
        kinds = saved.arrays["source.kinds"]
        for gate in range(0, len(kinds), 68):
            forged = saved.copy()
            other = kinds.copy()
            other[gate] = {8: 14, 14: 8, 6: 9, 3: 12}.get(int(kinds[gate]), 8)
            if other[gate] == kinds[gate]:
                continue
            forged.arrays["source.kinds"] = other
            if target == "transformer":
                forged.config["net"]["machine"]["arrays"]["kinds"] = other.tolist()
            forged.write(tmp_path / "forged")
            try:
                assert checked(tmp_path / "forged").code != 0
            except CheckError:
                refused += 1
    assert refused >= 8


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"counter": 65}, "the bits of pc"),
        ({"word": 12}, "does not consist of words"),
        ({"traps": []}, "nothing stops a program"),
        ({"extra": {"pc": 8}}, "a name that is taken"),
        ({"changed": ["b"]}, "a register changes that there is not"),
        ({"writes": [3, 3]}, "written twice"),
        ({"writes": [2]}, "input is"),
        ({"groups": [[["rom", 1, 8]]]}, "a memory that there is not"),
        ({"groups": [[["ram", 3, 8]]]}, "the words of a port"),
        ({"takes": 1}, "yes or no"),
        ({"more": 1}, "other entries"),
    ],
)
def test_what_a_form_may_not_say(change, what, tmp_path):
    saved = Saved.of(folder("transformer"))
    saved.config["source"]["machine"]["instruction"] |= change
    saved.write(tmp_path / "forged")
    with pytest.raises(CheckError, match=what):
        checked(tmp_path / "forged")
    with pytest.raises(tg.TapegradError):
        tg.load(tmp_path / "forged")


def test_ports_that_ask_for_what_is_read_later_are_refused(tmp_path):
    saved = Saved.of(folder("transformer"))
    instruction = saved.config["source"]["machine"]["instruction"]
    instruction["groups"] = [[port for group in instruction["groups"] for port in group]]
    saved.config["net"]["machine"]["instruction"]["groups"] = instruction["groups"]
    saved.write(tmp_path / "forged")
    with pytest.raises(CheckError, match="depends on what it reads later"):
        checked(tmp_path / "forged")


# Who writes one that is none


@dataclass(frozen=True)
class Wrong(Toy):
    """Something that cannot be an instruction set, by its number."""

    kind: ClassVar[str] = "wrong"
    which: ClassVar[int] = 0

    def instruction(self, registers):
        (held,) = yield (Read("rom" if self.which == 0 else "ram", registers["pc"]),)
        if self.which == 1:
            return Effect({"b": held}, [])
        if self.which == 2:
            return Effect({"a": registers["sp"]}, [])
        if self.which == 3:
            return Effect({}, [Write("ram", registers["pc"] + 1, held, held)])
        return Effect({}, [], puts=(held[0], held[:4]))


@pytest.mark.parametrize(
    ("which", "what"),
    [(0, "reads 'rom'"), (1, "sets 'b'"), (2, "of 3 bits"), (3, "where it has not read"), (4, "4 bits")],
)
def test_mistakes_are_named(which, what, monkeypatch):
    monkeypatch.setattr(Wrong, "which", which)
    record.cache_clear()
    with pytest.raises(tg.TapegradError, match=what):
        record(Wrong(64))


def test_names_that_are_taken():
    for kind, extra in (("rv32im", {}), ("", {}), ("mine", {"taken": Memory(8, 8)}), ("toy", {})):
        other = type("Other", (Machine,), {"kind": kind, "traps": ("end",), "extra": extra})
        with pytest.raises(tg.TapegradError):
            tg.register(other)


def test_a_stranger_runs_the_folder_from_the_command_line():
    command = [sys.executable, "-m", "tapegrad.cli", "run", str(folder("transformer")), "--input", "xy"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert "xxyy" in done.stdout
