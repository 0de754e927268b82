"""Writing machines in Python: `if`, `while`, moves, writes and subroutines instead of numbered states."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_

from tapegrad.errors import SourceError
from tapegrad.machines.model import LEFT, MOVES, RIGHT, STAY, GridMachine, GridRule, Rule, TuringMachine
from tapegrad.machines.program import (
    Branch,
    Condition,
    Halt,
    Jump,
    Move,
    Named,
    Place,
    Program,
    Table,
    Write,
    assemble,
    merge_states,
)

# What one head can be told to do while a machine is being written.


class Head:
    """One head: reads, writes and moves on its own tape."""

    directions: tuple[str, ...] = ("left", "right", "stay")

    def __init__(self, program: Program, tape: int) -> None:
        self._program, self._tape = program, tape

    def write(self, symbol: str) -> None:
        """Writes under the head."""
        self._program.symbols.setdefault(symbol)
        self._program.add(Write(self._tape, symbol))

    def move(self, *directions: str) -> None:
        """Moves by one cell in each of these directions, one after the other."""
        for direction in directions:
            self._require_direction(direction)
            self._program.add(Move(self._tape, direction))

    def _require_direction(self, direction: str) -> None:
        if direction not in self.directions:
            raise SourceError(
                f"{direction!r} is no direction", advice=f"Directions are {', '.join(self.directions)}."
            )

    def reads(self, *symbols: str) -> Condition:
        """Whether the head is on one of these symbols."""
        return self._program.reads(self._tape, symbols)

    def same_as(self, other: "Head") -> Condition:
        """Whether two heads are on the same symbol."""
        one, two = self._tape, other._tape
        return Condition(lambda read: read[one] == read[two], frozenset({one, two}))

    def skip(self, direction: str, *symbols: str) -> None:
        """Moves on as long as the head is on one of these symbols."""
        self._walk(direction, self.reads(*symbols))

    def seek(self, direction: str, *symbols: str) -> None:
        """Moves on until the head is on one of these symbols, which may be at once."""
        self._walk(direction, ~self.reads(*symbols))

    def _walk(self, direction: str, condition: Condition) -> None:
        top, end = Place(), Place()
        self._program.put(top)
        self._program.add(Branch(condition, end))
        self.move(direction)
        self._program.add(Jump(top))
        self._program.put(end)

    def each(self, *symbols: str) -> Generator[str, None, None]:
        """`for symbol in head.each("0", "1"):` writes the body once for each symbol; the machine takes the
        one for the symbol it is on, and so remembers that symbol. On other symbols it goes past."""
        end = Place()
        for symbol in symbols:
            otherwise = Place()
            self._program.add(Branch(self.reads(symbol), otherwise))
            self._program.open_blocks += 1
            yield symbol
            self._program.open_blocks -= 1
            self._program.add(Jump(end))
            self._program.put(otherwise)
        self._program.put(end)


# Control flow for builders: `if`, `while`, named states and jumps.


Asked = str | Condition
"""A symbol under the (first) head, or any condition. Several of them mean: one of these."""


@dataclass(frozen=True)
class Loop:
    """A loop that is being written, for `break_` and `continue_`."""

    top: Place
    end: Place


class ControlFlow(Head):
    """The part of a builder that tapes and grids share. A builder is also its own first head."""

    def __init__(self, name: str, blank: str, symbols: Iterable[str], tapes: int) -> None:
        super().__init__(Program(tapes, blank, symbols=dict.fromkeys([blank, *symbols])), 0)
        self.name = name
        self._loops: list[Loop] = []
        self._last_if: tuple[int, Place] | None = None
        """Where the last `if_` ended, and the place to skip an `else_` to."""
        self._places: dict[str, Place] = {}
        self._repeated: set[str] = set()
        self._wanted: dict[str, None] = {}

    @contextmanager
    def if_(self, *asked: Asked) -> Generator[None]:
        """Does the block if the head is on one of these symbols (or a condition holds)."""
        with self._branch(asked, Place()):
            yield

    @contextmanager
    def elif_(self, *asked: Asked) -> Generator[None]:
        """Right after the block of an `if_` or `elif_`: otherwise, if ..."""
        with self._branch(asked, self._end_of_if("elif_")):
            yield

    @contextmanager
    def else_(self) -> Generator[None]:
        """Right after the block of an `if_` or `elif_`: otherwise."""
        end = self._end_of_if("else_")
        with self._block():
            yield
        self._program.put(end)

    @contextmanager
    def while_(self, *asked: Asked) -> Generator[Loop]:
        """Repeats the block as long as the head is on one of these symbols (or a condition holds)."""
        with self._loop() as loop:
            self._program.add(Branch(self._any(asked), loop.end))
            yield loop

    @contextmanager
    def until(self, *asked: Asked) -> Generator[Loop]:
        """Repeats the block until the head is on one of these symbols (or a condition holds)."""
        with self.while_(~self._any(asked)) as loop:
            yield loop

    @contextmanager
    def loop(self) -> Generator[Loop]:
        """Repeats the block until a `break_`, a `goto` or a halt leaves it."""
        with self._loop() as loop:
            yield loop

    def break_(self, loop: Loop | None = None) -> None:
        """Leaves the innermost loop, or the one given (`with b.loop() as outer`)."""
        self._program.add(Jump((loop or self._innermost()).end))

    def continue_(self, loop: Loop | None = None) -> None:
        """Goes back to the top of the innermost loop, or of the one given."""
        self._program.add(Jump((loop or self._innermost()).top))

    def state(self, name: str) -> Place:
        """Names the state that begins here. `goto` takes the name, or the returned place: a subroutine
        written out twice uses its names twice, and then only the places tell them apart."""
        place = self._place(name)
        if place.address >= 0:
            self._repeated.add(name)
            place = Place()
        self._program.put(place)
        self._program.add(Named(name))
        return place

    def goto(self, state: Place | str) -> None:
        """Goes on at a named state, which may come later."""
        if isinstance(state, str):
            self._wanted.setdefault(state)
            state = self._place(state)
        self._program.add(Jump(state))

    def halt(self, state: str = "") -> None:
        """Stops; with a name, in a state of that name."""
        self._program.add(Halt(state))

    def _table(self) -> Table:
        if self._program.open_blocks:
            raise SourceError(
                "a block has not been written to its end",
                advice="Build the machine after the last `with`, and leave no `each` by Python's `break`.",
            )
        for name in self._wanted:
            if name in self._repeated:
                raise SourceError(f"goto {name!r}: several states have that name", advice="Keep the place.")
            if self._places[name].address < 0:
                raise SourceError(f"goto {name!r}: there is no such state", advice=f'Write state("{name}").')
        return merge_states(assemble(self._program), self._program.halting_states())

    def _any(self, asked: tuple[Asked, ...]) -> Condition:
        return reduce(or_, [self.reads(one) if isinstance(one, str) else one for one in asked], self.reads())

    def _place(self, name: str) -> Place:
        return self._places.setdefault(name, Place())

    def _innermost(self) -> Loop:
        if not self._loops:
            raise SourceError("break_ or continue_ outside a loop")
        return self._loops[-1]

    def _end_of_if(self, word: str) -> Place:
        if self._last_if is None or self._last_if[0] != len(self._program.code):
            raise SourceError(f"{word} must come right after the block of an if_ or elif_")
        return self._last_if[1]

    @contextmanager
    def _branch(self, asked: tuple[Asked, ...], end: Place) -> Generator[None]:
        otherwise = Place()
        self._program.add(Branch(self._any(asked), otherwise))
        with self._block():
            yield
        self._program.add(Jump(end))
        self._program.put(otherwise)
        self._program.put(end)
        self._last_if = len(self._program.code), end

    @contextmanager
    def _loop(self) -> Generator[Loop]:
        loop = Loop(Place(), Place())
        self._program.put(loop.top)
        self._loops.append(loop)
        with self._block():
            yield loop
        self._loops.pop()
        self._program.add(Jump(loop.top))
        self._program.put(loop.end)

    @contextmanager
    def _block(self) -> Generator[None]:
        self._program.open_blocks += 1
        yield
        self._program.open_blocks -= 1


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


# Writing machines on the grid in Python, with the same words as machines on tapes.


class GridBuilder(ControlFlow):
    """A grid machine, written as a program; see `MachineBuilder` for the words.

        b = GridBuilder("box filler", symbols=".#x", blank=".")   # fills the inside of a frame of #
        with b.loop():
            with b.until("#"):
                b.write("x")
                b.move("right")
            b.move("left")
            b.skip("left", "x")
            b.move("down", "right")
            with b.if_("#"):
                b.halt()
        machine = b.machine()

    The grid's blank and the marks of a frame are ordinary symbols. `halt("name")` stops in a state of that
    name.
    """

    directions = tuple(MOVES)

    def __init__(self, name: str, *, symbols: Iterable[str] = (), blank: str = "0") -> None:
        super().__init__(name, blank, symbols, tapes=1)

    def machine(self) -> GridMachine:
        """The machine that runs what has been written so far."""
        table = self._table()
        return GridMachine(
            rules={
                (state, read): GridRule(step.write[0], step.moves[0], step.state)
                for (state, (read,)), step in table.rules.items()
            },
            start_state=table.start_state,
            blank=table.alphabet[0],
            name=self.name,
            alphabet=table.alphabet,
        )
