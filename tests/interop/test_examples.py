"""The examples of docs/exports.md, run as they stand."""

import runpy
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tapegrad.cli import app
from tapegrad.machines.library import ready

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCUMENTED = (EXAMPLES.parent / "docs" / "exports.md").read_text()


@pytest.mark.parametrize("name", ["pytorch_tape.py", "transformer_lens_heads.py"])
def test_the_page_shows_the_examples(name):
    _, code = (EXAMPLES / name).read_text().rsplit('"""\n\n', 1)
    assert code in DOCUMENTED


def test_pytorch_runs_a_machine(capsys):
    pytest.importorskip("torch")
    runpy.run_path(str(EXAMPLES / "pytorch_tape.py"))
    shown = capsys.readouterr().out
    assert shown == "22 gradient steps, loss 0.5: the machine has halted with 5 ones\n"
    assert shown in DOCUMENTED


@pytest.mark.slow
def test_a_head_is_patched_and_the_machine_misreads(capsys, tmp_path, monkeypatch):
    pytest.importorskip("transformer_lens", exc_type=ImportError)
    example = EXAMPLES / "transformer_lens_heads.py"
    monkeypatch.chdir(tmp_path)
    command = next(line for line in example.read_text().splitlines() if line.startswith("tapegrad export"))
    result = CliRunner().invoke(app, command.split()[1:])
    assert result.exit_code == 0, result.output
    runpy.run_path(str(example))
    shown = capsys.readouterr().out.splitlines()
    words = " ".join(DOCUMENTED.split())  # the page breaks long lines
    assert all(" ".join(line.split()) in words for line in shown)
    assert shown[-1].endswith("the first token: sees:_")
    machine = ready("increment")
    seen = [machine.read(state)[0] for state in machine.run(machine.start("11"))]
    rows = [line.split() for line in shown if "sees:" in line and line.split()[0].isdigit()]
    assert [row[1] for row in rows] == [f"sees:{symbol}" for symbol in seen]
