"""Traces as people write them: what the inputs are, cycle by cycle.

A word is a cycle. It has the bits of all inputs in their order (`011`), or values by name, with commas
between them (`data=0x41,send=1`); inputs that are not named stay as they were, and are 0 at first. `*12`
after a word stands for twelve such cycles, and by itself for twelve more of the last. `@q=1` is no cycle: it
says what a latch holds at first that the circuit leaves open. In a file, `#` begins a comment.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tapegrad._files import content_of
from tapegrad.circuits.clocked.model import MOST_TRACED, SequentialCircuit
from tapegrad.circuits.inputs import BUS
from tapegrad.errors import InputError

ADVICE = (
    "Write a word for each cycle, as 011 or data=65,send=1, with *12 after it for twelve; or give a file."
)


def parse_trace(
    source: SequentialCircuit, texts: Sequence[str]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The trace, and what the open latches hold at first."""
    words = [word for text in texts for word in _words(text)]
    inputs, latches = _places(source.inputs), _places(source.open_latches)
    first = np.zeros(len(source.open_latches), np.uint8)
    now = np.zeros(len(source.inputs), np.uint8)
    rows: list[NDArray[np.uint8]] = []
    counts: list[int] = []
    most, cycles = MOST_TRACED // max(1, len(source.inputs)), 0
    for number, word in enumerate(words, 1):
        where = f"word {number}, {word[:40]!r}"
        if word.startswith("@"):
            first = _set(first, latches, word[1:], where, "open latch")
            continue
        values, times, repeated = word.partition("*")
        count = _whole(repeated, where) if times else 1
        cycles += count
        if cycles > most:
            raise InputError(f"the trace is longer than {most:,} cycles", where=where)
        if "=" in values:
            now = _set(now, inputs, values, where, "input")
        elif values:
            now = _bits(values, source, where)
        rows.append(now)
        counts.append(count)
    trace = np.repeat(np.array(rows, np.uint8).reshape(len(rows), len(now)), counts, axis=0)
    return trace, first


def _words(text: str) -> list[str]:
    """The words of a text, or of the file that it names."""
    content = None if set(text) & set("=*@\n") else content_of(text)
    if content is None:
        return text.split()
    lines = content.decode("utf-8", "replace").splitlines()
    return [word for line in lines for word in line.split("#", 1)[0].split()]


def _places(names: Sequence[str]) -> dict[str, dict[int, int]]:
    """For every value by name, where each of its bits stands; a bit of a value has a name of its own too."""
    places: dict[str, dict[int, int]] = {}
    for place, name in enumerate(names):
        bus = BUS.fullmatch(name)
        places.setdefault(bus[1] if bus else name, {})[int(bus[2]) if bus else 0] = place
        if bus:
            places.setdefault(name, {})[0] = place
    return places


def _set(
    now: NDArray[np.uint8], places: Mapping[str, Mapping[int, int]], values: str, where: str, what: str
) -> NDArray[np.uint8]:
    after = now.copy()
    for pair in values.split(","):
        name, _, text = pair.partition("=")
        if name not in places:
            known = ", ".join([own for own in places if not BUS.fullmatch(own)][:8]) or "none"
            raise InputError(f"there is no {what} {name[:40]!r}", where=where, advice=f"There are: {known}.")
        value, bits = _whole(text, where), places[name]
        if value >> max(bits) + 1:
            raise InputError(f"{value} does not fit the {max(bits) + 1} bits of {name!r}", where=where)
        for bit, place in bits.items():
            after[place] = value >> bit & 1
    return after


def _bits(text: str, source: SequentialCircuit, where: str) -> NDArray[np.uint8]:
    digits = text.replace("_", "")
    if set(digits) - {"0", "1"}:
        raise InputError(f"{text[:40]!r} is no cycle of inputs", where=where, advice=ADVICE)
    if len(digits) != len(source.inputs):
        names = ", ".join(name for name in _places(source.inputs) if not BUS.fullmatch(name))
        raise InputError(
            f"{len(digits)} bits were given for the {len(source.inputs)} inputs of {source.name!r}",
            where=where,
            advice=f"Its inputs are {names or 'none: write *12 for twelve cycles'}.",
        )
    return np.array([int(digit) for digit in digits], np.uint8)


def _whole(text: str, where: str) -> int:
    try:
        found = int(text, 0)
    except ValueError:
        found = -1
    if not 0 <= found < 1 << 4096:
        raise InputError(f"{text[:40]!r} is no whole number from 0 on", where=where, advice=ADVICE)
    return found
