"""Machine to circuit: `steps` steps on a window of `cells` cells, written out one after the other.

Flags that cannot be set yet are constants and fold away: after t steps only 2t + 1 cells have logic.
"""

from collections.abc import Sequence

from tapegrad.circuits.builder import CircuitBuilder
from tapegrad.errors import InputError, Refused
from tapegrad.lowering.configuration_wires import ConfigurationWires, window_of
from tapegrad.lowering.rewriting import Rewriting
from tapegrad.machines.grid import GridMachine
from tapegrad.machines.model import TuringMachine

MOST_GATES = 10_000_000


def unroll(
    machine: TuringMachine | GridMachine,
    steps: int,
    cells: int | Sequence[int],
    first: int | Sequence[int] | None = None,
) -> Rewriting:
    """The circuit that takes the tapes of a start configuration to the configuration after `steps` steps.

    The window is `first` to `first + cells - 1` on every tape (by default cell 0 is in its middle); on a
    grid both are given for rows and columns. The heads start at cell 0.
    """
    window = window_of(machine, cells, first)
    if steps < 0:
        raise InputError("unrolling needs a number of steps, 0 or more")
    code = ConfigurationWires(machine, window)
    build = CircuitBuilder()
    wires = code.start(build)
    for step in range(steps):
        wires = code.step(build, wires)
        if build.size > MOST_GATES:
            raise Refused(
                f"unrolling takes more than {MOST_GATES:,} gates",
                where=f"step {step + 1}",
                advice="Ask for fewer steps or cells.",
            )
    code.outputs(build, wires)
    circuit = build.circuit(f"{machine.name}, {steps} steps")
    return Rewriting("unroll", machine, circuit, code.encode, code.decode, covers=steps)
