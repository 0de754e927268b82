"""SUBLEQ, the machine with one instruction: three words a, b, c.

    memory[b] -= memory[a]; if the result is 0 or negative, go to c, otherwise to the next three words

All words are numbers of the same width, and addresses count words. By the usual convention the address -1 is
the outside: with a = -1 a byte of input goes to memory[b] (-1 at the end of the input), and with b = -1 the
low byte of memory[a] is written; both go on with the next three words. A jump to a negative address ends the
program; pc stays at the instruction that jumped.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tapegrad.circuits import UInt, all_of, any_of, concat
from tapegrad.circuits.values import IntValue
from tapegrad.errors import FormatError, SourceError
from tapegrad.programs.interpreters import run_subleq
from tapegrad.programs.model import (
    LARGEST_RAM,
    Effect,
    Instruction,
    Machine,
    Next,
    Program,
    ProgramState,
    Read,
    Write,
    chosen,
    either,
    only,
)
from tapegrad.programs.text import Place, Undefined, did_you_mean, evaluated

END, JUMP_OUTSIDE, OUTSIDE = range(1, 4)
WIDTHS = (8, 16, 32)


@dataclass(frozen=True)
class Subleq(Machine):
    """SUBLEQ with words of `width` bits."""

    width: int = 32

    kind: ClassVar[str] = "subleq"
    traps: ClassVar[tuple[str, ...]] = ("end", "jump outside memory", "address outside memory")

    def __post_init__(self) -> None:
        if self.width not in WIDTHS:
            raise SourceError(f"a word of SUBLEQ has 8, 16 or 32 bits, not {self.width}")
        super().__post_init__()
        words = self.ram * 8 // self.width
        if words >= 1 << self.width - 1:
            raise SourceError(f"words of {self.width} bits cannot be the addresses of {words:,} words")

    @property
    def word(self) -> int:
        return self.width

    def run(self, state: ProgramState) -> Iterator[ProgramState]:
        return run_subleq(self, state)

    def instruction(self, registers: Mapping[str, IntValue]) -> Instruction:
        pc, words = registers["pc"], self.memories["ram"].words
        index = (words - 1).bit_length() or 1
        a, b, c, arriving = yield (*(Read("ram", (pc + i)[:index]) for i in range(3)), Next())
        astray = pc > words - 3
        reads, writes = ~astray & all_of(a.bits()), ~astray & all_of(b.bits())
        a_outside, b_outside = a > words - 1, b > words - 1
        outside = ~astray & ((a_outside & ~reads) | (b_outside & ~writes) | (reads & writes))
        runs = ~astray & ~outside
        subtrahend, old = yield (Read("ram", only(runs & ~reads, a[:index])), Read("ram", b[:index]))

        byte = concat(arriving[:8], *[0] * (self.width - 8)) if self.width > 8 else arriving[:8]
        there = arriving[8]
        difference = old - subtrahend
        new = either(reads, either(there, byte, UInt(self.width)(2**self.width - 1)), difference)
        subtracts = runs & ~reads & ~writes
        jumps = subtracts & (~any_of(difference.bits()) | difference[self.width - 1])
        ends = jumps & c[self.width - 1]
        emits = runs & writes
        stays = ~runs | ends
        return Effect(
            {
                "pc": chosen((stays, pc), (~stays & jumps, c), (~stays & ~jumps, pc + 3)),
                "trap": chosen(
                    (ends, UInt(2)(END)), (astray, UInt(2)(JUMP_OUTSIDE)), (outside, UInt(2)(OUTSIDE))
                ),
            },
            [Write("ram", b[:index], old, only(runs & ~writes, old ^ new))],
            takes=runs & reads & there,
            puts=(emits, subtrahend[:8]),
        )


# Texts: words separated by spaces, as numbers or as sums of labels and numbers. `name:` is a label, `?` the
# address of the next word, and `#` begins a comment. The first line may be `subleq`, with the bits of a word
# and the number of words: `subleq 8 32`.


_HEADER = re.compile(r"(?:\s|#[^\n]*\n)*subleq\b[ \t]*(\d+)?[ \t]*(\d+)?[ \t]*(?:#[^\n]*)?(?=\n|\Z)")
_WORDS = re.compile(r"[^\s,;#]+")
LONGEST = 1 << 24
"""Bytes of text."""


def looks_like_subleq(text: str) -> bool:
    """Whether it has the first line, or consists of numbers alone."""
    if _HEADER.match(text):
        return True
    words = re.sub(r"#[^\n]*", "", text).split()
    return len(words) >= 3 and all(re.fullmatch(r"-?\d+", word) for word in words[:1000])


def read_subleq(data: bytes, name: str = "program") -> Program:
    """The program of a SUBLEQ text."""
    if len(data) > LONGEST:
        raise FormatError(f"the SUBLEQ text is longer than {LONGEST >> 20} MiB")
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise FormatError(f"the SUBLEQ text is not UTF-8, at byte {error.start}") from error
    header = _HEADER.match(text)
    begin, width, asked = 0, 32, None
    if header is not None:
        begin = header.end()
        width, asked = int(header[1] or 32), int(header[2]) if header[2] else None
        if width not in WIDTHS:
            raise FormatError(f"a word of SUBLEQ has 8, 16 or 32 bits, not {width}", where="line 1")
    labels: dict[str, int] = {}
    words: list[tuple[Place, str]] = []
    for number, line in enumerate(text[begin:].split("\n"), text.count("\n", 0, begin) + 1):
        for found in _WORDS.finditer(line.partition("#")[0]):
            place, word = Place(number, found.start() + 1), found[0]
            while label := re.match(r"([A-Za-z_]\w*):", word):
                if label[1] in labels:
                    raise place.error(f"the label {label[1]!r} is defined twice")
                labels[label[1]] = len(words)
                word = word[label.end() :]
            if word:
                words.append((place, word))
    if not words:
        raise FormatError("the SUBLEQ text has no words")
    count = asked or max(16, 1 << (len(words) - 1).bit_length())
    if len(words) > count or count * width // 8 > LARGEST_RAM:
        raise FormatError(
            f"the program has {len(words):,} words, and its memory {count:,}",
            advice=f"Ask for more in the first line: subleq {width} {len(words)}.",
        )
    image = b"".join(
        _word(place, word, at, width, labels).to_bytes(width // 8, "little")
        for at, (place, word) in enumerate(words)
    )
    return Program(name, Subleq(count * width // 8, width=width), image, 0, labels)


def _word(place: Place, text: str, at: int, width: int, labels: Mapping[str, int]) -> int:
    def symbol(name: str) -> int:
        if name not in labels:
            raise Undefined(name)
        return labels[name]

    try:
        value = evaluated(place, text.replace("?", f"({at + 1})"), symbol)
    except Undefined as missing:
        raise place.error(
            f"unknown label {str(missing)!r}", did_you_mean(str(missing), list(labels))
        ) from None
    if not -(1 << width - 1) <= value < 1 << width:
        raise place.error(f"{value} does not fit a word of {width} bits")
    return value & (1 << width) - 1
