"""Forged nets of the targets that run machines: each is refused or does no harm; genuine ones pass."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tapegrad._compile import Compiled, compile
from tapegrad._saved import load, save
from tapegrad._sources import read
from tapegrad.learners import conjunction, parity
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.source import Source
from tapegrad_check import check
from tapegrad_check.folder import COMPUTES_SOURCE
from tests.check.forging import Saved, forgeries, mutants
from tests.check.test_forgeries import BB2, OTHER, all_withstood


def two_tapes(write: str) -> TuringMachine:
    """Writes on one tape while the head of the other stays: needs one tape for some targets, no stay for
    others."""
    rules = {
        ("a", ("0", "0")): Rule((write, "1"), (1, 0), "b"),
        ("b", ("0", "1")): Rule(("0", "0"), (0, -1), "a"),
    }
    return TuringMachine(rules, "a", blank="0", alphabet=("0", "1"), accept=frozenset({"c"}))


CASES: dict[str, tuple[Any, Any, str, dict[str, Any]]] = {
    "transformer": (BB2, OTHER, "transformer", {"steps": 16}),
    "transformer, softmax": (
        BB2, OTHER, "transformer", {"steps": 16, "attention": "softmax", "correction": "thirds"},
    ),
    "transformer of two tapes": (two_tapes("1"), two_tapes("0"), "transformer", {"steps": 30}),
    "simplex": (BB2, OTHER, "simplex", {"inputs": [[]]}),
    "simplex, line search": ("increment", "palindrome", "simplex", {"longest": 2, "line_search": True}),
    "tape": (BB2, OTHER, "tape", {"cells": 16}),
    "tape, with passes": ("increment", BB2, "tape", {"cells": 16}),
    "tape of two tapes": (two_tapes("1"), two_tapes("0"), "tape", {"cells": 16}),
    "tape of a circuit": ("parity4", "majority5", "tape", {"cells": 32}),
    "tape of a learner": (parity(1), conjunction(1, 2), "tape", {"cells": 512}),
    "rcnn": (BB2, OTHER, "rcnn", {"margin": 4}),
    "rcnn, ternary": (BB2, OTHER, "rcnn", {"margin": 4, "encoding": "ternary"}),
    "rcnn of a circuit": ("parity4", "majority5", "rcnn", {"margin": 8}),
}  # fmt: skip


def made(name: str, folder: Path) -> tuple[Saved, Saved, Compiled]:
    """A genuine net, another one, and the first as it is loaded."""
    *pair, target, options = CASES[name]
    sources: list[Source] = [read(one) if isinstance(one, str) else one for one in pair]
    for place, source in zip(("genuine", "other"), sources, strict=True):
        save(compile(source, target, **options), folder / place)
        assert check(folder / place).verdict == COMPUTES_SOURCE
    return Saved.of(folder / "genuine"), Saved.of(folder / "other"), load(folder / "genuine")


@pytest.mark.parametrize("name", CASES)
def test_kinds_of_forgery(name: str, tmp_path: Path) -> None:
    genuine, other, loaded = made(name, tmp_path)
    every = list(forgeries(genuine, other))
    assert len({forgery.kind for forgery in every}) >= 20
    some = [*every[:9], *islice(every[9:], 0, None, 11)]
    found = all_withstood(some, tmp_path / "forged", loaded)
    assert found["refused"] > len(some) / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_forgery_and_every_mutant(name: str, tmp_path: Path) -> None:
    genuine, other, loaded = made(name, tmp_path)
    for seed in range(3):
        all_withstood(forgeries(genuine, other, seed, places=4), tmp_path / "forged", loaded)
    all_withstood(mutants(genuine), tmp_path / "forged", loaded)
