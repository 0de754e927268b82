"""A bad folder for every condition on a trained extended network, and the numbers that it is checked with."""

import copy
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tapegrad_check import CheckError
from tapegrad_check.folder import OWN_TABLE, read_folder
from tapegrad_check.passes import bound_source
from tapegrad_check.sources import Machine
from tapegrad_check.sources import Rule as MachineRule
from tapegrad_check.targets import extended
from tests.check.altering import Change, Net, add, both, claims, config, cut, put, retype, without

FOLDER = Path(__file__).parents[1] / "saved_nets" / "v2" / "extended"
"""Theta is six bits copied from the data; of 32 cells, from -16 to 15; data on tape 0, the result on 1."""

TESTED = "tested on 1 input"


@cache
def genuine() -> Net:
    folder = read_folder(FOLDER)
    source = bound_source(folder).source
    return Net(folder.config["net"], folder.own, folder.certificate["claims"], source)


def part(name: str, **changes: Any) -> Change:
    return lambda net: net.config[name].update(changes)


def moved(name: str, row: int, more: int) -> Change:
    """A one of some weight, the same number of rows away."""

    def change(net: Net) -> None:
        net.arrays[name] = net.arrays[name].copy()
        net.arrays[name][:, row] = np.roll(net.arrays[name][:, row], more)

    return change


def one_step_more(net: Net) -> None:
    net.config["training"]["steps"] += 1


def one_step_less(net: Net) -> None:
    net.config["training"]["steps"] -= 1


