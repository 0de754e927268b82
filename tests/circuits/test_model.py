"""Circuits as arrays: truth tables, levels and needed wires by hand; a bad circuit for every condition."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from tapegrad.circuits.model import ARITY, Circuit, Gate
from tapegrad.errors import InputError, SourceError

TABLES = {
    Gate.FALSE: "0000", Gate.TRUE: "1111", Gate.NOT: "1100", Gate.ID: "0011", Gate.AND: "0001",
    Gate.OR: "0111", Gate.XOR: "0110", Gate.NAND: "1110", Gate.NOR: "1000", Gate.XNOR: "1001",
}  # fmt: skip
"""Values for inputs 00, 01, 10, 11."""


def test_every_gate_has_its_table() -> None:
    assert TABLES.keys() == set(Gate)
    patterns = np.array(list(product((False, True), repeat=2)))
    for gate, table in TABLES.items():
        looks_at_b = table[0] != table[1] or table[2] != table[3]
        looks_at_a = table[:2] != table[2:]
        assert gate.arity == ARITY[gate] == looks_at_a + looks_at_b
        own = Circuit(("a", "b"), ("out",), [gate], [0], [int(gate.arity == 2)], [2])  # type: ignore[arg-type]
        *_, found = own.run(patterns)
        assert "".join(str(int(bit)) for bit in found[:, 0]) == table


CIRCUIT = Circuit(
    ("a", "b", "c"),
    ("x", "y", "one"),
    kinds=np.array([Gate.AND, Gate.NOT, Gate.OR, Gate.TRUE, Gate.XOR, Gate.NOR], np.uint8),
    left=np.array([0, 3, 4, 0, 2, 7], np.int32),
    right=np.array([1, 0, 2, 0, 6, 5], np.int32),
    output_wires=np.array([5, 3, 6], np.int32),
)
"""Wires 3 = a and b, 4 = not 3, 5 = 4 or c, 6 = 1; 7 = c xor 6 and 8 = 7 nor 5 reach no output."""


def test_wires_levels_and_what_is_needed() -> None:
    assert (CIRCUIT.size, CIRCUIT.wires, CIRCUIT.depth) == (6, 9, 3)
    assert CIRCUIT.levels().tolist() == [0, 0, 0, 1, 2, 3, 0, 1, 4]
    assert CIRCUIT.levels(constants=5).tolist() == [0, 0, 0, 1, 2, 3, 5, 6, 7]
    assert CIRCUIT.needed().tolist() == [True] * 7 + [False] * 2
    only = replace(CIRCUIT, outputs=("one",), output_wires=np.array([6]))
    assert only.needed().tolist() == [False] * 6 + [True, False, False]
    assert (only.depth, replace(CIRCUIT, outputs=(), output_wires=np.array([])).depth) == (0, 0)
    for a, b, c in product((0, 1), repeat=3):
        first, last = CIRCUIT.run(CIRCUIT.start([a, b, c]))
        assert first.tolist() == [[bool(a), bool(b), bool(c)]]
        assert last.tolist() == [[not (a and b) or bool(c), bool(a and b), True]]
    assert not CIRCUIT.kinds.flags.writeable


def test_inputs_are_bits_one_for_each_name() -> None:
    assert CIRCUIT.start([[0, 1, 1], [1.0, 0, 0]]).tolist() == [[False, True, True], [True, False, False]]
    for bad in ([0, 1], [[0, 1, 1, 0]], [[[0, 1, 1]]]):
        with pytest.raises(InputError, match="has 3 inputs"):
            CIRCUIT.start(bad)
    for bad in ([0, 1, 2], [0, 1, 0.5], [0, 1, -1]):
        with pytest.raises(InputError, match="are bits, 0 or 1"):
            CIRCUIT.start(bad)
    for count, said in ((8, "x0, x1, x2, x3, x4, x5, x6, x7"), (9, "x0, x1, x2, x3, x4, x5, x6, ... x8")):
        wide = Circuit(tuple(f"x{n}" for n in range(count)), (), [], [], [], [])  # type: ignore[arg-type]
        with pytest.raises(InputError) as refused:
            wide.start([0])
        assert refused.value.advice == f"Its inputs are {said}."


BAD: list[tuple[str, dict[str, Any]]] = [
    ("two operands", {"left": [0, 3, 4, 0, 2]}),
    ("two operands", {"right": [1, 0, 2, 0, 6, 5, 0]}),
    ("gate 1 is of no known kind", {"kinds": [8, 2, 14, 15, 6, 1]}),
    ("one name for each output", {"outputs": ("x", "y")}),
    ("gate 0 uses a wire that does not come before", {"left": [3, 3, 4, 0, 2, 7]}),
    ("gate 2 uses a wire that does not come before", {"right": [1, 0, 5, 0, 6, 5]}),
    ("gate 5 uses a wire that does not come before", {"left": [0, 3, 4, 0, 2, -1]}),
    ("does not look at are 0", {"right": [1, 1, 2, 0, 6, 5]}),
    ("does not look at are 0", {"left": [0, 3, 4, 2, 2, 7]}),
    ("wire that does not exist", {"output_wires": [5, 3, 9]}),
    ("wire that does not exist", {"output_wires": [5, 3, -1]}),
    ("two inputs have the same name", {"inputs": ("a", "b", "a")}),
    ("two outputs have the same name", {"outputs": ("x", "y", "x")}),
]


@pytest.mark.parametrize(("reason", "change"), BAD)
def test_a_circuit_out_of_form_is_refused_for_its_reason(reason: str, change: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match=reason):
        replace(CIRCUIT, **change)
