"""The compiled evaluator against the gate-by-gate oracle and against Python's integers."""

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapegrad.circuits import Circuit, Gate
from tapegrad.circuits.evaluator import Evaluator, evaluate, evaluate_packed, packed, unpacked
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import InputError
from tests.circuits.arithmetic import multiplier


@given(
    seed=st.integers(0, 10**6),
    inputs=st.integers(0, 7),
    size=st.integers(0, 80),
    outputs=st.integers(0, 8),
    patterns=st.integers(0, 200),
)
@settings(max_examples=150, deadline=None)
def test_agrees_with_the_oracle(seed: int, inputs: int, size: int, outputs: int, patterns: int) -> None:
    circuit = random_circuit(seed, inputs=inputs, size=size, outputs=outputs, kinds=tuple(Gate))
    bits = np.random.default_rng(seed).integers(0, 2, (patterns, inputs)).astype(bool)
    assert np.array_equal(evaluate(circuit, bits), circuit.wire_values(bits)[circuit.output_wires].T)


@pytest.mark.parametrize("inputs", [8, 9, 12, 16, 33, 70])
@pytest.mark.parametrize("patterns", [63, 64, 65, 511, 4096, 4097, 10_001])
def test_squares_and_blocks_agree_with_the_oracle(inputs: int, patterns: int) -> None:
    """Inputs are packed in squares of eight by eight, patterns in blocks of 4,096."""
    circuit = random_circuit(inputs, inputs=inputs, size=4 * inputs, outputs=9, kinds=tuple(Gate))
    bits = np.random.default_rng(5).integers(0, 2, (patterns, inputs)).astype(bool)
    wanted = circuit.wire_values(bits)[circuit.output_wires].T
    for rows in (bits, np.asfortranarray(bits), bits[::-1][::-1], bits.astype(float)):
        assert np.array_equal(evaluate(circuit, rows), wanted)
    assert np.array_equal(unpacked(evaluate_packed(circuit, packed(bits)), patterns), wanted)


def test_multiplies_as_python_does() -> None:
    circuit, rng = multiplier(32), random.Random(0)
    pairs = [(rng.getrandbits(32), rng.getrandbits(32)) for _ in range(300)] + [(0, 0), (2**32 - 1,) * 2]
    rows = [[x >> i & 1 for x in pair for i in range(32)] for pair in pairs]
    products = [sum(int(bit) << i for i, bit in enumerate(row)) for row in evaluate(circuit, rows)]
    assert products == [x * y for x, y in pairs]


def test_registers_are_used_again() -> None:
    evaluator = Evaluator(multiplier(32))
    assert evaluator.registers < 300 < evaluator.circuit.size / 10


def test_a_register_is_given_away_once() -> None:
    """Both operands of the first gate are a, whose register is free from then on: for one of the next two."""
    circuit = Circuit(
        ("a", "b", "c"),
        ("out",),
        kinds=np.array([Gate.AND, Gate.XOR, Gate.NAND, Gate.XOR], np.uint8),
        left=np.array([0, 1, 2, 4], np.int32),
        right=np.array([0, 3, 3, 5], np.int32),
        output_wires=np.array([6], np.int32),
    )
    bits = np.array(list(product((False, True), repeat=3)))
    assert np.array_equal(evaluate(circuit, bits), circuit.wire_values(bits)[circuit.output_wires].T)
    assert Evaluator(circuit).registers == 4
    chain = Circuit(("a",), ("out",), [Gate.NOT] * 5, [0, 1, 2, 3, 4], [0] * 5, [5])  # type: ignore[arg-type]
    assert Evaluator(chain).registers == 2
    assert evaluate(chain, [[0], [1]]).tolist() == [[True], [False]]


def test_operands_that_are_not_looked_at_have_a_register() -> None:
    constants = Circuit((), ("one",), [Gate.TRUE], [0], [0], [0])  # type: ignore[arg-type]
    evaluator = Evaluator(constants)
    assert evaluator.registers == 1
    assert {*evaluator._left.tolist(), *evaluator._right.tolist()} == {0}


def test_packing_puts_pattern_64k_plus_j_into_bit_j_of_word_k() -> None:
    bits = np.zeros((130, 2), bool)
    bits[64 + 5, 1] = bits[129, 0] = True
    words = packed(bits)
    assert words.tolist() == [[0, 0, 2], [0, 32, 0]]
    assert np.array_equal(unpacked(words, 130), bits)


def test_words_of_the_wrong_shape_are_refused() -> None:
    circuit = random_circuit(1, inputs=3)
    with pytest.raises(InputError, match="3 rows"):
        evaluate_packed(circuit, np.zeros((2, 1), np.uint64))
    with pytest.raises(InputError, match="int64"):
        evaluate_packed(circuit, np.zeros((3, 1), np.int64))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="3 inputs"):
        evaluate(circuit, [[0, 1]])
