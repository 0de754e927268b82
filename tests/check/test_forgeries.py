"""Forged nets of every target: each is refused, or not said to compute its source, or does no harm; genuine
nets are accepted."""

from pathlib import Path

import pytest

from tests.check.forgeries import CASES, LARGE, all_of_all_kinds, all_withstood, made, two_of_each_kind

QUICK = (
    *("relu", "relu of a machine", "relu, deeper", "emulator", "exact memory", "noise-tolerant memory"),
    *("transformer", "simplex", "tape", "tape of a circuit", "rcnn"),
    *("emulator of a program", "decoder of a RASP program", "decoder of means"),
)
"""The others take longer: where a forgery does no harm, that is shown by running it."""


@pytest.mark.parametrize("name", QUICK)
def test_kinds_of_forgery(name: str, tmp_path: Path) -> None:
    nets = made(name, tmp_path)
    some = two_of_each_kind(nets.genuine, nets.other)
    found = all_withstood(some, tmp_path / "forged", nets.loaded)
    assert found["refused"] > len(some) / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_kinds_of_forgery_of_large_nets(name: str, tmp_path: Path) -> None:
    nets = made(name, tmp_path)
    all_withstood(two_of_each_kind(nets.genuine, nets.other), tmp_path / "forged", nets.loaded)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in LARGE])
def test_every_forgery_and_every_mutant(name: str, tmp_path: Path) -> None:
    nets = made(name, tmp_path)
    all_withstood(all_of_all_kinds(nets.genuine, nets.other), tmp_path / "forged", nets.loaded)
