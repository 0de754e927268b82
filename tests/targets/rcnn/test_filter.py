"""The filter against the plain interpreter, layer by layer, in both encodings and both engines."""

import json
from dataclasses import replace
from itertools import islice
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad._sources import source_to_json
from tapegrad.errors import InputError, Refused
from tapegrad.machines.model import GridMachine, GridRule
from tapegrad.machines.sampler import random_grid_machine
from tapegrad.networks.saving import arrays_of, to_json
from tapegrad.targets import target_named
from tapegrad.targets.net import Net
from tapegrad.targets.rcnn import TARGET, RcnnNet, Sheet
from tapegrad.targets.rcnn import net as net_module
from tapegrad.targets.rcnn import target as target_module
from tapegrad.targets.rcnn.encoding import FORMS
from tapegrad.targets.rcnn.exactness import filter_size
from tapegrad_check import CheckError
from tapegrad_check.folder import Checked
from tapegrad_check.graph import graph_of
from tapegrad_check.sources import Model, model_of
from tapegrad_check.targets.rcnn import check

STEPS = 12
FORM_OF = {encoding: form for form, encoding in FORMS.items()}


def sampled(seed, states, symbols=3):
    return random_grid_machine(states=states, symbols=symbols, seed=seed)


def model(machine: GridMachine) -> Model:
    """The machine as the checker reads it."""
    return model_of(*source_to_json(machine))


def checked(net: RcnnNet, source: Model | None, changed: dict[str, Any] | None = None) -> Checked:
    """What the checker says of a net, or of one with other arrays."""
    graph = graph_of(json.loads(json.dumps(to_json(net.network))), arrays_of(net.network) | (changed or {}))
    return check(net.config(), net.arrays(), net.certificate(), source, graph)


@pytest.mark.parametrize("encoding", ["ternary", "channels"])
@settings(deadline=None, max_examples=4)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_every_layer_decodes_to_the_next_configuration(encoding, seed, states):
    machine = sampled(seed, states)
    net = RcnnNet.of(machine, encoding, STEPS + 1)
    a, b = machine.alphabet[1], machine.alphabet[-1]
    first = machine.start([[a, b, a], [b, machine.blank, b]], (1, 1))
    carry = net.start(first)
    expected = list(islice(machine.run(first), STEPS))
    for i, configuration in enumerate(expected):
        assert net.decode(carry) == configuration
        assert net.deviation(carry) < 1e-6
        assert net.decode(net.advance(net.start(first), i, "fast")) == configuration
        assert net.done(carry) == (machine.step(configuration) is None)
        carry = net.step(carry)
    if machine.step(expected[-1]) is None:
        assert net.decode(carry) == expected[-1]  # a halted machine is a fixed point


