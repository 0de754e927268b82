"""Saved nets: round trips, nets of earlier formats, and folders that were altered, truncated or mixed up."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import tapegrad as tg
import tapegrad.targets.tape.target as tape_target
import tapegrad_check
from tapegrad.circuits import library as circuits
from tapegrad.circuits.kind import CIRCUIT
from tapegrad.errors import BrokenNet, InputError, TapegradError
from tapegrad.lowering.circuit_machine import straight_line
from tapegrad.machines import library as machines
from tapegrad.source import Option, Rewriting
from tapegrad.targets import all_targets
from tapegrad.targets.extended import load as load_extended
from tapegrad_check import folder as checkers_folder
from tapegrad_check.folder import WITH_NETWORK
from tests.check.forging import Saved


@pytest.fixture(scope="module")
def adder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nets") / "adder"
    tg.save(tg.compile(circuits.ready("adder2"), "relu"), folder)
    return folder


@pytest.fixture
def broken(adder_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(adder_folder, tmp_path / "net"))


@pytest.mark.parametrize("target", all_targets(), ids=lambda target: target.name)
def test_every_target_survives_a_round_trip(target, tmp_path: Path) -> None:
    example = target.examples()[0]
    net = tg.compile(example.source, target.name, **example.options)
    tg.save(net, tmp_path / "net")
    assert tg.check(tmp_path / "net").statements
    loaded = tg.load(tmp_path / "net")
    ours, theirs = net.net.arrays(), loaded.net.arrays()
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    report = tg.verify(loaded, [example.inputs], steps=example.steps)
    assert report.agreed, report


def test_a_net_with_passes_is_loaded_with_its_passes(tmp_path: Path) -> None:
    net = tg.compile(machines.ready("increment"), "relu", steps=8, cells=10)
    tg.save(net, tmp_path / "net")
    loaded = tg.load(tmp_path / "net")
    assert [p.name for p in loaded.passes] == [p.name for p in net.passes]
    assert tg.verify(loaded, [("11",)], engine="fast").agreed


FILES = ("config.json", "network.json", "model.safetensors", "certificate.json")
DAMAGES = ("missing", "empty", "truncated", "flipped", "garbage", "folder")
# One bit of the certificate may be a blank; the tests of the checkers change its claims.
CASES = [(n, d) for n in FILES for d in DAMAGES if (n, d) != ("certificate.json", "flipped")]


@pytest.mark.parametrize(("name", "damage"), CASES)
def test_damaged_files_are_refused(broken: Path, name: str, damage: str) -> None:
    file = broken / name
    content = file.read_bytes()
    file.unlink()
    if damage == "folder":
        file.mkdir()
    elif damage != "missing":
        middle = len(content) // 2
        file.write_bytes(
            {
                "empty": b"",
                "truncated": content[:middle],
                "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
                "garbage": bytes(range(256)) * 4,
            }[damage]
        )
    for action in (tg.load, tg.check):
        with pytest.raises(BrokenNet):
            action(broken)


def test_files_of_two_nets_do_not_mix(broken: Path, tmp_path: Path) -> None:
    tg.save(tg.compile(circuits.ready("parity4"), "relu"), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "model.safetensors", broken / "model.safetensors")
    with pytest.raises(BrokenNet, match="not the file that the certificate was issued for"):
        tg.load(broken)


def test_a_certificate_of_another_target_or_version_is_refused(broken: Path) -> None:
    certificate = json.loads((broken / "certificate.json").read_text())
    for change in ({"target": "tape"}, {"version": 99}, {"claims": []}):
        (broken / "certificate.json").write_text(json.dumps(certificate | change))
        with pytest.raises(BrokenNet):
            tg.check(broken)


def test_no_folder_is_no_net(tmp_path: Path) -> None:
    with pytest.raises(BrokenNet, match="not a folder"):
        tg.load(tmp_path / "nowhere")


def test_saving_leaves_other_folders_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    net = tg.compile(circuits.ready("parity4"), "relu")
    with pytest.raises(InputError, match=r"thesis\.txt"):
        tg.save(net, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_saving_again_replaces_the_net(broken: Path) -> None:
    tg.save(tg.compile(circuits.ready("parity4"), "relu"), broken)
    assert tg.load(broken).source.name == "parity4"
    assert len(list(broken.parent.iterdir())) == 1


@pytest.mark.parametrize("reads", [1, 2, 3])
@pytest.mark.parametrize("in_one_step", [True, False])
def test_a_reader_beside_a_writer_sees_one_net_or_the_other(
    reads: int, in_one_step: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many files were read, another net is saved under the name; or its first files only, where
    folders cannot change places, and the rest a little later."""
    nets = [tg.compile(tg.read(name), "relu") for name in ("adder2", "majority5")]
    folders = [tmp_path / "net", tmp_path / "other"]
    for net, folder in zip(nets, folders, strict=True):
        tg.save(net, folder)
    read, seen = checkers_folder.bytes_of, []
    files = [name for name in checkers_folder.LIMITS if (folders[1] / name).exists()]

    def beside(path: Path, limit: int) -> bytes:
        if len(seen) == reads:
            if in_one_step:
                tg.save(nets[1], folders[0])
            else:
                (folders[0] / files[0]).unlink()
        if len(seen) == reads + 1 and not in_one_step:
            for name in files:
                shutil.copy(folders[1] / name, folders[0] / name)
        seen.append(path.name)
        return read(path, limit)

    monkeypatch.setattr(checkers_folder, "bytes_of", beside)
    found = tapegrad_check.read_folder(folders[0])
    monkeypatch.undo()
    whole = [tapegrad_check.read_folder(folder).config for folder in folders]
    assert found.config in whole
    assert reads == len(files) or found.config == whole[1]


