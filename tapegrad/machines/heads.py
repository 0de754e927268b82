"""What one head can be told to do while a machine is being written."""

from collections.abc import Generator

from tapegrad.errors import SourceError
from tapegrad.machines.program import Branch, Condition, Jump, Move, Place, Program, Write


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
            if direction not in self.directions:
                raise SourceError(
                    f"{direction!r} is no direction", advice=f"Directions are {', '.join(self.directions)}."
                )
            self._program.add(Move(self._tape, direction))

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
