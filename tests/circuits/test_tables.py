"""The gates of a truth table, against the table itself; and a table of six inputs in a BLIF file."""

import random

import numpy as np
import pytest

from tapegrad.circuits.formats import read
from tapegrad.circuits.formats.tables import Plan, plan_of, variable
from tapegrad.circuits.model import Gate


def value(plan: Plan | bool, inputs: int) -> int:
    """The table that a plan computes."""
    every = (1 << (1 << inputs)) - 1
    if isinstance(plan, bool):
        return every if plan else 0
    known = [variable(inputs, place) for place in range(inputs)]
    for kind, *reads in plan.steps:
        a, b = (known[own] if own >= 0 else every ^ known[~own] for own in reads)
        known.append({Gate.AND: a & b, Gate.OR: a | b, Gate.XOR: a ^ b}[kind])
    return known[plan.result] if plan.result >= 0 else every ^ known[~plan.result]


@pytest.mark.parametrize("inputs", range(7))
def test_plans_compute_their_tables(inputs: int) -> None:
    rows = 1 << inputs
    draw = random.Random(inputs)
    tables = range(1 << rows) if inputs < 4 else [draw.getrandbits(rows) for _ in range(60)]
    for table in tables:
        assert value(plan_of(inputs, table), inputs) == table


def test_a_parity_of_six_written_as_32_cubes_is_five_gates() -> None:
    odd = [f"{number:06b}" for number in range(64) if number.bit_count() % 2]
    text = ".model odd\n.inputs a b c d e f\n.outputs y\n.names a b c d e f y\n"
    circuit = read((text + "".join(f"{cube} 1\n" for cube in odd) + ".end\n").encode())
    bits = np.arange(64)[:, None] >> np.arange(6) & 1
    *_, found = circuit.run(circuit.start(bits))
    assert np.array_equal(found[:, 0], bits.sum(axis=1) % 2 == 1)
    assert circuit.size <= 6


def test_a_decoder_written_as_single_cubes_shares_their_parts() -> None:
    """Each of 64 outputs is one cube of six literals; their trees have 12 pairs, 16 fours and 64 sixes."""
    names = "abcdef"
    lines = [f".model decoder\n.inputs {' '.join(names)}\n.outputs {' '.join(f'y{k}' for k in range(64))}\n"]
    lines += [f".names {' '.join(names)} y{k}\n{k:06b} 1\n" for k in range(64)]
    circuit = read("".join([*lines, ".end\n"]).encode())
    bits = np.arange(64)[:, None] >> np.arange(6)[::-1] & 1
    *_, found = circuit.run(circuit.start(bits))
    assert np.array_equal(found, np.eye(64, dtype=bool))
    assert circuit.size == 6 + 12 + 16 + 64
