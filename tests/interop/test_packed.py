"""Networks on words: compared with the reference engine and with the circuit's own meaning."""

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.circuits import UInt, trace
from tapegrad.errors import Refused
from tapegrad.interop.packed import PackedNet
from tests.networks.altered import layer_entries, net_with


def product(a, b):
    return a * b


@pytest.mark.parametrize(
    "options", [{}, {"correction": "none"}, {"correction": "thirds"}, {"form": "practical"}]
)
def test_products_on_words_are_those_of_python(options):
    net: Any = tg.compile(trace(product, UInt(6), UInt(6)).circuit, "relu", **options).net
    bits = np.random.default_rng(0).integers(0, 2, (100, 12)).astype(bool)  # no multiple of 32
    found = PackedNet(net).outputs(bits)
    weights = 1 << np.arange(6)
    wanted = (bits[:, :6] @ weights) * (bits[:, 6:] @ weights)
    assert ((found > 0) @ (1 << np.arange(found.shape[1])) == wanted % (1 << found.shape[1])).all()
    assert np.array_equal(found > 0, net.outputs(bits) > 0)


def test_every_kind_of_gate_and_constants():
    def every(a, b):
        return a & b, a | b, a ^ b, ~a, ~(a & b), ~(a | b), ~(a ^ b), a, UInt(3)(5)

    net: Any = tg.compile(trace(every, UInt(3), UInt(3)).circuit, "relu").net
    bits = (np.arange(64)[:, None] >> np.arange(6) & 1).astype(bool)
    assert np.array_equal(PackedNet(net).outputs(bits) > 0, net.outputs(bits) > 0)


def test_in_several_chunks(monkeypatch):
    monkeypatch.setitem(__import__("tapegrad.interop.packed", fromlist=["BUDGET"]).BUDGET, "cpu", 1)
    net: Any = tg.compile(trace(product, UInt(3), UInt(3)).circuit, "relu").net
    bits = (np.arange(64)[:, None] >> np.arange(6) & 1).astype(bool)
    packed = PackedNet(net)
    assert packed.words_at_once == 1
    assert np.array_equal(packed.outputs(bits) > 0, net.outputs(bits) > 0)


def test_it_runs_the_weights_and_not_the_circuit_they_came_from():
    """With another bias an AND is a constant: the words must say so too."""
    net: Any = tg.compile(trace(lambda a, b: a & b, UInt(1), UInt(1)).circuit, "relu", correction="none").net
    other = net_with(net, "biases", 0, -2)
    bits = np.array([[1, 1], [0, 1]], bool)
    assert PackedNet(net).outputs(bits).ravel().tolist() == [1, -1]
    assert PackedNet(other).outputs(bits).ravel().tolist() == [-1, -1] == other.outputs(bits).ravel().tolist()


def test_a_unit_that_is_no_bit_is_refused():
    net: Any = tg.compile(trace(lambda a, b: a & b, UInt(1), UInt(1)).circuit, "relu", correction="none").net
    with pytest.raises(Refused, match="no gate"):
        PackedNet(net_with(net, "values", layer_entries(net, 0)[:2], 2.5))
