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
    "interrupts": lambda width, *buses: served(*buses),
}


def served(*buses):
    """Of three buses and the places that are enabled."""
    *requests, enabled = buses
    for name, bus in zip("abc", requests, strict=True):
        if bus & enabled:
            place = (bus & enabled).bit_length() - 1
            return {own: own == name for own in "abc"} | {"place": place}
    return {"a": False, "b": False, "c": False, "place": 0}


@pytest.mark.parametrize("width", [1, 2, 7, 16])
@pytest.mark.parametrize("kind", EXPECTED)
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
    assert set(READY) == {f"{kind}{entry.shown}" for kind, entry in KINDS.items()}
    assert set(KINDS) - set(EXPECTED) == {"corrector"}
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


def test_one_wrong_bit_is_put_right():
    """Check bits by a second way: the three places of a column are all pairs of three different numbers."""
    corrector, draw = traced("corrector32"), random.Random(3)
    columns = sorted(1 << x | 1 << y | 1 << z for x in range(8) for y in range(x) for z in range(y))[:32]
    for wrong in range(41):
        data = draw.getrandbits(32)
        check = 0
        for place, column in enumerate(columns):
            check ^= column if data >> place & 1 else 0
        heard, checked = data, check
        if wrong < 32:
            heard ^= 1 << wrong
        elif wrong < 40:
            checked ^= 1 << wrong - 32
        assert corrector(heard, checked, 1) == data
        assert corrector(heard, checked, 0) == heard


def test_the_size_of_iscas_circuits():
    sizes = {"interrupts9": (36, 7), "corrector32": (41, 32), "multiplier16": (32, 32)}
    for name, size in sizes.items():
        circuit = ready(name)
        assert (len(circuit.inputs), len(circuit.outputs)) == size
