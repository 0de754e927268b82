"""Writing machines in Python: `if`, `while`, moves, writes and subroutines instead of numbered states."""

from collections.abc import Iterable

from tapegrad.machines.control_flow import ControlFlow
from tapegrad.machines.heads import Head
from tapegrad.machines.model import LEFT, RIGHT, STAY, Rule, TuringMachine

ACCEPT, REJECT = "accept", "reject"
_MOVES = {"left": LEFT, "right": RIGHT, "stay": STAY}


class MachineBuilder(ControlFlow):
    """A Turing machine, written as a program.

        b = MachineBuilder("increment", symbols="01")
        b.seek("right", "_")
        b.move("left")
        with b.while_("1"):
            b.write("0")
            b.move("left")
        b.write("1")
        b.accept()
        machine = b.machine()

    States come about by themselves, as few as the program needs: a write and a move share a step, known
    symbols are not read again, and states that behave alike are merged. `state("name")` names one.

    With several tapes, `tapes` are the heads, and moves of different heads share a step too:

        b = MachineBuilder("copy", symbols="01", tapes=2)
        source, copy = b.tapes
        with b.until(source.reads("_")):
            for symbol in source.each("0", "1"):
                copy.write(symbol)
            source.move("right")
            copy.move("right")

    A subroutine is a Python function that takes the builder; it is written out wherever it is called, for
    a machine has no stack to return by.
    """

    def __init__(self, name: str, *, symbols: Iterable[str] = (), blank: str = "_", tapes: int = 1) -> None:
        super().__init__(name, blank, symbols, tapes)
        self.tapes: tuple[Head, ...] = (self, *(Head(self._program, tape) for tape in range(1, tapes)))

    def accept(self) -> None:
        """Stops and says yes."""
        self.halt(ACCEPT)

    def reject(self) -> None:
        """Stops and says no."""
        self.halt(REJECT)

    def machine(self) -> TuringMachine:
        """The machine that runs what has been written so far."""
        table = self._table()
        rules = {
            key: Rule(step.write, tuple(_MOVES[move] for move in step.moves), step.state)
            for key, step in table.rules.items()
        }
        reached = {table.start_state, *(rule.state for rule in rules.values())}
        verdicts = reached & self._program.halting_states()
        return TuringMachine(
            rules=rules,
            start_state=table.start_state,
            blank=table.alphabet[0],
            accept=frozenset({ACCEPT} & verdicts),
            reject=frozenset({REJECT} & verdicts),
            name=self.name,
            alphabet=table.alphabet,
            tapes=self._program.tapes,
        )