def test_a_folder_that_is_written_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tg.save(tg.compile(tg.read("adder2"), "relu"), tmp_path / "net")
    read, touched = checkers_folder.bytes_of, []

    def beside(path: Path, limit: int) -> bytes:
        touched.append(path)
        os.utime(path, (0, len(touched)))
        return read(path, limit)

    monkeypatch.setattr(checkers_folder, "bytes_of", beside)
    with pytest.raises(tapegrad_check.CheckError, match="written again and again"):
        tapegrad_check.read_folder(tmp_path / "net")
    assert len(touched) == len(list((tmp_path / "net").iterdir())) * checkers_folder.ATTEMPTS


def test_a_net_that_cannot_be_saved_leaves_nothing(tmp_path: Path) -> None:
    machine = machines.ready("increment")
    net = tg.compile(machine, "simplex", inputs=[(machine.start("11"),)])
    with pytest.raises(TapegradError):
        tg.save(net, tmp_path / "net")
    assert not list(tmp_path.iterdir())


def test_a_source_that_cannot_be_saved_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    net = tg.compile(circuits.ready("parity4"), "relu")

    class Strange:
        name = "strange"

    with pytest.raises(InputError, match="a Strange is not a source"):
        tg.save(replace(net, source=Strange()), tmp_path / "net")
    assert not list(tmp_path.iterdir())


class Killed(BaseException):
    """Stands for the end of the program at any moment: no handler of errors runs."""


