"""A bad plan, option or lowered source for every condition of the checkers of passes, each refused for its
reason."""

import json
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from tapegrad._compile import prepare
from tapegrad._sources import read, source_to_json
from tapegrad.circuits import library as circuits
from tapegrad.learners import parity
from tapegrad.machines.model import Rule, TuringMachine
from tapegrad.machines.sampler import random_grid_machine, random_machine
from tapegrad.source import Source
from tapegrad_check import CheckError
from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.folder import Folder, NotProved
from tapegrad_check.formulas.words import equal, subtract
from tapegrad_check.passes import bound_source
from tapegrad_check.passes.circuits import Configurations
from tapegrad_check.passes.machines import most_rules
from tapegrad_check.passes.plans import Gate, Moment, _choices, carried
from tapegrad_check.passes.step import Step
from tapegrad_check.sources import model_of
from tests.check.test_passes import ON_ONE_TAPE, folder_of, plan_of, proved
from tests.check.test_passes_to_circuits import value

BB2 = "1RB1LB_1LA1RZ"


@cache
def genuine(name: str) -> Folder:
    match name:
        case "straight":
            return folder_of(circuits.ready("adder2"), "tape")
        case "evaluator":
            return folder_of(circuits.ready("adder2"), "tape", machine="evaluator")
        case "blocks":
            return folder_of(parity(1), "tape")
        case "memory":
            return folder_of(read(BB2), "emulator", steps=8, cells=5)
        case "tripled":
            return folder_of(random_machine(4, states=3, symbols=2, tapes=1, stay=True), "tape")
        case "sweeps":
            return folder_of(random_machine(4, states=2, symbols=2, tapes=2, stay=True), "rcnn")
    raise AssertionError(name)


Change = Callable[[Folder], Any]


def plan(**parts: Any) -> Change:
    return lambda folder: plan_of(folder).update(parts)


def of_plan(part: str, change: Callable[[Any], Any]) -> Change:
    return lambda folder: change(plan_of(folder)[part])


def moment(number: int, part: int, value: Any) -> Change:
    """Another time (0), reads (1), gates (2) or writes (3)."""
    return of_plan("moments", lambda moments: moments[number].__setitem__(part, value))


def first_gate(*numbers: Any) -> Change:
    def change(moments: list[Any]) -> None:
        next(moment for moment in moments if moment[2])[2][0] = list(numbers)

    return of_plan("moments", change)


def source(other: Source) -> Change:
    def change(folder: Folder) -> None:
        data, arrays = source_to_json(other)
        folder.config["source"] = json.loads(json.dumps(data))
        for name in [name for name in folder.arrays if name.startswith("source.")]:
            del folder.arrays[name]
        folder.arrays.update({f"source.{name}": np.array(array) for name, array in arrays.items()})

    return change


def few_rules(folder: Folder) -> None:
    del folder.config["lowered"]["rules"][3:]
    for entry in folder.config["passes"]:
        if "after" in entry:
            del entry["after"]["rules"][3:]


def option(**values: Any) -> Change:
    return lambda folder: folder.config["options"].update(values)


def lowered(**parts: Any) -> Change:
    return lambda folder: folder.config["lowered"].update(parts)


