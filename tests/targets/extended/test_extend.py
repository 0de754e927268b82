"""The extended network: training on data ends with the primary network holding what the algorithm says."""

import jax
import numpy as np
import pytest

from tapegrad._precision import in_double
from tapegrad.circuits.arrays import where
from tapegrad.circuits.types import Int
from tapegrad.errors import InputError, Refused, SourceError
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.networks.backends.jax import function_of
from tapegrad.targets.extended import FixedPoint, FloatingPoint, extend, linear, save
from tapegrad.targets.extended.primary import MLP
from tapegrad.targets.tape.net import TapeNet
from tests.targets.extended.algorithms import copy_bits, training

X = np.array([[1.0, -2.0], [0.5, 1.5]])
Y = np.array([[-1.0], [0.5]])
FORM = FixedPoint(4, 1)


def check_training(extended, expected, engine):
    run = extended.train(engine=engine)
    machine, start = extended.algorithm.machine, extended.algorithm.start
    assert np.array_equal(run.theta, expected)
    assert np.array_equal(run.output, extended.primary_output(expected))
    assert run.loss == np.sum((run.output - extended.y) ** 2) / 2
    assert run.loss <= extended.net.stop
    tape = dict.fromkeys(
        np.flatnonzero(extended.net.all_tapes(run.weights)[:, 0] > 0) + extended.net.first_cell, "1"
    )
    given = type(start)(start.state, (tape, *start.tapes[1:]), start.heads)
    assert run.steps == sum(1 for _ in machine.run(given)) - 1 + 1  # machine steps, and one for the labels
    return run


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_a_linear_network_trained_by_a_machine(engine):
    """theta = the first three numbers of the data, here x[0, 0], x[0, 1], x[1, 0]."""
    extended = training(linear(2), copy_bits(12), X, Y, data_format=FORM, cells=64)
    run = check_training(extended, [1.0, -2.0, 0.5], engine)
    assert run.deviation < 1e-12


def test_the_labels_reach_the_machine_through_training_only():
    """theta = x and y in order: weights 5 and 6 are the labels, which the network is never given as input."""
    x, y = np.array([[1.0, -2.0], [0.5, 1.5]]), np.array([[-1.0, 0.5], [1.5, -0.5]])
    extended = training(MLP((2, 2)), copy_bits(24), x, y, data_format=FORM, cells=128)
    check_training(extended, [1.0, -2.0, 0.5, 1.5, -1.0, 0.5], "fast")
    before = extended.start()
    assert not np.any(before.weights.z)
    after = extended.net.step(before)
    assert np.array_equal(after.weights.z, y)
    assert np.array_equal(after.weights.s, before.weights.s)
    assert np.array_equal(after.weights.T, before.weights.T)
    assert np.array_equal(after.weights.H, before.weights.H)


@pytest.mark.slow
def test_machines_with_three_symbols_and_stay_moves():
    extended = training(linear(2), copy_bits(12, blank="_", stay=True), X, Y, data_format=FORM, cells=128)
    assert extended.algorithm.read_only == 2  # the data tape has become two binary tracks
    assert np.array_equal(extended.train().theta, [1.0, -2.0, 0.5])


@pytest.mark.slow
def test_floating_point_data_and_weights():
    form = FloatingPoint(2, 2)
    x, y = np.array([[3.5, -0.25], [0.75, 6.0]]), np.array([[0.5], [-1.25]])
    extended = training(linear(2), copy_bits(15), x, y, data_format=form, cells=64)
    check_training(extended, [3.5, -0.25, 0.75], "reference")


