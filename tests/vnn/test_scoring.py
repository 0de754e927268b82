"""Scores: tools that are right, wrong, slow, greedy, broken or not there each give a row."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tapegrad._limits import run_limited
from tapegrad._vnn.folder import Plan, make, opened
from tapegrad._vnn.report import by_size
from tapegrad._vnn.scoring import Limits, score
from tapegrad.cli import app
from tapegrad.errors import InputError, TapegradError

pytestmark = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="limits need /proc")
MIB = 1 << 20

KNOWING = """
import json, sys
onnx, vnnlib, seconds, result = sys.argv[1:5]
folder, name = onnx.split("/onnx/")[0], onnx.split("/")[-1][:-5]
lines = map(json.loads, open(folder + "/answers.jsonl"))
entry = next(line for line in lines if line["name"] == name)
answer, witness = entry["answer"], entry["witness"] or []
{change}
with open(result, "w") as file:
    print(answer, *(f"(X_{{i}} {{x}})" for i, x in enumerate(witness)), sep="\\n", file=file)
"""
"""A tool that knows the answers, and does something else with them."""

CHANGES = {
    "": ("right", "right", ""),
    "witness = []": ("right", "right", ""),
    "answer = 'unsat' if answer == 'sat' else 'sat'": ("wrong", "wrong", "and the answer is"),
    "witness = [0.5 for x in witness]": ("wrong", "right", "its input gives"),
    "witness = [float(x) + 2 for x in witness]": ("wrong", "right", "outside the box"),
    "witness = witness[1:]": ("wrong", "right", "a number for every X"),
    "answer = 'unknown'": ("unknown", "unknown", ""),
    "answer = 'timeout'": ("timeout", "timeout", ""),
    "answer = 'violated?'": ("crash", "crash", "it answered 'violated?'"),
    "answer = ''; witness = []": ("crash", "crash", "exit code 0: nothing was printed"),
    "print('x' * 9999); 1 / 0": ("crash", "crash", "exit code 1: ZeroDivisionError"),
    "import os; os.abort()": ("crash", "crash", "exit code -6"),
}


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("vnn") / "instances"
    make(Plan(("robustness",), (40,), 2), folder)
    assert {entry["answer"] for entry in opened(folder)[1]} == {"sat", "unsat"}
    return folder


def scored(folder: Path, tmp_path: Path, script: str, limits: Limits | None = None) -> dict[str, Any]:
    """Rows by their answers."""
    (tmp_path / "tool.py").write_text(script)
    command = f"{sys.executable} {tmp_path / 'tool.py'}"
    found = score(folder, f"tool-{tmp_path.name}", limits or Limits(20, 4096 * MIB), command=command)
    return {row["answer"]: row for row in found["rows"]}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_tool_says_is_compared(instances: Path, tmp_path: Path, change: str) -> None:
    on_sat, on_unsat, reason = CHANGES[change]
    rows = scored(instances, tmp_path, KNOWING.format(change=change))
    assert (rows["sat"]["outcome"], rows["unsat"]["outcome"]) == (on_sat, on_unsat)
    assert reason in rows["sat"]["reason"]


def test_a_tool_that_does_not_end_is_ended(instances: Path, tmp_path: Path) -> None:
    """It heeds no signal, works in a process of its own, and that is ended too."""
    child = tmp_path / "child"
    script = f"""
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
number = os.fork()
if number:
    open({str(child)!r}, "w").write(str(number))
while True:
    pass
