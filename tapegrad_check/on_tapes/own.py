"""That a table is an instruction set which a folder tells: one instruction, from any state to the next.

The table is followed as in `one_instruction`: its gates are formulas like those of the recorded circuit, in
whatever order they are taken. It goes to words by their numbers among all words, one for each that the
circuit reads, in the same order, and then one for each that is written; the number must be that of the word,
or of the spare word where the memory has ended. No two ports write to one memory, so words that are written
are different words, or the spare one, which gets what it has.
"""

from collections.abc import Mapping

from tapegrad_check.core.nodes import FALSE, TRUE
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.words import Word, above, add, either, number, only, padded
from tapegrad_check.instructions import recorded
from tapegrad_check.on_tapes.ground import NEXT, Tapes
from tapegrad_check.on_tapes.layout import BEYOND, BYTE, INPUT, MEMORY, VARIABLES, Places
from tapegrad_check.on_tapes.one_instruction import NODES, Instruction
from tapegrad_check.on_tapes.paths import HOME, Anchor, Cell, Path, Table
from tapegrad_check.sources import Machine, Program


class OwnTapes(Tapes):
    """The tapes before an instruction."""

    def __init__(self, program: Program, places: Places) -> None:
        super().__init__(program, NODES)
        self.places = places
        self.words = places.words + 1
        self.bits = {place: bit for bit, place in places.registers.items()}
        self._ports: dict[Anchor, list[int]] = {}

    def register(self, name: str) -> list[int]:
        """What a register holds, which may be longer than a word of memory."""
        width = self.places.widths[name]
        parts = (self.word(("register", name, first)) for first in range(0, width, self.width))
        return [bit for part in parts for bit in part][:width]

    def port(self, anchor: Anchor, word: int = 0) -> list[int]:
        if anchor not in self._ports:
            bits = enumerate(super().port(anchor, word))
            self._ports[anchor] = [self.n.and_(bit, self._used(anchor, i)) for i, bit in bits]
        return self._ports[anchor]

    def _used(self, anchor: Anchor, bit: int) -> int:
        """Whether a word has such a bit. No memory has the spare word."""
        n, found = self.n, FALSE
        for name, (width, words) in self.places.memories.items():
            if bit < width:
                first = self.places.bases[name]
                within = above(n, anchor.number, first + words - 1) ^ 1
                found = n.or_(found, n.and_(within, above(n, anchor.number, first - 1) if first else TRUE))
        return found

    def held(self, cell: Cell) -> int | None:
        tape, anchor, offset = cell
        if anchor is HOME and offset < 0 and tape != INPUT:
            name, bit = self.bits.get((tape, offset), ("", 0))
            return self.register(name)[bit] if name else None
        if tape == INPUT and anchor is NEXT and offset == BYTE + 1:
            return self.ended ^ 1
        if tape == VARIABLES and anchor is HOME and 0 < offset < self.pitch:
            return None
        return super().held(cell)

    def _ruler(self, anchor: Anchor, word: int, at: int) -> int | None:
        most = self.places.words + BEYOND if anchor is HOME else BEYOND
        return (TRUE if at == 0 else FALSE) if 0 <= word <= most else None

    def _memory(self, anchor: Anchor, word: int, at: int) -> int | None:
        if at or not anchor.number:
            if at == 0 and anchor is HOME:
                return TRUE if word == 0 else FALSE
            return self.port(anchor)[at - 1] if anchor.number and word == 0 else None
        return None

    def may_change(self, cell: Cell) -> bool:
        tape, anchor, offset = cell
        if tape == MEMORY and anchor.number:
            return 0 < offset < self.pitch
        if anchor is HOME and (offset > 0 if tape == INPUT else offset < 0):
            return True
        return tape in (INPUT, VARIABLES) and super().may_change(cell)


class _Compared:
    """The end of a path, beside what the folder tells."""

    def __init__(self, one: Instruction, tapes: OwnTapes, path: Path) -> None:
        self.one, self.n, self.tapes, self.path = one, one.n, tapes, path
        self.reached = iter(path.seen)

    def check(self) -> None:
        one, tapes, path = self.one, self.tapes, self.path
        own = one.program.instruction
        assert own is not None
        registers = {name: number(0, width) for name, width in one.layout.registers.items()}
        before = {**registers, **{name: tapes.register(name) for name in tapes.places.widths}}
        wanted = recorded.step(own, one.n, one.layout, before, self._read)
        *writes, output = wanted.writes
        written = set()
        for port in writes:
            width = one.layout.memories[port.memory][0]
            for i in range(port.span):
                anchor, inside = self._word(port.memory, port.address, i)
                bits = slice(i * width, (i + 1) * width)
                change = only(one.n, inside, port.change[bits])
                new = [one.n.xor(*pair) for pair in zip(port.old[bits], change, strict=True)]
                for place, bit in enumerate(padded(new, tapes.width), 1):
                    found = path.cells.get((MEMORY, anchor, place))
                    if found is None:
                        raise NotProved(f"a word of {port.memory} is not written")
                    one.same(path, [found], [bit], f"{port.memory} gets another word")
                written.add(anchor)
        changed = {cell[1] for cell in path.cells if cell[0] == MEMORY and cell[1].number}
        if not changed <= written:
            raise NotProved("a word of memory is written that should not be")
        one.ends(path, wanted.registers, output.change)
        self._registers({**before, **wanted.registers})

    def _word(self, memory: str, address: Word, further: int) -> tuple[Anchor, int]:
        """The word that the table has reached, which must be the one at an address, or so many further on;
        and whether that is inside."""
        n, places = self.n, self.tapes.places
        anchor = next(self.reached, None)
        if anchor is None:
            raise NotProved("the table goes to fewer words than the instruction set")
        words, long = places.memories[memory][1], max(len(address), places.number) + 1
        at = add(n, padded(address, long), number(further, long))
        inside = above(n, at, words - 1) ^ 1
        own = add(n, at, number(places.bases[memory], long))
        wanted = either(n, inside, own, number(places.words, long))
        self.one.same(self.path, padded(anchor.number, long), wanted, f"another word of {memory} is reached")
        return anchor, inside

    def _read(self, memory: str, address: Word, span: int) -> list[int]:
        if memory == "input":
            there = self.tapes.ended ^ 1
            return [*only(self.n, there, self.tapes.byte), there]
        if memory == "output":
            return number(0, BYTE)
        width, found = self.one.layout.memories[memory][0], []
        for i in range(span):
            anchor, inside = self._word(memory, address, i)
            found += only(self.n, inside, self.tapes.port(anchor)[:width])
        return found

    def _registers(self, new: Mapping[str, Word]) -> None:
        one, places = self.one, self.tapes.places
        for (name, bit), (tape, cell) in places.registers.items():
            found = one.follower.known(self.path, (tape, HOME, cell))
            one.same(self.path, [found], [new[name][bit]], f"{name} is another")


def own_table(program: Program, machine: Machine) -> int:
    """That the table is what the folder tells, for memories of the program's size; gives the number of ways
    that an instruction can go."""
    assert program.instruction is not None
    tapes = OwnTapes(program, Places(program.instruction))
    one = Instruction(program, Table(machine), tapes=tapes)
    paths = one.paths()
    for path in paths:
        _Compared(one, tapes, path).check()
    return len(paths)
