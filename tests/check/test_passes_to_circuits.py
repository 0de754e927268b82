"""Passes that end in circuits and learners: proved for what the compiler makes, refused for anything else;
and files that ask for more work than they are worth."""

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._saved import load, save
from tapegrad._sources import read, source_to_json
from tapegrad.circuits.sampler import random_circuit
from tapegrad.circuits.tracer import trace
from tapegrad.circuits.types import Array, Bit, UInt
from tapegrad.errors import TapegradError
from tapegrad.learners import parity
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.machines.sampler import random_grid_machine, random_machine
from tapegrad.source import Source
from tapegrad_check import CheckError, check
from tapegrad_check.core import functions
from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.folder import COMPUTES_SOURCE, OWN_TABLE, NotProved
from tapegrad_check.formulas.words import equal, multiply, subtract
from tapegrad_check.passes import circuits
from tapegrad_check.passes.circuits import Configurations
from tapegrad_check.sources import Circuit, model_of
from tests.check.forging import Saved

BB2 = "1RB1LB_1LA1RZ"
HERE: dict[str, Any] = {"steps": 3, "cells": 4}


def saved(source: Source, target: str, folder: Path, **options: Any) -> Saved:
    save(compile(source, target, **options), folder)
    assert check(folder).verdict == COMPUTES_SOURCE
    return Saved.of(folder)


def believed(forged: Saved, folder: Path) -> bool:
    """Whether the checker says that the net computes its source; if not, it may have no proof or refuse."""
    forged.write(folder)
    try:
        return check(folder).verdict != OWN_TABLE
    except CheckError:
        return False


def test_nodes_know_every_gate() -> None:
    nodes = Nodes(1000)
    a, b = nodes.variables(2)
    for kind, x, y in product(range(16), (a, a ^ 1, FALSE, TRUE), (b, b ^ 1, a, a ^ 1, FALSE, TRUE)):
        found = nodes.gate(kind, x, y)
        for values in product((0, 1), repeat=2):
            assert (
                value(nodes, found, values)
                == kind >> 2 * value(nodes, x, values) + value(nodes, y, values) & 1
            )


def value(nodes: Nodes, literal: int, inputs: tuple[int, ...]) -> int:
    """A literal by the plain meaning of its node."""
    node, negated = divmod(literal, 2)
    if node == 0:
        return negated
    operands = nodes.operands[node]
    if operands is None:
        return inputs[node - 1] ^ negated
    x, y = (value(nodes, operand, inputs) for operand in operands)
    return (x ^ y if nodes.is_xor[node] else x & y) ^ negated


