"""Rows of a layer together and one by one, against the network in double precision; and bounds of sums."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from tapegrad_check.arithmetic import DOUBLE, SINGLE, Term, rounding, rounding_of_few
from tapegrad_check.core import layers as layers_of
from tapegrad_check.core.functions import Functions
from tapegrad_check.core.layers import NOTHING, Layers
from tapegrad_check.core.places import Numbers, Place
from tapegrad_check.graph import Node

INPUTS, ROWS, LAYERS = 4, 40, 6


def network(seed: int, single: bool) -> Node:
    """Rows of at most three entries that read any slots, most of them with a ReLU; weights that make bits,
    and others."""
    random, slots = np.random.default_rng(seed), INPUTS + 2 * ROWS
    choices = [-1.0, 1.0, 2.0, 0.5] if single else [-1.0, 1.0, 1.0, 3.0, 1 / 3]
    biases = [-1.0, 0.0, 0.0, 1.0] if single else [-1.0, 0.0, 0.0, 1.0, -1 / 3]
    values, columns, starts, bias, relu, to = [], [], [0], [], [], []
    for layer in range(LAYERS):
        last = INPUTS + ROWS * (layer % 2) + np.arange(ROWS)
        before = INPUTS + ROWS * ((layer + 1) % 2) + np.arange(ROWS)
        for row in range(ROWS):
            count = int(random.choice([0, 1, 1, 2, 2, 2, 3]))
            read = random.choice(np.append(np.arange(INPUTS), before), count, replace=False)
            values += random.choice(choices, count).tolist()
            columns += read.tolist()
            starts.append(len(columns))
            bias.append(float(random.choice(biases)))
            relu.append(int(random.integers(4) > 0))
            to.append(int(last[row]))
    arrays = {
        "bounds": np.arange(LAYERS + 1) * ROWS,
        "starts": np.array(starts),
        "columns": np.array(columns, np.int32),
        "values": np.array(values, np.float32),
        "biases": np.array(bias, np.float32),
        "to": np.array(to, np.int32),
        "relu": np.array(relu, np.uint8),
        "out": np.arange(slots, dtype=np.int32),
    }
    return Node("units", "layers", ("bits",), arrays, {"slots": slots}, "", None)


def values_of(numbers: Numbers, place: Place, patterns: int) -> tuple[np.ndarray, np.ndarray]:
    """What a place is on the inputs of the functions, and how far it may be off."""
    at = np.zeros(patterns, np.int64)
    for i, leaf in enumerate(place.leaves):
        word = numbers.functions.value(leaf)
        at += np.array([word >> pattern & 1 for pattern in range(patterns)]) << i
    return place.form.values[at], place.form.off(numbers.sizes_of(place))[at]


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_what_rows_make(seed: int, single: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every slot has the number that it is said to have, whether rows are taken together or not."""
    node, patterns = network(seed, single), 64
    numbers_and_layers = []
    for fewest in (1, 1 << 20):
        monkeypatch.setattr(layers_of, "FEWEST", fewest)
        numbers = Numbers(Functions())
        bits = [numbers.bit(literal) for literal in numbers.functions.variables(INPUTS)]
        numbers_and_layers.append((numbers, bits, Layers(numbers, node, SINGLE, bits, None)))
    for numbers, bits, found in numbers_and_layers:
        slots = np.zeros((node.setting("slots"), patterns))
        slots[:INPUTS] = [values_of(numbers, bit, patterns)[0] for bit in bits]
        own = node.arrays
        for first, last in pairwise(own["bounds"].tolist()):
            made = []
            for row in range(first, last):
                part = slice(own["starts"][row], own["starts"][row + 1])
                total = own["biases"][row] + own["values"][part].astype(float) @ slots[own["columns"][part]]
                made.append(np.maximum(total, 0) if own["relu"][row] else total)
            slots[own["to"][first:last]] = made
        for slot in range(len(slots)):
            value, off = values_of(numbers, found.place(slot), patterns)
            assert (np.abs(value - slots[slot]) <= off + 1e-12).all(), slot
            assert not single or not off.any()
    together, alone = (numbers.sizes for numbers, *_ in numbers_and_layers)
    assert sorted(together) == sorted(alone)
    assert bool(together) != single