REASONS: list[tuple[str, Change]] = [
    ("other arrays", lambda net: net.arrays.update(extra=np.zeros(1))),
    ("other arrays", without("weight.z")),
    ("'x' is not of type", retype("x", np.float32)),
    ("'y' has another shape", cut("y")),
    ("'weight.z' has another shape", cut("weight.z")),
    ("'weight.s' has another shape", cut("weight.s")),
    ("'weight.T' has another shape", cut("weight.T")),
    ("'weight.H' has another shape", cut("weight.H")),
    ("'weight.T' has another shape", config(read_only=0)),
    ("number of read-only tapes", config(read_only=-1)),
    ("number of read-only tapes", config(read_only=3)),
    ("'weight.T' has another shape", config(read_only=2)),
    ("too large", put("x", (0, 0), 2.0**160)),
    ("too large", put("y", (0, 0), -(2.0**160))),
    ("lies beside its tape", put("data_places", (0, 1), 1)),
    ("lies beside its tape", put("data_places", (0, 1), -1)),
    ("lies beside its tape", put("data_places", (0, 2), -17)),
    ("lies beside its tape", put("data_places", (0, 2), 16)),
    ("leaves something else", put("data_places", (1, 2), 15)),
    ("lies beside its tape", put("data_places", (0, 3), 2)),
    ("lies beside its tape", put("data_places", (0, 3), 0)),
    ("lies beside its tape", put("result_places", (0, 1), 0)),
    ("lies beside its tape", put("result_places", (0, 1), 2)),
    ("'data_places' is not of type", retype("data_places", np.int32)),
    ("other constants", part("constants", gamma=2)),
    ("for another number of tapes", part("constants", tapes=1)),
    ("chain rule rounds", part("constants", exact=False)),
    ("not a weight for each edge", retype("graph.edge_to", np.float64)),
    ("no layers", part("primary", sizes=[1])),
    ("no layers", part("primary", sizes=3)),
    ("size of a layer", part("primary", sizes=[1, 0, 1])),
    ("size of a layer", part("primary", sizes=[1, 1 << 32, 1])),
    ("do not fit the primary", part("primary", sizes=[2, 1])),
    ("do not fit the primary", part("primary", sizes=[1, 2])),
    ("activation is unknown", part("primary", activation="sigmoid")),
    ("does not fit the primary|cannot reshape", part("primary", sizes=[1, 1, 1])),
    ("format has other entries", part("data_format", extra=1)),
    ("format has other entries", part("weight_format", extra=1)),
    ("continuous or not", part("data_format", continuous=0)),
    ("number of bits", part("data_format", width=33)),
    ("number of bits", part("data_format", width=0)),
    ("number of bits", part("data_format", fraction=33)),
    ("number of bits", part("weight_format", fraction=-1)),
    ("away from what a machine", add("weight.s", 0, 1e-6)),
    ("away from what a machine", add("weight.H", (0, 0), 1e-6)),
    ("away from what a machine", add("weight.T", (0, 0), 1e-6)),
    ("vertex that does not halt", lambda net: net.arrays.update(_at_vertex(net, 0))),
    ("under the heads lie other", lambda net: net.put("weight.T", (23, 0), 1.0)),
    ("under the heads lie other", lambda net: net.arrays.update(_at_vertex(net, 54))),
    ("copied are not the labels", add("weight.z", (0, 0), 1)),
    ("not in order", lambda net: net.arrays.update(result_places=net.arrays["result_places"][::-1].copy())),
    ("the theta claimed", claims(theta=[1.0, 0.0])),
    ("the theta claimed", put("result_places", (0, 3), -1)),
    ("the theta claimed", part("weight_format", fraction=0)),
    ("the output claimed", claims(output=[[1.5], [1.5]])),
    ("the output claimed", claims(output=[1.5, 1.0])),
    ("the loss claimed", claims(final_loss=3.5)),
    ("the loss claimed", lambda net: claims(final_loss=net.config["constants"]["low"] - 0.5)(net)),
    ("B_stop does not exceed", lambda net: claims(final_loss=net.config["constants"]["low"])(net)),
    ("their ideal values", claims(deviation=1e-6)),
    ("steps of training", part("training", steps=0)),
    ("time of training", part("training", seconds="8")),
    ("engine of training", part("training", engine=3)),
    ("has not halted", one_step_less),
    ("halts before training ends", one_step_more),
    ("writes on a tape of its data", lambda net: _other_write(net)),
    ("in the state or at the cells", moved("weight.H", 1, 1)),
    ("in the state or at the cells", moved("weight.H", 0, 1)),
    ("leaves something else", put("weight.T", (0, 0), 1.0)),
    ("first configuration is none", part("start", tapes=[[]])),
    ("first configuration is none", part("start", tapes=[[], ["0"]])),
    ("first configuration is none", part("start", tapes=[[], 3])),
    ("first configuration is none", part("start", heads=[0, False])),
    ("lies beside the tapes", part("start", heads=[0])),
    ("lies beside the tapes", part("start", heads=[0, 16])),
    ("lies beside the tapes", part("start", heads=[0, -17])),
    ("lies beside the tapes", part("start", tapes=[[], [16]])),
    ("leaves something else", part("start", tapes=[[], [15]])),
    ("leaves something else", part("start", tapes=[[], [-16]])),
    ("not started in its first state", part("start", state="elsewhere")),
    ("named twice", part("start", tapes=[[], [9, 9]])),
    ("has no place, or is none", put("data_places", (0, 0), 1)),
    ("has no place, or is none", cut("data_places")),
    ("two bits share a cell", put("data_places", (0, 2), 2)),
    ("does not show a 0 at first", part("start", tapes=[[1], []])),
    ("does not show a 0 at first", put("data_places", (0, 3), -1)),
    ("beyond their format", both(put("x", (0, 0), 4.5), lambda net: _claimed_again(net))),
    ("does not have", both(put("x", (0, 0), 0.25), lambda net: _claimed_again(net))),
    ("does not have", both(put("x", (0, 0), 2.0), lambda net: _claimed_again(net))),
]


def _at_vertex(net: Net, vertex: int) -> dict[str, np.ndarray]:
    """s at another vertex."""
    s = np.zeros_like(net.arrays["weight.s"])
    s[vertex] = 1.0
    return {"weight.s": s}


def _other_write(net: Net) -> None:
    assert isinstance(net.source, Machine)
    case = next(iter(net.source.rules))
    rule = net.source.rules[case]
    other = "1" if rule.write[0] == "0" else "0"
    net.machine(rules={**net.source.rules, case: replace(rule, write=(other, rule.write[1]))})
    net.put("graph.written", (0, 0), -net.arrays["graph.written"][0, 0])