STRAIGHT: list[tuple[str, Change]] = [
    ("made of a circuit", source(parity(1))),
    ("no JSON object", lambda folder: folder.config["passes"][0].update(relation=[])),
    ("heads have no paths", plan(heads=[])),
    ("heads have no paths", plan(heads=[["0", "1"]])),
    ("heads have no paths", plan(heads=[[0, 1], [0, 1, 0]])),
    ("does not start at cell 0", plan(heads=[[0]])),
    ("does not start at cell 0", of_plan("heads", lambda heads: heads[0].__setitem__(0, 2))),
    ("from cell to cell", of_plan("heads", lambda heads: heads[0].__setitem__(1, 0))),
    ("from cell to cell", of_plan("heads", lambda heads: heads[0].__setitem__(-1, heads[0][-2] + 3))),
    ("times of the plan", moment(1, 0, 0)),
    ("times of the plan", moment(0, 0, -1)),
    ("times of the plan", moment(0, 0, False)),
    ("times of the plan", lambda folder: moment(-1, 0, len(plan_of(folder)["heads"][0]) - 1)(folder)),
    ("moment of the plan is broken", moment(0, 1, [[1, 0]])),
    ("moment of the plan is broken", moment(0, 1, [[-1, 0]])),
    ("moment of the plan is broken", moment(0, 1, [[0, 0, 0]])),
    ("moment of the plan is broken", moment(0, 1, [[0, 0], [0, 1]])),
    ("moment of the plan is broken", moment(0, 3, [[0, "0"]])),
    ("moment of the plan is broken", moment(0, 3, [[0, 0], [0, 1]])),
    ("gate of the plan is broken", first_gate(100, 16, 0, 0)),
    ("gate of the plan is broken", first_gate(100, 4, 0)),
    ("gate of the plan is broken", first_gate(100, 2)),
    ("gate of the plan is broken", first_gate(100, -1, 0)),
    ("gate of the plan is broken", first_gate(100, 1, 0, 0, 0)),
    ("gate of the plan is broken", first_gate(100)),
    ("gate of the plan is broken", first_gate(100, True)),
    ("place of its own", of_plan("inputs", lambda places: places.__setitem__(0, places[1]))),
    ("place of its own", of_plan("inputs", lambda places: places.pop())),
    ("not every output has a place", of_plan("outputs", lambda places: places.pop())),
    ("does not compute the circuit", of_plan("outputs", lambda places: places.reverse())),
    ("does not compute the circuit", of_plan("outputs", lambda places: places.__setitem__(0, [0, 10**6]))),
    ("straight-line machine lacks rules", few_rules),
]
BLOCKS: list[tuple[str, Change]] = [
    ("only a learner", source(circuits.ready("adder2"))),
    ("block of a sample is broken", plan(width="9")),
    ("block of a sample is broken", plan(state=3)),
    ("block of a sample is broken", plan(sample=["1"])),
    ("share a cell", of_plan("state", lambda state: state.__setitem__(0, 0))),
    ("share a cell", lambda folder: plan_of(folder)["state"].__setitem__(0, plan_of(folder)["width"])),
    ("share a cell", lambda folder: plan_of(folder)["state"].__setitem__(0, plan_of(folder)["sample"][0])),
    ("a bit has no cell", of_plan("state", lambda state: state.pop())),
    ("a bit has no cell", of_plan("sample", lambda sample: sample.pop())),
    ("no stops", plan(stops=[])),
    ("no stops", of_plan("stops", lambda stops: stops[0].__setitem__(0, "1"))),
    ("no stops", of_plan("stops", lambda stops: stops[0].__setitem__(0, True))),
    ("beside the block", of_plan("stops", lambda stops: stops[0].__setitem__(0, 0))),
    ("beside the block", lambda folder: plan_of(folder)["stops"][0].__setitem__(0, plan_of(folder)["width"])),
    ("moment of the plan is broken", of_plan("stops", lambda stops: stops[0].__setitem__(1, [[1, 0]]))),
    ("not a step of the learner", of_plan("state", lambda state: state.reverse())),
    ("writes over the sample", lambda folder: stop(folder, plan_of(folder)["sample"][0], [[99, 0]])),
    ("stops twice at one cell", lambda folder: stop(folder, plan_of(folder)["stops"][-1][0], [])),
    ("machine of the learner lacks rules", few_rules),
]


def stop(folder: Folder, cell: int, gates: list[list[int]]) -> None:
    """One stop more at the end, which writes the first of its gates."""
    writes = [[0, gates[0][0]]] if gates else []
    plan_of(folder)["stops"].append([cell, [], gates, writes])


def _no_learner(folder: Folder) -> None:
    data, arrays = source_to_json(circuits.ready("adder2"))
    folder.config["lowered"] = json.loads(json.dumps(data))
    for name in [name for name in folder.arrays if name.startswith("lowered.")]:
        del folder.arrays[name]
    folder.arrays.update({f"lowered.{name}": np.array(array) for name, array in arrays.items()})


def _names(part: str, place: int) -> Change:
    return lambda folder: folder.config["lowered"][part].__setitem__(place, "another")


def _first_memory(folder: Folder) -> None:
    folder.arrays["lowered.first"] = np.ones_like(folder.arrays["lowered.first"])


