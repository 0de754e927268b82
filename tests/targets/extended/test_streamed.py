"""Library learners as algorithms of an extended network: one machine, beside the learners themselves."""

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from typer.testing import CliRunner

from tapegrad.circuits import Array, Bit, array
from tapegrad.cli import app
from tapegrad.commands.train import Table
from tapegrad.errors import DataError, InputError, Refused
from tapegrad.learners import (
    FunctionLearner,
    conjunction,
    decision_list,
    decision_stump,
    dictator,
    majority,
    naive_bayes,
    nearest,
    parity,
    winnow,
)
from tapegrad.learners.tree import steps_to_grow
from tapegrad.machines import compiled
from tapegrad.targets.extended import FixedPoint, extend, load, save
from tapegrad.targets.extended.classifier import LEARNERS, LearnerClassifier, remembered_plainly
from tapegrad.targets.extended.streamed import learned
from tapegrad.targets.tape.net import TapeNet
from tests.targets.extended.test_perceptron import IRIS, written
from tests.targets.extended.test_saved import forge, tamper

DRAW = np.random.default_rng(7)


def shifted() -> FunctionLearner:
    """Every bit that is remembered goes one place on, round in a circle, and the first takes in the label."""
    return FunctionLearner(
        name="in a circle",
        x=Array(Bit, 1),
        memory={"kept": Array(Bit, 5)},
        update=lambda m, x, y, r: {
            "kept": array([m["kept"][4] ^ (x[0] & y), *[m["kept"][i] for i in range(4)]])
        },
        predict=lambda m, x: m["kept"][0],
        done=lambda m: Bit(0),
        first_memory={"kept": [1, 0, 0, 1, 1]},
    )


CASES = {
    "naive Bayes": (naive_bayes(3, 9), 9, 1),
    "winnow": (winnow(2, 24, 2), 8, 3),
    "stump": (decision_stump(2, 4), 4, -(-steps_to_grow(2, 4, 1) // 4)),
    "nearest": (nearest(3, 6, 3), 6, 1),
    "parity": (parity(3), 10, 1),
    "conjunction": (conjunction(3, 8), 4, 2),
    "decision list": (decision_list(2, 6), 6, 1),
    "majority": (majority(2, 5), 3, 2),
    "in a circle": (shifted(), 7, 2),
}


def run_plainly(procedure, x, y):
    """What the machine remembers, without any network. Labels are -1 and 1, of which 1 is positive."""
    numbers = np.concatenate([x.ravel(), np.where(y, 1, -1)])
    bits = (numbers[:, None] >> np.arange(2) & 1).ravel()
    ones = [place for bit, places in zip(bits, procedure.data, strict=True) if bit for place in places]
    ended = compiled.run(procedure.machine, procedure.with_symbols(dict.fromkeys(ones, "1")), 10**7)
    assert ended.final.state == "done"
    found = [ended.final.tapes[tape][cell] for tape, cell in procedure.result]
    assert set(found[1::2]) == {"0"}
    return tuple(map(int, found[::2]))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in ("stump", "decision list") else n for n in CASES]
)
def test_the_machine_remembers_what_the_learner_does(name):
    learner, samples, rounds = CASES[name]
    procedure = learned(learner, samples, rounds)
    for _ in range(3):
        x, y = DRAW.integers(0, 2, (samples, learner.inputs)), DRAW.integers(0, 2, samples)
        assert run_plainly(procedure, x, y) == remembered_plainly(learner, x, y, rounds)


def test_one_machine_for_all_learners_and_all_data():
    small, large = learned(parity(2), 2), learned(naive_bayes(4, 50), 1000, 3)
    assert small.machine is large.machine
    assert len(small.machine.states) == 22
    assert len(large.tapes[0]) == 2 * 5 * 1000


