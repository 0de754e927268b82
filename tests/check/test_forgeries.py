"""Forged nets of `relu` and `emulator`: each is refused or does no harm; genuine nets are accepted."""

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tapegrad._compile import Compiled, compile
from tapegrad._saved import load, save
from tapegrad._sources import read
from tapegrad.learners import conjunction, parity
from tapegrad.source import Source
from tapegrad_check import check
from tapegrad_check.folder import COMPUTES_SOURCE
from tests.check.forging import Forgery, Saved, forgeries, mutants, outcome

BB2, OTHER = "1RB1LB_1LA1RZ", "1RB1LB_1LA0RZ"

CASES: dict[str, tuple[Any, Any, str, dict[str, Any]]] = {
    "relu": ("adder2", "multiplier2", "relu", {}),
    "relu of a machine": (BB2, OTHER, "relu", {"steps": 2, "cells": 4}),
    "relu, deeper": ("parity4", "majority5", "relu", {"depth": 30, "width": 40, "correction": "none"}),
    "emulator": (parity(2), conjunction(2, 3), "emulator", {}),
    "emulator of a machine": (BB2, OTHER, "emulator", {"steps": 8, "cells": 5}),
    "exact memory": (parity(1), conjunction(1, 2), "emulator", {"memory": "exact"}),
    "noise-tolerant memory": (
        parity(1), conjunction(1, 2), "emulator", {"memory": "noise-tolerant", "samples": 2},
    ),
}  # fmt: skip


def sources(name: str) -> tuple[Source, Source]:
    pair = [read(one) if isinstance(one, str) else one for one in CASES[name][:2]]
    return pair[0], pair[1]


def made(name: str, folder: Path) -> tuple[Saved, Saved, Compiled]:
    """A genuine net, another one, and the first as it is loaded."""
    _, _, target, options = CASES[name]
    for place, source in zip(("genuine", "other"), sources(name), strict=True):
        save(compile(source, target, **options), folder / place)
        assert check(folder / place).verdict == COMPUTES_SOURCE
    return Saved.of(folder / "genuine"), Saved.of(folder / "other"), load(folder / "genuine")


def all_withstood(forged: Iterable[Forgery], folder: Path, genuine: Compiled) -> Counter[str]:
    found: Counter[str] = Counter()
    for forgery in forged:
        found[outcome(forgery, folder, genuine)] += 1
    return found


@pytest.mark.parametrize("name", CASES)
def test_kinds_of_forgery(name: str, tmp_path: Path) -> None:
    genuine, other, loaded = made(name, tmp_path)
    every = list(forgeries(genuine, other))
    assert len({forgery.kind for forgery in every}) >= 20
    some = [*every[:9], *islice(every[9:], 0, None, 5)]
    found = all_withstood(some, tmp_path / "forged", loaded)
    assert found["refused"] > len(some) / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_forgery_and_every_mutant(name: str, tmp_path: Path) -> None:
    genuine, other, loaded = made(name, tmp_path)
    for seed in range(3):
        all_withstood(forgeries(genuine, other, seed, places=4), tmp_path / "forged", loaded)
    all_withstood(mutants(genuine), tmp_path / "forged", loaded)
