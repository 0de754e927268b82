"""A bad folder for every condition on a trained extended network, and the numbers that it is checked with."""

import copy
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tapegrad.networks.saving import arrays_of, to_json
from tapegrad.targets.extended import MLP, FixedPoint, FloatingPoint, linear
from tapegrad.targets.extended.primary import Answers, Connected
from tapegrad.targets.extended.saved import format_to_json, primary_to_json
from tapegrad.targets.tape.net import TapeNet
from tapegrad_check import CheckError
from tapegrad_check.folder import OF_NETWORK, OWN_TABLE, read_folder
from tapegrad_check.graph import graph_of
from tapegrad_check.losses import node_of
from tapegrad_check.passes import bound_source
from tapegrad_check.sources import Machine
from tapegrad_check.sources import Rule as MachineRule
from tapegrad_check.targets import extended
from tapegrad_check.targets.extended_loss import Places, require_network
from tapegrad_check.targets.tape import read
from tapegrad_check.values import outputs_of
from tests.check.altering import Change, Net, add, both, claims, config, cut, put, retype, without
from tests.targets.extended.algorithms import copy_bits, training

FOLDER = Path(__file__).parents[1] / "saved_nets" / "v3" / "extended"
"""Theta is six bits copied from the data; of 32 cells, from -16 to 15; data on tape 0, the result on 1."""

TESTED = "tested on 1 input"


@cache
def genuine() -> Net:
    folder = read_folder(FOLDER)
    source = bound_source(folder).source
    return Net(folder.config["net"], folder.arrays, folder.certificate["claims"], source, folder.network)


def part(name: str, **changes: Any) -> Change:
    return lambda net: net.config[name].update(changes)


def moved(name: str, row: int, more: int) -> Change:
    """A one of some weight, the same number of rows away."""

    def change(net: Net) -> None:
        net.arrays[name] = net.arrays[name].copy()
        net.arrays[name][:, row] = np.roll(net.arrays[name][:, row], more)

    return change


def put_shape(name: str, shape: tuple[int, ...]) -> Change:
    """An array of the graph in another shape."""
    return lambda net: net.arrays.update({OF_NETWORK + name: net.arrays[OF_NETWORK + name].reshape(shape)})


def one_step_more(net: Net) -> None:
    net.config["training"]["steps"] += 1


def one_step_less(net: Net) -> None:
    net.config["training"]["steps"] -= 1


