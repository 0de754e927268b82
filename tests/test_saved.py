"""Saved nets: round trips, and folders that were altered, truncated or mixed up."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.circuits import library as circuits
from tapegrad.errors import BrokenNet, InputError, TapegradError
from tapegrad.machines import library as machines
from tapegrad.targets import all_targets


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


FILES = ("config.json", "model.safetensors", "certificate.json")
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


def test_a_net_that_cannot_be_saved_leaves_nothing(tmp_path: Path) -> None:
    machine = machines.ready("increment")
    net = tg.compile(machine, "simplex", inputs=[(machine.start("11"),)])
    with pytest.raises(TapegradError):
        tg.save(net, tmp_path / "net")
    assert not list(tmp_path.iterdir())