@pytest.mark.parametrize("encoding", ["ternary", "channels"])
@pytest.mark.parametrize("symbols", [2, 4, 5, 9])
@pytest.mark.sampled(3)
def test_any_number_of_symbols_in_both_encodings(encoding, symbols):
    machine = sampled(symbols, 3, symbols=symbols)
    first = machine.start([[*machine.alphabet]], (0, symbols // 2))
    net = RcnnNet.of(machine, encoding, STEPS)
    carry = net.start(first)
    for i, configuration in enumerate(islice(machine.run(first), STEPS - 2)):
        assert net.decode(carry) == configuration
        assert net.decode(net.advance(net.start(first), i, "fast")) == configuration
        assert net.deviation(carry) < 1e-6
        carry = net.step(carry)
    assert TARGET.estimate(machine, form=FORM_OF[encoding], margin=STEPS).parameters == net.parameters
    statements = checked(net, model(machine)).statements
    assert any(f"all {len(machine.rules)} rules" in statement for statement in statements)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_a_head_that_leaves_the_grid_is_reported_with_its_last_cell(engine):
    machine = GridMachine({("A", "0"): GridRule("0", "right", "A")}, "A")
    net = RcnnNet.of(machine, "channels", 3)
    with pytest.raises(Refused, match=r"left the grid of 7 x 7 cells \(after cell \(0, 3\)\)"):
        net.advance(net.start(machine.start()), 10, engine)


def test_a_rule_that_changes_nothing_is_not_a_halt():
    machine = GridMachine({("A", "0"): GridRule("0", "stay", "A")}, "A")
    net = RcnnNet.of(machine, "ternary", 2)
    carry = net.step(net.start(machine.start()))
    assert not net.done(carry)
    assert net.decode(carry) == machine.start()


def test_a_grid_too_large_to_be_written_out_runs_by_the_fast_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = sampled(3, 2)
    compiled = tg.compile(machine, "rcnn", margin=12)
    small = compiled.start()
    assert isinstance(small, Sheet)
    usual = compiled.net.advance(small, 8, "fast")
    monkeypatch.setattr(net_module, "LARGEST_GRID", small.grid.size - 1)
    large = compiled.start()
    assert compiled.net.decode(large) == compiled.net.decode(small)
    assert (compiled.net.engine_for(small, 1), compiled.net.engine_for(large, 1)) == ("fast", "fast")
    after = compiled.net.advance(large, 8, "fast")
    assert (compiled.net.decode(after), after.steps) == (compiled.net.decode(usual), usual.steps)
    with pytest.raises(Refused, match=r"x .* cells has .* numbers for each.*Use the engine fast"):
        compiled.net.step(large)
    monkeypatch.setattr(net_module, "LARGEST_GRID", small.grid.size)
    assert isinstance(compiled.start(), Sheet)
    assert compiled.net.engine_for(small, 1) == "reference"


def test_a_long_run_on_a_large_grid_is_compared_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    net = RcnnNet.of(sampled(1, 2), "channels", 2)
    start = sampled(1, 2).start([["1"] * 50])
    monkeypatch.setattr(net_module, "MOST_CELLS", len(start.cells) * 30)
    assert net.looks(start) == 30
    monkeypatch.setattr(net_module, "MOST_CELLS", len(start.cells) * 200)
    assert net.looks(start) == 100
    monkeypatch.setattr(net_module, "MOST_CELLS", 1)
    assert net.looks(start) == 10


def test_the_other_form_is_named_where_it_is_small_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = sampled(1, 2)
    sizes = {name: filter_size(machine, name).largest for name in FORM_OF}
    small, large = sorted(sizes, key=sizes.__getitem__)
    monkeypatch.setattr(target_module, "LARGEST_FILTER", sizes[large] - 1)
    advice = f"form=paper, which takes {sizes['ternary']:,}" if small == "ternary" else "fewer states"
    with pytest.raises(Refused, match=advice):
        TARGET.estimate(machine, form=FORM_OF[large], margin=1)
    monkeypatch.setattr(target_module, "LARGEST_FILTER", sizes[small] - 1)
    with pytest.raises(Refused, match="fewer states"):
        TARGET.estimate(machine, form=FORM_OF[large], margin=1)


def test_bad_starts_and_options_are_refused():
    machine = sampled(1, 2)
    net = RcnnNet.of(machine, "channels", 2)
    with pytest.raises(InputError, match="no symbol"):
        net.start(GridMachine({}, machine.start_state, machine.blank, alphabet=("?",)).start([["?"]]))
    with pytest.raises(Refused, match="too large"):
        net.start(machine.start([], (0, 0)).__class__(machine.start_state, {(10**6, 10**6): "1"}, (0, 0)))
    with pytest.raises(Refused, match="margin"):
        TARGET.estimate(machine, form="practical", margin=0)
    with pytest.raises(InputError, match="no unit"):
        net.explain("units[99999]")


def test_registered_and_every_unit_explains_itself():
    assert target_named("rcnn") is TARGET
    net = RcnnNet.of(TARGET.examples()[0].source, "ternary", 3)  # type: ignore[arg-type]
    assert isinstance(net, Net)
    texts = [net.explain(unit) for unit in net.units()]
    assert any("head comes right" in text for text in texts)
    assert all("B.1" in text or "B.2" in text or "Lemma 5" in text for text in texts)


@pytest.mark.parametrize("encoding", ["ternary", "channels"])
def test_the_estimate_is_the_net_and_the_checker_agrees_with_the_saved_arrays(encoding):
    machine = sampled(5, 7)
    net = RcnnNet.of(machine, encoding, 3)
    assert TARGET.estimate(machine, form=FORM_OF[encoding], margin=3).parameters == net.parameters
    again = RcnnNet.from_saved(net.config(), net.arrays(), net.network)
    statements = checked(again, model(machine)).statements
    assert any(f"all {len(machine.rules)} rules" in statement for statement in statements)


@pytest.mark.parametrize("encoding", ["ternary", "channels"])
@pytest.mark.parametrize("seed", range(4))
def test_the_checker_refuses_altered_weights(encoding, seed):
    rng = np.random.default_rng(seed)
    net = RcnnNet.of(sampled(2, 3), encoding, 3)
    wanted = {
        "ternary": ["0.bias", "1.values", "2.bias", "3.values"],
        "channels": ["0.values", "0.bias", "1.values"],
    }
    name = f"filter.{wanted[encoding][seed % len(wanted[encoding])]}"
    array = arrays_of(net.network)[name].copy()
    array[rng.choice(np.flatnonzero(array))] += 1
    with pytest.raises(CheckError):
        checked(net, None, {name: array})


def test_the_checker_refuses_another_table_of_rules():
    net = RcnnNet.of(sampled(2, 3), "channels", 3)
    rules = net.rules.copy()
    state, symbol = np.argwhere(rules[:, :, 0] >= 0)[0]
    rules[state, symbol, 2] = (rules[state, symbol, 2] + 1) % 3
    with pytest.raises(CheckError):
        checked(replace(net, rules=rules), None)


def test_the_five_maps_written_out_are_the_filter():
    """Dense matrices, plain numpy: V5 V4 relu(V3 V2 relu(V1 patch))."""
    net = RcnnNet.of(sampled(3, 4), "ternary", 3)
    dense = [m.dense() for m in net.filter.maps]
    carry = net.start(sampled(3, 4).start([["1", "2"]], (0, 0)))
    padded = np.pad(carry.grid[0], 1, constant_values=1 / 6)
    expected = np.empty_like(carry.grid[0])
    for r, c in np.ndindex(*expected.shape):
        x = padded[r : r + 3, c : c + 3].ravel()
        for i, matrix in enumerate(dense):
            x = matrix.weight @ x + matrix.bias
            x = np.maximum(x, 0) if i in (0, 2) else x
        expected[r, c] = x[0]
    assert np.abs(net.step(carry).grid[0] - expected).max() < 1e-10
    assert not jax.config.read("jax_enable_x64")  # the user's flag is left alone
