"""The examples of docs/exports.md, run as they stand."""

import runpy
from pathlib import Path

import pytest

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


def test_transformer_lens_shows_the_heads(capsys):
    pytest.importorskip("transformer_lens", exc_type=ImportError)
    runpy.run_path(str(EXAMPLES / "transformer_lens_heads.py"))
    shown = capsys.readouterr().out.splitlines()
    words = " ".join(DOCUMENTED.split())  # the page breaks long lines
    assert all(" ".join(line.split()) in words for line in shown[:14])
    assert shown[-1].split() == ["22", "write", "1,", "right,", "enter", "Z", "2", "21"]
