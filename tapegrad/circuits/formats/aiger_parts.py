"""What ASCII and binary AIGER share: the header and the table of names."""

from typing import NamedTuple

from tapegrad.circuits.formats.text import MOST_INPUTS, number
from tapegrad.circuits.model import Circuit
from tapegrad.errors import FormatError, Refused
from tapegrad.formats import quoted


class Header(NamedTuple):
    """The numbers of the first line; a latch or a property has been refused by now."""

    variables: int
    inputs: int
    outputs: int
    ands: int


class Lines:
    """Lines of a file one by one, with their numbers, as a binary file may change to and from text."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0
        self.number = 0

    def more(self) -> bool:
        """Whether anything is left."""
        return self.position < len(self._data)

    def take(self, what: str) -> str:
        """The next line; `what` was expected there."""
        if not self.more():
            raise FormatError(
                f"the file ends where {what} was expected",
                where=f"line {self.number + 1}",
                advice="It may be cut off, or its header claims too much.",
            )
        end = self._data.find(b"\n", self.position)
        end = len(self._data) if end < 0 else end
        line, self.position = self._data[self.position : end], end + 1
        self.number += 1
        try:
            return line.decode("utf-8").removesuffix("\r")
        except UnicodeDecodeError:
            raise FormatError(f"{what} was expected, not binary data", where=self.where) from None

    def take_number(self, what: str, most: int) -> int:
        """The next line, which is a number."""
        return number(self.take(what).strip(), self.where, what, most)

    @property
    def where(self) -> str:
        """The position of the line taken last."""
        return f"line {self.number}"


def take_header(lines: Lines, kind: str) -> Header:
    """`aag` or `aig` with the numbers M I L O A; B C J F of version 1.9 may follow if they are 0."""
    words = lines.take("the header").split()
    if not words or words[0] != kind or not 6 <= len(words) <= 10:
        raise FormatError(
            f"the header is {quoted(' '.join(words))}",
            where=lines.where,
            advice=f"It is `{kind} M I L O A`, with five to nine numbers.",
        )
    variables, inputs, latches, outputs, ands, *properties = (
        number(word, lines.where, "a count in the header") for word in words[1:]
    )
    if latches:
        raise FormatError(
            f"this is a sequential circuit with {latches} latch(es); only combinational ones can be read",
            where=lines.where,
            advice="Cut it at its latches (latch outputs become inputs, latch inputs become outputs).",
        )
    if any(properties):
        raise FormatError(
            "the header announces properties to check (B, C, J or F), which are for sequential circuits",
            where=lines.where,
            advice="List them as outputs to read the circuit.",
        )
    if inputs > MOST_INPUTS or inputs + ands > variables:
        raise FormatError(
            f"{inputs:,} inputs and {ands:,} gates with {variables:,} variables",
            where=lines.where,
            advice=f"M is at least I + L + A, and at most {MOST_INPUTS:,} inputs are read.",
        )
    return Header(variables, inputs, outputs, ands)


def take_names(lines: Lines, header: Header) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of inputs and outputs, from lines such as `i0 carry`, up to the comment or the end. What
    has no name is called as its position: i0, i1, ..., o0, o1, ..."""
    given: dict[str, dict[int, str]] = {"i": {}, "o": {}}
    taken: set[tuple[str, str]] = set()
    counts = {"i": header.inputs, "o": header.outputs}
    while lines.more():
        line = lines.take("a name")
        if line == "c":
            break
        position, _, name = line.partition(" ")
        letter = line[:1]
        if letter not in given or not name:
            raise FormatError(
                f"{quoted(line)} is no name of an input or output",
                where=lines.where,
                advice="Names look like `i0 carry`; a line `c` starts the comment.",
            )
        place = number(position[1:], lines.where, "a position")
        if place >= counts[letter] or place in given[letter]:
            raise FormatError(f"{quoted(position)} is named twice or does not exist", where=lines.where)
        if (letter, name) in taken:
            raise FormatError(
                f"two have the name {quoted(name)}", where=lines.where, advice="Rename one of them."
            )
        taken.add((letter, name))
        given[letter][place] = name
    return _completed("i", header.inputs, given["i"]), _completed("o", header.outputs, given["o"])


def _completed(letter: str, count: int, given: dict[int, str]) -> tuple[str, ...]:
    taken = set(given.values())
    names = []
    for place in range(count):
        name = given.get(place)
        if name is None:
            name = f"{letter}{place}"
            while name in taken:
                name += "'"
            taken.add(name)
        names.append(name)
    return tuple(names)


def written_names(circuit: Circuit) -> str:
    """The table of names; those that reading would give anyway are left out."""
    rows = []
    for letter, names in (("i", circuit.inputs), ("o", circuit.outputs)):
        for place, name in enumerate(names):
            if not name.isprintable() or not name:
                raise Refused(
                    f"the name {quoted(name)} cannot be written to AIGER",
                    advice="Names are made of printable characters.",
                )
            if name != f"{letter}{place}":
                rows.append(f"{letter}{place} {name}\n")
    return "".join(rows)
