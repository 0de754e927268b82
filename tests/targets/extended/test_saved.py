"""Trained extended networks in folders: what was trained comes back, and nothing that was tampered with."""

import hashlib
import json
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

import tapegrad as tg
from tapegrad.circuits.types import Int
from tapegrad.cli import app
from tapegrad.errors import BrokenNet, InputError, Refused
from tapegrad.machines import library as machines
from tapegrad.targets.extended import MLP, FixedPoint, FloatingPoint, linear, load, save
from tapegrad.targets.extended.examples import EXAMPLES, TrainingExample
from tests.targets.extended.algorithms import copy_bits, training

X = np.array([[1.0, -2.0], [0.5, 1.5]])
Y = np.array([[-1.0], [0.5]])
FORM = FixedPoint(4, 1)


def copying(**options: Any):
    return training(linear(2), copy_bits(12, **options), X, Y, data_format=FORM, cells=128 if options else 64)


def of_function():
    def sums(x, y):
        return [x[0][0] + y[1][0], x[1][1] - y[0][0], Int(4)(3)]

    return training(linear(2), sums, X, Y, data_format=FORM)


def floating():
    x, y = np.array([[3.5, -0.25], [0.75, 6.0]]), np.array([[0.5], [-1.25]])
    return training(linear(2), copy_bits(15), x, y, data_format=FloatingPoint(2, 2), cells=64)


def hidden_layer():
    x, y = np.array([[1.0, -2.0], [0.5, 1.5]]), np.array([[-1.0], [0.5]])
    form = FixedPoint(4, 1, continuous=True)
    return training(MLP((2, 1, 1)), copy_bits(20), x, y, data_format=form, cells=64)


BUILDERS = {
    "machine": copying,
    "rewritten machine": lambda: copying(blank="_", stay=True),
    "function": of_function,
    "floating point": floating,
    "hidden layer": hidden_layer,
}


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_a_trained_network_comes_back_and_checks(build, tmp_path: Path) -> None:
    extended = build()
    run = extended.train()
    save(extended, run, tmp_path / "net")
    assert tg.check(tmp_path / "net").verdict == "tested on 1 input"
    again, found = load(tmp_path / "net")
    assert (found.steps, found.engine, found.loss) == (run.steps, run.engine, run.loss)
    for ours, theirs in zip(run.weights.weights, found.weights.weights, strict=True):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(found.theta, run.theta)
    assert np.array_equal(again.primary_output(found.theta), run.output)
    retrained = again.train()
    assert retrained.steps == run.steps
    assert np.array_equal(retrained.theta, run.theta)


@pytest.fixture(scope="module")
def trained():
    extended = copying()
    return extended, extended.train()


@pytest.fixture
def folder(trained, tmp_path: Path) -> Path:
    extended, run = trained
    save(extended, run, tmp_path / "net")
    return tmp_path / "net"


@pytest.mark.parametrize("name", ["config.json", "network.json", "model.safetensors"])
def test_a_flipped_bit_is_noticed(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    for action in (load, tg.check):
        with pytest.raises(BrokenNet):
            action(folder)


def tamper(folder: Path, name: str, index: Any, value: float) -> None:
    """Changes an array and forges the sum, as one would who wants to deceive."""
    arrays = load_file(folder / "model.safetensors")
    arrays[name] = arrays[name].copy()
    arrays[name][index] = value
    save_file(arrays, folder / "model.safetensors")
    forge(folder)


def forge(folder: Path, **claims: Any) -> None:
    certificate = json.loads((folder / "certificate.json").read_text())
    for name in certificate["sha256"]:
        certificate["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    certificate["claims"] |= claims
    (folder / "certificate.json").write_text(json.dumps(certificate))


@pytest.mark.parametrize("name", ["s", "T", "H", "z"])
def test_weights_that_training_did_not_leave_are_refused(folder: Path, name: str, trained) -> None:
    extended, run = trained
    index: Any = (0, 0)
    if name == "s":
        index = int(np.flatnonzero(extended.net.graph.vertex_weight == 0)[0])
    if name == "T":  # a bit of theta
        tape, cell, _ = extended.algorithm.result[0]
        index = (cell - extended.net.first_cell, tape - extended.net.read_only)
    before = np.asarray(getattr(run.weights.weights, name))[index]
    tamper(folder, name, index, {"s": 2.0, "T": -before, "H": 2.0, "z": 3.0}[name])
    for action in (load, tg.check):
        with pytest.raises(BrokenNet):
            action(folder)


@pytest.mark.parametrize(
    "claims", [{"theta": [9.0, 9.0, 9.0]}, {"output": [[0.0], [0.0]]}, {"final_loss": 0.25}]
)
def test_claims_that_the_weights_do_not_bear_out_are_refused(folder: Path, claims: dict[str, Any]) -> None:
    forge(folder, **claims)
    for action in (load, tg.check):
        with pytest.raises(BrokenNet):
            action(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"cells": 32},
        {"tapes": []},
        {"tapes": [[99]]},
        {"rule": {"name": "perceptron", "epochs": 1}},
        {"primary": {"sizes": [2, 3], "activation": "relu"}},
        {"primary": {"sizes": [2], "activation": "relu"}},
        {"weight_format": {"kind": "fixed", "width": 8, "fraction": 1, "continuous": False}},
        {"data_format": {"kind": "roman"}},
        {"data_format": {"kind": "fixed", "width": "4"}},
        {"states": ["a"]},
        {"training": {}},
    ],
)
def test_a_description_that_does_not_fit_is_refused(folder: Path, change: dict[str, Any]) -> None:
    config = json.loads((folder / "config.json").read_text())
    config["net"] |= change
    (folder / "config.json").write_text(json.dumps(config))
    forge(folder)
    with pytest.raises(BrokenNet):
        load(folder)


