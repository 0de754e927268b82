"""Ready circuits against Python's integers."""

import random

import pytest

from tapegrad.circuits.library import KINDS, READY, ready, traced
from tapegrad.errors import InputError


def order(a, b):
    return {"less": a < b, "equal": a == b, "greater": a > b}


EXPECTED = {
    "adder": lambda width, a, b: a + b,
    "multiplier": lambda width, a, b: a * b,
    "divider": lambda width, a, b: {
        "quotient": a // b if b else (1 << width) - 1,
        "remainder": a % b if b else a,
    },
    "comparator": lambda width, a, b: order(a, b),
    "signed-comparator": lambda width, a, b: order(a, b),
    "parity": lambda width, a: a.bit_count() % 2 == 1,
    "popcount": lambda width, a: a.bit_count(),
    "majority": lambda width, a: 2 * a.bit_count() > width,
}


@pytest.mark.parametrize("width", [1, 2, 7, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_values(kind, width):
    circuit = traced(f"{kind}{width}")
    draw = random.Random(width)
    low = -(1 << width - 1) if kind == "signed-comparator" else 0
    edge = (low, low + (1 << width) - 1)
    for _ in range(12):
        numbers = [draw.choice((*edge, draw.randrange(low, low + (1 << width)))) for _ in circuit.inputs]
        assert circuit(*numbers) == EXPECTED[kind](width, *numbers), numbers


def test_names():
    assert "adder8" in READY
    assert "adder13" in READY
    assert set(READY) == {f"{kind}8" for kind in KINDS}
    assert all(entry.summary for entry in READY.values())
    assert ready("adder13").name == "adder13"
    assert ready("multiplier32").size > 5000


@pytest.mark.parametrize(
    "name", ["adder", "adder0", "adder08", "adder2000", "adder99999999", "nonsense8", ""]
)
def test_names_that_do_not_exist(name):
    assert name not in READY
    with pytest.raises(InputError, match="no ready circuit"):
        ready(name)
