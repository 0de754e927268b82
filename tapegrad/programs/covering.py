"""Inputs that take a program where others do not, for `verify` where none are given.

A run is worth comparing if it comes to an instruction that no run before came to. So inputs are tried in an
interpreter, which costs next to nothing, and kept if they do. Then they are tried with one byte more, first
those that were kept: with the bytes of all texts, and with those that the program's own instructions name.
"""

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import numpy as np

from tapegrad.programs.model import Program
from tapegrad.programs.rv32 import RV32

MOST_KEPT, MOST_RUNS, LONGEST_RUN = 8, 400, 5_000
PLAIN_STEPS = 50_000
"""Of all runs together, where there is no compiled interpreter that knows where it has been."""
COMMON = b"015 \n-az"


def inputs(
    program: Program, random: np.random.Generator, room: Callable[[bytes], int | None]
) -> list[tuple[bytes]]:
    """Up to eight inputs. `room` says within how many steps a run has to end in a network, 0 if it does not
    take the input, None if the run may go on."""
    letters = bytes(random.integers(97, 123, 8, np.uint8).tolist())
    first, others = deque([b"", b"5 3 8\n", letters]), deque[bytes]()
    more = [bytes([byte]) for byte in dict.fromkeys([*COMMON, *_named(program), 0, 255])]
    kept, tried, reached = list[bytes](), set[bytes](), set[int]()
    left = PLAIN_STEPS
    while (first or others) and len(kept) < MOST_KEPT and len(tried) < MOST_RUNS and left > 0:
        word = (first or others).popleft()
        if word in tried or (within := room(word)) == 0:
            continue
        tried.add(word)
        most = min(LONGEST_RUN, left)
        found = visited(program, word, most if within is None else min(within, most))
        left -= found.plain_steps
        new = (found.ended or within is None) and not found.places <= reached
        if new:
            kept.append(word)
            reached |= found.places
        (first if new else others).extend(word + byte for byte in more)
    return [(word,) for word in kept or [b""]]


class Visited(NamedTuple):
    """Where a run came to, whether it ended, and how many steps of the plain interpreter it took to know."""

    places: set[int]
    ended: bool
    plain_steps: int


def visited(program: Program, word: bytes, most: int) -> Visited:
    """A run of so many steps at most."""
    start = program.start(word)
    if isinstance(program.machine, RV32):
        from tapegrad.programs.compiled import places_of  # which takes half a second to load

        return Visited(*places_of(start, most), 0)
    states = list(islice(program.run(start), most + 1))
    return Visited({state.pc for state in states}, bool(states[-1].trap), len(states))


def _named(program: Program) -> list[int]:
    """The bytes that instructions have as numbers: with those a program compares what it reads."""
    if not isinstance(program.machine, RV32):
        return []
    words = np.frombuffer(program.image[: len(program.image) // 4 * 4], "<u4")
    numbers = words[(words & 0x7F == 0x13) & (words >> 20 < 256)] >> 20  # with an immediate of 12 bits
    return sorted(set(numbers.tolist()))
