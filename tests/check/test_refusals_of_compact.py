"""A bad net for every condition of the checker of compact `relu` nets, and nets that are right in ways that
the compiler does not take."""

import sys
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Never

import numpy as np
import pytest

import tapegrad as tg
import tapegrad_check
import tapegrad_check.targets.relu as checker
from tapegrad._sources import source_to_json
from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.circuits.library import ready
from tapegrad.circuits.model import Circuit
from tapegrad.learners import parity
from tapegrad.networks.wiring import Wiring
from tapegrad.targets.relu import CompactNet
from tapegrad_check import CheckError, Unchecked
from tapegrad_check.core.functions import Functions
from tapegrad_check.folder import COMPUTES_SOURCE, OWN_TABLE, NotProved
from tapegrad_check.sources import Circuit as CheckersCircuit
from tapegrad_check.sources import model_of
from tests.check.altering import (
    Change,
    Net,
    both,
    claims,
    config,
    cut,
    graph_arrays,
    net_of,
    network_of,
    put,
    retype,
    without,
)
from tests.check.forging import Saved

CIRCUIT = ready("multiplier3")


@cache
def genuine(skips: bool = True) -> Net:
    return net_of(CIRCUIT, "relu", {"form": "practical", "skips": skips})


def copied(net: Net) -> Net:
    arrays = {name: array.copy() for name, array in net.arrays.items()}
    return Net(dict(net.config), arrays, dict(net.claims), net.source, deepcopy(net.network))


@pytest.mark.parametrize("skips", [True, False])
def test_genuine_nets_pass(skips: bool) -> None:
    assert genuine(skips).verdict("relu") == COMPUTES_SOURCE
    alone = copied(genuine(skips))
    alone.source = None
    assert (
        alone.verdict("relu") == COMPUTES_SOURCE
    )  # of its own table, as `check` says where there is no source


def _no_circuit(net: Net) -> None:
    net.source = model_of(*source_to_json(parity(2)))


def _first_hidden(net: Net) -> int:
    return int(np.flatnonzero(net.arrays["holds"] < 0)[0])


def _twice(net: Net, weight: float) -> None:
    """The last output has one weight more, twice, with either sign."""
    for name, values in ((COLUMNS, 2), (VALUES, (weight, -weight))):
        own = net.arrays[name]
        more = [own[-1]] * 2 if name == COLUMNS else values
        net.arrays[name] = np.append(own, np.array(more, own.dtype))
    net.put(STARTS, -1, net.arrays[STARTS][-1] + 2)


def _negated_output(net: Net) -> None:
    first, row = int(net.arrays[STARTS][-2]), len(net.arrays[BIASES]) - 1
    net.put(VALUES, first, -net.arrays[VALUES][first])
    net.put(BIASES, row, -net.arrays[BIASES][row])


def _hidden_held(net: Net) -> None:
    """A unit within a gate says that it holds an input."""
    net.put("holds", _first_hidden(net), 0)
    net.claims["held"] += 1


def _another_wire(net: Net) -> None:
    held = np.flatnonzero(net.arrays["holds"] >= 0)
    net.put("holds", held[-1], net.arrays["holds"][held[0]])


def _another_output(net: Net) -> None:
    """An output reads the place of the one before it."""
    at = net.arrays[STARTS][-2]
    net.put(COLUMNS, at, net.arrays[COLUMNS][at - 1])


def _constant_output(net: Net) -> None:
    """The last output reads nothing any more."""
    for name in (COLUMNS, VALUES):
        net.arrays[name] = net.arrays[name][:-1]
    net.put(STARTS, -1, net.arrays[STARTS][-1] - 1)


def _another_entry(net: Net) -> None:
    """The last output reads the place before as well."""
    for name, value in ((COLUMNS, net.arrays[COLUMNS][-2]), (VALUES, 2)):
        net.arrays[name] = np.append(net.arrays[name], np.array([value], net.arrays[name].dtype))
    net.put(STARTS, -1, net.arrays[STARTS][-1] + 1)


def _names(where: str, names: list[str]) -> Change:
    def change(net: Net) -> None:
        assert net.network is not None
        net.network["columns"][net.network["outputs"][where] if where == "outputs" else where] = names
        if where == "bits":
            net.network["inputs"]["bits"]["columns"] = names

    return change


