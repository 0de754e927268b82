"""ONNX models, run in onnxruntime: every output beside the net's own and beside the source."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.errors import Refused
from tapegrad.machines.library import ready
from tapegrad.targets import target_named
from tests.interop.cases import all_patterns, random_circuit

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from tapegrad.interop.onnx import to_onnx  # noqa: E402


def session(compiled):
    model = to_onnx(compiled)
    onnx.checker.check_model(model, full_check=True)
    return model, runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.sampled_from(["thirds", "quarters", "none"]))
def test_relu_outputs_on_every_pattern(seed, correction):
    circuit = random_circuit(seed)
    compiled: Any = tapegrad.compile(circuit, "relu", correction=correction)
    bits = all_patterns(5)
    _, run = session(compiled)
    (found,) = run.run(None, {"bits": bits.astype(np.float32)})
    assert np.array_equal(found > 0, circuit.wire_values(bits)[circuit.output_wires].T)
    radius = 2 * compiled.net.certificate()["at_outputs"]
    assert np.abs(found - compiled.net.outputs(bits, engine="fast")).max() <= radius


def test_relu_without_inputs_that_matter():
    make = CircuitBuilder(simplify=False)
    make.input("unused")
    make.output("one", make.constant(True))
    model, run = session(tapegrad.compile(make.circuit(), "relu", correction="quarters"))
    assert run.run(None, {"bits": np.zeros((2, 1), np.float32)})[0].tolist() == [[1.0], [1.0]]
    assert json.loads({p.key: p.value for p in model.metadata_props}["outputs"]) == ["one"]


@pytest.mark.parametrize(
    ("name", "word", "options"),
    [
        ("palindrome", "abba", {"steps": 64}),
        ("increment", "1011", {"steps": 32, "attention": "softmax"}),
        ("increment", "", {"steps": 32}),
    ],
)
def test_transformer_outputs_at_every_step(name, word, options):
    """The loop that the model's notes describe, beside the net and the interpreter."""
    compiled: Any = tapegrad.compile(ready(name), "transformer", **options)
    model, run = session(compiled)
    notes = {p.key: p.value for p in model.metadata_props}
    output = np.array(json.loads(notes["first_output"]), np.float32)
    sizes = {i.name: i.shape for i in run.get_inputs()}
    keys, values = (np.zeros((0, sizes[n][1]), np.float32) for n in ("past_keys", "past_values"))
    carry = compiled.start(word)
    engine = "reference" if options.get("attention") == "softmax" else "fast"
    states = list(compiled.source.run(compiled.source.start(word)))
    for step, state in enumerate(states):
        time = (step >> np.arange(sizes["time"][0]) & 1).astype(np.float32)
        given_ = {"output": output, "time": time, "tokens": carry.tokens}
        output, halted, keys, values = run.run(None, given_ | {"past_keys": keys, "past_values": values})
        carry = compiled.net.advance(carry, 1, engine)
        assert np.array_equal(output, carry.output)
        assert compiled.net.decode(carry) == state
        assert bool(halted) == (step == len(states) - 1)


@pytest.mark.parametrize("encoding", ["channels", "ternary"])
def test_rcnn_filter_at_every_step(encoding):
    example: Any = target_named("rcnn").examples()[0]
    compiled: Any = tapegrad.compile(example.source, "rcnn", encoding=encoding, margin=5)
    _, run = session(compiled)
    carry = compiled.start(*example.inputs)
    grid, states = carry.grid, list(example.source.run(example.source.start(*example.inputs)))
    for state in states[1:]:
        (grid,) = run.run(None, {"grid": grid})
        carry = compiled.net.advance(carry, 1, "fast")
        assert np.abs(grid - carry.grid).max() <= (0 if encoding == "channels" else 1e-12)
        assert compiled.net.decode(carry._replace(grid=grid)) == state
    assert len(states) > 4


def test_training_targets_are_refused():
    compiled: Any = tapegrad.compile(ready("increment"), "tape", cells=32)
    with pytest.raises(Refused, match="trained"):
        to_onnx(compiled)
