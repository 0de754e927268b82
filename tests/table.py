"""The table of docs/architecture.md: every kind of net, and what reads it. A test that fills cells says so,
and what it compares; `tests/test_table.py` holds the page to that."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., Any])

SHORT = {
    "numpy": "NumPy",
    "numba": "numba",
    "jax": "JAX",
    "torch": "PyTorch",
    "onnx": "ONNX",
    "python": "plain Python",
    "torch_layer": "layer in PyTorch",
    "equinox": "layer in Equinox",
    "folder": "format 3",
    "drawing": "drawing",
    "explain": "`explain`",
    "check": "`check`",
}
COLUMNS = tuple(SHORT.values())
ROWS = (
    "`relu`, compact", "`relu`, without skips", "`relu`, paper", "`transformer`, paper",
    "`transformer`, paper, softmax", "`transformer`, machine", "`transformer`, circuit",
    "`transformer`, clock", "`transformer`, program", "`decoder`, machine", "`decoder`, RASP",
    "`decoder`, RASP with means", "`rcnn`, channels", "`rcnn`, ternary", "`simplex`", "`tape`", "`extended`",
    "`emulator`, practical", "`emulator`, noise-tolerant", "`emulator`, exact", "`rcnn`, trained memory",
    "stock checkpoints",
)  # fmt: skip

DIGITS = "80 digits"
"""No array holds such numbers: there is no network as data."""
THEIRS = "another program's"
"""A checkpoint is read by the program that its class belongs to."""
PARTS = "its parts"
"""Not compiled: its samples come from outside, one by one, and what it repeats is a net by itself."""
REASONS: Mapping[tuple[str, str], str] = {
    **{("`emulator`, exact", column): DIGITS for column in COLUMNS[:8]},
    **{("stock checkpoints", column): THEIRS for column in COLUMNS if column not in ("NumPy", "`check`")},
    **{("`rcnn`, trained memory", column): PARTS for column in (*COLUMNS[6:8], "drawing")},
}
"""Why a cell is no test's."""

CELLS: dict[tuple[str, str], list[str]] = {}


def row(name: str) -> str:
    """The row of a case."""
    first, comma, rest = name.partition(",")
    return f"`{first}`{comma}{rest}"


def fills(names: Iterable[str], **compares: str) -> pytest.MarkDecorator:
    """Of a test that takes the `name` of a case: it has a case for each of these rows, and compares this in
    the columns of these short names."""
    names = list(names)
    for name in names:
        for column, said in compares.items():
            _fill(row(name), SHORT[column], said)
    return pytest.mark.parametrize("name", names)


def fills_row(name: str, **compares: str) -> Callable[[Test], Test]:
    """Of a test of one row, by its name in the page."""
    for column, said in compares.items():
        _fill(name, SHORT[column], said)
    return lambda test: test


def _fill(name: str, column: str, compares: str) -> None:
    said = CELLS.setdefault((name, column), [])
    if compares not in said:
        said.append(compares)


def table() -> str:
    """As the page has it."""
    lines = [("kind of net", *COLUMNS), ("---",) * (1 + len(COLUMNS))]
    lines += [(name, *(_cell(name, column) for column in COLUMNS)) for name in ROWS]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(name: str, column: str) -> str:
    if said := CELLS.get((name, column)):
        return ", ".join(said)
    return f"*{REASONS[name, column]}*"
