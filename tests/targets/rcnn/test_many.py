"""Many test points and many networks at once, against single runs, `reference` and the plain interpreter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.errors import InputError, Refused
from tapegrad.learners.on_grid import single_coordinate, start
from tapegrad.machines.compiled import run
from tapegrad.machines.model import GridMachine, GridRule
from tapegrad.targets.rcnn import predicting
from tapegrad.targets.rcnn.encoding import COMPUTE, Cells, cell_values
from tapegrad.targets.rcnn.fast import Roller
from tapegrad.targets.rcnn.network import Frame, Rcnn
from tapegrad.targets.rcnn.predicting import (
    NotHalted,
    Outcome,
    distinct_points,
    outcomes_on,
    predict,
    predict_many,
)
from tapegrad.targets.rcnn.training import memorise, memorise_many
from tapegrad_papers.goel.definitions import printed_head
from tests.targets.rcnn.test_learning import TOLERANCE, lemma_2

MOVES = ("up", "down", "left", "right", "stay")


def random_learner(rng, states, symbols="0+-"):
    """About one entry in four is missing, so many of them halt."""
    names = [f"q{i}" for i in range(states)]
    rules = {
        (q, a): GridRule(
            symbols[rng.integers(len(symbols))], MOVES[rng.integers(5)], names[rng.integers(states)]
        )
        for q in names
        for a in symbols
        if rng.random() < 0.75
    }
    return GridMachine(rules, names[0], alphabet=tuple(symbols[1:]), states=tuple(names))


def problem(rng, m=2, d=2):
    X, y = rng.choice([-1, 1], (m, d)), rng.choice([-1, 1], m)
    return X, y, rng.choice([-1, 1], (6, d))


def by_interpreter(machine, X, y, x, frame, layers):
    """Outcome, label and layers by the plain interpreter; the first layer puts the head down, and the last
    is the one that changes nothing."""
    rows, columns = len(X) + 1, X.shape[1] + 1
    tall, wide = range(-frame.top, rows + frame.bottom), range(-frame.left, columns + frame.right)
    state = start(machine, X, y, x)
    for steps in range(layers):
        if state.head[0] not in tall or state.head[1] not in wide:
            return Outcome.LOST, 0, steps + 1
        following = machine.step(state)
        if following is None:
            break
        state = following
    else:
        return Outcome.NOT_HALTED, 0, layers
    main = [a for (r, c), a in state.cells.items() if 0 <= r < rows and 0 <= c < columns]
    total = main.count("+") - main.count("-")
    inside = state.head[0] in range(rows) and state.head[1] in range(columns)
    head_on_blank = inside and state.head not in state.cells
    clean = set(main) <= {"+", "-"} and not head_on_blank
    return (Outcome.ANSWERED, total, steps) if clean and abs(total) == 1 else (Outcome.NO_SIGN, 0, steps)


@settings(deadline=None, max_examples=12)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.sampled_from(["0+-", "0+-*", "0+-abcd"]),
    st.sampled_from(["channels", "ternary"]),
)
def test_outcomes_are_the_interpreters(seed, states, symbols, encoding):
    rng = np.random.default_rng(seed)
    X, y, T = problem(rng)
    frame = Frame(*(int(n) for n in rng.integers(1, 4, 4)))
    machines = [random_learner(rng, states, symbols) for _ in range(8)]
    layers = 40
    networks = [Rcnn.of(machine, 2, 2, layers, encoding=encoding, frame=frame) for machine in machines]
    found = predict_many(networks, [lemma_2(X, y, 3)] * 8, T)
    for i, machine in enumerate(machines):
        for j, x in enumerate(T):
            outcome, label, steps = by_interpreter(machine, X, y, x, frame, layers)
            assert (found.outcomes[i, j], found.labels[i, j]) == (outcome, label)
            if outcome == Outcome.LOST:
                assert found.layers[i, j] == steps
            if outcome in (Outcome.ANSWERED, Outcome.NO_SIGN):
                # the message that computing has begun goes on after a machine that halts early
                assert found.layers[i, j] >= steps + 2


@pytest.mark.slow
@pytest.mark.parametrize("encoding", [pytest.param("ternary", marks=pytest.mark.slow), "channels"])
def test_many_networks_are_trained_and_run_as_one_by_one(encoding):
    rng = np.random.default_rng(1)
    X, y, T = problem(rng)
    sizes = (1, "0+-"), (2, "0+-"), (2, "0+-"), (5, "0+-*")
    machines = [random_learner(rng, *size) for size in sizes]
    frames = [Frame(), Frame(), Frame(2, 1, 1, 3), Frame()]
    networks = [
        Rcnn.of(machine, 2, 2, 30, encoding=encoding, frame=frame)
        for machine, frame in zip(machines, frames, strict=True)
    ]
    memories = memorise_many(networks, X, y)
    found = predict_many(networks, memories, T)
    for i, network in enumerate(networks):
        *_, last = memorise(network, X, y, engine="reference" if i == 0 else "fast")
        assert np.abs(memories[i] - last.memory).max() < TOLERANCE[encoding]
        assert np.abs(memories[i] - lemma_2(X, y, 3)).max() < TOLERANCE[encoding]
        for j, x in enumerate(T):
            if found.outcomes[i, j] == Outcome.ANSWERED:
                one = predict(network, memories[i], x[None])
                assert (one.labels[0], one.layers[0]) == (found.labels[i, j], found.layers[i, j])
            else:
                with pytest.raises(Refused):
                    predict(network, memories[i], x[None])


@pytest.mark.slow
@pytest.mark.parametrize("encoding", [pytest.param("ternary", marks=pytest.mark.slow), "channels"])
def test_the_engines_agree_on_every_outcome(encoding):
    rng = np.random.default_rng(2)
    X, y, T = problem(rng)
    memory = lemma_2(X, y, 3)
    seen = set()
    for _ in range(5):
        network = Rcnn.of(random_learner(rng, 2), 2, 2, 30, encoding=encoding)
        memory = memory.astype(network.filter.dtype)
        Z, _ = distinct_points(T)
        slow, _ = predicting._reference(network, memory, Z.astype(memory.dtype))
        fast = outcomes_on(network, Roller(network.filter, network.encoding), memory, Z)
        assert slow.outcomes.tolist() == fast.outcomes.tolist()
        assert slow.labels.tolist() == fast.labels.tolist()
        seen |= set(fast.outcomes.tolist())
    assert seen == set(Outcome)


@pytest.mark.parametrize(("symbols", "states"), [(3, 1), (3, 5), (4, 2), (9, 6)])
def test_stray_contents_are_those_where_the_papers_head_gives_a_fraction(symbols, states):
    cells = Cells(symbols, states)
    computing = (cells.facts[:, 0] == 0) & (cells.facts[:, 2] >= COMPUTE)
    signs = printed_head(cell_values(cells)[computing])
    fraction = np.abs(signs - np.rint(signs)) > 1e-6
    assert (fraction == cells.stray[computing]).all()
    assert fraction.any()


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("encoding", [pytest.param("ternary", marks=pytest.mark.slow), "channels"])
def test_what_is_left_beside_the_answer_makes_it_none(encoding, engine):
    """A sample of one feature, cleared from the right; the third cell keeps what it is told."""
    memory = lemma_2(np.array([[1]]), np.array([1]), 2)
    for left, answered in (("0", True), ("*", False)):
        rules = {("A", "+"): GridRule("0", "left", "B"), ("B", "+"): GridRule(left, "up", "C")}
        rules |= {("C", "+"): GridRule("+", "right", "D"), ("D", "+"): GridRule("0", "left", "E")}
        network = Rcnn.of(GridMachine(rules, "A"), 1, 1, 12, encoding=encoding)
        if answered:
            assert predict(network, memory, np.array([[1]]), engine=engine).labels.tolist() == [1]
            continue
        with pytest.raises(Refused, match="does not hold one sign and blanks"):
            predict(network, memory, np.array([[1]]), engine=engine)


def test_many_points_come_in_order_with_progress():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], (6, 11))
    learner = single_coordinate()
    network = Rcnn.of(learner.machine, 6, 11, 5000)
    y = X[:, 4]
    T = rng.choice([-1, 1], (700, 11))
    told: list[int] = []
    found = predict(network, lemma_2(X, y, 7), T, progress=told.append)
    for j in range(0, 700, 50):
        ended = run(learner.machine, start(learner.machine, X, y, T[j]), 10**6)
        assert found.labels[j] == (1 if ended.final.cells[0, 0] == "+" else -1)
        assert found.layers[j] == max(ended.steps, 17) + 2
    assert told == sorted(told)
    assert told[-1] == len(np.unique(T, axis=0))


def test_an_error_names_the_first_test_point_without_an_answer():
    """A machine that answers where the test row's feature is -1, and walks off to the left where it is +1."""
    rules = {("A", "+"): GridRule("0", "left", "B"), ("B", "+"): GridRule("+", "left", "C")}
    rules |= {("C", a): GridRule(a, "left", "C") for a in "0+-"}
    rules |= {("B", "-"): GridRule("0", "up", "D"), ("D", "-"): GridRule("0", "right", "D")}
    network = Rcnn.of(GridMachine(rules, "A"), 1, 1, 40)
    memory = lemma_2(np.array([[1]]), np.array([1]), 2)
    assert predict(network, memory, np.array([[-1]])).labels.tolist() == [1]
    points = np.array([[-1], [-1], [1], [-1], [1]])
    with pytest.raises(Refused, match=r"left the grid \(test point 3, after cell \(1, -1\)\)"):
        predict(network, memory, points)
    with pytest.raises(Refused, match=r"left the grid \(test point 3\)"):
        predict(network, memory, points, engine="reference")


def test_bad_input_is_named():
    X, y, T = problem(np.random.default_rng(0))
    network = Rcnn.of(single_coordinate().machine, 2, 2, 30)
    assert memorise_many([], X, y) == []
    assert predict_many([], [], T).labels.shape == (0, 6)
    assert predict_many([network], [network.empty_memory()], T[:0]).labels.shape == (1, 0)
    with pytest.raises(InputError, match="1 networks and 0 memories"):
        predict_many([network], [], T)
    with pytest.raises(InputError, match="3 features"):
        predict_many([network], [network.empty_memory()], np.ones((2, 3)))
    with pytest.raises(InputError, match="1 samples leave rows"):
        memorise_many([network], X[:1], y[:1])
    with pytest.raises(NotHalted, match="within 30 layers"):
        predict(network, lemma_2(X, X[:, 0], 3), T)
