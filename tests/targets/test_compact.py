"""Compact ReLU networks: against the circuits' own evaluator, Python's integers and hashlib."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import sha256
from tapegrad._compile import Compiled, compile, estimate
from tapegrad._saved import check, load, save
from tapegrad._verify import verify
from tapegrad.circuits import Array, UInt, trace
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.library import ready
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.targets.relu import CompactNet, ReluNet
from tapegrad.targets.relu.compact.build import made
from tapegrad.targets.relu.compact.graph import graph_of
from tapegrad.targets.relu.compact.recipes import IMPOSSIBLE, POINTS, catalogue, table_of, ways
from tapegrad_check.folder import COMPUTES_SOURCE
from tests.networks.altered import net_with

WITHOUT = {"skips": False}


def compact(compiled: Compiled) -> CompactNet:
    assert isinstance(compiled.net, CompactNet)
    return compiled.net


def multiplier(bits: int) -> Circuit:
    return ready(f"multiplier{bits}")


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1 << 30), st.integers(1, 8), st.integers(1, 120), st.booleans())
def test_random_circuits_on_all_inputs(seed: int, inputs: int, size: int, skips: bool) -> None:
    circuit = random_circuit(seed, inputs=inputs, size=size, outputs=4, kinds=tuple(Gate))
    compiled = compile(circuit, "relu", form="practical", skips=skips)
    report = verify(compiled, engine="fast")
    assert report.agreed
    assert report.exhaustive
    said = estimate(circuit, "relu", form="practical", skips=skips)
    assert (said.parameters, said.depth) == (compiled.net.parameters, compact(compiled).depth)


def test_both_engines_in_both_precisions() -> None:
    circuit = multiplier(6)
    numbers = np.arange(1 << 12)
    bits = numbers[:, None] >> np.arange(12) & 1
    for dtype in ("float32", "float64"):
        net = compact(compile(circuit, "relu", form="practical", dtype=dtype))
        for engine in net.engines:
            found = net.outputs(bits, engine)
            assert found.dtype == dtype
            assert set(np.unique(found)) == {-1, 1}
            assert ((found > 0) @ (1 << np.arange(12)) == (numbers & 63) * (numbers >> 6)).all()


def test_recipes_are_what_they_say() -> None:
    """Every recipe in every way gives its table; all gates of two and three inputs have one."""
    known = catalogue()
    for table in range(0, 1 << 16, 97):
        if known.cost[table] < IMPOSSIBLE:
            for recipe, negated in ways(table):
                assert table_of(recipe) == table ^ (0xFFFF if negated else 0)
    small = [int(half | half << 8) for half in range(256)]
    assert (known.cost[small] < IMPOSSIBLE).all()


@pytest.mark.parametrize(
    ("gate", "numbers", "layers"),
    [
        (lambda a, b, c, d: a & b & c & d, 11, 1),
        (lambda a, b, c, d: a & ~b & 1, 7, 1),
        (lambda a, b, c, d: a | b, 7, 1),
        (lambda a, b, c, d: a ^ b, 16, 2),
        (lambda a, b, c, d: a + b + c >= 2, 14, 2),
        (lambda a, b, c, d: a ^ b ^ c, 25, 3),
        (lambda a, b, c, d: np.where(a == 1, b, c), 18, 2),
    ],
)
def test_what_gates_cost(gate: Any, numbers: int, layers: int) -> None:
    table = int(np.asarray(gate(*POINTS.T)).astype(int) @ (1 << np.arange(16)))
    assert (catalogue().cost[table], catalogue().layers[table]) == (numbers, layers)


def test_a_full_adder_shares_its_majority() -> None:
    """The sum of three bits is s - 2 maj, so both together take the three units that the sum takes alone."""
    make = CircuitBuilder()
    a, b, c = (make.input(name) for name in "abc")
    half = make.xor(a, b)
    make.output("carry", make.or_(make.and_(a, b), make.and_(half, c)))
    make.output("sum", make.xor(half, c))
    net = compact(compile(make.circuit(), "relu", form="practical"))
    assert len(net.holds) == 3
    entries, rows = len(net.wiring.places), len(net.wiring.biases)
    assert 2 * (entries - 2) + 3 * len(net.holds) == 25  # but for the outputs, the cost of the recipe
    ends = (net.depth + 2) + (rows + 1) + 2 + 2  # of layers and of rows; outputs, and a half, twice
    assert net.parameters == 2 * entries + 3 * rows + len(net.holds) + ends


def test_simplification() -> None:
    """Constants, equal gates, gates within gates and XORs out of ANDs become what they are."""
    make = CircuitBuilder(simplify=False)
    a, b = make.input("a"), make.input("b")
    one = make.gate(Gate.TRUE)
    make.output("constant", make.and_(a, make.not_(a)))
    make.output("a", make.and_(a, make.or_(one, b)))
    make.output("and", make.and_(a, make.and_(b, a)))
    make.output("and not", make.and_(a, make.not_(make.and_(a, b))))
    left, right = make.and_(a, make.not_(b)), make.and_(make.not_(a), b)
    make.output("xor", make.or_(left, right))
    make.output("same", make.xor(b, a))
    make.output("nothing", make.and_(left, right))
    graph = graph_of(make.circuit())
    literals = dict(
        zip(
            ("constant", "a", "and", "and not", "xor", "same", "nothing"), graph.outputs.tolist(), strict=True
        )
    )
    assert (literals["constant"], literals["nothing"], literals["a"]) == (0, 0, 2)
    assert literals["xor"] == literals["same"]
    assert len(graph.left) == 3 + 3  # the constant, two inputs, AND, AND NOT, XOR
    assert verify(compile(make.circuit(), "relu", form="practical")).agreed


def test_circuits_without_gates_or_outputs_or_inputs() -> None:
    make = CircuitBuilder()
    a = make.input("a")
    make.output("a", a)
    make.output("not a", make.not_(a))
    make.output("one", make.constant(True))
    for skips in (True, False):
        assert verify(compile(make.circuit(), "relu", form="practical", skips=skips)).agreed
    nothing = CircuitBuilder()
    nothing.output("zero", nothing.constant(False))
    net = compact(compile(nothing.circuit(), "relu", form="practical"))
    assert net.outputs(np.zeros((2, 0))).tolist() == [[-1], [-1]]
    empty = compact(compile(CircuitBuilder().circuit(), "relu", form="practical"))
    assert empty.outputs(np.zeros((2, 0))).shape == (2, 0)


def test_without_skips_every_layer_reads_the_one_before() -> None:
    net = compact(compile(multiplier(5), "relu", form="practical", **WITHOUT))
    wiring = net.wiring
    layer = wiring.layer_of_place
    reader = np.repeat(layer[wiring.inputs :], np.diff(wiring.starts))
    assert (layer[wiring.places] == reader - 1).all()
    with_skips = compact(compile(multiplier(5), "relu", form="practical"))
    assert net.depth == with_skips.depth
    assert len(with_skips.holds) < len(net.holds) / 3


def test_slots_are_free_only_after_the_last_reader() -> None:
    net = compact(compile(multiplier(5), "relu", form="practical"))
    (of_place, slots), last, layer = net.wiring.slots(), net.wiring.last_read, net.wiring.layer_of_place
    for slot in range(slots):
        places = np.flatnonzero(of_place == slot)
        assert (layer[places[1:]] > last[places[:-1]]).all()
    assert slots < len(layer)


@pytest.mark.parametrize("skips", [True, False])
def test_what_is_read_is_found_again_from_slots(skips: bool) -> None:
    """The builder's places, and those that a network of slots is read back as."""
    circuit = multiplier(5)
    wiring, holds = made(circuit, skips=skips)
    net = compact(compile(circuit, "relu", form="practical", skips=skips))
    for own, found in zip(wiring[1:], net.wiring[1:], strict=True):
        assert np.array_equal(own, found)
    assert np.array_equal(holds, net.holds)


