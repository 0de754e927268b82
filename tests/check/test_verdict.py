"""What a verdict is about: the source that it names, the bytes that are loaded, a source of one's own."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import tapegrad as tg
import tapegrad_check
from tapegrad.errors import BrokenNet
from tapegrad.machines.model import Rule
from tapegrad_check import BOUNDED, SourceSaved
from tapegrad_check.__main__ import main
from tapegrad_check.folder import OF_NETWORK
from tests.check.forging import Saved
from tests.test_cli import tapegrad

MACHINE = tg.read("1RB1LB_1LA1RZ")
assert isinstance(MACHINE, tg.TuringMachine)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nets") / "beaver.net"
    tg.save(tg.compile(MACHINE, "tape", cells=8), path)
    return path


def test_the_second_line_says_of_which_source(folder: Path) -> None:
    report = tapegrad_check.check(folder)
    assert report.source is not None
    kind, name, size, sha256 = (getattr(report.source, own) for own in ("kind", "name", "size", "sha256"))
    assert (kind, name, size) == ("turing machine", MACHINE.name, "4 rules")
    assert (
        str(report).splitlines()[1] == f"  source: turing machine {MACHINE.name!r}, 4 rules, sha256 {sha256}"
    )
    assert report.to_json()["source"]["sha256"] == sha256


def test_sizes_are_those_of_each_kind(tmp_path: Path) -> None:
    sources = {"adder2": "7 gates", "subleq-echo": "14 bytes", "rasp-length": "3 operations"}
    targets = {"adder2": "relu", "subleq-echo": "transformer", "rasp-length": "decoder"}
    for name in sources:
        tg.save(tg.compile(name, targets[name]), tmp_path / name)
    found = {name: SourceSaved.of(tapegrad_check.read_folder(tmp_path / name)) for name in sources}
    assert {name: own and own.size for name, own in found.items()} == sources


def test_a_source_of_ones_own_must_be_the_one_in_the_folder(folder: Path) -> None:
    assert isinstance(MACHINE, tg.TuringMachine)
    renamed = replace(MACHINE, name="mine", rules=dict(reversed(list(MACHINE.rules.items()))))
    assert tg.check(folder, source=renamed).code == 0
    other = replace(MACHINE, rules={**MACHINE.rules, ("A", ("0",)): Rule(("1",), (-1,), "B")})
    with pytest.raises(BrokenNet, match="another source than yours: it holds a turing machine"):
        tg.check(folder, source=other)


def test_the_commands_take_a_source_and_a_sum(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tapegrad("check", str(folder), "--source", "1RB1LB_1LA1RZ").returncode == 0
    other = tapegrad("check", str(folder), "--source", "1LB1LB_1LA1RZ")
    assert (other.returncode, other.stdout) == (1, "")
    assert "another source than yours" in other.stderr
    report = tapegrad_check.check(folder)
    assert report.source is not None
    assert main([str(folder), "--sha256", report.source.sha256.upper()]) == 0
    assert main([str(folder), "--sha256", "0" * 64, "--json"]) == 1
    assert (
        "another source" in json.loads(capsys.readouterr().out.partition("{\n")[2].join(("{", "")))["error"]
    )


def test_what_is_loaded_is_what_was_proved(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tg.load(folder, proved=True).run().steps == tg.load(folder).run().steps
    read: list[object] = []
    reader = tapegrad_check.read_folder
    monkeypatch.setattr(tapegrad_check, "read_folder", lambda path: read.append(path) or reader(path))
    tg.load(folder, proved=True)
    assert read == [folder]


def test_a_net_that_is_not_proved_in_full_is_not_loaded_as_proved(folder: Path, tmp_path: Path) -> None:
    forged = Saved.of(folder)
    name = next(
        own for own, array in forged.arrays.items() if own.startswith(OF_NETWORK) and array.dtype.kind == "f"
    )
    forged.arrays[name] = forged.arrays[name] * 1.5
    forged.write(tmp_path / "forged.net")
    with pytest.raises(BrokenNet):
        tg.load(tmp_path / "forged.net", proved=True)
    bounded = tg.compile("learn-parity1", "emulator", form="noise-tolerant", samples=1)
    tg.save(bounded, tmp_path / "bounded.net")
    assert tg.check(tmp_path / "bounded.net").code == BOUNDED
    assert tg.load(tmp_path / "bounded.net").target.name == "emulator"
    with pytest.raises(BrokenNet, match="not proved in full: it computes this source, for the first"):
        tg.load(tmp_path / "bounded.net", proved=True)
