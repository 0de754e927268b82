"""Remark 2.4 by gradient descent alone: batch after batch, against the perceptron rule in plain Python."""

import numpy as np
import pytest

from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.machines import compiled as plain
from tapegrad.targets.extended import FixedPoint, perceptron_on_batches
from tapegrad.targets.extended.batches import _require_labels
from tapegrad.targets.extended.rosenblatt import ASKING, batch_machine, perceptron_machine
from tapegrad.targets.tape.net import TapeNet


def rosenblatt(x, y, w):
    for row, label in zip(x, y, strict=True):
        signal = sum(a * b for a, b in zip(w, (*row, 1), strict=True))
        if label * signal <= 0:
            w = [a + label * b for a, b in zip(w, (*row, 1), strict=True)]
    return w


def test_only_what_follows_a_round_without_a_mistake_is_different():
    usual, batched = perceptron_machine(), batch_machine()
    assert usual.rules.keys() == batched.rules.keys()
    changed = {place for place, rule in usual.rules.items() if batched.rules[place] != rule}
    assert {state for state, _ in changed} == {"was there a mistake"}
    assert {read[2] for _, read in changed} == {"_", "0", "#"}
    assert all(batched.rules[place].write == place[1] for place in changed)


def test_the_machine_asks_once_in_every_round():
    """Run plainly, on the same data in all three rounds, the second of which has no mistake."""
    network = perceptron_on_batches((2, 1), (2, 1), FixedPoint(3), batches=3)
    algorithm, net = network.extended.algorithm, network.extended.net
    assert isinstance(net, TapeNet)
    state, asked, steps = algorithm.on([1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1]), [], 0
    vertices = set(np.flatnonzero(network.network.asking).tolist())
    while (after := algorithm.machine.step(state)) is not None:
        signs = [algorithm.machine.alphabet.index(symbol) for symbol in algorithm.machine.read(state)]
        vertex = net.states.index(state.state) * 2**net.tapes + sum(s << i for i, s in enumerate(signs))
        if vertex in vertices:
            asked.append(state)
        state, steps = after, steps + 1
    assert len(asked) == 2
    assert all(own.state.startswith(ASKING) and own.heads[:2] == (0, 0) for own in asked)
    assert (
        plain.run(algorithm.machine, algorithm.on([1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1]), 10**6).steps == steps
    )


@pytest.mark.slow
def test_theta_after_every_batch():
    draw, form = np.random.default_rng(3), FixedPoint(3)
    x = draw.integers(-4, 4, (12, 2))
    y = np.array([1, 1, 1, -1, -1, 1, 1, -1, 1, -1, -1, -1])  # batches of one class among them
    network = perceptron_on_batches((3, 2), (3, 1), form, batches=4)
    w = [0, 0, 0]
    turns = list(network.train((x[i : i + 3], y[i : i + 3, None]) for i in range(0, 12, 3)))
    for i, turn in zip(range(0, 12, 3), turns, strict=True):
        w = rosenblatt(x[i : i + 3], y[i : i + 3], w)
        assert turn.theta.tolist() == w
        assert np.allclose(turn.weights.weights.z.ravel(), y[i : i + 3] if turn.halted else 0, atol=1e-15)
    assert [turn.halted for turn in turns] == [False, False, False, True]
    signs = np.sign(np.column_stack([x[9:], np.ones(3)]) @ w)
    assert network.extended.on(x[9:], y[9:, None]).forward(turns[-1].weights).ravel().tolist() == [
        1 if sign > 0 else -1 for sign in signs
    ]


@pytest.mark.slow
def test_the_turn_by_automatic_differentiation_alone():
    """From ten steps before the first batch is given up to ten steps after the second is read: every step is
    one of the reference engine, and the machine, run plainly on either batch, does the same."""
    network = perceptron_on_batches((2, 1), (2, 1), FixedPoint(3), batches=2)
    (x, y), (other_x, other_y) = (
        (np.array([[3.0], [-2.0]]), np.array([[1.0], [-1.0]])),
        (np.array([[-4.0], [2.0]]), np.array([[1.0], [1.0]])),
    )
    first, second = network.extended.on(x, y), network.extended.on(other_x, other_y)
    assert isinstance(first.net, TapeNet)
    ends = first.net.advance_fast(first.net.step(network.start()), 10**6)
    carry = first.net.advance_fast(first.net.step(network.start()), ends.steps - 11)
    for _ in range(10):
        carry = first.net.step(carry)
    assert first.net.decode(carry) == first.net.decode(ends)
    carry = first.net.step(carry)
    assert np.abs(carry.weights.z).max() < 1e-15
    configuration = second.net.decode(second.net.step(carry))
    assert configuration is not None
    carry = second.net.step(carry)
    assert np.abs(carry.weights.z - other_y).max() < 1e-15
    machine = network.extended.algorithm.machine
    for _ in range(10):
        carry, after = second.net.step(carry), machine.step(configuration)
        assert after is not None
        configuration = after
        assert second.net.decode(carry) == configuration
    assert second.net.deviation(carry) < 1e-12


@pytest.mark.slow
def test_what_is_refused():
    network = perceptron_on_batches((2, 1), (2, 1), FixedPoint(3), batches=1)
    batch = [[1.0], [-2.0]], [[1.0], [-1.0]]
    with pytest.raises(InputError, match="there is another batch"):
        list(network.train([batch, batch]))
    with pytest.raises(InputError, match="shape"):
        list(network.train([([[1.0]], [[1.0]])]))
    with pytest.raises(Refused, match="within 100 gradient steps"):
        list(network.train([batch], steps=100))
    read = network.extended.on(*batch).net.step(network.start())
    wrong = read._replace(weights=read.weights._replace(z=-np.asarray(read.weights.z)))
    net = network.extended.on(*batch).net
    assert isinstance(net, TapeNet)
    _require_labels(net, read)
    with pytest.raises(BrokenNet, match="another last digit"):
        _require_labels(net, wrong)
