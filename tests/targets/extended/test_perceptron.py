"""Rosenblatt's rule as a machine of constant size, as a classifier and on tables, beside plain arithmetic."""

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from typer.testing import CliRunner

from tapegrad.cli import app
from tapegrad.commands.train import Table
from tapegrad.errors import DataError, InputError, Refused
from tapegrad.targets.extended import (
    MLP,
    FixedPoint,
    extend,
    linear,
    net,
    perceptron,
    perceptron_rule,
    save,
)
from tapegrad.targets.extended.classifier import PerceptronClassifier, perceptron_plainly
from tests.targets.extended.algorithms import copy_bits


def rosenblatt(x, labels, epochs, one):
    """The rule with Python's own integers: weights, and rounds taken."""
    rows = [[*map(int, row), one] for row in x]
    w = [0] * len(rows[0])
    for _ in range(epochs):
        mistakes = 0
        for row, label in zip(rows, labels, strict=True):
            sign = 1 if label > 0 else -1
            if sign * sum(a * b for a, b in zip(w, row, strict=True)) <= 0:
                w = [a + sign * b for a, b in zip(w, row, strict=True)]
                mistakes += 1
        if not mistakes:
            break
    return w


def run_plainly(x, labels, form, epochs):
    """The weights that the machine leaves on its tape, without any network."""
    procedure, weights = perceptron_rule(x.shape, (len(x), 1), form, epochs)
    numbers = np.concatenate([x.ravel(), np.asarray(labels)])
    bits = (numbers[:, None] >> np.arange(form.width) & 1).ravel()
    ones = [place for bit, places in zip(bits, procedure.data, strict=True) if bit for place in places]
    *_, last = procedure.machine.run(procedure.with_symbols(dict.fromkeys(ones, "1")))
    assert last.state == "done"
    found = [last.tapes[tape][cell] for tape, cell in procedure.result]
    words = ["".join(found[i : i + weights.width])[::-1] for i in range(0, len(found), weights.width)]
    return [int(word, 2) - (int(word[0]) << weights.width) for word in words]


@pytest.mark.parametrize("seed", range(8))
def test_the_machine_is_rosenblatts_rule(seed):
    draw = np.random.default_rng(seed)
    samples, inputs, bits, epochs = (int(draw.integers(1, most)) for most in (5, 4, 5, 4))
    form = FixedPoint(bits + 1, int(draw.integers(0, bits + 1)))
    x = draw.integers(-(1 << bits), 1 << bits, (samples, inputs))
    labels = draw.integers(-(1 << bits), 1 << bits, samples)  # their sign counts; 0 is not positive
    assert run_plainly(x, labels, form, epochs) == rosenblatt(x, labels, epochs, 1 << form.fraction)


def test_weights_have_room_for_all_that_they_can_become():
    """The same sample again and again, labelled 1 and 0 in turn, at the ends of the range."""
    x = np.array([[-8, 7], [-8, -8], [-8, 7]])
    for labels in ([1, -1, 1], [0, 1, 0], [-1, -1, -1]):
        form = FixedPoint(4)
        assert run_plainly(x, labels, form, 5) == rosenblatt(x, labels, 5, 1)


def test_the_machine_does_not_grow_with_the_data():
    small, _ = perceptron_rule((2, 1), (2, 1), FixedPoint(2), 1)
    large, weights = perceptron_rule((1000, 30), (1000, 1), FixedPoint(12, 4), 50)
    assert small.machine == large.machine
    assert len(small.machine.states) < 100
    assert weights.width == (1000 * 50 * 2**11).bit_length() + 1
    with pytest.raises(Refused, match="34 bits"):
        perceptron_rule((2000, 2), (2000, 1), FixedPoint(16), 100)
    with pytest.raises(InputError, match="one label for each"):
        perceptron_rule((4, 2), (4, 2), FixedPoint(4), 1)
    with pytest.raises(InputError, match="at least one round"):
        perceptron_rule((4, 2), (4, 1), FixedPoint(4), 0)


FORM = FixedPoint(4, 1)


