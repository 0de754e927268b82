"""Where a program lies on the tapes of a Turing machine.

Four tapes hold a program between two instructions. A word of w bits takes w + 1 cells: a separator, then its
bits, the lowest first. Word i begins at cell i (w + 1).

    tape 0   words of memory from word 0 on, register i in word -1 - i; 1 at the separators of word 0 and of
             the end of memory
    tape 1   1 at every separator from two words before all this to two words after it
    tape 2   byte i of the input in word -1 - i; 1 at the separators of word 0, of the next byte that is read,
             and of the word after the one that follows the last byte
    tape 3   word 1 is pc, word 2 of RV32IM how many bytes a system call has moved; then the output, with 1 at
             the separator of every byte

Of an instruction set that a folder tells (`Places`) all memories lie in a row, then a spare word of 0 that
stands for whatever is beyond the end of one. Bits of registers are on tapes 0 and 1 in turn, from cell -1 to
the left, and the ruler begins at cell 0. A byte of input has a ninth bit of 1. Output begins with word 1.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import count

from tapegrad_check.instructions.execution import State
from tapegrad_check.sources import Program
from tapegrad_check.sources.instructions import BYTE, Instruction

MEMORY, RULER, INPUT, VARIABLES = range(4)
FETCH = "next instruction"
"""The state of the table between two instructions."""
TRAPS = {
    "rv32im": (
        "exit", "breakpoint", "illegal instruction", "misaligned jump", "jump outside memory",
        "address outside memory",
    ),
    "subleq": ("end", "jump outside memory", "address outside memory"),
}  # fmt: skip
"""The states in which the table ends, by the numbers of traps, from 1 on."""
PC, COPIED = 1, 2
OUTPUT = {"rv32im": 5, "subleq": 2}
"""The word of tape 3 with which the output begins."""
OWN_OUTPUT = 1
BEYOND = 2
"""Words that the ruler has beyond all others."""


def traps_of(program: Program) -> tuple[str, ...]:
    """The states in which the table of a program ends, by the numbers of traps, from 1 on."""
    own = program.instruction
    return TRAPS[program.kind] if own is None else tuple(own.data["traps"])


def pitch_of(program: Program) -> int:
    """Cells of a word, its separator among them."""
    return program.width + 1 if program.instruction is None else Places(program.instruction).width + 1


def end_of(program: Program) -> int:
    """The first cell of tape 0 that belongs to no word of memory."""
    if program.instruction is not None:
        places = Places(program.instruction)
        return (places.words + 1) * (places.width + 1)
    return program.ram * 8 // program.width * (program.width + 1)


class Places:
    """Where words and registers of an instruction set lie that a folder tells."""

    def __init__(self, own: Instruction) -> None:
        self.memories = own.memories
        self.bases: dict[str, int] = {}
        self.words = 0
        for name, (_, words) in own.memories.items():
            self.bases[name] = self.words
            self.words += words
        self.number = self.words.bit_length()
        self.width = max(BYTE + 1, self.number, *(width for width, _ in own.memories.values()))
        self.widths = {name: width for name, width in own.registers.items() if name != "trap"}
        bits = [(name, bit) for name, width in self.widths.items() for bit in range(width)]
        self.registers: dict[tuple[str, int], tuple[int, int]] = {
            bit: ((MEMORY, RULER)[i % 2], -1 - i // 2) for i, bit in enumerate(bits)
        }
        """The tape and the cell of a bit."""


Ones = Sequence[Set[int]]
"""The cells of each tape that hold a 1."""


def shown(program: Program, name: str, tapes: Ones) -> State | None:
    """The state of a program that tapes show; None between instructions, and where they show none."""
    traps = ("", *traps_of(program))
    trap = 0 if name == FETCH else traps.index(name) if name in traps else -1
    if trap < 0:
        return None
    own, pitch = program.instruction, pitch_of(program)
    (memory, _), (taken, marks), (variables, written) = (
        _words(tapes[tape], pitch) for tape in (MEMORY, INPUT, VARIABLES)
    )
    ahead = [-mark for mark in marks if mark < 0]
    if not ahead:
        return None
    output = []
    for word in count(OWN_OUTPUT if own else OUTPUT[program.kind]):
        if word not in written:
            break
        output.append(variables.get(word, 0) & 255)
    ends = State(
        pc=variables.get(PC, 0),
        memory=(),
        x=(),
        input=bytes(taken.get(-1 - byte, 0) & 255 for byte in range(max(ahead) - 2)),
        trap=trap,
        taken=min(ahead) - 1,
        output=bytes(output),
    )
    if own is not None:
        return _shown_in(Places(own), tapes, memory, ends)
    held = [memory.get(word, 0) for word in range(program.ram // (program.width // 8))]
    if program.kind != "rv32im":
        return replace(ends, memory=tuple(held))
    return replace(
        ends,
        memory=tuple(b"".join(word.to_bytes(4, "little") for word in held)),
        x=tuple(memory.get(-1 - which, 0) for which in range(32)),
        copied=variables.get(COPIED, 0),
    )


def _shown_in(places: Places, tapes: Ones, memory: Mapping[int, int], ends: State) -> State:
    words = {
        name: tuple(memory.get(base + i, 0) for i in range(places.memories[name][1]))
        for name, base in places.bases.items()
    }
    registers = dict.fromkeys(places.widths, 0)
    for (name, bit), (tape, cell) in places.registers.items():
        registers[name] |= (cell in tapes[tape]) << bit
    ram, x = words.pop("ram"), words.pop("x", ())
    return replace(ends, pc=registers.pop("pc"), memory=ram, x=x, own={**registers, **words})


def laid_out(program: Program, state: State) -> list[set[int]]:
    """The tapes between two instructions, with nothing left behind by earlier ones."""
    own, pitch = program.instruction, pitch_of(program)
    if own is not None:
        memory, ruler, variables = _laid_in(Places(own), state)
        first, mark = OWN_OUTPUT, 1 << BYTE
    else:
        memory, ruler, variables = _laid_by_words(program, state)
        first, mark = OUTPUT[program.kind], 0
    given = {-1 - which: byte | mark for which, byte in enumerate(state.input)}
    said = dict(enumerate(state.output, first))
    ends = {-(state.taken + 1), -(len(state.input) + 2)}
    return [
        memory,
        ruler,
        _cells(given, pitch) | {0} | {pitch * end for end in ends},
        _cells({**variables, **said}, pitch) | {pitch * word for word in said},
    ]


def _laid_by_words(program: Program, state: State) -> tuple[set[int], set[int], dict[int, int]]:
    """Tapes 0 and 1, and the words of tape 3 without the output."""
    pitch, rv32 = program.width + 1, program.kind == "rv32im"
    words = program.ram * 8 // program.width
    held = dict(enumerate(state.memory))
    if rv32:
        groups = (bytes(state.memory[at : at + 4]) for at in range(0, len(state.memory), 4))
        held = dict(enumerate(int.from_bytes(group, "little") for group in groups))
    held |= {-1 - which: value for which, value in enumerate(state.x)}
    ruler = {pitch * word for word in range(-len(state.x) - BEYOND, words + BEYOND + 1)}
    return (
        _cells(held, pitch) | {0, words * pitch},
        ruler,
        {PC: state.pc, **({COPIED: state.copied} if rv32 else {})},
    )


def _laid_in(places: Places, state: State) -> tuple[set[int], set[int], dict[int, int]]:
    held: dict[str, int | tuple[int, ...]] = {
        "ram": state.memory, "x": state.x, "pc": state.pc, **state.own
    }  # fmt: skip
    words = {base + i: word for name, base in places.bases.items() for i, word in enumerate(_row(held[name]))}
    tapes = [
        _cells(words, places.width + 1) | {0},
        {(places.width + 1) * word for word in range(places.words + BEYOND + 1)},
    ]
    for (name, bit), (tape, cell) in places.registers.items():
        value = held[name]
        assert isinstance(value, int)
        if value >> bit & 1:
            tapes[tape].add(cell)
    return tapes[MEMORY], tapes[RULER], {}


def _row(words: int | tuple[int, ...]) -> tuple[int, ...]:
    return (words,) if isinstance(words, int) else words


def _words(ones: Set[int], pitch: int) -> tuple[dict[int, int], set[int]]:
    """The words of a tape that are not 0, and those whose separator is 1."""
    words: dict[int, int] = {}
    marks = set()
    for cell in ones:
        word, at = divmod(cell, pitch)
        if at:
            words[word] = words.get(word, 0) | 1 << at - 1
        else:
            marks.add(word)
    return words, marks


def _cells(words: Mapping[int, int], pitch: int) -> set[int]:
    return {
        pitch * word + 1 + bit
        for word, value in words.items()
        for bit in range(value.bit_length())
        if value >> bit & 1
    }
