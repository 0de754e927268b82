"""AIGER in ASCII (`aag`): a line for each input, latch, output and AND gate; ANDs in any order.

What it shares with the binary form is here too: the header and the table of names.
"""

from typing import NamedTuple

import numpy as np

from tapegrad.circuits.clocked.model import ANY, SequentialCircuit, next_names
from tapegrad.circuits.formats.aig import Aig, aig_of, circuit_of
from tapegrad.circuits.formats.netlist import UNLISTED_INPUTS, CycleError, in_order, number
from tapegrad.circuits.model import Circuit
from tapegrad.errors import FormatError, Refused
from tapegrad.source import Format, quoted


class Header(NamedTuple):
    """The numbers of the first line. Bad states and constraints are read as further outputs."""

    variables: int
    inputs: int
    latches: int
    outputs: int
    ands: int
    bad: int
    constraints: int

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of what has names, by the letter that names begin with."""
        return dict(zip("ilobc", (self.inputs, self.latches, *self.given), strict=True))

    @property
    def given(self) -> tuple[int, int, int]:
        """Outputs of all three kinds, as they follow each other in the file."""
        return self.outputs, self.bad, self.constraints


class Lines:
    """Lines of a file one by one, with their numbers, as a binary file may change to and from text."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
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
    """`aag` or `aig` with the numbers M I L O A; B C J F of version 1.9 may follow, J and F being 0."""
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
    bad, constraints, *lasting = (*properties, 0, 0, 0, 0)[:4]
    if any(lasting):
        raise FormatError(
            "the header announces properties of runs without end (J or F), which no run can show",
            where=lines.where,
            advice="Leave them out to read the circuit.",
        )
    if inputs + latches > UNLISTED_INPUTS + lines.size or inputs + latches + ands > variables:
        raise FormatError(
            f"{inputs:,} inputs, {latches:,} latches and {ands:,} gates with {variables:,} variables in "
            f"{lines.size:,} bytes",
            where=lines.where,
            advice=f"M is at least I + L + A; I + L at most {UNLISTED_INPUTS:,} plus the bytes of the file.",
        )
    return Header(variables, inputs, latches, outputs, ands, bad, constraints)


def reset_of(words: list[str], literal: int, where: str) -> int:
    """The reset value of a latch, 0 where there is none; its own literal leaves it open."""
    if not words or words == ["0"]:
        return 0
    if words == ["1"]:
        return 1
    if words == [str(literal)]:
        return ANY
    raise FormatError(
        f"a latch is reset to {quoted(' '.join(words))}",
        where=where,
        advice="It is reset to 0, to 1, or to its own literal where that is open.",
    )