def test_equal_functions_built_differently_are_proved_or_neither_refused_nor_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Words are the same where their difference is 0. Bits of products take longer than is waited for."""
    nodes = Nodes(10_000)
    a, b, c = nodes.variables(3)
    left = nodes.and_(nodes.and_(a, b), c)
    nodes.require_same([left], [nodes.and_(c, nodes.and_(b, a))], "differs")
    nodes.require_same([left], [nodes.and_(a, nodes.and_(b, c))], "differs")
    with pytest.raises(CheckError, match="differs"):
        nodes.require_same([left], [nodes.and_(a, b)], "differs")
    x, y = nodes.variables(20), nodes.variables(20)
    same = nodes.any_of(subtract(nodes, x, y)) ^ 1
    nodes.require_same([left, same], [left, equal(nodes, x, y)], "differs", ["a", "b"])
    products = [multiply(nodes, one, other)[-1] for one, other in ((x, y), (y, x))]
    monkeypatch.setattr(functions, "PATIENCE", 100)
    with pytest.raises(NotProved, match="does not know, at b"):
        nodes.require_same([left, products[0]], [left, products[1]], "differs", ["a", "b"])


def test_a_difference_on_one_input_of_very_many_is_found() -> None:
    """Random inputs do not meet it, and nothing near by shows it."""
    nodes = Nodes(1000)
    bits = nodes.variables(60)
    word = nodes.all_of([bit ^ (number * number % 7 % 2) for number, bit in enumerate(bits)])
    parity = nodes.tree(nodes.xor, bits, FALSE)
    with pytest.raises(CheckError, match="differs, at b"):
        nodes.require_same([parity, nodes.xor(parity, word)], [parity, parity], "differs", ["a", "b"])
    ladder = FALSE
    for bit in bits:
        ladder = nodes.xor(bit, ladder)
    nodes.require_same([ladder], [parity], "differs")


@pytest.mark.parametrize("seed", range(6))
def test_a_step_in_formulas_is_a_step_of_the_machine(seed: int) -> None:
    """Against the interpreter, on every configuration of a small window."""
    machine = random_machine(seed, tapes=1)
    code = Configurations(model_of(*_json(machine)), 3, None, [""] * _wires(machine, 3))  # type: ignore[arg-type]
    nodes = Nodes(1 << 16)
    inputs = nodes.variables(_wires(machine, 3))
    after = code.step(nodes, code.wires(inputs)).flat()
    for state, head in product(machine.states, (-1, 0, 1)):
        for symbols in product(machine.alphabet, repeat=3):
            tape = {cell: s for cell, s in zip((-1, 0, 1), symbols, strict=True) if s != machine.blank}
            now = replace(machine.start(), state=state, tapes=(tape,), heads=(head,))
            then = machine.step(now) or now
            found = [value(nodes, literal, _row(machine, now)) for literal in after]
            if -1 <= then.heads[0] <= 1:
                assert tuple(found) == _row(machine, then)
            else:
                assert not any(found[len(machine.states) : len(machine.states) + 3])


def _json(machine: TuringMachine) -> tuple[dict[str, Any], dict[str, Any]]:

    return source_to_json(machine)


def _wires(machine: TuringMachine, cells: int) -> int:
    return len(machine.states) + cells * (1 + max(1, (len(machine.alphabet) - 1).bit_length()))


def _row(machine: TuringMachine, configuration: Any) -> tuple[int, ...]:
    bits = max(1, (len(machine.alphabet) - 1).bit_length())
    tape = configuration.tapes[0]
    codes = [machine.alphabet.index(tape.get(cell, machine.blank)) for cell in (-1, 0, 1)]
    flags = [int(state == configuration.state) for state in machine.states]
    heads = [int(configuration.heads[0] == cell) for cell in (-1, 0, 1)]
    return (*flags, *heads, *(code >> j & 1 for code in codes for j in range(bits)))


@pytest.mark.parametrize("seed", range(8))
def test_random_machines_are_proved_and_no_others(seed: int, tmp_path: Path) -> None:
    """A rule that does something else makes another machine, and the net is not of that one."""
    machine = random_machine(seed)
    for number, (target, options) in enumerate((("relu", HERE), ("emulator", {"steps": 9, "cells": 3}))):
        genuine = saved(machine, target, tmp_path / f"net{number}", **options)
        forged = genuine.copy()
        row = forged.config["source"]["rules"][0]
        row[-1] = machine.states[(machine.states.index(row[-1]) + 1) % len(machine.states)]
        changes = row[-1] != genuine.config["source"]["rules"][0][-1]
        assert not (changes and believed(forged, tmp_path / "forged"))


def test_grid_machines_are_proved_and_no_others(tmp_path: Path) -> None:
    for seed in range(4):
        machine = random_grid_machine(seed)
        genuine = saved(machine, "relu", tmp_path / str(seed), steps=2, cells=[3, 4], first=[-1, -2])
        row = genuine.config["source"]["rules"][0]
        row[3] = "up" if row[3] != "up" else "down"
        assert not believed(genuine, tmp_path / "forged")


def test_functions_are_bound_to_the_bits_of_their_types(tmp_path: Path) -> None:
    def mixed(a, b):
        return {"sum": a[0] + a[1], "flag": b}

    genuine = saved(trace(mixed, Array(UInt(3), 2), Bit), "relu", tmp_path / "net")
    for where, other in (("result", {"fields": {"sum": "UInt(4)"}}), ("parameters", {"a": "UInt(7)"})):
        forged = genuine.copy()
        forged.config["source"][where] = other
        assert not believed(forged, tmp_path / "forged")
    deep: Any = "Bit"
    for _ in range(300):
        deep = {"tuple": [deep]}
    for hostile in ({"array": "Bit", "length": 10**12}, deep, {"array": {"tuple": []}, "length": 10**12}):
        forged = genuine.copy()
        forged.config["source"]["parameters"] = {"a": hostile}
        assert quickly(lambda forged=forged: not believed(forged, tmp_path / "forged"))


def lock(password: str, *, opens: bool) -> TuringMachine:
    """Gets to q12 behind one word of 0 and 1; or never, for its last rule shuts it."""
    rules = {}
    for place, symbol in enumerate(password):
        here, there = f"q{place}", f"q{place + 1}"
        for read_symbol in "01":
            goes_on = read_symbol == symbol and (opens or place < len(password) - 1)
            rules[here, (read_symbol,)] = Rule((read_symbol,), (1,), there if goes_on else "shut")
    return TuringMachine(
        rules, "q0", blank="_", alphabet=("_", "0", "1"), states=(*(f"q{i}" for i in range(13)), "shut")
    )


@pytest.mark.parametrize(
    ("target", "options", "reason"),
    [
        ("relu", {"steps": 13, "cells": 30}, "not the machine unrolled"),
        ("relu", {"steps": 13, "cells": 30, "form": "paper"}, "not the machine unrolled"),
        ("emulator", {"steps": 20, "cells": 30}, "not the machine"),
    ],
)
def test_a_lock_that_opens_is_no_lock_that_never_opens(
    target: str, options: dict, reason: str, tmp_path: Path
) -> None:
    """Unrolled, they differ on one word of 3^12, where random inputs do not get."""
    shut, forged = (
        saved(lock("011010011101", opens=opens), target, tmp_path / f"{opens}", **options)
        for opens in (False, True)
    )
    forged.config["source"] = shut.config["source"]
    forged.write(tmp_path / "forged")
    with pytest.raises(CheckError, match=reason):
        check(tmp_path / "forged")


def quickly(action: Callable[[], bool]) -> bool:
    began = time.perf_counter()
    return action() and time.perf_counter() - began < 10


def refused_in_time(forged: Saved, folder: Path) -> None:
    """By the checker and by the loader."""
    assert quickly(lambda: not believed(forged, folder))

    def not_loaded() -> bool:
        with pytest.raises(TapegradError):
            load(folder)
        return True

    assert quickly(not_loaded)


@pytest.mark.parametrize(
    ("name", "hostile"),
    [
        ("steps", 10**7),
        ("steps", 10**30),
        ("cells", 10**9),
        ("cells", [3]),
        ("first", -(10**9)),
        ("first", "x"),
    ],
)
def test_options_that_ask_for_too_much(name: str, hostile: Any, tmp_path: Path) -> None:
    genuine = saved(read(BB2), "relu", tmp_path / "net", **HERE)
    genuine.config["options"][name] = hostile
    refused_in_time(genuine, tmp_path / "forged")


@pytest.mark.parametrize("steps", [7, 8, 9, 1000])
def test_runs_that_come_round_again_are_proved(steps: int, tmp_path: Path) -> None:
    """From the fourth step on nothing is new, and what is left over counts."""
    rules = {(own, ("0",)): Rule(("0",), (0,), to) for own, to in ("ab", "bc", "ca")}
    machine = TuringMachine(rules, "a", blank="0", alphabet=("0", "1"))
    saved(machine, "relu", tmp_path / "net", steps=steps, cells=1)


def test_what_is_followed_is_in_proportion_to_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four steps on five cells are 74 nodes: names and gates are 89."""
    genuine = saved(read(BB2), "relu", tmp_path / "net", steps=4, cells=5)
    monkeypatch.setattr(circuits, "NODES_PER_GATE", 1)
    for more, enough in ((-15, True), (-16, False)):
        monkeypatch.setattr(circuits, "NODES_AT_LEAST", more)
        assert believed(genuine, tmp_path / "again") is enough