def _claimed_again(net: Net) -> None:
    """Output and loss for other data."""
    slope, bias = net.claims["theta"]
    output = slope * net.arrays["x"] + bias
    net.claims |= {
        "output": output.tolist(),
        "final_loss": float(((output - net.arrays["y"]) ** 2).sum() / 2),
    }


def test_the_genuine_folder_is_tested_on_its_data() -> None:
    assert genuine().verdict("extended") == TESTED


@pytest.mark.parametrize(("reason", "change"), REASONS)
def test_a_bad_folder_is_refused_for_its_reason(reason: str, change: Change) -> None:
    net = copy.deepcopy(genuine())
    change(net)
    with pytest.raises((CheckError, ValueError), match=reason):
        net.verdict("extended")


def test_a_run_that_is_too_long_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    net = copy.deepcopy(genuine())
    monkeypatch.setattr(extended, "MOST_STEPS", net.config["training"]["steps"])
    assert net.verdict("extended") == TESTED
    monkeypatch.setattr(extended, "MOST_STEPS", net.config["training"]["steps"] - 1)
    assert net.verdict("extended") == OWN_TABLE


def test_floating_numbers_are_those_of_half_precision() -> None:
    """Five bits of exponent and ten of mantissa, least significant first; all numbers but the infinite."""
    form = {"kind": "floating", "exponent": 5, "mantissa": 10}
    words = np.concatenate([np.arange(0, 31 << 10, 7), 0x8001 + np.arange(0, 31 << 10, 11)]).astype(np.uint16)
    numbers = words.view(np.float16).astype(float)
    wanted = words[:, None].astype(np.int64) >> np.arange(16) & 1
    assert np.array_equal(extended._bits(numbers, form), wanted)
    assert np.array_equal(extended._floating(wanted.astype(float).ravel(), form), numbers)
    with pytest.raises(CheckError, match="does not have"):
        extended._bits(np.array([1 + 2.0**-11]), form)


def test_fixed_numbers_are_twos_complement() -> None:
    for width, fraction in ((1, 0), (4, 0), (5, 2), (3, 4)):
        form = {"kind": "fixed", "width": width, "fraction": fraction}
        whole = np.arange(-(1 << width - 1), 1 << width - 1)
        bits = extended._bits(whole / 2.0**fraction, form)
        texts = ["".join(map(str, row[::-1])) for row in bits.tolist()]
        assert texts == [format(int(n) % (1 << width), f"0{width}b") for n in whole]
        with pytest.raises(CheckError, match=r"does not have|beyond"):
            extended._bits(np.array([(1 << width - 1) / 2.0**fraction]), form)


@pytest.mark.parametrize("activation", ["relu", "step"])
def test_primary_networks_are_layers_of_rows_with_a_bias(activation: str) -> None:
    random, sizes = np.random.default_rng(0), [2, 3, 2]
    theta, x = random.integers(-4, 5, 3 * 3 + 2 * 4) / 2, random.integers(-4, 5, (5, 2)) / 2
    found = extended._output({"sizes": sizes, "activation": activation}, theta, x)
    for sample, output in zip(x, found, strict=True):
        values, rest = list(sample), list(theta)
        for number, (n, m) in enumerate(((2, 3), (3, 2))):
            rows = [[rest.pop(0) for _ in range(n + 1)] for _ in range(m)]
            values = [sum(w * v for w, v in zip(row, [*values, 1.0], strict=True)) for row in rows]
            if activation == "step":
                values = [float(v >= 0) for v in values]
            elif number == 0:
                values = [max(v, 0.0) for v in values]
        assert values == output.tolist()
    with pytest.raises(CheckError, match="theta does not fit"):
        extended._output({"sizes": sizes, "activation": activation}, np.append(theta, 0.0), x)


def by_the_book(x: np.ndarray, y: np.ndarray, epochs: int) -> list[float]:
    """Rosenblatt's rule as it is usually written down, with a bias; it ends when a round has no mistake."""
    w, b = np.zeros(x.shape[1]), 0.0
    for _ in range(epochs):
        wrong = False
        for row, label in zip(x, np.where(y > 0, 1.0, -1.0), strict=True):
            if label * (w @ row + b) <= 0:
                w, b, wrong = w + label * row, b + label, True
        if not wrong:
            break
    return [*w.tolist(), b]


