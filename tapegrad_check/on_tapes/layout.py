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
"""

from collections.abc import Mapping, Sequence, Set
from itertools import count

from tapegrad_check.instructions.execution import State
from tapegrad_check.sources import Program

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

Ones = Sequence[Set[int]]
"""The cells of each tape that hold a 1."""


def shown(program: Program, name: str, tapes: Ones) -> State | None:
    """The state of a program that tapes show; None between instructions, and where they show none."""
    traps = ("", *TRAPS[program.kind])
    trap = 0 if name == FETCH else traps.index(name) if name in traps else -1
    if trap < 0:
        return None
    (memory, _), (taken, marks), (variables, written) = (
        _words(tapes[tape], program.width) for tape in (MEMORY, INPUT, VARIABLES)
    )
    ahead = [-mark for mark in marks if mark < 0]
    if not ahead:
        return None
    first_byte, size = OUTPUT[program.kind], program.width // 8
    output = []
    for word in count(first_byte):
        if word not in written:
            break
        output.append(variables.get(word, 0) & 255)
    held = [memory.get(word, 0) for word in range(program.ram // size)]
    rv32 = program.kind == "rv32im"
    return State(
        pc=variables.get(PC, 0),
        memory=tuple(b"".join(word.to_bytes(4, "little") for word in held)) if rv32 else tuple(held),
        x=tuple(memory.get(-1 - which, 0) for which in range(32)) if rv32 else (),
        input=bytes(taken.get(-1 - byte, 0) & 255 for byte in range(max(ahead) - 2)),
        trap=trap,
        taken=min(ahead) - 1,
        copied=variables.get(COPIED, 0) if rv32 else 0,
        output=bytes(output),
    )


def laid_out(program: Program, state: State) -> list[set[int]]:
    """The tapes between two instructions, with nothing left behind by earlier ones."""
    width, rv32 = program.width, program.kind == "rv32im"
    pitch, words = width + 1, program.ram * 8 // width
    held = dict(enumerate(state.memory))
    if rv32:
        groups = (bytes(state.memory[at : at + 4]) for at in range(0, len(state.memory), 4))
        held = dict(enumerate(int.from_bytes(group, "little") for group in groups))
    held |= {-1 - which: value for which, value in enumerate(state.x)}
    given = {-1 - which: byte for which, byte in enumerate(state.input)}
    said = dict(enumerate(state.output, OUTPUT[program.kind]))
    variables = {PC: state.pc, **({COPIED: state.copied} if rv32 else {}), **said}
    ends = {-(state.taken + 1), -(len(state.input) + 2)}
    return [
        _cells(held, width) | {0, words * pitch},
        {pitch * word for word in range(-len(state.x) - 2, words + 3)},
        _cells(given, width) | {0} | {pitch * end for end in ends},
        _cells(variables, width) | {pitch * word for word in said},
    ]


def _words(ones: Set[int], width: int) -> tuple[dict[int, int], set[int]]:
    """The words of a tape that are not 0, and those whose separator is 1."""
    words: dict[int, int] = {}
    marks = set()
    for cell in ones:
        word, at = divmod(cell, width + 1)
        if at:
            words[word] = words.get(word, 0) | 1 << at - 1
        else:
            marks.add(word)
    return words, marks


def _cells(words: Mapping[int, int], width: int) -> set[int]:
    return {
        (width + 1) * word + 1 + bit
        for word, value in words.items()
        for bit in range(value.bit_length())
        if value >> bit & 1
    }