BOUNDS, STARTS, COLUMNS, VALUES, BIASES = (
    f"network.units.{part}" for part in ("bounds", "starts", "columns", "values", "biases")
)
BAD: list[tuple[Change, str]] = [
    (config(form="other"), "no known form"),
    (config(colour="red"), "no known form"),
    (without("holds"), "arrays are others"),
    (lambda net: net.arrays.update(more=np.zeros(1)), "arrays are others"),
    (config(skips=1), "whether there are skip connections"),
    (_names("bits", list("abcdef")), "other names"),
    (_names("outputs", list("uvwxyz")), "other names"),
    (put(VALUES, 0, 0.5), "what is held by unit '0' differs|the unit '0' is no bit"),
    (put(BIASES, 0, -0.5), "the unit '0' is no bit"),
    (put(VALUES, 0, 2.0**127), "may overflow"),
    (lambda net: _twice(net, 2.0**10), "largest_sum can be 2,051, more than is claimed"),
    (lambda net: _twice(net, 1 / 3), "a sum of the network may be rounded"),
    (retype("holds", np.int64), "'holds' is not of type"),
    (cut("holds"), "'holds' has another shape"),
    (lambda net: net.arrays.update(holds=net.arrays["holds"][None]), "'holds' has another shape"),
    (lambda net: net.arrays.update({BOUNDS: np.insert(net.arrays[BOUNDS], 1, 0)}), "a layer has no units"),
    (claims(statement="it is right"), "other claims"),
    (claims(more=1), "other claims"),
    (lambda net: net.claims.update(units=net.claims["units"] + 1), "has other units"),
    (lambda net: net.claims.update(held=net.claims["held"] - 1), "has other held"),
    (claims(largest_sum=1), "largest_sum can be 7, more than is claimed"),
    (claims(largest_sum="7"), "the claim 'largest_sum' is not a finite number"),
    (claims(at_outputs=None), "the claim 'at_outputs' is not a finite number"),
    (_no_circuit, "that of a circuit"),
    (put("holds", 0, 1 << 20), "that the circuit does not have"),
    (put("holds", 0, -2), "no negation of one"),
    (_hidden_held, "the unit '9' is no bit"),
    (_another_wire, "what is held by unit '[0-9]+' differs from the source"),
    (both(put(VALUES, -1, 3), put(BIASES, -1, -1)), "the output 'out\\[5\\]' is no bit"),
    (put(BIASES, -1, 0), "the output 'out\\[5\\]' is no bit"),
    (_negated_output, "the output 'out\\[5\\]' differs"),
    (_another_output, "the output 'out\\[5\\]' differs"),
    (both(_constant_output, put(BIASES, -1, 1)), "the output 'out\\[5\\]' differs"),
    (_another_entry, "the output 'out\\[5\\]' is no bit"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "what"), BAD)
def test_bad_nets(change: Change, what: str) -> None:
    net = copied(genuine())
    change(net)
    with pytest.raises(CheckError, match=what):
        net.verdict("relu")


def test_reading_past_a_layer_without_skips() -> None:
    net = copied(genuine())
    net.config["skips"] = False
    with pytest.raises(CheckError, match="past the layer before it"):
        net.verdict("relu")


@pytest.mark.parametrize("skips", [True, False])
def test_altered_numbers_are_seen_or_do_no_harm(skips: bool) -> None:
    """Any weight, bias, place or held wire changed by one. A few changes make another right net: where a sum
    is negative, it may be more so. Those that pass are run on all inputs."""
    bits = np.arange(64)[:, None] >> np.arange(6) & 1
    right = CIRCUIT.wire_values(bits.astype(bool))[CIRCUIT.output_wires].T
    passed, refused = 0, 0
    for name in (VALUES, BIASES, COLUMNS, "holds"):
        for place in range(0, len(genuine(skips).arrays[name]), 3):
            for more in (-1, 1):
                net = copied(genuine(skips))
                net.add(name, place, more)
                try:
                    net.verdict("relu")
                except CheckError:
                    refused += 1
                    continue
                passed += 1
                loaded = CompactNet.from_saved(net.config, {"holds": net.arrays["holds"]}, network_of(net))
                found = loaded.outputs(bits, "fast")
                assert np.array_equal(found, np.where(right, 1, -1)), (name, place, more)
    assert refused > 20 * passed


