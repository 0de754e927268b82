"""The adversary finds nothing: what the checker believes of a forged folder holds when it is run."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import tapegrad_check
from tapegrad_check import CheckReport
from tests.check import adversary_judge
from tests.check.adversary import Adversary, hunted
from tests.check.adversary_cases import CASES, TARGETS
from tests.check.adversary_moves import MOVES, Bench
from tests.check.adversary_rows import opened
from tests.check.forging import Again, Saved, bounded, written

QUICK = (
    "relu",
    "relu, compact",
    "heads and gates",
    "decoder",
    "RASP",
    "emulator",
    "exact memory",
    "disguised",
)
"""The others take longer to build, or to start to run."""
FORGERIES, LARGE = 1_000, 40
"""Of each target; and of those whose check may take seconds, of each."""


def of_cases(target: str, total: int, seed: int) -> None:
    """So many forgeries of a target, by turns of its cases."""
    cases = TARGETS[target]
    for place, name in enumerate(cases):
        own = total // len(cases) + (place < total % len(cases))
        adversary, found = hunted(name, own, seed)
        assert not found, "\n".join(map(str, found))
        assert adversary.ends.total() == own


@pytest.mark.parametrize("target", QUICK)
def test_a_few_forgeries(target: str) -> None:
    of_cases(target, 24, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("target", [target for target in TARGETS if target != "large"])
def test_a_thousand_forgeries(target: str) -> None:
    of_cases(target, FORGERIES, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS["large"])
def test_forgeries_of_large_nets(name: str) -> None:
    _, found = hunted(name, LARGE, seed=3)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("name", ["relu", "decoder of means", "disguised"])
def test_a_checker_that_believes_everything_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge runs what is believed, so that there is much to be found."""
    believed: Callable[..., Any] = tapegrad_check.check

    def check(path: Path, of: Path | None = None) -> CheckReport:
        try:
            return believed(path, of)
        except tapegrad_check.CheckError:
            return CheckReport(str(path), "", adversary_judge.COMPUTES_SOURCE, ())

    monkeypatch.setattr(adversary_judge, "check", check)
    adversary, found = hunted(name, 40, seed=5)
    assert adversary.ends["harmful"] == len(found) > 0
    assert {kind for kind, end in adversary.kinds if end == "harmful"} == {
        move.partition(":")[0] for own in found for move in own.moves
    }


def test_everything_follows_from_the_seed(tmp_path: Path) -> None:
    def moves(folder: str, seed: int) -> list[tuple[str, ...]]:
        return [own.moves for own in Adversary("relu", tmp_path / folder, seed).forgeries(40)]

    assert moves("a", 1) == moves("b", 1) != moves("c", 2)


@pytest.mark.parametrize(
    "name", ["relu", "relu, compact", "decoder", "exact memory", "rcnn, ternary", "rcnn", "disguised"]
)
def test_rows_that_are_not_altered_are_written_as_they_were(name: str, tmp_path: Path) -> None:
    CASES[name].writers[0](tmp_path)
    saved = Saved.of(tmp_path)
    arrays = [saved.arrays, *(own for file, own in saved.beside.items() if file.endswith(".safetensors"))]
    parts = [(own, rows) for own in arrays for rows in opened(own, saved.config["net"])]
    assert parts
    for own, rows in parts:
        again = rows.write()
        assert again.keys() == own.keys()
        assert all(np.array_equal(again[name], own[name]) for name in own)
        assert all(again[name].dtype == own[name].dtype for name in own)


def test_every_move_moves_something(tmp_path: Path) -> None:
    done = set()
    for name in ("transformer of a clock, softmax", "exact memory"):
        adversary = Adversary(name, tmp_path / name)
        for seed in range(20):
            for move, (_, alter) in MOVES.items():
                saved = adversary.genuine.copy()
                bench = Bench(saved, adversary.others, Random(seed), lambda own: None, "the steps are off")
                if alter(bench) is not None and move != "renewed":
                    done.add(move)
    assert done == MOVES.keys() - {"renewed"}


def test_a_key_can_stand_twice() -> None:
    assert written({Again("a"): 1, "a": float("inf")}) == b'{"a": 1, "a": 1e999}'


def test_what_takes_too_much_is_noticed() -> None:
    with pytest.raises(AssertionError, match="an array takes more than 2048 MiB"), bounded("an array"):
        np.zeros(1 << 29)
    with pytest.raises(AssertionError, match="seconds of the processor"), bounded("a loop", 0.05):
        all(number >= 0 for number in count())
