"""Circuit to machine, the way the user chooses."""

from typing import Any

from tapegrad.circuits.model import Circuit
from tapegrad.errors import Refused
from tapegrad.lowering.evaluator_machine import evaluator_machine
from tapegrad.lowering.rewriting import Rewriting
from tapegrad.lowering.straight_line import straight_line


def circuit_machine(circuit: Circuit, machine: str = "straight-line", **options: Any) -> Rewriting:
    """`straight-line` (few steps, a table made for this circuit; options `tapes`, `carried`) or `evaluator`
    (one fixed table, the circuit on its tape)."""
    if machine == "straight-line":
        return straight_line(circuit, **options)
    if machine == "evaluator" and not options:
        return evaluator_machine(circuit)
    raise Refused(
        f"there is no way {machine!r} {'with these options ' if options else ''}from a circuit to a machine",
        advice="Choose straight-line (options tapes, carried) or evaluator.",
    )