def test_what_cannot_be_carried_out_is_refused():
    with pytest.raises(Refused, match="draws random bits"):
        learned(dictator(2, 3), 4)
    with pytest.raises(InputError, match="at least one sample and one round"):
        learned(parity(2), 4, 0)
    with pytest.raises(InputError, match="takes 2 features and one label"):
        extend(None, parity(2), (4, 3), (4, 1))
    with pytest.raises(InputError, match="numbers of the format"):
        extend(None, parity(2), (4, 2), (4, 1), data_format=FixedPoint(4))
    with pytest.raises(InputError, match="brings its own primary network"):
        extend(None, lambda x, y: x, (4, 3), (4, 1))
    with pytest.raises(DataError, match="at least one cut"):
        LearnerClassifier(cuts=0).fit([[1.0], [2.0]], [0, 1])


def test_a_learner_that_is_not_there(tmp_path):
    table = written(tmp_path, IRIS)
    ran = CliRunner().invoke(app, ["train-with", table, "--learner", "naive-bays"])
    assert isinstance(ran.exception, InputError)
    assert "Did you mean naive-bayes?" in ran.exception.advice
    assert all(name in ran.exception.advice for name in ("perceptron", *LEARNERS))
    shown = CliRunner().invoke(app, ["train-with", "--help"], env={"COLUMNS": "200"}).stdout
    assert all(name in shown for name in ("perceptron", *LEARNERS))


@pytest.mark.slow
def test_one_network_learns_from_many_data_sets(tmp_path: Path):
    """And what is saved cannot be changed: neither theta, nor the gates of the rule or of the answer."""
    learner = conjunction(2, 6)
    network = extend(None, learner, (6, 2), (6, 1))
    points = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    for labelled in (lambda x: x[:, 0] & x[:, 1], lambda x: 1 - x[:, 1], lambda x: x[:, 0]):
        x = np.concatenate([points, DRAW.integers(0, 2, (2, 2))])
        y = labelled(x)
        run = network.train(x, 2 * y[:, None] - 1)
        memory = remembered_plainly(learner, x, y, 1)
        assert tuple(run.theta) == memory
        answers = [learner.respond(memory, row, 0, 0).answer for row in points.tolist()]
        assert (network.predict(run, points)[:, 0] > 0).tolist() == list(map(bool, answers))
        assert run.compared >= 4
    save(network.on(x, 2 * y[:, None] - 1), run, tmp_path / "net")
    again, found = load(tmp_path / "net")
    assert np.array_equal(found.theta, run.theta)
    assert np.array_equal(again.extended.predict(found, points), network.predict(run, points))
    ran = CliRunner().invoke(app, ["check", str(tmp_path / "net")])
    assert ran.exit_code == 5
    assert "gates remember of these data" in ran.stdout

    flipped = [1 - run.theta[0], *run.theta[1:].tolist()]
    for change in ("theta", "rule", "answer"):
        save(network.on(x, 2 * y[:, None] - 1), run, tmp_path / change)
        if change == "theta":
            assert isinstance(again.net, TapeNet)
            tape, cell, _ = again.algorithm.result[0]
            place = cell - again.net.first_cell, tape - again.algorithm.read_only
            tamper(tmp_path / change, "T", place, 1.0 - 2 * run.theta[0])
            forge(tmp_path / change, theta=flipped)
        else:
            config = json.loads((tmp_path / change / "config.json").read_text())
            part = config["net"]["rule" if change == "rule" else "primary"]
            for gate in part["gates"]:
                gate[0] ^= 0b1111
            (tmp_path / change / "config.json").write_text(json.dumps(config))
            forge(tmp_path / change)
        ran = CliRunner().invoke(app, ["check", str(tmp_path / change)])
        assert ran.exit_code != 0, change


