"""States of machines with random access that a program could be in: where to look for a difference.

On bits at random pc is outside of memory, and no word is an instruction. So that a net which does something
else is refused, and not just left unproved, registers and memories are drawn here as programs have them: pc
in memory, words that are instructions, addresses and numbers that are small, the numbers of system calls.
Nothing is proved by this.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tapegrad_check.core.nodes import Likely
from tapegrad_check.instructions.ports import Layout
from tapegrad_check.instructions.rv32 import PAGE

Random = np.random.Generator
Numbers = NDArray[np.int64]
CALLS = np.array([63, 64, 93, 94, 62])


def likely(layout: Layout, variables: Iterable[tuple[str, int, Sequence[int]]]) -> Likely:
    """Draws words: the name of a register or a memory, the place there, and the literals of variables. Those
    of `nothing` are 0."""

    def draw(random: Random, words: int) -> dict[int, NDArray[np.uint64]]:
        found: dict[int, NDArray[np.uint64]] = {}
        for name, place, word in variables:
            numbers = _numbers(layout, name, place, random, 64 * words)
            bits = numbers[:, None] >> np.arange(len(word)) & 1
            packed = np.packbits(bits.astype(np.uint8), axis=0, bitorder="little").T.copy()
            found |= zip((literal >> 1 for literal in word), packed.view(np.uint64), strict=True)
        return found

    return draw


def _numbers(layout: Layout, name: str, place: int, random: Random, count: int) -> Numbers:
    """What a register, or a word of a memory, may be."""
    width, words = layout.memories["ram"]
    is_rv32, near = layout.kind == "rv32im", random.integers(0, layout.ram + 4, count)
    anything = random.integers(0, 1 << width, count)
    match name:
        case "nothing":
            return np.zeros(count, np.int64)
        case "pc":
            return (
                4 * random.integers(0, layout.ram // 4, count)
                if is_rv32
                else random.integers(0, words, count)
            )
        case "trap":
            return (random.random(count) < 1 / 16) * random.integers(0, 8, count)
        case "copied" | "taken" | "written":
            return random.integers(0, 3, count)
        case "ram" if is_rv32:
            return np.where(random.random(count) < 3 / 4, _instructions(random, count), anything)
        case "ram":
            inside = random.integers(0, words + 1, count)
            return np.where(random.random(count) < 1 / 4, (1 << width) - 1, inside)
        case "x" if place in (10, 12, 17):
            small = random.choice(CALLS, count) if place == 17 else random.integers(0, 4, count)
            return np.where(random.random(count) < 1 / 2, small, anything)
        case "x":
            return np.where(random.random(count) < 1 / 2, near, anything)
    return random.integers(0, 1 << 9, count)


def _instructions(random: Random, count: int) -> Numbers:
    """Instructions of all kinds, with random fields; immediates are small in half of them."""
    masks = np.array([sum(1 << bit for bit in fixed) for _, fixed, _ in PAGE])
    codes = np.array([sum(value << bit for bit, value in fixed.items()) for _, fixed, _ in PAGE])
    which = random.integers(0, len(PAGE), count)
    calls = [name for name, _, _ in PAGE].index("ecall")
    which[random.random(count) < 1 / 8] = calls
    fields = random.integers(0, 1 << np.where(random.random(count) < 1 / 2, 24, 32))
    return fields & ~masks[which] | codes[which]
