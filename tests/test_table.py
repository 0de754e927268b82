"""The table of the architecture page is that of the tests: see `tests/table.py`."""

from importlib import import_module
from pathlib import Path

import pytest

from tests.table import CELLS, COLUMNS, REASONS, ROWS, table

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
FILLED_BY = (
    "tests.networks.test_backends",
    "tests.networks.test_losses",
    "tests.networks.test_explaining",
    "tests.interop.test_step_layers",
    "tests.interop.test_huggingface",
    "tests.check.test_stock",
    "tests.test_kinds",
)


@pytest.fixture(scope="module", autouse=True)
def _filled() -> None:
    for module in FILLED_BY:
        import_module(module)


def test_every_cell_has_a_test_or_a_reason() -> None:
    every = {(name, column) for name in ROWS for column in COLUMNS}
    assert every - CELLS.keys() == REASONS.keys()
    assert {(name, column) for name, column in CELLS if name in ROWS} == every - REASONS.keys()
    assert {name for name, _ in CELLS} - set(ROWS) == {"`layer on transformer`"}


def test_the_page_has_the_table() -> None:
    assert table() in PAGE.read_text()
