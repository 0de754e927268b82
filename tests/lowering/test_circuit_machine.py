"""Machines made from circuits, side by side with the circuits."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.circuits import CircuitBuilder, Gate, UInt, trace
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import InputError, Refused
from tapegrad.lowering.circuit_machine import (
    circuit_machine,
    evaluator,
    evaluator_machine,
    gate_list,
    straight_line,
)
from tapegrad.machines.model import STAY, TuringMachine

circuits = st.builds(
    random_circuit,
    st.integers(0, 10**6),
    inputs=st.integers(0, 6),
    size=st.integers(0, 25),
    outputs=st.integers(1, 5),
)


def check(rewriting, patterns=None):
    """Every state of the machine decodes to a state of the circuit, in order, or to nothing."""
    circuit = rewriting.before
    if patterns is None:
        patterns = list(itertools.product([0, 1], repeat=len(circuit.inputs)))[
            :: max(1, 2 ** len(circuit.inputs) // 8)
        ]
    steps = 0
    for pattern in patterns:
        bits = circuit.start(pattern)
        states = list(rewriting.after.run(rewriting.encode(bits)))
        decoded = [state for state in map(rewriting.decode, states) if state is not None]
        expected = list(circuit.run(bits))
        assert len(decoded) == 2
        assert rewriting.decode(states[-1]) is not None
        for found, wanted in zip(decoded, expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
        steps = len(states) - 1
    return steps


@settings(deadline=None, max_examples=60)
@given(circuits, st.integers(1, 3), st.integers(1, 5))
def test_straight_line_machines(circuit, tapes, carried):
    rewriting = straight_line(circuit, tapes, carried)
    machine = rewriting.after
    assert isinstance(machine, TuringMachine)
    assert machine.tapes == tapes
    assert all(STAY not in rule.moves for rule in machine.rules.values())
    check(rewriting)


@settings(deadline=None, max_examples=30)
@given(circuits)
def test_the_evaluator_machine(circuit):
    rewriting = evaluator_machine(circuit)
    assert rewriting.after is evaluator()
    check(rewriting)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(st.data(), st.integers(1, 4), st.integers(1, 6))
def test_larger_circuits(data, tapes, carried):
    seed, size = data.draw(st.integers(0, 10**6)), data.draw(st.integers(30, 200))
    circuit = random_circuit(seed, inputs=12, size=size, outputs=10)
    patterns = np.random.default_rng(seed).integers(0, 2, (3, 12))
    check(straight_line(circuit, tapes, carried), patterns)
    check(evaluator_machine(circuit), patterns[:1])


ADDER = trace(lambda a, b: a + b, UInt(8), UInt(8), name="adder").circuit
PATTERNS = np.random.default_rng(0).integers(0, 2, (20, 16))


@pytest.mark.parametrize(("tapes", "steps"), [(1, 16), (2, 8), (3, 6)])
def test_an_adder_takes_one_step_a_bit_on_two_tapes(tapes, steps):
    assert check(straight_line(ADDER, tapes), PATTERNS) == steps


def test_heads_know_no_data():
    """Obliviousness: where the heads are depends on the time alone."""
    rewriting = straight_line(ADDER, 2)
    paths = {tuple(c.heads for c in rewriting.after.run(rewriting.encode(ADDER.start(p)))) for p in PATTERNS}
    assert len(paths) == 1


def test_the_evaluator_takes_the_steps_its_docstring_derives():
    farthest = []
    first = len(ADDER.inputs)
    for gate, (left, right) in enumerate(zip(ADDER.left, ADDER.right, strict=True)):
        farthest.append(first + gate - min(left, right))
    for i, wire in enumerate(ADDER.output_wires):
        farthest.append(ADDER.wires + i - wire)
    assert check(evaluator_machine(ADDER), PATTERNS[:3]) == 1 + sum(2 * d + 1 for d in farthest)
    assert len(evaluator().states) == 24


def test_a_gate_list():
    build = CircuitBuilder(simplify=False)
    a, b = build.input("a"), build.input("b")
    both = build.and_(a, b)
    build.output("y", build.gate(Gate.NOR, both, both))
    build.output("one", build.constant(True))
    circuit = build.circuit()
    assert gate_list(circuit) == "&<<>O<1=<<=<<"
    check(evaluator_machine(circuit))


@pytest.mark.parametrize("way", ["straight-line", "evaluator"])
def test_outputs_that_are_inputs_constants_or_repeated(way):
    build = CircuitBuilder()
    a, b = build.input("a"), build.input("b")
    for i, wire in enumerate([b, a, a, build.constant(True), build.constant(False), build.not_(a)]):
        build.output(f"y{i}", wire)
    check(circuit_machine(build.circuit(), way))


@pytest.mark.parametrize("most", [20, 80])  # before a table is begun, and on the way
def test_tables_that_would_be_too_large(monkeypatch, most):
    monkeypatch.setattr("tapegrad.lowering.circuit_machine.MOST_RULES", most)
    with pytest.raises(Refused, match="evaluator machine"):
        straight_line(ADDER)


def test_refusals():
    with pytest.raises(Refused):
        circuit_machine(ADDER, "oracle")
    with pytest.raises(Refused):
        circuit_machine(ADDER, "evaluator", tapes=2)
    with pytest.raises(InputError):
        straight_line(ADDER, tapes=0)
    for way in ("straight-line", "evaluator"):
        with pytest.raises(InputError, match="one row"):
            circuit_machine(ADDER, way).encode(ADDER.start(PATTERNS))


def test_too_many_tapes_are_refused_before_anything_is_planned() -> None:
    with pytest.raises(Refused, match="more than 1,000,000 rules"):
        straight_line(ADDER, 10**9)