FIXED = {"kind": "fixed", "width": 16, "fraction": 2}


def named(x: np.ndarray, y: np.ndarray, theta: list[float], epochs: int, **weights: Any) -> str:
    settings = {"data_format": FIXED, "weight_format": FIXED | weights}
    rule = {"name": "perceptron", "epochs": epochs}
    return extended._named_rule(rule, settings, {"x": x, "y": y[:, None]}, np.array(theta))


@pytest.mark.parametrize("seed", range(20))
def test_the_perceptron_rule_is_that_of_the_book(seed: int) -> None:
    """On numbers of quarters, rounds by rounds; any other theta is refused."""
    random = np.random.default_rng(seed)
    x, y = random.integers(-6, 7, (6, 2)) / 4, random.integers(-1, 2, 6).astype(float)
    for epochs in (1, 2, 3, 8):
        theta = by_the_book(x, y, epochs)
        assert "computed in whole numbers" in named(x, y, theta, epochs)
        for place in range(3):
            theta[place] += 0.25
            with pytest.raises(CheckError, match="not what the perceptron rule gives"):
                named(x, y, theta, epochs)
            theta[place] -= 0.25


def test_a_rule_that_makes_no_more_mistakes_has_ended() -> None:
    """Not after all of the 2^31 rounds that were asked for."""
    x, y = np.array([[0.25, 1.0], [-0.5, 0.25]]), np.array([1.0, 0.0])
    assert "whole numbers" in named(x, y, by_the_book(x, y, 100), 1 << 31)
    for epochs in (0, (1 << 31) + 1, True):
        with pytest.raises(CheckError, match="number of rounds"):
            named(x, y, [0.0, 0.0, 0.0], epochs)


def test_a_rule_for_other_data() -> None:
    x, y = np.array([[1.0, 2.0]]), np.array([1.0])
    right = by_the_book(x, y, 1)
    assert named(x, y, right, 1)
    for weights in ({"fraction": 3}, {"fraction": 1}, {"kind": "floating"}):
        with pytest.raises(CheckError, match="for other data"):
            named(x, y, right, 1, **weights)
    with pytest.raises(CheckError, match="for other data"):
        named(x, y, [*right, 0.0], 1)
    with pytest.raises(CheckError, match="for other data"):
        named(x, np.array([1.0, 1.0]), right, 1)
    with pytest.raises(CheckError, match="format does not have"):
        named(x + 1 / 16, y, right, 1)


def told(rule: dict[str, Any], x: np.ndarray, y: np.ndarray, theta: list[int], steps: int = 1) -> str:
    return extended._named_rule(rule, {"training": {"steps": steps}}, {"x": x, "y": y}, np.array(theta))


def remembered(rule: dict[str, Any], x: np.ndarray, y: np.ndarray) -> list[int]:
    """Wires by their numbers, and tables read as rows of text."""
    memory = list(rule["first"])
    for sample, label in [*zip(x, y[:, 0], strict=True)] * rule["rounds"]:
        wires = dict(enumerate([*memory, *(int(v > 0) for v in sample), int(label > 0), 0]))
        for table, a, b in rule["gates"]:
            wires[len(wires)] = int(format(table, "04b")[3 - 2 * wires[a] - wires[b]])
        memory = [wires[wire] for wire in rule["outputs"]]
    return memory


