"""Both classifiers in scikit-learn's conventions."""

import json
import pickle
import warnings
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("sklearn")

from safetensors.numpy import load_file, save_file
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import BernoulliNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from bench import plain_learners as plain
from tapegrad.errors import BrokenNet, InputError, Refused, TapegradError
from tapegrad.learners import (
    DecisionStump,
    DecisionTree,
    NaiveBayes,
    NearestNeighbours,
    Perceptron,
    Recipe,
    Winnow,
    conjunction,
    nearest,
    parity,
)
from tapegrad.learners.on_grid import nearest_neighbour, single_coordinate
from tapegrad.learners.on_grid import parity as grid_parity
from tapegrad.lowering.grid_learner import from_machine, grid_learner
from tapegrad.machines.builder import MachineBuilder
from tapegrad.sklearn import EmulatedClassifier, RCNNClassifier
from tapegrad_check import CheckError, check
from tests.learners.on_grid.oracles import ORACLES

# EmulatedClassifier


def odd_or_even(count: int = 60, n: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).integers(0, 2, (count, n))
    return X, np.where(X[:, [1, 4, 6]].sum(axis=1) % 2 == 1, "odd", "even")


SKIPPED = {
    "check_array_api_input",
    "check_classifier_data_not_an_array",
    "check_sample_weights_pandas_series",
}
"""Without pandas and without SCIPY_ARRAY_API; by scikit-learn itself."""
ORDER = dict.fromkeys(
    ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
    "what is learned depends on the order of the samples, and the check shuffles them",
)
ONE_BIT = {"check_classifiers_train": "three heaps in the plane are too much for two features of one bit"}
ONE_LABEL = {"check_classifiers_one_label": "shown one class only, it may still answer the other"}
OWN_CHECKS = [
    (DecisionTree(), {}),
    (NaiveBayes(fraction=4), {}),
    (NearestNeighbours(neighbours=1), ORDER),
    (DecisionStump(), ONE_BIT),
    (Perceptron(), ORDER | ONE_BIT),
    (Winnow(), ORDER | ONE_BIT | ONE_LABEL),
    (parity, ONE_BIT | ONE_LABEL),
]


