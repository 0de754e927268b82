"""The command line: tables, exit codes, kits that are not as they were made, runtimes that do not behave."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from bench.conformance import table
from tapegrad._conformance import running
from tapegrad._conformance.kit import INDEX, _index_sum, read_kit, write_kit
from tapegrad._conformance.runtimes import Runtime
from tapegrad.cli import app

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kits") / "kit"
    write_kit(folder, ["adder-ternary", "number"], onnx=False)
    return folder


def copied(kit, tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in kit.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_a_kit_comes_back_as_it_was(kit):
    adder, number = read_kit(kit)
    assert (adder.name, number.name) == ("adder-ternary", "number")
    assert number.shortfalls["float16"]
    assert not number.shortfalls["float32"]
    assert set(adder.expected) == set(adder.names)


def test_inputs_come_in_the_order_of_the_network(tmp_path):
    write_kit(tmp_path / "kit", ["attention"], onnx=False)
    (own,) = read_kit(tmp_path / "kit")
    assert list(own.inputs) == ["tokens", "output", "time"]


def altered(folder, name, change):
    path = folder / name
    path.write_bytes(change(path.read_bytes()))


def rewritten(folder, change):
    """An index that says something else of its first network, and has the sum of that."""
    index = json.loads((folder / INDEX).read_bytes())
    change(index["networks"][0])
    (folder / INDEX).write_text(json.dumps({**index, "sha256": _index_sum(index)}))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda f: (f / INDEX).unlink(), "is no kit"),
        (lambda f: altered(f, INDEX, lambda b: b[:-40]), "cannot be read"),
        (lambda f: altered(f, INDEX, lambda b: b.replace(b'"scale": 1', b'"scale": 2', 1)), "was altered"),
        (lambda f: altered(f, INDEX, lambda b: b"[]"), "another format"),
        (lambda f: rewritten(f, lambda own: own.pop("nodes")), "does not say what it must"),
        (lambda f: rewritten(f, lambda own: own["nodes"].pop(0)), "reads what comes after"),
        (lambda f: (f / "number.expected.safetensors").unlink(), "missing"),
        (lambda f: altered(f, "number.net.safetensors", lambda b: b[:-1] + b"\1"), "was altered"),
    ],
)
def test_kits_not_as_they_were_made_are_refused(kit, tmp_path, spoil, said):
    folder = copied(kit, tmp_path)
    spoil(folder)
    with pytest.raises(Exception, match=said):
        read_kit(folder)


def test_a_kit_of_another_version_is_refused(kit, tmp_path, monkeypatch):
    monkeypatch.setattr("tapegrad._conformance.kit.metadata.version", lambda name: "99")
    with pytest.raises(Exception, match="another"):
        read_kit(kit)


def test_reading_outputs_names_the_layer_and_the_unit(kit, tmp_path):
    outputs = load_file(kit / "number.expected.safetensors")
    save_file({k: v.astype(np.float32) for k, v in outputs.items()}, tmp_path / "right.safetensors")
    outputs["rest_7"][9, 0] += 1
    outputs["rest_6"][8, 0] += 1
    save_file(outputs, tmp_path / "wrong.safetensors")
    run = CliRunner().invoke
    right = run(
        app, ["conformance", "read", str(kit), str(tmp_path / "right.safetensors"), "--net", "number"]
    )
    assert right.exit_code == 0, right.output
    assert "50 of 50 layers compared: exact" in right.output
    words = ["conformance", "read", str(kit), str(tmp_path / "wrong.safetensors"), "--net", "number"]
    wrong = run(app, words)
    assert wrong.exit_code == 1
    assert "layer rest_7, unit 0, pattern 9" in wrong.output
    found = json.loads(run(app, [*words, "--json"]).output)["fault"]
    assert (found["layer"], found["place"], found["by"]) == ("rest_7", [9, 0], 1.0)


@pytest.mark.parametrize(
    "words",
    [
        ("--runtime", "nobody"),
        ("--runtime", "numpy", "--level", "highest"),
        ("--format", "float8"),
        ("--net", "md5"),
        ("--runtime", "numpy", "--kit", "nowhere"),
        ("read", "nowhere", "nothing", "--net", "number"),
    ],
)
def test_bad_input_is_said_in_a_line(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["conformance", *words])
    assert found.exit_code != 0
    assert not isinstance(found.exception, KeyError | TypeError | AttributeError)


def jobs(runtime, *nets):
    return [[{"runtime": runtime, "level": "default", "net": net, "format": "float32"} for net in nets]]


def test_an_absent_runtime_is_a_row_with_its_package(monkeypatch, kit):
    monkeypatch.setitem(running.RUNTIMES, "nobody", Runtime("no-such-package", "nobody", ("default",)))
    (row,) = running.run_all(jobs("nobody", "number"), seconds=5, memory=1 << 30, kit=kit)
    assert (row["outcome"], row["reason"]) == ("absent", "pip install no-such-package")


PLANTED = {
    "crash": "import os, signal\nn.prepare = lambda *a: os.kill(os.getpid(), signal.SIGSEGV)",
    "nonsense": "n.prepare = lambda *a: lambda i: {}",
    "hang": "def hang(*a):\n    while True: pass\nn.prepare = hang",
    "memory": "def eat(*a):\n    held = []\n    while True: held.append(bytearray(1 << 26))\nn.prepare = eat",
}


def planted(tmp_path, monkeypatch, code):
    """Something that is done to NumPy's runtime when a process begins."""
    head = "import tapegrad._conformance.runtimes.on_numpy as n\nplain = n.prepare\n"
    (tmp_path / "sitecustomize.py").write_text(head + code + "\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")