@in_double
def test_the_gradient_of_the_squared_error_is_the_gradient_of_the_machines_loss():
    """Section 5.4: d 1/2 |F - y|^2 = d l_TM in s, T, H, through square root, f_perp and both switches."""
    extended = training(linear(2), copy_bits(12), X, Y, data_format=FORM, cells=64)
    net = extended.net
    assert isinstance(net, TapeNet)
    carry = net.advance(extended.start(), 4)  # about to write the first bit that is 1

    def machine_loss(s, T, H):
        given = net.all_tapes(carry)[:, : net.read_only]
        return function_of(net.error.network.machine)(s, jax.numpy.concatenate([given, T], axis=1), H)

    weights, whole = carry.weights, net.gradient(carry)
    alone = jax.grad(machine_loss, argnums=(0, 1, 2))(weights.s, weights.T, weights.H)
    for a, b in zip((whole.s, whole.T, whole.H), alone, strict=True):
        assert np.allclose(a, b, rtol=1e-12, atol=1e-12)
        assert np.any(np.asarray(b))
    assert not np.any(whole.z)
    loss = float(machine_loss(weights.s, weights.T, weights.H))
    assert net.loss(carry) == pytest.approx(loss + np.sum(Y**2) / 2, rel=1e-14)


@pytest.mark.slow
def test_python_functions_are_traced_and_lowered():
    def sums(x, y):
        number = Int(4)
        return [number(0) + x[0][0] + y[1][0], x[1][1] - y[0][0], number(3)]

    extended = training(linear(2), sums, X, Y, data_format=FORM)
    check_training(extended, [1.0 + 0.5, 1.5 + 1.0, 1.5], "fast")  # 3 units of 1/2 are 1.5


def test_bad_data_are_refused():
    machine = copy_bits(12)
    with pytest.raises(Refused, match="all labels are zero"):
        training(linear(2), machine, X, np.zeros((2, 1)), data_format=FORM)
    with pytest.raises(Refused, match="orthogonal"):
        training(linear(2), machine, X[:1], Y[:1], data_format=FORM)
    with pytest.raises(InputError, match=r"the labels hold 0\.3"):
        training(linear(2), machine, X, [[0.3], [1.0]], data_format=FORM)
    with pytest.raises(InputError, match="2 inputs but 3 labels"):
        training(linear(2), machine, X, [[1.0]] * 3, data_format=FORM)
    with pytest.raises(InputError, match="shape"):
        training(linear(2, 3), machine, X, Y, data_format=FORM)
    for wrong in ("text", [1.0, 2.0], [[]], [["a"]]):
        with pytest.raises(InputError):
            training(linear(2), machine, wrong, Y, data_format=FORM)


def test_bad_algorithms_are_refused():
    writes = TuringMachine({("a", ("0", "0")): Rule(("1", "0"), (1, 1), "b")}, "a", blank="0")
    with pytest.raises(SourceError, match="writes on its first tape"):
        training(linear(2), writes, X, Y, data_format=FORM)
    with pytest.raises(Refused, match="at least two tapes"):
        training(linear(2), TuringMachine({}, "a", blank="0", alphabet=("0", "1")), X, Y, data_format=FORM)
    with pytest.raises(InputError, match=r"theta does not fit.*12"):
        training(linear(2), lambda x, y: [x[0][0], x[0][1]], X, Y, data_format=FORM)
    with pytest.raises(InputError, match="theta does not fit"):
        training(linear(2), lambda x, y: [Int(5)(1), Int(3)(1), Int(4)(1)], X, Y, data_format=FORM)
    with pytest.raises(InputError, match="fixed-point"):
        training(linear(2), lambda x, y: [], X, Y, data_format=FloatingPoint(4, 3))


@pytest.mark.slow
def test_a_result_that_is_no_bit_is_refused():
    """The machine stops before it has written all of theta, so blanks are left that are neither 0 nor 1."""
    extended = training(linear(2), copy_bits(5, blank="_"), X, Y, data_format=FORM, cells=64)
    with pytest.raises(Refused, match="bit 5 of the result"):
        extended.train()


