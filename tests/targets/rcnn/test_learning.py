"""Definition 5 and Algorithm 1: memorising by SGD, then the learning algorithm in the forward pass."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from tapegrad._precision import in_double
from tapegrad.cli import app
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.learners.on_grid import GRID_LEARNERS, nearest_neighbour, single_coordinate, start
from tapegrad.machines.model import GridMachine, GridRule
from tapegrad.targets.rcnn.network import Frame, Rcnn
from tapegrad.targets.rcnn.predicting import NotHalted, configuration, predict, predict_many, roll_out
from tapegrad.targets.rcnn.training import memorise
from tapegrad_papers.layers import chain
from tests.learners.on_grid.oracles import ORACLES, problem

TOLERANCE = {"ternary": 1e-10, "channels": 1e-7}


def lemma_2(X, y, steps):
    """The memory after this many steps: a third of label times sample, row by row; zero below."""
    samples = np.vstack([np.column_stack([X, np.ones(len(X))]) * y[:, None], np.ones(X.shape[1] + 1)])
    samples[steps:] = 0
    return samples / 3


def trained(learner, X, y, encoding, engine="fast", layers=5000):
    network = Rcnn.of(learner.machine, len(X), X.shape[1], layers, encoding=encoding, frame=learner.frame)
    return network, list(memorise(network, X.astype(float), y.astype(float), engine=engine))


@pytest.mark.parametrize("encoding", ["ternary", "channels"])
@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_memory_is_lemma_2_after_every_step_and_the_output_is_0(encoding, engine):
    X, y, _ = problem("conjunction", 5, 3, np.random.default_rng(0))
    _, steps = trained(single_coordinate(), X, y, encoding, engine, layers=40)
    assert len(steps) == 6
    for i, step in enumerate(steps):
        assert np.abs(step.memory - lemma_2(X, y, i + 1)).max() < TOLERANCE[encoding]
        assert abs(step.output) < TOLERANCE[encoding]
        assert step.layers == (40 if engine == "reference" else max(i, 5 - i) + 1)  # the message's way


@pytest.mark.parametrize("encoding", [pytest.param("ternary", marks=pytest.mark.slow), "channels"])
def test_every_layer_decodes_to_the_machines_grid(encoding):
    learner = nearest_neighbour()
    X, y, x = problem("nearest-neighbour", 4, 3, np.random.default_rng(2))
    network, steps = trained(learner, X, y, encoding)
    layers = int(predict(network, steps[-1].memory, x[None]).layers[0])
    grids = list(roll_out(network.with_layers(layers), steps[-1].memory, x))
    expected = list(learner.machine.run(start(learner.machine, X, y, x)))
    assert configuration(network, grids[0]) is None  # the first layer puts the head down
    assert [configuration(network, grid) for grid in grids[1:]] == [*expected, expected[-1]]


@pytest.mark.parametrize("name", GRID_LEARNERS)
def test_predictions_are_the_algorithms_on_all_test_points(name):
    learner = GRID_LEARNERS[name]()
    X, y, _ = problem(name, 5, 3, np.random.default_rng(5))
    network, steps = trained(learner, X, y, "channels", layers=100_000)
    T = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    found = predict(network, steps[-1].memory, T)
    assert found.labels.tolist() == [ORACLES[name](X, y, x) for x in T]


@pytest.mark.parametrize("encoding", [pytest.param("ternary", marks=pytest.mark.slow), "channels"])
def test_reference_and_fast_predict_alike(encoding):
    learner = single_coordinate()
    X, y, _ = problem("single-coordinate", 4, 2, np.random.default_rng(1))
    network, steps = trained(learner, X, y, encoding)
    T = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    fast = predict(network, steps[-1].memory, T)
    slow = predict(network.with_layers(int(fast.layers.max())), steps[-1].memory, T, engine="reference")
    assert slow.labels.tolist() == fast.labels.tolist() == [ORACLES["single-coordinate"](X, y, x) for x in T]


def test_the_jacobian_is_as_prescribed_on_every_patch_met():
    """B.2: 1 by the centre where it memorises or is written first, 0 otherwise."""
    learner = single_coordinate()
    X, y, x = problem("single-coordinate", 3, 2, np.random.default_rng(1))
    network, steps = trained(learner, X, y, "ternary", layers=40)
    memories = [network.empty_memory(), *(step.memory for step in steps)]
    patches = {}
    for memory in memories:
        for grid in roll_out(network, memory, x):
            padded = np.pad(grid[0], 1, constant_values=1 / 6)
            for r, c in np.ndindex(*grid[0].shape):
                patch = padded[r : r + 3, c : c + 3]
                patches[tuple(np.round(patch.ravel(), 9))] = patch.ravel()
    P = np.array(list(patches.values()))

    @in_double
    def jacobian(P):
        def one(patch):
            return chain(network.filter.layers, patch)[0]

        return np.asarray(jax.jit(jax.vmap(jax.grad(one)))(jnp.asarray(P)))

    centre, above = P[:, 4], P[:, 1]
    memorising = np.isclose(centre, -1 / 9)
    first = np.isclose(centre, 0) & (np.isclose(above, 1) | np.isclose(np.abs(above), 1 / 3))
    expected = np.zeros_like(P)
    expected[:, 4] = memorising | first
    assert memorising.sum() > 20
    assert first.sum() > 2
    assert len(P) > 500
    assert np.abs(jacobian(P) - expected).max() < 1e-9


def test_bad_input_is_named():
    learner = single_coordinate()
    network = Rcnn.of(learner.machine, 3, 2, 50)
    X, y = np.array([[1, 1], [-1, 1], [1, -1]]), np.array([1, -1, 1])
    with pytest.raises(InputError, match=r"-1 or \+1, not 0.*sample 2, feature 1"):
        list(memorise(network, np.where(X == -1, 0, X) * np.array([1, 1]), y))
    with pytest.raises(InputError, match="4 samples for a memory of 3 rows"):
        list(memorise(network, np.vstack([X, X[:1]]), np.append(y, 1)))
    with pytest.raises(InputError, match="2 samples leave rows"):
        list(memorise(network, X[:2], y[:2]))
    with pytest.raises(InputError, match="labels must be"):
        list(memorise(network, X, np.array([1, 2, 1])))
    with pytest.raises(Refused, match="at least 5"):
        Rcnn.of(learner.machine, 3, 2, 4)
    with pytest.raises(Refused, match="frame"):
        Rcnn.of(learner.machine, 3, 2, 40, frame=Frame(top=0))
    with pytest.raises(InputError, match="blank"):
        Rcnn.of(GridMachine({}, "A", blank="_"), 3, 2, 40)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_a_memory_of_another_network_is_named(engine):
    learner = single_coordinate()
    X, y, T = np.array([[1, 1], [-1, 1], [1, -1]]), np.array([1, -1, 1]), np.array([[1, 1]])
    network = Rcnn.of(learner.machine, 3, 2, 80)
    W = lemma_2(X, y, 4)
    assert predict(network, W, T, engine=engine).labels.tolist() == [1]
    for wrong in (W[:3], np.vstack([W, W]), W[:, :1], W[0]):
        with pytest.raises(InputError, match="4 rows of 3"):
            predict(network, wrong, T, engine=engine)
        with pytest.raises(InputError, match="4 rows of 3"):
            predict_many([network], [wrong], T)
    for wrong in (W * np.nan, W * np.inf, W.astype(str)):
        with pytest.raises(InputError, match="finite"):
            predict(network, wrong, T, engine=engine)
    with pytest.raises(InputError, match=r"shape \(2,\)"):
        predict(network, W, T[0], engine=engine)
    with pytest.raises(InputError, match="1 features"):
        next(roll_out(network, W, T[0, :1]))


def test_sizes_and_engines_are_checked():
    machine = single_coordinate().machine
    for samples, features, layers in ((-3, 2, 40), (3, 0, 40), (3, 2, -3), (3, 2, 40.5), (3, 2, "40")):
        with pytest.raises(InputError, match="whole number of at least 1"):
            Rcnn.of(machine, samples, features, layers)  # type: ignore[arg-type]
    network = Rcnn.of(machine, 3, 2, 10_000_000)
    X, y = np.array([[1, 1], [-1, 1], [1, -1]]), np.array([1, -1, 1])
    with pytest.raises(InputError, match="no engine 'quick'"):
        list(memorise(network, X, y, engine="quick"))
    with pytest.raises(InputError, match="no engine 'quick'"):
        predict(network, network.empty_memory(), X, engine="quick")
    with pytest.raises(Refused, match=r"GiB for the gradient. Give layers=..., about"):
        list(memorise(network, X, y, engine="reference"))


@pytest.mark.slow
def test_a_machine_that_does_not_halt_gives_its_partial_grid():
    X, y = np.array([[1], [-1]]), np.array([1, -1])
    endless = GridMachine(
        {("A", a): GridRule(a, "left", "B") for a in "0+-"}
        | {("B", a): GridRule(a, "right", "A") for a in "0+-"},
        "A",
    )
    network = Rcnn.of(endless, 2, 1, 30)
    *_, last = memorise(network, X, y, engine="fast")
    with pytest.raises(NotHalted, match="not halted within 30 layers") as caught:
        predict(network, last.memory, np.array([[1]]))
    assert caught.value.partial is not None
    assert caught.value.partial.cells[2, 1] == "+"
    lost = GridMachine({("A", a): GridRule(a, "up", "A") for a in "0+-"}, "A")
    with pytest.raises(Refused, match=r"left the grid \(test point 1, after cell \(-1, 1\)\)"):
        predict(Rcnn.of(lost, 2, 1, 30), last.memory, np.array([[1]]))
    with pytest.raises(Refused, match="adds up to"):
        predict(Rcnn.of(GridMachine({}, "A"), 2, 1, 30), last.memory, np.array([[1]]))


def test_a_saved_classifier_is_verified_on_what_it_has_memorised(tmp_path):
    pytest.importorskip("sklearn")
    from tapegrad.sklearn import RCNNClassifier

    X, y = np.array([[1, -1], [-1, 1], [1, 1]]), np.array([1, -1, 1])
    classifier = RCNNClassifier(single_coordinate()).fit(X, y)
    classifier.save(tmp_path / "net")
    done = CliRunner().invoke(app, ["verify", str(tmp_path / "net"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["agreed"]
    asked = np.unique(np.random.default_rng(0).choice([-1, 1], (4, 2)), axis=0)
    machine = single_coordinate().machine
    runs = [list(machine.run(start(machine, X, y, point))) for point in asked]
    assert found["inputs"] == len(asked)
    assert found["steps"] == sum(len(run) - 1 for run in runs)
    classifier.memory_[0, 0] = 0.1
    classifier.save(tmp_path / "other")
    refused = CliRunner().invoke(app, ["verify", str(tmp_path / "other")])
    assert isinstance(refused.exception, BrokenNet)
    assert "holds no samples" in str(refused.exception)