def test_one_network_is_trained_on_many_data_sets():
    """The first three numbers are x[0] and x[1, 0]; labels are the smallest and the largest of the format."""
    network = extend(linear(2), copy_bits(12), (2, 2), (2, 1), data_format=FORM, cells=64)
    draw = np.random.default_rng(3)
    for labels in ([[0.5], [0.0]], [[0.0], [-0.5]], [[-4.0], [-4.0]], [[3.5], [0.5]]):
        x = draw.integers(-8, 8, (2, 2)) / 2
        run = network.train(x, labels)
        w = np.array([x[0, 0], x[0, 1], x[1, 0]])
        assert np.array_equal(run.theta, w)
        assert run.steps == 14
        assert run.compared >= 2
        others = draw.integers(-8, 8, (5, 2)) / 2  # not a multiple of the rows that the network takes
        assert np.array_equal(network.predict(run, others), (others @ w[:2] + w[2])[:, None])
    with pytest.raises(InputError, match=r"for labels of shape \(2, 1\), not \(3, 1\)"):
        network.train(np.zeros((2, 2)), [[1.0]] * 3)
    with pytest.raises(InputError, match="takes 2 inputs, not 3"):
        network.predict(run, np.zeros((1, 3)))


def test_after_the_last_comparison_steps_are_taken_many_at_a_time(monkeypatch):
    """They were taken singly from step 8^8 on, so that training of that length did not end."""
    monkeypatch.setattr(net, "SAMPLED", 1)
    network = extend(linear(2), copy_bits(12), (2, 2), (2, 1), data_format=FORM, cells=64)
    told: list[int] = []
    run = network.train(np.ones((2, 2)), [[0.5], [1.0]], progress=told.append)
    assert run.compared == 1
    assert told == [1, 14]


@pytest.mark.slow
def test_a_perceptron_learns_by_gradient_descent():
    draw = np.random.default_rng(0)
    form = FixedPoint(4)
    rule, weights = perceptron_rule((6, 2), (6, 1), form, 4)
    network = extend(perceptron(2), rule, (6, 2), (6, 1), data_format=form, weight_format=weights)
    for _ in range(3):
        x, labels = draw.integers(-8, 8, (6, 2)), draw.integers(0, 2, 6)
        labels[0] = 1  # assumption (5): not all labels are 0
        w = rosenblatt(x, labels, 4, 1)
        run = network.train(x, labels[:, None])
        assert run.theta.tolist() == w
        unseen = draw.integers(-8, 8, (20, 2))
        assert np.array_equal(network.predict(run, unseen)[:, 0], unseen @ w[:2] + w[2] >= 0)


@pytest.mark.slow
def test_iris_by_gradient_descent():
    """100 samples of 8 bits a feature: the weights are those of the rule run plainly, and of scikit-learn, to
    the last bit, and so are the answers."""
    from sklearn.datasets import load_iris
    from sklearn.linear_model import Perceptron

    x, species = (np.asarray(part) for part in load_iris(return_X_y=True))
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], species[order] == 2
    model = PerceptronClassifier(epochs=10).fit(x[:100], y[:100])
    units = np.rint(model.scaled(x) * 2**6).astype(int)
    w = rosenblatt(units[:100], y[:100], 10, 2**6)
    assert np.array_equal(model.run_.theta * 2**6, w)
    assert perceptron_plainly(units[:100], np.where(y[:100], 1, -1), 10, 2**6) == w
    theirs: Any = Perceptron(max_iter=10, tol=cast(Any, None), shuffle=False)
    theirs.fit(model.scaled(x[:100]), y[:100])
    assert np.array_equal(model.coef_, theirs.coef_)
    assert np.array_equal(model.intercept_, theirs.intercept_)
    assert np.array_equal(model.decision_function(x), theirs.decision_function(model.scaled(x)))
    assert np.array_equal(model.predict(x), theirs.predict(model.scaled(x)))
    assert model.score(x[100:], y[100:]) >= 0.9
    assert model.run_.compared == 8


def test_settings_as_scikit_learn_has_them():
    from sklearn.base import clone, is_classifier

    model = cast(PerceptronClassifier, clone(PerceptronClassifier(epochs=3))).set_params(bits=4)
    assert model.get_params() == {"epochs": 3, "bits": 4, "engine": None, "progress": None}
    assert is_classifier(model)
    with pytest.raises(DataError, match="no setting 'depth'"):
        model.set_params(depth=2)
    with pytest.raises(InputError, match="not been fitted"):
        model.predict([[1.0]])
    for labels, message in (([1, 1, 1], "two classes apart, not 1"), ([1, 0], "labels of shape")):
        with pytest.raises(DataError, match=message):
            model.fit([[1.0], [2.0], [3.0]], labels)


