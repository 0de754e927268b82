"""Circuits as one cycle, as RASP, drawn on a grid: step by step beside the circuit, and from end to end."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.circuits import UInt, trace
from tapegrad.circuits import library as circuits
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit, Gate
from tapegrad.circuits.sampler import random_circuit
from tapegrad.errors import InputError, Refused
from tapegrad.lowering import circuit_grid, circuit_rasp, clocked
from tapegrad.lowering.circuit_machine import straight_line
from tapegrad.lowering.clocked import one_cycle, refuse_circuit
from tapegrad.lowering.tables import to_grid
from tapegrad.machines.model import GridMachine, TuringMachine
from tapegrad.source import Rewriting
from tests.circuits.test_library import served

WAYS = [one_cycle, circuit_rasp.circuit_rasp, circuit_grid.circuit_grid, circuit_grid.circuit_drawing]
TARGETS = ("transformer", "emulator", "decoder", "rcnn")
ISCAS = os.environ.get("TAPEGRAD_ISCAS", "")
"""A folder with c432.bench, c499.bench and c6288.bench."""


def plain(circuit: Circuit, row: list[int]) -> list[int]:
    """The outputs, gate by gate, in Python's integers."""
    values = list(row)
    for kind, left, right in zip(circuit.kinds, circuit.left, circuit.right, strict=True):
        a, b = (values[left], values[right]) if values else (0, 0)
        values.append(int(kind) >> (2 * a + b) & 1)
    return [values[wire] for wire in circuit.output_wires]


def without_gates() -> Circuit:
    make = CircuitBuilder()
    a, b = make.input("a"), make.input("b")
    for name, wire in (("x", b), ("y", a), ("again", b)):
        make.output(name, wire)
    return make.circuit("crossed")


def all_kinds() -> Circuit:
    """Every kind of gate as an output, in an order in which operands change sides."""
    make = CircuitBuilder(simplify=False)
    a, b = make.input("a"), make.input("b")
    nothing = make.not_(b)
    for kind in Gate:
        make.output(kind.name, make.gate(kind, nothing, a))
    return make.circuit("kinds")


CIRCUITS = [*(random_circuit(seed) for seed in range(12)), without_gates(), all_kinds()]


@pytest.mark.parametrize("way", WAYS)
def test_side_by_side(way):
    for number, circuit in enumerate(CIRCUITS):
        rewriting = way(circuit)
        draw = np.random.default_rng(number)
        for _ in range(4):
            row = draw.integers(0, 2, (1, len(circuit.inputs)))
            first = rewriting.encode(circuit.start(row))
            seen = [rewriting.decode(state) for state in rewriting.after.run(first)]
            found = [bits.astype(int).tolist() for bits in seen if bits is not None]
            assert found == [row.tolist(), [plain(circuit, row[0].tolist())]]


@pytest.mark.parametrize("way", WAYS)
def test_one_row_at_a_time(way):
    with pytest.raises(InputError, match="one row of bits"):
        way(CIRCUITS[0]).encode(CIRCUITS[0].start(np.zeros((2, len(CIRCUITS[0].inputs)))))


def test_the_machine_for_drawings_is_always_the_same():
    first, second = (circuit_grid.circuit_drawing(circuit).after for circuit in CIRCUITS[:2])
    assert first is second
    assert isinstance(first, GridMachine)
    assert (len(first.states), len(first.rules)) == (32, 135)


def test_few_gates_have_a_machine_of_their_own():
    own = circuit_grid.circuit_grid(circuits.ready("adder2"))
    single = straight_line(circuits.ready("adder2")).after
    assert own.name == "straight-line machine on the grid"
    assert isinstance(single, TuringMachine)
    assert own.after == to_grid(single).after
    assert circuit_grid.circuit_grid(circuits.ready("multiplier4")).name == "gates drawn row by row"


@pytest.mark.parametrize(
    ("target", "bits"),
    [
        *((target, 2 if target == "rcnn" else 3) for target in TARGETS),
        pytest.param("rcnn", 3, marks=pytest.mark.slow),
    ],
)
def test_a_function_from_end_to_end(target, bits, tmp_path):
    """Two further passes, and values in place of bits. Three bits are drawn on the grid, gate by gate."""
    most = (1 << bits) - 1
    source = trace(lambda a, b: a * b + 3, UInt(bits), UInt(bits))
    compiled = tg.compile(source, target)
    found = [compiled(a, b) for a, b in ((most, most), (2, 3), (0, 1))]
    assert found == [(most * most + 3) % (most + 1), 9 % (most + 1), 3]
    assert tg.verify(compiled, [(2, 3), (1, 2)], engine=None).agreed
    tg.save(compiled, tmp_path / "net")
    assert tg.check(tmp_path / "net").verdict == "computes this source, for all inputs"
    assert tg.load(tmp_path / "net")(2, 3) == 9 % (most + 1)


def test_refusals_name_the_numbers():
    wide = circuits.ready("parity5000")
    with pytest.raises(Refused, match="on 5,000 tokens, and the limits are 16,384 and 4,096"):
        circuit_rasp.circuit_rasp(wide)
    with pytest.raises(Refused, match=r"215 of 4,999 gates take 1,0\d\d,\d+ cells, .* limit is 1,048,576"):
        circuit_grid.circuit_drawing(wide)


def rules(rewriting: Rewriting) -> Mapping[Any, Any]:
    """The table of the machine that came out."""
    assert isinstance(rewriting.after, TuringMachine)
    return rewriting.after.rules


