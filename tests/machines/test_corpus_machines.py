"""Every machine of the corpus, read and run as its published or independently measured run says."""

import csv
import os
from pathlib import Path

import pytest

from tapegrad.errors import FormatError
from tapegrad.machines import GridMachine, TuringMachine
from tapegrad.machines.compiled import run
from tapegrad.machines.formats import Loaded, read
from tapegrad.machines.formats.bbchallenge import read_list

CORPUS = Path(os.environ.get("TAPEGRAD_CORPUS") or "none") / "machines"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="TAPEGRAD_CORPUS does not point to a corpus")
QUICK = 50_000_000
"""Steps that a quick test may take: a fraction of a second."""


def rows(name: str) -> list[dict[str, str]]:
    path = CORPUS / name
    return list(csv.DictReader(path.open(newline="", encoding="utf-8"))) if path.is_file() else []


def runs_of(folder: str) -> list:
    return [pytest.param(row, id=row["file"]) for row in rows(f"{folder}/reference_runs.csv")]


def tape_text(loaded: Loaded, tape) -> str:
    """The tape from its first to its last non-blank cell."""
    span = range(min(tape), max(tape) + 1) if tape else ()
    return "".join(tape.get(cell, loaded.machine.blank) for cell in span)


@pytest.mark.parametrize("row", runs_of("turingmachine.io"))
def test_turingmachine_io(row):
    loaded = read((CORPUS / "turingmachine.io" / row["file"]).read_bytes())
    assert loaded.format == "turingmachine.io"
    machine = loaded.machine
    assert isinstance(machine, TuringMachine)
    assert "".join(loaded.input) == row["input"]
    assert len(machine.states) == int(row["states"])
    steps = int(row["steps_to_halt_or_cap"])
    result = run(machine, loaded.start(), steps if row["halted"] == "False" else None)
    assert loaded.counted_steps(result.steps, result.final) == steps
    assert str(result.halted) == row["halted"]
    assert result.final.state == row["final_state"]
    text = tape_text(loaded, result.final.tapes[0])
    # The tape of the endless machine is cut off in the table.
    assert text == row["final_tape"] if result.halted else text.startswith(row["final_tape"].rstrip())


def test_the_site_template_is_no_machine():
    with pytest.raises(FormatError, match="line 2"):
        read((CORPUS / "turingmachine.io" / "_template.yaml").read_bytes())


@pytest.mark.parametrize("row", runs_of("morphett"))
def test_morphett(row):
    loaded = read((CORPUS / "morphett" / row["file"]).read_bytes())
    assert loaded.format == "morphett"
    machine = loaded.machine
    assert isinstance(machine, TuringMachine)
    assert "".join(loaded.input) == row["input"].replace(" ", "_")
    cap = int(row["steps"]) if row["file"] == "turingsequence.txt" else None
    result = run(machine, loaded.start(), cap)
    assert loaded.counted_steps(result.steps, result.final) == int(row["steps"])
    assert result.final.state == row["final_state"]
    text = tape_text(loaded, result.final.tapes[0])
    assert text == row["final_tape"] if cap is None else text.startswith(row["final_tape"].rstrip("_"))


def check_busy_beaver(loaded: Loaded, steps: int, score: int) -> None:
    machine = loaded.machine
    assert isinstance(machine, TuringMachine)
    result = run(machine, loaded.start())
    assert loaded.counted_steps(result.steps, result.final) == steps
    assert len(result.final.tapes[0]) == score


@pytest.mark.parametrize("name", ["2x2", "2x3", "3x2", "4x2"])
def test_busy_beaver_lists(name):
    data = (CORPUS / "busy-beaver" / f"{name}.txt").read_bytes()
    published = [line.split() for line in data.decode().splitlines()]
    machines = list(read_list(data))
    assert len(machines) == len(published) >= 15
    for loaded, (_, outcome, steps, score) in zip(machines, published, strict=True):
        assert outcome == "Halt"
        check_busy_beaver(loaded, int(steps), int(score))


def champions() -> list:
    found = []
    for row in rows("busy-beaver/champions.csv"):
        if row["steps"].isdigit() and int(row["steps"]) < 10**10:
            marks = [] if int(row["steps"]) < QUICK else [pytest.mark.slow]
            found.append(pytest.param(row, id=row["machine"], marks=marks))
    return found


@pytest.mark.parametrize("row", champions())
def test_champions(row):
    check_busy_beaver(read(row["machine"]), int(row["steps"]), int(row["score"]))


def test_champions_that_nobody_can_run_load_and_start():
    others = [row for row in rows("busy-beaver/champions.csv") if not row["steps"].isdigit()]
    assert len(others) >= 4
    for row in others:
        machine = read(row["machine"]).machine
        assert isinstance(machine, TuringMachine)
        assert not run(machine, machine.start(), 100_000).halted


def turmites() -> list:
    return [
        pytest.param(row, id=f"{number}-{row['movement']}-{row['grid']}")
        for number, row in enumerate(rows("turmites/turmite_busy_beavers.csv"))
    ]


@pytest.mark.parametrize("row", turmites())
def test_turmites(row):
    loaded = read(row["spec"])
    machine = loaded.machine
    assert loaded.format == "golly"
    steps, nonzero = int(row["measured_steps"]), int(row["measured_nonzero"])
    if isinstance(machine, GridMachine):
        assert row["grid"] == "2D"
        on_grid = run(machine, machine.start())
        assert (on_grid.steps, on_grid.halted, len(on_grid.final.cells)) == (steps, True, nonzero)
    else:
        assert row["grid"] == "1D"
        on_line = run(machine, machine.start())
        assert (on_line.steps, on_line.halted, len(on_line.final.tapes[0])) == (steps, True, nonzero)
