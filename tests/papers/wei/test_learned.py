"""Training by margins: what is minimised is what it is said to be, and networks do learn by it."""

import json
from dataclasses import replace
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from tapegrad.cli import app
from tapegrad.errors import InputError
from tapegrad_papers.wei import learned
from tapegrad_papers.wei.learned import circuit_task, even_chance, machine_task, pairs, two_ones
from tapegrad_papers.wei.margin_training import (
    FEED_FORWARD,
    REACH,
    RECURRENT,
    flipping_margins,
    hinge_of_margins,
    margin_loss,
    norm_of,
    signed_margins,
)
from tapegrad_papers.wei.section_2 import gate_distances, gate_outputs

FAR = 100.0


def gate(theta):
    """The net of section 2 with one ReLU unit as one that is trained."""
    w, b, v, c = np.split(theta.astype(np.float32), [3, 4, 5])
    return [(jnp.asarray(w[None]), jnp.asarray(b)), (jnp.asarray(v[None]), jnp.asarray(c))]


def test_margins_of_a_unit_are_those_of_a_search_in_one_variable():
    """No less than the least change, as for any attack, and mostly the same."""
    random = np.random.default_rng(0)
    xs = np.array(list(product((0.0, 1.0), repeat=3)))
    ratios = []
    for theta in random.normal(size=(20, 6)):
        exact = gate_distances(theta[None], xs)[0]
        signs = np.sign(gate_outputs(theta[None], xs)[0])
        given = jnp.asarray(xs, jnp.float32), jnp.asarray(signs, jnp.float32)
        found = np.asarray(flipping_margins(FEED_FORWARD, gate(theta), *given, FAR))
        wrong = np.asarray(flipping_margins(FEED_FORWARD, gate(theta), given[0], -given[1], FAR))
        assert (wrong < 0).all()
        ratios += list(found / exact)
    assert min(ratios) > 0.999
    assert np.quantile(ratios, 0.7) < 1.02


def test_changes_that_are_added_to_sums_are_changes_of_parameters():
    """F(x, theta; u) is F of parameters that differ from theta by |u|: each layer's by rank one."""
    random = np.random.default_rng(1)
    theta = [
        (random.normal(size=(4, 3)), random.normal(size=4)),
        (random.normal(size=(1, 4)), random.normal(size=1)),
    ]
    x, u = random.normal(size=3), [0.1 * random.normal(size=4), 0.1 * random.normal(size=1)]
    values, changed, squares = x, [], 0.0
    for (W, b), own in zip(theta, u, strict=True):
        extended = np.append(values, 1)
        change = np.outer(own, extended) / np.linalg.norm(extended)
        squares += float((change**2).sum())
        changed.append((W + change[:, :-1], b + change[:, -1]))
        values = np.maximum(changed[-1][0] @ values + changed[-1][1], 0)
    nothing = [jnp.zeros(4), jnp.zeros(1)]
    by_u = FEED_FORWARD.output(jax.tree.map(jnp.asarray, theta), jnp.asarray(x), u)
    by_parameters = FEED_FORWARD.output(jax.tree.map(jnp.asarray, changed), jnp.asarray(x), nothing)
    assert float(by_u) == pytest.approx(float(by_parameters), rel=1e-5)
    assert squares == pytest.approx(sum(float((own**2).sum()) for own in u))


@pytest.mark.slow
def test_slopes_of_margins_are_slopes():
    """Against differences of the margin itself, for a net and for steps that share their weights. Read-outs
    are a tenth as large as at the start of training, so that margins are small and the search for them
    settles."""
    random = np.random.default_rng(2)
    tasks = circuit_task(pairs(2), 12, 8, 0), machine_task(two_ones(), 5, 12, 0)
    for task in tasks:
        with jax.enable_x64(True):
            theta = [jax.tree.map(lambda leaf: jnp.asarray(leaf, float), part) for part in task.theta]
            last = -2 if task.network is RECURRENT else -1
            theta[last] = jax.tree.map(lambda leaf: leaf / 10, theta[last])
            theta = tuple(theta) if task.network is RECURRENT else theta
            direction = jax.tree.map(lambda leaf: jnp.asarray(random.normal(size=leaf.shape)), theta)

            def margins(t, task=task, theta=theta, direction=direction):
                moved = jax.tree.map(lambda a, d: a + t * d, theta, direction)
                return signed_margins(task.network, moved, task.samples, task.signs.astype(float), FAR, 60)

            slopes = np.asarray(jax.jacfwd(margins)(0.0))
            differences = np.asarray((margins(1e-5) - margins(-1e-5)) / 2e-5)
        close = np.isclose(slopes, differences, rtol=1e-3, atol=1e-6)
        assert close.mean() > 0.8
        assert np.abs(slopes[close]).max() > 0.1