def test_a_table_that_grows_carries_fewer_wires():
    large = circuits.ready("interrupts9")
    assert len(rules(straight_line(large))) < len(rules(straight_line(large, carried=4))) / 2
    small = circuits.ready("adder8")
    assert rules(straight_line(small)) == rules(straight_line(small, carried=4))


@pytest.mark.parametrize("target", ["transformer", "emulator", "decoder"])
def test_an_interrupt_controller_of_the_size_of_c432(target, tmp_path):
    compiled = tg.compile("interrupts9", target)
    draw = np.random.default_rng(5)
    for _ in range(8):
        buses = [int(bus) & int(draw.integers(512)) for bus in draw.integers(0, 512, 4)]
        assert compiled(*buses) == served(*buses)
    tg.save(compiled, tmp_path / "net")
    assert tg.check(tmp_path / "net").verdict == "computes this source, for all inputs"


@pytest.mark.slow
@pytest.mark.skipif(not ISCAS, reason="TAPEGRAD_ISCAS does not point to files of ISCAS-85")
@pytest.mark.parametrize("target", ["relu", *TARGETS, "tape"])
@pytest.mark.parametrize("name", ["c432", "c499", "c6288"])
def test_iscas(name, target, tmp_path):
    compiled = tg.compile(
        Path(ISCAS) / f"{name}.bench", target, **({"cells": 512} if target == "tape" else {})
    )
    circuit = compiled.source
    assert isinstance(circuit, Circuit)
    row = np.random.default_rng(9).integers(0, 2, (1, len(circuit.inputs)))
    run = compiled.run(row, steps=10**6, engine="fast" if target in ("rcnn", "tape") else "reference")
    assert run.state is not None
    assert run.state.astype(int).tolist() == [plain(circuit, row[0].tolist())]
    tg.save(compiled, tmp_path / "net")
    assert tg.check(tmp_path / "net").verdict == "computes this source, for all inputs"


# What does not fit is refused before a target is loaded.


def chain(gates: int, inputs: int = 2) -> Circuit:
    """ANDs one after the other, of which none can be left out."""
    places = np.arange(gates, dtype=np.int32)
    left = np.where(places == 0, 0, inputs + places - 1).astype(np.int32)
    kinds = np.where(places % 2, int(Gate.AND), int(Gate.XOR)).astype(np.uint8)
    names = tuple(f"x{place}" for place in range(inputs))
    last = np.array([inputs + gates - 1], np.int32)
    return Circuit(names, ("y",), kinds, left, (1 + places % (inputs - 1)).astype(np.int32), last, "chain")


@pytest.mark.parametrize(
    ("target", "gates", "match"),
    [
        ("tape", 20_001, "20,001 gates; a machine is made of 20,000"),
        ("simplex", 20_001, "20,001 gates; a machine is made of 20,000"),
        ("rcnn", 65_537, "65,537 gates as it is written; 65,536 at most are drawn"),
        ("rcnn", 5_000, "of 5,000 gates take 1,0.* cells, the last .*; the limit is 1,000"),
        ("decoder", 65_537, "65,537 gates as it is written; 65,536 at most are made"),
        ("decoder", 16_374, "16,385 expressions on 2 tokens, and the limits are 16,384"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_target_is_loaded(
    target: str, gates: int, match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuit_grid, "MOST_CELLS", 1_000)
    monkeypatch.setattr("tapegrad._compile.target_named", None)
    with pytest.raises(Refused, match=match):
        tg.compile(chain(gates), target)


@pytest.mark.parametrize(("target", "gates"), [("tape", 20_000), ("rcnn", 5_000), ("decoder", 16_373)])
def test_what_fits_is_not_refused_early(target: str, gates: int) -> None:
    refuse_circuit(chain(gates), target, None, {})


def test_another_way_that_was_asked_for_is_not_refused_early() -> None:
    refuse_circuit(chain(70_000), "tape", None, {"machine": "universal"})


def test_many_cycles_are_refused_before_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocked, "unrolled", None)
    toggle = tg.read("aag 1 0 1 2 0\n2 3\n2\n3\n")
    assert isinstance(toggle, tg.SequentialCircuit)
    most = 65_536 // toggle.logic.size
    with pytest.raises(Refused, match=r"cycles' has .* gates as it is written; 65,536 at most are drawn"):
        clocked.refuse(toggle, "rcnn", toggle.start(most + 1), {})
    clocked.refuse(toggle, "rcnn", toggle.start(most), {})


def test_one_of_two_drawings_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gates side by side first, then what joins them: drawn as they stand, all are kept; each output with all
    that it takes, two at a time."""
    make = CircuitBuilder()
    pairs = [(make.input(f"a{k}"), make.input(f"b{k}")) for k in range(40)]
    first = [make.xor(a, b) for a, b in pairs]
    second = [make.and_(wire, a) for wire, (a, _) in zip(first, pairs, strict=True)]
    for k, wire in enumerate(second):
        make.output(f"y{k}", wire)
    circuit = make.circuit("pairs")
    sizes = []

    def counted(*given: Any) -> Any:
        found = drawn(*given)
        sizes.append((sum(map(len, found.rows)), found))
        return found

    drawn = circuit_grid.drawn
    monkeypatch.setattr(circuit_grid, "drawn", counted)
    best = circuit_grid.drawing_of(circuit)
    (small, _), (large, _) = sorted(sizes, key=lambda own: own[0])
    assert small < large
    monkeypatch.setattr(circuit_grid, "MOST_CELLS", small)
    assert circuit_grid.drawing_of(circuit).to_json() == best.to_json()
    monkeypatch.setattr(circuit_grid, "MOST_CELLS", small - 1)
    with pytest.raises(Refused, match="drawn on a grid"):
        circuit_grid.drawing_of(circuit)