MEMORY: list[tuple[str, Change]] = [
    ("does not become a learner", _no_learner),
    ("does not become a learner", source(random_grid_machine(1))),
    ("number of samples", option(steps=-1)),
    ("number of samples", option(steps=(1 << 40) + 1)),
    ("not those of a configuration", option(cells=4)),
    ("inputs are not a configuration", _names("inputs", 0)),
    ("inputs are not a configuration", _names("inputs", -1)),
    ("inputs are not a configuration", _names("inputs", -2)),
    ("does not give a configuration", _names("outputs", 0)),
    ("does not give a configuration", _names("outputs", 1)),
    ("does not give a configuration", _names("outputs", -1)),
    ("its first memory are others", _first_memory),
    ("learner is not the machine", source(read("1RB1LB_1LA1LZ"))),
    ("learner is not the machine", lambda folder: folder.config["source"].update(accept=["Z"])),
    ("side of the window", option(cells=0)),
    ("another dimension", option(cells=[5, 1])),
]
OTHERS: list[tuple[str, str, Change]] = [
    ("evaluator", "the evaluator takes a circuit", source(parity(1))),
    ("tripled", "given something else", source(circuits.ready("adder2"))),
    ("tripled", "lowered source is not", lambda folder: folder.config["lowered"]["rules"].pop()),
    ("tripled", "stay-free machine lacks rules", few_rules),
    ("sweeps", "machine on one tape lacks rules", few_rules),
    ("sweeps", "one head|one tape lacks|something else|lowered source is not", source(read(BB2))),
]
ALL = {"straight": STRAIGHT, "blocks": BLOCKS, "memory": MEMORY}


@pytest.mark.parametrize(
    ("name", "reason", "change"),
    [*((name, *case) for name, cases in ALL.items() for case in cases), *OTHERS],
)
def test_a_bad_pass_is_refused_for_its_reason(name: str, reason: str, change: Change) -> None:
    folder = genuine(name)
    altered = Folder(json.loads(json.dumps(folder.config)), dict(folder.arrays), {})
    assert bound_source(altered).source is not None
    change(altered)
    with pytest.raises(CheckError, match=reason):
        bound_source(altered)


STAYING = TuringMachine(
    {
        ("a", ("0", "0")): Rule(("1", "0"), (0, 0), "b"),
        ("b", ("1", "0")): Rule(("1", "1"), (0, 0), "a"),
        ("a", ("1", "1")): Rule(("1", "1"), (1, -1), "b"),
    },
    "a",
    blank="0",
    alphabet=("0", "1"),
)
"""Both heads stay together, or none does."""


@pytest.mark.parametrize("symbols", [2, 3, 4, 5])
@pytest.mark.parametrize("target", ["tape", "rcnn", "transformer"])
def test_alphabets_of_every_size_are_proved(symbols: int, target: str) -> None:
    machine = random_machine(symbols, states=2, symbols=symbols, tapes=1 + (symbols < 4), stay=True)
    options = ON_ONE_TAPE.get(target, {})
    if prepare(machine, target, options):
        assert proved(folder_of(machine, target, **options))


@pytest.mark.parametrize(
    ("machine", "target", "reason"),
    [
        (random_machine(4, states=3, symbols=2, tapes=1, stay=True), "tape", "stay-free machine lacks"),
        (STAYING, "tape", "stay-free machine lacks"),
        (random_machine(4, states=2, symbols=2, tapes=2, stay=True), "transformer", "on one tape lacks"),
    ],
    ids=["stay-free", "stay-free on two tapes", "one tape"],
)
def test_a_machine_has_as_many_rules_as_its_pass_gives(machine: Any, target: str, reason: str) -> None:
    options = ON_ONE_TAPE.get(target, {})
    folder = folder_of(machine, target, **options)
    passes = prepare(machine, target, options)
    (after,) = (p.after for p in passes if p.name in ("stay-free", "one tape"))
    assert isinstance(after, TuringMachine)
    count = len(after.rules)
    for left, lacking in ((count, False), (count - 1, True)):
        altered = Folder(json.loads(json.dumps(folder.config)), folder.arrays, {})
        for entry in altered.config["passes"]:
            entry.pop("after", None)
        altered.config["lowered"]["rules"] = [altered.config["lowered"]["rules"][0]] * left
        with pytest.raises(CheckError) as refused:
            bound_source(altered)
        assert (reason in str(refused.value)) is lacking


def test_options_are_as_given_or_else_the_defaults_of_their_own_pass() -> None:
    """Defaults stand in the order of the lowerings, and those of the target last."""
    settings = {"options": {"a": 1}, "defaults": [{"a": 2, "b": 3}, {"b": 4}, {"b": 5, "c": 6}]}
    first, second, third, fourth = (Step(Folder(settings, {}, {}), number, "p") for number in range(4))
    assert [step.option("a") for step in (first, second, third)] == [1, 1, 1]
    assert [step.option("b", default=7) for step in (first, second, third, fourth)] == [3, 4, 7, 7]
    assert first.target_option("b") == third.target_option("b") == 5
    assert [first.target_option("d"), first.target_option("d", 8)] == [None, 8]
    for step, name in ((first, "c"), (second, "d"), (third, "c")):
        with pytest.raises(CheckError, match=f"option '{name}' of the pass 'p' is missing"):
            step.option(name)
    assert Step(Folder({"options": {}}, {}, {}), 0, "p").target_option("b", 9) == 9


