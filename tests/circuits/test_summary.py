"""The summary of a circuit, and simplification."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.circuits import CircuitBuilder, Gate
from tapegrad.circuits.builder import simplified
from tapegrad.circuits.evaluator import evaluate
from tapegrad.circuits.kind import summary
from tapegrad.circuits.sampler import random_circuit


def test_summary_counts() -> None:
    build = CircuitBuilder(simplify=False)
    a, b, c = (build.input(f"a[{i}]") for i in range(3))
    carry = build.input("carry")
    build.not_(c)
    build.output("y", build.and_(build.and_(a, b), carry))
    assert summary(build.circuit("three")) == (
        "circuit three\n"
        "  inputs   4  a[0..2], carry\n"
        "  outputs  1  y\n"
        "  gates    3  2 AND, 1 NOT; 1 reach no output\n"
        "  depth    2\n"
        "  width    4 in layers, 3 gates with identities"
    )


def test_summary_of_nothing_and_of_many_names() -> None:
    build = CircuitBuilder()
    assert "  inputs   0\n" in summary(build.circuit())
    for number in range(20):
        build.input(f"x{number}")
    assert "x0, x1, x2, x3, x4, x5, x6, ..., x19" in summary(build.circuit())


@given(seed=st.integers(0, 10**6), inputs=st.integers(0, 5), size=st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_simplified_circuits_do_the_same_with_no_more_gates(seed: int, inputs: int, size: int) -> None:
    circuit = random_circuit(seed, inputs=inputs, size=size, outputs=5, kinds=tuple(Gate))
    smaller = simplified(circuit)
    assert (smaller.inputs, smaller.outputs) == (circuit.inputs, circuit.outputs)
    bits = np.random.default_rng(seed).integers(0, 2, (100, inputs)).astype(bool)
    assert np.array_equal(evaluate(smaller, bits), evaluate(circuit, bits))
    assert smaller.size <= circuit.size + len(circuit.outputs)
