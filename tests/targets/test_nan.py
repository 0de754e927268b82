"""Networks with a weight that is not a number: whatever runs them notices, and says nothing else."""

import dataclasses
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

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
from tapegrad.targets.net import Net
from tapegrad.targets.rcnn.fast import Roller
from tapegrad_check.folder import OF_NETWORK


@pytest.mark.parametrize(
    ("name", "target", "options", "inputs"),
    [("adder2", "relu", {"form": "paper"}, None), ("increment", "rcnn", {}, [("10",)])],
)
def test_weights_that_are_nan_are_a_mismatch_or_refused(
    name: str, target: str, options: dict[str, str], inputs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By running it, without a look at the arrays."""
    monkeypatch.setattr(_verify, "not_finite", lambda net: None)
    net = tg.compile(tg.read(name), target, **options)
    assert tg.verify(net, inputs).agreed
    for own_net in with_nan_in_turn(net.net):
        poisoned = dataclasses.replace(net, net=own_net)
        with suppress(TapegradError):  # such as a head that is nowhere
            assert not tg.verify(poisoned, inputs).agreed
        if target == "rcnn":  # whose fast engine skips what is 0, and would skip this
            own: Any = poisoned.net
            with pytest.raises(BrokenNet, match="not finite"):
                Roller(own.filter, own.encoding)


def with_nan_in_turn(net: Net) -> Iterator[Net]:
    """The net with NaN in place of the weights of an array that are not 0, of every array in turn."""

    def poison(array: Any) -> Any:
        return np.where(array != 0, np.nan, array).astype(array.dtype)

    if net.saves_network:
        arrays = net.network.arrays
        for name in sorted(net.network.weights()):
            if arrays[name].any():
                network = dataclasses.replace(net.network, arrays={**arrays, name: poison(arrays[name])})
                yield dataclasses.replace(cast(Any, net), network=network)
        return
    leaves, form = jax.tree.flatten(net)
    weights = [i for i, leaf in enumerate(leaves) if np.asarray(leaf).dtype.kind == "f" and leaf.any()]
    assert weights
    for number in weights:
        yield jax.tree.unflatten(
            form, [poison(leaf) if i == number else leaf for i, leaf in enumerate(leaves)]
        )


def loaded_with(net: Net, arrays: dict[str, Any]) -> Net:
    """The net as it is loaded with these arrays, its own and those of its network."""
    own = {name: array for name, array in arrays.items() if not name.startswith(OF_NETWORK)}
    network = None
    if net.saves_network:
        part = {n.removeprefix(OF_NETWORK): array for n, array in arrays.items() if n not in own}
        network = from_json(to_json(net.network), part)
    return target_named(net.target).loaded(net.config(), own, network)


NETS = (
    ("busy-beaver-2x2", "transformer", {"form": "paper", "steps": 16}),
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
                loaded = loaded_with(net.net, {**arrays, name: array})
            except TapegradError:
                continue
        if np.isfinite(loaded.all_arrays()[name]).all():
            derived += 1  # the loader works it out from the others
            continue
        report = tg.verify(dataclasses.replace(net, net=loaded))
        assert not report.agreed
        assert report.mismatch is not None
        assert name in report.mismatch.found
    assert derived == 0


POISONED: list[tuple[str, str, dict[str, Any], str, int, Any]] = [
    (
        "adder2",
        "relu",
        {"form": "paper"},
        "network.units.values",  # of an output that is 0
        -1,
        [([[0, 0, 0, 0]],)],
    ),
    ("parity2", "emulator", {}, "weights", 13, None),  # into the gate that says whether it has finished
    ("parity2", "emulator", {}, "weights", -7, None),  # into the output
    ("busy-beaver-2x2", "transformer", {"form": "paper", "steps": 16}, "network.first_output", 0, None),
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
    arrays = {name: np.array(array) for name, array in net.net.all_arrays().items()}
    arrays[array].reshape(-1)[entry] = np.nan
    loaded = loaded_with(net.net, arrays)
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
    net = tg.compile(tg.read("busy-beaver-2x2"), "transformer", form="paper", steps=16)
    arrays = {name: np.array(array) for name, array in net.net.arrays().items()}
    arrays["theta_cls"][0] = np.nan
    loaded = target_named("transformer").loaded(net.net.config(), arrays, net.net.network)
    poisoned = dataclasses.replace(net, net=loaded)
    run, report = run_and_verify(poisoned)
    assert run.state == net.run().state
    assert str(report) == (
        "MISMATCH at step 0 on input ():\n  source  finite values\n"
        "  network the array 'theta_cls' holds numbers that are not finite"
    )
    assert run_and_verify(net)[1].agreed