def test_the_stand_in_is_2_2_where_predictions_are_right_and_above_it_where_they_are_wrong():
    task = circuit_task(pairs(3), 40, 16, 0)
    given = FEED_FORWARD, task.theta, task.samples, task.signs
    gamma = jnp.asarray(task.gamma)  # of one type in both calls, so that margins are compiled once
    margins = np.asarray(signed_margins(*given, REACH * gamma))
    found = float(hinge_of_margins(*given, gamma))
    wrong = margins <= 0
    assert 0 < wrong.sum() < len(margins)
    assert found == pytest.approx(np.maximum(0, 1 - margins / task.gamma).mean(), rel=1e-5)
    assert margin_loss(margins, task.gamma) < found
    assert margin_loss(margins[~wrong], task.gamma) == pytest.approx(
        np.maximum(0, 1 - margins / task.gamma)[~wrong].mean()
    )
    assert margin_loss(margins[wrong], task.gamma) == 1


def test_labels_are_those_of_the_machine():
    task = machine_task(two_ones(), 9, 50, 3)
    words = ["".join(map(str, word)) for word in np.asarray(task.samples).tolist()]
    assert [("11" in word) for word in words] == (np.asarray(task.signs) > 0).tolist()
    assert all(len(word) == 8 for word in words)
    assert task.wanted.mean() == pytest.approx(0.5, abs=0.04)
    assert even_chance(2) == pytest.approx(0.5**0.5)


def test_labels_are_those_of_the_circuit():
    task = circuit_task(pairs(2), 30, 8, 1)
    x = np.asarray(task.tests).astype(int)
    assert ((x[:, 0] & x[:, 1] | x[:, 2] & x[:, 3]) == task.wanted).all()


@pytest.mark.slow
def test_a_circuit_is_learned_by_margins_with_a_smaller_norm_and_error():
    task = replace(circuit_task(pairs(2), 100, 32, 0), steps=1000)
    theta, other = task.learn(True), task.learn(False)
    assert margin_loss(task.margins(theta), task.gamma) < 0.01
    assert task.error(theta) < 0.02
    assert task.error(theta) < task.error(other)
    assert norm_of(theta) < norm_of(other) / 2


@pytest.mark.slow
def test_a_machine_is_learned_by_margins():
    task = machine_task(two_ones(), 8, 100, 0)
    theta = task.learn(True)
    assert margin_loss(task.margins(theta), task.gamma) < 0.01
    assert task.error(theta) < 0.02


@pytest.mark.slow
def test_the_experiment_as_a_user_runs_it(monkeypatch, tmp_path):
    for name in ("CIRCUIT_STEPS", "MACHINE_STEPS"):
        monkeypatch.setattr(learned, name, 20)
    drawing = tmp_path / "learned.svg"
    done = CliRunner().invoke(
        app, ["bench", "margins", "--short", "--seeds", "1", "--figure", str(drawing), "--json"]
    )
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [(row["experiment"], row["size"]) for row in rows] == [
        ("width", 16), ("width", 32), ("gates", 1), ("gates", 3), ("T", 4), ("T", 8),
    ]  # fmt: skip
    assert drawing.read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize("name", ["learned.txt", "missing/learned.svg", ""])
def test_a_figure_that_cannot_be_drawn_is_refused_before_anything_is_trained(name, tmp_path):
    found = CliRunner().invoke(app, ["bench", "margins", "--figure", str(tmp_path / name)]).exception
    assert isinstance(found, InputError)
