"""How the papers' commands attach to the command line, and `tapegrad claims` as a user meets it."""

import json
import subprocess
import sys
from importlib.metadata import EntryPoints
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tapegrad
from tapegrad import cli
from tapegrad.cli import app
from tapegrad.errors import InputError
from tapegrad_papers import commands as command
from tapegrad_papers import ledger
from tapegrad_papers.commands import PAPERS
from tapegrad_papers.ledger import holds

runner = CliRunner()


BLOCKED = "import sys; sys.modules['tapegrad_papers'] = None; "
"""Makes every import of the papers' package fail."""


def in_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


def test_the_compiler_does_not_know_the_papers():
    sources = Path(tapegrad.__file__).parent.rglob("*.py")
    assert not [path for path in sources if "tapegrad_papers" in path.read_text()]


def test_the_compiler_runs_without_the_papers():
    words = ["tapegrad", "run", "increment", "--target", "tape", "--input", "1011", "--json"]
    done = in_python(BLOCKED + f"sys.argv = {words}; import tapegrad.cli; tapegrad.cli.main()")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verified"] is True


def test_the_commands_are_listed_without_loading_what_they_run():
    listed = runner.invoke(app, ["--help"]).stdout
    for name in ("claims", "margins", "restarts", "bench", "search"):
        assert f" {name} " in listed
    done = in_python(
        "import sys, tapegrad.cli\n"
        "assert not [name for name in sys.modules if name.startswith('tapegrad_papers')]\n"
        "try: tapegrad.cli.app(['--help'])\n"
        "except SystemExit: print('loaded', *{'jax', 'numba', 'tapegrad_papers'} & {*sys.modules})"
    )
    assert done.stdout.splitlines()[-1] == "loaded tapegrad_papers"


def test_without_entry_points_the_command_line_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(cli, "entry_points", lambda group: EntryPoints())
    assert runner.invoke(app, ["formats"]).exit_code == 0
    assert isinstance(found := runner.invoke(app, ["claims"]).exception, InputError)
    assert "pip install" in str(found)


@pytest.mark.parametrize("words", [["claims"], ["margins"], ["restarts"], ["bench", "parity"], ["bench"]])
def test_every_command_has_help(words):
    shown = runner.invoke(app, [*words, "--help"])
    assert shown.exit_code == 0
    assert " ".join(["Usage:", "tapegrad", *words]) in shown.stdout


def test_one_statement_as_a_table_and_as_json():
    table = runner.invoke(app, ["claims", "welper", "--only", "Lemma A.3"])
    assert table.exit_code == 0
    assert "Lemma A.3" in table.stdout
    assert "1 statements: 1 holds corrected" in table.stdout
    found = json.loads(runner.invoke(app, ["claims", "welper", "--only", "lemma a.3", "--json"]).stdout)
    assert [entry["statement"] for entry in found] == ["Lemma A.3"]
    assert found[0]["values"]["printed_condition"]["3/4"] == pytest.approx(1 / 3)


def test_a_failing_claim_gives_exit_code_1(monkeypatch):
    monkeypatch.setattr(ledger, "run_claim", lambda claim, long: holds({"no": False}, "a", "b"))
    done = runner.invoke(app, ["claims", "wei", "--only", "Lemma C"])
    assert done.exit_code == 1
    assert "FAILED" in done.stdout


def test_pages_are_written_for_whole_papers(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(ledger, "run_claim", lambda claim, long: holds({"yes": True}, "a", "b"))
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
    monkeypatch.setattr(ledger, "run_claim", lambda claim, long: holds({"yes": True}, "a", "b"))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be made a folder"):
        command.claims(paper="wei", write=tmp_path / "file")


@pytest.mark.parametrize("circuit", ["multiplier16", pytest.param("multiplier64", marks=pytest.mark.slow)])
def test_margins_without_an_attack(circuit):
    """Lower bounds alone, of nets of 1,400 and of 24,000 gates; and why such a net is not attacked."""
    done = runner.invoke(app, ["margins", circuit, "--target", "relu", "--no-attack", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert 0 < found["theorem_d_6"] < found["layerwise"] == found["lower"]
    assert found["upper"] is None
    assert found["not_attacked"] == "as asked"
    refused = runner.invoke(app, ["margins", circuit, "--target", "relu"])
    assert refused.exit_code == 0, refused.output
    assert "not attacked" in refused.stdout
    assert "too many parameters to attack" in " ".join(refused.stdout.split())


def test_an_input_without_an_attack_is_refused():
    words = ["margins", "adder4", "--target", "relu", "--no-attack", "--input", "1"]
    assert isinstance(found := runner.invoke(app, words).exception, InputError)
    assert "only an attack needs an input" in str(found)


def test_an_attack_says_how_far_it_is(monkeypatch):
    """The command hands the attack a report; it is told of every gradient step."""
    from tapegrad_papers.wei import margins

    told, right = [], margins.attack

    def attack(problem, *given, progress, **named):
        def both(gradients):
            told.append(gradients)
            progress(gradients)

        return right(problem, *given, progress=both, **named)

    monkeypatch.setattr(margins, "attack", attack)
    assert runner.invoke(app, ["margins", "parity2", "--target", "relu"]).exit_code == 0
    assert told == sorted(told)
    assert told[-1] > 20