@pytest.mark.slow
def test_a_machine_that_runs_too_long_or_too_far_is_refused():
    rules = {("a", (d, r)): Rule((d, r), (1, 1), "b") for d in "01" for r in "01"}
    rules |= {("b", (d, r)): Rule((d, r), (-1, -1), "a") for d in "01" for r in "01"}
    shuttle = TuringMachine(rules, "a", blank="0")
    with pytest.raises(Refused, match="not halted after 500 gradient steps"):
        training(linear(2), shuttle, X, Y, data_format=FORM).train(steps=500)
    runaway = TuringMachine(
        {key: Rule(rule.write, (1, 1), "a") for key, rule in rules.items() if key[0] == "a"}, "a", blank="0"
    )
    with pytest.raises(Refused, match="leaves the tape"):
        training(linear(2), runaway, X, Y, data_format=FORM, cells=64).train()


# Whole configurations as vertices, Corollary 2.2


@pytest.mark.slow
def test_one_simplex_for_all_data_of_a_shape(tmp_path):
    """theta = both inputs. The labels choose the vertex after the first, and the loss falls from then on."""
    network = extend(linear(1), copy_bits(4), (2, 1), (2, 1), data_format=FixedPoint(2), target="simplex")
    for x, y in (([1, -2], [1, 0]), ([0, -1], [-2, 1]), ([-2, -2], [-2, -2])):
        x, y = np.array(x, float)[:, None], np.array(y, float)[:, None]
        trained = network.on(x, y)
        run = trained.train()
        assert (run.engine, run.steps, run.deviation) == ("reference", 6, 0)
        assert np.array_equal(run.theta, x.ravel())
        assert np.array_equal(run.output, x[0] * x + x[1])
        unseen = np.array([[1.0], [0.0], [-1.0]])
        assert np.array_equal(network.predict(run, unseen), x[0] * unseen + x[1])
        carry, losses = trained.start(), []
        while not trained.net.done(carry):
            carry = trained.net.step(carry)
            losses.append(trained.net.loss(carry))
        assert all(np.diff(losses) < 0)
    with pytest.raises(Refused, match="cannot be saved"):
        save(trained, run, tmp_path / "net")
    with pytest.raises(InputError, match="no tape is left"):
        network.train(x, y, after=run)
    with pytest.raises(InputError, match="engine"):
        network.train(x, y, engine="fast")


def test_simplices_that_are_too_large_or_of_other_symbols_are_refused():
    with pytest.raises(Refused, match=r"24 bits.*2\^24 runs"):
        extend(linear(2), copy_bits(12), (2, 2), (2, 1), data_format=FORM, target="simplex")
    with pytest.raises(Refused, match="other symbols"):
        extend(
            linear(1), copy_bits(4, blank="_"), (2, 1), (2, 1), data_format=FixedPoint(2), target="simplex"
        )
    with pytest.raises(InputError, match="'tape' or 'simplex', not 'relu'"):
        extend(linear(1), copy_bits(4), (2, 1), (2, 1), data_format=FixedPoint(2), target="relu")


# One machine for every function


@pytest.mark.slow
def test_the_evaluator_has_as_many_states_for_every_function():
    def larger(x, y):
        return [where(x[0][0] > y[0][0], x[0][0], y[0][0]), Int(3)(1)]

    def sums(x, y):
        return [x[0][0] + x[1][0], y[0][0] - y[1][0]]

    x, y = np.array([[1.0], [-2.0]]), np.array([[-1.0], [1.0]])
    sizes = set()
    for function, theta in ((larger, [1, 1]), (sums, [-1, -2])):
        network = extend(
            linear(1), function, x.shape, y.shape, data_format=FixedPoint(3), machine="evaluator"
        )
        run = network.train(x, y)
        assert run.theta.tolist() == theta
        assert run.compared > 0
        sizes.add((len(network.algorithm.procedure.machine.states), network.net.vertex_count))
    assert sizes == {(26, 49_152)}
    with pytest.raises(InputError, match="no machine 'abacus'"):
        extend(linear(1), sums, x.shape, y.shape, machine="abacus")
