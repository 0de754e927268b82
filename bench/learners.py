"""Learners that people know, trained by SGD on their compiled networks, beside plain Python and scikit-learn.

    python -m bench.learners [--json] [breast-cancer iris digits]

Every network is trained and asked by the fast engine, and a few of its steps of SGD, drawn at random, are
taken by automatic differentiation of the whole network as well and compared bit for bit.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bench import plain_learners as plain
from tapegrad._training import Trainee
from tapegrad.learners import recipes
from tapegrad.learners.data import cuts_of
from tapegrad.learners.recipes import Recipe
from tapegrad.sklearn import EmulatedClassifier

SEED = 0
STEPS_COMPARED = 3
NEIGHBOURS, PASSES = 3, 5


class DataSet(NamedTuple):
    """Bits and numbers of classes, to train on and to test with."""

    name: str
    X: NDArray[np.int64]
    y: NDArray[np.int64]
    T: NDArray[np.int64]
    t: NDArray[np.int64]


class Contender(NamedTuple):
    """A recipe, the same algorithm in plain Python, and the classes that scikit-learn's finds, if it has
    the algorithm."""

    name: str
    recipe: Recipe
    plain: plain.Scorer
    sklearn: Callable[[DataSet], NDArray[Any]] | None


def data_sets() -> Iterator[DataSet]:
    """Those that come with scikit-learn, made binary."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris

    X, y = load_breast_cancer(return_X_y=True)
    yield _divided("breast-cancer", _cut(X, 1), y, 455)
    X, y = load_iris(return_X_y=True)
    yield _divided("iris", _cut(X, 3), y, 120)
    X, y = load_digits(return_X_y=True)
    yield _divided("digits", (X > 7).astype(int), y, 300)


def _cut(X: Any, cuts: int) -> NDArray[np.int64]:
    """So many bits for each feature."""
    return np.concatenate([column[:, None] > cuts_of(column, cuts) for column in X.T], axis=1).astype(int)


def _divided(name: str, X: Any, y: Any, training: int) -> DataSet:
    order = np.random.default_rng(SEED).permutation(len(y))
    first, rest = order[:training], order[training:]
    return DataSet(name, X[first], y[first], X[rest], y[rest])


def contenders() -> list[Contender]:
    """Every learner of the table."""
    from sklearn.linear_model import Perceptron
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.naive_bayes import BernoulliNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    def fitted(model: Any, data: DataSet, *, one_by_one: bool = False) -> Any:
        several = one_by_one and data.y.max() > 1
        return (OneVsRestClassifier(model) if several else model).fit(data.X, data.y).predict(data.T)

    def tree(depth: int) -> Callable[[DataSet], NDArray[Any]]:
        return partial(fitted, DecisionTreeClassifier(max_depth=depth, random_state=SEED), one_by_one=True)

    def neighbours(data: DataSet) -> NDArray[Any]:
        """Of two at the same distance the earlier is made nearer, by less than any difference."""
        later = np.arange(len(data.X)) / (2 * len(data.X))
        model = KNeighborsClassifier(NEIGHBOURS, metric="precomputed")
        among = (data.X[:, None] != data.X).sum(axis=2)
        return model.fit(among, data.y).predict((data.T[:, None] != data.X).sum(axis=2) + later)

    perceptron = Perceptron(max_iter=PASSES, tol=cast(Any, None), shuffle=False)
    return [
        Contender("decision stump", recipes.DecisionStump(), partial(plain.decision_tree, depth=1), tree(1)),
        Contender(
            "tree, depth 2", recipes.DecisionTree(depth=2), partial(plain.decision_tree, depth=2), tree(2)
        ),
        Contender(
            "tree, depth 3", recipes.DecisionTree(depth=3), partial(plain.decision_tree, depth=3), tree(3)
        ),
        Contender("naive Bayes", recipes.NaiveBayes(), plain.naive_bayes, partial(fitted, BernoulliNB())),
        Contender(
            f"{NEIGHBOURS} nearest",
            recipes.NearestNeighbours(neighbours=NEIGHBOURS),
            partial(plain.nearest, k=NEIGHBOURS),
            neighbours,
        ),
        Contender(
            "perceptron",
            recipes.Perceptron(passes=PASSES),
            partial(plain.perceptron, passes=PASSES),
            partial(fitted, perceptron),
        ),
        Contender("winnow", recipes.Winnow(passes=PASSES), partial(plain.winnow, passes=PASSES), None),
    ]


