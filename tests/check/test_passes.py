"""Every pass to a machine is proved from the source and the pass's name; and of no other source."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tapegrad._compile import defaults, prepare
from tapegrad._saved import _for_the_checker
from tapegrad._sources import source_to_json
from tapegrad._witness import witnesses
from tapegrad.circuits import library as circuits
from tapegrad.circuits.layered import LayeredCircuit
from tapegrad.circuits.model import Circuit
from tapegrad.circuits.sampler import random_circuit
from tapegrad.learners import parity
from tapegrad.learners.kind import random_learner
from tapegrad.learners.model import CircuitLearner
from tapegrad.machines import library as machines
from tapegrad.machines.model import Rule
from tapegrad.machines.sampler import random_machine
from tapegrad.source import Source
from tapegrad.targets import target_named
from tapegrad_check import CheckError
from tapegrad_check.folder import Folder
from tapegrad_check.passes import bound_source
from tapegrad_check.sources import digest, lowered_of

AWRY = (CheckError, KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError)
"""What `check` takes for a folder that is broken."""


def folder_of(source: Source, target: str, **options: Any) -> Folder:
    """What a saved net has beside the net; layers are the net's own."""
    passes = [own for own in prepare(source, target, options) if not isinstance(own.after, LayeredCircuit)]
    data, own = source_to_json(source)
    lowered, lowered_arrays = source_to_json(passes[-1].after)
    config: dict[str, Any] = {
        "version": 2,
        "target": target,
        "options": options,
        "defaults": [dict(stage) for stage in defaults(source, target_named(target))],
        "passes": witnesses(passes),
        "source": data,
        "lowered": lowered,
    }
    arrays = {f"source.{name}": a for name, a in own.items()}
    arrays |= {f"lowered.{name}": a for name, a in lowered_arrays.items()}
    for number, rewriting in enumerate(passes):
        arrays |= _for_the_checker(rewriting, number, config["passes"][number], number < len(passes) - 1)
    return Folder(json.loads(json.dumps(config)), arrays, {})


def proved(folder: Folder) -> bool:
    """Whether the lowered source is shown to be that of the source."""
    bound = bound_source(folder)
    return bound.source is not None and digest(bound.source) == digest(lowered_of(folder))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("target", ["tape", "rcnn", "transformer"])
def test_machines(seed: int, target: str) -> None:
    tapes = 1 + seed % 3
    sizes = {"states": 2 + seed % 2, "symbols": max(2, 4 - tapes), "tapes": tapes}
    machine = random_machine(seed, **sizes, stay=seed % 4 < 3)
    if prepare(machine, target, {}):
        assert proved(folder_of(machine, target))


@pytest.mark.parametrize("name", machines.READY)
def test_ready_machines(name: str) -> None:
    assert proved(folder_of(machines.ready(name), "rcnn"))


@pytest.mark.parametrize("seed", range(30))
def test_circuits(seed: int) -> None:
    circuit = random_circuit(seed)
    assert proved(folder_of(circuit, "tape", tapes=1 + seed % 3, carried=1 + seed % 5))


@pytest.mark.parametrize("name", ["adder8", "parity4", "multiplier2"])
def test_ready_circuits(name: str) -> None:
    for options in ({}, {"tapes": 2}, {"machine": "evaluator"}):
        assert proved(folder_of(circuits.ready(name), "tape", **options))
    assert proved(folder_of(circuits.ready(name), "rcnn", tapes=2))


@pytest.mark.parametrize(
    ("inputs", "outputs", "wires"), [((), (), []), (("a",), (), []), (("a",), ("o",), [0])]
)
def test_circuits_without_gates(inputs: tuple[str, ...], outputs: tuple[str, ...], wires: list[int]) -> None:
    """The plan is a single step."""
    assert proved(folder_of(Circuit(inputs, outputs, [], [], [], wires), "tape"))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(15))
def test_learners(seed: int) -> None:
    assert proved(folder_of(random_learner(seed), "tape", carried=1 + seed % 3))


def with_source(folder: Folder, source: Source) -> Folder:
    data, own = source_to_json(source)
    arrays = {name: a for name, a in folder.arrays.items() if not name.startswith("source.")}
    arrays |= {f"source.{name}": a for name, a in own.items()}
    return Folder(json.loads(json.dumps(folder.config | {"source": data})), arrays, {})


