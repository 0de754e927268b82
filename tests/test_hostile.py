"""Damaged files and nets, as `python -m tests.hostile` tries them by the thousand."""

import random
from pathlib import Path

import pytest

from tests.hostile import damaged, readers, tried


def quick_readers(folder: Path) -> list:
    """Those that need no engine."""
    return [row for row in readers(folder) if not row[0].startswith("load and run")]


@pytest.mark.parametrize(
    ("files", "these"), [(20, quick_readers), pytest.param(2000, readers, marks=pytest.mark.slow)]
)
def test_damaged_files_are_read_or_refused(files: int, these, tmp_path: Path) -> None:
    rows = [tried(name, sound, use, files) for name, sound, use in these(tmp_path)]
    assert len(rows) >= 30
    assert not [row for row in rows if row.wrong]
    assert sum(row.accepted for row in rows) > 0
    assert sum(row.refused for row in rows) > len(rows) * files / 2


def test_what_is_no_refusal_is_noticed() -> None:
    def fails(data: bytes) -> None:
        if data != b"sound":
            raise KeyError(len(data))

    assert tried("a reader that fails", [b"sound"], fails, 30).wrong > 20


def test_damage_depends_on_the_seed_alone() -> None:
    first, again, other = (damaged(b"sound data\n" * 9, random.Random(seed)) for seed in (1, 1, 2))
    assert first == again != other