def test_sums_too_large_for_bytes_are_taken_in_floating_point() -> None:
    """A net whose weights were changed so that values grow: both engines still agree."""
    net = compact(compile(multiplier(3), "relu", form="practical"))
    ends = int(net.wiring.starts[len(net.holds)])
    grown = net_with(net, "values", slice(0, ends), net.wiring.values[:ends] * 5)
    bits = np.arange(64)[:, None] >> np.arange(6) & 1
    found = [grown.outputs(bits, engine) for engine in grown.engines]
    assert np.array_equal(found[0], found[1])
    assert np.abs(found[0]).max() > 127


def test_forms_and_options() -> None:
    circuit = multiplier(2)
    assert isinstance(compile(circuit, "relu", form="practical").net, CompactNet)
    assert isinstance(compile(circuit, "relu").net, CompactNet)
    assert isinstance(compile(circuit, "relu", form="paper").net, ReluNet)
    assert isinstance(compile(circuit, "relu", correction="none").net, ReluNet)
    with pytest.raises(Refused, match="the compact form has no correction or depth"):
        compile(circuit, "relu", form="practical", correction="none", depth=400)
    with pytest.raises(Refused, match="no skip connections to leave out"):
        compile(circuit, "relu", form="paper", skips=False)


def test_saved_checked_and_loaded(tmp_path: Path) -> None:
    for name, options in (("with", {}), ("without", WITHOUT)):
        compiled = compile(multiplier(4), "relu", form="practical", **options)
        save(compiled, tmp_path / name)
        assert check(tmp_path / name).verdict == COMPUTES_SOURCE
        again = load(tmp_path / name)
        assert verify(again, engine="fast").agreed
        for own, array in compiled.net.all_arrays().items():
            assert np.array_equal(array, again.net.all_arrays()[own])