def test_only_the_last_pass_but_those_in_the_net_gives_the_lowered_source() -> None:
    one, two = (json.loads(json.dumps(source_to_json(read(text))[0])) for text in (BB2, "1RB1LB_1LA1LZ"))
    passes: list[Any] = [{"name": "stay-free", "after": one}, {"name": "tripled"}, {"name": "layers"}]
    folder = Folder({"passes": passes, "lowered": two}, {}, {})
    assert Step(folder, 0, "stay-free").saved() == model_of(one, {})
    assert Step(folder, 1, "tripled").saved() == model_of(two, {})
    del folder.config["lowered"]
    with pytest.raises(NotProved, match="does not hold what the pass 'tripled' gave"):
        Step(folder, 1, "tripled").saved()


def test_rules_are_counted_where_they_are_saved() -> None:
    def counted(config: dict[str, Any], **arrays: Any) -> int:
        return most_rules(Step(Folder({"passes": [], **config}, arrays, {}), 0, "sweeps"))

    assert counted({}) == 0
    assert counted({}, a=np.zeros((2, 3)), b=np.zeros(5)) == 6
    assert counted({"lowered": {"rules": {}}, "passes": ["a", {}, {"after": 3}]}, a=np.zeros(7)) == 7
    assert counted({"lowered": {"rules": [0, 0]}}, a=np.zeros(7)) == 2
    assert counted({"lowered": {"rules": [0]}, "passes": [{"after": {"rules": [0, 0, 0]}}]}) == 3


def test_as_many_samples_as_there_may_be() -> None:
    folder = genuine("memory")
    altered = Folder(json.loads(json.dumps(folder.config)), dict(folder.arrays), {})
    option(steps=1 << 40)(altered)
    assert bound_source(altered).source is not None


def test_without_a_plan_nothing_is_proved() -> None:
    for name in ("straight", "blocks"):
        folder = genuine(name)
        altered = Folder(json.loads(json.dumps(folder.config)), dict(folder.arrays), {})
        del altered.config["passes"][0]["relation"]
        assert "holds no plan" in bound_source(altered).reason


def test_by_an_unknown_pass_nothing_is_proved() -> None:
    folder = genuine("tripled")
    altered = Folder(json.loads(json.dumps(folder.config)), dict(folder.arrays), {})
    altered.config["passes"][0]["name"] = "magic"
    bound = bound_source(altered)
    assert (bound.source, bound.statements) == (None, ())
    assert bound.reason == "the checker does not know the pass 'magic'"


def test_a_plan_uses_what_it_has_read_or_computed() -> None:
    late = [Moment({0: 7}, (), {}), Moment({}, (Gate(8, 1, (7,)),), {0: 8})]
    assert carried(late) == [(), (7,), ()]
    for plan in ([Moment({}, (Gate(8, 1, (7,)),), {})], [Moment({}, (), {0: 7})], late[::-1]):
        with pytest.raises(CheckError, match="has not read or computed"):
            carried(plan)


@pytest.mark.parametrize("operands", [0, 1, 2])
def test_gates_of_plans_have_a_truth_table(operands: int) -> None:
    """On bits and on formulas; the first operand is the higher digit of the place."""
    nodes = Nodes(1000)
    wires = {10: nodes.variables(1)[0], 20: nodes.variables(1)[0]}
    for table in range(1 << (1 << operands)):
        gate = Gate(30, table, (10, 20)[:operands])
        found = gate.formula(nodes, wires)
        for bits in product((0, 1), repeat=2):
            place = int("".join(map(str, bits[:operands])) or "0", 2)
            assert gate.value({10: bits[0], 20: bits[1]}) == table >> place & 1
            assert value(nodes, found, bits) == table >> place & 1


def test_every_choice_is_one() -> None:
    nodes = Nodes(1000)
    x, y, c = nodes.variables(3)
    for a, b in product((x, x ^ 1, c, c ^ 1, TRUE, FALSE), (y, y ^ 1, c, c ^ 1, TRUE, FALSE)):
        for found in _choices(nodes, c, a, b):
            for bits in product((0, 1), repeat=3):
                wanted = value(nodes, a if bits[2] else b, bits)
                assert value(nodes, found, bits) == wanted


# Windows, nodes