def _by_hand(
    circuit: Circuit, units: list[tuple[list[int], list[int], int, int]], output: int | None, bias: int = -1
) -> Net:
    """A net of one unit to a layer: for each its places, weights, bias and what it holds. The output is 2 z -
    1 of a place, or a constant."""
    rows = [*units, ([output], [2], -1, 0) if output is not None else ([], [], bias, 0)]
    wiring = Wiring(
        len(circuit.inputs),
        np.arange(len(rows) + 1),
        np.cumsum([0, *(len(reads) for reads, *_ in rows)]),
        np.array([place for reads, *_ in rows for place in reads], np.int64),
        np.array([weight for _, own, *_ in rows for weight in own], np.float32),
        np.array([bias for *_, bias, _ in rows], np.float32),
    )
    network = wiring.network("relu", "float32", circuit.inputs, circuit.outputs)
    holds = np.array([holds for *_, holds in units], np.int32)
    said = {"statement": checker.EXACT, "units": len(units), "held": int((holds >= 0).sum())}
    graph, arrays = graph_arrays(network)
    config = {"form": "practical", "skips": True}
    claims = said | {"largest_sum": 1000, "at_outputs": 0.0}
    return Net(config, arrays | {"holds": holds}, claims, model_of(*source_to_json(circuit)), graph)


def _conjunction(inputs: int) -> Circuit:
    make = CircuitBuilder()
    wire = make.input("x0")
    for i in range(1, inputs):
        wire = make.and_(wire, make.input(f"x{i}"))
    make.output("all", wire)
    return make.circuit()


@pytest.mark.parametrize(("inputs", "right"), [(12, True), (13, False)])
def test_bits_that_a_unit_may_depend_on(inputs: int, right: bool) -> None:
    """All of them at once, then passed on by a unit that holds the result."""
    circuit = _conjunction(inputs)
    wire = 2 * int(circuit.output_wires[0])
    every = list(range(inputs)), [1] * inputs, 1 - inputs, -1
    net = _by_hand(circuit, [every, ([inputs], [1], 0, wire)], inputs + 1)
    if right:
        assert net.verdict("relu") == COMPUTES_SOURCE
    else:
        with pytest.raises(NotProved, match="more than 12 bits"):
            net.verdict("relu")


def test_sums_of_outputs_are_not_counted() -> None:
    """They come to 3; a unit's do to 5 here."""
    circuit = _conjunction(3)
    net = _by_hand(circuit, [([0, 1, 2], [1] * 3, -2, 2 * int(circuit.output_wires[0]))], 3)
    net.claims["largest_sum"] = 5
    assert net.verdict("relu") == COMPUTES_SOURCE
    net.claims["largest_sum"] = 4
    with pytest.raises(CheckError, match="largest_sum can be 5"):
        net.verdict("relu")
    net = _by_hand(_conjunction(1), [], 0)
    net.claims["largest_sum"] = 1
    assert net.verdict("relu") == COMPUTES_SOURCE


def test_bits_that_exclude_each_other() -> None:
    """(a and b) + (not a and c) is a bit only for who looks into both."""
    make = CircuitBuilder(simplify=False)
    a, b, c = (make.input(name) for name in "abc")  # wires 0, 1, 2
    first = make.and_(a, b)  # wire 3
    second = make.and_(make.not_(a), c)  # wires 4 and 5
    make.output("y", make.or_(first, second))  # wire 6
    circuit = make.circuit()
    units = [([0, 1], [1, 1], -1, 2 * 3), ([0, 2], [-1, 1], 0, 2 * 5)]
    net = _by_hand(circuit, [*units, ([3, 4], [1, 1], 0, 2 * 6)], 5)
    assert net.verdict("relu") == COMPUTES_SOURCE
    net.put(VALUES, 2, 1)
    with pytest.raises(CheckError, match=r"is no bit|differs from the source"):
        net.verdict("relu")


def test_bits_that_exclude_each_other_beside_others() -> None:
    """Beside them stands a bit that depends on five more."""
    make = CircuitBuilder(simplify=False)
    a, b, c, *others = (make.input(name) for name in "abcdefgh")  # wires 0 to 7
    first = make.and_(a, b)  # wire 8
    second = make.and_(make.not_(a), c)  # wires 9 and 10
    either = make.or_(first, second)  # wire 11
    wire = others[0]
    for other in others[1:]:
        wire = make.and_(wire, other)  # wires 12 to 15
    make.output("y", make.and_(either, wire))  # wire 16
    units = [
        ([0, 1], [1, 1], -1, 2 * 8),
        ([0, 2], [-1, 1], 0, 2 * 10),
        ([3, 4, 5, 6, 7], [1] * 5, -4, 2 * 15),
        ([8, 9, 10], [1, 1, 1], -1, 2 * 16),
    ]
    net = _by_hand(make.circuit(), units, 11)
    assert net.verdict("relu") == COMPUTES_SOURCE
    net.put(BIASES, 3, 0)
    with pytest.raises(CheckError, match=r"is no bit|differs from the source"):
        net.verdict("relu")


