"""Layers in compiled loops, beside the same in NumPy: as bytes where these hold every sum, else as floats."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tapegrad.networks.backends import numba
from tapegrad.networks.backends.numba import Numba
from tapegrad.networks.backends.numpy import NumPy
from tapegrad.networks.builder import Builder, Layer
from tapegrad.networks.form import Affine
from tapegrad.networks.network import Network, Node

INPUTS, SLOTS, LAYERS, ROWS = 5, 24, 6, 8


def random_layers(seed: int, largest: int, own: bool = False) -> tuple[Network, Node]:
    """Rows of up to four entries. Layers take turns with two halves of the slots; a row may read the slot
    that it writes, too."""
    random = np.random.default_rng(seed)
    layers: list[Layer] = []
    for number in range(LAYERS):
        to = number % 2 * SLOTS // 2 + random.permutation(SLOTS // 2)[:ROWS]
        before = layers[-1].to if layers else np.arange(SLOTS // 2, SLOTS // 2 + INPUTS)
        counts = random.integers(0, 5, ROWS)
        rows = np.repeat(np.arange(ROWS), counts)
        columns = random.choice(before, len(rows))
        if own:
            columns = np.where(random.random(len(rows)) < 0.3, to[rows], columns)
        values, bias = (
            random.integers(-largest, largest + 1, n).astype(np.float32) for n in (len(rows), ROWS)
        )
        layers.append(Layer(Affine(rows, columns, values, bias, SLOTS), to, number < LAYERS - 1))
    graph = Builder("random layers")
    x = graph.input("x", "patterns", INPUTS)
    first = Layer(Affine.of(np.eye(INPUTS, SLOTS, dtype=np.float32), np.zeros(INPUTS, np.float32)),
                  np.arange(SLOTS // 2, SLOTS // 2 + INPUTS), True)  # fmt: skip
    graph.output("found", graph.layers(x, [first, *layers], SLOTS, layers[-1].to, "layers"))
    network = graph.network()
    return network, network.nodes[0]


def bits(seed: int, count: int) -> NDArray[np.bool_]:
    return np.random.default_rng(seed).integers(0, 2, (count, INPUTS)).astype(bool)


@pytest.mark.parametrize("count", [1, 63, 65, 300, 40_000])
@pytest.mark.parametrize(("largest", "own"), [(1, False), (1, True), (2, False), (40, False)])
def test_random_layers(largest: int, own: bool, count: int) -> None:
    in_bytes = 0
    for seed in range(8):
        network, node = random_layers(seed, largest, own)
        x = bits(seed, count)
        wanted = NumPy(network).layers(node, x.astype(np.float32))
        assert np.array_equal(Numba(network).layers(node, x.astype(np.float32)), wanted)
        found = Numba(network).layers(node, x)
        assert np.array_equal(found, wanted)
        in_bytes += found.dtype == np.int8
    assert (in_bytes > 0) == (largest < 40)


@pytest.mark.parametrize("count", [1, 300])
def test_layers_one_by_one(count: int) -> None:
    network, node = random_layers(3, 2, own=True)
    x = bits(0, count).astype(np.float32)
    for backend in (NumPy(network), Numba(network)):
        slots = backend.begin(node, x.T)
        for layer in range(1 + LAYERS):
            slots = backend.between(node, slots, layer, layer + 1)
        out = backend.part(node, "out")
        assert np.array_equal(slots[out].T, NumPy(network).layers(node, x))


@pytest.mark.parametrize(("first", "then"), [(2, 2), (-2, -2), (-2, 2)])
@pytest.mark.parametrize("doubled", range(4, 10))
def test_sums_that_leave_a_byte_are_computed_again(doubled: int, first: int, then: int) -> None:
    """x + x, so many times, up, down or to and fro. Up to 63 a value may be doubled in a byte, and what does
    not fit is found before the sum that it would spoil."""
    layers = []
    for weight in [first] + [then] * (doubled - 1):
        map_ = Affine.of(np.array([[weight]], np.float32), np.zeros(1, np.float32))
        layers.append(Layer(map_, np.array([0]), first > 0))
    graph = Builder("doubled")
    graph.output("found", graph.layers(graph.input("x", "patterns", 1), layers, 1, np.array([0])))
    network = graph.network()
    found = Numba(network).layers(network.nodes[0], np.ones((300, 1), bool))
    assert (found == first * then ** (doubled - 1)).all()
    assert (found.dtype == np.int8) == (doubled < 6)


@pytest.mark.parametrize("count", [2, 300])
def test_no_number_stays_none(count: int) -> None:
    network, node = random_layers(0, 1)
    x = np.full((count, INPUTS), np.nan, np.float32)
    wanted = NumPy(network).layers(node, x)
    assert np.isnan(wanted).any()
    assert np.array_equal(Numba(network).layers(node, x), wanted, equal_nan=True)


def test_threads_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    network, node = random_layers(1, 1)
    x = bits(1, 5_000)
    in_turn = Numba(network).layers(node, x), Numba(network).layers(node, x.astype(np.float32))
    monkeypatch.setattr(numba, "WORTH_THREADS", 0)
    at_once = Numba(network).layers(node, x), Numba(network).layers(node, x.astype(np.float32))
    assert all(map(np.array_equal, in_turn, at_once))