def test_windows_end_where_they_should() -> None:
    grid, line = (model_of(*source_to_json(m)) for m in (random_grid_machine(1), read(BB2)))
    states = {id(grid): len(grid.states), id(line): len(line.states)}  # type: ignore[union-attr]

    def window(machine: Any, cells: Any, first: Any, count: int) -> list[Any]:
        return Configurations(machine, cells, first, [""] * (states[id(machine)] + 2 * count)).window

    assert window(line, 3, None, 3) == [(-1,), (0,), (1,)]
    assert window(line, 4, None, 4) == [(-2,), (-1,), (0,), (1,)]
    assert window(line, 2, 0, 2) == [(0,), (1,)]
    assert window(line, 2, -1, 2) == [(-1,), (0,)]
    assert window(line, [2], [-1], 2) == [(-1,), (0,)]
    assert window(grid, 2, None, 4) == [(-1, -1), (-1, 0), (0, -1), (0, 0)]
    assert window(grid, [1, 3], [0, -2], 3) == [(0, -2), (0, -1), (0, 0)]
    assert window(grid, 2, -1, 4) == [(-1, -1), (-1, 0), (0, -1), (0, 0)]
    code = Configurations(grid, [2, 3], None, [""] * (states[id(grid)] + 12))  # type: ignore[arg-type]
    first = code.first_wires([9] * 6)
    assert (first.states, first.tapes) == ([TRUE] + [FALSE] * (states[id(grid)] - 1), [[[9]] * 6])
    assert [code.window[cell] for cell, flag in enumerate(first.heads[0]) if flag == TRUE] == [(0, 0)]
    for reason, machine, cells, first in (
        ("not in the window", line, 2, 1),
        ("not in the window", line, 2, -2),
        ("not in the window", line, 2, [False]),
        ("not in the window", grid, [1, 2], [0, 1]),
        ("another dimension", line, "3", None),
        ("another dimension", line, [1, 1], None),
        ("another dimension", line, 2, "0"),
        ("another dimension", grid, [2], None),
        ("another dimension", grid, 2, [0]),
        ("side of the window", grid, [2, 0], None),
        ("side of the window", line, 99, None),
        ("more cells than", grid, [9, 9], None),
        ("not those of a configuration", grid, [1, 1], None),
    ):
        with pytest.raises(CheckError, match=reason):
            window(machine, cells, first, 4)
    with pytest.raises(CheckError, match="only a machine"):
        Configurations(model_of(*source_to_json(circuits.ready("adder2"))), 3, None, [])  # type: ignore[arg-type]


def test_nodes_are_shared_folded_and_bounded() -> None:
    nodes = Nodes(5)
    a, b, c = nodes.variables(3)
    assert (a, b, c) == (2, 4, 6)
    both = nodes.and_(a, b)
    assert nodes.and_(b, a) == both
    assert [nodes.and_(a, x) for x in (FALSE, TRUE, a, a ^ 1)] == [FALSE, a, a, FALSE]
    assert [nodes.or_(a, x) for x in (FALSE, TRUE, a, a ^ 1)] == [a, TRUE, a, TRUE]
    assert [nodes.xor(a, x) for x in (FALSE, TRUE, a, a ^ 1)] == [a, a ^ 1, FALSE, TRUE]
    assert [nodes.xor(x, a ^ 1) for x in (FALSE, TRUE)] == [a ^ 1, a]
    differ = nodes.xor(a, b)
    assert nodes.xor(b ^ 1, a) == differ ^ 1
    assert [nodes.xor(a, differ), nodes.xor(differ, b), nodes.xor(b ^ 1, differ)] == [b, a, a ^ 1]
    assert len(nodes.operands) == 6
    with pytest.raises(CheckError, match="out of proportion"):
        nodes.and_(a, c)
    assert (nodes.any_of([]), nodes.all_of([])) == (FALSE, TRUE)
    assert (nodes.any_of([a]), nodes.any_of([a, FALSE, a ^ 1])) == (a, TRUE)


def test_a_difference_on_few_inputs_is_found_and_no_other_is_made_up() -> None:
    nodes = Nodes(1000)
    bits = nodes.variables(8)
    with pytest.raises(CheckError, match="differs"):
        nodes.require_same([nodes.all_of(bits)], [FALSE], "differs")
    with pytest.raises(CheckError, match="differs"):
        nodes.require_same([bits[0]], [bits[0] ^ 1], "differs")
    nodes.require_same(bits, bits, "differs")
    a, b, c = bits[:3]
    distributed = nodes.or_(nodes.and_(a, b), nodes.and_(a, c)), nodes.and_(a, nodes.or_(b, c))
    nodes.require_same([distributed[0]], [distributed[1]], "differs")
    x, y = nodes.variables(10), nodes.variables(10)
    far = nodes.any_of(subtract(nodes, x, y)) ^ 1, equal(nodes, x, y)
    for left, right in (far, [one ^ 1 for one in far]):
        nodes.require_same([left], [right], "differs")  # not from near by, but by diagrams