@pytest.mark.parametrize("survived", range(5))
def test_a_program_killed_while_it_replaces_a_net_leaves_the_old_the_new_or_a_refusal(
    broken: Path, survived: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where folders cannot change places in one step; test_boundary.py has the other case."""
    moved: list[Path] = []
    move = os.replace

    def until_killed(before: Path, after: Path) -> None:
        if Path(after).parent == broken:
            if len(moved) == survived:
                raise Killed
            moved.append(after)
        move(before, after)

    monkeypatch.setattr("tapegrad._files._exchanged", lambda one, other: False)
    monkeypatch.setattr(os, "replace", until_killed)
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    net = tg.compile(circuits.ready("parity4"), "relu")
    if survived < len(FILES):
        with pytest.raises(Killed):
            tg.save(net, broken)
    else:
        tg.save(net, broken)
    monkeypatch.undo()
    assert sorted(p.name for p in broken.iterdir()) == sorted(FILES)
    if survived in (0, len(FILES)):
        assert tg.load(broken).source.name == ("adder2" if survived == 0 else "parity4")
    else:
        with pytest.raises(BrokenNet, match="not the file that the certificate was issued for"):
            tg.load(broken)
    left = [p for p in broken.parent.iterdir() if p != broken]
    assert len(left) == 1
    os.utime(left[0], (0, 0))
    tg.save(net, broken)
    assert [p.name for p in broken.parent.iterdir()] == [broken.name]
    assert tg.load(broken).source.name == "parity4"


KEPT = Path(__file__).parent / "saved_nets"
"""Nets that `make.py` there wrote with the versions of their time."""
EVERY = [folder.relative_to(KEPT).as_posix() for folder in sorted(KEPT.glob("v*/*"))]
REPLACED = [name for name in EVERY if name.startswith("v2/") and name[3:].split("-")[0] in WITH_NETWORK]
"""Of format 2, though the target has a graph since."""
OLD = [name for name in EVERY if name not in REPLACED]
INPUTS: dict[str, list[Any]] = {"simplex": [("11",), ("0",)], "tape": [("101",)]}


def test_every_target_is_kept() -> None:
    kept = {Path(name).name.split("-")[0] for name in OLD}
    assert kept == {target.name for target in all_targets()} | {"extended"}


@pytest.mark.parametrize("name", OLD)
def test_old_nets_load_run_and_check(name: str) -> None:
    assert tapegrad_check.check(KEPT / name).statements
    if name.endswith("extended"):
        extended, run = load_extended(KEPT / name)
        assert np.array_equal(extended.train().theta, run.theta)
        return
    net = tg.load(KEPT / name)
    kind = Path(name).name
    inputs = INPUTS.get(kind) or ([()] if isinstance(net.source, tg.TuringMachine) else None)
    report = tg.verify(net, inputs)
    assert report.agreed, report


@pytest.mark.parametrize("name", REPLACED)
def test_a_net_of_format_2_is_refused_where_the_target_has_a_graph(name: str) -> None:
    for read, kind in ((tapegrad_check.check, tapegrad_check.Unchecked), (tg.load, BrokenNet)):
        with pytest.raises(kind, match=r"of format 2.*in place of the network's graph.*Compile and save"):
            read(KEPT / name)


def test_a_net_of_format_1_is_refused_with_the_reason(tmp_path: Path) -> None:
    """It does not record how its source was lowered, so that nothing binds it to that."""
    saved = Saved.of(KEPT / "v3" / "tape")
    saved.config["version"] = 1
    saved.config["passes"] = [entry["name"] for entry in saved.config["passes"]]
    saved.write(tmp_path / "net")
    with pytest.raises(tapegrad_check.Unchecked, match=r"of format 1.*does not record how"):
        tapegrad_check.check(tmp_path / "net")
    with pytest.raises(BrokenNet, match=r"of format 1.*does not record how.*Compile and save the net again"):
        tg.load(tmp_path / "net")
    saved.config["version"] = 4
    saved.write(tmp_path / "net")
    with pytest.raises(BrokenNet, match=r"of format 4.*or update this program"):
        tg.load(tmp_path / "net")


def test_a_default_that_changes_does_not_change_an_old_net(monkeypatch: pytest.MonkeyPatch) -> None:
    was = tg.load(KEPT / "v3" / "tape-of-circuit")
    (lowering,) = (own for own in CIRCUIT.lowerings if own.after == "turing machine")
    monkeypatch.setitem(cast(dict, lowering.options), "tapes", Option(2, "more tapes than before"))
    monkeypatch.setattr(straight_line, "__defaults__", (2, 4))
    assert tg.compile(was.source, "tape").lowered != was.lowered  # the new default matters
    again = tg.load(KEPT / "v3" / "tape-of-circuit")
    assert again.lowered == was.lowered
    assert tg.verify(again).agreed


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("v3/tape", "saved by version 0.2.0 of tapegrad, and the pass 'stay-free' of this version gives"),
        ("v3/extended", "saved by version 0.2.0 of tapegrad, and the pass 'stay-free' of this version gives"),
    ],
)
def test_a_net_whose_pass_has_changed_is_refused(
    name: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The changed pass gives a machine with the same states, and no rule for one of the situations."""
    original = tape_target.stay_free

    def changed(machine: tg.TuringMachine) -> Rewriting:
        rewriting = original(machine)
        after = cast(tg.TuringMachine, rewriting.after)
        return replace(rewriting, after=replace(after, rules=dict(list(after.rules.items())[:-1])))

    monkeypatch.setattr(tape_target, "stay_free", changed)
    with pytest.raises(BrokenNet, match=reason):
        (load_extended if name.endswith("extended") else tg.load)(KEPT / name)


def test_a_pass_that_is_no_longer_taken_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape_target, "_has_stay_moves", lambda machine: False)
    with pytest.raises(BrokenNet, match=r"its passes \(.*stay-free.*\) are not those of this version"):
        tg.load(KEPT / "v3" / "tape")


