"""Corollary 2 end to end: every filter compiled, trained by SGD, and chosen by what its network answers."""

import numpy as np
import pytest

from tapegrad.errors import InputError
from tapegrad.learners.on_grid import start
from tapegrad.machines.compiled import run as run_machine
from tapegrad.search import Family, machine_of, task_named
from tapegrad.search.tree import COMPLETE, GO_ON
from tapegrad.search.tree import sample as draw_machines
from tapegrad_papers.goel import corollary_2
from tapegrad_papers.goel.drawn import draw_raw_network, predict_raw, train_raw
from tapegrad_papers.goel.restarts import best_machine_filter, best_raw_filter, random_table, sizes


def by_interpreter(machine, data):
    """What the plain interpreter makes of the validation points; 0 where it does not answer."""
    labels = []
    for point in data.points:
        first = start(machine, data.X, data.y, point)
        ended = run_machine(machine, first, 10_000)
        sign = ended.final.cells.get((0, 0), "0")
        labels.append({"+": 1, "-": -1}.get(sign, 0) if ended.halted else 0)
    return np.array(labels)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["channels", "ternary"])
def test_the_filter_chosen_has_the_errors_that_its_machine_has(encoding):
    data = task_named("any-minus").data(np.random.default_rng(1), 40)
    seen = []
    chosen = best_machine_filter(
        data,
        Family(1),
        60,
        encoding=encoding,
        seed=4,
        progress=lambda done, error: seen.append((done, error)),
    )
    machine = machine_of(chosen.filter.table, Family(1))
    assert chosen.error == pytest.approx((by_interpreter(machine, data) != data.answers).mean())
    assert [done for done, _ in seen] == list(range(1, 61))
    assert seen[-1][1] == chosen.error == min(error for _, error in seen)
    lemma_2 = np.vstack(
        [np.column_stack([data.X, np.ones(len(data.X))]) * data.y[:, None], np.ones(data.X.shape[1] + 1)]
    )
    assert np.abs(3 * chosen.memory - lemma_2).max() < 1e-6


def test_the_sizes_are_those_of_the_corollary():
    asked = sizes(Family(1), 0.2, 0.2)
    assert asked.chance == pytest.approx(14.0**-3)
    assert asked.restarts == int(np.ceil(np.log(10) * 14**3))
    assert 2 * np.sqrt(np.log(2 * asked.restarts / 0.1) / (2 * asked.validation)) <= 0.2
    assert sizes(Family(2), 0.2, 0.2).chance == pytest.approx(18.0**-6)


def test_random_tables_have_every_choice_equally_often():
    rng = np.random.default_rng(0)
    tables = np.stack([random_table(Family(1), rng) for _ in range(7000)])
    _, counts = np.unique(tables[:, 1, 1:], axis=0, return_counts=True)
    assert len(counts) == 14
    assert np.abs(counts - 500).max() < 5 * np.sqrt(500)


@pytest.mark.slow
def test_the_promise_is_kept():
    """One state, all the restarts: the best of all 2,744 machines is met, and something near it is chosen."""
    asked = sizes(Family(1), 0.25, 0.25)
    data = task_named("any-minus").data(np.random.default_rng(8), asked.validation)
    chosen = best_machine_filter(data, Family(1), asked.restarts, seed=2)
    fresh = data._replace(
        points=(more := task_named("any-minus").data(np.random.default_rng(8), 2000)).points,
        answers=more.answers,
    )
    labels = by_interpreter(machine_of(chosen.filter.table, Family(1)), fresh)
    assert (labels != fresh.answers).mean() <= 0.25  # the best machine makes no error


def test_raw_networks_are_trained_by_the_gradient_of_the_stated_loss():
    """A narrow random network, its first step beside differences of the loss."""
    rng = np.random.default_rng(5)
    X, y = rng.choice([-1, 1], (1, 2)), np.array([1])
    network = draw_raw_network(1, layers=1, rng=rng, width=3)
    values = tuple(0.05 * v for v in network.V)  # so small that nothing blows up
    network = type(network)(values, network.U1 * 0.05, network.U2 * 0.05, 1, network.frame)
    after = train_raw(network, X, y)
    memory = np.zeros((2, 3))
    for sample, label in ((X[0], 1.0), (np.ones(2), 1.0)):
        z = np.append(sample, 1.0)
        gradient = np.zeros_like(memory)
        for place in np.ndindex(memory.shape):
            nudge = np.zeros_like(memory)
            nudge[place] = 1e-5
            up, down = ((label - _plain(network, memory + s * nudge, z)) ** 2 / 2 for s in (1, -1))
            gradient[place] = (up - down) / 2e-5
        memory = memory - gradient / 54
    assert np.abs(after - memory).max() < 1e-7
    assert np.abs(after).max() > 1e-6


def _plain(network, memory, z):
    """Definition 5 again, cell by cell."""
    rows, columns = memory.shape
    grid = np.pad(memory * z, 1, constant_values=1.0)
    affine = lambda matrix, x: matrix[:, :-1] @ x + matrix[:, -1]  # noqa: E731
    for _ in range(network.layers):
        padded = np.pad(grid, 1, constant_values=1 / 6)
        new = np.zeros_like(grid)
        for r, c in np.ndindex(grid.shape):
            h = np.maximum(
                affine(network.V[1], affine(network.V[0], padded[r : r + 3, c : c + 3].ravel())), 0
            )
            new[r, c] = affine(network.V[4], np.maximum(affine(network.V[3], affine(network.V[2], h)), 0))[0]
        grid = new
    cells = grid[1 : rows + 1, 1 : columns + 1].ravel()
    return sum(affine(network.U1, np.maximum(affine(network.U2, np.array([v])), 0))[0] for v in cells)


@pytest.mark.slow
def test_raw_restarts_choose_the_best_of_what_little_there_is():
    data = task_named("last-label").data(np.random.default_rng(0), 20)
    chosen = best_raw_filter(data, 1, 30, width=2, layers=2, seed=1)
    labels = predict_raw(chosen.filter, chosen.memory, data.points)
    assert chosen.error == (labels != data.answers).mean()
    assert 0 < chosen.answering <= chosen.restarts == 30
    with pytest.raises(InputError, match="at least 1"):
        best_raw_filter(data, 1, 0)


def test_points_that_need_their_sample_are_none_that_a_machine_answers_without():
    """All machines were gone through. Those found for other points answer in the plain interpreter; for these
    points none does among 300,000 that are drawn."""
    needing = corollary_2.least_that_needs_its_sample()
    d = len(needing[0])
    assert not corollary_2.needing_the_sample(d - 1)
    for hidden in corollary_2.signs(d):
        task = corollary_2.LookUp(hidden)
        problems = task.problems(useless=True)
        if any((hidden == one).all() for one in needing):
            counts, *_ = draw_machines(corollary_2.FAMILY.code(), problems, 0, 3, 300_000, 1, GO_ON)
            assert counts[COMPLETE] == 0
        else:
            machine = machine_of(corollary_2.faultless(problems)[0], corollary_2.FAMILY)
            data = task.data(1, useless=True)._replace(points=task.points, answers=task.labels)
            assert (by_interpreter(machine, data) == task.labels).all()


def test_the_share_of_good_machines_is_that_of_a_million_drawn():
    problems = corollary_2.laid_out_sets(corollary_2.LastLabel(True, 0).every())
    counts, *_ = draw_machines(corollary_2.FAMILY.code(), problems, 0, 5, 1_000_000, 1, GO_ON)
    share = corollary_2.good_share(problems)
    assert abs(counts[COMPLETE] - 1e6 * share) < 4 * np.sqrt(1e6 * share)
