"""Forged nets of the targets that run machines: each is refused or does no harm; genuine ones pass."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tapegrad._compile import Compiled, compile
from tapegrad._saved import load, save
from tapegrad._sources import read
from tapegrad.errors import TapegradError
from tapegrad.learners import conjunction, parity
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.source import Source
from tapegrad.targets.extended import FixedPoint, TrainingRun, extend, linear
from tapegrad.targets.extended import load as load_extended
from tapegrad.targets.extended import save as save_extended
from tapegrad_check import CheckError, check
from tapegrad_check.folder import COMPUTES_SOURCE, OWN_TABLE
from tests.check.forging import Forgery, Saved, forgeries, mutants
from tests.check.test_forgeries import BB2, OTHER, all_withstood
from tests.targets.extended.algorithms import copy_bits


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


QUICK = ("transformer", "simplex", "tape", "tape of a circuit", "rcnn")
"""The others take longer: where a forgery does no harm, that is shown by running it."""


def made(name: str, folder: Path) -> tuple[Saved, Saved, Compiled]:
    """A genuine net, another one, and the first as it is loaded."""
    *pair, target, options = CASES[name]
    sources: list[Source] = [read(one) if isinstance(one, str) else one for one in pair]
    for place, source in zip(("genuine", "other"), sources, strict=True):
        save(compile(source, target, **options), folder / place)
        assert check(folder / place).verdict == COMPUTES_SOURCE
    return Saved.of(folder / "genuine"), Saved.of(folder / "other"), load(folder / "genuine")


def two_of_each_kind(forged: Iterable[Forgery]) -> list[Forgery]:
    """For the quick tests: of every kind two, at random."""
    kinds: defaultdict[str, list[Forgery]] = defaultdict(list)
    for forgery in forged:
        kinds[forgery.kind].append(forgery)
    assert len(kinds) >= 20
    random = np.random.default_rng(0)
    return [kind[i] for kind in kinds.values() for i in random.permutation(len(kind))[:2]]


@pytest.mark.parametrize("name", QUICK)
def test_kinds_of_forgery(name: str, tmp_path: Path) -> None:
    genuine, other, loaded = made(name, tmp_path)
    some = two_of_each_kind(forgeries(genuine, other))
    found = all_withstood(some, tmp_path / "forged", loaded)
    assert found["refused"] > len(some) / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_forgery_and_every_mutant(name: str, tmp_path: Path) -> None:
    genuine, other, loaded = made(name, tmp_path)
    for seed in range(3):
        all_withstood(forgeries(genuine, other, seed, places=4), tmp_path / "forged", loaded)
    all_withstood(mutants(genuine), tmp_path / "forged", loaded)


# Trained networks: what is loaded must be what training gives.


def trained(folder: Path, label: float) -> tuple[Saved, TrainingRun]:
    x, y = np.array([[1.0], [0.5]]), np.array([[label], [0.5]])
    algorithm = copy_bits(6, blank="0", stay=True)
    net = extend(linear(1), algorithm, x, y, data_format=FixedPoint(3, 1), cells=32)
    run = net.train()
    save_extended(net, run, folder)
    return Saved.of(folder), run


def trained_withstood(forged: Iterable[Forgery], folder: Path, genuine: TrainingRun) -> Counter[str]:
    found: Counter[str] = Counter()
    for forgery in forged:
        found[_outcome(forgery, folder, genuine)] += 1
    return found


def _outcome(forgery: Forgery, folder: Path, genuine: TrainingRun) -> str:
    forgery.saved.write(folder)
    try:
        if check(folder).verdict == OWN_TABLE:
            return "disowned"
    except CheckError:
        return "refused"
    try:
        net, run = load_extended(folder)
    except TapegradError:
        return "unloadable"
    if all(map(np.array_equal, run.weights.weights, genuine.weights.weights)):
        return "unchanged"
    again = net.train()
    same = np.array_equal(again.theta, run.theta) and again.steps == run.steps
    assert same, f"{forgery} is believed, and training gives something else"
    return "trained again"


@pytest.mark.slow
def test_kinds_of_forgery_of_a_trained_network(tmp_path: Path) -> None:
    genuine, run = trained(tmp_path / "genuine", -1.0)
    other, _ = trained(tmp_path / "other", 1.0)
    some = two_of_each_kind(forgeries(genuine, other))
    found = trained_withstood(some, tmp_path / "forged", run)
    assert found["refused"] > len(some) / 2


def test_another_theta_on_the_result_tape_is_refused(tmp_path: Path) -> None:
    """The machine has halted, the certificate claims what the tape holds; but no training gave it."""
    genuine, _ = trained(tmp_path / "genuine", -1.0)
    T = genuine.arrays["weight.T"].copy()
    _, _, cell, _ = genuine.arrays["result_places"][0]
    T[cell + 16, 0] *= -1
    genuine.arrays["weight.T"] = T
    theta = np.array(
        [x + (1 - 2 * (x * 2 % 2)) / 2 * (i == 0) for i, x in enumerate(genuine.claims["theta"])]
    )
    output = np.array([[1.0], [0.5]]) * theta[0] + theta[1]
    loss = float(np.sum((output - genuine.arrays["y"]) ** 2) / 2)
    genuine.claims |= {"theta": theta.tolist(), "output": output.tolist(), "final_loss": loss}
    genuine.write(tmp_path / "forged")
    with pytest.raises(CheckError, match="the algorithm leaves something else on its tapes"):
        check(tmp_path / "forged")


@pytest.mark.slow
def test_every_forgery_of_a_trained_network(tmp_path: Path) -> None:
    genuine, run = trained(tmp_path / "genuine", -1.0)
    other, _ = trained(tmp_path / "other", 1.0)
    for seed in range(3):
        trained_withstood(forgeries(genuine, other, seed, places=4), tmp_path / "forged", run)
    trained_withstood(mutants(genuine), tmp_path / "forged", run)
