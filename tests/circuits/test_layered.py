"""The layered form against the circuit it came from: every output, every value on the way, every width."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.circuits import Circuit, CircuitBuilder, Gate
from tapegrad.circuits.layered import LayeredCircuit, LayerState, layered, layered_widths
from tapegrad.circuits.model import ARITY
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import InputError, Refused


@given(
    seed=st.integers(0, 10**6),
    inputs=st.integers(0, 5),
    size=st.integers(0, 30),
    outputs=st.integers(0, 6),
)
@settings(max_examples=150, deadline=None)
def test_layers_do_what_the_circuit_does(seed: int, inputs: int, size: int, outputs: int) -> None:
    circuit = random_circuit(seed, inputs=inputs, size=size, outputs=outputs, kinds=tuple(Gate))
    bits = np.random.default_rng(seed).integers(0, 2, (9, inputs)).astype(bool)
    rewriting = layered(circuit)
    run = list(rewriting.after.run(rewriting.encode(bits)))
    decoded = [state for state in map(rewriting.decode, run) if state is not None]
    wanted = list(circuit.run(bits))
    assert len(decoded) == len(wanted) == 2
    assert all(np.array_equal(got, want) for got, want in zip(decoded, wanted, strict=True))

    after = rewriting.after
    assert isinstance(after, LayeredCircuit)
    oracle = circuit.wire_values(bits)
    for state in run[1:]:
        assert np.array_equal(state.bits, oracle[after.layer(state.layer).wires].T)
    assert np.array_equal(after.widths, layered_widths(circuit))
    assert [state.bits.shape[1] for state in run] == after.widths.tolist()


@given(seed=st.integers(0, 10**6), size=st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_nothing_is_carried_in_vain(seed: int, size: int) -> None:
    after = layered(random_circuit(seed, inputs=4, size=size, outputs=2, kinds=tuple(Gate))).after
    assert isinstance(after, LayeredCircuit)
    for number in range(1, after.depth):
        layer, reader = after.layer(number), after.layer(number + 1)
        read = {*reader.left[ARITY[reader.kinds] >= 1], *reader.right[ARITY[reader.kinds] == 2]}
        assert read == set(range(len(layer.kinds)))  # every value is read
        assert len(set(layer.wires.tolist())) == len(layer.wires)  # and none is held twice


def test_depth_is_the_circuits_own() -> None:
    for seed in range(20):
        circuit = random_circuit(seed, inputs=6, size=50, outputs=3)
        assert layered(circuit).after.depth == max(1, circuit.depth)  # type: ignore[attr-defined]


def test_inputs_used_late_are_carried() -> None:
    build = CircuitBuilder(simplify=False)
    wire, late = build.input("a"), build.input("late")
    for _ in range(5):
        wire = build.not_(wire)
    build.output("both", build.and_(wire, late))
    build.output("again", build.and_(wire, late))
    after = layered(build.circuit()).after
    assert isinstance(after, LayeredCircuit)
    assert after.widths.tolist() == [2, 2, 2, 2, 2, 2, 2]
    assert [state.bits.tolist() for state in after.run(after.start([0, 1]))][-1] == [[True, True]]


def _chain(length: int, inputs: int) -> Circuit:
    first = np.arange(inputs - 1, inputs - 1 + length)
    first[0] = 0
    return Circuit(
        inputs=tuple(f"x{i}" for i in range(inputs)),
        outputs=("y",),
        kinds=np.full(length, Gate.NAND, np.uint8),
        left=first.astype(np.int32),
        right=(np.arange(length) % inputs).astype(np.int32),
        output_wires=np.array([inputs + length - 1], np.int32),
    )


def test_a_deep_circuit_of_thirty_thousand_gates() -> None:
    circuit = _chain(30_000, 20)
    after = layered(circuit).after
    assert isinstance(after, LayeredCircuit)
    assert after.depth == 30_000
    assert after.size == layered_widths(circuit)[1:].sum()


def test_what_would_not_fit_is_refused_before_it_is_built() -> None:
    with pytest.raises(Refused, match="identities"):
        layered(_chain(30_000, 2_000))


def test_a_wrong_number_of_bits_is_refused() -> None:
    after = layered(_chain(3, 2)).after
    with pytest.raises(InputError, match="2 inputs"):
        after.start([1, 0, 1])


def test_states_of_different_layers_differ() -> None:
    bits = np.ones((1, 1), bool)
    assert LayerState(0, bits) == LayerState(0, bits.copy())
    assert LayerState(0, bits) != LayerState(1, bits)
