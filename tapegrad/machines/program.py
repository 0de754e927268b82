"""What a builder records: instructions with jumps, and questions about the symbols under the heads."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import product

from tapegrad.errors import SourceError
from tapegrad.machines.model import Names, Symbols, refuse_if_huge


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


@dataclass(frozen=True)
class Fork:
    """Send another head one cell in this direction, which goes on at a place of its own."""

    direction: str
    to: Place


@dataclass(frozen=True)
class Vanish:
    """The head is gone, and what it has written stays."""


Instruction = Write | Move | Branch | Jump | Named | Halt | Fork | Vanish


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


# From a program to a transition table with few states: each rule does as much as one step can.


HALT = "halt"
"""The state for a plain halt after a write or a move."""
GONE = ""
"""Instead of a state, where a head vanishes."""


@dataclass(frozen=True)
class Step:
    """A rule whose moves are still words, as grids and tapes have different ones."""

    write: Symbols
    moves: tuple[str, ...]
    state: str
    forks: tuple[tuple[str, str], ...] = ()
    """Direction and state of every further head that it sends out."""


@dataclass(frozen=True)
class Table:
    """Rules in order of discovery; states without rules halt."""

    rules: dict[tuple[str, Symbols], Step]
    start_state: str
    alphabet: Symbols


def assemble(program: Program) -> Table:
    """Explores the program from its start. A state is a point where a step must end: where the program asks
    for, writes or leaves a cell that the head has only just reached. Between two such points the
    symbols are known, so writes, moves and branches fold into a single rule and no step is wasted."""
    alphabet = tuple(dict.fromkeys([program.blank, *program.symbols]))
    assembler = _Assembler(program)
    start = assembler.state(0)
    rules: dict[tuple[str, Symbols], Step] = {}
    for address, state in assembler.found:  # grows while it is read
        for read in product(alphabet, repeat=program.tapes):
            step = assembler.follow(address, read)
            if step is not None:
                rules[state, read] = step
        refuse_if_huge(len(rules), "the program", "Use fewer tapes, symbols or nested `each` loops.")
    return Table(rules, start, alphabet)


class _Assembler:
    """Names the states of a program as they are found, and follows it through one step."""

    def __init__(self, program: Program) -> None:
        self.code = [*program.code, Halt()]
        self.names = Names(i.state or HALT for i in self.code if isinstance(i, Halt))
        self.found: list[tuple[int, str]] = []
        """Address and name of every state, in order of discovery."""
        self.known: set[int] = set()
        self.context = ["start"]
        """For each address the last name before it: what unnamed states are called, with a number."""
        for address, instruction in enumerate(self.code):
            if isinstance(instruction, Named):
                self.names(self.resolved(address), instruction.name)
            self.context.append(instruction.name if isinstance(instruction, Named) else self.context[-1])

    def state(self, address: int) -> str:
        """The state that begins at this address."""
        address = self.resolved(address)
        instruction = self.code[address]
        if isinstance(instruction, Halt):
            return instruction.state or HALT
        if isinstance(instruction, Vanish):
            return GONE
        name = self.names(address, self.context[address])
        if address not in self.known:
            self.known.add(address)
            self.found.append((address, name))
        return name

    def resolved(self, address: int) -> int:
        """Past everything that does nothing."""
        seen = set()
        while isinstance(instruction := self.code[address], Jump | Named):
            if address in seen:
                raise self.endless(address)
            seen.add(address)
            address = instruction.to.address if isinstance(instruction, Jump) else address + 1
        return address

    def follow(self, address: int, read: Symbols) -> Step | None:
        """Runs the program from here until the step must end; None if it halts having done nothing."""
        now = list(read)
        moves: list[str | None] = [None] * len(read)
        forks: list[tuple[str, str]] = []
        seen = set()
        while True:
            address = self.resolved(address)
            point = (address, tuple(now), tuple(moves))
            if point in seen:
                raise self.endless(address, read)
            seen.add(point)
            match self.code[address]:
                case Write(tape, symbol) if moves[tape] is None:
                    now[tape] = symbol
                    address += 1
                case Move(tape, direction) if moves[tape] is None:
                    moves[tape] = direction
                    address += 1
                case Branch(condition, otherwise) if all(moves[tape] is None for tape in condition.tapes):
                    address = address + 1 if condition.holds(tuple(now)) else otherwise.address
                case Fork(direction, to) if not any(moves):
                    forks.append((direction, self.state(to.address)))
                    address += 1
                case Halt("") if tuple(now) == read and not any(moves):
                    return None
                case _:
                    ways = tuple(move or "stay" for move in moves)
                    return Step(tuple(now), ways, self.state(address), tuple(forks))

    def endless(self, address: int, read: Symbols = ()) -> SourceError:
        reading = f", reading {' '.join(read)!r}" if read else ""
        return SourceError(
            "the program goes round for ever without moving a head",
            where=f"after state {self.context[address]!r}{reading}",
            advice='Say what to do on that symbol (halt() if it cannot occur), or wait by move("stay").',
        )


# Merging the states of a table that cannot be told apart.


def merge_states(table: Table, finals: frozenset[str]) -> Table:
    """The smallest table with the same behaviour, by partition refinement: states are first told apart by
    what they write and how they move on each symbol, then by the classes they lead to, until nothing
    changes (Moore's algorithm). States in `finals` stay as they are, and so does a head that is gone. A class
    takes the name of its first member."""
    rows: dict[str, dict[tuple[str, ...], Step]] = {table.start_state: {}}
    for (state, read), step in table.rules.items():
        rows.setdefault(state, {})[read] = step
    for step in table.rules.values():
        for _, state in _heads(step):
            rows.setdefault(state, {})
    finals |= {GONE}
    first = next((state for state in rows if state not in finals), GONE)
    group: dict[str, str] = {state: state if state in finals else first for state in rows}
    groups = 0
    while groups < len(set(group.values())):
        groups = len(set(group.values()))
        leader: dict[Hashable, str] = {}
        group = {state: leader.setdefault(_sight(state, row, group), state) for state, row in rows.items()}
    rules = {
        (state, read): Step(
            step.write, step.moves, group[step.state], tuple((way, group[to]) for way, to in step.forks)
        )
        for (state, read), step in table.rules.items()
        if group[state] == state
    }
    return Table(rules, group[table.start_state], table.alphabet)


def _sight(state: str, row: dict[tuple[str, ...], Step], group: dict[str, str]) -> Hashable:
    """All that tells a state apart at this stage."""
    moves = frozenset(
        (read, step.write, tuple((ways, group[to]) for ways, to in _heads(step)))
        for read, step in row.items()
    )
    return group[state], moves


def _heads(step: Step) -> list[tuple[Hashable, str]]:
    """How every head goes on, its own first, and in which state."""
    return [(step.moves, step.state), *step.forks]
