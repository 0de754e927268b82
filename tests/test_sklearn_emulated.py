"""The classifier of scikit-learn's kind."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from tapegrad.errors import BrokenNet, TapegradError
from tapegrad.learners import conjunction, nearest, parity
from tapegrad.sklearn import EmulatedClassifier
from tapegrad_check import check


def three_nearest(n: int):
    return nearest(n, 9, 3)


def odd_or_even(count: int = 60, n: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).integers(0, 2, (count, n))
    return X, np.where(X[:, [1, 4, 6]].sum(axis=1) % 2 == 1, "odd", "even")


def test_scikit_learns_own_checks() -> None:
    """All of them, on features made binary at their mean; only array APIs and pandas may be skipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            EmulatedClassifier(three_nearest, threshold="mean"), on_fail=None, on_skip=None
        )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped <= {"check_array_api_input", "check_classifier_data_not_an_array"}  # the latter: no pandas
    assert len(results) > 40


def test_it_learns_parity() -> None:
    X, y = odd_or_even()
    classifier = EmulatedClassifier(parity).fit(X, y)
    fresh, labels = odd_or_even(seed=1)
    assert (classifier.predict(fresh) == labels).all()
    assert classifier.finished_
    assert list(classifier.classes_) == ["even", "odd"]


def test_portions_do_not_matter_and_the_seed_determines_all() -> None:
    X, y = odd_or_even()
    whole = EmulatedClassifier(parity(8), random_state=5).partial_fit(X, y)
    portions = EmulatedClassifier(parity(8), random_state=5)
    for begin in range(0, len(X), 7):
        portions.partial_fit(X[begin : begin + 7], y[begin : begin + 7], classes=["odd", "even"])
    other = EmulatedClassifier(parity(8), random_state=6).partial_fit(X, y)
    assert np.array_equal(whole.carry_.weights, portions.carry_.weights)
    assert whole.memory_ == portions.memory_ != other.memory_
    assert whole.carry_.steps == len(X)


def test_training_goes_on_after_saving_and_loading(tmp_path: Path) -> None:
    X, y = odd_or_even()
    straight = EmulatedClassifier(parity).partial_fit(X, y)
    first = EmulatedClassifier(parity).partial_fit(X[:20], y[:20])
    first.save(tmp_path / "half")
    again = EmulatedClassifier.load(tmp_path / "half").partial_fit(X[20:], y[20:])
    assert np.array_equal(straight.carry_.weights, again.carry_.weights)
    assert (again.predict(X) == straight.predict(X)).all()
    assert len(check(tmp_path / "half").statements) > 5
    refitted = EmulatedClassifier.load(tmp_path / "half").fit(X, y)
    assert (refitted.predict(X) == y).all()


def test_altered_files_are_refused(tmp_path: Path) -> None:
    X, y = odd_or_even()
    EmulatedClassifier(parity).partial_fit(X, y).save(tmp_path / "net")
    config = tmp_path / "net" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"estimator": {}}))
    with pytest.raises(BrokenNet):
        EmulatedClassifier.load(tmp_path / "net")
    with pytest.raises(BrokenNet):
        EmulatedClassifier.load(tmp_path / "nothing")


def test_a_learner_that_has_not_finished_warns() -> None:
    X, y = odd_or_even(count=6)
    with pytest.warns(ConvergenceWarning, match="guesses"):
        classifier = EmulatedClassifier(conjunction(8, 500), passes=2).fit(X, y)
    assert not classifier.finished_


def test_features_that_are_not_binary_need_a_threshold() -> None:
    X, y = odd_or_even()
    scaled = X * 3.7 - 1.0
    with pytest.raises(ValueError, match="threshold"):
        EmulatedClassifier(parity).fit(scaled, y)
    with pytest.raises(ValueError, match="'mean'"):
        EmulatedClassifier(parity, threshold="median").fit(scaled, y)
    assert (EmulatedClassifier(parity, threshold=0.5).fit(scaled, y).predict(scaled) == y).all()
    pipeline = make_pipeline(FunctionTransformer(lambda x: x > 0), EmulatedClassifier(parity))
    assert (pipeline.fit(scaled, y).predict(scaled) == y).all()


def test_bad_data() -> None:
    X, y = odd_or_even()
    with pytest.raises(NotFittedError):
        EmulatedClassifier(parity).predict(X)
    for labels in (["one"] * len(X), np.arange(len(X)) % 3):
        with pytest.raises(ValueError, match="two classes"):
            EmulatedClassifier(parity).fit(X, labels)
    with pytest.raises(TapegradError, match="takes 5 bits"):
        EmulatedClassifier(parity(5)).fit(X, y)
    classifier = EmulatedClassifier(parity).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        classifier.predict(X[:, :3])
    with pytest.raises(TapegradError, match="neither"):
        classifier.partial_fit(X[:1], ["strange"])