REASONS: list[tuple[str, Change]] = [
    ("other entries", config(extra=1)),
    ("other entries", lambda net: net.config.pop("rule")),
    ("other arrays", lambda net: net.arrays.update(extra=np.zeros(1))),
    ("other arrays", without("z")),
    ("'x' is not of type", retype("x", np.float32)),
    *((f"'{name}' has another shape", cut(name)) for name in "ysTHz"),
    ("labels are all 0", both(put("y", ..., 0.0), put("z", ..., 0.0))),
    ("no place on tapes", put_shape("data_changes.value", (12,))),
    ("no place on tapes", put_shape("result_signs.value", (6,))),
    ("on no tape, or on several", put("network.data_changes.value", (0, 3), 0.0)),
    ("on no tape, or on several", put("network.result_signs.value", (0, 3), 0.0)),
    ("on no tape, or on several", put("network.result_signs.value", (0, 3), 2.0)),
    ("something else than symbols", put("network.blank_tapes.value", (0, 0), 0.0)),
    ("does not show a 0", put("network.blank_tapes.value", (0, 17), 1.0)),
    ("does not show a 0", put("network.data_changes.value", (0, 0), -2.0)),
    ("does not show a 0", put("network.data_changes.value", (0, 0), 4.0)),
    ("two bits share a cell", put("network.data_cells.to", 0, 18)),
    ("has no place, or is none", put("network.data_bits.index", 0, 1)),
    ("leaves something else", put("network.data_cells.to", 1, 31)),
    ("no layers", part("primary", sizes=[1])),
    ("no layers", part("primary", sizes=3)),
    ("size of a layer", part("primary", sizes=[1, 0, 1])),
    ("size of a layer", part("primary", sizes=[1, 1 << 32, 1])),
    ("layers are described otherwise", part("primary", extra=1)),
    ("do not fit the primary", part("primary", sizes=[2, 1])),
    ("do not fit the primary", part("primary", sizes=[1, 2])),
    ("theta does not fit the primary", part("primary", sizes=[1, 1, 1])),
    ("activation is unknown", part("primary", activation="sigmoid")),
    ("'output' is another", part("primary", activation="sign")),
    ("answers are described otherwise", part("primary", gates=[])),
    ("format has other entries", part("data_format", extra=1)),
    ("format has other entries", part("weight_format", extra=1)),
    ("continuous or not", part("data_format", continuous=0)),
    ("'data' is another", part("data_format", continuous=True)),
    ("number of bits", part("data_format", width=33)),
    ("number of bits", part("data_format", width=0)),
    ("number of bits", part("data_format", fraction=33)),
    ("number of bits", part("weight_format", fraction=-1)),
    ("'theta' is another", part("weight_format", fraction=0)),
    ("away from what a machine", add("s", 0, 1e-6)),
    ("away from what a machine", add("H", (0, 0), 1e-6)),
    ("away from what a machine", add("T", (0, 0), 1e-6)),
    ("vertex that does not halt", lambda net: net.arrays.update(_at_vertex(net, 0))),
    ("under the heads lie other", put("T", (23, 0), 1.0)),
    ("under the heads lie other", lambda net: net.arrays.update(_at_vertex(net, 54))),
    ("copied are not the labels", add("z", (0, 0), 1)),
    ("the theta claimed", claims(theta=[1.0, 0.0])),
    ("the theta claimed", put("network.result_signs.value", (0, 3), -1.0)),
    ("the theta claimed", put("network.result_cells.index", slice(None), range(22, 16, -1))),
    ("the output claimed", claims(output=[[1.5], [1.5]])),
    ("the output claimed", claims(output=[1.5, 1.0])),
    ("the loss claimed", claims(final_loss=3.5)),
    ("the loss claimed", lambda net: claims(final_loss=_stop(net) - 0.5)(net)),
    ("B_stop does not exceed", lambda net: claims(final_loss=_stop(net))(net)),
    ("their ideal values", claims(deviation=1e-6)),
    ("steps of training", part("training", steps=0)),
    ("time of training", part("training", seconds="8")),
    ("engine of training", part("training", engine=3)),
    ("training is described otherwise", part("training", extra=3)),
    ("has not halted", one_step_less),
    ("halts before training ends", one_step_more),
    ("writes on a tape of its data", lambda net: _other_write(net)),
    ("in the state or at the cells", moved("H", 1, 1)),
    ("in the state or at the cells", moved("H", 0, 1)),
    ("leaves something else", put("T", (0, 0), 1.0)),
    *(("a list for each tape", config(tapes=tapes)) for tapes in ([], [[], []], 3)),
    *(("lies beside it", config(tapes=[own])) for own in (["0"], 3, [True], [16], [-17])),
    ("leaves something else", config(tapes=[[15]])),
    ("leaves something else", config(tapes=[[-16]])),
    ("named twice", config(tapes=[[9, 9]])),
    *(("does not have", put("x", (0, 0), number)) for number in (4.5, 0.25, 2.0, 2.0**160)),
    ("does not have", put("y", (0, 0), -(2.0**160))),
]


def _at_vertex(net: Net, vertex: int) -> dict[str, np.ndarray]:
    """s at another vertex."""
    s = np.zeros_like(net.arrays["s"])
    s[vertex] = 1.0
    return {"s": s}