def test_another_lowered_source_than_the_saved_one_is_noticed(tmp_path: Path) -> None:
    net = Path(shutil.copytree(KEPT / "v3" / "tape", tmp_path / "net"))
    config = json.loads((net / "config.json").read_text())
    config["lowered"]["rules"].pop()
    (net / "config.json").write_text(json.dumps(config))
    certificate = json.loads((net / "certificate.json").read_text())
    certificate["sha256"]["config.json"] = hashlib.sha256((net / "config.json").read_bytes()).hexdigest()
    (net / "certificate.json").write_text(json.dumps(certificate))
    with pytest.raises(BrokenNet, match="lowered source"):
        tg.load(net)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_witnesses_do_not_depend_on_the_order_of_sets(seed: str) -> None:
    """Python orders sets of words anew in every process."""
    program = "import sys, tapegrad; tapegrad.load(sys.argv[1]); tapegrad.load(sys.argv[2])"
    nets = [KEPT / "v3" / "tape", KEPT / "v3" / "tape-of-circuit"]
    subprocess.run(
        [sys.executable, "-c", program, *nets], env=os.environ | {"PYTHONHASHSEED": seed}, check=True
    )


@pytest.mark.parametrize(
    ("target", "options", "name", "value"),
    [
        ("tape", {"cells": 16}, "network.edge_from.index", 10**9),
        ("tape", {"cells": 16}, "network.edge_to.index", -1),
        ("tape", {"cells": 16}, "network.right.value", 7),
        ("simplex", {"inputs": [[]]}, "network.edge_to.index", 10**9),
        ("simplex", {"inputs": [[]]}, "state", 50),
        ("simplex", {"inputs": [[]]}, "cells", 9),
    ],
)
def test_numbers_that_lead_nowhere_are_not_followed(
    target: str, options: dict[str, Any], name: str, value: int, tmp_path: Path
) -> None:
    """10^9 edges took all memory, and an engine reads whatever lies beyond the end of an array."""
    tg.save(tg.compile(tg.read("1RB1LB_1LA1RZ"), target, **options), tmp_path / "net")
    saved = Saved.of(tmp_path / "net")
    saved.arrays[name] = saved.arrays[name].copy()
    saved.arrays[name].reshape(-1)[0] = value
    saved.write(tmp_path / "net")
    with pytest.raises(BrokenNet, match=r"no vertex|more than a cell|there is not|columns beyond"):
        tg.load(tmp_path / "net")


