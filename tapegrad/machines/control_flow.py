"""Control flow for builders: `if`, `while`, named states and jumps."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_

from tapegrad.errors import SourceError
from tapegrad.machines.assembling import Table, assemble
from tapegrad.machines.heads import Head
from tapegrad.machines.merging import merge_states
from tapegrad.machines.program import Branch, Condition, Halt, Jump, Named, Place, Program

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
