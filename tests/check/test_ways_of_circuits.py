"""Circuits drawn on a grid, as programs of RASP and as one cycle: what is proved, and a bad drawing or
program for every condition."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tapegrad._sources import source_to_json
from tapegrad.circuits import library as circuits
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.model import Circuit as TapegradCircuit
from tapegrad.circuits.sampler import random_circuit
from tapegrad.lowering import circuit_grid, circuit_rasp, rasp_circuit
from tapegrad.rasp import text as rasp_text
from tapegrad_check import CheckError
from tapegrad_check.folder import NotProved
from tapegrad_check.passes import clocked, drawings, rasp
from tapegrad_check.sources import Circuit, Sequential, digest, model_of
from tapegrad_check.sources.rasp import Node, Rasp


def small(outputs: int = 1) -> Circuit:
    """a AND b, as often as it is wanted."""
    make = CircuitBuilder()
    both = make.and_(make.input("a"), make.input("b"))
    for number in range(outputs):
        make.output(f"x{number}", both)
    found = model_of(*source_to_json(make.circuit("and")))
    assert isinstance(found, Circuit)
    return found


def step(after: Any = None, relation: Any = None, *, proves: bool = True) -> Any:
    return SimpleNamespace(
        saved=lambda: after, relation=relation, name="the pass", proves=proves, statements=[]
    )


# Drawings


def drawn(rows: Any, outputs: Any, circuit: Any = None) -> list[str]:
    own = step(relation={"rows": rows, "outputs": outputs})
    assert drawings._row_by_row(circuit or small(), own) == drawings._machine()
    return own.statements


def test_a_drawing() -> None:
    said = "has the circuit's 1 outputs in its last row"
    assert said in drawn(["ddoI"], [2])[0]
    assert drawn(["duoI"], [2]) == drawn(["dvI"], [1]) == drawn(["ddoI"], [2])
    assert "3 rows" in drawn(["uuoI", "c_uo=", "__v="], [2])[0]


@pytest.mark.parametrize(
    ("message", "rows", "outputs"),
    [
        ("no texts", [], [2]),
        ("no texts", "ddoI", [2]),
        ("no texts", ["ddoI", "o"], [2]),
        ("no texts", ["ddoI", 7], [2]),
        ("mark that is none", ["dd0I"], [2]),
        ("mark that is none", ["ddxI"], [2]),
        ("not there", ["d_uoI"], [3]),
        ("not there", ["ddoI", "c_do="], [3]),
        ("not there", ["d_doI"], [3]),
        ("not there", ["d_vI"], [2]),
        ("no texts", 7, [2]),
        ("no texts", {"ddoI": 1}, [2]),
        ("not every output", ["ddoI"], None),
        ("not every output", ["ddoI"], 2),
        ("is no gate", ["ddoi"], [2]),
        ("is no gate", ["d_oI"], [2]),
        ("is no gate", ["dd_I"], [2]),
        ("is no gate", ["ddooI"], [2]),
        ("is no gate", ["dvo="], [2]),
        ("not every output", ["ddoI"], [3]),
        ("not every output", ["ddoI"], [0]),
        ("not every output", ["ddoI"], [2, 2]),
        ("not every output", ["ddoI"], []),
        ("not every output", ["ddoI"], [2.0]),
        ("not every output", ["ddoI"], {"2": 2}),
        ("does not compute", ["ddoO"], [2]),
        ("does not compute", ["ccot"], [2]),
        ("does not compute", ["uuoI", "c_uo="], [0]),
    ],
)
def test_conditions_on_drawings(message: str, rows: Any, outputs: Any) -> None:
    with pytest.raises(CheckError, match=message):
        drawn(rows, outputs)


def test_every_sign_is_its_gate() -> None:
    """For all inputs, by the number of a table: bit 2a + b of it."""
    for sign, (operands, table) in drawings.SIGNS.items():
        nodes = drawings.Nodes()
        for a in (0, 1):
            for b in (0, 1):
                row = {0: "__o", 1: "d_o", 2: "ddo"}[operands] + sign
                place = {0: 0, 1: a, 2: 2 * a + b}[operands]
                assert drawings._after(row, {0: a, 1: b}, nodes)[2] == table >> place & 1
    wanted = {"f": "0", "t": "1", "~": "not a", "=": "a"}
    assert {drawings.SIGNS[sign] for sign in wanted} == {(0, 0), (0, 1), (1, 1), (1, 2)}
    assert sorted(drawings.SIGNS.values())[4:] == [(2, table) for table in (1, 2, 4, 6, 7, 8, 9, 11, 13, 14)]


def test_what_is_copied_stays_and_what_is_dropped_goes() -> None:
    nodes = drawings.Nodes()
    a, b, c, d = nodes.variables(4)
    left = drawings._after("cuv_I", {0: a, 1: b, 2: c, 3: d}, nodes)
    assert left == {0: a, 1: b, 2: nodes.and_(b, c)}


def test_without_a_drawing_nothing_is_proved() -> None:
    with pytest.raises(NotProved, match="no drawing"):
        drawings._row_by_row(small(), step())
    with pytest.raises(CheckError, match="only a circuit is drawn"):
        drawings._row_by_row(Sequential(small(), ()), step(relation={}))


def test_the_machine_for_drawings_is_the_compilers() -> None:
    made = circuit_grid.circuit_drawing(circuits.ready("adder2"))
    saved = model_of(*source_to_json(made.after))
    assert digest(drawings._machine()) == digest(saved)
    assert made.relation is not None
    relation, _ = made.relation()
    before: Any = model_of(*source_to_json(circuits.ready("adder2")))
    assert drawn(relation["rows"], relation["outputs"], before)


@pytest.mark.parametrize("seed", range(4))
def test_drawings_of_the_compiler(seed: int) -> None:
    """And none with another sign in one row, unless it computes the same."""
    circuit = random_circuit(seed)
    made = circuit_grid.circuit_drawing(circuit).relation
    assert made is not None
    relation, _ = made()
    before: Any = model_of(*source_to_json(circuit))
    rows, outputs = relation["rows"], relation["outputs"]
    assert drawn(rows, outputs, before)
    inverse = {table: sign for sign, (count, table) in drawings.SIGNS.items() if count == 2}
    inverse_of = {"~": "=", "=": "~", "t": "f", "f": "t"} | {
        sign: inverse[15 - table] for sign, (count, table) in drawings.SIGNS.items() if count == 2
    }
    last = rows[-1]
    place = next(n for n, mark in enumerate(last[:-1]) if mark in "ov")
    assert place in outputs or len(rows) > 1
    if place in outputs:
        with pytest.raises(CheckError, match="does not compute"):
            drawn([*rows[:-1], last[:-1] + inverse_of[last[-1]]], outputs, before)


# Programs of RASP


def program_of(circuit: TapegradCircuit) -> tuple[Circuit, Rasp]:
    before = model_of(*source_to_json(circuit))
    after = model_of(*source_to_json(circuit_rasp.circuit_rasp(circuit).after))
    assert isinstance(before, Circuit)
    assert isinstance(after, Rasp)
    return before, after


def wider_at_the_end(inputs: int, outputs: int) -> TapegradCircuit:
    make = CircuitBuilder()
    wires = [make.input(f"i{number}") for number in range(inputs)]
    for number in range(outputs):
        make.output(f"o{number}", make.not_(wires[number % inputs]))
    return make.circuit("inverters")


@pytest.mark.parametrize(
    "circuit",
    [
        circuits.ready("adder2"),
        wider_at_the_end(1, 1),
        wider_at_the_end(4, 1),
        wider_at_the_end(1, 4),
        *(random_circuit(seed) for seed in range(4)),
    ],
)
def test_programs_of_circuits(circuit: TapegradCircuit) -> None:
    before, after = program_of(circuit)
    own = step(after)
    assert rasp._positions(before, own) is after
    count = max(len(before.inputs), len(before.outputs))
    assert own.statements == [
        f"on {count:,} tokens the program has the circuit's outputs at its first {len(before.outputs):,} "
        "positions, formula by formula"
    ]


def values(program: Rasp, *found: Any) -> Rasp:
    """The same, but its last sequence is one of these values everywhere."""
    nodes = (*program.nodes, *(Node("full", value, ()) for value in found))
    return replace(program, nodes=nodes, output=len(nodes) - 1)


@pytest.mark.parametrize("proves", [True, False])
def test_conditions_on_programs_of_circuits(proves: bool) -> None:
    before, after = program_of(circuits.ready("adder2"))
    for message, bad in (
        ("tokens of the program are not bits", replace(after, vocabulary=("1", "0"))),
        ("tokens of the program are not bits", replace(after, vocabulary=("0", "1", "2"))),
        ("for other words", replace(after, length=after.length + 1)),
        ("for other words", replace(after, causal=True)),
        ("outputs are not bits", values(after, "0")),
        ("outputs are not bits", values(after, 2)),
        ("outputs are not bits", values(after, True)),
        ("outputs are not bits", values(after, -1)),
    ):
        with pytest.raises(CheckError, match=message):
            rasp._positions(before, step(bad, proves=proves))
    with pytest.raises(CheckError, match="becomes no program"):
        rasp._positions(before, step(before, proves=proves))
    with pytest.raises(CheckError, match="becomes no program"):
        rasp._positions(after, step(after, proves=proves))


def test_a_program_of_another_circuit() -> None:
    before, after = program_of(circuits.ready("adder2"))
    other, another = program_of(circuits.ready("multiplier2"))
    assert (before.inputs, len(before.outputs)) != (other.inputs, len(other.outputs))
    for circuit, program in ((other, replace(after, length=len(other.inputs))), (before, values(after, 0))):
        assert rasp._positions(circuit, step(program, proves=False)) is program
        with pytest.raises(CheckError, match="does not have the circuit's outputs"):
            rasp._positions(circuit, step(program))
    swapped = replace(before, output_wires=before.output_wires[::-1].copy())
    with pytest.raises(CheckError, match="does not have the circuit's outputs"):
        rasp._positions(swapped, step(after))
    # Behind the last output there must be zeros.
    fewer = replace(before, outputs=before.outputs[:-1], output_wires=before.output_wires[:-1])
    with pytest.raises(CheckError, match="does not have the circuit's outputs"):
        rasp._positions(fewer, step(after))
    assert another.length == len(other.inputs)


def test_room_for_programs_of_circuits(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = program_of(wider_at_the_end(2, 1))
    made: list[int] = []
    own = rasp.Nodes
    monkeypatch.setattr(rasp, "Nodes", lambda most: made.append(most) or own(most))
    rasp._positions(before, step(after))
    assert made == [(1 << 17) + 8 * 2 * len(after.nodes)]


def test_means_by_their_denominators() -> None:
    """Halves and thirds: sums are in sixths, and of nothing the mean is the default."""
    third, half = Fraction(1, 3), Fraction(1, 2)
    possible = [Fraction(0), third, half, Fraction(5, 12), Fraction(5)]
    program: Any = SimpleNamespace(
        nodes=[None, SimpleNamespace(reads=(0, 0), what=Fraction(5))],
        values=[[third, half]],
        places=[None, {value: place for place, value in enumerate(possible)}],
    )
    rows = np.array([[[True, False], [True, True]], [[False, False], [False, True]]])
    found = rasp._means(program, 1, rows, np.array([[0, 1], [0, 1]]))
    assert [[possible[place] for place in row] for row in found] == [[third, Fraction(5, 12)], [5, half]]


# One cycle


def test_one_cycle() -> None:
    own = step()
    found = clocked._one_cycle(small(), own)
    assert found == Sequential(small(), ()) or digest(found) == digest(Sequential(small(), ()))
    assert isinstance(found, Sequential)
    assert (found.inputs, found.outputs, found.latches) == (("a", "b"), ("x0",), ())
    assert own.statements == ["a cycle of the circuit without latches is the circuit"]
    with pytest.raises(CheckError, match="only a circuit"):
        clocked._one_cycle(found, step())


def test_the_bits_of_cycles() -> None:
    assert clocked._at("a", 3) == "a@3"
    assert clocked._at("data[12]", 5) == "data@5[12]"
    assert clocked._at("data[1][2]", 0) == "data[1]@0[2]"


def test_wires_of_all_cycles_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert clocked.MOST_WIRES == 1 << 26
    logic = small()
    wires = len(logic.inputs) + len(logic.kinds) + len(logic.outputs)
    monkeypatch.setattr(clocked, "MOST_WIRES", 3 * wires)
    for cycles, message in ((3, "inputs are not those"), (4, "out of proportion")):
        own = step(logic)
        own.option = {"cycles": cycles}.__getitem__
        with pytest.raises(CheckError, match=message):
            clocked._unrolled(Sequential(logic, ()), own)


# Tokens as wires


def tokens_as_wires(after: Any, before: Any = None, count: int = 2, *, proves: bool = True) -> list[str]:
    own = step(after, proves=proves)
    own.option = {"count": count}.__getitem__
    assert rasp._wires(before or reversing(), own) is after
    return own.statements


def reversing() -> Rasp:
    text = (
        b"rasp x\nvocabulary a b c\nlength 3\noutput = aggregate(select(indices, 1 - indices, ==), tokens)\n"
    )
    found = model_of(*source_to_json(rasp_text.read(text)))
    assert isinstance(found, Rasp)
    return found


def wired(count: int = 2) -> Circuit:
    text = (
        b"rasp x\nvocabulary a b c\nlength 3\noutput = aggregate(select(indices, 1 - indices, ==), tokens)\n"
    )
    found = model_of(*source_to_json(rasp_circuit.rasp_circuit(rasp_text.read(text), count=count).after))
    assert isinstance(found, Circuit)
    return found


def test_conditions_on_tokens_as_wires(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = wired()
    assert "on all 9 inputs" in tokens_as_wires(genuine)[0]
    assert tokens_as_wires(genuine, proves=False) == []
    with pytest.raises(CheckError, match="so many tokens"):
        tokens_as_wires(replace(genuine, inputs=("x", *genuine.inputs[1:])))
    for outputs in (("x", *genuine.outputs[1:]), (*genuine.outputs[:-1], "x")):
        with pytest.raises(CheckError, match="are not values"):
            tokens_as_wires(replace(genuine, outputs=outputs))
    for count in (0, 4):
        with pytest.raises(CheckError, match="number of tokens"):
            tokens_as_wires(genuine, count=count)
    for before, after in ((genuine, genuine), (reversing(), reversing())):
        with pytest.raises(CheckError, match="only a program of RASP"):
            tokens_as_wires(after, before)
    wires = genuine.output_wires.copy()
    wires[[0, 1]] = wires[[1, 0]]
    swapped = replace(genuine, output_wires=wires)
    assert tokens_as_wires(swapped, proves=False) == []
    with pytest.raises(CheckError, match="something else than the program"):
        tokens_as_wires(swapped)
    monkeypatch.setattr(rasp, "FEW_INPUTS", 8)
    assert "formula by formula" in tokens_as_wires(genuine)[0]
    with pytest.raises(CheckError, match="the circuit is not the program"):
        tokens_as_wires(swapped)
    monkeypatch.setattr(rasp, "FEW_INPUTS", 9)
    monkeypatch.setattr(rasp, "FEW_VALUES", 9 * len(genuine.kinds) - 1)
    assert "formula by formula" in tokens_as_wires(genuine)[0]
    monkeypatch.setattr(rasp, "FEW_VALUES", 9 * len(genuine.kinds))
    assert "on all 9 inputs" in tokens_as_wires(genuine)[0]


def test_all_words_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    for at_once in (1, 4, 27, 100):
        monkeypatch.setattr(rasp, "AT_ONCE", at_once)
        words = [tuple(word) for some in rasp._all_words(3, 3) for word in some.tolist()]
        assert sorted(words) == list(product(range(3), repeat=3))
