"""How much memory a program gets that does not say how much it wants.

How deep its stack grows, and how much it asks `malloc` for, depends on what it reads. So it is run, with much
memory, and then with less: it gets the smallest power of two with which it does the same. A stack that grows
into the program's data would do something else. (The compiled interpreter takes a thousandth of the time that
a network will.)
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tapegrad.programs.elf import HEAP_SYMBOL
from tapegrad.programs.model import Program

MUCH = 1 << 24
"""Bytes: what other machines give to a stack and to large arrays. A program that takes more than a network is
built for is refused by its size; with less it would do something else, and nobody would know why."""


def fitted(program: Program, words: Sequence[Any], steps: int) -> Program:
    """The program, with the memory that it needs for this input; as it is, if it says how much it wants, or
    if what it does depends on where its stack is."""
    if not program.any_memory:
        return program
    size = least_memory(program)
    if size > MUCH:
        return program
    much = _done(with_memory(program, MUCH), words, steps)
    while size < MUCH:
        one = with_memory(program, size)
        if _done(one, words, steps) == much:
            return one
        size *= 2
    return program


def least_memory(program: Program) -> int:
    """The smallest memory that a program can be given: its own, if it says how much it wants."""
    if not program.any_memory:
        return program.machine.ram
    least = max(len(program.image), program.symbols.get(HEAP_SYMBOL, 0), 16)
    return 1 << (least - 1).bit_length()


def with_memory(program: Program, ram: int) -> Program:
    """The same in a memory of another size."""
    return replace(program, machine=replace(program.machine, ram=ram))


def _done(program: Program, words: Sequence[Any], steps: int) -> tuple[Any, ...]:
    """All that a program does which does not tell the size of its memory."""
    from tapegrad.programs.compiled import run  # which takes half a second to load

    found = run(program, program.start(*words), steps)
    final = found.final
    code = final.registers[10] if final.trap == "exit" else None
    return found.steps, final.trap, final.pc, code, final.taken, final.written, final.output
