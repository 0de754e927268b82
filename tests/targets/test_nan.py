"""Networks with a weight that is not a number: whatever runs them notices, and says nothing else."""

import dataclasses
from contextlib import suppress
from typing import Any

import jax
import numpy as np
import pytest

import tapegrad as tg
from tapegrad import _verify
from tapegrad._verify import run_and_verify
from tapegrad.errors import BrokenNet, TapegradError
from tapegrad.networks.saving import from_json, to_json
from tapegrad.targets import target_named
from tapegrad.targets.decoder.net import Reading
from tapegrad.targets.rcnn.fast import Roller
from tapegrad_check.folder import OF_NETWORK


def loaded_with(net: tg.Compiled, changed: dict[str, np.ndarray]) -> Any:
    """The net again, from its own arrays and those of a network that is saved, some of them changed."""
    arrays, own = net.net.all_arrays() | changed, net.net.arrays()
    network = None
    if net.net.saves_network:
        parts = {name.removeprefix(OF_NETWORK): a for name, a in arrays.items() if name not in own}
        network = from_json(to_json(net.net.network), parts)
    return target_named(net.target.name).loaded(
        net.net.config(), {name: arrays[name] for name in own}, network
    )


def test_weights_of_a_network_that_are_nan_are_a_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    """By running it, without a look at the arrays."""
    monkeypatch.setattr(_verify, "not_finite", lambda net: None)
    net = tg.compile(tg.read("adder2"), "relu", form="paper")
    assert tg.verify(net).agreed
    arrays = net.net.all_arrays()
    for name in [name for name, array in arrays.items() if array.dtype.kind == "f" and array.ndim]:
        changed = np.where(arrays[name] != 0, np.nan, arrays[name]).astype(arrays[name].dtype)
        poisoned = dataclasses.replace(net, net=loaded_with(net, {name: changed}))
        assert not tg.verify(poisoned).agreed


def test_weights_that_are_nan_are_a_mismatch_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By running it, without a look at the arrays."""
    monkeypatch.setattr(_verify, "not_finite", lambda net: None)
    net, inputs = tg.compile(tg.read("increment"), "rcnn"), [("10",)]
    assert tg.verify(net, inputs).agreed
    leaves, form = jax.tree.flatten(net.net)
    arrays = [(i, np.asarray(leaf)) for i, leaf in enumerate(leaves)]
    weights = [i for i, array in arrays if np.issubdtype(array.dtype, np.floating) and array.any()]
    assert weights
    for number in weights:
        parts = [*leaves]
        parts[number] = np.where(leaves[number] != 0, np.nan, leaves[number])
        poisoned = dataclasses.replace(net, net=jax.tree.unflatten(form, parts))
        with suppress(TapegradError):  # such as a head that is nowhere
            assert not tg.verify(poisoned, inputs).agreed
        own: Any = poisoned.net  # whose fast engine skips what is 0, and would skip this
        with pytest.raises(BrokenNet, match="not finite"):
            Roller(own.filter, own.encoding)


NETS = (
    ("busy-beaver-2x2", "transformer", {"steps": 16}),
    ("busy-beaver-2x2", "tape", {"cells": 16}),
    ("busy-beaver-2x2", "simplex", {"inputs": [[]]}),
    ("busy-beaver-2x2", "decoder", {"tokens": 100}),
    ("busy-beaver-2x2", "rcnn", {"margin": 4}),
    ("parity2", "emulator", {}),
    ("adder2", "relu", {"form": "paper"}),
)


@pytest.mark.parametrize(("name", "target", "options"), NETS, ids=[target for _, target, _ in NETS])
def test_a_single_entry_that_is_no_number_is_a_mismatch(
    name: str, target: str, options: dict[str, Any]
) -> None:
    """Also where no run would show it: an engine that looks for the steepest edge passes over a slope that is
    no number, and a row that an input does not look up is not read."""
    net = tg.compile(tg.read(name), target, **options)
    arrays = {name: np.asarray(array) for name, array in net.net.all_arrays().items()}
    floats = [name for name, array in arrays.items() if array.dtype.kind == "f" and array.size]
    assert floats
    derived = 0
    for number, name in enumerate(floats):
        array = arrays[name].copy()
        array.reshape(-1)[0] = -np.inf if number % 2 else np.nan
        with np.errstate(invalid="ignore"):
            try:
                loaded = loaded_with(net, {name: array})
            except TapegradError:
                continue
        if np.isfinite(loaded.all_arrays()[name]).all():
            derived += 1  # the loader works it out from the others
            continue
        report = tg.verify(dataclasses.replace(net, net=loaded))
        assert not report.agreed
        assert report.mismatch is not None
        assert name in report.mismatch.found
    assert derived == (2 if target == "simplex" else 0)


POISONED: list[tuple[str, str, dict[str, Any], str, int, Any]] = [
    (
        "adder2",
        "relu",
        {"form": "paper"},
        "network.units.values",
        -1,
        [([[0, 0, 0, 0]],)],
    ),  # of an output that is 0
    ("parity2", "emulator", {}, "weights", 13, None),  # into the gate that says whether it has finished
    ("parity2", "emulator", {}, "weights", -7, None),  # into the output
    ("busy-beaver-2x2", "transformer", {"steps": 16}, "h_0", 0, None),
]


@pytest.mark.parametrize(("name", "target", "options", "array", "entry", "inputs"), POISONED)
def test_a_value_that_is_no_number_is_a_mismatch_when_it_turns_up(
    name: str,
    target: str,
    options: dict[str, Any],
    array: str,
    entry: int,
    inputs: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By running it: no comparison, maximum or argmax passes over it."""
    monkeypatch.setattr(_verify, "not_finite", lambda net: None)
    net = tg.compile(tg.read(name), target, **options)
    changed = np.array(net.net.all_arrays()[array])
    changed.reshape(-1)[entry] = np.nan
    loaded = loaded_with(net, {array: changed})
    report = tg.verify(dataclasses.replace(net, net=loaded), inputs)
    assert report.mismatch is not None
    assert report.mismatch.found == "a deviation of nan"