@pytest.mark.parametrize("name", ["data_cells.to", "data_bits.index", "result_cells.index"])
@pytest.mark.parametrize("value", [-1, 64])
def test_places_beside_the_tapes_are_refused(folder: Path, name: str, value: int) -> None:
    tamper(folder, f"network.{name}", 3, value)
    for action in (load, tg.check):
        with pytest.raises(BrokenNet, match="columns"):
            action(folder)


def test_tapes_that_show_no_configuration_are_refused(tmp_path: Path) -> None:
    """Of three symbols each is two bits; there is no fourth, which nobody reads here."""
    own = copying(blank="_", stay=True)
    save(own, own.train(), tmp_path / "net")
    load(tmp_path / "net")
    blank = load_file(tmp_path / "net" / "model.safetensors")["network.blank_tapes.value"]
    tamper(tmp_path / "net", "network.blank_tapes.value", (slice(None), -1), 1.0)
    assert (blank[:, -1] == -1).all()
    assert tg.check(tmp_path / "net").verdict == "tested on 1 input"
    with pytest.raises(BrokenNet):
        load(tmp_path / "net")


def test_nets_and_trained_networks_are_not_mixed_up(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BrokenNet, match=r"extended\.load"):
        tg.load(folder)
    tg.save(tg.compile(machines.ready("busy-beaver-2x2"), "tape", cells=16), tmp_path / "tape")
    with pytest.raises(BrokenNet, match=r"target 'tape'.*tapegrad\.load"):
        load(tmp_path / "tape")


@pytest.mark.slow
def test_what_cannot_be_written_down_leaves_nothing(trained, tmp_path: Path) -> None:
    class Doubled(eqx.Module):
        weights: int = 3

        def __call__(self, theta, x):
            return 2 * linear(2)(theta, x)

        def largest_output(self, largest_input, largest_weight):
            return 2 * linear(2).largest_output(largest_input, largest_weight)

    own = training(Doubled(), copy_bits(12), X, Y, data_format=FORM, cells=64)
    with pytest.raises(Refused, match="kind Doubled cannot be saved"):
        save(own, own.train(), tmp_path / "net")
    extended, run = trained
    unfinished = type(run)(**vars(run) | {"weights": extended.start()})
    with pytest.raises(InputError, match="not been trained"):
        save(extended, unfinished, tmp_path / "net")
    assert not list(tmp_path.iterdir())


def test_with_its_data_it_is_a_net_like_others(trained, tmp_path: Path) -> None:
    """On a further batch, too; but its data are its own, and so is the folder."""
    extended, run = trained
    further = extended.extended.on(-X, Y, after=run)
    assert further.first.tapes[1] != {}
    assert tg.verify(further.compiled, [(further.first,)]).agreed
    for inputs in ((), ("0110",), (further.first,)):
        with pytest.raises(InputError, match="other data than the extended network has"):
            extended.compiled.start(*inputs)
    with pytest.raises(Refused, match="saved with its data"):
        tg.save(extended.compiled, tmp_path / "net")
    assert not list(tmp_path.iterdir())
    whole = training(
        linear(1), copy_bits(4), [[1.0], [-2.0]], [[1.0], [0.0]], data_format=FixedPoint(2), target="simplex"
    )
    with pytest.raises(Refused, match="target='tape'"):
        _ = whole.compiled


def test_the_command_writes_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(EXAMPLES, "copy", TrainingExample("copy", "copies bits", copying))
    words = ["train-with", "copy", "-o", str(tmp_path / "net"), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["folder"] == str(tmp_path / "net")
    assert load(tmp_path / "net")[1].theta.tolist() == result["theta"]
