"""Both classifiers in scikit-learn's conventions."""

import json
import pickle
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from tapegrad.errors import BrokenNet, InputError, Refused, TapegradError
from tapegrad.learners import conjunction, nearest, parity
from tapegrad.learners.on_grid import nearest_neighbour, single_coordinate
from tapegrad.learners.on_grid import parity as grid_parity
from tapegrad.lowering.grid_learner import from_machine, grid_learner
from tapegrad.machines.builder import MachineBuilder
from tapegrad.sklearn import EmulatedClassifier, RCNNClassifier
from tapegrad_check import check
from tests.learners.on_grid.oracles import ORACLES

# EmulatedClassifier


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


# RCNNClassifier


def parity_data(m, d, seed, test=24):
    rng = np.random.default_rng(seed)
    hidden = rng.random(d) < 0.5
    X = rng.choice([-1, 1], (m + test, d))
    y = np.where(hidden, X, 1).prod(axis=1)
    return X[:m], y[:m], X[m:], y[m:]


def learner(make, **options) -> Any:
    return RCNNClassifier(make(), **options)


def test_learns_parity_where_a_perceptron_does_not():
    X, y, T, t = parity_data(13, 6, seed=0)
    network = learner(grid_parity).fit(X, y)
    assert (network.predict(T) == t).all()
    assert network.layers_.max() < 10_000
    mlp = MLPClassifier((64, 64), max_iter=500, random_state=0).fit(X, y)
    assert (mlp.predict(T) == t).mean() < 0.85


@pytest.mark.slow
@pytest.mark.parametrize(("d", "m"), [(8, 20), (16, 26), (24, 36)])
def test_learns_parity_of_more_bits(d, m):
    X, y, T, t = parity_data(m, d, seed=1, test=8)
    network = learner(grid_parity).fit(X, y)
    assert [int(p) for p in network.predict(T)] == [ORACLES["parity"](X, y, x) for x in T]
    assert (network.predict(T) == t).all()


@pytest.mark.slow
def test_any_two_labels_zero_one_features_clones_and_pipelines():
    rng = np.random.default_rng(1)
    X = rng.choice([0, 1], (12, 3))
    y = np.where(X[:, 1] == 1, "yes", "no")
    network = learner(nearest_neighbour)
    assert set(cross_val_score(network, X, y, cv=2)) <= set(np.arange(7) / 6)
    fitted: Any = clone(network)
    fitted.fit(X, y)
    signs = 2 * X - 1
    expected = [ORACLES["nearest-neighbour"](signs, np.where(y == "yes", 1, -1), x) for x in signs[:5]]
    assert fitted.predict(X[:5]).tolist() == ["yes" if e > 0 else "no" for e in expected]
    pipeline = make_pipeline(FunctionTransformer(lambda X: 2 * X - 1), learner(nearest_neighbour))
    assert pipeline.fit(X, y).predict(X[:5]).tolist() == fitted.predict(X[:5]).tolist()
    plain = RCNNClassifier(nearest_neighbour().machine, frame=(2, 1, 1, 3)).fit(signs, y)
    assert plain.predict(signs[:5]).tolist() == fitted.predict(X[:5]).tolist()


@pytest.mark.parametrize(
    ("only", "other"), [(-1, 1), (0, 1), (1, -1), (1.0, -1.0), (True, False), (np.uint8(1), 0)]
)
def test_a_single_label_keeps_its_sign_and_the_other_can_be_answered(only, other):
    X, y = np.array([[-1, 1], [-1, -1], [-1, 1]]), np.array([only] * 3)
    network = learner(single_coordinate).fit(X, y)
    T = np.array([[1, 1], [-1, 1], [1, -1], [-1, -1]])
    sign = 1 if only > other else -1
    expected = [only if ORACLES["single-coordinate"](X, np.full(3, sign), x) == sign else other for x in T]
    assert network.predict(T).tolist() == expected
    assert sign == 1 or other in expected