def random_learner(seed: int) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Two bits of memory, two of a sample, its label, a bit that is 0, and six gates."""
    random = np.random.default_rng(seed)
    gates = [[int(random.integers(16)), *random.integers(0, 6 + gate, 2).tolist()] for gate in range(6)]
    first, outputs = random.integers(0, 2, 2).tolist(), random.integers(6, 12, 2).tolist()
    rounds = int(random.integers(1, 4))
    rule = {"name": "learner", "rounds": rounds, "first": first, "gates": gates, "outputs": outputs}
    return rule, random.choice([-1.0, 0.0, 1.0], (3, 2)), random.choice([-1.0, 0.0, 1.0], (3, 1))


@pytest.mark.parametrize("seed", range(40))
def test_learners_remember_what_their_gates_do(seed: int) -> None:
    rule, x, y = random_learner(seed)
    theta = remembered(rule, x, y)
    assert "6 gates remember" in told(rule, x, y, theta)
    for place in range(2):
        other = [*theta]
        other[place] ^= 1
        with pytest.raises(CheckError, match="not what the learner remembers"):
            told(rule, x, y, other)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": "hebb"}, "no rule of this name"),
        ({"extra": 1}, "described otherwise"),
        *(({"rounds": rounds}, "number of rounds") for rounds in (0, (1 << 31) + 1, True)),
        *(({"first": first}, "remembered at first") for first in ([0, 2], [0, -1], [0, True], "01")),
        ({"first": [0]}, "for other data"),
        ({"gates": 3}, "no list"),
        *(({"gates": [gate]}, "gate") for gate in (3, [8, 0], [8, 0, True], [16, 0, 0], [-1, 0, 0])),
        *(({"gates": [gate]}, "gate") for gate in ([8, 6, 0], [8, 0, 6], [8, -1, 0], [8, 0, -1])),
        *(({"outputs": outputs}, "outputs of the learner") for outputs in ([6, 12], [-1, 6], 7)),
        ({"outputs": [6]}, "does not remember what it should"),
    ],
)
def test_bad_learners(changes: dict[str, Any], reason: str) -> None:
    rule, x, y = random_learner(0)
    with pytest.raises(CheckError, match=reason):
        told(rule | changes, x, y, remembered(rule, x, y))


def test_the_last_operands_and_tables_that_there_can_be() -> None:
    _, x, y = random_learner(0)
    gates = [[15, 5, 5], [0, 6, 6]]
    rule = {"name": "learner", "rounds": 1, "first": [0, 1], "gates": gates, "outputs": [6, 7]}
    assert told(rule, x, y, [1, 0])
    with pytest.raises(CheckError, match="for other data"):
        told(rule, x, np.ones((3, 2)), [1, 0])


def test_a_learner_with_many_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either its gates are computed, or the run is too long to be repeated."""
    rule, x, y = random_learner(0)
    right, many = remembered(rule, x, y), rule["rounds"] * 3 * 6
    monkeypatch.setattr(extended, "MOST_GATES", many)
    assert "6 gates remember" in told(rule, x, y, right)
    monkeypatch.setattr(extended, "MOST_GATES", many - 1)
    assert told(rule, x, y, right, extended.MOST_STEPS + 1).startswith("nor is it shown")
    with pytest.raises(CheckError, match="fewer steps than the learner gates"):
        told(rule, x, y, right, extended.MOST_STEPS)


def test_a_run_reads_what_lies_under_the_heads() -> None:
    """A machine that goes on to the first 1 of the data: unlike one that copies, it notices if every symbol
    is taken for the other."""
    rules = {("a", ("0", "0")): MachineRule(("0", "0"), (1, 0), "a")}
    source = genuine().source
    assert isinstance(source, Machine)
    machine = replace(source, rules=rules, states=("a",), start="a")
    data = {"kind": "fixed", "width": 2, "fraction": 0}
    start = {"state": "a", "tapes": [[], []], "heads": [0, 0]}
    settings = {"cells": 8, "read_only": 1, "start": start, "data_format": data}
    places = np.array([[0, 0, 2, 1], [1, 0, -1, 1], [2, 0, -2, 1], [3, 0, -3, 1]])
    arrays = {"x": np.array([[1.0]]), "y": np.array([[0.0]]), "data_places": places}
    H = np.zeros((8, 2))
    H[[4 + 2, 4], [0, 1]] = 1
    assert extended._run(machine, settings, arrays, 2, np.eye(4)[1], np.full((8, 1), -1.0), H) == 0
    with pytest.raises(CheckError, match="in the state or at the cells"):
        extended._run(machine, settings, arrays, 2, np.eye(4)[0], np.full((8, 1), -1.0), H)


def test_near_is_near() -> None:
    for found, claimed in product((0.0, 1.0), (0.0, 1.0, 1 + 1e-10, 1 + 1e-8, 1e-10, 1e-8)):
        assert extended._near(found, claimed) is (abs(found - claimed) <= 2e-9)
    assert not extended._near([1.0], 1.0)