def measured(contender: Contender, data: DataSet) -> dict[str, Any]:
    """One line of the table."""
    began = time.process_time()
    classifier = EmulatedClassifier(contender.recipe).fit(data.X, data.y)
    trained = time.process_time()
    ours = classifier.predict(data.T)
    asked = time.process_time()
    by_hand = plain.classified(contender.plain, data.X, data.y, data.T)
    theirs = None if contender.sklearn is None else contender.sklearn(data)
    return {
        "data": data.name,
        "learner": contender.name,
        "samples": len(data.X),
        "features": data.X.shape[1],
        "networks": len(classifier.trainees_),
        "memory": classifier.learner_.cells,
        "gates": classifier.learner_.circuit.size,
        "weights": classifier.net_.graph.edges,
        "steps": classifier.steps_,
        "ours": float(np.mean(ours == data.t)),
        "plain": float(np.mean(by_hand == data.t)),
        "sklearn": None if theirs is None else float(np.mean(theirs == data.t)),
        "same_as_plain": float(np.mean(ours == by_hand)),
        "same_as_sklearn": None if theirs is None else float(np.mean(ours == theirs)),
        "finished": classifier.finished_,
        "fit_s": trained - began,
        "predict_s": asked - trained,
        "engine": "fast",
        "compared": STEPS_COMPARED,
        "agreeing": _agreeing(classifier, data),
    }


def _agreeing(classifier: EmulatedClassifier, data: DataSet) -> int:
    """On how many of the steps drawn both engines agree, in the first network from its start."""
    trainee = classifier.trainees_[0]
    labels = data.y if len(classifier.trainees_) == 1 else (data.y == 0).astype(int)
    fresh = Trainee.of(trainee.net, trainee.course)
    return fresh.agreeing(data.X.astype(np.uint8), labels, STEPS_COMPARED, SEED)


def table(chosen: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Every learner on every data set, or on those chosen."""
    for data in data_sets():
        if not chosen or data.name in chosen:
            yield from (measured(contender, data) for contender in contenders())


def rows() -> list[dict[str, Any]]:
    """The table in the form of all benchmarks, of the data set that is learned fastest."""
    return [
        {
            "what": f"{row['learner']} on {row['data']}, {row['gates']:,} gates, {row['steps']:,} steps",
            "value": 100 * row["ours"],
            "unit": "% right",
            "rival": "scikit-learn",
            "rival_value": None if row["sklearn"] is None else 100 * row["sklearn"],
        }
        for row in table(["breast-cancer"])
    ]


HEAD = (
    "| data | learner | samples x features | networks x memory bits | gates | weights | steps of SGD "
    "| ours | plain | scikit-learn | same answers | fit, predict | engines agree |\n"
    "|---|---|---|---|---:|---:|---:|---:|---:|---:|---|---|---|"
)


def as_line(row: dict[str, Any]) -> str:
    """One line of the table, for people."""
    theirs = "-" if row["sklearn"] is None else f"{row['sklearn']:.1%}"
    same = f"plain {row['same_as_plain']:.0%}"
    if row["sklearn"] is not None:
        same += f", scikit-learn {row['same_as_sklearn']:.1%}".replace("100.0%", "100%")
    cells = (
        row["data"],
        row["learner"],
        f"{row['samples']} x {row['features']}",
        f"{row['networks']} x {row['memory']:,}",
        f"{row['gates']:,}",
        f"{row['weights']:,}",
        f"{row['steps']:,}",
        f"{row['ours']:.1%}",
        f"{row['plain']:.1%}",
        theirs,
        same,
        f"{row['fit_s']:.1f} s, {row['predict_s']:.1f} s",
        f"{row['agreeing']} of {row['compared']} steps",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Prints the table, line by line."""
    parser = argparse.ArgumentParser(description="Learners by SGD, in plain Python and in scikit-learn.")
    parser.add_argument("data", nargs="*", help="breast-cancer, iris, digits; default all")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.json:
        print(HEAD, flush=True)
    for row in table(options.data):
        print(json.dumps(row) if options.json else as_line(row), flush=True)


if __name__ == "__main__":
    main()
