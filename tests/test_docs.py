"""The documentation is true: its Python runs, its links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
ELSEWHERE = {"exports.md"}
"""Pages whose Python needs files made by commands; tests/interop runs it."""
LONG = {"margins.md"}
"""Pages whose Python takes most of a minute."""


def python_of(page: Path) -> str:
    """All Python blocks of a page, one after the other: later ones may use earlier ones."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, marks=[pytest.mark.slow] if p.name in LONG else [], id=p.name)
        for p in PAGES
        if python_of(p) and p.name not in ELSEWHERE
    ],
)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("import tapegrad as tg\n" + python_of(page))
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
