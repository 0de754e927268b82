"""BLIF, the Berkeley Logic Interchange Format: one flat combinational model.

Read: `.model`, `.inputs`, `.outputs`, `.names` with on-set or off-set covers, `.end`, comments and `\\`
continuations; notes on timing are passed over. Latches and sub-circuits are refused. An empty cover is 0.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tapegrad.circuits.formats.cover import Cover
from tapegrad.circuits.formats.netlist import Net, Netlist
from tapegrad.circuits.formats.text import decoded
from tapegrad.circuits.model import Circuit
from tapegrad.errors import FormatError
from tapegrad.formats import opening, quoted

EXAMPLE = """\
.model half_adder
.inputs a b
.outputs sum carry
.names a b sum
10 1
01 1
.names a b carry
11 1
.end
"""

_SEQUENTIAL = {".latch", ".mlatch", ".clock", ".start_kiss"}
_HIERARCHICAL = {".subckt", ".gate", ".search", ".exdc", ".blackbox"}
_TIMING = {
    ".area",
    ".delay",
    ".wire_load_slope",
    ".wire",
    ".input_arrival",
    ".output_required",
    ".default_input_arrival",
    ".default_output_required",
    ".input_drive",
    ".output_load",
    ".default_input_drive",
    ".default_output_load",
}


class _Line(NamedTuple):
    number: int
    words: list[str]


def detect(data: bytes) -> bool:
    """Whether the first line that is no comment starts with a dot and a word of BLIF."""
    for line in opening(data).split("\n"):
        words = line.split("#")[0].split()
        if words:
            return words[0] in (".model", ".inputs", ".outputs", ".names", ".search")
    return False


def read(data: bytes) -> Circuit:
    """The circuit of a BLIF file."""
    return netlist(data).circuit()


def netlist(data: bytes) -> Netlist:
    """The nets of a BLIF file, as they stand in it."""
    found = Netlist()
    lines = _Lines(decoded(data))
    modelled = False
    for number, words in lines:
        head, rest, where = words[0], words[1:], f"line {number}"
        if head == ".model":
            if modelled:
                raise FormatError(
                    "a second .model begins", where=where, advice="Flatten the file to one model."
                )
            modelled, found.name = True, " ".join(rest) or found.name
        elif head == ".inputs":
            for name in rest:
                found.add_input(name, number)
        elif head == ".outputs":
            for name in rest:
                found.add_output(name, number)
        elif head == ".names":
            if not rest:
                raise FormatError(".names without a net", where=where)
            *reads, name = rest
            cover = _cover(lines, len(reads))
            found.define(name, Net(tuple(reads), cover.add, number))
        elif head == ".end":
            _refuse_more_models(lines)
            break
        elif head not in _TIMING:
            raise _unreadable(head, where)
    return found


class _Lines(Iterator[_Line]):
    """Lines of words: comments dropped, continuations joined (under the number of the first), and the
    next one can be looked at before it is taken."""

    def __init__(self, text: str) -> None:
        self._lines = self._joined(text)
        self.next = next(self._lines, None)

    def __next__(self) -> _Line:
        if (line := self.next) is None:
            raise StopIteration
        self.next = next(self._lines, None)
        return line

    @staticmethod
    def _joined(text: str) -> Iterator[_Line]:
        words: list[str] = []
        start = 0
        for number, line in enumerate(text.split("\n"), 1):
            start = start or number
            content = line.split("#", 1)[0].rstrip()
            goes_on = content.endswith("\\")
            words += content.removesuffix("\\").split()
            if not goes_on:
                if words:
                    yield _Line(start, words)
                words, start = [], 0
        if words:
            raise FormatError(
                "the last line ends in a continuation",
                where=f"line {start}",
                advice="The file may be cut off.",
            )


def _cover(lines: _Lines, operands: int) -> Cover:
    """The rows up to the next line that starts with a dot."""
    cubes: list[str] = []
    values: set[str] = set()
    while lines.next is not None and not lines.next.words[0].startswith("."):
        number, words = next(lines)
        where = f"line {number}"
        *places, value = words
        cube = "".join(places)
        if value not in ("0", "1") or len(places) > 1 or set(cube) - set("01-"):
            raise FormatError(
                f"{quoted(' '.join(words))} is no row of a cover",
                where=where,
                advice="A row is a cube of 0, 1 and -, a space, and 0 or 1.",
            )
        if len(cube) != operands:
            raise FormatError(f"a cube of {len(cube)} places for {operands} operands", where=where)
        values.add(value)
        if len(values) == 2:
            raise FormatError(
                "a cover lists rows of value 0 and of value 1",
                where=where,
                advice="List either the patterns with value 1 or those with value 0.",
            )
        cubes.append(cube)
    return Cover(operands, tuple(cubes), value=values != {"0"})


def _unreadable(head: str, where: str) -> FormatError:
    if head in _SEQUENTIAL:
        return FormatError(
            f"this is a sequential circuit, by {head}; only combinational ones can be read",
            where=where,
            advice="Cut it at its latches (latch outputs become inputs, latch inputs become outputs).",
        )
    if head in _HIERARCHICAL:
        return FormatError(f"{head} is not read", where=where, advice="Flatten the circuit to .names first.")
    if head.startswith("."):
        return FormatError(f"{quoted(head)} is no command of BLIF", where=where)
    return FormatError(
        f"{quoted(head)} stands outside of any cover",
        where=where,
        advice="Rows of a cover follow a .names line; every other line starts with a dot.",
    )


def _refuse_more_models(lines: _Lines) -> None:
    for number, words in lines:
        if words[0] == ".model":
            raise FormatError(
                "a second .model begins", where=f"line {number}", advice="Flatten the file to one model."
            )