def test_numbers_that_would_fill_the_memory(tmp_path: Path) -> None:
    genuine = saved(parity(1), "emulator", tmp_path / "net", form="paper")
    for key, hostile in (("p", "1e999999"), ("p", "9" * 5000), ("m0", "1e999999")):
        forged = genuine.copy()
        forged.config["net"][key] = hostile
        refused_in_time(forged, tmp_path / "forged")
    genuine.config["net"]["inputs"] = 10**9
    assert quickly(lambda: not believed(genuine, tmp_path / "forged"))
    genuine = Saved.of(tmp_path / "net")
    for place, hostile in ((0, "1e999999"), (1, "9" * 3000), (2, "1/0")):
        forged = genuine.copy()
        forged.config["net"]["sizes"][0][place] = hostile
        assert quickly(lambda forged=forged: not believed(forged, tmp_path / "forged"))


def test_a_vertex_with_many_edges_is_no_gate(tmp_path: Path) -> None:
    """All 2^40 values of its edges would have to be tried."""
    genuine = saved(parity(2), "emulator", tmp_path / "net")
    begin, _ = genuine.config["net"]["computation"]
    offsets, sources = (genuine.arrays[f"network.values.{part}"] for part in ("starts", "columns"))
    inputs = genuine.beside["network.json"]["inputs"]
    place = begin - inputs["row"]["shape"][0]
    at = int(offsets[place])
    genuine.arrays["network.values.columns"] = np.insert(sources, at, [1] * 40)
    genuine.arrays["weights"] = np.insert(genuine.arrays["weights"], at, [0.0] * 40)
    genuine.arrays["network.values.starts"] = np.where(np.arange(len(offsets)) > place, offsets + 40, offsets)
    inputs["weights"]["shape"] = [inputs["weights"]["shape"][0] + 40]
    genuine.arrays["cells"] = np.where(
        genuine.arrays["cells"] >= at, genuine.arrays["cells"] + 40, genuine.arrays["cells"]
    )
    assert quickly(lambda: not believed(genuine, tmp_path / "forged"))


