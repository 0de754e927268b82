"""Folding and sharing change the gates, never the function."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.circuits import CircuitBuilder, Gate

INPUTS = 3
PATTERNS = np.array(list(itertools.product([False, True], repeat=INPUTS)))

steps = st.lists(
    st.tuples(st.sampled_from([*Gate, "where"]), *[st.integers(0, 10**6)] * 3), min_size=1, max_size=40
)


def grown(program, *, simplify):
    build = CircuitBuilder(simplify=simplify)
    wires = [build.input(f"x{i}") for i in range(INPUTS)]
    for kind, *operands in program:
        a, b, c = (wires[i % len(wires)] for i in operands)
        wires.append(build.where(a, b, c) if kind == "where" else build.gate(kind, a, b))
    for i, wire in enumerate(wires):
        build.output(f"y{i}", wire)
    return build.circuit()


@settings(deadline=None, max_examples=150)
@given(steps)
def test_simplified_circuits_compute_the_same(program):
    as_written, simplified = (grown(program, simplify=s) for s in (False, True))
    *_, expected = as_written.run(PATTERNS)
    *_, found = simplified.run(PATTERNS)
    np.testing.assert_array_equal(found, expected)
    assert simplified.size <= as_written.size
    gates = list(zip(simplified.kinds, simplified.left, simplified.right, strict=True))
    assert len(set(gates)) == len(gates)


def test_a_program_stays_as_written_without_simplify():
    program = [(Gate.ID, 0, 0, 0), (Gate.ID, 0, 0, 0), (Gate.TRUE, 0, 0, 0), (Gate.AND, 5, 0, 0)]
    assert grown(program, simplify=False).kinds.tolist() == [Gate.ID, Gate.ID, Gate.TRUE, Gate.AND]
    assert grown(program, simplify=True).size == 1  # the constant, since it is an output
