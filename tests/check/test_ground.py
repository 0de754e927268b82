"""What is known of tapes between two instructions: in literals what the layout lays out, and no more."""

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import pytest

from tapegrad.programs.model import Program
from tapegrad.programs.rv32 import RV32
from tapegrad.programs.subleq import Subleq
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.words import Word, number
from tapegrad_check.instructions.execution import State
from tapegrad_check.on_tapes.ground import ANYWHERE, END, LAST, NEXT, NUMBER, SOME, Tapes
from tapegrad_check.on_tapes.layout import INPUT, MEMORY, OUTPUT, RULER, VARIABLES, laid_out
from tapegrad_check.on_tapes.paths import HOME, Anchor
from tapegrad_check.sources import Program as Checked
from tests.check.test_programs_on_tapes import checked

SUBLEQ = checked(Program("s", Subleq(5, width=8), bytes(5)))
RV = checked(Program("r", RV32(16, input=4, output=4), bytes(16)))
ROOM = 1 << 16


class Held:
    """A state of a program on tapes with leftovers on them, and the variables that stand for it."""

    def __init__(self, program: Checked, taken: int, given: bytes, output: bytes, seed: int) -> None:
        random = np.random.default_rng(seed)
        rv32 = program.kind == "rv32im"
        self.tapes, self.program = Tapes(program, ROOM), program
        words = self.tapes.words
        self.memory = random.integers(0, 1 << program.width, words).tolist()
        x = tuple(random.integers(0, 1 << 32, 32).tolist()) if rv32 else ()
        pc = int(random.integers(0, 1 << program.width)) & (~3 if rv32 else ~0)
        self.copied = (11, 16)[seed] if rv32 else 0
        ram = (
            tuple(b"".join(word.to_bytes(4, "little") for word in self.memory))
            if rv32
            else tuple(self.memory)
        )
        self.x, self.pc, self.given, self.taken, self.output = x, pc, given, taken, output
        self.ones = laid_out(program, State(pc, ram, x, given, 0, taken, self.copied, output))
        pitch = self.tapes.pitch
        work = [(INPUT, word) for word in range(9)]
        work += [
            (VARIABLES, word)
            for word in range(self.tapes.first_output)
            if word not in ((1, 2) if rv32 else (1,))
        ]
        for tape, word in work:
            self.ones[tape] |= {word * pitch + 1 + bit for bit in range(program.width) if random.integers(2)}
        self.values: dict[int, int] = {}
        self.set(self.tapes.pc, pc)
        self.set(self.tapes.copied, self.copied)
        self.set(self.tapes.byte, given[taken] if taken < len(given) else 0)
        self.set([self.tapes.ended], int(taken == len(given)))
        self.set([self.tapes.single("something was written")], int(bool(output)))
        self.set(self.tapes.word(("output", HOME)), output[0] if output else 0)
        self.set(self.tapes.word(("output", END)), 0)

    def set(self, literals: Word, value: int) -> None:
        for place, literal in enumerate(literals):
            if literal > 1:
                level = self.tapes.n._level[literal >> 1]
                self.values[level] = value >> place & 1
                assert self.of(literal) == value >> place & 1

    def of(self, literal: int) -> int:
        """What a literal is in this state."""
        n = self.tapes.n
        if literal < 2:
            return literal
        node = literal >> 1
        side = n._high[node] if self.values[n._level[node]] else n._low[node]
        return self.of(side) ^ literal & 1

    def anchors(self, tape: int) -> Iterator[tuple[Anchor, int]]:
        """Anchors of a tape, and the words where they are in this state."""
        yield HOME, 0
        if tape in (MEMORY, RULER):
            for which in range(self.tapes.words):
                anchor = self.tapes.anchor("ram", number(which, self.program.width))
                for more in range(min(3, self.tapes.words - which)):
                    self.set(self.tapes.port(anchor, more), self.memory[which + more])
                yield anchor, which
            for which, value in enumerate(self.x):
                anchor = self.tapes.anchor("x", number(which, 5))
                self.set(self.tapes.port(anchor), value)
                yield anchor, -1 - which
        if tape == INPUT:
            yield NEXT, -self.taken - 1
            if self.taken:
                yield LAST, -self.taken
        if tape == VARIABLES and self.output:
            yield END, OUTPUT[self.program.kind] + len(self.output)