def test_explanations() -> None:
    net = compact(compile(multiplier(3), "relu", form="practical"))
    said = [net.explain(unit) for unit in net.units()]
    assert len(said) == len(net.holds) + len(net.output_names)
    assert said[0].startswith("Unit 0 of ReLU layer 0: relu(a[")
    assert "It holds" in said[0]
    assert any("the negation of wire" in own for own in said)
    assert any("unit within a gate, read by" in own for own in said)
    assert said[-1].startswith("Output 'out[5]': ")
    for nonsense in ("", "x", "99.0", "0.640", f"{net.depth}.6", "0.-1", "1" * 50):
        with pytest.raises(InputError):
            net.explain(nonsense)


@pytest.mark.parametrize("change", [lambda own: own[:-1], lambda own: own[None], lambda own: own * 1.0])
def test_nets_that_do_not_say_what_their_units_hold_are_not_loaded(change: Any) -> None:
    net = compact(compile(multiplier(2), "relu", form="practical"))
    with pytest.raises(BrokenNet, match="what it holds"):
        CompactNet.from_saved(net.config(), {"holds": change(net.holds)}, net.network)


@pytest.mark.slow
def test_sha256_as_a_compact_network(tmp_path: Path) -> None:
    """The traced compression against hashlib, and proved."""
    traced = trace(sha256.compress, Array(UInt(32), 8), Array(UInt(32), 16))
    compiled = compile(traced.circuit, "relu", form="practical")
    assert compiled.net.counts.fixed < 400_000
    messages = [b"", b"abc", b"tapegrad" * 6]
    bits = [traced.encode(sha256.FIRST_STATE, sha256.blocks(message)[0]) for message in messages]
    for engine in CompactNet.engines:
        rows = compact(compiled).outputs(bits, engine=engine) > 0
        for message, row in zip(messages, rows, strict=True):
            found = b"".join(word.to_bytes(4, "big") for word in traced.decode(row.tolist()))
            assert found == hashlib.sha256(message).digest()
    save(compiled, tmp_path / "net")
    assert check(tmp_path / "net").verdict == COMPUTES_SOURCE