def take_names(lines: Lines, header: Header) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of inputs and latches, and of outputs and what latches become, from lines such as `i0 carry`,
    up to the comment or the end. What has no name is called as its position: i0, i1, ..., l0, ..., o0, ..."""
    counts = header.counts
    given: dict[str, dict[int, str]] = {letter: {} for letter in counts}
    taken: set[tuple[str, str]] = set()
    while lines.more():
        line = lines.take("a name")
        if line == "c":
            break
        position, _, name = line.partition(" ")
        letter = line[:1]
        if letter not in given or not name:
            raise FormatError(
                f"{quoted(line)} is no name of an input, latch or output",
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
    inputs, outputs = (_apart(letters, counts, given) for letters in ("il", "obc"))
    latches = inputs[header.inputs :]
    return inputs, (*outputs, *next_names(outputs, latches))


def _apart(letters: str, counts: dict[str, int], given: dict[str, dict[int, str]]) -> tuple[str, ...]:
    """All names of these kinds; those that two kinds share are told apart by a mark."""
    found: dict[str, None] = {}
    for letter in letters:
        for name in _completed(letter, counts[letter], given[letter]):
            while name in found:
                name += "'"
            found[name] = None
    return tuple(found)


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


def written_names(source: Circuit | SequentialCircuit) -> str:
    """The table of names; those that reading would give anyway are left out."""
    latches = source.latches if isinstance(source, SequentialCircuit) else ()
    rows = []
    for letter, names in (("i", source.inputs), ("l", latches), ("o", source.outputs)):
        for place, name in enumerate(names):
            if not name.isprintable() or not name:
                raise Refused(
                    f"the name {quoted(name)} cannot be written to AIGER",
                    advice="Names are made of printable characters.",
                )
            if name != f"{letter}{place}":
                rows.append(f"{letter}{place} {name}\n")
    return "".join(rows)


def written_reset(reset: int, literal: int) -> str:
    """What follows the next value of a latch."""
    return {0: "", 1: " 1", ANY: f" {literal}"}[reset]


EXAMPLE_ASCII = """\
aag 5 2 0 2 3
2
4
10
6
6 2 4
8 3 5
10 7 9
i0 a
i1 b
o0 sum
o1 carry
"""

_Ands = dict[int, tuple[int, int, int]]
"""By variable: the two literals that it reads, and the line."""


def detect_ascii(data: bytes) -> bool:
    """Whether the file starts with `aag` and a space."""
    return data.startswith(b"aag ")


def read_ascii(data: bytes) -> Circuit | SequentialCircuit:
    """The circuit of an ASCII AIGER file."""
    lines = Lines(data)
    header = take_header(lines, "aag")
    most = 2 * header.variables + 1
    variable = {0: 0}
    for _ in range(header.inputs):
        literal = lines.take_number("the literal of an input", most)
        _refuse_defined(literal, literal >> 1 in variable, lines)
        variable[literal >> 1] = len(variable)
    after: list[tuple[int, str]] = []
    resets: list[int] = []
    for _ in range(header.latches):
        line = lines.take("a latch")
        words = line.split()
        if not 2 <= len(words) <= 3:
            raise FormatError(
                f"a latch, its next value and its reset were expected, not {quoted(line)}", where=lines.where
            )
        literal, becomes = (number(word, lines.where, "a literal", most) for word in words[:2])
        _refuse_defined(literal, literal >> 1 in variable, lines)
        variable[literal >> 1] = len(variable)
        after.append((becomes, lines.where))
        resets.append(reset_of(words[2:], literal, lines.where))
    outputs: list[tuple[int, str]] = []
    for _ in range(sum(header.given)):
        outputs.append((lines.take_number("the literal of an output", most), lines.where))
    ands = _ands(lines, header, variable)
    input_names, output_names = take_names(lines, header)

    for number_of_and in _ordered(ands, variable):
        variable[number_of_and] = len(variable)
    for literal, where in (*outputs, *after):
        if literal >> 1 not in variable:
            raise _undefined(literal, where)

    def renumbered(literal: int) -> int:
        return 2 * variable[literal >> 1] + (literal & 1)

    in_file = list(variable)[1 + header.inputs + header.latches :]
    aig = Aig(
        inputs=input_names,
        outputs=output_names,
        left=np.array([renumbered(ands[key][0]) for key in in_file], np.int64),
        right=np.array([renumbered(ands[key][1]) for key in in_file], np.int64),
        output_literals=np.array([renumbered(literal) for literal, _ in (*outputs, *after)], np.int64),
        resets=tuple(resets),
    )
    return circuit_of(aig)


def _ands(lines: Lines, header: Header, inputs: dict[int, int]) -> _Ands:
    ands: _Ands = {}
    for _ in range(header.ands):
        line = lines.take("an AND gate")
        words = line.split()
        if len(words) != 3:
            raise FormatError(
                f"three literals of an AND gate were expected, not {quoted(line)}", where=lines.where
            )
        most = 2 * header.variables + 1
        literal, left, right = (number(word, lines.where, "a literal", most) for word in words)
        _refuse_defined(literal, literal >> 1 in inputs or literal >> 1 in ands, lines)
        ands[literal >> 1] = (left, right, lines.number)
    return ands


def _ordered(ands: _Ands, inputs: dict[int, int]) -> list[int]:
    """The ANDs' variables, each after those it reads; undefined ones and cycles are refused."""
    for left, right, line in ands.values():
        for literal in (left, right):
            if literal >> 1 not in ands and literal >> 1 not in inputs:
                raise _undefined(literal, f"line {line}")
    try:
        order = in_order(ands, lambda key: [lit >> 1 for lit in ands[key][:2]] if key in ands else ())
    except CycleError as cycle:
        first = cycle.path[0]
        raise FormatError(
            f"the AND gate of literal {2 * int(first)} depends on itself",  # type: ignore[call-overload]
            where=f"line {ands[first][2]}",  # type: ignore[index]
            advice="A combinational circuit has no cycles; break this one.",
        ) from None
    return [key for key in order if key in ands]


def _refuse_defined(literal: int, defined: bool, lines: Lines) -> None:
    if literal < 2 or literal & 1:
        raise FormatError(
            f"literal {literal} cannot be defined",
            where=lines.where,
            advice="An input, latch or AND gate is defined by an even literal from 2 on.",
        )
    if defined:
        raise FormatError(f"literal {literal} is defined twice", where=lines.where)


def _undefined(literal: int, where: str) -> FormatError:
    return FormatError(
        f"literal {literal} is read, but its variable is neither an input, nor a latch, nor an AND gate",
        where=where,
        advice="Every variable is defined once; the header's counts may be wrong.",
    )


def write_ascii(source: Circuit | SequentialCircuit) -> str:
    """The circuit as ASCII AIGER, with the names of its inputs, latches and outputs."""
    aig = aig_of(source)
    latches, ands = len(aig.resets), len(aig.left)
    inputs, outputs = len(aig.inputs) - latches, len(aig.outputs) - latches
    rows = [f"aag {inputs + latches + ands} {inputs} {latches} {outputs} {ands}"]
    rows += [str(2 * number + 2) for number in range(inputs)]
    literals = aig.output_literals.tolist()
    for place, (becomes, reset) in enumerate(zip(literals[outputs:], aig.resets, strict=True)):
        own = 2 * (inputs + place) + 2
        rows.append(f"{own} {becomes}{written_reset(reset, own)}")
    rows += [str(literal) for literal in literals[:outputs]]
    operands = zip(aig.left.tolist(), aig.right.tolist(), strict=True)
    rows += [f"{2 * (1 + inputs + latches + k)} {left} {right}" for k, (left, right) in enumerate(operands)]
    return "\n".join(rows) + "\n" + written_names(source)


ASCII = Format(
    name="aiger-ascii",
    summary="AIGER as text (.aag): and-inverter graphs, with latches or without",
    example=EXAMPLE_ASCII,
    detect=detect_ascii,
    read=read_ascii,
    write=write_ascii,
)