@pytest.mark.parametrize(("program", "seed"), [*product((SUBLEQ, RV), range(2))])
@pytest.mark.parametrize(
    ("taken", "given", "output"),
    [(0, b"", b""), (0, b"\xa5q", b"w"), (1, b"ab\xff", b"xyz"), (2, b"ab", b"\x80")],
)
def test_what_is_known_is_what_lies_there(
    program: Checked, seed: int, taken: int, given: bytes, output: bytes
) -> None:
    state = Held(program, taken, given, output, seed)
    pitch, words = state.tapes.pitch, state.tapes.words
    told = 0
    for tape in (MEMORY, RULER, INPUT, VARIABLES):
        for anchor, at in state.anchors(tape):
            near_by = range(
                *((-3 * pitch, 3 * pitch) if anchor.number else (-4 * pitch, (words + 3) * pitch))
            )
            far = range(-40 * pitch, 45 * pitch, pitch) if tape == MEMORY else ()
            for offset in {*near_by, *far}:
                inside = -len(state.x) - 1 < at + offset // pitch < words
                if anchor.number and tape == MEMORY and not inside and offset % pitch:
                    continue  # it stands for a word only where that is one of memory
                found = state.tapes.held((tape, anchor, offset))
                if found is not None:
                    told += 1
                    there = at * pitch + offset in state.ones[tape]
                    assert state.of(found) == there, (tape, anchor.kind, offset)
    assert told > 200


def known(tapes: Tapes, tape: int, anchor: Anchor, word: int, bit: int | None = None) -> bool:
    return tapes.held((tape, anchor, word * tapes.pitch + (0 if bit is None else bit + 1))) is not None


@pytest.mark.parametrize("program", [SUBLEQ, RV])
def test_how_much_is_known(program: Checked) -> None:
    tapes = Tapes(program, ROOM)
    ram, words, width = tapes.anchor("ram", number(1, program.width)), tapes.words, program.width
    registers = 32 if program.kind == "rv32im" else 0
    for word, bit in product(range(-registers - 9, words + 9), (None, 0, width - 1)):
        of = (word, bit)
        assert known(tapes, RULER, HOME, *of) == (-registers - 2 <= word <= words + 2)
        assert known(tapes, RULER, SOME, *of) == (-2 <= word <= 3)  # it may be the first, or the last
        assert known(tapes, RULER, ram, *of) == (-2 <= word <= 3)
        assert known(tapes, MEMORY, HOME, *of) == (bit is None)
        assert known(tapes, MEMORY, SOME, *of) == (bit is None)
        assert known(tapes, MEMORY, ram, *of) == (bit is None or 0 <= word < 3)
        assert known(tapes, INPUT, HOME, *of) == (of == (0, None))
        assert known(tapes, INPUT, NEXT, *of) == (word == 0 or of == (-1, None))
        assert known(tapes, INPUT, LAST, *of) == (of == (0, None))
        assert known(tapes, INPUT, NUMBER, *of) == (word == 0 and bit is not None)
        assert not known(tapes, INPUT, ANYWHERE, *of)
        first = 5 if registers else 2
        variable = word == 1 or (registers and word == 2)
        assert known(tapes, VARIABLES, HOME, *of) == (
            word == first or (0 <= word < first if bit is None else bool(variable))
        )
        assert known(tapes, VARIABLES, END, *of) == (word == 0)
        if registers:
            x = tapes.anchor("x", number(7, 5))
            assert known(tapes, MEMORY, x, *of) == (bit is None or word == 0)


def test_the_bits_of_a_number() -> None:
    tapes = Tapes(RV, ROOM)
    assert [tapes.held((INPUT, NUMBER, 1 + bit)) for bit in range(32)] == tapes.word(NUMBER)


def may_change(tapes: Tapes, tape: int, anchor: Anchor, word: int, bit: int | None = None) -> bool:
    return tapes.may_change((tape, anchor, word * tapes.pitch + (0 if bit is None else bit + 1)))


@pytest.mark.parametrize("program", [SUBLEQ, RV])
def test_where_an_instruction_may_write(program: Checked) -> None:
    """Bits of words that it has reached, of work, and of the ends of output; marks of input and output."""
    tapes = Tapes(program, ROOM)
    ram, first = tapes.anchor("ram", number(1, program.width)), tapes.first_output
    for word, bit in product(range(-4, 9), (None, 0, program.width - 1)):
        of = (word, bit)
        assert not any(may_change(tapes, RULER, anchor, *of) for anchor in (HOME, SOME, ram))
        assert not any(may_change(tapes, MEMORY, anchor, *of) for anchor in (HOME, SOME))
        assert may_change(tapes, MEMORY, ram, *of) == (0 <= word < 3 and bit is not None)
        assert may_change(tapes, INPUT, HOME, *of) == (word >= 0 and bit is not None)
        assert may_change(tapes, INPUT, NUMBER, *of) == (word == 0 and bit is not None)
        assert may_change(tapes, INPUT, NEXT, *of) == (word in (0, -1) and bit is None)
        assert not any(may_change(tapes, INPUT, anchor, *of) for anchor in (LAST, ANYWHERE))
        inside = 0 <= word < first and bit is not None
        assert may_change(tapes, VARIABLES, HOME, *of) == (inside or word == first)
        assert may_change(tapes, VARIABLES, END, *of) == (word == 0)
        assert not may_change(tapes, VARIABLES, ANYWHERE, *of)


