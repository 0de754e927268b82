"""The checker's own reader of sources and folders: one form; everything else is refused for its reason."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tapegrad._compile import compile
from tapegrad._saved import save
from tapegrad._sources import read, source_to_json
from tapegrad.circuits.sampler import random_circuit
from tapegrad.circuits.tracer import trace
from tapegrad.circuits.types import Array, Bit, UInt
from tapegrad.learners import CircuitLearner, parity
from tapegrad.machines import model
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.machines.sampler import random_grid_machine
from tapegrad.programs.library import READY
from tapegrad_check import CheckError, Unchecked, check, folder, sources
from tapegrad_check.folder import NotProved
from tapegrad_check.sources import MOST_BYTES, MOST_TAPES, circuits, digest, model_of, to_json
from tests.check.forging import Saved
from tests.check.small_sources import BB2

SAVED = Path(__file__).parents[1] / "saved_nets" / "v3"
PAPER = {"form": "paper", "steps": 2, "cells": 4}


def both(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    return a, b & c[0] ^ c[1]


TWO_TAPES = TuringMachine(
    {
        ("go", ("_", "_")): Rule(("a", "_"), (1, 0), "go"),
        ("go", ("a", "_")): Rule(("a", "a"), (-1, 1), "no"),
        ("go", ("_", "a")): Rule(("_", "_"), (0, 0), "yes"),
    },
    "go",
    blank="_",
    alphabet=("_", "a"),
    accept=frozenset({"yes"}),
    reject=frozenset({"no"}),
)
SOURCES = {
    "machine": TWO_TAPES,
    "grid": random_grid_machine(1, states=3, symbols=2),
    "circuit": random_circuit(2, inputs=3, size=9, outputs=2),
    "function": trace(both, UInt(3), Bit, Array(Bit, 2)),
    "learner": parity(2),
    "learner without memory": CircuitLearner(random_circuit(5, inputs=3, size=4, outputs=2), 1),
    "program": READY["subleq-hello"].build(),
    "processor": READY["rv32-fibonacci"].build(),
}
Parts = tuple[dict[str, Any], dict[str, np.ndarray]]
Change = Callable[[Parts], Any]


def parts_of(name: str) -> Parts:
    data, arrays = source_to_json(SOURCES[name])
    return json.loads(json.dumps(data)), {name: np.array(array) for name, array in arrays.items()}


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_read_is_written_again(name: str) -> None:
    data, arrays = parts_of(name)
    model = model_of(data, arrays)
    again, same = to_json(model)
    assert json.loads(json.dumps(again)) == data
    assert same.keys() == arrays.keys()
    assert all(np.array_equal(same[key], arrays[key]) for key in arrays)
    assert digest(model) == digest(model_of(data | {"name": "another"}, arrays))


def entry(**changes: Any) -> Change:
    return lambda parts: parts[0].update(changes)


def rule(place: int, value: Any, number: int = 0) -> Change:
    return lambda parts: parts[0]["rules"][number].__setitem__(place, value)


def cell(name: str, place: int, value: int) -> Change:
    return lambda parts: parts[1][name].__setitem__(place, value)


def kind(name: str, dtype: Any) -> Change:
    return lambda parts: parts[1].update({name: parts[1][name].astype(dtype)})


def parameter(layout: Any) -> Change:
    """Another type of the last parameter, which is `c`, of two bits."""
    return lambda parts: parts[0]["parameters"].update(c=layout)


def nested(depth: int) -> Any:
    layout: Any = {"array": "Bit", "length": 2}
    for _ in range(depth):
        layout = {"tuple": [layout]}
    return layout


MACHINE: list[tuple[str, Change]] = [
    ("of no kind", entry(kind=None)),
    ("other entries", entry(extra=1)),
    ("other entries", lambda parts: parts[0].pop("tapes")),
    ("other arrays", lambda parts: parts[1].update(kinds=np.zeros(1, np.uint8))),
    ("name of the source is not text", entry(name=3)),
    ("the states are not texts", entry(states="go")),
    ("the states are not texts", entry(states=["go", 1])),
    ("two of the states are the same", entry(states=["go", "no", "no"])),
    ("start state is not the first", entry(start_state="no")),
    ("start state is not the first", entry(states=[])),
    ("blank is not the first", entry(blank="a")),
    ("blank is not the first", entry(alphabet=[])),
    ("rules are not a list", entry(rules={})),
    ("number of tapes", entry(tapes=0)),
    ("number of tapes", entry(tapes=True)),
    ("number of tapes", entry(tapes=MOST_TAPES + 1)),
    ("another length", entry(tapes=MOST_TAPES)),
    ("another length", entry(tapes=1)),
    ("accepting states are not", entry(accept="yes")),
    ("final states are not in order", entry(accept=["yes", "no"], reject=[])),
    ("final states are not in order", entry(reject=["yes", "no"], accept=[])),
    ("final state is unknown or double", entry(accept=["maybe"])),
    ("final state is unknown or double", entry(accept=["yes"], reject=["yes"])),
    ("another length", lambda parts: parts[0]["rules"][0].pop()),
    ("another length", lambda parts: parts[0]["rules"].__setitem__(0, "go")),
    ("unknown symbol", rule(1, "b")),
    ("unknown symbol", rule(4, "b")),
    ("unknown symbol", rule(4, ["a"])),
    ("unknown move", rule(5, 2)),
    ("unknown move", rule(6, -2)),
    ("unknown move", rule(5, True)),
    ("no known state", rule(0, "maybe")),
    ("no known state", rule(7, "maybe")),
    ("no known state", rule(7, ["go"])),
    ("a final state has a rule", rule(0, "yes")),
    ("a final state has a rule", rule(0, "no")),
    ("two rules for one case", rule(1, "a")),
]
GRID: list[tuple[str, Change]] = [
    ("five texts", lambda parts: parts[0]["rules"][0].pop()),
    ("five texts", lambda parts: parts[0]["rules"].__setitem__(0, "abcde")),
    ("five texts", rule(0, 1)),
    ("unknown name", rule(0, "maybe")),
    ("unknown name", rule(4, "maybe")),
    ("unknown name", rule(1, "?")),
    ("unknown name", rule(2, "?")),
    ("no known move, or is double", rule(3, "away")),
    ("no known move, or is double", lambda parts: parts[0]["rules"].append(parts[0]["rules"][0])),
]
CIRCUIT: list[tuple[str, Change]] = [
    ("inputs are not texts", entry(inputs=[1, 2, 3])),
    ("outputs are not texts", entry(outputs=[1, 2])),
    ("two of the outputs", entry(outputs=["y", "y"])),
    ("'kinds' is not of type", kind("kinds", np.int8)),
    ("'left' is not of type", kind("left", np.int64)),
    ("'left' has another shape", lambda parts: parts[1].update(left=parts[1]["left"][1:])),
    ("'output_wires' has another shape", entry(outputs=["y"])),
    ("no known kind", cell("kinds", 0, 2)),
    ("no known kind", cell("kinds", 0, 255)),
    ("a wire that is not before it", cell("left", 0, 3)),
    ("a wire that is not before it", cell("left", 0, -1)),
    ("a wire that is not before it", cell("right", 0, 3)),
    ("an output is no wire", cell("output_wires", 0, -1)),
    ("an output is no wire", lambda parts: cell("output_wires", 0, 3 + len(parts[1]["kinds"]))(parts)),
]
FUNCTION: list[tuple[str, Change]] = [
    ("parameters have no names", entry(parameters=[])),
    ("not the bits of the parameters", parameter("UInt(3)")),
    ("not the bits of the parameters", parameter({"array": "Bit", "length": 3})),
    ("not the bits of the parameters", parameter({"array": "Bit", "length": 1})),
    ("not the bits of the parameters", parameter({"array": "Bit", "length": 10**15})),
    ("length of an array", parameter({"array": "Bit", "length": 0})),
    ("neither a bit nor a number", parameter("Float(3)")),
    ("neither a bit nor a number", parameter("UInt(0)")),
    ("neither a bit nor a number", parameter("UInt(1000000)")),
    ("neither a text nor a structure", parameter(3)),
    ("unknown structure", parameter({"set": ["Bit"]})),
    ("unknown structure", parameter({"tuple": "Bit"})),
    ("unknown structure", parameter({"tuple": ["Bit"], "list": ["Bit"]})),
    ("unknown structure", parameter({"fields": ["Bit"]})),
    ("has no bits", parameter({"tuple": [{"tuple": []}]})),
    ("nested too deeply", parameter(nested(98))),
    ("not the bits of the parameters", parameter(nested(97))),
    ("not the bits of the result", entry(result="Bit")),
    ("not the bits of the result", entry(result={"fields": {"x": "Bit"}})),
]
LEARNER: list[tuple[str, Change]] = [
    ("number of bits of a sample", entry(bits=-1)),
    ("number of bits of a sample", entry(bits=100)),
    ("not that of a learner", entry(bits=1)),
    ("not that of a learner", lambda parts: entry(bits=len(parts[0]["inputs"]))(parts)),
    ("'first' has another shape", lambda parts: parts[1].update(first=parts[1]["first"][1:])),
    ("'first' is not of type", kind("first", np.int8)),
    ("not made of bits", cell("first", 0, 2)),
]


def size(**changes: Any) -> Change:
    return lambda parts: parts[0]["machine"].update(changes)


PROGRAM: list[tuple[str, Change]] = [
    ("no machine", entry(machine=[])),
    ("no known kind", size(kind="rv64")),
    ("other entries than its kind", size(kind="rv32im")),
    ("other entries than its kind", lambda parts: parts[0]["machine"].pop("width")),
    ("width of a word", size(width=True)),
    ("no width that there is", size(width=24)),
    ("size of memory", size(ram=0)),
    ("size of memory", size(ram=MOST_BYTES + 4)),
    ("does not consist of words", size(width=16, ram=33)),
    ("cannot be every address", size(ram=128)),
    ("room for input", size(input=0)),
    ("room for output", size(output=1.0)),
    ("no power of two", size(output=3)),
    ("'image' is not of type", kind("image", np.int8)),
    ("'image' has another shape", lambda parts: parts[1].update(image=parts[1]["image"][:, None])),
    ("larger than its memory", lambda parts: parts[1].update(image=np.zeros(33, np.uint8))),
    ("where the program starts", entry(entry=256)),
    ("where the program starts", entry(entry=-1)),
    ("symbols of the program have no names", entry(symbols=[])),
    ("a symbol of the program", entry(symbols={"a": "1"})),
    ("a symbol of the program", entry(symbols={"a": 1 << 64})),
]
PROCESSOR: list[tuple[str, Change]] = [
    ("other entries than its kind", size(width=32)),
    ("does not consist of words", size(ram=130)),
    ("where the program starts", entry(entry=1 << 32)),
]
ALL = {
    "machine": MACHINE, "grid": GRID, "circuit": CIRCUIT, "function": FUNCTION, "learner": LEARNER,
    "program": PROGRAM, "processor": PROCESSOR,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "reason", "change"), [(name, *case) for name, cases in ALL.items() for case in cases]
)
def test_a_source_out_of_form_is_refused_for_its_reason(name: str, reason: str, change: Change) -> None:
    parts = parts_of(name)
    change(parts)
    with pytest.raises(CheckError, match=reason):
        model_of(*parts)


TWO_BITS = [{"tuple": ["Bit", "Bit"]}, {"list": ["Bit", "Bit"]}, "Int(2)", "UInt(2)"]


@pytest.mark.parametrize("layout", [*TWO_BITS, {"array": "Bit", "length": 2}], ids=str)
def test_every_way_to_name_two_bits_is_known(layout: Any) -> None:
    data, arrays = parts_of("function")
    model_of(data | {"parameters": data["parameters"] | {"c": layout}}, arrays)


def test_a_kind_that_the_checker_does_not_know_is_not_refused() -> None:
    data, arrays = parts_of("machine")
    with pytest.raises(NotProved, match="kind 'cellular automaton'"):
        model_of(data | {"kind": "cellular automaton"}, arrays)


def test_moves_on_the_grid_are_those_of_the_machines() -> None:
    assert dict(sources.MOVES) == dict(model.MOVES)


# Folders


def test_a_folder_is_refused_for_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = Saved.of(SAVED / "relu-of-machine")
    files = {path.name: path.read_bytes() for path in (SAVED / "relu-of-machine").iterdir()}

    def refused(reason: str, error: type[CheckError], **changes: bytes) -> None:
        for name, content in (
            files | {name.replace("_", "."): data for name, data in changes.items()}
        ).items():
            (tmp_path / name).write_bytes(content)
        with pytest.raises(CheckError, match=reason) as raised:
            check(tmp_path)
        assert type(raised.value) is error

    refused(r"config\.json is not JSON", CheckError, config_json=b"{")
    refused("is not JSON", CheckError, config_json=b"[" * 100_000)
    refused("NaN is no number", CheckError, config_json=b'{"version": NaN}')
    refused(r"certificate\.json does not hold a JSON object", CheckError, certificate_json=b"[]")
    for key in ("version", "target", "net", "source", "options"):
        other = json.dumps(genuine.config | {key: None}).encode()
        refused(f"entry '{key}' is missing", CheckError, config_json=other)
    for key in ("version", "target", "claims", "sha256"):
        other = json.dumps(json.loads(files["certificate.json"]) | {key: None}).encode()
        refused(f"entry '{key}' is missing", CheckError, certificate_json=other)
    for version in (0, 1, 4):
        other = json.dumps(genuine.config | {"version": version}).encode()
        refused(f"is of format {version}", Unchecked, config_json=other)
        other = json.dumps(json.loads(files["certificate.json"]) | {"version": version}).encode()
        refused(f"is of format {version}", Unchecked, certificate_json=other)
    refused("config.json is not the file", CheckError, config_json=files["config.json"] + b" ")
    refused("model.safetensors is not the file", CheckError, model_safetensors=b"")
    certificate = json.loads(files["certificate.json"])
    mixed = json.dumps(certificate | {"target": "tape"}).encode()
    refused("different targets", CheckError, certificate_json=mixed)
    for name, content in files.items():
        monkeypatch.setitem(folder.LIMITS, name, len(content) - 1)
        refused(f"{name} has {len(content):,} bytes", Unchecked)
        monkeypatch.setitem(folder.LIMITS, name, len(content))
    monkeypatch.undo()
    for name, most in (("config.json", 2**28), ("model.safetensors", 2**34), ("certificate.json", 2**26)):
        with open(tmp_path / name, "ab") as file:
            file.truncate(most + 1)  # takes no room on the disk
        with pytest.raises(Unchecked, match=f"{name} has {most + 1:,} bytes"):
            check(tmp_path)
        (tmp_path / name).write_bytes(files[name])
    (tmp_path / "config.json").unlink()
    with pytest.raises(Unchecked, match=r"config\.json is missing"):
        check(tmp_path)


def test_a_target_without_a_checker(tmp_path: Path) -> None:
    forged = Saved.of(SAVED.parent / "v2" / "tape")
    forged.config["target"] = "brain"
    forged.write(tmp_path)
    with pytest.raises(CheckError, match="no checker for the target 'brain'"):
        check(tmp_path)


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("passes are not a list", {"passes": {}}),
        ("a pass has no name", {"passes": [{"name": 3}]}),
        ("a pass has no name", {"passes": ["unroll"]}),
        ("defaults are not a list", {"defaults": {}}),
        ("defaults are not a list", {"defaults": [3]}),
        ("option 'cells' of the pass 'unroll' is missing", {"options": {}, "defaults": []}),
        ("the layers are not those that the pass gave", "sum of layers"),
        ("the sum of a pass is not text", "no sum"),
        ("gives something else than saved", "sum of unroll"),
        ("the option 'depth' is for another net", {"options": PAPER | {"depth": 99}}),
        ("the option 'correction' is for another net", {"options": PAPER | {"correction": "none"}}),
        ("not the machine unrolled", {"options": {"steps": 1, "cells": 4}}),
        ("not those of a configuration", {"options": {"steps": 2, "cells": 3}}),
        ("inputs of the circuit are not the cells", {"options": {"steps": 2, "cells": 4, "first": -3}}),
        ("cell 0 is not in the window", {"options": {"steps": 2, "cells": 4, "first": -4}}),
        ("cell 0 is not in the window", {"options": {"steps": 2, "cells": 4, "first": 1}}),
        ("inputs of the circuit are not the cells", {"options": {"steps": 2, "cells": 4, "first": 0}}),
        ("another dimension", {"options": {"steps": 2, "cells": [2, 2]}}),
        ("another dimension", {"options": {"steps": 2, "cells": 4, "first": [0, 0]}}),
        ("side of the window", {"options": {"steps": 2, "cells": 0}}),
        ("side of the window", {"options": {"steps": 2, "cells": 10**9}}),
        ("option 'steps' is no number", {"options": {"steps": -1, "cells": 4}}),
    ],
)
def test_passes_of_another_net_are_refused(reason: str, change: Any, tmp_path: Path) -> None:
    forged = Saved.of(SAVED / "relu-of-machine")
    if change in ("sum of layers", "sum of unroll") or reason.endswith("another net"):
        save(compile(read(BB2), "relu", **PAPER), tmp_path / "net")
        forged = Saved.of(tmp_path / "net")
    entries = copy.deepcopy(forged.config["passes"])
    if change == "sum of layers":
        entries[-1]["sha256"] = entries[0]["sha256"]
    elif change == "no sum":
        entries[0]["sha256"] = None
    elif change == "sum of unroll":
        entries[0]["sha256"] = entries[-1]["sha256"]
    forged.config |= {"passes": entries} if isinstance(change, str) else change
    forged.write(tmp_path / "net")
    with pytest.raises(CheckError, match=reason):
        check(tmp_path / "net")


@pytest.mark.parametrize("correction", ["none", "thirds", "quarters"])
def test_the_sum_of_the_layers_is_that_of_the_net(correction: str, tmp_path: Path) -> None:
    save(compile(SOURCES["circuit"], "relu", correction=correction), tmp_path / "net")
    assert check(tmp_path / "net").verdict == folder.COMPUTES_SOURCE


def test_verdicts_count() -> None:
    assert [folder.tested_on(n) for n in (1, 2, 1234)] == [
        "tested on 1 input",
        "tested on 2 inputs",
        "tested on 1,234 inputs",
    ]


@pytest.mark.parametrize(
    ("scalar", "bits"),
    [
        ("Bit", None), ("UInt(1)", 1), ("Int(17)", 17), ("Float(5, 10)", 16), ("Float(8, 7)", 16),
        ("Fixed(3, 4)", 7), ("UFixed(0, 9)", 9),
    ],
)  # fmt: skip
def test_bits_of_numbers(scalar: str, bits: int | None) -> None:
    assert circuits._width(scalar) == bits
    for bad in (f"{scalar} ", scalar.lower(), "Int(0)", "Float(5)", "Fixed(100, 1)", "UInt(1234567)"):
        with pytest.raises(CheckError, match="neither a bit nor a number"):
            circuits._width(bad)


def test_results_that_are_no_types() -> None:
    data, arrays = source_to_json(trace(lambda a: a + 1, UInt(2)))
    assert circuits.function_of(data, arrays)
    for result in (7, None, ["UInt(2)"], "fields"):
        with pytest.raises(CheckError):
            circuits.function_of({**data, "result": result}, arrays)
