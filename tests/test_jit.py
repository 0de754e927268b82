"""The cache of compiled functions: it serves what is there, nothing that is outdated, and no damaged file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tapegrad._jit
import tapegrad._jit_cache

CALLER = """
from toy._jit import njit
from toy.callee import helped
@njit()
def answer(x):
    return helped(x) + 1
"""
CALLEE = """
from toy._jit import njit
from toy.constants import FACTOR
@njit()
def helped(x):
    return FACTOR * x
"""
PROGRAM = """
from toy.caller import answer
print(answer(2), sum(answer.stats.cache_hits.values()))
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A package of three files with the real decorator."""
    package = tmp_path / "toy"
    package.mkdir()
    for module in (tapegrad._jit, tapegrad._jit_cache):
        file = Path(str(module.__file__))
        (package / file.name).write_text(file.read_text().replace("tapegrad.", "toy."))
    files = {"__init__": "", "constants": "FACTOR = 10\n", "callee": CALLEE, "caller": CALLER}
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    return package


def answer_and_hits(toy: Path) -> tuple[int, int]:
    """What a fresh process computes, and how often it was served from the cache."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=toy.parent,
        env=plain,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    answer, hits = run.stdout.split()
    return int(answer), int(hits)


@pytest.mark.slow
def test_a_changed_callee_or_constant_is_not_served_from_the_old_cache(toy: Path) -> None:
    assert answer_and_hits(toy) == (21, 0)
    assert answer_and_hits(toy) == (21, 1)
    (toy / "callee.py").write_text(CALLEE.replace("FACTOR * x", "FACTOR * x + 100"))
    assert answer_and_hits(toy) == (121, 0)
    (toy / "constants.py").write_text("FACTOR = 20\n")
    assert answer_and_hits(toy) == (141, 0)
    (toy / "caller.py").write_text("\n\n" + CALLER)
    assert answer_and_hits(toy) == (141, 0)
    kept = list((toy / "__pycache__").glob("*.nb?"))
    assert len(kept) == 4  # an index and a function for each of the two: no old ones lie about


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, pytest.param(40, marks=pytest.mark.slow)])
def test_truncated_cache_files_are_compiled_again(toy: Path, size: int) -> None:
    assert answer_and_hits(toy) == (21, 0)
    for kind in ("nbi", "nbc"):
        for file in (toy / "__pycache__").glob(f"caller*.{kind}"):
            file.write_bytes(file.read_bytes()[:size])
        assert answer_and_hits(toy) == (21, 0)
    assert answer_and_hits(toy) == (21, 1)


def test_a_package_that_cannot_be_written_works_without_a_cache(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor can anything else: both places that numba would choose are taken by files."""
    (toy / "__pycache__").write_text("")
    (toy.parent / "home").write_text("")
    monkeypatch.setenv("HOME", str(toy.parent / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(toy.parent / "home"))
    assert answer_and_hits(toy) == (21, 0)
    assert answer_and_hits(toy) == (21, 0)


def test_no_function_goes_round_this_cache() -> None:
    package = Path(tapegrad._jit.__file__).parent
    for file in package.rglob("*.py"):
        assert "cache=True" not in file.read_text(), f"{file} asks for numba's own cache: use tapegrad._jit"
