"""`decompile` beside the circuit that was compiled, and beside weights that are no circuit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tapegrad
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.library import ready as ready_circuit
from tapegrad.circuits.model import Gate
from tapegrad.errors import Refused
from tapegrad.interop.decompile import decompile
from tapegrad.machines.library import ready
from tests.interop.cases import all_patterns, random_circuit
from tests.networks.altered import net_with

COMPACT = {"form": "practical"}
FORMS = (*({"correction": c} for c in ("thirds", "quarters", "none")), COMPACT, COMPACT | {"skips": False})


def outputs(circuit, bits):
    return circuit.wire_values(bits)[circuit.output_wires].T


@settings(deadline=None, max_examples=40)
@example(67, {"form": "practical"})  # a bit only over bits that lie two levels below
@example(125773, {"form": "practical", "skips": False})  # reads bits together with later copies of them
@given(st.integers(0, 10**6), st.sampled_from(FORMS))
def test_same_function_on_every_pattern(seed, options):
    circuit = random_circuit(seed)
    found = decompile(tapegrad.compile(circuit, "relu", **options))
    bits = all_patterns(5)
    assert (found.inputs, found.outputs) == (circuit.inputs, circuit.outputs)
    assert np.array_equal(outputs(found, bits), outputs(circuit, bits))
    assert not (found.kinds == Gate.ID).any()


@pytest.mark.parametrize("form", ["paper", "practical"])
def test_provenance_is_not_looked_at(form):
    """With every gate that the net remembers changed to FALSE, the weights still say adder."""
    circuit = ready_circuit("adder8")
    net: Any = tapegrad.compile(circuit, "relu", form=form).net
    if form == "paper":
        forgotten = replace(net, gates=net.gates._replace(kinds=np.zeros_like(net.gates.kinds)))
    else:
        forgotten = replace(net, holds=np.zeros_like(net.holds))
    found = decompile(forgotten)
    bits = np.random.default_rng(1).integers(0, 2, (2000, 16)).astype(bool)
    assert np.array_equal(outputs(found, bits), outputs(circuit, bits))
    assert found.size <= circuit.size * (1 if form == "paper" else 2)  # gates of four inputs are taken apart


def test_after_saving_and_loading(tmp_path):
    circuit = random_circuit(3)
    tapegrad.save(tapegrad.compile(circuit, "relu"), tmp_path / "net")
    found = decompile(tapegrad.load(tmp_path / "net"))
    assert np.array_equal(outputs(found, all_patterns(5)), outputs(circuit, all_patterns(5)))


def test_gates_that_no_kind_has_names_for():
    """a and not b, written into the weights of an AND by hand: relu(a - b)."""
    make = CircuitBuilder()
    a, b = make.input("a"), make.input("b")
    make.output("y", make.and_(a, b))
    net: Any = tapegrad.compile(make.circuit(), "relu", correction="none").net
    assert outputs(decompile(net), all_patterns(2)).ravel().tolist() == [False, False, False, True]
    changed = net_with(net, "biases", 0, 0)
    changed = net_with(changed, "values", np.flatnonzero(net.wiring.places[:2] == 1), -1)
    assert outputs(decompile(changed), all_patterns(2)).ravel().tolist() == [False, True, False, False]
    with pytest.raises(Refused, match="not near 0 or 1"):
        decompile(net_with(net, "biases", 0, 0))


def test_units_of_a_compact_net_that_are_no_gates():
    net: Any = tapegrad.compile(ready_circuit("adder2"), "relu", **COMPACT).net
    with pytest.raises(Refused, match="no bit"):
        decompile(net_with(net, "biases", slice(None), net.wiring.biases + 1))
    with pytest.raises(Refused, match="no whole number"):
        decompile(net_with(net, "values", 0, 0.5))


def test_units_of_the_papers_form_that_read_too_much():
    net: Any = tapegrad.compile(ready_circuit("adder2"), "relu", **COMPACT, skips=False).net
    paper: Any = tapegrad.compile(ready_circuit("adder2"), "relu", correction="none").net
    with pytest.raises(Refused, match="more than two values"):
        decompile(replace(paper, network=net.network))


def test_other_targets_are_refused():
    with pytest.raises(Refused, match="relu"):
        decompile(tapegrad.compile(ready("increment"), "transformer", steps=8))