def _other_write(net: Net) -> None:
    assert isinstance(net.source, Machine)
    case = next(iter(net.source.rules))
    rule = net.source.rules[case]
    other = "1" if rule.write[0] == "0" else "0"
    net.machine(rules={**net.source.rules, case: replace(rule, write=(other, rule.write[1]))})
    net.put("network.written.value", (0, 0), -net.arrays["network.written.value"][0, 0])


def _stop(net: Net) -> float:
    assert net.network is not None
    return net.network["training"]["stop"]


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
    """Five bits of exponent and ten of mantissa; but what is infinite there is a number here."""
    form = {"kind": "floating", "exponent": 5, "mantissa": 10}
    halves = np.arange(0, 31 << 10, dtype=np.uint16).view(np.float16).astype(float)
    numbers = np.concatenate([halves, 2 * halves[-1024:]])
    assert extended._in_format(np.concatenate([numbers, -numbers]), form)
    between = (numbers[1:] + numbers[:-1]) / 2
    assert not any(extended._in_format(np.array([own]), form) for own in (*between[::7], 2.0**17, -(2.0**17)))


def test_fixed_numbers_are_twos_complement() -> None:
    for width, fraction in ((1, 0), (4, 0), (5, 2), (3, 4)):
        form = {"kind": "fixed", "width": width, "fraction": fraction}
        whole = np.arange(-(1 << width - 1), 1 << width - 1)
        assert extended._in_format(whole / 2.0**fraction, form)
        for other in (1 << width - 1, -(1 << width - 1) - 1, 0.5, -0.25):
            assert not extended._in_format(np.array([other / 2.0**fraction]), form)


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


Moves = dict[str, tuple[int, str]]


def run(moves: Moves, ones: set[int], at: int, vertex: int, steps: int, cells: int) -> None:
    """Of a machine that moves its data head while it reads zeros, from the row 4 to another."""
    source = genuine().source
    assert isinstance(source, Machine)
    own = {(s, ("0", "0")): MachineRule(("0", "0"), (move, 0), then) for s, (move, then) in moves.items()}
    machine = replace(source, rules=own, states=tuple("abc"), start="a")
    H = np.zeros((cells, 2))
    H[[at, 4], [0, 1]] = 1
    weights = {"s": np.eye(12)[vertex], "T": np.full((cells, 1), -1.0), "H": H}
    extended._run(machine, [ones, set()], 4, 1, steps, weights)


def test_a_run_reads_what_lies_under_the_heads() -> None:
    """A machine that goes on to the first 1 of the data: unlike one that copies, it notices if every symbol
    is taken for the other."""
    for row in (6, 7):
        run({"a": (1, "a")}, {row}, row, 1, row - 4, 8)
    with pytest.raises(CheckError, match="in the state or at the cells"):
        run({"a": (1, "a")}, {6}, 6, 0, 2, 8)


def test_no_head_may_leave_its_tape() -> None:
    """Nor come back to it: of six cells the machine sees the last, of five it is beyond them for a step."""
    there_and_back = {"a": (1, "b"), "b": (-1, "c")}
    run(there_and_back, set(), 4, 8, 2, 6)
    run({"a": (-1, "a")}, {0}, 0, 1, 4, 6)
    with pytest.raises(CheckError, match="leaves its tape"):
        run(there_and_back, set(), 4, 8, 2, 5)
    with pytest.raises(CheckError, match="leaves its tape"):
        run({"a": (-1, "a")}, {-1}, 5, 1, 5, 6)


def drawn(primary: Any, form: Any, *, blank: str = "0") -> tuple[TapeNet, dict[str, Any]]:
    """An extended network for three samples, whose algorithm copies numbers of the data, and what it is given
    before training."""
    bits = primary.weights * form.width
    x, y = np.array([[1.0, -1.0], [0.0, 1.0], [1.0, 1.0]]), np.array([[-1.0], [1.0], [0.0]])
    own = training(primary, copy_bits(bits, blank), x, y, data_format=form, cells=256)
    assert isinstance(own.net, TapeNet)
    return own.net, own.net.given(own.start())