@pytest.mark.slow
def test_batch_after_batch():
    """One pass over all samples, three at a time: the tapes keep the weights. A batch may be of one class."""
    draw, form = np.random.default_rng(1), FixedPoint(3)
    rule, weights = perceptron_rule((3, 1), (3, 1), form, 1, batches=3)
    network = extend(MLP((1, 1), "sign"), rule, (3, 1), (3, 1), data_format=form, weight_format=weights)
    x, labels, run = draw.integers(-4, 4, (9, 1)), np.array([1, -1, 1, -1, -1, -1, 1, 1, -1]), None
    for first in range(0, 9, 3):
        run = network.train(x[first : first + 3], labels[first : first + 3, None], after=run)
        assert run.theta.tolist() == rosenblatt(x[: first + 3], labels[: first + 3], 1, 1)
    assert run is not None
    with pytest.raises(Refused, match="batch after batch"):
        save(network.on(x[:3], labels[:3, None], run), run, "never written")


IRIS = "length,width,kind\n1.5,0.2,a\n1.4,0.1,a\n4.5,1.5,b\n4.9,1.4,b\n1.3,0.3,a\n"


def written(folder: Path, text: str) -> str:
    (folder / "table.csv").write_text(text)
    return str(folder / "table.csv")


def test_tables(tmp_path):
    table = Table.read(written(tmp_path, IRIS))
    assert table.features.tolist() == [[1.5, 0.2], [1.4, 0.1], [4.5, 1.5], [4.9, 1.4], [1.3, 0.3]]
    assert table.labels.tolist() == list("aabba")
    parted = table.split(3, seed=1)
    assert parted.others is not None
    both = np.concatenate([parted.features, parted.others.features])
    assert sorted(both.tolist()) == sorted(table.features.tolist())
    first = Table.read(written(tmp_path, "x,1,2\ny,3,4\nz,5,6\n"), label="1", positive="y")
    assert first.labels.tolist() == ["other", "y", "other"]
    assert first.features.tolist() == [[1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,c\n1,2,x\n1,2,y\n1,2,z\n", "3 labels.*--positive 'x'"),
        ("1,2,x\n1,y\n", r"2 entries in a row, not 3 \(line 2\)|line 2"),
        ("1,2,x\n1,nan,y\n", "'nan' in column '2', where a feature"),
        ("1e400,2,x\n1,2,y\n", "'1e400' in column '1', where a feature"),
        ("1,2,x\n1,2, \n", "without a label.*line 2|line 2"),
        ("1,x\n", "has 1 row. "),
        ("", "0 rows"),
        ("1\n2\n", "one column"),
    ],
)
def test_tables_that_are_none(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        Table.read(written(tmp_path, text))


def test_columns_and_labels_that_are_not_there(tmp_path):
    file = written(tmp_path, IRIS)
    with pytest.raises(InputError, match="no column 'colour': its columns are length, width, kind"):
        Table.read(file, label="colour")
    with pytest.raises(InputError, match="no label 'c'"):
        Table.read(file, positive="c")
    with pytest.raises(InputError, match="there is no file"):
        Table.read(str(tmp_path / "none.csv"))
    with pytest.raises(InputError, match="5 rows, so that 9"):
        Table.read(file).split(9, 0)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_columns_may_be_left_out_and_parted_in_three_ways(mark, tmp_path):
    text = "name,age,size,size,kind\nx,1,2,7,a\ny,3,4,8,b\n".replace(",", mark)
    with pytest.raises(DataError, match=r"'x' in column 'name'.*line 2.*--without 'name'"):
        Table.read(written(tmp_path, text))
    table = Table.read(written(tmp_path, text), without=("name", "2"))
    assert table.features.tolist() == [[2, 7], [4, 8]]  # two columns of one name are two
    assert table.labels.tolist() == ["a", "b"]
    with pytest.raises(InputError, match="no column 'nam': its columns are name, age"):
        Table.read(written(tmp_path, text), without=("nam",))
    with pytest.raises(InputError, match="no features left"):
        Table.read(written(tmp_path, text), without=("1", "2", "3", "4"))


def test_a_learner_may_come_before_its_table(tmp_path):
    ran = CliRunner().invoke(app, ["train-with", "naive-bays", written(tmp_path, IRIS)])
    assert "Did you mean naive-bayes?" in str(ran.exception)


@pytest.mark.slow
def test_train_with_a_table(tmp_path):
    ran = CliRunner().invoke(
        app, ["train-with", written(tmp_path, IRIS), "--rows", "4", "--bits", "4", "--json"]
    )
    assert ran.exit_code == 0
    found = json.loads(ran.stdout)
    assert (found["rows"], found["test_rows"]) == (4, 1)
    assert found["accuracy"]["train"] == 1.0
    assert found["accuracy_plainly"] == found["accuracy"]
    assert found["engine"] == "fast"