def test_a_table_of_0_and_1_is_learned_from_as_it_is(tmp_path):
    """Three quarters of `a`, which is the label, are ones. Scikit-learn sees the table, not our bits."""
    from sklearn.naive_bayes import BernoulliNB

    draw = np.random.default_rng(5)
    a, b = np.array([1, 1, 1, 0] * 10), draw.integers(0, 2, 40)
    rows = np.column_stack([a, b, np.ones(40, int), a])
    lines = "\n".join(",".join(map(str, row)) for row in rows.tolist())
    file = written(tmp_path, f"a,b,always,label\n{lines}\n")
    ran = CliRunner().invoke(app, ["train-with", "naive-bayes", file, "--json"])
    found = json.loads(ran.stdout)
    table = Table.read(file).split(None, 0)
    theirs: Any = BernoulliNB(alpha=1.0, binarize=cast(Any, None)).fit(table.features, table.labels)
    assert table.others is not None
    for part, name in ((table, "train"), (table.others, "test")):
        assert found["accuracy"][name] == theirs.score(part.features, part.labels) == 1.0
    assert found["constant"] == ["always"]


@pytest.mark.parametrize("seed", range(20))
def test_features_are_cut_between_values_that_occur(seed):
    """At all places if there are few; else as near to the quantiles as any, where the bit varies."""
    draw = np.random.default_rng(seed)
    column = draw.choice(draw.normal(size=draw.integers(2, 9)), 50) * 10.0 ** draw.integers(-300, 300)
    column[draw.random(50) < draw.random()] = column[0]
    ranks = np.searchsorted(np.unique(column), column)
    steps = [ranks > rank for rank in range(ranks.max())] or [ranks > 0]
    for most in (1, 2, 3, 8):
        model = LearnerClassifier(cuts=most)
        model._look_at(column[:, None])
        bits = model.scaled(column[:, None]).T
        assert all(any(np.array_equal(bit, step) for step in steps) for bit in bits)
        if len(steps) <= most:
            assert np.array_equal(bits, steps)
        for k in range(1, most + 1):
            apart = [abs((1 - step.mean()) - k / (most + 1)) for step in (*bits, *steps)]
            assert min(apart[: len(bits)]) <= min(apart) + 1e-12


def test_neighbours_among_floats_are_told_apart():
    for below in (1.0, -1.0, 0.0, 1e-310, 1.7e308):
        pair = np.array([[below], [np.nextafter(below, np.inf)]])
        model = LearnerClassifier()
        model._look_at(pair)
        assert model.scaled(pair).tolist() == [[0], [1]]
    model._look_at(np.array([[-1.7e308], [1.7e308]]))
    assert model.scaled(np.array([[-1.7e308], [-1e308], [1e308], [1.7e308]])).ravel().tolist() == [0, 0, 1, 1]


@pytest.mark.slow
def test_iris_by_naive_bayes():
    """100 samples, one bit for each feature: the counts, and so the answers, are scikit-learn's."""
    from sklearn.base import clone
    from sklearn.datasets import load_iris
    from sklearn.naive_bayes import BernoulliNB

    x, species = (np.asarray(part) for part in load_iris(return_X_y=True))
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], species[order] == 2
    model = cast(LearnerClassifier, clone(LearnerClassifier("naive-bayes"))).fit(x[:100], y[:100])
    bits = model.scaled(x)
    theirs: Any = BernoulliNB(alpha=1.0, binarize=cast(Any, None)).fit(bits[:100], y[:100])
    assert np.array_equal(model.predict(x), theirs.predict(bits))
    assert np.array_equal(model.predict(x), model.plainly(x[:100], y[:100])(x))
    counts = np.concatenate([theirs.class_count_, theirs.feature_count_.ravel()]).astype(int)
    width = (100).bit_length()
    words = [counts[i] >> j & 1 for i in range(len(counts)) for j in range(width)]
    assert model.run_.theta[: len(words)].tolist() == words


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
def test_train_with_a_table(tmp_path, learner):
    command = ["train-with", written(tmp_path, IRIS), "--rows", "4", "--learner", learner, "--epochs", "2"]
    ran = CliRunner().invoke(app, [*command, "--json"])
    assert ran.exit_code == 0
    found = json.loads(ran.stdout)
    assert found["accuracy_plainly"] == found["accuracy"]
    assert (found["learner"], found["states"], found["vertices"]) == (learner, 22, 9600)
