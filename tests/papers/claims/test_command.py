"""`tapegrad claims` as a user meets it: table, JSON, pages, exit codes, errors."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tapegrad.cli import app
from tapegrad.commands import claims as command
from tapegrad.errors import InputError
from tapegrad_papers.claims import running
from tapegrad_papers.claims.ledger import holds
from tapegrad_papers.claims.papers import PAPERS

runner = CliRunner()


def test_one_statement_as_a_table_and_as_json():
    table = runner.invoke(app, ["claims", "welper", "--only", "Lemma A.3"])
    assert table.exit_code == 0
    assert "Lemma A.3" in table.stdout
    assert "1 statements: 1 holds corrected" in table.stdout
    found = json.loads(runner.invoke(app, ["claims", "welper", "--only", "lemma a.3", "--json"]).stdout)
    assert [entry["statement"] for entry in found] == ["Lemma A.3"]
    assert found[0]["values"]["printed_condition"]["3/4"] == pytest.approx(1 / 3)


def test_a_failing_claim_gives_exit_code_1(monkeypatch):
    monkeypatch.setattr(running, "run_claim", lambda claim, long: holds({"no": False}, "a", "b"))
    done = runner.invoke(app, ["claims", "wei", "--only", "Lemma C"])
    assert done.exit_code == 1
    assert "FAILED" in done.stdout


def test_pages_are_written_for_whole_papers(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(running, "run_claim", lambda claim, long: holds({"yes": True}, "a", "b"))
    assert runner.invoke(app, ["claims", "--write", str(tmp_path / "pages")]).exit_code == 0
    names = sorted(path.name for path in (tmp_path / "pages").iterdir())
    assert names == sorted(f"{paper.name}.md" for paper in PAPERS if paper.claims)
    assert "## Theorem D.6" in (tmp_path / "pages" / "wei.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"paper": "turing"}, "no paper called 'turing'"),
        ({"paper": "wei", "only": "Lemma Z"}, "no statement contains 'Lemma Z'"),
        ({"only": "Lemma A", "write": Path("pages")}, "pages hold all statements"),
    ],
)
def test_requests_that_make_no_sense_are_refused_before_anything_runs(arguments, said):
    with pytest.raises(InputError, match=said):
        command.claims(**arguments)


def test_a_page_that_cannot_be_written_is_an_error(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(running, "run_claim", lambda claim, long: holds({"yes": True}, "a", "b"))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be made a folder"):
        command.claims(paper="wei", write=tmp_path / "file")
