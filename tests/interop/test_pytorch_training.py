"""Training targets in PyTorch: the same weights after every step, by PyTorch's own differentiation."""

from typing import Any

import numpy as np
import pytest

import tapegrad
from tapegrad.errors import Refused
from tapegrad.machines.library import ready
from tapegrad.machines.model import TuringMachine
from tapegrad.targets import target_named
from tapegrad.targets.emulator.net import input_rows
from tapegrad.targets.extended import FixedPoint, linear
from tapegrad.targets.rcnn.network import Rcnn
from tapegrad.targets.rcnn.training import memorise
from tests.targets.emulator.test_differences import Beside, sums
from tests.targets.extended.algorithms import copy_bits, training

torch = pytest.importorskip("torch")

from tapegrad.interop.pytorch import to_torch  # noqa: E402


def follow(compiled, carry, steps):
    """PyTorch and the net side by side; how many steps both took until the loss was at most B_stop."""
    module: Any = to_torch(compiled).start(carry)
    optimisers = module.optimisers()
    for taken in range(steps):
        loss = module.loss()
        if taken and loss.item() <= module.stop:
            return taken
        for optimiser in optimisers:
            optimiser.zero_grad()
        loss.backward()
        for optimiser in optimisers:
            optimiser.step()
        carry = compiled.net.step(carry)
        assert module.loss().item() == pytest.approx(compiled.net.loss(carry), rel=1e-12)
        for name in compiled.net.training.updates:
            weights = getattr(module, name).detach().numpy()
            assert np.array_equal(weights, getattr(carry.weights, name)), (name, taken)
    raise AssertionError("not done")


def test_tape_weights_at_every_step():
    """The busy beaver with three states: 21 steps, and one to read the labels."""
    example = target_named("tape").examples()[0]
    compiled: Any = tapegrad.compile(example.source, "tape", cells=64)
    taken = follow(compiled, compiled.start(), 200)
    machine = compiled.lowered
    assert isinstance(machine, TuringMachine)
    assert taken == len(list(machine.run(compiled.encode(compiled.source.start()))))  # states, the first too


def test_tape_with_several_tapes_and_an_input():
    compiled: Any = tapegrad.compile(ready("increment"), "tape", cells=32)
    follow(compiled, compiled.start("101"), 200)


def test_simplex_weights_at_every_step():
    compiled: Any = tapegrad.compile(ready("increment"), "simplex", inputs=[["101"], ["11"]])
    follow(compiled, compiled.start("101"), 200)


def test_an_extended_network_finds_the_weights_of_its_primary_network():
    """theta = the first three numbers of the data, by PyTorch's backward pass and optimisers alone."""
    x, y = np.array([[1.0, -2.0], [0.5, 1.5]]), np.array([[-1.0], [0.5]])
    own = training(linear(2), copy_bits(12), x, y, data_format=FixedPoint(4, 1), cells=64)
    module: Any = to_torch(own.net).start(own.start())
    optimisers, steps = module.optimisers(), 0
    while steps == 0 or module.loss().item() > module.stop:
        for optimiser in optimisers:
            optimiser.zero_grad()
        module.loss().backward()
        for optimiser in optimisers:
            optimiser.step()
        steps += 1
    assert steps == own.train().steps
    assert module.outputs()["theta"].tolist() == [1.0, -2.0, 0.5]
    assert np.allclose(module().detach().numpy(), own.primary_output([1.0, -2.0, 0.5]), rtol=1e-14)


def test_simplex_with_a_line_search_is_refused():
    compiled: Any = tapegrad.compile(ready("increment"), "simplex", inputs=[["1"]], line_search=True)
    with pytest.raises(Refused, match="line search"):
        to_torch(compiled)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_emulator_weights_at_every_step(precision):
    example = target_named("emulator").examples()[0]
    compiled: Any = tapegrad.compile(example.source, "emulator", precision=precision)
    carry = compiled.start(*example.inputs)
    module: Any = to_torch(compiled).start(carry)
    (optimiser,) = module.optimisers()
    flips = 0
    while not compiled.net.done(carry):
        row = torch.tensor(input_rows(carry.samples, carry.steps, carry.steps + 1)[0])
        optimiser.zero_grad()
        output = module(row)
        module.loss(row, 2 * int(carry.samples.y[carry.steps]) - 1).backward()
        optimiser.step()
        before, carry = carry, compiled.net.advance(carry, 1, "fast")
        weights = module.weights.detach().numpy()
        assert np.array_equal(np.sign(weights), np.sign(carry.weights))
        # The order of sums differs, so the last bits may.
        assert np.allclose(weights, carry.weights, rtol=64 * np.finfo(precision).eps, atol=0)
        assert output.item() == pytest.approx(carry.output, rel=1e-5)
        flips += compiled.net.decode(carry).memory != compiled.net.decode(before).memory
    assert carry.steps == 40
    assert flips > 3


@pytest.mark.slow
def test_a_thousand_instructions_by_sgd():
    """A machine whose memory is in the weights: PyTorch's own backward pass and optimiser over the whole net,
    and steps that follow differences, each going on from its own weights. Here all sums are exact."""
    compiled, carry = sums(1000)
    both = Beside(compiled.net, carry)
    module: Any = to_torch(compiled).start(carry)
    (optimiser,) = module.optimisers()
    for row, label in zip(both.rows, both.labels, strict=True):
        optimiser.zero_grad()
        module.loss(torch.tensor(row), int(label)).backward()
        optimiser.step()
        both.advance(1)
        assert np.array_equal(module.weights.detach().numpy(), both.state.weights), both.steps
    assert both.steps == 1000


def test_memories_beyond_floats_are_refused():
    example = target_named("emulator").examples()[0]
    with pytest.raises(Refused, match="practical"):
        to_torch(tapegrad.compile(example.source, "emulator", form="paper"))


@pytest.mark.parametrize("encoding", ["channels", "ternary"])
def test_memory_of_a_grid_learner_at_every_step(encoding):
    from tapegrad.learners.on_grid import single_coordinate

    machine = single_coordinate().machine
    X = np.array([[1.0, -1.0], [-1.0, -1.0], [1.0, 1.0]])
    y = X[:, 1]
    network = Rcnn.of(machine, 3, 2, 10, encoding=encoding)
    module: Any = to_torch(network)
    (optimiser,) = module.optimisers()
    samples = [*zip(X, y, strict=True), (np.ones(2), 1.0)]
    for (x, label), step in zip(samples, memorise(network, X, y), strict=True):
        optimiser.zero_grad()
        z = torch.tensor(np.append(x, 1.0))
        output = module(z)
        module.loss(z, label).backward()
        optimiser.step()
        assert output.item() == pytest.approx(step.output, abs=1e-6)
        assert np.allclose(module.memory.detach().numpy(), step.memory, rtol=0, atol=1e-6)
    assert module.memory.abs().max() > 0.3
