"""Passes from programs to learners and circuits: every instruction of the machine, whatever the program.

The memory of the learner, or the wires of the circuit, hold registers and memories bit by bit. The formulas
of one step are written down a second time, over these bits; the saved circuit, followed gate by gate, must
give them. Which program it is does not enter: it is in the memory when a run begins, and so is its input.
"""

from collections.abc import Callable, Sequence
from itertools import islice

from tapegrad_check.core.nodes import Likely, Nodes
from tapegrad_check.fields import whole
from tapegrad_check.folder import require
from tapegrad_check.formulas.words import equal, where
from tapegrad_check.instructions import Formulas, formulas, proved
from tapegrad_check.instructions.likely import likely
from tapegrad_check.instructions.ports import Cells, Layout
from tapegrad_check.passes.step import Step
from tapegrad_check.sources import MOST_BYTES, Circuit, Learner, Model, Program

NODES_PER_GATE, NODES_AT_LEAST = 8, 1 << 17
"""Gates that reach no output are not saved, so formulas may have more of them than the circuit."""


def _learner(before: Model, step: Step) -> Model:
    """The learner whose memory is that of the machine, and which takes one step for each sample."""
    after = step.saved()
    require(isinstance(before, Program) and isinstance(after, Learner), "a program becomes no learner")
    assert isinstance(before, Program)
    assert isinstance(after, Learner)
    whole(step.option("steps"), "the number of samples", 1, 1 << 40)
    circuit = after.circuit
    layout = _layout(before, step, circuit.outputs[2:])
    require(circuit.inputs == (*circuit.outputs[2:], "random", "guess"), "the inputs are not the memory")
    require(circuit.outputs[:2] == ("answer", "finished"), "the learner gives something else")
    require(after.bits == 0 and not any(after.first), "the learner's samples or its first memory are others")
    if not step.proves:
        return after
    nodes = _room(circuit)
    inputs = nodes.variables(len(circuit.inputs))
    stopped, well, bits = _one_step(nodes, formulas(before), layout, inputs[:-2])
    wanted = [where(nodes, stopped, well, inputs[-1]), stopped, *bits]
    found = nodes.outputs(circuit, inputs)
    what, states = f"a lesson is not a step of {before.kind}", _likely(layout, inputs[:-2])
    nodes.require_same(found, wanted, what, circuit.outputs, states)
    step.statements.extend(proved(before, layout))
    step.statements.append(
        f"a lesson is one step of {before.kind} with {before.ram:,} bytes of memory, for all that registers "
        "and memories can hold, and a program that has stopped has finished"
    )
    return after


def _circuit(before: Model, step: Step) -> Model:
    """The circuit that takes registers and memories to what they are after some steps."""
    after = step.saved()
    require(isinstance(before, Program) and isinstance(after, Circuit), "a program becomes no circuit")
    assert isinstance(before, Program)
    assert isinstance(after, Circuit)
    layout = _layout(before, step, after.inputs)
    steps = whole(step.option("instructions"), "the number of instructions", 1, len(after.kinds) + 1)
    require(after.outputs == ("stopped", *after.inputs), "the outputs are not the state of the machine")
    if not step.proves:
        return after
    nodes = _room(after)
    inputs = nodes.variables(len(after.inputs))
    bits: Sequence[int] = inputs
    for _ in range(steps):
        earlier = bits
        _, _, bits = _one_step(nodes, formulas(before), layout, bits)
        if bits == earlier:  # nothing changes any more
            break
    stopped = nodes.any_of(_parted(layout, bits)[0]["trap"])
    found = nodes.outputs(after, inputs)
    what = f"the circuit is not {steps:,} steps of {before.kind}"
    nodes.require_same(found, [stopped, *bits], what, after.outputs, _likely(layout, inputs))
    step.statements.extend(proved(before, layout))
    step.statements.append(
        f"the circuit is {steps:,} steps of {before.kind} with {before.ram:,} bytes of memory, for all that "
        "registers and memories can hold"
    )
    return after


PASSES: dict[str, Callable[[Model, Step], Model]] = {
    "registers and memory as memory": _learner,
    "steps one after the other": _circuit,
}


def _layout(program: Program, step: Step, names: tuple[str, ...]) -> Layout:
    """The machine with the room that the net has, once the names are known to be of its bits."""
    taken, kept = (
        whole(step.option(name), f"the room for {name}", 1, MOST_BYTES) for name in ("input", "output")
    )
    require(kept.bit_count() == 1, "the room for output is no power of two")
    layout = Layout.of(program, taken, kept)
    same = layout.bits == len(names) and tuple(layout.names()) == names
    require(same, "the bits are not those of registers and memories")
    return layout


def _likely(layout: Layout, inputs: Sequence[int]) -> Likely:
    registers, memories = _parted(layout, inputs)
    held = {name: [word] for name, word in registers.items()} | memories
    return likely(layout, [(name, at, word) for name, words in held.items() for at, word in enumerate(words)])


def _room(circuit: Circuit) -> Nodes:
    return Nodes(NODES_AT_LEAST + NODES_PER_GATE * (len(circuit.inputs) + len(circuit.kinds)))


def _one_step(n: Nodes, step: Formulas, layout: Layout, bits: Sequence[int]) -> tuple[int, int, list[int]]:
    """Whether the program has stopped, whether at its end, and all bits after a step; a program that has
    stopped stays as it is."""
    registers, memories = _parted(layout, bits)
    stopped = n.any_of(registers["trap"])
    cells = Cells(n, memories)
    effect = step(n, layout, registers, cells.read)
    for port in effect.writes:
        cells.write(port._replace(change=[n.and_(stopped ^ 1, bit) for bit in port.change]))
    after = []
    for name, old in registers.items():
        for was, new in zip(old, effect.registers.get(name, old), strict=True):
            kept = n.or_(n.and_(stopped ^ 1, new), n.and_(stopped, was))
            after.append(was if new == was else kept)
    after += [bit for held in cells.memories.values() for word in held for bit in word]
    return stopped, equal(n, registers["trap"], 1), after


def _parted(layout: Layout, bits: Sequence[int]) -> tuple[dict[str, list[int]], dict[str, list[list[int]]]]:
    """Registers, and memories word by word."""
    rest = iter(bits)
    registers = {name: list(islice(rest, width)) for name, width in layout.registers.items()}
    memories = {
        name: [list(islice(rest, width)) for _ in range(words)]
        for name, (width, words) in layout.memories.items()
    }
    return registers, memories
