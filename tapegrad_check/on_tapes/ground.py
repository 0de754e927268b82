"""What lies on the tapes of a program between two instructions, for all programs, inputs and outputs.

This is `layout` in literals. Words of memory, registers, pc and the next byte of input are variables; so is
all that a separator may show. Nothing is known of what earlier instructions have left on the work tapes. Some
words are where a number says, or where the input or the output has come to: these are the anchors.

    MEMORY, RULER   HOME is word 0; "ram" and "x" are the word of memory and the register of a number
    INPUT           HOME is word 0; NEXT is the byte that is read next, which is to the left of HOME; LAST is
                    the word to its right, where that is not HOME
    VARIABLES       HOME is word 0; END is the word after the last byte of output, where there is one

The loops of a table are followed for a word that may be any (`SOME`, `NUMBER`, `ANYWHERE`).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tapegrad_check.core.nodes import FALSE, TRUE
from tapegrad_check.folder import NotProved
from tapegrad_check.formulas.diagrams import Diagrams
from tapegrad_check.formulas.words import above, add, equal, number
from tapegrad_check.on_tapes.layout import (
    BEYOND,
    COPIED,
    INPUT,
    MEMORY,
    OUTPUT,
    OWN_OUTPUT,
    PC,
    RULER,
    VARIABLES,
    pitch_of,
)
from tapegrad_check.on_tapes.paths import HOME, Anchor, Cell
from tapegrad_check.sources import Program

NEXT, LAST, END = Anchor("next byte"), Anchor("last byte"), Anchor("end of output")
SOME, NUMBER, ANYWHERE = Anchor("some word"), Anchor("number"), Anchor("anywhere")
IN_A_ROW = 3
"""Words of memory that an instruction may read from one that it has reached on."""
SINGLE, BY_ITSELF, TOGETHER, SLOTS = 0, 1 << 10, 1 << 14, 1 << 7
"""Levels of single variables, of words by themselves, and of words that are interleaved, and how many words
there may be: with more, two of them would share a variable."""
ALONE = [tuple(number(register, 5)) for register in (10, 17)]
"""Registers a0 and a7, by their numbers: where these are known they say what a system call is to do. Whether
the table has reached them or not, their bits come one word after the other."""
AMOUNT = 5
"""Low bits of a word that come before the others."""


class Tapes:
    """The tapes before an instruction."""

    def __init__(
        self, program: Program, most: int, fixed: Mapping[int, int] | None = None, beside: Sequence[int] = ()
    ) -> None:
        """`fixed` are bits of the instruction that are known, and `beside` bits of it that are added to
        others: the lowest first, as places in the instruction."""
        self.n = Diagrams(most)
        self.pitch = pitch_of(program)
        self.width = self.pitch - 1
        self.words = program.ram * 8 // program.width
        self.registers = 32 if program.kind == "rv32im" else 0
        self.first_output = OUTPUT.get(program.kind, OWN_OUTPUT)
        self._singles: dict[object, int] = {}
        self._words: dict[object, list[int]] = {}
        self._anchors: dict[tuple[str, tuple[int, ...]], Anchor] = {}
        self.first: Anchor | None = None
        """The first word that is reached by a number: the instruction."""
        self._fixed, self._beside = fixed or {}, {place: bit for bit, place in enumerate(beside)}
        self.pc = self.word("pc")
        if self.registers:
            self.pc[:2] = [FALSE, FALSE]
        self.copied = self.word("copied")[: program.ram.bit_length()]
        self.byte = self.word(NEXT)[:8]
        self.ended = self.single("the input has ended")

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is worked out meanwhile is forgotten afterwards, and so are the variables that it took."""
        mark, names = self.n.mark(), (dict(self._singles), dict(self._words), dict(self._anchors))
        try:
            yield
        finally:
            self.n.forget(mark)
            self._singles, self._words, self._anchors = names

    def single(self, name: object) -> int:
        """A variable; the same for each name."""
        if len(self._singles) >= BY_ITSELF:
            raise NotProved("an instruction takes too many turns")
        return self._singles.setdefault(name, self.n.variable(SINGLE + len(self._singles)))

    def word(self, name: object) -> list[int]:
        """The variables of a word; the same for each name."""
        if name not in self._words:
            slot = len(self._words)
            if slot >= SLOTS:
                raise NotProved("an instruction looks at too many words")
            self._words[name] = [self._bit(name, slot, bit) for bit in range(self.width)]
        return self._words[name]

    def _bit(self, name: object, slot: int, bit: int) -> int:
        """Instructions, and pc of SUBLEQ, are looked at by themselves, so that their bits come one word after
        the other; words that they name are added and compared, and so interleaved. A carry into a bit is
        then a small change of the one before. The low bits may say how far to shift."""
        code = isinstance(name, tuple) and name[0] is self.first
        if code and name == (self.first, 0) and bit in self._fixed:
            return TRUE if self._fixed[bit] else FALSE
        told = isinstance(name, tuple) and (
            getattr(name[0], "number", name[1:]) in ALONE or name[:1] == ("a count",)
        )
        if (code and bit not in self._beside) or told or (name == "pc" and not self.registers):
            return self.n.variable(BY_ITSELF + 64 * slot + bit)
        if code:
            bit = self._beside[bit]
        place = bit if bit < AMOUNT else AMOUNT + self.width - 1 - bit
        return self.n.variable(TOGETHER + SLOTS * place + slot)

    def anchor(self, kind: str, at: list[int]) -> Anchor:
        """The word of memory, or the register, with this number."""
        key = kind, tuple(at)
        if self.first is None:
            self.first = Anchor(*key)
            self._anchors[key] = self.first
        return self._anchors.setdefault(key, Anchor(*key))

    def address(self, anchor: Anchor, further: int) -> list[int]:
        """The number of a word so many words on."""
        return add(self.n, anchor.number, number(further, len(anchor.number)))

    def outside(self, anchor: Anchor, further: int) -> int:
        """1 where the word so many words on from one inside is not in memory."""
        return above(self.n, anchor.number, self.words - 1 - further)

    def held(self, cell: Cell) -> int | None:
        """What a cell holds; None if that is not known."""
        tape, anchor, offset = cell
        word, at = divmod(offset, self.pitch)
        if tape == RULER:
            return self._ruler(anchor, word, at)
        if tape == MEMORY:
            return self._memory(anchor, word, at)
        return (self._input if tape == INPUT else self._variables)(anchor, word, at)

    def _ruler(self, anchor: Anchor, word: int, at: int) -> int | None:
        """From a word inside memory no further than the ruler has words beyond it, whichever word that is."""
        first, last = -BEYOND, 1 + BEYOND
        if anchor is HOME:
            first, last = -self.registers - BEYOND, self.words + BEYOND
        return (TRUE if at == 0 else FALSE) if first <= word <= last else None

    def _memory(self, anchor: Anchor, word: int, at: int) -> int | None:
        if at == 0:
            if anchor is HOME:
                return TRUE if word in (0, self.words) else FALSE
            if anchor is SOME:
                return self.single(("a mark", word))
            return self.n.any_of(
                [equal(self.n, anchor.number, which) for which in self._marked(anchor, word)]
            )
        if not anchor.number or not 0 <= word < (IN_A_ROW if anchor.kind == "ram" else 1):
            return None
        return self.port(anchor, word)[at - 1]

    def _marked(self, anchor: Anchor, word: int) -> list[int]:
        """The numbers of an anchor for which the word so many words on is word 0, or the end of memory. That
        of register i is word -1 - i."""
        if anchor.kind == "ram":
            numbers, most = (-word, self.words - word), self.words
        else:
            numbers, most = (word - 1, word - 1 - self.words), self.registers
        return [which for which in numbers if 0 <= which < most]

    def port(self, anchor: Anchor, word: int = 0) -> list[int]:
        """What is held by the word so many words on from one with a number."""
        return self.word((anchor, word))

    def _input(self, anchor: Anchor, word: int, at: int) -> int | None:
        if anchor is NUMBER and word == 0 and at:
            return self.word(NUMBER)[at - 1]
        if anchor is NEXT and word == 0 and at:
            return self.byte[at - 1] if at <= 8 else FALSE
        if at == 0:
            return {(HOME, 0): TRUE, (NEXT, 0): TRUE, (NEXT, -1): self.ended, (LAST, 0): FALSE}.get(
                (anchor, word)
            )
        return None

    def _variables(self, anchor: Anchor, word: int, at: int) -> int | None:
        ends = (HOME, self.first_output), (END, 0)
        if (anchor, word) in ends:
            if at:
                return self.word(("output", anchor))[at - 1]
            return self.single("something was written") if anchor is HOME else FALSE
        if at == 0 and anchor is HOME and 0 <= word < self.first_output:
            return FALSE
        if at and anchor is HOME and word == PC:
            return self.pc[at - 1]
        if at and anchor is HOME and word == COPIED and self.registers:
            return self.copied[at - 1] if at <= len(self.copied) else FALSE
        return None

    def may_change(self, cell: Cell) -> bool:
        """Whether an instruction may write there. What it writes is compared in the end where it matters."""
        tape, anchor, offset = cell
        word, at = divmod(offset, self.pitch)
        if tape == MEMORY:
            return at > 0 and bool(anchor.number) and self.held(cell) is not None
        if tape == INPUT:
            inside = (anchor is HOME and word >= 0) or (anchor is NUMBER and word == 0)
            return inside if at else anchor is NEXT and word in (0, -1)
        if tape == VARIABLES:
            last = (anchor, word) in ((HOME, self.first_output), (END, 0))
            return last or (at > 0 and anchor is HOME and 0 <= word < self.first_output)
        return False