def test_addresses_and_the_end_of_memory() -> None:
    tapes = Tapes(RV, ROOM)
    for which, further in product(range(7), range(3)):
        anchor = tapes.anchor("ram", number(which, 32))
        assert tapes.address(anchor, further) == number(which + further, 32)
        assert tapes.outside(anchor, further) == (which + further >= 4)
    assert tapes.anchor("ram", number(1, 32)) is tapes.anchor("ram", number(1, 32))
    assert tapes.anchor("ram", number(1, 32)) is not tapes.anchor("x", number(1, 32))
    assert tapes.first is tapes.anchor("ram", number(0, 32))


def test_variables_are_all_different() -> None:
    for program in (SUBLEQ, RV):
        tapes = Tapes(program, 1 << 16, {}, range(20, 32) if program is RV else ())
        first = tapes.anchor("ram", tapes.pc)
        anchors = [first, *(tapes.anchor("x", number(which, 5)) for which in (10, 17, 3))]
        names = ["pc", "copied", NEXT, ("a count", 1), *((own, 0) for own in anchors), (first, 1)]
        names += [("more", which) for which in range(128 - len(names))]
        bits = [bit for name in names for bit in tapes.word(name) if bit > 1]
        with pytest.raises(NotProved, match="too many words"):
            tapes.word("one more")
        bits += [tapes.single(which) for which in range(1023)]
        with pytest.raises(NotProved, match="too many turns"):
            tapes.single("one more")
        assert len(bits) == len({*bits}) == 128 * program.width + 1023 - (2 if program is RV else 0)
        assert tapes.word("pc") is tapes.word("pc")


def levels(tapes: Tapes, name: object) -> list[int]:
    return [tapes.n._level[bit >> 1] for bit in tapes.word(name) if bit > 1]


def test_the_order_of_variables() -> None:
    """Single ones, then the instruction, a0, a7 and counts word by word, then what is added and compared: the
    lowest five bits of all words, and the others from the highest down."""
    beside = [*range(25, 32), 7]
    tapes = Tapes(RV, ROOM, {}, beside)
    first = tapes.anchor("ram", tapes.pc)
    a0, a7, x3 = (tapes.anchor("x", number(which, 5)) for which in (10, 17, 3))
    code = levels(tapes, (first, 0))
    alone = [[level for bit, level in enumerate(code) if bit not in beside]]
    alone += [
        levels(tapes, (first, 1)),
        levels(tapes, (a0, 0)),
        levels(tapes, (a7, 0)),
        levels(tapes, ("a count", 2)),
    ]
    alone[1] = [level for bit, level in enumerate(alone[1]) if bit not in beside]
    in_order = [tapes.n._level[tapes.ended >> 1], *(level for word in alone for level in word)]
    assert in_order == sorted(in_order)
    together = [
        [None, None, *levels(tapes, "pc")],
        levels(tapes, "copied"),
        levels(tapes, (x3, 0)),
        levels(tapes, NEXT),
    ]
    added = dict(enumerate(code[bit] for bit in beside))
    rest = []
    for bit in (*range(5), *range(31, 4, -1)):
        words = [word[bit] for word in together] + [added.get(bit)]
        rest.append([level for level in words if level is not None])
    assert max(in_order) < min(level for row in rest for level in row)
    assert all(max(row) < min(after) for row, after in pairwise(rest))
    other = Tapes(SUBLEQ, ROOM)
    other.anchor("ram", other.pc)
    assert max(levels(other, "pc")) < min(levels(other, NEXT))
    assert [sorted(levels(other, NEXT)).index(level) for level in levels(other, NEXT)] == [
        0,
        1,
        2,
        3,
        4,
        7,
        6,
        5,
    ]


def test_fixed_bits_are_those_of_the_instruction() -> None:
    tapes = Tapes(RV, ROOM, {0: 1, 4: 0, 31: 1})
    first = tapes.anchor("ram", tapes.pc)
    code = tapes.word((first, 0))
    assert [code[bit] for bit in (0, 4, 31)] == [1, 0, 1]
    assert all(bit > 1 for place, bit in enumerate(code) if place not in (0, 4, 31))
    assert all(bit > 1 for bit in tapes.word((first, 1)))
    other = tapes.anchor("ram", number(3, 32))
    assert all(bit > 1 for bit in tapes.word((other, 0)))
    assert tapes.pc[:2] == [0, 0]
    assert all(bit > 1 for bit in tapes.pc[2:])
    assert len(tapes.copied) == 5  # up to 16 bytes
    assert len(tapes.byte) == 8
