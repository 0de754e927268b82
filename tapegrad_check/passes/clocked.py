"""Passes that start from a circuit with state: latches as the memory of a learner, or cycles in a row.

Both are formulas of the circuit's own logic. As a learner, every sample is a cycle: what is learned from it
is what the latches become, and beside them the outputs, that they can be seen; every guess is wrong, so that
it is learned from. Without state, the logic is taken as often as there are cycles, from what latches are
reset to; those that are left open are inputs.
"""

import re
from collections.abc import Callable

from tapegrad_check.core.nodes import FALSE, TRUE, Nodes
from tapegrad_check.fields import whole
from tapegrad_check.folder import require
from tapegrad_check.passes.step import Step
from tapegrad_check.sources import Circuit, Learner, Model, Sequential
from tapegrad_check.sources.circuits import ANY

MOST_WIRES = 1 << 26
"""Of all cycles together."""


def _learner(before: Model, step: Step) -> Model:
    """The learner whose memory is the latches and the last outputs."""
    after = step.saved()
    require(isinstance(before, Sequential) and isinstance(after, Learner), "a circuit becomes no learner")
    assert isinstance(before, Sequential)
    assert isinstance(after, Learner)
    latches, outputs, circuit = len(before.latches), len(before.outputs), after.circuit
    memory = [f"latch {name}" for name in before.latches] + [f"output {name}" for name in before.outputs]
    inputs = [f"input {name}" for name in before.inputs]
    require(circuit.inputs == (*memory, *inputs, "random", "guess"), "the learner has other inputs")
    require(circuit.outputs == ("answer", "finished", *memory), "the learner has other outputs")
    first = [0 if reset == ANY else reset for reset in before.resets] + [0] * outputs
    require(after.first == tuple(first), "the first memory is not what the latches are reset to")
    nodes = Nodes()
    given = nodes.variables(len(circuit.inputs))
    found = nodes.outputs(before.logic, [*given[len(memory) : -2], *given[:latches]])
    wanted = [given[-1], FALSE, *found[outputs:], *found[:outputs]]
    what = "a lesson is not a cycle of the circuit"
    nodes.require_same(nodes.outputs(circuit, given), wanted, what, circuit.outputs)
    step.statements.append(
        f"a lesson is one cycle of the circuit, for all that its {latches:,} latches hold and all inputs; "
        "the memory before the first is their reset"
    )
    return after


def _unrolled(before: Model, step: Step) -> Model:
    """The circuit of so many cycles."""
    after = step.saved()
    require(isinstance(before, Sequential) and isinstance(after, Circuit), "cycles are no circuit")
    assert isinstance(before, Sequential)
    assert isinstance(after, Circuit)
    logic, cycles = before.logic, whole(step.option("cycles"), "the number of cycles", 1, MOST_WIRES)
    wires = len(logic.inputs) + len(logic.kinds) + len(logic.outputs)
    require(
        cycles * wires <= MOST_WIRES, "the number of cycles is out of proportion to the size of the files"
    )
    left_open = [name for name, reset in zip(before.latches, before.resets, strict=True) if reset == ANY]
    inputs = [_at(name, 0) for name in left_open]
    outputs = []
    for cycle in range(1, cycles + 1):
        inputs += [_at(name, cycle) for name in before.inputs]
        outputs += [_at(name, cycle) for name in before.outputs]
    outputs += [_at(name, cycles + 1) for name in before.latches]
    outputs += ["done"] * (len(outputs) == len(inputs))
    require(after.inputs == tuple(inputs), "the inputs are not those of the cycles")
    require(after.outputs == tuple(outputs), "the outputs are not those of the cycles")
    nodes = Nodes()
    given = nodes.variables(len(inputs))
    rest = iter(given)
    latches = [next(rest) if reset == ANY else reset for reset in before.resets]
    wanted: list[int] = []
    for _ in range(cycles):
        found = nodes.outputs(logic, [*(next(rest) for _ in before.inputs), *latches])
        wanted += found[: len(before.outputs)]
        latches = found[len(before.outputs) :]
    what = f"the circuit is not {cycles:,} cycles of the one with state"
    wanted += [*latches, *[TRUE] * (outputs[-1:] == ["done"])]
    nodes.require_same(nodes.outputs(after, given), wanted, what, after.outputs)
    held = f", and for all that {len(left_open):,} latches hold that are left open" if left_open else ""
    step.statements.append(
        f"the circuit is {cycles:,} cycles from reset on, formula by formula, for all inputs{held}"
    )
    return after


def _at(name: str, cycle: int) -> str:
    """A bit in one cycle: `data[3]` in cycle 5 is `data@5[3]`."""
    bus = re.fullmatch(r"(.+)\[([0-9]+)\]", name)
    return f"{bus[1]}@{cycle}[{bus[2]}]" if bus else f"{name}@{cycle}"


def _one_cycle(before: Model, step: Step) -> Model:
    """A circuit is the logic of one with state that has no latches."""
    require(isinstance(before, Circuit), "only a circuit is the logic of a cycle")
    assert isinstance(before, Circuit)
    step.statements.append("a cycle of the circuit without latches is the circuit")
    return Sequential(before, ())


PASSES: dict[str, Callable[[Model, Step], Model]] = {
    "one cycle": _one_cycle,
    "latches as memory": _learner,
    "cycles one after the other": _unrolled,
}