def test_a_window_may_begin_left_of_the_input(tmp_path: Path) -> None:
    tg.save(tg.compile(tg.read("palindrome"), "relu", steps=3, cells=4, first=-1), tmp_path / "net")
    assert tg.check(tmp_path / "net").verdict == "computes this source, for all inputs"
    assert tg.load(tmp_path / "net").options["first"] == -1


@pytest.mark.parametrize("value", [-1, 2**63, 10**400])
def test_an_option_that_no_net_is_compiled_with(value: int, tmp_path: Path) -> None:
    """`verify` runs a program for as many steps as its options say, and fell over these."""
    tg.save(tg.compile(tg.read("subleq-echo"), "transformer", steps=60), tmp_path / "net")
    saved = Saved.of(tmp_path / "net")
    saved.config["options"]["steps"] = value
    saved.write(tmp_path / "net")
    for reader in (tg.load, tg.check):
        with pytest.raises(BrokenNet, match="the option 'steps' is no number"):
            reader(tmp_path / "net")


@pytest.mark.parametrize("value", [-1, 10**9, 2**63 - 1])
@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("paper", "filter.0.columns"),
        ("paper", "filter.3.rows"),
        ("paper", "rules.index"),
        ("practical", "rules.index"),
    ],
)
def test_filters_read_nothing_beyond_their_ends(form: str, name: str, value: int, tmp_path: Path) -> None:
    """Loops in compiled code check no bounds, nor does NumPy's bincount at 2^63 - 1: it wrote beyond them."""
    tg.save(tg.compile(tg.read("1RB1LB_1LA1RZ"), "rcnn", form=form), tmp_path / "net")
    saved = Saved.of(tmp_path / "net")
    saved.arrays[f"network.{name}"] = saved.arrays[f"network.{name}"].copy()
    saved.arrays[f"network.{name}"][-1] = value
    saved.write(tmp_path / "net")
    with pytest.raises(BrokenNet, match=r"outside its|takes columns beyond"):
        tg.load(tmp_path / "net")


@pytest.mark.parametrize("cells", [10**9, (1 << 22) + 1, 1, True, 16.0])
def test_a_tape_longer_than_can_be_compiled_is_not_loaded(cells: Any, tmp_path: Path) -> None:
    """A run takes memory for every cell: 10^9 of them, in a folder of 20 KB, were 15 GB."""
    tg.save(tg.compile(tg.read("1RB1LB_1LA1RZ"), "tape", cells=16), tmp_path / "net")
    saved = Saved.of(tmp_path / "net")
    for name in ("T", "H"):
        saved.beside["network.json"]["inputs"][name]["shape"][0] = cells
    saved.write(tmp_path / "net")
    with pytest.raises(
        tg.TapegradError, match=r"reads values of shapes|no number from 0|joins|takes columns"
    ):
        tg.load(tmp_path / "net")


@pytest.mark.parametrize("what", ["finished", "rate", "gate"])
def test_what_load_lets_through_is_refused_by_check_and_seen_when_it_runs(what: str, tmp_path: Path) -> None:
    """`load` looks at sums and shapes, and whether the network is a loss of these constants."""
    tg.save(tg.compile("learn-parity2", "emulator"), tmp_path / "net")
    forged = Saved.of(tmp_path / "net")
    if what == "finished":
        forged.arrays["network.finished.index"] = 2 * forged.arrays["network.finished.index"]
    elif what == "rate":
        forged.beside["network.json"]["training"]["updates"]["weights"]["rate"] *= 2
    else:
        forged.config["net"]["gate"] *= 2
    forged.write(tmp_path / "forged")
    if what == "finished":
        assert not tg.verify(tg.load(tmp_path / "forged")).agreed
    else:
        with pytest.raises(BrokenNet, match="not the loss of an emulating one"):
            tg.load(tmp_path / "forged")
    with pytest.raises(tapegrad_check.CheckError):
        tapegrad_check.check(tmp_path / "forged")
