"""Machine to grid machine: a tape is a row of a grid."""

from tapegrad.lowering.one_tape import one_tape
from tapegrad.lowering.rewriting import Rewriting, chained
from tapegrad.lowering.tables import to_grid
from tapegrad.machines.model import TuringMachine


def on_grid(machine: TuringMachine) -> Rewriting:
    """The machine on a grid; several tapes go on one tape first."""
    if machine.tapes == 1:
        return to_grid(machine)
    single = one_tape(machine)
    assert isinstance(single.after, TuringMachine)
    return chained(single, to_grid(single.after))