@pytest.mark.parametrize("inputs", [0, 1])
@pytest.mark.parametrize("value", [False, True])
def test_outputs_that_depend_on_nothing(inputs: int, value: bool) -> None:
    """There may be no place that they could read."""
    make = CircuitBuilder()
    for number in range(inputs):
        make.input(f"x{number}")
    make.output("y", make.constant(value))
    net = _by_hand(make.circuit(), [], None, 1 if value else -1)
    assert net.verdict("relu") == COMPUTES_SOURCE
    net.put(BIASES, 0, -1 if value else 1)
    with pytest.raises(CheckError, match=r"the output .* differs"):
        net.verdict("relu")


def test_what_is_not_near_by_is_merged_node_by_node() -> None:
    """A circuit in which the same value is computed twice in different ways; the net reads the other one."""
    make = CircuitBuilder(simplify=False)
    a, b, c = (make.input(name) for name in "abc")
    early = make.xor(make.xor(a, b), c)
    late = make.xor(a, make.xor(b, c))
    make.output("y", make.and_(late, make.not_(a)))
    make.output("z", early)
    circuit = make.circuit()
    net = net_of(circuit, "relu", {"form": "practical"})
    assert net.verdict("relu") == COMPUTES_SOURCE
    source = net.source
    assert isinstance(source, CheckersCircuit)
    swapped = replace(source, output_wires=source.output_wires[::-1].copy())
    net.source = swapped
    with pytest.raises(CheckError):
        net.verdict("relu")


def test_any_number_of_units_may_need_a_longer_proof(tmp_path: Path) -> None:
    """Of this program 73 do; more than 32 used to be refused, as if something did not hold."""
    tg.save(tg.compile("rasp-dyck-1", "relu", count=8), tmp_path / "net")
    saved = Saved.of(tmp_path / "net")
    assert tapegrad_check.check(tmp_path / "net").code == 0
    holds = saved.arrays["holds"]
    for unit in np.flatnonzero(holds >= 0)[::7].tolist():
        saved.arrays["holds"] = np.where(np.arange(len(holds)) == unit, holds ^ 1, holds)
        saved.write(tmp_path / "forged")
        with pytest.raises(CheckError, match=r"what is held by unit .* differs|is no bit"):
            tapegrad_check.check(tmp_path / "forged")


def test_what_cannot_be_told_is_no_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known not to hold: the exit code is 4, or 2 where its own table cannot be told either."""

    def untold(*_: object) -> Never:
        raise NotProved("functions take too long to compare")

    tg.save(tg.compile("rasp-dyck-1", "relu", count=8), tmp_path / "net")
    monkeypatch.setattr(Functions, "require_equal", untold)
    report = tapegrad_check.check(tmp_path / "net")
    assert (report.verdict, report.code) == (OWN_TABLE, 4)
    assert "the source was not checked: functions take too long to compare" in report.statements
    monkeypatch.setattr(checker, "wired", untold)
    with pytest.raises(Unchecked, match="no proof of it: functions take too long to compare"):
        tapegrad_check.check(tmp_path / "net")


def test_without_a_solver_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is right is not proved, what is plainly wrong is refused, and small nets need none."""
    tg.save(tg.compile("divider16", "relu"), tmp_path / "large")
    tg.save(tg.compile("adder2", "relu"), tmp_path / "small")
    monkeypatch.setitem(sys.modules, "pysolvers", None)
    with pytest.raises(Unchecked, match="needs a solver, which is not installed: pip install python-sat"):
        tapegrad_check.check(tmp_path / "large")
    assert tapegrad_check.check(tmp_path / "small").code == 0
    saved = Saved.of(tmp_path / "small")
    saved.arrays[VALUES] = -saved.arrays[VALUES]
    saved.write(tmp_path / "wrong")
    with pytest.raises(CheckError, match=r"is no bit|differs from the source"):
        tapegrad_check.check(tmp_path / "wrong")
