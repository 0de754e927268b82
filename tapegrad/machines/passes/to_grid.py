"""A machine on a line becomes a machine on the grid that never leaves row 0."""

from tapegrad.errors import Refused
from tapegrad.lowering.rewriting import Rewriting
from tapegrad.machines.grid import GridConfiguration, GridMachine, GridRule
from tapegrad.machines.model import LEFT, RIGHT, STAY, Configuration, TuringMachine

_DIRECTION = {LEFT: "left", STAY: "stay", RIGHT: "right"}


def to_grid(machine: TuringMachine) -> Rewriting:
    """Lays the only tape along row 0: cell i is row 0, column i.

    Guarantee: one step for each step, same states, symbols and blank. A grid machine has no accepting
    states of its own; the names of the states survive, so the verdict can still be read off.
    """
    if machine.tapes != 1:
        raise Refused(
            f"the machine {machine.name!r} has {machine.tapes} tapes, the grid has one head",
            advice="Join the tapes with one_tape first.",
        )
    after = GridMachine(
        rules={
            (state, read): GridRule(rule.write[0], _DIRECTION[rule.moves[0]], rule.state)
            for (state, (read,)), rule in machine.rules.items()
        },
        start_state=machine.start_state,
        blank=machine.blank,
        name=f"{machine.name} on the grid",
        alphabet=machine.alphabet,
        states=machine.states,
    )

    def encode(state: Configuration) -> GridConfiguration:
        (tape,), (head,) = state.tapes, state.heads
        return GridConfiguration(state.state, {(0, cell): symbol for cell, symbol in tape.items()}, (0, head))

    def decode(state: GridConfiguration) -> Configuration:
        tape = {column: symbol for (_, column), symbol in state.cells.items()}
        return Configuration(state.state, (tape,), (state.head[1],))

    return Rewriting("line to grid", machine, after, encode, decode)