def test_a_source_out_of_form_is_refused(tmp_path: Path) -> None:
    """A reader that tidied it up would run another machine than the one that was checked."""
    genuine = saved(read(BB2), "relu", tmp_path / "net", **HERE)
    source = genuine.config["source"]
    for key, other in (
        ("tapes", 10**9),
        ("tapes", True),
        ("states", source["states"][::-1]),
        ("states", [f"s{i}" for i in range(10**6)]),
        ("rules", [*source["rules"], source["rules"][0]]),
        ("accept", ["A"]),
        ("alphabet", ["0", "1", "1"]),
    ):
        forged = genuine.copy()
        forged.config["source"] = source | {key: other}
        assert quickly(lambda forged=forged: not believed(forged, tmp_path / "forged"))


def test_circuits_are_followed_gate_by_gate() -> None:
    circuit = random_circuit(4, inputs=5, size=30, outputs=3)
    plain = Circuit(
        circuit.inputs, circuit.outputs, circuit.kinds, circuit.left, circuit.right, circuit.output_wires
    )
    nodes = Nodes(1000)
    outputs = nodes.outputs(plain, nodes.variables(5))
    for bits in product((0, 1), repeat=5):
        *_, expected = circuit.run(circuit.start(bits))
        assert [value(nodes, literal, bits) for literal in outputs] == expected[0].astype(int).tolist()
