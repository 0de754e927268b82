"""The ReLU network against the circuit's own truth tables and interpreter, layer by layer."""

import hashlib
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import sha256
from tapegrad._compile import Compiled, compile, estimate
from tapegrad._saved import load, save
from tapegrad._verify import verify
from tapegrad.circuits import Array, UInt, trace
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.networks.saving import arrays_of, from_json, to_json
from tapegrad.targets.relu import TARGET, ReluNet
from tests.networks.altered import layer_entries, net_with, network_with

CORRECTIONS = ("thirds", "quarters", "none")
PLAIN = {
    Gate.FALSE: lambda a, b: False,
    Gate.TRUE: lambda a, b: True,
    Gate.ID: lambda a, b: a,
    Gate.NOT: lambda a, b: not a,
    Gate.AND: lambda a, b: a and b,
    Gate.OR: lambda a, b: a or b,
    Gate.XOR: lambda a, b: a != b,
    Gate.NAND: lambda a, b: not (a and b),
    Gate.NOR: lambda a, b: not (a or b),
    Gate.XNOR: lambda a, b: a == b,
}


def relu_net(compiled: Compiled) -> ReluNet:
    assert isinstance(compiled.net, ReluNet)
    return compiled.net


def every_gate() -> Circuit:
    make = CircuitBuilder(simplify=False)
    a, b = make.input("a"), make.input("b")
    for kind in Gate:
        operands = (a, b)[: kind.arity]
        make.output(kind.name, make.gate(kind, *operands))
    return make.circuit("every gate")


def multiplier(bits: int) -> Circuit:
    """The school method, without the tracer."""
    make = CircuitBuilder()
    a = [make.input(f"a{i}") for i in range(bits)]
    b = [make.input(f"b{i}") for i in range(bits)]
    total = [make.constant(False)] * (2 * bits)
    for i in range(bits):
        carry = make.constant(False)
        for j in range(bits):
            term, old = make.and_(a[j], b[i]), total[i + j]
            half = make.xor(term, old)
            total[i + j] = make.xor(half, carry)
            carry = make.or_(make.and_(term, old), make.and_(half, carry))
        total[i + bits] = carry
    for i, wire in enumerate(total):
        make.output(f"p{i}", wire)
    return make.circuit(f"multiplier {bits} x {bits}")


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("engine", ReluNet.engines)
def test_every_gate_has_its_truth_table(correction: str, engine: str) -> None:
    net = relu_net(compile(every_gate(), "relu", form="paper", correction=correction))
    cases = list(product((False, True), repeat=2))
    found = net.outputs(cases, engine=engine) > 0
    expected = [[bool(PLAIN[kind](a, b)) for kind in Gate] for a, b in cases]
    assert found.tolist() == expected


@pytest.mark.parametrize("engine", ReluNet.engines)
def test_multiplier_multiplies(engine: str) -> None:
    net = relu_net(compile(multiplier(6), "relu", form="paper"))
    numbers = np.arange(1 << 12)
    found = net.outputs(numbers[:, None] >> np.arange(12) & 1, engine=engine) > 0
    assert (found @ (1 << np.arange(12)) == (numbers & 63) * (numbers >> 6)).all()


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 2**32), st.sampled_from(CORRECTIONS), st.sampled_from(("float32", "float64")))
def test_random_circuits_agree_layer_by_layer(seed: int, correction: str, dtype: str) -> None:
    circuit = random_circuit(seed, inputs=7, size=40, outputs=5, kinds=tuple(Gate))
    compiled = compile(circuit, "relu", form="paper", correction=correction, dtype=dtype)
    bound = compiled.net.certificate()["at_outputs"]
    for engine in ReluNet.engines:
        report = verify(compiled, engine=engine)
        assert report.agreed, report
        assert report.exhaustive
        assert report.deviation <= bound
    assert (correction == "thirds") == (bound > 0)


