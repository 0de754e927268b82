"""Folders of instances: the same for the same seed, whole or refused, and read by the parser of the
standard."""

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tapegrad._files import line_sum
from tapegrad._vnn import folder as folders
from tapegrad._vnn.adapters.instance import read_instance, read_property
from tapegrad._vnn.folder import ANSWERS, INSTANCES, PLAN, Plan, make, opened, witness_of
from tapegrad._vnn.vnnlib import decimal, written
from tapegrad.cli import app
from tapegrad.errors import FormatError, InputError, TapegradError

PLANNED = Plan(("factoring", "robustness"), (40, 100), 2)


@pytest.fixture(scope="module")
def instances(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("vnn") / "instances"
    make(PLANNED, folder)
    return folder


@pytest.fixture
def copied(instances: Path, tmp_path: Path) -> Path:
    """The same folder, to be spoilt."""
    folder = tmp_path / "copy"
    for path in instances.rglob("*"):
        if path.is_file():
            to = folder / path.relative_to(instances)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(path.read_bytes())
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_instances_are_as_in_the_competition(instances: Path) -> None:
    plan, entries = opened(instances)
    rows = list(csv.reader((instances / INSTANCES).open()))
    assert plan["seconds"] == 60
    assert [row[0] for row in rows] == [f"onnx/{entry['name']}.onnx" for entry in entries]
    for row, entry in zip(rows, entries, strict=True):
        assert row[2] == "60"
        instance = read_instance(instances / row[0], instances / row[1])
        assert sum(len(layer.bias) for layer in instance.layers if layer.relu) == entry["relus"]
        assert instance.threshold == Fraction(1, 2)
        witness = witness_of(entry)
        assert (witness is None) == (entry["answer"] == "unsat")
        if witness is not None:
            assert instance.value([float(own) for own in witness]) == 1
    assert {entry["answer"] for entry in entries} == {"sat", "unsat"}
    told = ((instances / ANSWERS).read_text(), (instances / rows[0][1]).read_text())
    assert "witness" in told[0]
    assert not any(word in told[1] for word in ("witness", "prime", "answer"))


def test_properties_in_the_parser_of_the_standard(instances: Path) -> None:
    vnnlib = pytest.importorskip("vnnlib")
    compat = pytest.importorskip("vnnlib.compat")
    for path in (instances / "vnnlib2").iterdir():
        box, threshold = read_property((instances / "vnnlib" / path.name).read_text())
        query = vnnlib.parse_query_file(str(path))
        (case,) = compat.transform(query)
        assert case.input_box == [(float(low), float(high)) for low, high in box]
        assert str(query).rstrip().endswith(f"(assert (>= Y [0, 0] {float(threshold)}))")


def test_the_same_seed_makes_the_same_files(instances: Path, tmp_path: Path) -> None:
    make(PLANNED, tmp_path / "again")
    assert files(tmp_path / "again") == files(instances)
    make(Plan(("factoring",), (300,), 2, seed=1), tmp_path / "other")
    make(Plan(("factoring",), (300,), 2, seed=2), tmp_path / "another")
    assert files(tmp_path / "other")[ANSWERS] != files(tmp_path / "another")[ANSWERS]


def test_what_was_stopped_goes_on(instances: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(done: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(PLANNED, tmp_path / "part", stop)
    with pytest.raises(FormatError, match="not finished"):
        opened(tmp_path / "part")
    made: list[Any] = []
    asked = folders.asked
    monkeypatch.setattr(folders, "asked", lambda *given: (made.append(given[1].name), asked(*given))[1])
    make(PLANNED, tmp_path / "part")
    assert files(tmp_path / "part") == files(instances)
    before = [json.loads(line)["name"] for line in (instances / ANSWERS).read_text().splitlines()][:3]
    assert not set(made) & set(before)


def test_no_two_instances_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are two primes of three bits, 5 and 7: a third question without a solution is left out."""
    monkeypatch.setattr(folders, "ATTEMPTS", 12)
    entries = make(Plan(("factoring",), (91,), 6), tmp_path / "all")
    assert sorted(e["about"]["number"] for e in entries if e["answer"] == "unsat") == [5, 7]
    left = [json.loads(line) for line in (tmp_path / "all" / ANSWERS).read_text().splitlines()]
    assert [entry["left_out"] for entry in left if "left_out" in entry]
    assert opened(tmp_path / "all")[1] == entries


def _line(folder: Path, **changes: Any) -> None:
    """Alters the first line, and its sum with it where there is one."""
    first, *rest = (folder / ANSWERS).read_text().splitlines()
    entry = json.loads(first) | changes
    if "line_sha256" not in changes:
        entry["line_sha256"] = line_sum(entry)
    (folder / ANSWERS).write_text("\n".join([json.dumps(entry), *rest]) + "\n")


def _plan(folder: Path, **changes: Any) -> None:
    (folder / PLAN).write_text(json.dumps(json.loads((folder / PLAN).read_text()) | changes))


SPOILT = {
    "a network": (lambda f: next((f / "onnx").iterdir()).write_bytes(b"x"), "was altered"),
    "a property": (lambda f: next((f / "vnnlib2").iterdir()).write_text("x"), "was altered"),
    "a file that is gone": (lambda f: next((f / "vnnlib").iterdir()).unlink(), "cannot be read"),
    "an answer": (lambda f: _line(f, answer="sat", line_sha256="0"), "line 1 was altered"),
    "a line cut short": (
        lambda f: (f / ANSWERS).write_bytes((f / ANSWERS).read_bytes()[:-20]),
        "cannot be read",
    ),
    "no line": (lambda f: (f / ANSWERS).write_text("[1]\n"), "cannot be read"),
    "the list": (lambda f: (f / INSTANCES).write_text("x\n"), "was altered"),
    "no list": (lambda f: (f / INSTANCES).unlink(), "not finished"),
    "another version": (lambda f: _plan(f, tapegrad="0.0.1"), "has tapegrad '0.0.1'"),
    "another format": (lambda f: _plan(f, format=99), "has format 99"),
    "no plan": (lambda f: (f / PLAN).unlink(), "no folder of instances"),
    "a plan that is no JSON": (lambda f: (f / PLAN).write_text("{"), "cannot be read"),
    "a plan that is a list": (lambda f: (f / PLAN).write_text("[]"), "holds no plan"),
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_altered_folders_are_refused(copied: Path, spoilt: str) -> None:
    opened(copied)
    spoil, what = SPOILT[spoilt]
    spoil(copied)
    with pytest.raises(TapegradError, match=what):
        opened(copied)


def test_other_options_are_refused(copied: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="made with another seed"):
        make(Plan(PLANNED.families, PLANNED.sizes, 2, seed=5), copied)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("dear reader")
    with pytest.raises(InputError, match="something else than instances"):
        make(PLANNED, tmp_path / "full")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--family", "poetry"], "no family 'poetry'"),
        (["--sizes", "many"], "no list of sizes"),
        (["--sizes", "0"], "number of ReLUs from 1"),
        (["--cnf", "absent.cnf"], "no file absent.cnf"),
    ],
)
def test_bad_options(tmp_path: Path, words: list[str], what: str) -> None:
    result = CliRunner().invoke(app, ["vnn", "make", "-o", str(tmp_path / "out"), *words])
    assert isinstance(result.exception, TapegradError)
    assert what in str(result.exception)


def test_the_command_takes_formulas(tmp_path: Path) -> None:
    pytest.importorskip("pysat")
    (tmp_path / "a.cnf").write_text("p cnf 2 2\n1 2 0\n-1 0\n")
    words = ["vnn", "make", "--family", "none", "--cnf", str(tmp_path / "a.cnf"), "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "1 instances" in result.output
    assert opened(tmp_path / "out")[1][0]["witness"] == ["0.0", "1.0"]


def test_the_command_takes_circuits_and_functions(tmp_path: Path) -> None:
    """A function breaks its contract only where it overflows: 3-bit numbers whose sum is 8 or more."""
    pytest.importorskip("pysat")
    (tmp_path / "contract.py").write_text(
        "from tapegrad import UInt\n"
        "def broken(a: UInt(3), b: UInt(3)):\n    return (a > 3) & (a + b < a)\n"
        "def kept(a: UInt(3), b: UInt(3)):\n    return (a < 4) & (b < 5) & (a + b < a)\n"
    )
    words = ["vnn", "make", "--family", "none", "-o", str(tmp_path / "out")]
    words += [word for name in ("broken", "kept") for word in ("--circuit", f"{tmp_path}/contract.py:{name}")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, (result.output, result.exception)
    broken, kept = opened(tmp_path / "out")[1]
    bits = [int(float(own)) for own in broken["witness"]]
    a, b = (sum(bit << place for place, bit in enumerate(part)) for part in (bits[:3], bits[3:]))
    assert a > 3
    assert a + b >= 8
    assert kept["answer"] == "unsat"
    result = CliRunner().invoke(app, ["vnn", "make", "-o", str(tmp_path / "no"), "--circuit", "adder2"])
    assert "adder2 has 3 output bits" in str(result.exception)


def test_numbers_are_written_in_full() -> None:
    values = [Fraction(own) for own in ("0", "1", "-5/4", "11/16", "1/1048576", "100", "7/25")]
    assert [Fraction(decimal(value)) for value in values] == values
    with pytest.raises(InputError, match="1/3 has no short decimal form"):
        decimal(Fraction(1, 3))
    box = [(value, value + 1) for value in values]
    assert read_property(written(box, Fraction(1, 2), ["a comment"])) == (box, Fraction(1, 2))
    for bad in ("(assert (>= X_0 Y_0))", "(check-sat)", "(assert (>= X_0 0.0))\n(assert (>= Y_0 0.5))"):
        with pytest.raises(ValueError, match=r"is not a bound|has no bound"):
            read_property(bad)