def own_checks(classifier: Any, exceptions: dict[str, str]) -> None:
    """scikit-learn's own checks, all of them; the exceptions are those and no others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            classifier, on_fail=None, on_skip=None, expected_failed_checks=cast(Any, exceptions)
        )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(exceptions)
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= SKIPPED
    assert len(results) > 50


def test_scikit_learns_own_checks() -> None:
    """On features made binary at their mean."""
    own_checks(EmulatedClassifier(Perceptron(), threshold="mean"), ORDER | ONE_BIT)


@pytest.mark.slow
@pytest.mark.parametrize(("made", "exceptions"), OWN_CHECKS)
def test_scikit_learns_own_checks_of_every_learner(made: Any, exceptions: dict[str, str]) -> None:
    own_checks(EmulatedClassifier(made, threshold="mean"), exceptions)


# Several classes, parameters, weights


def three_kinds(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(count) % 3)
    means = np.array([[0.9, 0.1, 0.2, 0.5, 0.8], [0.2, 0.9, 0.1, 0.5, 0.3], [0.1, 0.2, 0.9, 0.5, 0.7]])
    return (random.random((count, 5)) < means[y]).astype(int), np.array(["ant", "bee", "cat"])[y]


def numbers(y: np.ndarray) -> np.ndarray:
    return np.searchsorted(["ant", "bee", "cat"], y)


@pytest.mark.parametrize(
    ("recipe", "oracle", "networks"),
    [
        (NearestNeighbours(neighbours=3), partial(plain.nearest, k=3), 1),
        (NaiveBayes(), plain.naive_bayes, 1),
        (DecisionTree(depth=2), partial(plain.decision_tree, depth=2), 3),
        (Perceptron(passes=2), partial(plain.perceptron, passes=2), 3),
        (Winnow(passes=2), partial(plain.winnow, passes=2), 3),
    ],
)
def test_more_than_two_classes(recipe: Recipe, oracle: Any, networks: int, tmp_path: Path) -> None:
    (X, y), (T, _) = three_kinds(30), three_kinds(40, seed=1)
    classifier: Any = EmulatedClassifier(recipe).fit(X, y)
    assert len(classifier.trainees_) == networks
    expected = plain.classified(oracle, X, numbers(y), T)
    found = classifier.predict(T)
    assert numbers(found).tolist() == expected.tolist()
    assert classifier.decision_function(T).shape == (40, 3)
    assert (classifier.decision_function(T).argmax(axis=1) == expected).all()
    assert hasattr(classifier, "predict_proba") == recipe.has_probabilities
    if recipe.has_probabilities:
        likely = classifier.predict_proba(T)
        assert np.allclose(likely.sum(axis=1), 1)
        assert (likely.argmax(axis=1) == expected).all()
    classifier.save(tmp_path / "net")
    statements = check(tmp_path / "net").statements
    assert any("functions of the learner's circuit" in said for said in statements)
    assert any("of each of 3 networks after training" in said for said in statements) == (networks == 3)
    again = EmulatedClassifier.load(tmp_path / "net")
    assert again.get_params() == classifier.get_params()
    assert (again.predict(T) == found).all()
    assert (again.decision_function(T) == classifier.decision_function(T)).all()
    for copy in (pickle.loads(pickle.dumps(classifier)), deepcopy(classifier)):
        assert (copy.predict(T) == found).all()


def test_one_network_too_many_or_changed_does_not_check(tmp_path: Path) -> None:
    X, y = three_kinds(12)
    EmulatedClassifier(Perceptron(passes=1)).fit(X, y).save(tmp_path / "net")
    arrays = tmp_path / "net" / "model.safetensors"
    saved = load_file(arrays)
    other = saved["trained"].copy()
    other[2, -1] *= 2
    for trained in (other, saved["trained"][:, :-1], saved["trained"][None], saved["trained"][:0]):
        save_file(saved | {"trained": np.ascontiguousarray(trained)}, arrays)
        with pytest.raises(CheckError):
            check(tmp_path / "net")
    save_file(saved | {"trained": saved["trained"][:2].copy()}, arrays)
    with pytest.raises(BrokenNet):
        EmulatedClassifier.load(tmp_path / "net")


def test_one_against_the_rest_on_demand_and_labels_beyond_what_a_learner_knows() -> None:
    X, y = three_kinds(24)
    rest: Any = EmulatedClassifier(NaiveBayes(), multiclass="one-vs-rest").fit(X, y)
    assert len(rest.trainees_) == 3
    columns = [plain.naive_bayes(X, (numbers(y) == own).astype(int), X) for own in range(3)]
    odds = np.array([np.log((c[:, 1] / c[:, 0]).astype(float)) for c in columns]).T
    assert np.allclose(rest.decision_function(X), odds, atol=0.01)
    with pytest.raises(ValueError, match="one-vs-rest"):
        EmulatedClassifier(NaiveBayes(), multiclass="all").fit(X, y)
    four = np.append(y[:23], "dog")
    with pytest.raises(ValueError, match="tells 3 classes apart, and y has 4"):
        EmulatedClassifier(nearest(5, 9, classes=3)).fit(X, four)


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_grids_over_the_parameters_of_a_learner(processes: int) -> None:
    X, y = three_kinds(36)
    search = GridSearchCV(
        EmulatedClassifier(NearestNeighbours()), {"learner__neighbours": [1, 3, 5]}, cv=3, n_jobs=processes
    ).fit(X, y)
    for k, found in zip([1, 3, 5], search.cv_results_["split0_test_score"], strict=True):
        (train, test), *_ = StratifiedKFold(3).split(X, y)
        expected = plain.classified(partial(plain.nearest, k=k), X[train], numbers(y)[train], X[test])
        assert found == np.mean(expected == numbers(y)[test])
    classifier = EmulatedClassifier(DecisionTree(depth=3))
    assert classifier.get_params()["learner__depth"] == 3
    copy = cast(Any, clone(classifier)).set_params(learner__depth=1)
    assert (copy.learner.depth, classifier.learner) == (1, DecisionTree(depth=3))
    with pytest.raises(ValueError, match="has no parameter 'deep'"):
        copy.set_params(learner__deep=1)
    assert "DecisionTree(samples=None, depth=1)" in repr(copy)


def test_weights_of_samples_repeat_them() -> None:
    X, y = three_kinds(20)
    times = np.arange(20) % 4
    weighted = EmulatedClassifier(NaiveBayes()).fit(X, y, sample_weight=times)
    repeated = EmulatedClassifier(NaiveBayes()).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.memory_ == repeated.memory_
    theirs = BernoulliNB().fit(X, y, sample_weight=times)
    assert (weighted.predict(X) == theirs.predict(X)).all()
    assert np.allclose(cast(Any, weighted).predict_proba(X), theirs.predict_proba(X), atol=0.01)
    for bad, message in ((times / 2, "whole numbers"), (-times, "whole numbers"), (times * 0, "zero")):
        with pytest.raises(ValueError, match=message):
            EmulatedClassifier(NaiveBayes()).fit(X, y, sample_weight=bad)


def test_sparse_matrices_are_taken_as_dense_ones() -> None:
    X, y = three_kinds(20)
    dense = EmulatedClassifier(DecisionStump()).fit(X, y)
    for form in (csr_matrix, csc_matrix, csr_array, coo_array):
        sparse = EmulatedClassifier(DecisionStump()).fit(form(X), y)
        assert sparse.memory_ == dense.memory_
        assert (sparse.predict(form(X)) == dense.predict(X)).all()


def test_partial_fit_needs_to_know_how_many_samples_there_will_be() -> None:
    X, y = three_kinds(20)
    with pytest.raises(AttributeError, match="partial_fit"):
        _ = EmulatedClassifier(NaiveBayes()).partial_fit
    portions: Any = EmulatedClassifier(NaiveBayes(samples=20))
    for begin in (0, 10):
        portions.partial_fit(X[begin : begin + 10], y[begin : begin + 10], classes=["ant", "bee", "cat"])
    assert portions.finished_
    assert portions.memory_ == EmulatedClassifier(NaiveBayes()).fit(X, y).memory_


def test_bad_values_get_scikit_learns_usual_errors() -> None:
    X, y = three_kinds(9)
    for bad, labels, message in (
        (X * np.nan, y, "Input X contains NaN"),
        (np.full(X.shape, "a"), y, "not compatible with arrays of bytes/strings"),
        (X[:0], y[:0], "minimum of 1 is required"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (X[0], y, "Expected 2D array"),
        (X, ["ant"] * 9, "at least two classes"),
        (X, np.linspace(0, 1, 9), "Unknown label type"),
    ):
        with pytest.raises(ValueError, match=message):
            EmulatedClassifier(DecisionStump()).fit(bad, labels)
    classifier = EmulatedClassifier(DecisionStump()).fit(X, y)
    with pytest.raises(ValueError, match="expecting 5 features"):
        classifier.predict(X[:, :4])
    with pytest.raises(ValueError, match="passes must be a whole number"):
        EmulatedClassifier(DecisionStump(), passes=0).fit(X, y)


def test_it_learns_parity() -> None:
    X, y = odd_or_even()
    classifier = EmulatedClassifier(parity).fit(X, y)
    fresh, labels = odd_or_even(seed=1)
    assert (classifier.predict(fresh) == labels).all()
    assert classifier.finished_
    assert list(classifier.classes_) == ["even", "odd"]


def test_portions_do_not_matter_and_the_seed_determines_all() -> None:
    X, y = odd_or_even()
    whole = EmulatedClassifier(parity(8), guesses="random", random_state=5).partial_fit(X, y)
    portions = EmulatedClassifier(parity(8), guesses="random", random_state=5)
    for begin in range(0, len(X), 7):
        portions.partial_fit(X[begin : begin + 7], y[begin : begin + 7], classes=["odd", "even"])
    other = EmulatedClassifier(parity(8), guesses="random", random_state=6).partial_fit(X, y)
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
    with pytest.raises(ValueError, match="two classes"):
        EmulatedClassifier(parity).fit(X, ["one"] * len(X))
    with pytest.raises(TapegradError, match="takes 5 bits"):
        EmulatedClassifier(parity(5)).fit(X, y)
    classifier = EmulatedClassifier(parity).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        classifier.predict(X[:, :3])
    with pytest.raises(TapegradError, match="none of the classes"):
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
