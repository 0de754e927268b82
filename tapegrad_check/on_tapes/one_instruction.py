"""That a table is an instruction set: one instruction, from any state of a program to the next.

Between two instructions the tapes are as `ground` says. From there the table is followed, on all paths, to
where the next instruction begins or the table stops. On each of them the page of the instruction set is asked
for the same instruction: what it reads in memory are the words that the table has reached, where the numbers
are the same, and otherwise free. What it says must be what lies on the tapes: pc, the words that change and
no others, the byte of input that was taken, the byte of output, and which state the table is in. Then the
heads are at home, and the tapes are again as `ground` says. So by induction, from the first instruction on,
the table shows what the program does, for every program, memory and input; and where the program is stopped
the table is, in the state of that name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from tapegrad_check.core.nodes import FALSE, TRUE
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.words import Word, differing, equal, number
from tapegrad_check.instructions import subleq
from tapegrad_check.instructions.ports import Layout, Write
from tapegrad_check.on_tapes.ground import END, IN_A_ROW, NEXT, Tapes
from tapegrad_check.on_tapes.layout import FETCH, INPUT, MEMORY, PC, VARIABLES, traps_of
from tapegrad_check.on_tapes.paths import AT_HOME, HOME, Anchor, Cell, Follower, Path, Place, Table
from tapegrad_check.on_tapes.rounds import Repeating
from tapegrad_check.on_tapes.walks import Walks
from tapegrad_check.sources import Machine, Program

NODES, STEPS = 1 << 20, 1 << 18


class Instruction:
    """One instruction of a table, on all paths."""

    def __init__(
        self,
        program: Program,
        table: Table,
        fixed: Mapping[int, int] | None = None,
        beside: Sequence[int] = (),
        tapes: Tapes | None = None,
    ) -> None:
        self.program = program
        self.tapes = Tapes(program, NODES, fixed, beside) if tapes is None else tapes
        self.n = self.tapes.n
        self.table = table
        self.follower = Follower(self.table, self.tapes, STEPS)
        self.walks = Walks(self.table, self.tapes, self.follower)
        self.rounds = Repeating(self.table, self.tapes, self.follower)
        self.layout = Layout.of(program, 1, 1)
        self.arriving = [*self.tapes.byte, self.tapes.ended ^ 1]

    def paths(self) -> list[Path]:
        """All ways that it can go."""
        return self.follower.run(Path(TRUE, {FETCH: TRUE}, AT_HOME), self._jump)

    def _jump(self, path: Path) -> list[Path] | None:
        found = self.walks.jump(path)
        if found is None and self.tapes.registers and path.heads == AT_HOME:
            found = self.rounds.jump(path)
        if found is None and path.state and path.heads == AT_HOME and not path.waited:
            return [replace(path, rank=path.rank + 1, waited=True)]
        return found

    def require(self, path: Path, holds: int, what: str) -> None:
        """That something holds wherever a path is taken."""
        if not self.n.disjoint(path.guard, holds ^ 1):
            raise NotProved(f"{what} (in the state {path.state!r})")

    def same(self, path: Path, found: Word, wanted: Word, what: str) -> None:
        """That two words are the same wherever a path is taken."""
        for one, other in zip(found, wanted, strict=True):
            self.require(path, self.n.xor(one, other) ^ 1, what)

    def _where(self, path: Path, holds: int) -> Path:
        """The part of a path where something holds."""
        return replace(path, guard=self.n.and_(path.guard, holds))

    def word(self, path: Path, tape: int, place: Place, width: int) -> list[int]:
        """What a word holds at the end of a path, as far as it is known."""
        anchor, which = place
        first = self.tapes.pitch * which + 1
        return [self.follower.known(path, (tape, anchor, first + bit)) for bit in range(width)]

    def _are(self, path: Path, a: Word, b: Word) -> bool:
        """Whether two words are known to be the same, as far as both go. Formulas for all of their bits at
        once may be large."""
        return all(self.n.disjoint(path.guard, self.n.xor(x, y)) for x, y in zip(a, b, strict=False))

    def read(self, path: Path, kind: str, address: Word, further: int | None = None) -> list[int] | None:
        """What the page of the instruction set finds at an address: a word that the table has reached. With
        `further`, what it finds so many words on from there, whether that is inside or not."""
        for anchor in path.seen:
            if anchor.kind == kind and further is not None and self._are(path, anchor.number, address):
                return self.tapes.port(anchor, further)
            for on in range(IN_A_ROW if kind == "ram" else 1) if further is None else ():
                inside = kind != "ram" or self.n.disjoint(path.guard, self.tapes.outside(anchor, on))
                there = anchor.kind == kind and inside
                if there and self._are(path, self.tapes.address(anchor, on), address):
                    return self.tapes.port(anchor, on)
        return None

    def consistent(self, path: Path) -> Path:
        """The path where words hold the same that are known to be one word."""
        n, tapes = self.n, self.tapes
        ports = [
            (anchor, further)
            for anchor in path.seen
            for further in range(IN_A_ROW)
            if anchor.kind == "ram" and n.disjoint(path.guard, tapes.outside(anchor, further))
        ]
        for (one, i), (other, j) in combinations(ports, 2):
            if one is not other and self._are(path, tapes.address(one, i), tapes.address(other, j)):
                same = equal(n, tapes.port(one, i), tapes.port(other, j))
                path = replace(path, guard=n.and_(path.guard, same))
        return path

    def compare(self, path: Path, new: Mapping[str, Word], output: Word) -> None:
        """What the page puts in pc, takes and puts out, and where it stops, against the tapes at the end of a
        path."""
        self.ends(path, new, output)
        pc = self.word(path, VARIABLES, (HOME, PC), self.tapes.width)
        self.same(path, pc, new["pc"], "pc is another")

    def ends(self, path: Path, new: Mapping[str, Word], output: Word) -> None:
        """Where the page stops, and its input and output."""
        traps = ("", *traps_of(self.program))
        trap = 0 if path.state == FETCH else traps.index(path.state) if path.state in traps else -1
        if trap < 0:
            raise NotProved(f"the table stops in the state {path.state!r}, in the middle of an instruction")
        self.same(
            path, number(trap, len(new["trap"])), new["trap"], "the program is not stopped where it should"
        )
        if not trap and path.heads != AT_HOME:
            raise NotProved("a head is not at home between two instructions")
        self._input(path, new["taken"])
        self._output(path, new["written"], output)

    def _mark(self, path: Path, tape: int, anchor: Anchor, word: int) -> int:
        return self.follower.known(path, (tape, anchor, word * self.tapes.pitch))

    def _input(self, path: Path, taken: Word) -> None:
        """The mark of the next byte has moved on by one where one was taken, which was there."""
        n = self.n
        here, after = (self._mark(path, INPUT, NEXT, word) for word in (0, -1))
        took = here ^ 1
        self.same(path, [took], taken[:1], "another byte of input is the next")
        self.same(path, [after], [n.or_(took, self.tapes.ended)], "the mark of the next byte is lost")
        self.require(path, n.and_(took, self.tapes.ended) ^ 1, "more is taken than the input has")

    def _output(self, path: Path, written: Word, output: Word) -> None:
        """A byte more where one was written, at the end; what was there is kept."""
        n, first = self.n, self.tapes.first_output
        some = self.tapes.single("something was written")
        start, end = (HOME, first), (END, 0)
        marks = [self._mark(path, VARIABLES, *place) for place in (start, end)]
        self.same(path, [n.or_(some, written[0])], marks[:1], "output begins elsewhere")
        self.same(path, [n.and_(some, written[0])], [n.and_(some, marks[1])], "output ends elsewhere")
        words = [self.word(path, VARIABLES, place, self.tapes.width) for place in (start, end)]
        kept = self.tapes.word(("output", HOME))
        self.same(self._where(path, some), words[0], kept, "output is written over")
        for holds, word in ((some ^ 1, words[0]), (some, words[1])):
            emits = self._where(path, n.and_(holds, written[0]))
            self.same(emits, word[:8], output, "another byte is written")

    def changes(self, path: Path, kind: str, write: Write) -> None:
        """The words in a row that a port of the page changes, and no others, are changed on the tape."""
        n, width = self.n, self.program.width
        changed: list[Cell] = [cell for cell in path.cells if cell[0] == MEMORY and cell[1].kind == kind]
        anchors = {cell[1] for cell in changed}
        if not anchors:
            self.same(path, write.change, [FALSE] * len(write.change), "a word of memory is not written")
            return
        if len(anchors) > 1:
            raise NotProved("words of memory are written at more than one place")
        (anchor,) = anchors
        span = range(len(write.change) // width)
        if any(cell[2] // self.tapes.pitch not in span for cell in changed):
            raise NotProved("a word of memory is written that should not be")
        for which in span:
            found = self.word(path, MEMORY, (anchor, which), width)
            bits = differing(n, self.tapes.port(anchor, which), found)
            self.same(path, bits, write.change[width * which :][:width], "memory gets another word")
        for elsewhere in differing(n, anchor.number[: len(write.address)], write.address):
            for bit in () if n.disjoint(path.guard, elsewhere) else write.change:
                self.require(path, n.and_(elsewhere, bit) ^ 1, "another word of memory is written")


def subleq_table(program: Program, machine: Machine) -> int:
    """That the table is SUBLEQ, for words and a memory of the program's size; gives the number of ways that
    an instruction can go. `NotProved` says what is not known to hold."""
    one = Instruction(program, Table(machine))
    registers = {name: number(0, width) for name, width in one.layout.registers.items()}
    registers["pc"] = one.tapes.pc
    paths = [one.consistent(path) for path in one.paths()]
    for path in paths:

        def read(memory: str, address: Word, span: int, path: Path = path) -> list[int]:
            if memory == "ram":
                found = one.read(path, "ram", address)
                return one.tapes.word("not reached") if found is None else found
            return one.arriving if memory == "input" else number(0, 8)

        wanted = subleq.step(one.n, one.layout, registers, read)
        ram, output = wanted.writes
        one.compare(path, wanted.registers, output.change)
        one.changes(path, "ram", ram)
    return len(paths)