def test_a_single_label_that_says_nothing_is_refused():
    X = np.array([[-1, 1], [-1, -1]])
    for label in ("a", 2, 3.0):
        with pytest.raises(ValueError, match="two classes, not 1"):
            learner(single_coordinate).fit(X, [label] * 2)


def test_a_learner_says_what_data_it_is_made_for():
    three = np.array([[1, -1, 1], [1, 1, 1], [-1, 1, 1]])
    fixed = grid_learner(parity(2))
    with pytest.raises(InputError, match=r"3 features, and 'parity of 2 bits on the grid' is made for 2"):
        RCNNClassifier(fixed).fit(three, [1, -1, 1])
    b = MachineBuilder("yes", symbols="+-=,?")
    b.accept()
    line = from_machine(b.machine(), samples=2, features=2)
    with pytest.raises(InputError, match="3 samples, and 'yes on the grid' is made for 2"):
        RCNNClassifier(line).fit(three[:, :2], [1, -1, 1])
    fewer: Any = RCNNClassifier(line).fit(three[:1, :2], [1])
    assert fewer.predict(three[:, :2]).tolist() == [1, 1, 1]


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_a_fitted_classifier_can_be_pickled_and_copied(engine):
    X, y = np.array([[1, -1], [1, 1], [-1, 1]]), [1, 1, -1]
    network = learner(single_coordinate, layers=100, engine=engine).fit(X, y)
    for again in (pickle.loads(pickle.dumps(network)), deepcopy(network)):
        assert again.machine == network.machine
        assert again.predict(X).tolist() == network.predict(X).tolist() == y


def test_a_fitted_classifier_comes_back_from_its_folder(tmp_path):
    X, y = np.array([[0, 1], [1, 1], [1, 0]]), np.array(["b", "b", "a"])
    network = learner(single_coordinate, layers=100, threshold=0.5).fit(X / 2 + 0.2, y)
    network.save(tmp_path / "net")
    assert len(check(tmp_path / "net").statements) > 3
    again = RCNNClassifier.load(tmp_path / "net")
    assert again.get_params() == network.get_params()
    assert np.array_equal(again.memory_, network.memory_)
    points = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert again.predict(points).tolist() == network.predict(points).tolist()
    assert again.fit(X, y).predict(points).tolist() == network.predict(points).tolist()
    with pytest.raises(BrokenNet, match="no saved classifier"):
        EmulatedClassifier.load(tmp_path / "net")


def test_bad_input_is_named():
    X = np.array([[1, -1], [1, 1], [-1, 1]])
    with pytest.raises(InputError, match="-1 or"):
        learner(nearest_neighbour).fit(X * 2, [1, -1, 1])
    with pytest.raises(InputError, match="0 or 1, not -1"):
        learner(nearest_neighbour).fit(X * [1, 0], [1, -1, 1])
    with pytest.raises(InputError, match="two classes, not 3"):
        learner(nearest_neighbour).fit(X, [1, 2, 3])
    with pytest.raises(InputError, match="no machine"):
        RCNNClassifier().fit(X, [1, -1, 1])
    with pytest.raises(ValueError, match="features"):
        learner(nearest_neighbour).fit(X, [1, -1, 1]).predict([[1]])
    with pytest.raises(InputError, match="no engine 'quick'"):
        learner(nearest_neighbour, engine="quick").fit(X, [1, -1, 1])
    with pytest.raises(InputError, match=r"whole number of at least 1, not 100000\.5"):
        learner(nearest_neighbour, layers=1e5 + 0.5).fit(X, [1, -1, 1])
    with pytest.raises(Refused, match="at least 5"):
        learner(nearest_neighbour, layers=3).fit(X, [1, -1, 1])
    with pytest.raises(Refused, match="Give layers="):
        learner(nearest_neighbour, engine="reference").fit(X, [1, -1, 1])