def test_layers_are_matrices_of_the_paper() -> None:
    """Plain numpy on the dense matrices gives the same values as the engines."""
    circuit = random_circuit(5, inputs=6, size=60, outputs=4, kinds=tuple(Gate))
    net = relu_net(compile(circuit, "relu", form="paper", width=300, depth=160))
    assert net.depth == 160
    bits = np.array(list(product((0, 1), repeat=6)))
    values = bits.T.astype(net.dtype)
    for layer in range(net.depth):
        weight, bias = net.dense_layer(layer)
        assert weight.shape == (300, 6 if layer == 0 else 300)
        values = np.maximum(weight @ values + bias[:, None], 0)
    weight, bias = net.dense_layer(net.depth)
    assert weight.shape == (4, 300)
    found = (weight @ values + bias[:, None]).T
    expected = 2 * circuit.wire_values(bits.astype(bool))[circuit.output_wires].T - 1.0
    assert np.abs(found - expected).max() < 1e-5
    assert np.abs(net.outputs(bits) - expected).max() <= net.certificate()["at_outputs"]


def test_padding_ends_in_the_same_outputs() -> None:
    compiled = compile(multiplier(3), "relu", form="paper", depth=400, width=500)
    report = verify(compiled)
    assert report.agreed
    assert report.steps == 100
    assert relu_net(compiled).width == 500
    with pytest.raises(Refused, match="4 at a time"):
        compile(multiplier(3), "relu", form="paper", depth=401)
    with pytest.raises(Refused, match="needs a width"):
        compile(multiplier(3), "relu", form="paper", width=2)


@pytest.mark.parametrize(
    "options", [{}, {"correction": "none"}, {"dtype": "float64", "depth": 100, "width": 99}]
)
def test_estimate_is_what_is_built(options: dict) -> None:
    circuit = random_circuit(11, inputs=5, size=30, outputs=3, kinds=tuple(Gate))
    said, net = (
        estimate(circuit, "relu", form="paper", **options),
        relu_net(compile(circuit, "relu", form="paper", **options)),
    )
    assert (said.width, said.depth, said.steps) == (net.width, net.depth, net.circuit_layers)
    assert said.parameters == net.parameters
    assert said.bytes == sum(array.nbytes for array in net.all_arrays().values())
    assert said.precision == net.dtype.name


@pytest.mark.parametrize("outputs", [0, 1])
def test_circuits_without_inputs_or_outputs(outputs: int) -> None:
    make = CircuitBuilder()
    if outputs:
        make.output("one", make.not_(make.constant(False)))
    net = relu_net(compile(make.circuit(), "relu", form="paper"))
    for engine in net.engines:
        assert net.outputs(np.zeros((3, 0)), engine=engine).round().tolist() == [[1.0] * outputs] * 3


@pytest.mark.parametrize("engine", ReluNet.engines)
def test_one_wrong_weight_is_seen(engine: str) -> None:
    """1.5 more on any bias turns some bit round; so does a gate that loses a weight."""
    compiled = compile(multiplier(3), "relu", form="paper")
    net = relu_net(compiled)
    biases = net.wiring.biases
    units = np.random.default_rng(0).choice(len(biases), 6, replace=False)
    broken = [net_with(net, "biases", u, biases[u] + 1.5) for u in (*units, -1)]
    for layer in (0, 1):
        broken.append(net_with(net, "values", layer_entries(net, layer)[0], 0))
    for one in broken:
        assert not verify(replace(compiled, net=one), engine=engine).agreed


def test_explains_every_unit() -> None:
    net = relu_net(compile(every_gate(), "relu", form="paper", width=64))
    names = list(net.units())
    assert len(names) == len(net.wiring.biases)
    said = {name: net.explain(name) for name in names}
    place = list(Gate).index(Gate.XOR)
    assert "XOR of 0 and 1" in said[f"1.{place}"]
    assert "Proposition B.2" in said[f"1.{list(Gate).index(Gate.AND)}"]
    assert "threshold 2/3" in said[f"2.{2 * place + 1}"]
    assert said["4.0"].startswith("Output 'FALSE'")
    assert "padding" in net.explain("0.63")
    for nonsense in ("", "x", "9.0", "0.64", "4.10", "0.-1", "1" * 50):
        with pytest.raises(InputError):
            net.explain(nonsense)


