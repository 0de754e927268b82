"""What reading a machine gives, and how each format counts steps.

A machine of this package halts, without taking a step, where it has no rule; a step is a rule applied. The
formats' own simulators do not all count like that:

| format           | how a machine halts                   | what their simulator counts                    |
|------------------|---------------------------------------|------------------------------------------------|
| bbchallenge      | a rule enters Z (or H), as in `1RZ`   | rules applied, the one that enters Z included  |
|                  | `---`, an entry left undefined        | one step more: it is read as a halting `1RZ`   |
| turingmachine.io | no entry for the state and symbol     | rules applied                                  |
| morphett         | a rule enters a state named `halt...` | rules applied, the one that enters it included |
|                  | no rule for the state and symbol      | one step more: "halt" is entered by a step     |
| multi-tape       | a rule enters an accepting state      | rules applied, the one that enters it included |
|                  | no rule (the input is rejected)       | rules applied                                  |
| golly            | a rule with no move, `''` or 0        | rules applied, the halting one included        |

So one thing must be known: in which states may a run end without a further step being counted? That is
`Loaded.halting_states`, and `Loaded.counted_steps` goes by it. The row for multi-tape text is the plain
reading, since no published count was at hand to hold it against; the others follow published runs or code.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tapegrad.machines.grid import GridConfiguration, GridMachine
from tapegrad.machines.model import Configuration, TuringMachine

AnyMachine = TypeVar("AnyMachine", TuringMachine, GridMachine, TuringMachine | GridMachine)


@dataclass(frozen=True)
class Loaded:
    """A machine with what its file says besides."""

    machine: TuringMachine | GridMachine
    format: str
    input: tuple[str, ...] = ()
    """The input that the file proposes, one word for each tape; none if it proposes none."""
    head: int = 0
    """Where the file puts the head on that input."""
    halting_states: frozenset[str] | None = None
    """The states that halt by name, in a format that counts running into a missing rule anywhere else as
    one step more; None in a format that never does."""

    def start(self, *words: str) -> Any:
        """The machine's first configuration on these words, or, if there are none, on the file's input. A
        space stands for a blank in machines that have no space among their symbols."""
        machine = self.machine
        spaced = [
            word if " " in machine.alphabet else word.replace(" ", machine.blank)
            for word in words or self.input
        ]
        if isinstance(machine, GridMachine):
            return machine.start(spaced)
        first = machine.start(*spaced)
        return first if words else replace(first, heads=(self.head,) * machine.tapes)

    def counted_steps(self, steps: int, final: Configuration | GridConfiguration) -> int:
        """The number of steps that the format's own simulator prints for a run of `steps` rules that
        ended, or was cut off, in the configuration `final`."""
        if self.halting_states is None or final.state in self.halting_states:
            return steps
        halted = self.machine.step(final) is None  # type: ignore[arg-type]  # its own configuration
        return steps + halted


def with_symbols(machine: AnyMachine, symbols: Iterable[str]) -> AnyMachine:
    """The same machine with further symbols that inputs may hold."""
    return replace(machine, alphabet=(*machine.alphabet, *symbols))
