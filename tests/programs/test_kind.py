"""Programs through every command: read, show, run, compile, save, check, verify, campaign."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad._sources import all_formats
from tapegrad._verify import default_inputs
from tapegrad.cli import app
from tapegrad.errors import BrokenNet, FormatError, InputError, Refused, SourceError
from tapegrad.programs.kind import PROGRAM
from tapegrad.programs.library import FIBONACCI, READY, SORT, random_rv32, random_subleq
from tapegrad.programs.model import Program
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq, read_subleq

EXAMPLES = Path(__file__).parents[2] / "examples" / "programs"
COUNT = """\
subleq 8 16
# Counts from -3 to 0, then ends.
loop: minus count ?
      zero count loop
      zero zero -1
minus: -1
count: -3
zero: 0
"""


def command(*words, code=0):
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, done.output
    return done.output


def read(text: str) -> Program:
    program = tg.read(text)
    assert isinstance(program, Program)
    return program


def test_read(tmp_path):
    assert read(COUNT) == read_subleq(COUNT.encode())
    assert read("9 -1 3 10 -1 6 0 0 -1 72 105").machine == Subleq(64, width=32)
    assert read(SORT).image == READY["rv32-sort"].build().image
    file = tmp_path / "sort.s"
    file.write_text(SORT)
    assert read(str(file)).image == READY["rv32-sort"].build().image
    for name in READY:
        assert read(name).name == name
    with pytest.raises(InputError, match="no file"):
        tg.read("missing.c")


def test_a_file_that_is_no_program_is_still_a_file(tmp_path):
    file = tmp_path / "library.c"
    file.write_text("int helper(int x) { return x + 1; }\n")
    with pytest.raises(
        FormatError, match=r"the text of .*library.c is in no known format. .* has a function `main`"
    ):
        tg.read(file)
    file.write_text("\n")
    with pytest.raises(FormatError, match=r"library\.c is empty"):
        tg.read(file)
    with pytest.raises(InputError, match="is a folder"):
        tg.read(tmp_path)


def test_main_may_stand_at_the_end_of_a_large_file():
    table = "static const int t[] = {" + "1, " * 50_000 + "};\n"
    for head in ("int main(void) {", "int main(int n, char **v) // as ever\n{", "main()\n{"):
        assert {known.name for known in all_formats() if known.detect((table + head).encode())} == {"C"}
    for text in ("main(\n" * 10**6, ";main(void);" * 10**6, "a " * 10**6):  # gone over once
        assert not any(known.detect(text.encode()) for known in PROGRAM.formats if known.name == "C")


@pytest.mark.parametrize("before", ["int f(void);", "int f(void) { return 2; } static ", "/* one line */ "])
def test_main_may_stand_in_any_place_of_a_line(before):
    detects = {
        known.name for known in all_formats() if known.detect(f"{before}int main(void) {{ }}".encode())
    }
    assert detects == {"C"}


def test_formats_know_their_own():
    """No other format takes a program for its own, and no program's format takes another's."""
    for format in PROGRAM.formats:
        if format.example:
            data = format.example.encode()
            taken = [other.name for other in all_formats() if other.detect(data)]
            assert taken[0] == format.name
    for file in EXAMPLES.glob("*.c"):
        assert next(other.name for other in all_formats() if other.detect(file.read_bytes())) == "C", (
            file.name
        )
    for other in all_formats():
        if other.example and other not in PROGRAM.formats:
            assert not any(format.detect(other.example.encode()) for format in PROGRAM.formats), other.name


def test_subleq_texts():
    program = read_subleq(b"subleq 16 20\nx: y y+1 ? # comment\ny: -1, 5; x-2")
    assert program.machine == Subleq(40, width=16)
    words = np.frombuffer(program.image, np.int16).tolist()
    assert words == [3, 4, 3, -1, 5, -2]
    for text, message in (
        ("subleq 9\n1 2 3", "8, 16 or 32 bits"),
        ("subleq 8 2\n1 2 3", "3 words, and its memory 2"),
        ("subleq 8\n300 0 0", "line 2, column 1"),
        ("subleq\na b c\na: 0\nbb: 1", "unknown label 'b'.*Did you mean bb"),
        ("subleq\na: 0 a: 1", "defined twice"),
        ("subleq\n", "no words"),
        ("subleq 32 999999999999\n1", "its memory 999,999,999,999"),
    ):
        with pytest.raises((FormatError, SourceError), match=message):
            read_subleq(text.encode())


def test_show():
    assert "addi t2, t2, -1" in command("show", FIBONACCI)
    assert "next:" in command("show", FIBONACCI)
    assert "rv32-sort" in json.loads(command("formats", "--json"))["ready"]


def test_run():
    done = json.loads(command("run", COUNT, "--target", "emulator", "--json"))
    assert done["verified"] is True
    assert done["output"]["trap"] == "end"
    assert done["output"]["exit_code"] == 0
    assert done["checked"]["states"] == done["steps"] + 1
    text = command("run", "subleq-echo", "--target", "emulator", "--engine", "fast", "--input", "ab")
    assert "prints      ab\n" in text
    assert "ended" in text


def test_run_of_an_instruction_set():
    """One step of SGD is one instruction of RV32IM, with input and output."""
    done = json.loads(
        command("run", "rv32-sort", "--target", "emulator", "--engine", "fast", "--input", "ba", "--json")
    )
    assert done["verified"] is True
    assert done["output"]["output"] == "ab"
    assert done["output"]["exit_code"] == 0


def test_endless_loops_stop_at_the_limit():
    text = command(
        "run", "subleq 8 16\nz z 0 z: 0", "--target", "emulator", "--steps", "5", "--engine", "fast", code=3
    )
    assert "stopped at the step limit" in text
    assert "running" in text


def test_traps_are_shown():
    text = command("run", "subleq 8 16\n99 0 0", "--target", "emulator", "--engine", "fast")
    assert "stopped: address outside memory, at 0x0" in text


def test_page(tmp_path):
    page = tmp_path / "page.html"
    command("show", COUNT, "--target", "emulator", "-o", str(page), "--set", "steps=11")
    assert "Memory" in page.read_text()


def test_save_check_verify(tmp_path):
    folder = tmp_path / "net"
    settings = ["--set", "steps=11", "--set", "input=8", "--set", "output=2"]
    command("compile", COUNT, "--target", "emulator", *settings, "-o", str(folder))
    command("check", str(folder))
    loaded = tg.load(folder)
    assert loaded.source == tg.read(COUNT)
    assert tg.verify(loaded, [(b"",)], engine="fast").agreed
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"entry": 0', '"entry": "x"'))
    with pytest.raises(BrokenNet):
        tg.load(folder)


def test_json():
    for program in (READY["rv32-sort"].build(), random_subleq(3), random_rv32(4)):
        data, arrays = PROGRAM.to_json(program)
        again = PROGRAM.from_json(json.loads(json.dumps(data)), arrays)
        assert again == program
        assert again.symbols == program.symbols


def test_views():
    for name, entry in READY.items():
        program = entry.build()
        view = PROGRAM.view(program)
        states = list(program.run(program.start(entry.example)))
        *_, (fields, _, row, memory) = map(view.frame, states)
        state = states[-1]
        assert fields["state"] in ("exit code 55", "exit code 0", "ended"), name
        assert len(view.panels) == 4
        assert row is not None
        assert memory.cells
        assert "\n" not in PROGRAM.state_text(program, state).splitlines()[0]
        assert PROGRAM.state_json(program, state)["output"] == state.output.decode()


def test_sizes_are_checked():
    with pytest.raises(Refused, match="takes 100 bytes, and its memory has 64"):
        Program("large", RV32(64), bytes(100))
    for wrong in (
        {"ram": 6},
        {"ram": 0},
        {"ram": 1 << 40},
        {"ram": 64, "output": 3},
        {"ram": 64, "input": 0},
    ):
        with pytest.raises(SourceError):
            RV32(**wrong)
    with pytest.raises(SourceError, match="addresses"):
        Subleq(128, width=8)
    program = READY["rv32-sort"].build()
    with pytest.raises(InputError, match="room for 64"):
        program.machine.contents(program.start(b"x" * 65))
    with pytest.raises(Refused, match="cells, more than"):
        tg.compile(Program("huge", RV32(1 << 22), b""), "emulator", steps=1)
    steps = tg.compile(program, "emulator").options["steps"]
    assert steps >= len(list(program.run(program.start(b"tapegrad")))) - 1


def test_states_know_the_end_of_their_output():
    first = READY["rv32-sort"].build().start(b"x")
    long = replace(first, output=b"abcdef", written=6)
    assert long == replace(first, output=b"ef", written=6)
    assert long != replace(first, output=b"df", written=6)
    assert long != replace(first, output=b"ef", written=5)
    assert long != first


def test_campaign():
    found = json.loads(
        command("campaign", "program", "-t", "emulator", "--count", "3", "--set", "steps=40", "--json")
    )
    assert found["mismatches"] == 0
    assert [row["agreed"] for row in found["rows"]] == [3]


def test_a_program_that_starts_between_two_instructions_is_refused() -> None:
    for entry in (1, 2, 3, 6):
        with pytest.raises(SourceError, match="between two instructions"):
            Program("p", RV32(64), bytes(8), entry)
    assert Program("p", RV32(64), bytes(8), 4).start().pc == 4


BRANCHES = """
        .equ __ram, 256
        la a1, place
        li a2, 1
        li a7, 63
        ecall
        beqz a0, none
        lbu t0, place
        li t1, 113
        beq t0, t1, quit
        li t1, 7
        beq t0, t1, bell
        li a0, 1
        j end
none:   li a0, 2
        j end
quit:   li a0, 3
        j end
bell:   li a0, 4
end:    li a7, 93
        ecall
place:  .word 0
"""


@pytest.mark.parametrize("steps", [20, 12])
def test_inputs_to_verify_with_reach_every_instruction(steps: int) -> None:
    """One byte decides where the program goes, and only three of them lead off the common way. Where the net
    has too few steps for one of these ways, the input is left out."""
    program = read(BRANCHES)
    net = tg.compile(program, "emulator", steps=steps, input=1, output=1)
    chosen, exhaustive = default_inputs(net, np.random.default_rng(0))
    chosen = list(chosen)
    assert not exhaustive
    assert all(len(word) <= 1 for (word,) in chosen)
    runs = [list(program.run(program.start(word))) for (word,) in chosen]
    reached = {state.pc for states in runs for state in states}
    if steps == 20:
        assert reached == set(range(0, program.symbols["place"], 4))
    else:
        assert all(len(states) <= steps + 1 for states in runs)
        assert program.symbols["none"] in reached
    assert tg.verify(net).inputs == len(chosen) == (4 if steps == 20 else 1)
