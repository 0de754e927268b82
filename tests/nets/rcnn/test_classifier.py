"""`RCNNClassifier` in scikit-learn's conventions; parity beside a multi-layer perceptron."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from tapegrad.errors import InputError
from tapegrad.grid_learners import nearest_neighbour, parity
from tapegrad.nets.rcnn.classifier import RCNNClassifier
from tests.grid_learners.oracles import ORACLES


def parity_data(m, d, seed, test=24):
    rng = np.random.default_rng(seed)
    hidden = rng.random(d) < 0.5
    X = rng.choice([-1, 1], (m + test, d))
    y = np.where(hidden, X, 1).prod(axis=1)
    return X[:m], y[:m], X[m:], y[m:]


def learner(make, **options) -> Any:
    built = make()
    return RCNNClassifier(built.machine, frame=tuple(built.frame), **options)


def test_learns_parity_where_a_perceptron_does_not():
    X, y, T, t = parity_data(13, 6, seed=0)
    network = learner(parity).fit(X, y)
    assert (network.predict(T) == t).all()
    assert network.layers_.max() < 10_000
    mlp = MLPClassifier((64, 64), max_iter=500, random_state=0).fit(X, y)
    assert (mlp.predict(T) == t).mean() < 0.85


@pytest.mark.slow
@pytest.mark.parametrize(("d", "m"), [(8, 20), (16, 26), (24, 36)])
def test_learns_parity_of_more_bits(d, m):
    X, y, T, t = parity_data(m, d, seed=1, test=8)
    network = learner(parity).fit(X, y)
    assert [int(p) for p in network.predict(T)] == [ORACLES["parity"](X, y, x) for x in T]
    assert (network.predict(T) == t).all()


def test_any_two_labels_zero_one_features_clones_and_pipelines():
    rng = np.random.default_rng(1)
    X = rng.choice([0, 1], (12, 3))
    y = np.where(X[:, 1] == 1, "yes", "no")
    network = learner(nearest_neighbour, zero_one=True)
    assert set(cross_val_score(network, X, y, cv=2)) <= set(np.arange(7) / 6)
    fitted: Any = clone(network)
    fitted.fit(X, y)
    signs = 2 * X - 1
    expected = [ORACLES["nearest-neighbour"](signs, np.where(y == "yes", 1, -1), x) for x in signs[:5]]
    assert fitted.predict(X[:5]).tolist() == ["yes" if e > 0 else "no" for e in expected]
    pipeline = make_pipeline(FunctionTransformer(lambda X: 2 * X - 1), learner(nearest_neighbour))
    assert pipeline.fit(X, y).predict(X[:5]).tolist() == fitted.predict(X[:5]).tolist()
    only = learner(nearest_neighbour).fit(signs[:3], ["a"] * 3)
    assert only.predict(signs[:2]).tolist() == ["a", "a"]


def test_bad_input_is_named():
    X = np.array([[1, -1], [1, 1], [-1, 1]])
    with pytest.raises(InputError, match="-1 or"):
        learner(nearest_neighbour).fit(X * 2, [1, -1, 1])
    with pytest.raises(InputError, match="0 or 1"):
        learner(nearest_neighbour, zero_one=True).fit(X, [1, -1, 1])
    with pytest.raises(InputError, match="3 classes"):
        learner(nearest_neighbour).fit(X, [1, 2, 3])
    with pytest.raises(InputError, match="no machine"):
        RCNNClassifier().fit(X, [1, -1, 1])
    with pytest.raises(ValueError, match="features"):
        learner(nearest_neighbour).fit(X, [1, -1, 1]).predict([[1]])
