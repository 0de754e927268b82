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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from tapegrad.errors import FormatError
from tapegrad.machines.model import Configuration, GridConfiguration, GridMachine, TuringMachine
from tapegrad.source import quoted

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


# What every reader of machine texts shares: decoding, limits, positions, and short quotations for errors.


MAX_BYTES = 2 << 20
MAX_LINE = 10_000
"""Characters in a line, for the formats that are read line by line."""
MAX_RULES = 100_000
"""Rules of one machine, counted after wildcards and list keys are expanded."""
MAX_NAME = 200
"""Characters in the name of a state."""


def decode(data: bytes) -> str:
    """The text of a file, or a FormatError if it is empty, too large, binary or not UTF-8."""
    if len(data) > MAX_BYTES:
        raise FormatError(
            f"the text is {len(data):,} bytes long, and a machine may take {MAX_BYTES:,} at most",
            advice="Is this the right file?",
        )
    if (nul := data.find(b"\0")) >= 0:
        raise FormatError(
            "this is a binary file, not a text",
            where=f"byte {nul + 1} is zero",
            advice="Machines are read from UTF-8 text; save the file as UTF-8 if it is in UTF-16.",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise FormatError(
            f"byte {data[error.start]:#04x} is not UTF-8",
            where=f"line {line}, byte {column}",
            advice="Save the file as UTF-8 text.",
        ) from None
    if not text.strip():
        raise FormatError("the text is empty", advice="`tapegrad formats` shows an example of every format.")
    return text


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Every line with its number, counted from 1."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_LINE:
            raise FormatError(
                f"a line of {len(line):,} characters; {MAX_LINE:,} are allowed",
                where=str(At(number, MAX_LINE + 1)),
                advice="Is this the right file?",
            )
        yield number, line.rstrip("\r")


class At(NamedTuple):
    """A position in the text, written out only when an error needs it."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


def check_symbol(symbol: str, where: At | str) -> str:
    """The symbol itself, if it is a single character."""
    if len(symbol) != 1:
        raise FormatError(
            f"a symbol is one character, and {quoted(symbol)} is {len(symbol)}",
            where=str(where),
        )
    return symbol


def check_name(name: str, where: At | str) -> str:
    """The name of a state itself, if there is one and it is of a sensible length."""
    if not name:
        raise FormatError("the name of a state is missing", where=str(where))
    if len(name) > MAX_NAME:
        raise FormatError(
            f"the name of a state is {len(name):,} characters long; {MAX_NAME} are allowed", where=str(where)
        )
    return name


def check_count(rules: int, where: At | str) -> None:
    """Refuse a machine that is too large to hold."""
    if rules > MAX_RULES:
        raise FormatError(
            f"the machine has more than {MAX_RULES:,} rules once they are all written out",
            where=str(where),
            advice="Use fewer states or symbols, or fewer wildcards.",
        )