def of_network(net: TapeNet, given: dict[str, Any]) -> tuple[Any, ...]:
    """What the checker reads, and its places."""
    graph = graph_of(to_json(net.network), arrays_of(net.network))
    found, own = read(graph)
    connected = net.error.network.primary
    assert isinstance(connected, Connected)
    settings = {
        "primary": primary_to_json(connected.network),
        "data_format": format_to_json(connected.data_format),
        "weight_format": format_to_json(connected.weight_format),
    }
    return graph, settings, given, found, own, Places.of(graph, net.cells, net.tapes)


ANSWERS = Answers(2, 2, np.array([[6, 0, 1], [8, 2, 3], [14, 4, 5], [5, 6, 0]]), answer=7)
"""Four gates in three levels, on two bits that are remembered and two of a sample."""


def test_the_last_wires_that_answers_may_name() -> None:
    own = {"memory": 1, "inputs": 2, "gates": [[6, 0, 2], [8, 3, 1]], "answer": 4}
    assert extended._sizes(own) == ([2, 1], 1)
    for changes in ({"answer": 5}, {"answer": -1}, {"answer": True}):
        with pytest.raises(CheckError, match="the answer"):
            extended._sizes(own | changes)
    for gate in ([6, 0, 3], [6, 3, 0]):
        with pytest.raises(CheckError, match="gate"):
            extended._sizes(own | {"gates": [gate], "answer": 3})
    for changes in ({"memory": -1}, {"inputs": 1 << 32}):
        with pytest.raises(CheckError, match="number of bits"):
            extended._sizes(own | changes)


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize(
    ("primary", "form"),
    [
        (MLP((2, 1)), FixedPoint(2)),
        (MLP((2, 1, 1), "step"), FixedPoint(4, 1)),
        (MLP((2, 2, 1)), FloatingPoint(2, 1)),
        (MLP((2, 1), "sign"), FloatingPoint(3, 2)),
        (ANSWERS, FixedPoint(2)),
    ],
)
def test_every_extended_network_is_known_and_computed(primary: Any, form: Any, continuous: bool) -> None:
    """Any other primary network or format is refused; outputs are those of the compiler's own engine, on the
    way and where the tapes hold bits."""
    net, start = drawn(primary, replace(form, continuous=continuous))
    random = np.random.default_rng(0)
    given = start | {"T": random.choice([-1.0, 1.0], start["T"].shape), "z": start["y"]}
    graph, settings, *rest = of_network(net, given)
    require_network(graph, settings, *rest)
    other = {"data_format": settings["data_format"] | {"continuous": not continuous}}
    with pytest.raises(CheckError, match="'data' is another"):
        require_network(graph, settings | other, *rest)
    wanted = net.plain.run(given)[0]
    for name, own in outputs_of(graph, given).items():
        assert np.allclose(own, wanted[name], rtol=1e-12, atol=0), name


def test_bits_on_several_tapes() -> None:
    """Three symbols are two bits each."""
    net, start = drawn(linear(2), FixedPoint(2), blank="_")
    graph, settings, _, _, _, places = of_network(net, start)
    assert len(places.blank) == 2
    assert settings["primary"] == {"sizes": [2, 1], "activation": "relu"}
    for name in ("data_changes", "result_signs"):
        node = node_of(graph, name, "constant")
        both_tapes = {"value": np.broadcast_to(node.arrays["value"].sum(axis=0), node.arrays["value"].shape)}
        nodes = tuple(replace(own, arrays=both_tapes) if own is node else own for own in graph.nodes)
        with pytest.raises(CheckError, match="on no tape, or on several"):
            Places.of(replace(graph, nodes=nodes), net.cells, net.tapes)


def test_near_is_near() -> None:
    for found, claimed in product((0.0, 1.0), (0.0, 1.0, 1 + 1e-10, 1 + 1e-8, 1e-10, 1e-8)):
        assert extended._near(found, claimed) is (abs(found - claimed) <= 2e-9)
    assert not extended._near([1.0], 1.0)
