"""Forged nets of every target: each is refused, or not said to compute its source, or does no harm; genuine
nets are accepted."""

from contextlib import suppress
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._saved import load, save
from tapegrad._sources import read
from tapegrad.errors import TapegradError
from tapegrad_check import CheckError, check
from tests.check import forging
from tests.check.forgeries import (
    CASES,
    LARGE,
    all_of_all_kinds,
    all_withstood,
    made,
    steps_of,
    two_of_each_kind,
)
from tests.check.forging import Saved, bounded, large_claims

QUICK = (
    *(
        "relu",
        "relu of a machine",
        "relu, deeper",
        "relu, compact",
        "emulator",
        "exact memory",
        "noise-tolerant memory",
    ),
    *("transformer", "simplex", "tape", "tape of a circuit", "rcnn"),
    *("emulator of a program", "decoder of a RASP program", "decoder of means"),
    *("transformer of a clock", "decoder of a circuit", "transformer of a circuit", "emulator of a circuit"),
)
"""The others take longer: where a forgery does no harm, that is shown by running it."""


@pytest.mark.parametrize("name", QUICK)
def test_kinds_of_forgery(name: str, tmp_path: Path) -> None:
    nets = made(name, tmp_path)
    some = two_of_each_kind(nets.genuine, nets.other)
    found = all_withstood(some, tmp_path / "forged", nets.loaded)
    assert found["refused"] > len(some) / 2


CLAIMING = ("tape", "transformer", "rcnn", "noise-tolerant memory", "emulator of a machine")


@pytest.mark.parametrize(
    "name",
    [
        *CLAIMING,
        *(pytest.param(name, marks=pytest.mark.slow) for name in QUICK if name not in CLAIMING),
    ],
)
def test_a_small_folder_that_claims_to_be_large_is_soon_read_or_refused(name: str, tmp_path: Path) -> None:
    """Tapes, states, steps and exponents by the million: time and memory are those of the file."""
    source, _, target, options = CASES[name]
    save(compile(read(source) if isinstance(source, str) else source, target, **options), tmp_path / "own")
    claims = list(large_claims(Saved.of(tmp_path / "own")))
    assert len(claims) > 15
    for forgery in claims:
        forgery.saved.write(tmp_path / "forged")
        for reader in (check, load):
            with bounded(f"{forgery}, by {reader.__name__},"), suppress(CheckError, TapegradError):
                reader(tmp_path / "forged")


def test_what_takes_too_much_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="an array takes more than 1024 MiB"), bounded("an array"):
        np.zeros(1 << 28)
    monkeypatch.setattr(forging, "SECONDS", 0.05)
    with pytest.raises(AssertionError, match="seconds of the processor"), bounded("a loop"):
        all(number >= 0 for number in count())


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_kinds_of_forgery_of_large_nets(name: str, tmp_path: Path) -> None:
    nets = made(name, tmp_path)
    some = two_of_each_kind(nets.genuine, nets.other)
    all_withstood(some, tmp_path / "forged", nets.loaded, steps_of(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in LARGE])
def test_every_forgery_and_every_mutant(name: str, tmp_path: Path) -> None:
    nets = made(name, tmp_path)
    all_withstood(all_of_all_kinds(nets.genuine, nets.other), tmp_path / "forged", nets.loaded)
