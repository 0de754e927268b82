"""Halting made explicit: every state has an entry for everything it may read, or none at all."""

from itertools import product

from tapegrad.lowering.rewriting import Rewriting
from tapegrad.machines.model import RIGHT, Configuration, Rule, TuringMachine
from tapegrad.machines.names import Names, refuse_if_huge


def total_table(machine: TuringMachine) -> Rewriting:
    """Fills each gap in the table with a step into one new halting state.

    Guarantee: a state of the new machine has entries for all symbols, or for none and then it halts.
    States without entries are left as they are. A run that ended at a gap takes one step more, into the
    new state, which decodes to None; any other run is unchanged. That step writes nothing new and moves
    every head right, so stay-free machines stay so and one-way tapes too.
    """
    working = dict.fromkeys(state for state, _ in machine.rules)
    refuse_if_huge(
        len(working) * len(machine.alphabet) ** machine.tapes,
        "a total table",
        "Join the tapes with one_tape first, or shrink the alphabet.",
    )
    halt = Names(machine.states)("halt", "halt")
    every_read = list(product(machine.alphabet, repeat=machine.tapes))
    rules = {
        (state, read): machine.rules.get((state, read)) or Rule(read, (RIGHT,) * machine.tapes, halt)
        for state in working
        for read in every_read
    }
    after = TuringMachine(
        rules=rules,
        start_state=machine.start_state,
        blank=machine.blank,
        accept=machine.accept,
        reject=machine.reject,
        name=f"{machine.name}, total",
        alphabet=machine.alphabet,
        states=machine.states,
        tapes=machine.tapes,
    )

    def decode(state: Configuration) -> Configuration | None:
        return None if state.state == halt else state

    return Rewriting("total table", machine, after, lambda state: state, decode)
