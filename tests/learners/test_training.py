"""`fit`, `predict` and `score` on compiled learners, and what a net is shown."""

from dataclasses import replace

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import Array, Bit, FunctionLearner, UInt
from tapegrad._training import Course, Trainee
from tapegrad.errors import DataError, InputError
from tapegrad.learners import naive_bayes, nearest, parity
from tapegrad.learners.asked import Questions
from tapegrad.targets.emulator.net import EmulatorCarry, PracticalNet


def a_third(count: int, n: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).integers(0, 2, (count, n))
    return X, X[:, ::3].sum(axis=1) % 2


def counter(samples: int) -> FunctionLearner:
    """Adds up what it has learned from, as numbers of three bits, with the labels."""
    return FunctionLearner(
        name="sum",
        x=UInt(3),
        memory={"sum": UInt(8), "ones": UInt(4), "seen": UInt(4)},
        update=lambda memory, x, y, r: {
            "sum": memory["sum"] + x.to(UInt(8)),
            "ones": memory["ones"] + y,
            "seen": memory["seen"] + 1,
        },
        predict=lambda memory, x: memory["ones"][0],
        done=lambda memory: memory["seen"] == samples,
    )


def test_with_both_guesses_every_sample_is_learned_from_once() -> None:
    X = np.random.default_rng(3).integers(0, 2, (9, 3))
    y = np.array([0, 1, 1, 0, 1, 1, 1, 0, 1])
    net = tg.compile(counter(9), "emulator").fit(X, y)
    assert net.fitted is not None
    assert (net.fitted.finished, net.fitted.steps, net.fitted.engine) == (True, 18, "fast")
    memory = net.fitted.state.memory
    assert sum(bit << i for i, bit in enumerate(memory[:8])) == int((X @ [1, 2, 4]).sum())
    assert sum(bit << i for i, bit in enumerate(memory[8:12])) == 6
    with pytest.warns(UserWarning, match="merely guesses"):
        lost = tg.compile(counter(9), "emulator").fit(X, y, guesses="random", passes=1)
    assert lost.fitted is not None
    assert (lost.fitted.finished, lost.fitted.steps) == (False, 9)


def test_fit_predict_score() -> None:
    X, y = a_third(40)
    T, t = a_third(50, seed=1)
    words = np.array(["even", "odd"])
    net = tg.compile(parity(6), "emulator")
    with pytest.raises(InputError, match="not been trained"):
        net.predict(T)
    assert net.fit(2 * X - 1, words[y]) is net
    assert net.predict(2 * T - 1).tolist() == words[t].tolist()
    assert net.score(2 * T - 1, words[t]) == 1.0
    wrong = np.where(np.arange(50) < 10, words[1 - t], words[t])
    assert net.score(2 * T - 1, wrong) == 0.8
    assert net.fit(X * 3.5, X[:, 1], threshold=1).score(T * 3.5, T[:, 1]) == 1.0  # afresh
    slow = tg.compile(parity(6), "emulator").fit(X, y, engine="reference", passes=1)
    quick = tg.compile(parity(6), "emulator").fit(X, y, passes=1)
    assert slow.fitted is not None
    assert quick.fitted is not None
    assert slow.fitted.trainee is not None
    assert quick.fitted.trainee is not None
    assert np.array_equal(slow.fitted.trainee.carry.weights, quick.fitted.trainee.carry.weights)


def test_more_than_two_classes_on_one_network() -> None:
    random = np.random.default_rng(2)
    X, y = random.integers(0, 2, (15, 4)), random.permutation(np.arange(15) % 3)
    net = tg.compile(nearest(4, 15, classes=3), "emulator").fit(X, np.array(list("abc"))[y])
    first = [int(np.argmin((x != X).sum(axis=1))) for x in X]
    assert net.predict(X).tolist() == [("abc")[y[i]] for i in first]


@pytest.mark.parametrize("target", ["emulator", "tape"])
def test_a_learner_fits_and_predicts_on_other_targets(target: str) -> None:
    small = FunctionLearner(
        name="the bit or its opposite?",
        x=Array(Bit, 1),
        memory={"opposite": Bit, "known": Bit},
        update=lambda memory, x, y, r: {"opposite": x[0] ^ y, "known": Bit(1)},
        predict=lambda memory, x: x[0] ^ memory["opposite"],
        done=lambda memory: memory["known"],
    )
    for y in (["no", "yes"], ["yes", "no"]):
        net = tg.compile(small, target).fit([[0], [1]], y)
        assert net.fitted is not None
        assert net.fitted.finished
        assert net.predict([[1], [0], [1]]).tolist() == [y[1], y[0], y[1]]


def test_bad_data_are_named() -> None:
    net = tg.compile(parity(3), "emulator")
    X, y = np.eye(3), [0, 1, 0]
    for bad, labels, message in (
        (X[:, :2], y, "X has 2 features, and the learner takes 3"),
        (X * np.nan, y, "without NaN"),
        (X.astype(str), y, "a matrix of numbers"),
        (X[0], y, "a matrix of numbers"),
        (X * 2, y, "Give a threshold"),
        (X, [0, 1], "3 samples and labels of shape"),
        (X[:0], [], "at least one sample"),
        (X, ["a", "a", "a"], "at least two classes"),
        (X, [1, 2, 3], "there must be two classes, not 3"),
    ):
        with pytest.raises(DataError, match=message):
            net.fit(bad, labels)
    with pytest.raises(DataError, match="X has 2 features"):
        net.fit(X, y).predict(X[:, :2])
    with pytest.raises(InputError, match="no engine 'quick'"):
        net.fit(X, y, engine="quick")
    with pytest.raises(InputError, match="is no learner"):
        tg.compile("palindrome", "tape").fit(X, y)


def test_engines_are_compared_on_steps_drawn_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = a_third(20, n=3)
    net = tg.compile(naive_bayes(3, 20, fraction=3), "emulator").net
    assert isinstance(net, PracticalNet)
    trainee = Trainee.of(net, Course(Questions(3)))
    assert trainee.agreeing(X.astype(np.uint8), y, 3) == 3
    by_reference = PracticalNet.step

    def a_little_off(self: PracticalNet, carry: EmulatorCarry) -> EmulatorCarry:
        after = by_reference(self, carry)
        weights = after.weights.copy()
        weights[self.cells[0]] *= 1 + 2.0**-52
        return replace(after, weights=weights)

    monkeypatch.setattr(PracticalNet, "step", a_little_off)
    assert trainee.agreeing(X.astype(np.uint8), y, 3) == 0
