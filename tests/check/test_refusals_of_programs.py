"""A bad folder or net for every condition of the checkers of programs, each refused for its reason."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tapegrad._sources import source_to_json
from tapegrad.learners import parity
from tapegrad_check import CheckError
from tapegrad_check.folder import COMPUTES_SOURCE, Folder
from tapegrad_check.passes import bound_source
from tapegrad_check.sources import digest, lowered_of, model_of
from tests.check.altering import Net, net_of
from tests.check.test_passes import folder_of
from tests.check.test_programs import ROOM, rv32, subleq

# A bad folder for every condition of the passes.

Change = Callable[[Folder], Any]


@cache
def _genuine(target: str) -> tuple[str, dict[str, np.ndarray]]:
    unrolled = {"instructions": 2, "input": 2, "output": 4}
    folder = folder_of(subleq(), target, **(ROOM if target == "emulator" else unrolled))
    return json.dumps(folder.config), {name: array.copy() for name, array in folder.arrays.items()}


def genuine(target: str) -> Folder:
    config, arrays = _genuine(target)
    return Folder(json.loads(config), {name: array.copy() for name, array in arrays.items()}, {})


def options(**changes: Any) -> Change:
    return lambda folder: folder.config["options"].update(changes)


def lowered(**changes: Any) -> Change:
    return lambda folder: folder.config["lowered"].update(changes)


def other_source(folder: Folder) -> None:
    data, arrays = source_to_json(parity(1))
    folder.config["source"] = json.loads(json.dumps(data))
    for name in [name for name in folder.arrays if name.startswith("source.")]:
        del folder.arrays[name]
    folder.arrays.update({f"source.{name}": np.array(array) for name, array in arrays.items()})


def swapped(list_name: str, a: int, b: int) -> Change:
    def change(folder: Folder) -> None:
        names = folder.config["lowered"][list_name]
        names[a], names[b] = names[b], names[a]

    return change


def first_bit(folder: Folder) -> None:
    folder.arrays["lowered.first"][40] = 1


def bigger(folder: Folder) -> None:
    folder.config["source"]["machine"]["ram"] += 1


LESSONS: list[tuple[str, Change]] = [
    ("becomes no learner", other_source),
    ("number of samples", options(steps=0)),
    ("number of samples", options(steps=True)),
    ("room for input", options(input=0)),
    ("room for output", options(output="4")),
    ("no power of two", options(output=3)),
    ("not those of registers", options(input=3)),
    ("not those of registers", options(input=1 << 26)),
    ("not those of registers", bigger),
    ("not those of registers", swapped("outputs", 2, 3)),
    ("inputs are not the memory", swapped("inputs", 0, 1)),
    ("inputs are not the memory", swapped("inputs", -1, -2)),
    ("gives something else", swapped("outputs", 0, 1)),
    ("samples or its first memory", first_bit),
    ("not a step of subleq", lambda folder: np.copyto(folder.arrays["lowered.output_wires"][2:4], 0)),
]
UNROLLED: list[tuple[str, Change]] = [
    ("becomes no circuit", other_source),
    ("number of instructions", options(instructions=0)),
    ("number of instructions", options(instructions=10**6)),
    ("not those of registers", options(input=3)),
    ("not those of registers", swapped("inputs", 0, 1)),
    ("not the state", swapped("outputs", 0, 1)),
    ("not 1 steps", options(instructions=1)),
    ("not 3 steps", options(instructions=3)),
]


@pytest.mark.parametrize(
    ("target", "reason", "change"),
    [*(("emulator", *case) for case in LESSONS), *(("relu", *case) for case in UNROLLED)],
)
def test_a_bad_folder_is_refused_for_its_reason(target: str, reason: str, change: Change) -> None:
    folder = genuine(target)
    assert bound_source(folder).source is not None
    change(folder)
    with pytest.raises(CheckError, match=reason):
        bound_source(folder)


def test_bounds_alone_are_known_without_the_proof() -> None:
    folder = genuine("emulator")
    folder.arrays["lowered.output_wires"][2:4] = 0
    folder.config["passes"][0]["sha256"] = digest(lowered_of(folder))
    assert bound_source(folder, proves=False).source is not None
    options(input=3)(folder)
    with pytest.raises(CheckError, match="not those of registers"):
        bound_source(folder, proves=False)


# A bad net for every condition on transformers.


@cache
def _transformer() -> Net:
    return net_of(subleq(), "transformer", ROOM | {"steps": 20})


def transformer() -> Net:
    net = _transformer()
    own = json.loads(json.dumps(net.config)), dict(net.arrays), dict(net.claims), net.source
    return Net(*own, form=net.form)


def of_machine(**changes: Any) -> Callable[[Net], Any]:
    return lambda net: net.config["machine"].update(changes)


def of_bank(place: int, **changes: Any) -> Callable[[Net], Any]:
    return lambda net: net.config["banks"][place].update(changes)


def renamed(old: str, new: str) -> Callable[[Net], Any]:
    def change(net: Net) -> None:
        for own in net.config["coordinates"]:
            own[0] = {old: new, new: old}.get(own[0], own[0])

    return change


def with_source(source: Any) -> Callable[[Net], Any]:
    def change(net: Net) -> None:
        net.source = model_of(*source_to_json(source))

    return change


BAD_NETS: list[tuple[str, Callable[[Net], Any]]] = [
    ("runs programs", with_source(parity(1))),
    ("not that of the program", with_source(subleq(8, 10))),
    ("not that of the program", with_source(subleq(16, 9))),
    ("not that of the program", with_source(rv32(16))),
    ("no known kind", of_machine(kind="tape")),
    ("other entries than its kind", of_machine(size=3)),
    ("size of memory", of_machine(ram=0)),
    ("room for output", of_machine(output=None)),
    ("no power of two", of_machine(output=3)),
    ("taken has another size", of_machine(input=4)),
    ("output write at has another size", of_machine(output=8)),
    ("the banks are not", of_bank(0, words=10)),
    ("the banks are not", of_bank(1, number=2)),
    ("the banks are not", of_bank(2, written=False)),
    ("the banks are not", lambda net: net.config["banks"].reverse()),
    ("coordinates are not in order", lambda net: net.config["coordinates"][7].__setitem__(1, 9)),
    ("has another size", renamed("pc", "trap")),
    ("has another size", renamed("ram write on", "ram write")),
    ("the end is not where", lambda net: net.put("ends.columns", 0, 0)),
    (r"is handed on|no head asks", renamed("ram write", "output write")),
    ("no machine", lambda net: net.config.update(machine=None)),
    ("claims something else", lambda net: net.claims.update(source="checked")),
]


@pytest.mark.parametrize(("reason", "change"), BAD_NETS)
def test_a_bad_transformer_is_refused_for_its_reason(reason: str, change: Callable[[Net], Any]) -> None:
    net = transformer()
    assert net.verdict("transformer") == COMPUTES_SOURCE
    change(net)
    with pytest.raises(CheckError, match=reason):
        net.verdict("transformer")
