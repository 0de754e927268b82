"""Forward targets in PyTorch: every output of every layer, step and cell beside the net's own."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.library import ready as ready_circuit
from tapegrad.machines.library import ready
from tapegrad.targets import target_named
from tests.interop.cases import all_patterns, random_circuit

torch = pytest.importorskip("torch")

from tapegrad.interop import pytorch as interop  # noqa: E402
from tapegrad.interop.pytorch import to_torch  # noqa: E402

written_out: Any = interop.plain_layers
COMPACT = {"form": "practical"}
FORMS = (*({"correction": c} for c in ("thirds", "quarters", "none")), COMPACT, COMPACT | {"skips": False})


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from(FORMS))
def test_relu_outputs_on_every_pattern(seed, options):
    circuit = random_circuit(seed)
    compiled: Any = tapegrad.compile(circuit, "relu", **options)
    bits = all_patterns(5)
    module: Any = to_torch(compiled)
    with torch.no_grad():
        found = module(torch.tensor(bits, dtype=torch.float32)).numpy()
        dense = written_out(compiled.net)(torch.tensor(bits, dtype=torch.float32)).numpy()
    wanted = circuit.wire_values(bits)[circuit.output_wires].T
    for outputs in (found, dense):
        assert np.array_equal(outputs > 0.5, wanted)
        # Signs are within `at_outputs`, bits within half of that; with exact thresholds that is 0.
        radius = compiled.net.certificate()["at_outputs"]
        assert np.abs(outputs - (compiled.net.outputs(bits, engine="fast") + 1) / 2).max() <= radius


@pytest.mark.parametrize("options", [COMPACT, {"correction": "none"}])
def test_a_net_is_differentiable_at_will(options):
    """Gradients by the inputs beside those of the same net made of `nn.Linear`s; weights get theirs too, and
    weights that have changed are those that count."""
    compiled: Any = tapegrad.compile(ready_circuit("multiplier3"), "relu", **options)
    module: Any = to_torch(compiled)
    bits = torch.tensor(all_patterns(6), dtype=torch.float32, requires_grad=True)
    with torch.no_grad():
        plain = module(bits)
    assert not any(own.requires_grad for own in module.parameters())
    module.requires_grad_(True)
    found = module(bits)
    assert torch.equal(found, plain)
    sides = torch.arange(1.0, 7.0)
    (own,) = torch.autograd.grad((found * sides).sum(), bits, retain_graph=True)
    (theirs,) = torch.autograd.grad((written_out(compiled.net)(bits) * sides).sum(), bits)
    assert torch.equal(own, theirs)
    assert own.abs().sum() > 0
    found.sum().backward()
    graded = [own.grad for own in module.parameters() if own.grad is not None]
    assert sum(float(own.abs().sum()) for own in graded) > 0
    assert len(graded) == len(list(module.parameters()))
    with torch.no_grad():
        for own in module.parameters():
            own.mul_(1.5)
    changed = module(bits)
    assert not torch.equal(changed, plain)
    with torch.no_grad():
        assert torch.allclose(module(bits), changed)
    assert torch.equal(copy.deepcopy(module)(bits), module(bits))


def test_relu_in_double_precision_and_a_constant_circuit():
    compiled: Any = tapegrad.compile(ready_circuit("adder8"), "relu", dtype="float64", correction="quarters")
    in_double: Any = to_torch(tapegrad.compile(ready_circuit("adder8"), "relu", dtype="float64", **COMPACT))
    assert in_double(torch.zeros(1, 16, dtype=torch.float64)).dtype == torch.float64
    bits = np.random.default_rng(0).integers(0, 2, (64, 16)).astype(bool)
    found = to_torch(compiled)(torch.tensor(bits, dtype=torch.float64))
    assert found.dtype == torch.float64
    assert np.array_equal(2 * found.detach().numpy() - 1, compiled.net.outputs(bits, engine="fast"))
    make = CircuitBuilder(simplify=False)
    make.input("unused")
    make.output("one", make.constant(True))
    for options in ({"correction": "quarters"}, COMPACT):
        constant: Any = tapegrad.compile(make.circuit(), "relu", **options)
        for module in (to_torch(constant), written_out(constant.net)):
            assert module(torch.zeros(3, 1)).tolist() == [[1.0]] * 3


@pytest.mark.parametrize(
    ("name", "word", "options"),
    [
        ("palindrome", "abba", {"form": "paper", "steps": 64}),
        ("increment", "111", {"steps": 32, "attention": "softmax", "correction": "thirds"}),
        ("increment", "", {"form": "paper", "steps": 32}),
    ],
)
def test_transformer_outputs_at_every_step(name, word, options):
    compiled: Any = tapegrad.compile(ready(name), "transformer", **options)
    carry = compiled.start(word)
    with torch.no_grad():
        module = to_torch(compiled)
        rows = [own["output"][0] for own in module.steps(64, tokens=torch.tensor(carry.tokens))]
    outputs = torch.stack(rows).numpy()
    steps, engine = 0, "reference" if options.keys() & {"attention", "correction"} else "fast"
    while not compiled.net.done(carry):
        carry = compiled.net.advance(carry, 1, engine)
        assert np.array_equal(outputs[steps] > 0.5, carry.output > 0.5)
        exact = compiled.net.certificate()["exact_correction"]
        assert np.abs(outputs[steps] - carry.output).max() <= (0 if exact else 1e-6)
        steps += 1
    assert steps == len(outputs)


@pytest.mark.parametrize("form", ["practical", "paper"])
def test_rcnn_filter_at_every_step(form):
    example = target_named("rcnn").examples()[0]
    compiled: Any = tapegrad.compile(example.source, "rcnn", form=form, margin=4)
    carry = first = compiled.start(*example.inputs)
    module, grid = to_torch(compiled), torch.tensor(np.asarray(carry.grid))
    states = list(example.source.run(example.source.start(*example.inputs)))
    for state in states[1:]:
        before, carry = carry, compiled.net.advance(carry, 1, "fast")
        with torch.no_grad():
            running, grid = module(grid)
        assert bool(running.any()) is not compiled.net.done(before)
        # Channels hold small integers; ternary numbers are summed in another order.
        assert np.abs(grid.numpy() - carry.grid).max() <= (0 if form == "practical" else 1e-12)
        assert compiled.net.decode(first._replace(grid=grid.numpy())) == state
    assert len(states) > 4