def test_saved_and_loaded(tmp_path: Path) -> None:
    compiled = compile(multiplier(3), "relu", form="paper", dtype="float64")
    save(compiled, tmp_path / "net")
    again = load(tmp_path / "net")
    assert verify(again, engine="fast").agreed
    for name, array in compiled.net.all_arrays().items():
        assert np.array_equal(array, again.net.all_arrays()[name])


@pytest.mark.parametrize("form", ["paper", "practical"])
@pytest.mark.parametrize(
    ("part", "place", "value", "what"),
    [
        ("columns", 3, -1, "beyond"),
        ("columns", 3, 1 << 20, "beyond"),
        ("out", 0, 1 << 20, "beyond"),
        ("to", 0, -1, "beyond"),
        ("starts", 1, 1 << 20, "do not follow"),
        ("bounds", -1, 1, "do not follow"),
        ("relu", 0, 2, "with 0 or 1"),
    ],
)
def test_arrays_that_would_read_outside_are_refused(
    form: str, part: str, place: int, value: int, what: str
) -> None:
    net = compile(multiplier(2), "relu", form=form).net
    data, arrays = to_json(net.network), arrays_of(net.network)
    assert from_json(data, arrays).arrays.keys() == arrays.keys()
    altered = arrays_of(network_with(net.network, part, place, value))
    with pytest.raises(BrokenNet, match=what):
        from_json(data, altered)


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        ("gates.kinds", lambda own: own[:-1], "a unit for each gate"),
        ("gates.wires", lambda own: own[None], "a unit for each gate"),
        ("gates.kinds", lambda own: own ^ 5, "the hidden units"),
        ("gates.kinds", lambda own: np.full_like(own, Gate.XOR), "the hidden units"),
    ],
)
def test_gates_that_are_not_those_of_the_units_are_not_loaded(name: str, change: Any, what: str) -> None:
    net = relu_net(compile(multiplier(2), "relu", form="paper"))
    arrays = net.arrays() | {name: change(net.arrays()[name])}
    with pytest.raises(BrokenNet, match=what):
        ReluNet.from_saved(net.config(), arrays, net.network)


def test_inputs_that_do_not_fit() -> None:
    net = relu_net(compile(every_gate(), "relu", form="paper"))
    with pytest.raises(InputError):
        net.outputs([1, 0, 1])
    with pytest.raises(InputError):
        net.outputs([2, 0])
    with pytest.raises(InputError):
        net.outputs([0, 0], engine="warp")


def test_examples_agree() -> None:
    for example in TARGET.examples():
        assert verify(compile(example.source, "relu", form="paper", **example.options)).agreed


@pytest.mark.slow
@pytest.mark.parametrize("engine", ReluNet.engines)
def test_a_million_inputs(engine: str) -> None:
    """All 2^20 pairs of ten-bit numbers, against numpy's products."""
    net = relu_net(compile(multiplier(10), "relu", form="paper"))
    numbers = np.arange(1 << 20)
    found = net.outputs(numbers[:, None] >> np.arange(20) & 1, engine=engine) > 0
    assert (found @ (1 << np.arange(20)) == (numbers & 1023) * (numbers >> 10)).all()


@pytest.mark.slow
def test_every_layer_on_all_inputs() -> None:
    report = verify(compile(multiplier(7), "relu", form="paper"), engine="fast")
    assert report.agreed
    assert report.exhaustive
    assert report.inputs == 1 << 14


@pytest.mark.slow
def test_sha256_as_a_network() -> None:
    """The traced compression, 116,000 gates and 15,412 ReLU layers, against hashlib."""
    traced = trace(sha256.compress, Array(UInt(32), 8), Array(UInt(32), 16))
    net = relu_net(compile(traced.circuit, "relu", form="paper"))
    messages = [b"", b"abc", b"tapegrad" * 6]
    bits = [traced.encode(sha256.FIRST_STATE, sha256.blocks(message)[0]) for message in messages]
    for message, row in zip(messages, net.outputs(bits, engine="fast") > 0, strict=True):
        found = b"".join(word.to_bytes(4, "big") for word in traced.decode(row.tolist()))
        assert found == hashlib.sha256(message).digest()
