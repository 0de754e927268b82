"""Forged classifiers: class names and what was trained can be told from nothing in the folder, so no verdict
covers them; what no training leaves and no classifier is, is refused."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from tapegrad.learners import CircuitLearner, on_grid, parity
from tapegrad.learners.recipes import DecisionStump, NaiveBayes
from tapegrad.sklearn import EmulatedClassifier, RCNNClassifier
from tapegrad_check import CheckError, check
from tapegrad_check.folder import COMPUTES_SOURCE
from tests.check.forging import Saved
from tests.check.test_forged_memories import echo

NOT_COVERED = f"{COMPUTES_SOURCE}; not compared: class names, thresholds, settings, trained memory"


def data(classes: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.integers(0, 4, (12, 2)) / 2, np.array(["ant", "bee", "cat"])[np.arange(12) % classes]


MADE: dict[str, Callable[[], Any]] = {
    "parity": lambda: EmulatedClassifier(parity, threshold=0.8).fit(*data(2)),
    "naive Bayes": lambda: EmulatedClassifier(NaiveBayes(), threshold="mean").fit(*data(3)),
    "stumps": lambda: EmulatedClassifier(DecisionStump(), threshold="mean", precision="float32").fit(
        *data(3)
    ),
    "on the grid": lambda: RCNNClassifier(on_grid.parity(), threshold=0.8, frame=(1, 1, 2, 1)).fit(*data(2)),
    "ternary": lambda: RCNNClassifier(on_grid.parity(), threshold=0.8, form="paper").fit(*data(2)),
}


@cache
def genuine(name: str) -> Saved:
    with TemporaryDirectory() as place:
        MADE[name]().save(Path(place, "net"))
        return Saved.of(Path(place, "net"))


def verdict(saved: Saved) -> str:
    with TemporaryDirectory() as place:
        saved.write(Path(place, "net"))
        report = check(Path(place, "net"))
        assert report.code == 7
        return report.verdict


def answers(saved: Saved) -> list[str]:
    """Of the classifier that is loaded."""
    kind: Any = RCNNClassifier if "memory" in saved.arrays else EmulatedClassifier
    with TemporaryDirectory() as place:
        saved.write(Path(place, "net"))
        return kind.load(Path(place, "net")).predict(data(2)[0]).tolist()


def assert_refused(saved: Saved, reason: str) -> None:
    with pytest.raises(CheckError, match=reason):
        verdict(saved)


@pytest.mark.parametrize("name", MADE)
def test_other_names_give_other_answers_and_are_not_covered(name: str) -> None:
    forged, before = genuine(name).copy(), answers(genuine(name))
    assert verdict(forged) == NOT_COVERED
    forged.config["estimator"]["classes"] = [f"no {one}" for one in forged.config["estimator"]["classes"]]
    assert verdict(forged) == NOT_COVERED
    assert answers(forged) == [f"no {one}" for one in before]


@pytest.mark.parametrize("name", MADE)
def test_another_memory_gives_other_answers_and_is_not_covered(name: str) -> None:
    forged, before = genuine(name).copy(), answers(genuine(name))
    if "memory" in forged.arrays:
        forged.arrays["memory"] = forged.arrays["memory"].copy()
        forged.arrays["memory"][:-1, -1] *= -1
    else:
        random, cells = np.random.default_rng(0), forged.arrays["cells"]
        forged.arrays["trained"] = forged.arrays["trained"].copy()
        forged.arrays["trained"][..., cells] *= random.choice(
            [-1, 1], forged.arrays["trained"][..., cells].shape
        )
    assert verdict(forged) == NOT_COVERED
    assert answers(forged) != before


@pytest.mark.parametrize("name", ["parity", "on the grid"])
def test_a_part_of_a_classifier_is_none(name: str) -> None:
    forged = genuine(name).copy()
    del forged.config["estimator"]
    assert_refused(forged, "lacks its settings")
    forged = genuine(name).copy()
    forged.arrays = {own: array for own, array in forged.arrays.items() if own not in ("memory", "trained")}
    assert_refused(forged, "lacks its settings")


COMMON: list[tuple[str, dict[str, Any]]] = [
    *(
        ("names in order", {"classes": classes})
        for classes in ([], ["ant"], ["bee", "ant"], ["ant", "ant"], ["ant", 1], [0, 1.0], [[0], [1]], "ab")
    ),
    *(
        ("a threshold for each feature", changes)
        for changes in ({"threshold": None}, {"thresholds": None}, {"thresholds": [0.5]})
    ),
    ("a threshold is not a finite number", {"thresholds": [0.5, True]}),
    ("a threshold is not a finite number", {"thresholds": [0.5, "0"]}),
]
EMULATED: list[tuple[str, dict[str, Any]]] = [
    ("number of features", {"questions": [-1, 2]}),
    ("number of classes", {"questions": [2, 1]}),
    ("not those of the net", {"questions": [1, 2]}),
    ("not those of the net", {"questions": [2, 2, "UInt(1)"]}),
    ("not those of the net", {"questions": [2, 2, "UInt(0)"]}),
    ("not those of the net", {"questions": [2, 2, "Float(5, 10)"]}),
    ("not a network for each", {"classes": ["ant", "bee", "cat"]}),
    ("number of steps", {"steps": -1}),
    ("no step, and changed", {"steps": 0}),
]
ON_GRID: list[tuple[str, dict[str, Any]]] = [
    ("another form", {"form": "paper"}),
    *(
        (
            "made for other data",
            {"learner": {"frame": [1, 1, 1, 1], "samples": samples, "features": features}},
        )
        for samples, features in ((11, None), (None, 3), (12, 1))
    ),
]


@pytest.mark.parametrize(
    ("name", "reason", "changes"),
    [
        *(("parity", *case) for case in [*COMMON, *EMULATED]),
        *(("on the grid", *case) for case in [*COMMON, *ON_GRID]),
    ],
)
def test_what_no_classifier_is(name: str, reason: str, changes: dict[str, Any]) -> None:
    forged = genuine(name).copy()
    forged.config["estimator"] |= changes
    assert_refused(forged, reason)


@pytest.mark.parametrize(
    ("place", "value"), [((0, 0), 0.0), ((0, 0), 0.3334), ((-1, 0), -1 / 3), ((0, -1), 1.0)]
)
def test_what_no_training_on_the_grid_leaves(place: Any, value: float) -> None:
    """A sample as thirds of signs, and last the sample of ones that ends training."""
    for name in ("on the grid", "ternary"):
        forged = genuine(name).copy()
        forged.arrays["memory"] = forged.arrays["memory"].copy()
        forged.arrays["memory"][place] = value
        assert_refused(forged, "no training leaves")


def test_a_memory_without_samples_is_none() -> None:
    for part in (slice(-1, None), slice(0, 0)):
        forged = genuine("on the grid").copy()
        forged.arrays["memory"] = forged.arrays["memory"][part]
        assert_refused(forged, "nothing has been memorised")
    forged = genuine("on the grid").copy()
    forged.arrays["memory"] = forged.arrays["memory"][:, :0]
    assert_refused(forged, "nothing has been memorised")


def test_a_classifier_that_is_what_it_may_be() -> None:
    """Untrained; of a learner made for so many samples and features."""
    untrained = genuine("parity").copy()
    untrained.config["estimator"]["steps"] = 0
    untrained.arrays["trained"] = untrained.arrays["weights"]
    assert verdict(untrained) == NOT_COVERED
    made_for = genuine("on the grid").copy()
    made_for.config["estimator"]["learner"] |= {"samples": 12, "features": 2}
    assert verdict(made_for) == NOT_COVERED


def test_a_bit_of_memory_that_never_changes() -> None:
    """Most learners have none; those of a program keep what they do not write."""
    keeps = replace(echo("x").circuit, output_wires=[1, 4, 0])  # type: ignore[arg-type]
    with TemporaryDirectory() as place:
        EmulatedClassifier(CircuitLearner(keeps, 1)).fit([[0], [1]], [1, 0]).save(Path(place, "net"))
        forged = Saved.of(Path(place, "net"))
    assert verdict(forged) == NOT_COVERED
    forged.arrays["trained"] = forged.arrays["trained"].copy()
    forged.arrays["trained"][forged.arrays["cells"]] *= -1
    assert_refused(forged, "a bit of memory that never changes")