def test_a_text_remembers_a_logit_that_was_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The right token is chosen, for NaN stands at it; the tokens after that are sound."""
    net = tg.compile(tg.read("busy-beaver-2x2"), "decoder", tokens=100)
    sound, fed = Reading.feed, []

    def feed(self: Reading, tokens: Any) -> Any:
        logits = sound(self, tokens)
        fed.append(np.where(logits == logits.max(), np.nan, logits) if not fed else logits)
        return fed[-1]

    monkeypatch.setattr(Reading, "feed", feed)
    report = tg.verify(net)
    assert len(fed) > 1
    assert report.mismatch is not None
    assert report.mismatch.found == "a deviation of nan"


@pytest.mark.parametrize("part", ["s", "T", "H"])
def test_any_weight_of_a_tape_may_be_the_one_that_is_no_number(part: str) -> None:
    compiled = tg.compile(tg.read("busy-beaver-2x2"), "tape", cells=16)
    net, carry = compiled.net, compiled.start()
    assert net.deviation(carry) == 0
    weights = np.array(getattr(carry.weights, part))
    weights.reshape(-1)[-1] = np.nan
    poisoned = carry._replace(weights=carry.weights._replace(**{part: weights}))
    assert np.isnan(net.deviation(poisoned))


def test_a_net_that_runs_is_said_to_be_poisoned() -> None:
    net = tg.compile(tg.read("busy-beaver-2x2"), "transformer", steps=16)
    arrays = {name: np.array(array) for name, array in net.net.arrays().items()}
    arrays["theta_cls"][0] = np.nan
    poisoned = dataclasses.replace(net, net=target_named("transformer").loaded(net.net.config(), arrays))
    run, report = run_and_verify(poisoned)
    assert run.state == net.run().state
    assert str(report) == (
        "MISMATCH at step 0 on input ():\n  source  finite values\n"
        "  network the array 'theta_cls' holds numbers that are not finite"
    )
    assert run_and_verify(net)[1].agreed
