"""Learners that people know, against the same algorithms on whole data sets in plain Python, which share
nothing with them (`bench.plain_learners`), and against scikit-learn."""

from functools import partial

import numpy as np
import pytest

from bench import plain_learners as plain
from tapegrad._compile import compile
from tapegrad._training import Course, Trainee
from tapegrad.errors import DataError, Refused
from tapegrad.learners import (
    CircuitLearner,
    DecisionTree,
    LearnerState,
    NaiveBayes,
    NearestNeighbours,
    Perceptron,
    Winnow,
    asked,
    decision_stump,
    decision_tree,
    naive_bayes,
    nearest,
    perceptron,
    winnow,
)
from tapegrad.learners.asked import AskedLearner, Questions, questions_of
from tapegrad.learners.recipes import RECIPES, Recipe
from tapegrad.learners.tree import steps_to_grow


def data(seed: int, count: int, n: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Bits that tell something about the class, and noise; every class occurs."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(count) % classes)
    means = random.random((classes, n)) * 0.8 + 0.1
    return (random.random((count, n)) < means[y]).astype(np.uint8), y


def taught(learner: AskedLearner, X: np.ndarray, y: np.ndarray, passes: int = 1) -> Trainee:
    """The network of the learner, trained by SGD."""
    trainee = Trainee.of(compile(learner, "emulator").net, Course(questions_of(learner)))  # type: ignore
    for _ in range(passes):
        trainee = trainee.trained(X, y)
    return trainee


# Each learner, its scores included, as a network trained by SGD


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_trees_are_those_that_recursion_grows(depth: int, seed: int) -> None:
    (X, y), (T, _) = data(seed, 23, 5), data(seed + 9, 60, 5)
    X[:, 3] = X[:, 1]  # equally good: the first one counts
    X[:, 4] = 1  # and one that divides nothing
    trainee = taught(decision_tree(5, 23, depth, scores=True), X, y, passes=7)
    assert trainee.finished
    expected = plain.decision_tree(X, y, T, depth)
    assert trainee.labels(T).tolist() == (expected > 0).tolist()
    size, positive = trainee.scores(T).T
    assert (positive / size - 0.5).tolist() == expected.tolist()


def test_a_tree_finds_what_no_single_bit_tells() -> None:
    """The first split of XOR gains nothing, and must be made all the same; nodes that cannot be split are
    sent on, and a tree takes as many samples as it says."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 2, np.uint8)
    y = X[:, 0] ^ X[:, 1]
    learner = decision_tree(2, 8, 3)
    steps = steps_to_grow(2, 8, 3)
    assert steps == 38
    rows = np.arange(steps) % 8
    before, after = (taught(learner, X[rows[:count]], y[rows[:count]]) for count in (steps - 1, steps))
    assert (before.finished, after.finished) == (False, True)
    assert after.labels(X).tolist() == y.tolist()


def test_a_stump_is_a_tree_of_depth_1() -> None:
    (X, y), (T, _) = data(4, 31, 6), data(5, 40, 6)
    trainee = taught(decision_stump(6, 31), X, y, passes=2)
    assert trainee.labels(T).tolist() == (plain.decision_tree(X, y, T, 1) > 0).tolist()


@pytest.mark.parametrize(
    ("classes", "alpha"),
    [(2, 1.0), (2, 0.25), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((3, 1.0), (5, 2.0)))],
)
def test_naive_bayes_is_within_its_rounding_of_exact_fractions(classes: int, alpha: float) -> None:
    n, fraction = 6, 7
    (X, y), (T, _) = data(classes, 40, n, classes), data(6, 64, n, classes)
    trainee = taught(naive_bayes(n, 40, alpha, fraction=fraction, classes=classes, scores=True), X, y)
    exact = plain.naive_bayes(X, y, T, alpha)
    logarithms = np.log2(exact.astype(float))
    bound = (n + 1) * 2.0**-fraction
    scores = trainee.scores(T) * 2.0**-fraction
    apart = (scores[:, :, None] - scores[:, None]) - (logarithms[:, :, None] - logarithms[:, None])
    assert np.abs(apart).max() <= bound
    assert np.abs(apart).max() > 0  # it does round
    best = np.sort(logarithms, axis=1)
    clear = best[:, -1] - best[:, -2] > bound
    assert clear.mean() > 0.7
    assert (trainee.labels(T) == logarithms.argmax(axis=1))[clear].all()
    assert (trainee.labels(T) == trainee.scores(T).argmax(axis=1)).all()


@pytest.mark.parametrize(("k", "classes"), [(1, 2), (2, 2), (5, 2), (3, 3), (4, 5), (12, 4)])
def test_nearest_are_those_that_a_stable_sort_puts_first(k: int, classes: int) -> None:
    (X, y), (T, _) = data(k, 12, 4, classes), data(k + 50, 40, 4, classes)
    trainee = taught(nearest(4, 12, k, classes=classes, scores=True), X, y)
    expected = plain.nearest(X, y, T, k)
    assert trainee.scores(T).tolist() == expected.tolist()
    assert trainee.labels(T).tolist() == expected.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("learner", "oracle", "unit"),
    [(perceptron, plain.perceptron, 1), (winnow, plain.winnow, 2**8), (partial(winnow, floor=1), None, 2)],
)
def test_weights_that_are_learned_from_mistakes(learner, oracle, unit) -> None:
    oracle = oracle or partial(plain.winnow, floor=1)
    (X, y), (T, _) = data(3, 40, 7), data(4, 60, 7)
    y = y ^ (np.arange(40) % 9 == 0)  # never quite right, so that weights keep moving, down to the floor
    trainee = taught(learner(7, 120, scores=True), X, y, passes=3)
    assert trainee.finished
    expected = oracle(X, y, T, passes=3)
    assert (trainee.scores(T)[:, 0] / unit).tolist() == expected.tolist()
    assert trainee.labels(T).tolist() == (expected > 0).tolist()


def test_the_perceptron_has_the_weights_of_scikit_learns() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = data(8, 50, 6)
    theirs = linear_model.Perceptron(max_iter=4, tol=None, shuffle=False).fit(X, y)
    T = np.vstack([np.zeros(6, np.uint8), np.eye(6, dtype=np.uint8)])
    found = taught(perceptron(6, 200, scores=True), X, y, passes=4).scores(T)[:, 0]
    assert found[0] == theirs.intercept_[0]
    assert (found[1:] - found[0]).tolist() == theirs.coef_[0].tolist()


@pytest.mark.parametrize(
    "learner",
    [
        decision_tree(3, 5, 2, scores=True),
        naive_bayes(3, 5, classes=3, fraction=3, scores=True),
        nearest(3, 4, 2, classes=3, scores=True),
        perceptron(3, 9, scores=True),
        winnow(3, 9, floor=2, scores=True),
    ],
    ids=lambda learner: learner.name,
)
def test_the_function_and_its_circuit_agree_at_every_step(learner: AskedLearner) -> None:
    questions = learner.questions
    X, y = data(1, 20 if "tree" in learner.name else 9, 3, questions.classes)
    samples = Course(questions).shown(X, y, 0)
    states = [
        list(own.run(LearnerState(own.first, 0, None, samples)))
        for own in (learner, CircuitLearner(learner.circuit, learner.inputs, learner.first))
    ]
    assert states[0] == states[1]
    final, rows = states[0][-1].memory, questions.rows(X[:1], range(questions.total))
    twin = CircuitLearner(learner.circuit, learner.inputs, learner.first)
    for row in rows.tolist():
        assert learner.respond(final, row, 0, 0) == twin.respond(final, row, 0, 0)
    assert states[0][-1].answer is not None


# Learners with several output bits


def test_a_learner_hears_the_bits_of_a_label_one_by_one() -> None:
    """It remembers the last label, a number below 6; asked, it answers its bits, and those of its double."""
    from tapegrad.circuits import UInt
    from tapegrad.learners.asked import Scores

    learner = asked(
        name="last label",
        features=2,
        classes=6,
        memory={"label": UInt(3)},
        update=lambda memory, x, y, r: {"label": y},
        predict=lambda memory, x: memory["label"],
        done=lambda memory: memory["label"] == 5,
        scores=Scores([UInt(4)], lambda memory, x: [memory["label"].to(UInt(4)) << 1]),
    )
    assert learner.questions == Questions(2, 6, (UInt(4),))
    assert (learner.inputs, learner.questions.total) == (2 + 3, 3 + 4)
    points = np.array([[0, 1], [1, 0], [1, 1]], np.uint8)
    trainee = taught(learner, points, np.array([3, 1, 5]))
    assert trainee.carry.steps == 3 * 3 * 2
    assert trainee.finished
    assert trainee.labels(points).tolist() == [5, 5, 5]
    assert trainee.scores(points).tolist() == [[10], [10], [10]]
    assert not taught(learner, points[:2], np.array([3, 1])).finished


def test_questions_are_numbers_after_the_features() -> None:
    questions = Questions(2, 5)
    assert (questions.label_bits, questions.width) == (3, 2)
    rows = questions.rows(np.array([[1, 0], [0, 1]], np.uint8), range(3))
    assert rows.tolist() == [
        [1, 0, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1],
    ]  # fmt: skip
    assert questions.bits_of_labels(np.array([4, 3])).tolist() == [0, 0, 1, 1, 1, 0]
    assert questions.labels(np.array([0, 0, 1, 1, 1, 0], bool)).tolist() == [4, 3]


def test_what_random_guesses_would_lose_is_refused() -> None:
    with pytest.raises(DataError, match="cannot be learned where samples are lost"):
        Course(Questions(2, 3), "random")
    with pytest.raises(DataError, match="'both' or 'random'"):
        Course(Questions(2), "none")


# Recipes


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_knows_about_how_many_gates_it_takes(name: str) -> None:
    recipe: Recipe = RECIPES[name]()
    for features, samples in ((8, 60), (20, 100), (6, 200)):
        gates = recipe.learner(features, samples).circuit.size
        assert gates / 2.5 < recipe.gates(features, samples, 2) < 2.5 * gates


def test_what_would_be_far_too_large_is_refused_with_the_numbers() -> None:
    for recipe in (NearestNeighbours(), NaiveBayes(), DecisionTree(depth=6)):
        with pytest.raises(Refused, match=r"60,000 samples of 784 features takes about [\d,]+ gates"):
            recipe.learner(784, 60_000, 2)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (DecisionTree(depth=0), "a depth of 1 to 6"),
        (DecisionTree(depth=2.5), "must be a whole number"),  # type: ignore[arg-type]
        (NaiveBayes(alpha=0), "alpha above 0"),
        (NaiveBayes(alpha="1"), "must be a number"),  # type: ignore[arg-type]
        (NearestNeighbours(neighbours=11), "11 neighbours cannot be found among 10 samples"),
        (Perceptron(passes=0), "at least one sample"),
        (Winnow(floor=33), "between 0 and 32"),
        (Winnow(samples=-1), "of at least 0"),
    ],
)
def test_parameters_that_do_not_fit_are_errors_of_value(recipe: Recipe, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recipe.learner(3, 10)


def test_probabilities_follow_from_the_scores() -> None:
    tree = DecisionTree().probabilities(np.array([[8, 2], [0, 0]]))
    assert tree.tolist() == [[0.75, 0.25], [0.5, 0.5]]
    votes = NearestNeighbours().probabilities(np.array([[1, 3, 0], [0, 0, 0]]))
    assert votes.tolist() == [[0.25, 0.75, 0.0], [1 / 3] * 3]
    bayes = NaiveBayes(fraction=2).probabilities(np.array([[4, 12]]))
    assert np.allclose(bayes, [[0.2, 0.8]], rtol=1e-12)
    assert Perceptron().probabilities(np.array([[3]])) is None
