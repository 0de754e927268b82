"""What a builder records: instructions with jumps, and questions about the symbols under the heads."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tapegrad.machines.model import Symbols


@dataclass(frozen=True)
class Condition:
    """A question about the symbols under the heads. Conditions combine with `&`, `|` and `~`."""

    holds: Callable[[Symbols], bool]
    tapes: frozenset[int]
    """The tapes whose symbols it asks for."""

    def __and__(self, other: "Condition") -> "Condition":
        return Condition(lambda read: self.holds(read) and other.holds(read), self.tapes | other.tapes)

    def __or__(self, other: "Condition") -> "Condition":
        return Condition(lambda read: self.holds(read) or other.holds(read), self.tapes | other.tapes)

    def __invert__(self) -> "Condition":
        return Condition(lambda read: not self.holds(read), self.tapes)


@dataclass(eq=False)
class Place:
    """A place in a program that can be jumped to; its address is known once it has been reached."""

    address: int = -1


@dataclass(frozen=True)
class Write:
    tape: int
    symbol: str


@dataclass(frozen=True)
class Move:
    tape: int
    direction: str


@dataclass(frozen=True)
class Branch:
    """Go on if the condition holds, else jump."""

    condition: Condition
    otherwise: Place


@dataclass(frozen=True)
class Jump:
    to: Place


@dataclass(frozen=True)
class Named:
    """Does nothing; the state that begins here gets this name."""

    name: str


@dataclass(frozen=True)
class Halt:
    """Stop, in a state of this name; without a name, stop where you are."""

    state: str = ""


Instruction = Write | Move | Branch | Jump | Named | Halt


@dataclass
class Program:
    """Instructions in order; running off the end halts."""

    tapes: int
    blank: str
    code: list[Instruction] = field(default_factory=list)
    symbols: dict[str, None] = field(default_factory=dict)
    """Every symbol mentioned, in order."""
    open_blocks: int = 0
    """How many blocks have been begun and not ended: 0 when the program is complete."""

    def add(self, instruction: Instruction) -> None:
        """The next instruction."""
        self.code.append(instruction)

    def put(self, place: Place) -> None:
        """Fixes a place here (or moves it here)."""
        place.address = len(self.code)

    def reads(self, tape: int, symbols: tuple[str, ...]) -> Condition:
        """Whether the head of this tape is on one of the symbols."""
        self.symbols.update(dict.fromkeys(symbols))
        return Condition(lambda read: read[tape] in symbols, frozenset({tape}))

    def halting_states(self) -> frozenset[str]:
        """The names of the states in which the program asks to stop."""
        return frozenset(i.state for i in self.code if isinstance(i, Halt) and i.state)
