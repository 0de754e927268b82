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

from onnx.reference import ReferenceEvaluator  # noqa: E402

from tapegrad.interop.onnx import to_onnx, to_plain_onnx  # noqa: E402


def notes_of(model):
    return {p.key: p.value for p in model.metadata_props}


def session(compiled):
    model = to_onnx(compiled)
    onnx.checker.check_model(model, full_check=True)
    return model, runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(
    st.integers(0, 10**6),
    st.sampled_from([{"correction": "thirds"}, {"correction": "none"}, {"form": "practical"}]),
)
def test_relu_outputs_on_every_pattern(seed, options):
    circuit = random_circuit(seed)
    compiled: Any = tapegrad.compile(circuit, "relu", **options)
    bits = all_patterns(5)
    _, run = session(compiled)
    (found,) = run.run(None, {"bits": bits.astype(np.float32)})
    assert np.array_equal(found > 0.5, circuit.wire_values(bits)[circuit.output_wires].T)
    radius = compiled.net.certificate()["at_outputs"]
    assert np.abs(found - (compiled.net.outputs(bits, engine="fast") + 1) / 2).max() <= radius


def test_relu_without_inputs_that_matter():
    make = CircuitBuilder(simplify=False)
    make.input("unused")
    make.output("one", make.constant(True))
    for options in ({"correction": "quarters"}, {"form": "practical"}):
        model, run = session(tapegrad.compile(make.circuit(), "relu", **options))
        assert run.run(None, {"bits": np.zeros((2, 1), np.float32)})[0].tolist() == [[1.0], [1.0]]
        assert json.loads(notes_of(model)["outputs"]) == ["one"]


@pytest.mark.parametrize(
    ("name", "word", "options"),
    [
        ("palindrome", "abba", {"form": "paper", "steps": 64}),
        ("increment", "1011", {"form": "paper", "steps": 32, "attention": "softmax"}),
        ("increment", "", {"form": "paper", "steps": 32}),
    ],
)
def test_transformer_outputs_at_every_step(name, word, options):
    """The loop that the model's notes describe, beside the net and the interpreter."""
    compiled: Any = tapegrad.compile(ready(name), "transformer", **options)
    model, run = session(compiled)
    notes = notes_of(model)
    types = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
    handed = {
        own.name: np.array(json.loads(notes[f"first_{own.name}"]), types[own.type])
        for own in run.get_inputs()
        if own.name != "tokens"
    }
    assert handed.keys() == {"output", "step", "keys", "values"}
    names = [own.name for own in run.get_outputs()]
    carry = compiled.start(word)
    engine = "reference" if options.get("attention") == "softmax" else "fast"
    states = list(compiled.source.run(compiled.source.start(word)))
    for step, state in enumerate(states):
        found = dict(zip(names, run.run(None, {"tokens": carry.tokens} | handed), strict=True))
        handed = {name: found[f"next_{name}"] for name in handed}
        carry = compiled.net.advance(carry, 1, engine)
        assert np.array_equal(handed["output"][0], carry.output)
        assert compiled.net.decode(carry) == state
        assert bool(found["halted"]) == (step == len(states) - 1)


@pytest.mark.parametrize("form", ["practical", "paper"])
def test_rcnn_filter_at_every_step(form):
    example: Any = target_named("rcnn").examples()[0]
    compiled: Any = tapegrad.compile(example.source, "rcnn", form=form, margin=5)
    _, run = session(compiled)
    carry = first = compiled.start(*example.inputs)
    grid, states = carry.grid, list(example.source.run(example.source.start(*example.inputs)))
    for state in states[1:]:
        running, grid = run.run(None, {"grid": grid})
        assert bool(running.any()) is not compiled.net.done(carry)
        carry = compiled.net.advance(carry, 1, "fast")
        assert np.abs(grid - carry.grid).max() <= (0 if form == "practical" else 1e-12)
        assert compiled.net.decode(first._replace(grid=grid)) == state
    assert len(states) > 4


def test_what_has_no_network_is_refused():
    compiled: Any = tapegrad.compile("learn-parity2", "emulator", form="paper")
    with pytest.raises(Refused, match="80 digits"):
        to_onnx(compiled)


@pytest.mark.parametrize("options", [{"correction": "thirds"}, {"correction": "none"}, {}])
def test_plain_relu_is_matrices_and_relus_of_one_pattern(options):
    """Run node by node by the reference evaluator of ONNX, which shares nothing with onnxruntime."""
    circuit = random_circuit(7)
    compiled: Any = tapegrad.compile(circuit, "relu", **options)
    model = to_plain_onnx(compiled)
    assert {node.op_type for node in model.graph.node} == {"MatMul", "Add", "Relu"}
    values = (*model.graph.input, *model.graph.output)
    shapes = [[size.dim_value for size in value.type.tensor_type.shape.dim] for value in values]
    assert shapes == [[1, 5], [1, 4]]
    assert json.loads(notes_of(model)["inputs"]) == list(circuit.inputs)
    plain = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    evaluator: Any = ReferenceEvaluator(model)
    bits = all_patterns(5)
    own = compiled.net.outputs(bits, engine="fast")
    right = circuit.wire_values(bits)[circuit.output_wires].T
    for row, near, wanted in zip(bits.astype(np.float32), own, right, strict=True):
        for found in (plain.run(None, {"bits": row[None]}), evaluator.run(None, {"bits": row[None]})):
            assert np.array_equal(found[0][0] > 0.5, wanted)
            assert np.abs(found[0][0] - (near + 1) / 2).max() <= compiled.net.certificate()["at_outputs"]


def test_plain_layers_that_repeat_are_stored_once():
    """Rounds are the same layers again: twice as many are more nodes, and no more matrices."""
    sizes = []
    for rounds in (8, 16):
        make = CircuitBuilder()
        bits = [make.input(f"x{place}") for place in range(4)]
        for _ in range(rounds):
            bits = [make.xor(bits[i], make.and_(bits[i - 1], bits[i - 2])) for i in range(4)]
        for place, wire in enumerate(bits):
            make.output(f"y{place}", wire)
        graph = to_plain_onnx(tapegrad.compile(make.circuit(), "relu", correction="none")).graph
        sizes.append((len(graph.node), len(graph.initializer)))
    (nodes, matrices), (more_nodes, more_matrices) = sizes
    assert more_nodes > 1.9 * nodes
    assert more_matrices == matrices < nodes / 3


def test_plain_export_of_what_is_no_chain_of_relus():
    example = target_named("rcnn").examples()[0]
    with pytest.raises(Refused, match="no chain of ReLU layers"):
        to_plain_onnx(tapegrad.compile(example.source, "rcnn", **example.options))


def test_plain_export_that_would_not_fit_in_a_file(monkeypatch):
    monkeypatch.setattr("tapegrad.networks.onnx_writer.LARGEST", 1000)
    with pytest.raises(Refused, match="an ONNX file in one piece can hold"):
        to_plain_onnx(tapegrad.compile(tapegrad.read("adder4"), "relu"))
