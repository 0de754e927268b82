"""Nets of circuits with state: what is proved of them, and a bad folder or net for every condition."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad._sources import source_to_json
from tapegrad.circuits.clocked.library import READY
from tapegrad.circuits.clocked.model import SequentialCircuit
from tapegrad.learners import parity
from tapegrad_check import CheckError, check
from tapegrad_check.folder import COMPUTES_SOURCE, Folder
from tapegrad_check.passes import bound_source
from tapegrad_check.sources import model_of
from tests.check.altering import Net, net_of
from tests.check.forging import Saved
from tests.check.small_sources import COUNTER
from tests.check.test_passes import folder_of
from tests.check.test_refusals_of_programs import lowered, other_source

OPTIONS: dict[str, dict[str, Any]] = {
    "relu": {"cycles": 2},
    "emulator": {},
    "transformer": {"steps": 12},
    "tape": {"cells": 600},
}
SAYS = {
    "relu": "the circuit is 2 cycles from reset on, formula by formula, for all inputs, and for all that 1 "
    "latches hold that are left open",
    "emulator": "a lesson is one cycle of the circuit, for all that its 2 latches hold and all inputs",
    "transformer": "for all that 2 latches hold and all inputs, a step is one cycle of the circuit",
    "tape": "a lesson is one cycle of the circuit",
}


def counter() -> SequentialCircuit:
    source = tg.read(COUNTER)
    assert isinstance(source, SequentialCircuit)
    return source


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    @cache
    def saved(target: str) -> Path:
        path = tmp_path_factory.mktemp("nets") / target
        tg.save(tg.compile(counter(), target, **OPTIONS[target]), path)
        return path

    return saved


@pytest.mark.parametrize("target", OPTIONS)
def test_what_is_proved(target: str, folder: Callable[[str], Path]) -> None:
    report = check(folder(target))
    assert report.verdict == COMPUTES_SOURCE
    assert any(SAYS[target] in statement for statement in report.statements)
    assert isinstance(tg.load(folder(target)).source, SequentialCircuit)


def flipped_reset(saved: Saved) -> None:
    saved.arrays["source.resets"] = saved.arrays["source.resets"] ^ np.array([1, 0], np.uint8)


def swapped_latches(saved: Saved) -> None:
    """Each latch becomes what the other one should."""
    wires = saved.arrays["source.output_wires"]
    saved.arrays["source.output_wires"] = wires[[0, 1, 3, 2]]


def another_gate(saved: Saved) -> None:
    kinds = saved.arrays["source.kinds"].copy()
    kinds[0] = {8: 14, 6: 9, 9: 6, 14: 8}.get(int(kinds[0]), 8)
    saved.arrays["source.kinds"] = kinds


@pytest.mark.parametrize("target", OPTIONS)
@pytest.mark.parametrize("forge", [flipped_reset, swapped_latches, another_gate])
def test_nets_of_other_circuits_are_refused(target, forge, folder, tmp_path: Path) -> None:
    """The net of one circuit with the source of another, all sums renewed."""
    saved = Saved.of(folder(target)).copy()
    forge(saved)
    saved.write(tmp_path / "forged")
    with pytest.raises(CheckError):
        check(tmp_path / "forged")


# A bad folder for every condition of the passes.

Change = Callable[[Folder], Any]


@cache
def _genuine(target: str, source: str) -> tuple[str, dict[str, np.ndarray]]:
    options = {"cycles": 2} if target == "relu" else {}
    found = folder_of(counter() if source == "counter" else READY[source].build(), target, **options)
    return json.dumps(found.config), {name: array.copy() for name, array in found.arrays.items()}


def genuine(target: str, source: str = "counter") -> Folder:
    config, arrays = _genuine(target, source)
    return Folder(json.loads(config), {name: array.copy() for name, array in arrays.items()}, {})


def other_lowered(folder: Folder) -> None:
    """The circuit with state itself, in place of what it became."""
    folder.config["lowered"] = folder.config["source"]
    for name in [name for name in folder.arrays if name.startswith("lowered.")]:
        del folder.arrays[name]
    own = {name: array for name, array in folder.arrays.items() if name.startswith("source.")}
    folder.arrays.update({name.replace("source.", "lowered.", 1): array for name, array in own.items()})


def put(name: str, place: int, value: int) -> Change:
    return lambda folder: folder.arrays[name].__setitem__(place, value)


def renamed(key: str, place: int) -> Change:
    return lambda folder: folder.config["lowered"][key].__setitem__(place, "else")


def cycles(number: Any) -> Change:
    return lambda folder: folder.config["options"].update(cycles=number)


def gate(folder: Folder) -> None:
    kinds = folder.arrays["lowered.kinds"]
    at = int(np.argmax(np.isin(kinds, (6, 8, 14))))
    kinds[at] = 8 if kinds[at] != 8 else 14


LESSONS: list[tuple[str, Change]] = [
    ("becomes no learner", other_source),
    ("becomes no learner", other_lowered),
    ("other inputs", renamed("inputs", 4)),
    ("other outputs", renamed("outputs", 2)),
    ("not that of a learner", lowered(bits=0)),
    ("first memory", put("lowered.first", 0, 0)),
    ("first memory", put("lowered.first", 2, 1)),
    ("first memory", put("source.resets", 0, 0)),
    ("first memory", put("source.resets", 1, 1)),
    ("a lesson is not a cycle", gate),
    ("a lesson is not a cycle", put("lowered.output_wires", 3, 0)),
    ("a lesson is not a cycle", put("lowered.output_wires", 0, 0)),
    ("resets are not those of latches", put("source.resets", 0, 3)),
]
CYCLES: list[tuple[str, Change]] = [
    ("cycles are no circuit", other_source),
    ("cycles are no circuit", other_lowered),
    ("number of cycles", cycles(0)),
    ("number of cycles", cycles(True)),
    ("number of cycles", cycles("2")),
    ("out of proportion", cycles(1 << 25)),
    ("inputs are not those", cycles(3)),
    ("inputs are not those", renamed("inputs", 0)),
    ("outputs are not those", renamed("outputs", 0)),
    ("outputs are not those", renamed("outputs", -1)),
    ("is not 2 cycles", gate),
    ("is not 2 cycles", put("source.resets", 0, 0)),
    ("is not 2 cycles", put("lowered.output_wires", -1, 0)),
]


@pytest.mark.parametrize(
    ("target", "message", "change"),
    [(target, *case) for target, cases in (("emulator", LESSONS), ("relu", CYCLES)) for case in cases],
)
def test_conditions_of_the_passes(target: str, message: str, change: Change) -> None:
    folder = genuine(target)
    assert bound_source(folder).source is not None
    change(folder)
    with pytest.raises(CheckError, match=message):
        bound_source(folder)


def test_an_output_that_is_always_1() -> None:
    """One open latch and two inputs against two outputs and a latch: it is there to tell the rows apart."""
    source = tg.read(".model m\n.inputs a b\n.outputs p q\n.latch a p 2\n.names b q\n1 1\n.end\n")
    folder = folder_of(source, "relu", cycles=2)
    assert folder.config["lowered"]["outputs"][-1] == "done"
    assert bound_source(folder).source is not None
    folder.arrays["lowered.output_wires"][-1] = 0
    with pytest.raises(CheckError, match="is not 2 cycles"):
        bound_source(folder)


# A bad net for every condition on transformer.


def machine(**changes: Any) -> Callable[[Net], Any]:
    return lambda net: net.config["machine"].update(changes)


def entry(name: str, value: Any) -> Callable[[Net], Any]:
    return lambda net: net.config["machine"]["arrays"].__setitem__(name, value)


def other(net: Net) -> None:
    source = counter()
    changed = replace(source, resets=(0, *source.resets[1:]))
    net.source = model_of(*source_to_json(changed))


def no_source_and(change: Callable[[Net], Any]) -> Callable[[Net], Any]:
    def both(net: Net) -> None:
        net.source = None
        change(net)

    return both


def same_wires(net: Net) -> None:
    """The machine that the net names has another next state than its gates."""
    arrays = net.config["machine"]["arrays"]
    arrays["output_wires"] = [*arrays["output_wires"][:2], *arrays["output_wires"][:1:-1]]


def of_a_learner(net: Net) -> None:
    data, arrays = source_to_json(parity(1))
    net.source = model_of(data, arrays)


def ends_elsewhere(net: Net) -> None:
    """It stops where an output is 1."""
    net.put("ends.columns", 0, net.config["coordinates"].index(["outputs", 0]))


ON_TRANSFORMER: list[tuple[str, Callable[[Net], Any]]] = [
    ("other entries", machine(more=1)),
    ("other cycles", machine(cycles=13)),
    ("cycles of the circuit", machine(cycles="12")),
    ("other arrays", lambda net: net.config["machine"]["arrays"].pop("resets")),
    ("other arrays", machine(arrays=[])),
    ("is not a list", entry("resets", {"0": 1})),
    ("an entry of 'resets'", entry("resets", [256, 0])),
    ("an entry of 'left'", entry("left", [True])),
    ("an entry of 'kinds'", entry("kinds", [-1])),
    ("not that of the source", other),
    ("not that of the source", of_a_learner),
    ("not that of the source", same_wires),
    ("is not what a cycle", no_source_and(same_wires)),
    ("the end is not that of the trace", ends_elsewhere),
    ("bank is not the trace", lambda net: net.config["banks"][0].update(words=11)),
    ("bank is not the trace", lambda net: net.config["banks"][0].update(written=True)),
]


@pytest.mark.parametrize(("message", "change"), ON_TRANSFORMER)
def test_conditions_on_transformer(message: str, change: Callable[[Net], Any]) -> None:
    net = net_of(counter(), "transformer", {"steps": 12})
    assert net.verdict("transformer") == COMPUTES_SOURCE
    change(net)
    with pytest.raises(CheckError, match=message):
        net.verdict("transformer")


def test_one_cycle() -> None:
    assert bound_source(folder_of(counter(), "relu", cycles=1)).source is not None