"""
    rows = scored(instances, tmp_path, script, Limits(0.3, 4096 * MIB))
    assert {row["outcome"] for row in rows.values()} == {"timeout"}
    assert all(row["seconds"] >= 0.3 for row in rows.values())
    assert not _runs(child.read_text())


def test_a_tool_that_waits_is_ended(tmp_path: Path) -> None:
    ended = run_limited([sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.2, memory=4096 * MIB)
    assert (ended.code, ended.stopped) == (None, "time")


SCORING = """
import sys
from tapegrad._limits import run_limited
run_limited([sys.executable, "-c", sys.argv[1]], seconds=600, memory=1 << 32)
"""


def test_a_tool_ends_with_who_started_it_killed_outright(tmp_path: Path) -> None:
    started = tmp_path / "started"
    tool = (
        f"import os, time; os.fork(); open({str(started)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(600)"
    )
    scoring = subprocess.Popen([sys.executable, "-c", SCORING, tool])
    while scoring.poll() is None and not (started.exists() and len(started.read_text().split()) == 2):
        time.sleep(0.02)
    assert scoring.poll() is None
    scoring.kill()
    scoring.wait()
    for _ in range(1000):
        if not any(_runs(number) for number in started.read_text().split()):
            return
        time.sleep(0.02)
    pytest.fail("the tool is still there")


def _runs(number: str) -> bool:
    status = Path(f"/proc/{number}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] not in "ZX"


def test_a_tool_that_takes_too_much_memory(instances: Path, tmp_path: Path) -> None:
    script = "import time; taken = bytearray(b'x') * (300 << 20); time.sleep(60)"
    rows = scored(instances, tmp_path, script, Limits(20, 100 * MIB))
    assert {row["outcome"] for row in rows.values()} == {"crash"}
    assert "MiB of memory" in rows["sat"]["reason"]


def test_a_command_that_is_not_there(instances: Path) -> None:
    found = score(instances, "nothing", Limits(5, 1000 * MIB), command="/no/such/tool")
    assert [row["outcome"] for row in found["rows"]] == ["crash", "crash"]
    assert "/no/such/tool cannot be run" in found["rows"][0]["reason"]


def test_a_tool_that_is_absent_names_its_package(instances: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tapegrad._vnn.scoring.installed", lambda package, python: None)
    found = score(instances, "never2", Limits(5, 1000 * MIB))
    assert {(row["outcome"], row["reason"]) for row in found["rows"]} == {("absent", "pip install pynever")}


def test_a_module_that_a_tool_lacks_is_named(instances: Path, tmp_path: Path) -> None:
    """And asked for again the next time, once it may be there."""
    script = tmp_path / "tool.py"
    script.write_text("import no_such_module")
    found = score(instances, "lacking", Limits(5, 1000 * MIB), command=f"{sys.executable} {script}")
    reasons = {(row["outcome"], row["reason"]) for row in found["rows"]}
    assert reasons == {("absent", "its Python has no module 'no_such_module'")}


def test_scores_are_kept_and_go_on(instances: Path, tmp_path: Path) -> None:
    """A second run asks nothing again; other limits do."""
    count = tmp_path / "count"
    script = KNOWING.format(change=f"open({str(count)!r}, 'a').write('x')")
    for seconds, runs in ((20, 2), (20, 2), (19, 4)):
        scored(instances, tmp_path, script, Limits(seconds, 4096 * MIB))
        assert len(count.read_text()) == runs
    path = instances / "scores" / f"tool-{tmp_path.name}.json"
    kept = json.loads(path.read_text())
    kept["rows"] = kept["rows"][:1]
    path.write_text(json.dumps(kept))
    assert len(scored(instances, tmp_path, script, Limits(19, 4096 * MIB))) == 2
    assert len(count.read_text()) == 5
    path.write_text('{"rows": [{"outcome": "splendid"}]}')
    with pytest.raises(TapegradError, match="scores cannot be read"):
        scored(instances, tmp_path, script)
    path.unlink()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--tool", "oracle"], "no tool 'oracle'"),
        (["--tool", "../x", "--command", "true"], "letters, digits"),
        (["--tool", "x", "--command", "'"], "the command cannot be read"),
        (["--tool", "marabou", "--python", "/no/python"], "cannot be run as a Python"),
    ],
)
def test_bad_options(instances: Path, words: list[str], what: str) -> None:
    result = CliRunner().invoke(app, ["vnn", "score", str(instances), *words])
    assert isinstance(result.exception, InputError)
    assert what in str(result.exception)


def test_the_command_prints_a_table_and_draws(instances: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "tool.py").write_text(KNOWING.format(change="answer = 'sat'"))
    words = ["vnn", "score", str(instances), "--tool", "yes-man", "--plot", str(tmp_path / "solved.svg")]
    words += ["--command", f"{sys.executable} {tmp_path / 'tool.py'}"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    assert ["family", "right", "wrong", "most", "ReLUs", "right", "seconds"] in lines
    assert ["all", "1", "1", "35"] in [line[:4] for line in lines]
    assert "it says sat, and the answer is unsat" in result.output
    assert b"<svg" in (tmp_path / "solved.svg").read_bytes()
    printed = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    assert printed["counts"] == dict.fromkeys(printed["counts"], 0) | {"right": 1, "wrong": 1}


def test_sizes_are_put_together() -> None:
    rows = [{"relus": r, "outcome": o} for r, o in ((20, "right"), (40, "wrong"), (90, "right"))]
    assert by_size(rows) == [(30, 50), (90, 100)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["marabou"])
def test_a_real_verifier(tmp_path: Path, name: str) -> None:
    """On the smallest satisfiable instance, which Marabou solves at once."""
    pytest.importorskip("maraboupy")
    make(Plan(("robustness",), (40,), 1, seed=1), tmp_path / "one")
    found = score(tmp_path / "one", name, Limits(60, 4096 * MIB))
    assert [row["outcome"] for row in found["rows"]] == ["right"], found