def believed(folder: Folder) -> bool:
    try:
        return bound_source(folder).source is not None
    except AWRY:
        return False


def flipped(circuit: Circuit, gate: int) -> Circuit:
    """The same circuit with one gate negated."""
    kinds = np.array(circuit.kinds)
    kinds[gate] ^= 15
    return replace(circuit, kinds=kinds)


@pytest.mark.parametrize("options", [{}, {"tapes": 2}], ids=["one tape", "two tapes"])
def test_no_plan_is_that_of_a_circuit_with_another_gate(options: dict[str, Any]) -> None:
    circuit = circuits.ready("adder2")
    folder = folder_of(circuit, "tape", **options)
    for gate in range(len(circuit.kinds)):
        assert not believed(with_source(folder, flipped(circuit, gate)))


def test_no_plan_is_that_of_a_learner_with_another_gate() -> None:
    learner = parity(2)
    folder = folder_of(learner, "tape")
    circuit = learner.circuit
    for gate in range(len(circuit.kinds)):
        other = CircuitLearner(flipped(circuit, gate), learner.inputs, learner.first)
        assert not believed(with_source(folder, other))


ON_ONE_TAPE = {"transformer": {"form": "paper"}}
"""Options with which several tapes are put on one."""


@pytest.mark.parametrize("target", ["tape", "rcnn", "transformer"])
def test_no_lowered_machine_is_that_of_another_rule(target: str) -> None:
    machine = random_machine(4, states=3, symbols=3, tapes=2, stay=True)
    folder = folder_of(machine, target, **ON_ONE_TAPE.get(target, {}))
    assert proved(folder)
    for case, rule in machine.rules.items():
        first = rule.moves[0]
        moves = (1 if first < 1 else -1, *rule.moves[1:])
        other = replace(machine, rules={**machine.rules, case: Rule(rule.write, moves, rule.state)})
        assert not believed(with_source(folder, other))


def plan_of(folder: Folder) -> dict[str, Any]:
    return folder.config["passes"][0]["relation"]


@pytest.mark.parametrize("field", ["heads", "moments", "inputs", "outputs"])
def test_no_part_of_a_plan_can_be_changed(field: str) -> None:
    """Not even to another plan of the same circuit: the machine would be another one."""
    folder = folder_of(circuits.ready("adder2"), "tape")
    for change in (lambda a: a[::-1], lambda a: a[1:], lambda a: [], lambda a: [*a, a[-1]], lambda a: None):
        altered = Folder(json.loads(json.dumps(folder.config)), folder.arrays, {})
        plan_of(altered)[field] = change(plan_of(altered)[field])
        assert plan_of(altered) == plan_of(folder) or not believed(altered)


def test_a_plan_that_carries_too_much_is_refused_at_once() -> None:
    """Sixty wires in the state would be 2^60 states."""
    folder = folder_of(circuits.ready("parity4"), "tape")
    gates = [[100 + i, 1, i % 4] for i in range(60)]
    plan = plan_of(folder)
    plan["moments"][0][2] += gates
    plan["moments"][-1][3] = [[0, 100 + i] for i in range(60)]
    assert not believed(folder)
    plan["moments"] = [[t, [[0, t]], [], []] for t in range(60)] + [[60, [], [[99, 1, *range(2)]], [[0, 99]]]]
    plan["heads"] = [[t % 2 for t in range(62)]]
    assert not believed(folder)


@pytest.mark.parametrize("field", ["width", "state", "sample", "stops"])
def test_no_part_of_a_round_can_be_changed(field: str) -> None:
    folder = folder_of(parity(1), "tape")
    number = isinstance(plan_of(folder)[field], int)
    changes: list[Any] = [0, 10**9, -1, 10**400] if number else [[], None]
    value = plan_of(folder)[field]
    changes += [value + 1] if number else [value[::-1], value[1:], [*value, value[-1]]]
    for change in changes:
        altered = Folder(json.loads(json.dumps(folder.config)), folder.arrays, {})
        plan_of(altered)[field] = change
        assert not believed(altered)
