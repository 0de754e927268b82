"""The notebooks run from top to bottom, and what they show is what their cells give."""

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NEEDS = {"scikit-learn-and-pytorch.ipynb": "torch"}
"""Packages without which a notebook is not run. A cell may also be tagged `needs NAME`: without that package
it says so, in place of what is stored."""


@pytest.fixture(scope="module")
def notebooks() -> Any:
    """The script that runs notebooks and stores their outputs."""
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "figures" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed(package: str) -> bool:
    """Whether a package can be imported, which is what the cells ask."""
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True


def differences(notebooks: Any, notebook: dict[str, Any]) -> list[str]:
    """The cells whose stored text is not what they give now, with both."""
    found = []
    cells = notebooks.code_cells(notebook)
    for number, (cell, outputs) in enumerate(zip(cells, notebooks.run(notebook), strict=True), start=1):
        needed = [tag.removeprefix("needs ") for tag in cell["metadata"].get("tags", [])]
        if not all(map(installed, needed)):
            continue
        stored, now = notebooks.text_of(cell["outputs"]), notebooks.text_of(outputs)
        if stored != now or cell["execution_count"] != number:
            found.append(f"cell {number} has stored\n{stored}\nand now gives\n{now}")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["student", "interpretability", "scikit-learn-and-pytorch"])
def test_a_notebook_gives_what_it_shows(
    name: str, notebooks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ROOT / "examples" / "notebooks" / f"{name}.ipynb"
    if path.name in NEEDS:
        pytest.importorskip(NEEDS[path.name])
    monkeypatch.chdir(tmp_path)
    wrong = differences(notebooks, json.loads(path.read_text()))
    assert not wrong, "\n\n".join(wrong)


def test_all_notebooks_are_known_and_in_form(notebooks: Any) -> None:
    names = {path.stem for path in notebooks.NOTEBOOKS}
    assert names == {"student", "interpretability", "scikit-learn-and-pytorch"}
    for path in notebooks.NOTEBOOKS:
        notebook = json.loads(path.read_text())
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
        assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
        for cell in notebooks.code_cells(notebook):
            shown = [one["output_type"] for one in cell["outputs"]]
            assert set(shown) <= {"stream", "display_data", "execute_result"}


def cell(source: str, number: int, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "source": source.splitlines(keepends=True),
        "execution_count": number,
        "metadata": {},
        "outputs": list(outputs),
    }


def printed(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": [text]}


def given(text: str) -> dict[str, Any]:
    return {"output_type": "execute_result", "data": {"text/plain": [text]}}


@pytest.mark.parametrize(
    ("last", "wrong"),
    [
        (cell("print(x)\nx + 1", 2, printed("1\n"), given("2")), 0),
        (cell("print(x)\nx + 1", 2, printed("1\n"), given("3")), 1),
        (cell("print(x)\nx + 1", 2, printed("2\n"), given("2")), 1),
        (cell("print(x)\nx + 1", 2, printed("1\n")), 1),
        (cell("y = x", 2, printed("1\n")), 1),
        (cell("y = x", 3), 1),
        (cell("x = 2\nNone", 2), 0),
    ],
)
def test_the_comparison_bites(notebooks: Any, last: dict[str, Any], wrong: int) -> None:
    text = {"cell_type": "markdown", "source": ["x = 5"]}
    notebook = {"cells": [cell("x = 1", 1), text, last]}
    assert len(differences(notebooks, notebook)) == wrong


def test_an_error_is_an_error(notebooks: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        differences(notebooks, {"cells": [cell("1 / 0", 1)]})