def test_a_crash_of_one_network_is_its_row_alone(tmp_path, monkeypatch, kit):
    """The second network crashes; the first and the third have rows of their own."""
    code = PLANTED["crash"].replace(
        "lambda *a: os", "lambda f, *a: plain(f, *a) if f.network.name != 'number' else os"
    )
    planted(tmp_path, monkeypatch, code)
    rows = running.run_all(jobs("numpy", "adder-ternary", "number"), seconds=60, memory=4 << 30, kit=kit)
    assert [row["outcome"] for row in rows] == ["exact", "crash"]
    assert rows[1]["reason"].startswith("signal 11")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "outcome", "said"),
    [
        ("nonsense", "crash", "gave no layer 'bits_again'"),
        ("hang", "timeout", "stopped after"),
        ("memory", "crash", "MiB"),
    ],
)
def test_whatever_a_runtime_does_is_a_row(tmp_path, monkeypatch, kit, kind, outcome, said):
    planted(tmp_path, monkeypatch, PLANTED[kind])
    (row,) = running.run_all(jobs("numpy", "number"), seconds=20, memory=2 << 30, kit=kit)
    assert row["outcome"] == outcome
    assert said in row["reason"]


def test_a_planted_fault_ends_with_code_1_and_its_place(tmp_path, monkeypatch, kit):
    """A kernel that rounds to bfloat16, in the process of the runtime."""
    code = (
        "import ml_dtypes\n"
        "short = lambda x: x.astype(ml_dtypes.bfloat16).astype(x.dtype)\n"
        "n.NumPyRuntime.product_of = lambda self, x, y: short(x) @ short(y)"
    )
    planted(tmp_path, monkeypatch, code)
    words = ["conformance", "--runtime", "numpy", "--net", "adder-ternary,number", "--kit", str(kit)]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 1, found.output
    assert "number: layer cut_15, unit 0, pattern" in found.output
    assert "adder-ternary: layer" not in found.output


@pytest.mark.parametrize(
    ("page", "files"),
    [
        ("conformance", ["processor"]),
        ("conformance", ["processor-speed"]),
        ("accelerator", ["h200-jax", "h200-torch"]),
        ("accelerator", ["h200-jax-short"]),
        ("accelerator", ["h200-packed"]),
    ],
)
def test_tables_of_the_pages_are_those_of_the_saved_results(page, files):
    saved = [ROOT / "docs" / "measured" / f"{name}.json" for name in files]
    assert "\n".join(table(saved)) in (ROOT / "docs" / f"{page}.md").read_text()
