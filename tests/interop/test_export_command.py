"""`tapegrad export`: what it writes opens in the tool it is for, and what it cannot write leaves nothing."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import tapegrad_check
from tapegrad.circuits import formats as circuit_formats
from tapegrad.circuits.library import ready as ready_circuit
from tapegrad.cli import app
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.machines import formats as machine_formats
from tapegrad.machines.library import ready
from tests.interop.test_without_tapegrad import recipe


def export(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["export", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def adder(tmp_path_factory):
    """A saved `relu` net."""
    folder = tmp_path_factory.mktemp("export") / "adder.net"
    result = CliRunner().invoke(app, ["compile", "adder8", "--target", "relu", "-o", str(folder)])
    assert result.exit_code == 0
    return folder


def sums(circuit) -> bool:
    random = np.random.default_rng(2)
    bits = random.integers(0, 2, (500, 16)).astype(bool)
    place = 1 << np.arange(9)
    outputs = circuit.wire_values(bits)[circuit.output_wires].T
    return np.array_equal(outputs @ place, bits[:, :8] @ place[:8] + bits[:, 8:] @ place[:8])


@pytest.mark.parametrize("form", ["aiger", "aiger-binary", "blif"])
def test_circuits_of_a_net_and_of_a_source_still_add(adder, tmp_path, form):
    for source in (adder, "adder8"):
        export(source, "--to", form, "-o", tmp_path / "out")
        circuit = circuit_formats.read((tmp_path / "out").read_bytes())
        assert circuit.inputs == ready_circuit("adder8").inputs
        assert sums(circuit)


def test_a_saved_net_is_read_once(adder, tmp_path, monkeypatch):
    """Its weights may be gigabytes; whether it is in disguise stands in its config."""
    read, seen = tapegrad_check.read_folder, []
    monkeypatch.setattr(tapegrad_check, "read_folder", lambda path: (seen.append(path), read(path))[1])
    export(adder, "--to", "blif", "-o", tmp_path / "out")
    assert len(seen) == 1


def test_a_config_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "config.json").write_text("[")
    with pytest.raises(BrokenNet, match="not JSON"):
        export(tmp_path, "--to", "blif", "-o", tmp_path / "out")


@pytest.mark.parametrize("form", ["bbchallenge", "yaml"])
def test_machines_come_back_equal(tmp_path, form):
    machine = ready("busy-beaver-4x2")
    export("busy-beaver-4x2", "--to", form, "-o", tmp_path / "out")
    again = machine_formats.read((tmp_path / "out").read_bytes()).machine
    assert dict(again.rules) == dict(machine.rules)


def test_onnx_file(adder, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    said = json.loads(export(adder, "--to", "onnx", "-o", tmp_path / "adder.onnx", "--json"))
    assert said["bytes"]["adder.onnx"] == (tmp_path / "adder.onnx").stat().st_size
    run = runtime.InferenceSession(tmp_path / "adder.onnx", providers=["CPUExecutionProvider"])
    bits = np.array([[1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]], np.float32)
    assert (run.run(None, {"bits": bits})[0][0] > 0).tolist() == [False, False, True] + 6 * [False]


def test_torch_folder_opens_in_plain_pytorch(adder, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    export(adder, "--to", "torch", "-o", tmp_path / "adder8.torch")
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    exec(recipe("torch"), found)
    bits = np.random.default_rng(0).integers(0, 2, (200, 16))
    outputs = found["model"](torch.tensor(bits, dtype=torch.float32)).detach().numpy() > 0
    place = 1 << np.arange(9)
    assert np.array_equal(outputs @ place, bits[:, :8] @ place[:8] + bits[:, 8:] @ place[:8])
    assert found["names"][:2] == ["a[0]", "a[1]"]


def test_a_circuit_leaves_as_the_language_model_of_its_program(tmp_path):
    export("adder2", "-t", "decoder", "--to", "huggingface", "-o", tmp_path / "adder2")
    config = json.loads((tmp_path / "adder2/config.json").read_text())
    assert config["architectures"] == ["MobileBertForTokenClassification"]
    assert sorted(config["id2label"].values()) == ["0", "1"]


def test_what_cannot_be_written_leaves_nothing(adder, tmp_path, monkeypatch):
    out = tmp_path / "out"
    cases = [
        (("adder8", "--to", "onnx"), InputError, "target"),
        (("adder8", "--to", "paper"), InputError, "no form"),
        ((adder, "--target", "relu", "--to", "onnx"), InputError, "already"),
        (("increment", "--to", "aiger"), Refused, "no circuit"),
        (("adder8", "--to", "bbchallenge"), Refused, "no machine"),
        (("increment", "-t", "decoder", "--to", "transformer-lens"), InputError, "huggingface"),
        (("increment", "-t", "tape", "--to", "onnx-plain"), Refused, "no chain of ReLU"),
    ]
    for arguments, error, words in cases:
        with pytest.raises(error, match=words):
            export(*arguments, "-o", out)
    monkeypatch.setitem(sys.modules, "onnx", None)
    for name in [name for name in sys.modules if name.startswith("tapegrad.interop.onnx")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(Refused, match=r"tapegrad\[onnx\]"):
        export(adder, "--to", "onnx", "-o", out)
    assert not out.exists()