def test_rows_are_compared_with_what_they_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all rows that are bits one is said to be another; the rest is as it is found."""
    node, ends = network(1, True), []
    for fewest in (1, 1 << 20):
        monkeypatch.setattr(layers_of, "FEWEST", fewest)
        numbers = Numbers(Functions())
        bits = [numbers.bit(literal) for literal in numbers.functions.variables(INPUTS)]
        said = np.full(LAYERS * ROWS, NOTHING)
        last = _last(Layers(numbers, node, SINGLE, bits, said))
        for row, place in last:
            if len(place.leaves) < 2 and len(place.form.values) < 3 and set(place.form.values) <= {0.0, 1.0}:
                said[row] = numbers.literal(place, "it")[0]
        known = np.flatnonzero(said != NOTHING)
        assert not Layers(numbers, node, SINGLE, bits, said).unequal
        said[known[3]] ^= 1
        unequal = Layers(numbers, node, SINGLE, bits, said).unequal
        assert [row for row, _ in unequal] == [known[3]]
        ends.append(known.tolist())
    assert ends[0] == ends[1]
    assert len(ends[0]) > ROWS // 4


def _last(found: Layers) -> list[tuple[int, Place]]:
    """Rows of the last layer and their places."""
    slots = INPUTS + ROWS * ((LAYERS - 1) % 2) + np.arange(ROWS)
    return [((LAYERS - 1) * ROWS + row, found.place(slot)) for row, slot in enumerate(slots.tolist())]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_sums_of_few_products_are_within_their_bound(count: int) -> None:
    """In every order, in single precision; and the bound is not far from what occurs."""
    random, tight = np.random.default_rng(count), 0.0
    for _ in range(2000):
        weights = random.choice([1.0, 2.0, 3.0, 1 / 3, -1.0, -3.0], count).astype(np.float32)
        x = random.choice([0.0, 1.0, 1 / 3], count).astype(np.float32)
        off = random.choice([0.0, 1e-6], count)
        given = (x + off * random.uniform(-1, 1, count)).astype(np.float32)
        off = np.abs(given.astype(float) - x)
        exact = float(weights.astype(float) @ x.astype(float))
        terms = [
            Term(np.array([w * float(v)]), np.array([abs(w) * o]), abs(np.frexp(w)[0]) == 0.5)
            for w, v, o in zip(weights.astype(float), x, off, strict=True)
        ]
        bound = float(np.max(rounding_of_few(terms, SINGLE)))
        total = float(np.abs(weights.astype(float)) @ (np.abs(x.astype(float)) + off))
        assert bound <= float(rounding(count + 1, total, 0, SINGLE)) * 1.01 + 1e-30
        for order in permutations(range(count)):
            found = np.float32(0)
            for at in order:
                found = found + weights[at] * given[at]
            lost = abs(float(found) - exact) - float(np.abs(weights.astype(float)) @ off)
            assert lost <= bound
            tight = max(tight, lost / bound)
    assert tight > (0.3 if count > 1 else 0.1)
    assert rounding_of_few([Term(np.ones(1), np.zeros(1), True)] * 2, DOUBLE)[0] < 2.0**-51


def node_of(rows: list[list[tuple[list[int], list[float], float, int]]], slots: int) -> Node:
    """Layers of rows: what each reads, its weights, its bias and the slot that it goes to; with no ReLU."""
    listed = [row for layer in rows for row in layer]
    arrays = {
        "bounds": np.cumsum([0, *map(len, rows)]),
        "starts": np.cumsum([0, *(len(reads) for reads, *_ in listed)]),
        "columns": np.array([own for reads, *_ in listed for own in reads], np.int32),
        "values": np.array([own for _, weights, *_ in listed for own in weights], np.float32),
        "biases": np.array([bias for *_, bias, _ in listed], np.float32),
        "to": np.array([to for *_, to in listed], np.int32),
        "relu": np.zeros(len(listed), np.uint8),
        "out": np.arange(slots, dtype=np.int32),
    }
    return Node("units", "layers", ("bits",), arrays, {"slots": slots}, "", None)


@pytest.mark.parametrize("order", [(0, 0), (0, 1), (1, 0)])
def test_a_number_less_itself_is_not_one_less_another(
    order: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of the same weights over the same forms: of one bit twice, or of two; and of one number near to a
    bit twice, or of two that are near to the same bit."""
    monkeypatch.setattr(layers_of, "FEWEST", 1)
    a, b = order
    numbers = Numbers(Functions())
    x, y = (numbers.bit(literal) for literal in numbers.functions.variables(2))
    near = [numbers.bit(x.leaves[0], 1e-3) for _ in range(2)]
    first = [([0, 0], [1.0, -1.0], 0.0, 4), ([2, 2], [1.0, -1.0], 0.0, 5)]
    both = [([2, 3], [1.0, 1.0], 0.0, 8)]
    second = [([a, b], [1.0, -1.0], 0.0, 6), ([2 + a, 2 + b], [1.0, -1.0], 0.0, 7)]
    found = Layers(numbers, node_of([first, second, both], 9), SINGLE, [x, y, *near], None)
    assert found.place(8).form.values.tolist() == [0, 2]
    assert found.place(8).form.off(numbers.sizes_of(found.place(8))).max() == pytest.approx(2e-3, rel=1e-3)
    for same, place, other in ((True, 4, 5), (a == b, 6, 7)):
        plain, off = found.place(place), found.place(other)
        assert (set(plain.form.values) == {0.0}) == same
        assert (off.form.off(numbers.sizes_of(off)).max() < 1e-4) == same
