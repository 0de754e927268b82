"""From a program to a transition table with few states: each rule does as much as one step can."""

from dataclasses import dataclass
from itertools import product

from tapegrad.errors import SourceError
from tapegrad.machines.model import Symbols
from tapegrad.machines.names import Names, refuse_if_huge
from tapegrad.machines.program import Branch, Halt, Jump, Move, Named, Program, Write

HALT = "halt"
"""The state for a plain halt after a write or a move."""


@dataclass(frozen=True)
class Step:
    """A rule whose moves are still words, as grids and tapes have different ones."""

    write: Symbols
    moves: tuple[str, ...]
    state: str


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
                case Halt("") if tuple(now) == read and not any(moves):
                    return None
                case _:
                    return Step(tuple(now), tuple(move or "stay" for move in moves), self.state(address))

    def endless(self, address: int, read: Symbols = ()) -> SourceError:
        reading = f", reading {' '.join(read)!r}" if read else ""
        return SourceError(
            "the program goes round for ever without moving a head",
            where=f"after state {self.context[address]!r}{reading}",
            advice='Say what to do on that symbol (halt() if it cannot occur), or wait by move("stay").',
        )
