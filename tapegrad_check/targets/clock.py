"""Is a transformer of gates and heads this circuit with state? A step of the one is a cycle of the other.

What is carried are the latches, the outputs of the last cycle, the number of cycles taken, and whether that
was the last. One head finds the word of the trace that this number asks for: a bit that says whether it is
the last, and then the inputs. What the latches and outputs become is a formula of these, gate by gate that of
the saved circuit; so it holds for all traces and all states, whatever a run begins with.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad_check.core.nodes import Nodes
from tapegrad_check.fields import whole
from tapegrad_check.folder import OWN_TABLE, Checked, NotProved, require
from tapegrad_check.formulas.words import Word, add, number
from tapegrad_check.instructions.ports import Effect, Layout, Read
from tapegrad_check.sources import Model, Sequential, digest, model_of
from tapegrad_check.sources.circuits import GATES, arrays_of_lists
from tapegrad_check.targets.heads import Heads

if TYPE_CHECKING:
    from tapegrad_check.targets.attention import Walk

KIND = "clock"


def check(
    config: dict[str, Any],
    net: "Walk",
    groups: dict[str, list[int]],
    ends: list[int],
    steps: int,
    source: Model | None,
) -> Checked:
    """What holds of the net as a circuit with state."""
    data = config["machine"]
    require(data.keys() == {"kind", "cycles", "source", "arrays"}, "the machine has other entries")
    require(whole(data["cycles"], "the cycles of the circuit") == steps, "the circuit is for other cycles")
    machine = model_of(data["source"], arrays_of_lists(data["arrays"], {**GATES, "resets": np.uint8}))
    assert isinstance(machine, Sequential)  # nothing else has resets
    if source is not None:
        require(digest(machine) == digest(source), "the circuit of the net is not that of the source")
    sizes = {
        "latches": len(machine.latches),
        "outputs": len(machine.outputs),
        "taken": steps.bit_length(),
        "trap": 1,
    }
    registers = {name: size for name, size in sizes.items() if size}
    memory = {"input": (1 + len(machine.inputs), steps)}
    layout = Layout(0, 0, registers, memory, addresses={"input": registers["taken"]})
    heads = Heads(layout, net, groups)
    require(config["banks"] == [vars(bank) for bank in heads.banks], "the bank is not the trace")
    require(sorted(ends) == groups["trap"], "the end is not that of the trace")

    def cycle(n: Nodes, layout: Layout, held: Mapping[str, Word], read: Read) -> Effect:
        last, *inputs = read("input", held["taken"], 1)
        found = n.outputs(machine.logic, [*inputs, *held.get("latches", ())])
        count = len(machine.outputs)
        taken = add(n, held["taken"], number(1, len(held["taken"])))
        after = {"outputs": found[:count], "latches": found[count:], "taken": taken, "trap": [last]}
        return Effect({name: after[name] for name in layout.registers}, [])

    try:
        heads.check_step(cycle, "what is handed on is not what a cycle of the circuit makes of it")
    except NotProved as reason:
        return Checked([f"the circuit was not checked: {reason}"], OWN_TABLE)
    return Checked(
        [
            f"for all that {len(machine.latches):,} latches hold and all inputs, a step is one cycle of the "
            f"circuit: outputs and latches are its {len(machine.logic.kinds):,} gates, formula by formula",
            "the trace is the tokens: the head asks for the word of this cycle, which says whether it is the "
            "last",
        ]
    )
